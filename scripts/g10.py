#!/usr/bin/env python3
"""Writes docs/g10.md: this project's planner and its re-creations on G10's own workloads, beside G10's figures.

    scripts/g10.py PATH/TO/shared/data [--binary build/hyperoffload] [-o docs/g10.md]

Every figure of ours is a field of a result that the command wrote; CPU time and memory are those of the commands.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

# G10's cycles at 1.2 GHz, second iteration: LRU, FlashNeuron, DeepUM, G10, ideal
# (github.com/platformxlab/G10 at c42dfb1, example_results/overall_batchsize; None: it didn't run).
PUBLISHED = {
    ("BERT_Base", 128): (13178010664, 7087164000, 7566762920, 7087296457, 7087159999),
    ("BERT_Base", 512): (97051580903, 52895639999, 18980722809, 17607178175, 11799396628),
    ("BERT_Base", 768): (179071570852, None, 29273426578, 26629926444, 16948222288),
    ("BERT_Base", 1024): (278235045099, None, 69938662465, 47061169065, 20928839947),
    ("VIT", 256): (2549893347, 2549892000, 2549893347, 2549893347, 2549893347),
    ("VIT", 512): (9130997171, 3046776000, 3658386673, 3046857122, 3046779498),
    ("VIT", 768): (13461050398, 3483071999, 5185388382, 3483108604, 3483077226),
    ("VIT", 1024): (17966709814, 6322764000, 6937327671, 5321021687, 3919374961),
    ("VIT", 1280): (29519610761, None, 9069040214, 6647685439, 4459141336),
    ("Inceptionv3", 512): (117365755337, 64334880000, 64418641013, 64660726103, 64334907021),
    ("Inceptionv3", 1024): (228619078837, 96826560000, 77282983645, 71623659498, 71175129706),
    ("Inceptionv3", 1536): (337188727906, None, 106402260905, 73303772339, 71633241480),
    ("ResNet152", 256): (167654684435, 127328400000, 127328819564, 127337222181, 127328819564),
    ("ResNet152", 1280): (562689016883, 210313199999, 158428482477, 137304113890, 135107260924),
    ("SENet154", 1024): (876972455232, 299263200000, 231771470702, 170748120306, 159444570406),
}
LRU = "page_fault:fault_latency=0us,frees=no,overlap=yes"
DEEPUM = "page_fault:correlation=yes"
HOST_BYTES = 128e9  # of G10's machine


def run(command):
    """The command's standard error, CPU seconds and peak memory in MB; it must end with 0 or 3."""
    with tempfile.TemporaryFile("w+") as errors:
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors)
        _, status, usage = os.wait4(child.pid, 0)
        errors.seek(0)
        text = errors.read()
    code = os.waitstatus_to_exitcode(status)
    if code not in (0, 3):
        sys.exit(f"{' '.join(command)}: exit status {code}: {text}")
    return code, text, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1000


class Bench:
    def __init__(self, data, binary, folder):
        self.data, self.binary, self.folder = data, binary, folder
        machine = pathlib.Path("configs/hardware/g10.yaml").read_text()
        self.machines = {"": pathlib.Path("configs/hardware/g10.yaml")}
        # More of the same host memory, for what does not fit; and FlashNeuron's SSD, in G10's units.
        for name, changes in {"large": [("128GB", "2TB")],
                              "ssd": [("128GB", "2TB"), ("15.754GB/s", "3.435973836GB/s"), ("40GB", "40GiB")]}.items():
            text = machine
            for before, after in changes:
                text = text.replace(before, after)
            self.machines[name] = folder / f"g10-{name}.yaml"
            self.machines[name].write_text(text.replace("name: g10", f"name: g10-{name}"))

    def trace(self, net, batch):
        base = self.data / "g10/results" / net
        out = self.folder / f"{net}-{batch}.json"
        _, _, seconds, megabytes = run([self.binary, "trace", "import", "--format", "g10",
                                        str(self.data / "g10/Nets" / f"{net}.txt"), str(base / f"cudnn{batch}.txt"),
                                        str(base / f"cudnn{batch}Workspace.txt"), "-o", str(out)])
        return out, seconds, megabytes

    def simulate(self, trace, policy, machine=""):
        out = self.folder / "result.json"
        out.unlink(missing_ok=True)
        code, text, seconds, megabytes = run([self.binary, "simulate", str(trace), "--hardware",
                                              str(self.machines[machine]), "--policy", policy, "--iterations", "2",
                                              "-o", str(out)])
        return (json.loads(out.read_text()) if code == 0 else None), text, seconds, megabytes


