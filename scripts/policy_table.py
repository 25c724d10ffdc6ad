#!/usr/bin/env python3
"""Writes docs/policies.md: every policy on training, prefill, decode and G10's ResNet152 and BERT, at 75 and 60 % of what
keeping everything resident takes. All figures are the command's; this lays them out.

Usage: scripts/policy_table.py [BINARY [OUTPUT]]   (default: build/hyperoffload, docs/policies.md)
G10's files are taken from $HYPEROFFLOAD_SHARED_DATA, or ../shared/data; without them its two workloads are left out.
"""
import json
import os
import pathlib
import re
import resource
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
BINARY = sys.argv[1] if len(sys.argv) > 1 else str(ROOT / "build/hyperoffload")
OUTPUT = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else ROOT / "docs/policies.md")
DATA = pathlib.Path(os.environ.get("HYPEROFFLOAD_SHARED_DATA", ROOT.parent / "shared/data"))
SHARES = (75, 60)
ITERATIONS = 3
# Settings beside each policy's defaults.
VARIANTS = {
    "on_demand": ["evict=oldest"],
    "layer_ahead": ["step=1"],
    "sliding_window": ["horizon=8", "horizon=64"],
    "fixed_distance": ["distance=10", "distance=50"],
}
# What the tables leave open, by workload, share and policy that beats `graph`. One that is missing here is listed as
# unexplained.
EXPLAINED = {}


def run(*args):
    done = subprocess.run([BINARY, *map(str, args)], capture_output=True, text=True)
    if done.returncode not in (0, 3):
        sys.exit(f"{' '.join(map(str, args))}: {done.stderr.strip()}")
    return done


def policies():
    """The names in the order of the command's help, with their summaries."""
    found = re.findall(r"^  ([a-z0-9_]+): (.*)$", run("simulate", "--help").stdout, re.M)
    return [(name, summary) for name, summary in found if name != "resident"]


def simulate(trace, machine, hbm, policy):
    """(result, reason): result is None where the policy can't run."""
    args = ["simulate", trace, "--hardware", machine, "--iterations", ITERATIONS, "--policy", policy, "-o", "-"]
    done = run(*args, *(["--hbm", f"{hbm}B"] if hbm else []))
    if done.returncode == 3:
        return None, done.stderr.strip().removeprefix("hyperoffload: ")
    return json.loads(done.stdout), ""


def seconds(value):
    if abs(value) < 1e-12:  # less than an instant (docs/semantics.md, rule 1)
        return "0"
    for unit, size in (("s", 1), ("ms", 1e-3), ("us", 1e-6)):
        if value >= size:
            return f"{value / size:.4g} {unit}"
    return f"{value * 1e9:.4g} ns"


def gib(value):
    return f"{value / 2**30:.2f}"


def workloads(work):
    """(title, how it was made, trace, machine)."""
    die = (ROOT / "configs/hardware/cloudmatrix384-die.yaml").read_text()
    with_host = work / "die-with-host.yaml"
    with_host.write_text(re.sub(r"^link:", "host: {compute: 1TFLOPS, bandwidth: 200GB/s}\nlink:", die, flags=re.M))
    for phase, title in (("train", "Training"), ("prefill", "Prefill"), ("decode", "Decode")):
        name = f"llama-3.1-8b-{phase}"
        trace = work / f"{name}.json"
        run("trace", "generate", ROOT / f"configs/workloads/{name}.yaml", "-o", trace)
        yield (title, f"`configs/workloads/{name}.yaml` on one CloudMatrix384 die", trace, with_host)
    nets = DATA / "g10/Nets"
    for title, net, batch in (("ResNet152-256", "ResNet152", 256), ("BERT-128", "BERT_Base", 128)):
        kernels = [DATA / "g10/results" / net / f"cudnn{batch}{part}.txt" for part in ("", "Workspace")]
        if not all(file.exists() for file in kernels):
            print(f"{title} is left out: its files are not in {DATA}", file=sys.stderr)
            continue
        trace = work / f"{title}.json"
        run("trace", "import", "--format", "g10", nets / f"{net}.txt", *kernels, "-o", trace)
        yield (f"G10's {title}", "imported from G10's net and kernel times, on `configs/hardware/g10.yaml`", trace,
               ROOT / "configs/hardware/g10.yaml")


