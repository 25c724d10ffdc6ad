#!/usr/bin/env python3
"""Writes docs/addresses.md: how high the arenas of plans with addresses are, and what they cost.

    scripts/addresses.py PATH/TO/shared/data [--build build] [-o docs/addresses.md]

Every figure is a field of a plan or a line that the command wrote, or of bench_pack (build it first: scripts/bench_pack.sh);
seconds are CPU time. Each plan with addresses is checked and replayed, too.
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

DIE = "configs/hardware/cloudmatrix384-die.yaml"
# name, workload or G10's (net, batch), machine, HBM, iterations
PLANS = [
    ("Llama-3.1-8B prefill", "llama-3.1-8b-prefill", DIE, "22.5GB", 3),
    ("Llama-3.1-8B train", "llama-3.1-8b-train", DIE, "36.3GB", 2),
    ("Llama-3.1-8B decode", "llama-3.1-8b-decode", DIE, "36.81GB", 3),
    ("DeepSeek-V3 train", "deepseek-v3-train", DIE, "42.3GB", 2),
    ("DeepSeek-V3.2 decode", "deepseek-v3.2-sparse-decode", DIE, "50GB", 1),
    ("G10's BERT-128", ("BERT_Base", 128), "g10", "8GB", 2),
    ("G10's BERT-128", ("BERT_Base", 128), "g10", "10GB", 2),
    ("G10's BERT-512", ("BERT_Base", 512), "g10", "40GB", 2),
    ("G10's VIT-1024", ("VIT", 1024), "g10", "40GB", 2),
    ("G10's VIT-1280", ("VIT", 1280), "g10", "40GB", 2),
    ("G10's Inceptionv3-512", ("Inceptionv3", 512), "g10", "40GB", 2),
    ("G10's Inceptionv3-1536", ("Inceptionv3", 1536), "g10", "40GB", 2),
    ("G10's ResNet152-256", ("ResNet152", 256), "g10", "40GB", 2),
    ("G10's SENet154-1024", ("SENet154", 1024), "g10 large", "40GB", 2),
]
INTRO = """# Where in HBM everything lies: what it costs (`plan --addresses`)

Written by `scripts/addresses.py`; run it again after a change to `planner/pack` or `planner/addresses` and compare.

A plan with addresses counts HBM by the height of its arena, not by what is alive. Packing is in steps: first
fits in several orders; for small instances a search that would prove the least height; for large ones a search that puts
an item where what it overlaps weighs least and takes that out again (`planner/pack/ejection.h`). Where the arena stays above
HBM, plans are made again: loads start no earlier than they have to (`planner/passes/late_loads.h`), which leaves fewer instants
full, and less of HBM may be in use at once (`room_bytes` in the plan), the least that is needed for an arena that fits.

"""


def run(command, fine=(0,)):
    """The command's output, its messages and CPU seconds."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as errors:
        child = subprocess.Popen([str(word) for word in command], stdout=out, stderr=errors)
        _, status, usage = os.wait4(child.pid, 0)
        out.seek(0)
        errors.seek(0)
        text, message = out.read(), errors.read()
    if os.waitstatus_to_exitcode(status) not in fine:
        sys.exit(f"{' '.join(map(str, command))}: {message}")
    return text, message, usage.ru_utime


def instances(data, build):
    files = sorted((data / "minimalloc").glob("[AGK].1048576.csv"))
    lines = run([build / "bench_pack", *files])[0].splitlines()[1:]
    page = ["## Hard instances", "", "MiniMalloc's, each with a peak of 1,048,576 bytes (`scripts/bench_pack.sh`):", "",
            "| file | buffers | height reached | first fit by size | nodes | seconds |", "|---|---|---|---|---|---|"]
    for line in lines:
        name, items, peak, height, first, nodes, seconds, _ = line.split(None, 7)
        page.append(f"| {name} | {items} | {height} | {first} ({int(first) / int(peak) - 1:+.0%}) | {nodes} | {seconds} |")
    return page


def plan(binary, folder, case, flags):
    trace, machine, hbm, iterations = case
    out = folder / "plan.json"
    out.unlink(missing_ok=True)
    inputs = [trace, "--hardware", machine, "--hbm", hbm, "--iterations", iterations]
    _, message, seconds = run([binary, "plan", *inputs, *flags, "-o", out], (0, 3))
    if not out.exists():
        return None, message, seconds
    if flags:
        run([binary, "check", trace, out, *inputs[1:]])
        run([binary, "simulate", *inputs, "--plan", out, "-o", folder / "result.json"])
    return json.loads(out.read_text()), message, seconds


def stall(made):
    return 1e3 * (made["prediction"]["iteration_s"] - made["prediction"]["ideal_s"])


def table(data, binary, folder):
    large = folder / "g10-large.yaml"
    large.write_text(pathlib.Path("configs/hardware/g10.yaml").read_text().replace("128GB", "2TB"))
    machines = {"g10": "configs/hardware/g10.yaml", "g10 large": large}
    page = ["## Plans", "",
            "Shipped workloads on one CloudMatrix384 die, and G10's on its machine (SENet154 with 2 TB at the host). The stall is that of the last",
            "iteration by the planner's walk. Each plan passed `check`, and `simulate` verified its addresses.", "",
            "| plan | HBM | iterations | live peak, B | arena above it | first fit by size | stall, ms | without addresses | CPU s | without |",
            "|---|---|---|---|---|---|---|---|---|---|"]
    for name, source, machine, hbm, iterations in PLANS:
        trace = folder / "trace.json"
        if isinstance(source, str):
            run([binary, "trace", "generate", f"configs/workloads/{source}.yaml", "-o", trace])
        else:
            base = data / "g10/results" / source[0] / f"cudnn{source[1]}"
            run([binary, "trace", "import", "--format", "g10", data / "g10/Nets" / f"{source[0]}.txt", f"{base}.txt",
                 f"{base}Workspace.txt", "-o", trace])
        case = (trace, machines.get(machine, machine), hbm, iterations)
        bare, _, bare_seconds = plan(binary, folder, case, [])
        made, message, seconds = plan(binary, folder, case, ["--addresses"])
        if made is None:
            row = [name, hbm, iterations, "-", "none fits", "-", "-"]
        else:
            peak = made["prediction"]["hbm_peak_bytes"]
            first = int(re.search(r"first fit by size would take (\d+) B", message)[1])
            row = [name, hbm, iterations, peak, f"{made['arena_bytes'] / peak - 1:+.2%}", f"{first / peak - 1:+.2%}",
                   f"{stall(made):.2f}"]
        page.append("| " + " | ".join(map(str, row + [f"{stall(bare):.2f}", f"{seconds:.1f}", f"{bare_seconds:.1f}"])) + " |")
        print(page[-1], file=sys.stderr)
    return page


NOTES = """
An arena may be left up to 0.1 % above its peak where HBM has the room: packing stops there. Those far above it are G10's
plans that fill HBM at hundreds of instants with sizes of 1 to 4 units (BERT: 50 MB of 8 GB) that come and go in
another order than they lie: no search found less. A tensor that moves in pieces needs one stretch for all of them while any is there.
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build"))
    parser.add_argument("-o", "--output", type=pathlib.Path, default=pathlib.Path("docs/addresses.md"))
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        page = instances(args.data, args.build) + [""] + table(args.data, args.build / "hyperoffload", pathlib.Path(folder))
    args.output.write_text(INTRO + "\n".join(page) + "\n" + NOTES)


if __name__ == "__main__":
    main()