def sum_of_times(data, net, batch):
    rows = (data / "g10/results" / net / f"cudnn{batch}.txt").read_text().split("\n")
    return sum(float(row.split()[1]) for row in rows if row.strip())


def ratio(value, digits=3):
    return "-" if value is None else f"{value:.{digits}f}" if abs(value - 1) >= 0.002 else f"{value:.5f}"


def published(key, column):
    cycles = PUBLISHED[key]
    return None if cycles[column] is None else cycles[column] / cycles[4]


def slowdown(result):
    return result["slowdown"] if result and result["fits"] else None


def measure(bench):
    rows = []
    for net, batch in sorted(PUBLISHED):
        trace, import_s, import_mb = bench.trace(net, batch)
        resident = bench.simulate(trace, "resident")[0]
        graph, reason, graph_s, graph_mb = bench.simulate(trace, "graph")
        row = {"key": (net, batch), "ideal": resident["ideal_s"], "sum": sum_of_times(bench.data, net, batch) / 1e3,
               "peak": resident["hbm_peak_bytes"], "fits": graph is not None, "machine": "" if graph else "large"}
        if graph is None:
            graph, reason, graph_s, graph_mb = bench.simulate(trace, "graph", "large")
        row.update(graph=graph, cpu=import_s + graph_s, memory=max(import_mb, graph_mb))
        for name in ("g10", "flash_neuron", "capuchin", "on_demand", DEEPUM):
            row[name] = slowdown(bench.simulate(trace, name, row["machine"])[0])
        row["flash_neuron ssd"] = slowdown(bench.simulate(trace, "flash_neuron", "ssd")[0])
        row[LRU] = slowdown(bench.simulate(trace, LRU, "large")[0])
        rows.append(row)
        print(f"{net} {batch}: graph {row['graph']['slowdown']:.5f}", file=sys.stderr)
    return rows


def label(row):
    net, batch = row["key"]
    return f"{net.replace('_Base', '')}-{batch}" + ("" if row["fits"] else " *")


def page(rows):
    out = [HEAD]
    out.append("| workload | kernels' times | ideal, replayed | live at most | `graph` | stall at least, by its bound | G10 |"
               " moved in | import + plan + replay |\n|---|---|---|---|---|---|---|---|---|")
    for r in rows:
        g = r["graph"]
        out.append(f"| {label(r)} | {r['sum']:.6f} s | {r['ideal']:.6f} s | {r['peak'] / 1e9:.2f} GB | **{ratio(g['slowdown'])}** |"
                   f" {ratio(1 + g['bound']['stall_s'] / g['ideal_s'])} | {ratio(published(r['key'], 3))} |"
                   f" {g['pool_to_hbm_bytes'] / 1e9:.1f} GB | {r['cpu']:.2f} s, {r['memory']:.0f} MB |")
    out.append(MIDDLE)
    out.append("| workload | `g10` | G10 | `flash_neuron` | at the SSD's pace | FlashNeuron | `page_fault`, correlation | DeepUM |"
               " `page_fault`, dead pages kept | LRU | `capuchin` | `on_demand` |\n|" + "---|" * 12)
    for r in rows:
        out.append(f"| {label(r)} | {ratio(r['g10'])} | {ratio(published(r['key'], 3))} | {ratio(r['flash_neuron'])} |"
                   f" {ratio(r['flash_neuron ssd'])} | {ratio(published(r['key'], 1))} | {ratio(r[DEEPUM])} |"
                   f" {ratio(published(r['key'], 2))} | {ratio(r[LRU])} | {ratio(published(r['key'], 0))} |"
                   f" {ratio(r['capuchin'])} | {ratio(r['on_demand'])} |")
    out.append(TAIL)
    return "\n".join(out)