def cell(result):
    if result is None:
        return "can't run | | "
    return f"{seconds(result['stall_s'])} | {result['slowdown']:.4f} | {gib(result['hbm_peak_bytes'])}"


def measure(title, trace, machine, names, resident, losses):
    rows, reasons = {}, {}
    for share in SHARES:
        hbm = resident["hbm_peak_bytes"] * share // 100
        results = {}
        for policy in names:
            results[policy], reason = simulate(trace, machine, hbm, policy)
            rows.setdefault(policy, []).append(cell(results[policy]))
            if reason:
                short = re.split(r"; largest| \(and ", reason.splitlines()[0])[0]
                reasons.setdefault(short, []).append(f"`{policy}` at {share} %")
        graph = results["graph"]
        for policy, result in results.items():
            if result and (graph is None or result["iteration_s"] < graph["iteration_s"] * (1 - 1e-9)):
                losses.append((title, share, policy, result, graph))
    return rows, reasons


def main():
    names = []
    summaries = policies()
    for name, _ in summaries:
        names += [name] + [f"{name}:{variant}" for variant in VARIANTS.get(name, [])]
    page = [
        "# Policies side by side",
        "",
        "Written by `scripts/policy_table.py`; every figure is what `hyperoffload simulate --iterations "
        f"{ITERATIONS} -o -` says of the last iteration. HBM is limited to {SHARES[0]} and {SHARES[1]} % of the peak of "
        "`resident`. Stall is against the ideal time (slowdown: iteration over ideal), peak HBM in GiB. `zero_offload` needs "
        "a host: the die has `host: {compute: 1TFLOPS, bandwidth: 200GB/s}` here, an assumption.",
        "",
        "| policy | rules |",
        "|---|---|",
        *[f"| `{name}` | {summary} |" for name, summary in summaries],
        "",
        "Options and their defaults: `hyperoffload simulate --help`. The source of each policy's rules, and what of them is our "
        "reading, opens its header in `sim/policy`.",
    ]
    losses = []
    with tempfile.TemporaryDirectory() as folder:
        for title, how, trace, machine in workloads(pathlib.Path(folder)):
            resident, _ = simulate(trace, machine, None, "resident")
            rows, reasons = measure(title, trace, machine, names, resident, losses)
            page += ["", f"## {title}", "",
                     f"{how[0].upper() + how[1:]}. Resident peak {gib(resident['hbm_peak_bytes'])} GiB, ideal "
                     f"{seconds(resident['ideal_s'])}.", "",
                     "| policy | " + " | ".join(f"stall, {s} % | slowdown | peak" for s in SHARES) + " |",
                     "|---|" + "---|" * (3 * len(SHARES)),
                     *[f"| `{policy}` | " + " | ".join(cells) + " |" for policy, cells in rows.items()]]
            if reasons:
                page += ["", "Why not:", ""]
                page += [f"- {', '.join(where)}: {reason}" for reason, where in reasons.items()]
    page += ["", "## Where `graph` loses", ""]
    if not losses:
        page.append("In no table does another policy take less time. Some take less HBM for the same time: `graph` uses what it is given.")
    for title, share, policy, result, graph in losses:
        ours = seconds(graph["iteration_s"]) if graph else "can't run"
        why = EXPLAINED.get((title, share, policy)) or EXPLAINED.get((title, policy)) or "Not explained."
        page.append(f"- {title}, {share} %: `{policy}` takes {seconds(result['iteration_s'])}, `graph` {ours}. {why}")
    OUTPUT.write_text("\n".join(page) + "\n")
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"{OUTPUT}: {used.ru_utime + used.ru_stime:.0f} s CPU, {len(losses)} losses", file=sys.stderr)


main()
