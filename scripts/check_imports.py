#!/usr/bin/env python3
"""Offers every file of a folder of traces to every import format: each must import, or be refused in one line.

    scripts/check_imports.py PATH/TO/shared/data [--binary build/hyperoffload] [--formats kineto,chakra]

Prints what each file imports as; ends with 1 if an import fails in any other way than that.
"""
import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

SKIPPED = {"MANIFEST.json"}


def formats_of(binary):
    text = subprocess.run([binary, "trace", "import", "--help"], capture_output=True, text=True, check=True).stdout
    names = re.search(r"^  --format.*?(?=^  -)", text, re.S | re.M).group(0)
    known = ["activation-trace", "ascend", "chakra", "g10", "kineto", "llmservingsim", "memory-snapshot",
             "memory-timeline", "mindspore", "onnx", "pytorch-et"]
    return [name for name in known if name in names] or known


def offer(binary, name, path, out):
    done = subprocess.run([binary, "trace", "import", "--format", name, str(path), "-o", str(out)],
                          capture_output=True, timeout=300)
    errors = done.stderr.decode("utf-8", "replace")
    made = out.exists()
    out.unlink(missing_ok=True)
    if done.returncode == 0 and made:
        return "imports", ""
    lines = errors.strip().split("\n")
    printable = all(character.isprintable() for line in lines for character in line)
    if done.returncode == 2 and not made and len(lines) == 1 and "expected" in lines[0] and printable:
        return "refused", ""
    return "WRONG", f"exit {done.returncode}, output {'there' if made else 'absent'}: {errors[:300]!r}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("--binary", default="build/hyperoffload")
    parser.add_argument("--formats", help="comma-separated; default: all")
    options = parser.parse_args()
    names = options.formats.split(",") if options.formats else formats_of(options.binary)
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "trace.json"
        for path in sorted(p for p in options.data.rglob("*") if p.is_file() and p.name not in SKIPPED):
            taken = []
            for name in names:
                verdict, why = offer(options.binary, name, path, out)
                if verdict == "imports":
                    taken.append(name)
                elif verdict == "WRONG":
                    wrong += 1
                    print(f"WRONG {path.relative_to(options.data)} as {name}: {why}")
            print(f"{path.relative_to(options.data)}: {', '.join(taken) or 'refused by all'}", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