HEAD = """# G10's own workloads

G10 (Zhang et al., MICRO 2023) published the nets, kernel times and results of its evaluation
(github.com/platformxlab/G10 at c42dfb1). Here this project plans and replays them on G10's machine
(`configs/hardware/g10.yaml`: 40 GB of HBM, 15.754 GB/s to the host each way, 128 GB there). `scripts/g10.py` wrote
this page. Times are those of the second iteration over the ideal one; 1 is as fast as with HBM without limit.

## The planner

CPU time and peak memory of the two commands together: release build, a virtual machine with 2 cores of an Intel Xeon, shared with other work.
G10 itself takes 25 to 334 s of CPU and 2.6 to 6.5 GB a run. A `*` needs more than HBM and host hold together (168 GB): those run
with 2 TB behind the same link, where G10 also has an SSD of 3.2 GB/s.
"""

MIDDLE = """
`graph` reaches its bound (the stall that no plan in program order can avoid) or comes close to it in every case, and is
never behind G10. BERT-128 and the smaller VITs fit: nothing moves.

## The re-creations

Columns in code font are ours, those beside them G10's published figures of the system that they re-create; `-` did not
run: its rules left it short of HBM, or of host memory. `capuchin` leaves in HBM what the host has no room for (BERT-768 all but fills both).
"""

TAIL = f"""
## Why they differ

- **`g10`** moves by G10's rules, with the host as the only tier. G10 sends to its SSD (3.2 GB/s) what it can and to the
  host what must be fast, so where much is moved its figures carry the SSD's pace; and it works on unified memory, where
  tensors are born by page faults. On BERT-768 and VIT-1280 both are near each other; below that our ledger hides what
  its SSD can't. What no period hides is loaded right before its use here, and faults there.
- **`flash_neuron`** has the host's pace; FlashNeuron only the SSD. At the SSD's pace and in G10's units (its "GB" are
  2^30 bytes: 40 GiB of HBM, 3.2 GiB/s) it comes near its figures. G10's simulator also places
  tensors at addresses, so that fragments cost it room; ours doesn't. Both give up where "weights" (in BERT these are
  tensors that grow with the batch, flagged as global) leave no room.
- **DeepUM** is `{DEEPUM}`: learnt order, eight kernels ahead, as G10 configures it. G10 frees dead tensors only when
  their pages are evicted, which costs its BERT-128 7 %; here a dead tensor's pages are free at once. From BERT-512 on,
  where the link is what counts, both agree within some per cent until G10 spills to its SSD.
- **LRU** is `{LRU}`, with 2 TB at the host: unified memory that never frees. Every tensor has pages of its own; dead
  ones are written back and fetched again, and leaving and arriving pages share nothing. On BERT-128 and
  the VITs ours and G10's agree within 3 % (but VIT-1280): the whole of the tensors crosses the link once each way.
  Where more than the host's 128 GB is away, G10 goes to its SSD at 3.2 GB/s, ours to more host memory at 15.754 GB/s.
- `page_fault` without options, a driver with an allocator that frees, lies between DeepUM and LRU; `on_demand` is the
  same by whole tensors, without faults.
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("--binary", default="build/hyperoffload")
    parser.add_argument("-o", "--output", type=pathlib.Path, default=pathlib.Path("docs/g10.md"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        text = page(measure(Bench(options.data, options.binary, pathlib.Path(folder))))
    options.output.write_text(text)


if __name__ == "__main__":
    main()
