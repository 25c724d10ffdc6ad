#!/usr/bin/python3
"""Draws the figures of `hyperoffload run` and `sweep` as PNG, SVG or PDF, by the output's name.

  scripts/plot.py memory out/quickstart/graph.series.json -o memory.svg     what fills HBM over time
  scripts/plot.py policies out/quickstart -o policies.png                   time by cause, policies side by side
  scripts/plot.py sweep out/sweep --x hbm --y iteration_s -o sweep.svg      a figure across a sweep, a line a policy
  scripts/plot.py frontier out/frontier.json -o frontier.svg                time against HBM, with its lower limit

Only draws what the files say. Needs Debian's python3-matplotlib.
"""
import argparse
import csv
import json
import os
import re
import sys

import matplotlib

matplotlib.use("Agg")
matplotlib.rcParams.update({"svg.hashsalt": "hyperoffload", "font.size": 9, "axes.spines.top": False, "axes.spines.right": False,
                            "axes.grid": True, "grid.color": "#e3e8ee", "axes.axisbelow": True, "figure.constrained_layout.use": True})
from matplotlib import pyplot as plt  # noqa: E402 (the backend comes first)

GIB = 2**30
KINDS = {"weight": ("weights", "#3b76d9"), "optimizer": ("optimizer state", "#c99a1b"), "gradient": ("gradients", "#9a5bc0"),
         "kv": ("KV cache", "#2a9d8f"), "activation": ("activations", "#e0813c"), "input": ("inputs", "#d2577a"),
         "other": ("other", "#8c7460"), "workspace": ("workspace", "#8794a5")}
CAUSES = {"late_transfer": ("bytes arrived late", "#d0433b"), "no_room": ("no room in HBM", "#e39a2d"),
          "hbm_contention": ("HBM bandwidth shared", "#8d5bb8"),
          "fabric_contention": ("fabric shared", "#4c6fb1"), "input_room": ("no room for inputs", "#2a9d8f"), "host": ("the host decides", "#8a6d3b"),
          "other": ("other", "#8794a5")}
UNITS = {"": (1, "number"), "s": (1, "s"), "ms": (1e-3, "s"), "us": (1e-6, "s"), "ns": (1e-9, "s"), "Gbps": (1.25e8, "B/s")}
for prefix, size in {"": 1, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}.items():
    UNITS[prefix + "B"] = (size, "B")
    UNITS[prefix + "B/s"] = (size, "B/s")


class WrongInput(Exception):
    pass


def read_text(path, expected):
    try:
        with open(path, encoding="utf-8", newline="") as file:
            return file.read()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "no UTF-8"
        raise WrongInput(f"{path}: {reason}, expected {expected}") from None


def read_json(path, expected):
    try:
        return json.loads(read_text(path, expected))
    except json.JSONDecodeError as error:
        raise WrongInput(f"{path}:{error.lineno}: no JSON, expected {expected}") from None


def inside(path, name):
    return os.path.join(path, name) if os.path.isdir(path) else path


def time_unit(longest):
    return next(((size, name) for size, name in ((1, "s"), (1e-3, "ms"), (1e-6, "µs")) if longest >= size), (1e-9, "ns"))


def quantity(text):
    """"40GB/s" -> (4e10, "B/s"); None where it is no number with a unit."""
    match = re.fullmatch(r"([-+]?[\d.]+(?:[eE][-+]?\d+)?)\s*([A-Za-z/]*)", text.strip())
    if not match or match[2] not in UNITS:
        return None
    size, dimension = UNITS[match[2]]
    return float(match[1]) * size, dimension


def by_size(text):
    number = quantity(text)
    return (0, number[1], number[0], text) if number else (1, "", 0, text)


def number_in(row, name, path):
    try:
        return float(row[name])
    except ValueError:
        raise WrongInput(f'{path}: {name}: found "{row[name]}", expected a number') from None


def plot_memory(options):
    series = read_json(options.input, "a POLICY.series.json of `hyperoffload run`")
    if not isinstance(series, dict) or series.get("format") != "hyperoffload-series" or series.get("version") != 1:
        raise WrongInput(f'{options.input}: another format, expected "format": "hyperoffload-series", "version": 1')
    window = series["iterations"][0 if options.iteration == "first" else -1]
    memory, length = window["memory"], window["end_s"] - window["start_s"]
    unit, name = time_unit(length)
    times = [t / unit for t in memory["time_s"]] + [length / unit]
    figure, axes = plt.subplots(figsize=(8, 3.6))
    kinds = [k for k in KINDS if k in memory["hbm_bytes_by_kind"]]
    levels = [[v / GIB for v in memory["hbm_bytes_by_kind"][k]] for k in kinds]
    axes.stackplot(times, [v + v[-1:] for v in levels], step="post", labels=[KINDS[k][0] for k in kinds], colors=[KINDS[k][1] for k in kinds])
    axes.axhline(series["hbm_usable_bytes"] / GIB, color="#b3261e", linestyle="--", linewidth=1.2, label="capacity")
    axes.set(xlim=(0, length / unit), ylim=(0, None), xlabel=f"time into the iteration ({name})", ylabel="HBM (GiB)",
             title=f"{series['trace']}, {series['policy']}, iteration {window['iteration'] + 1}")
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
    return figure


def plot_policies(options):
    results = read_json(inside(options.input, "results.json"), "the results.json of `hyperoffload run`")
    if not isinstance(results, dict) or not isinstance(results.get("runs"), list):
        raise WrongInput(f'{options.input}: no "runs", expected the results.json of `hyperoffload run`')
    runs = [r for r in results["runs"] if r["iteration_s"] is not None]
    if not runs:
        raise WrongInput(f"{options.input}: no policy could run, expected one that has an iteration_s")
    unit, name = time_unit(max(r["iteration_s"] for r in runs))
    figure, axes = plt.subplots(figsize=(7, 1.2 + 0.5 * len(runs)))
    labels = [r["policy"] + ("" if r["fits"] else " (does not fit)") for r in runs]
    axes.barh(labels, [r["ideal_s"] / unit for r in runs], color="#b7c4d6", label="ideal")
    left = [r["ideal_s"] / unit for r in runs]
    for cause, (text, color) in CAUSES.items():
        part = [max(0, r["stalls"][cause + "_s"]) / unit for r in runs]
        if any(part):
            axes.barh(labels, part, left=left, color=color, label=text)
        left = [a + b for a, b in zip(left, part)]
    axes.invert_yaxis()
    axes.set(xlabel=f"time per iteration ({name})", title=runs[0]["trace"] + " on " + runs[0]["hardware"])
    axes.grid(axis="y", visible=False)
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
    return figure


def read_rows(path):
    path = inside(path, "results.csv")
    lines = list(csv.DictReader(read_text(path, "the results.csv of `hyperoffload sweep`").splitlines()))
    if not lines or "policy" not in lines[0]:
        raise WrongInput(f"{path}: no rows with a policy, expected the results.csv of `hyperoffload sweep`")
    return path, lines


def column(rows, name, path):
    if name not in rows[0]:
        raise WrongInput(f'{path}: no column "{name}", expected one of {", ".join(list(rows[0])[:40])}')
    return name


def lines_of(options, x, y, limit):
    path, rows = read_rows(options.input)
    x, y = column(rows, x, path), column(rows, y, path)
    for setting in options.where:
        key, _, value = setting.partition("=")
        column(rows, key, path)
        rows = [r for r in rows if r[key] == value]
    if not rows:
        raise WrongInput(f'{path}: no row with {" and ".join(options.where)}, expected some')
    axes_names = list(rows[0])[:list(rows[0]).index("trace")] if "trace" in rows[0] else []
    for other in axes_names:
        found = sorted({r[other] for r in rows}, key=by_size)
        if len({(r[x], r[other]) for r in rows}) == len({r[x] for r in rows}):
            continue  # x itself, or what steps together with it
        if len(found) > 1:
            raise WrongInput(f"{path}: \"{other}\" has the values {', '.join(found[:8])}, expected one: choose with --where {other}={found[0]}")
    texts = list(dict.fromkeys(r[x] for r in rows))
    parsed = {t: quantity(t) for t in texts}
    numeric = all(parsed.values()) and len({q[1] for q in parsed.values()}) == 1
    at = {t: parsed[t][0] for t in texts} if numeric else {t: i for i, t in enumerate(texts)}
    dimension = parsed[texts[0]][1] if numeric else ""
    if x.endswith("_bytes"):
        dimension = "B"
    x_unit, x_name = {"B": (GIB, "GiB"), "B/s": (1e9, "GB/s"), "s": (1e-6, "µs")}.get(dimension, (1, ""))
    largest = max((number_in(r, y, path) for r in rows if r[y]), default=0)
    y_unit, y_name = time_unit(largest) if y.endswith("_s") and not y.endswith("per_s") else (GIB, "GiB") if y.endswith("_bytes") else (1, "")
    figure, axes = plt.subplots(figsize=(7, 4))
    for policy in dict.fromkeys(r["policy"] for r in rows):
        points = sorted((at[r[x]] / x_unit, float(r[y]) / y_unit) for r in rows if r["policy"] == policy and r["fits"] == "true" and r[y])
        if points:
            axes.plot(*zip(*points), marker="o", markersize=4, label=policy)
    if limit:
        bound = {at[r[x]] / x_unit: (float(r["ideal_s"]) + max(0, float(r["bound.stall_s"] or 0))) / y_unit for r in rows if r["ideal_s"]}
        axes.plot(*zip(*sorted(bound.items())), linestyle="--", color="#566273", label="lower limit")
    if not axes.lines:
        raise WrongInput(f"{path}: no point that fits has a {y}, expected one")
    if not numeric:
        axes.set_xticks(range(len(texts)), texts)
    axes.set(xlabel=x + (f" ({x_name})" if x_name else ""), ylabel=y + (f", in {y_name}" if y_name else ""), ylim=(0, None))
    axes.legend(frameon=False)
    return figure


def plan_frontier(options):
    frontier = read_json(options.input, "what `hyperoffload plan --frontier` wrote")
    if not isinstance(frontier, dict) or frontier.get("format") != "hyperoffload-frontier" or frontier.get("version") != 1:
        raise WrongInput(f'{options.input}: another format, expected "format": "hyperoffload-frontier", "version": 1')
    points = sorted(frontier["points"], key=lambda p: p["hbm_bytes"])
    if not points:
        raise WrongInput(f"{options.input}: no point, expected some")
    unit, name = time_unit(max(p["iteration_s"] for p in points))
    hbm = [p["hbm_bytes"] / GIB for p in points]
    figure, axes = plt.subplots(figsize=(7, 4))
    axes.plot(hbm, [p["iteration_s"] / unit for p in points], marker="o", markersize=4, label="planned")
    axes.plot(hbm, [(p["ideal_s"] + max(0, p["bound"]["stall_s"])) / unit for p in points], linestyle="--", color="#566273", label="proven limit")
    axes.set(xlabel="HBM (GiB)", ylabel=f"time per iteration ({name})", ylim=(0, None), title=frontier["trace"] + " on " + frontier["hardware"])
    axes.legend(frameon=False)
    return figure


def plot_sweep(options):
    return lines_of(options, options.x, options.y, options.y == "iteration_s")


def plot_frontier(options):
    if options.input.endswith(".json"):
        return plan_frontier(options)
    return lines_of(options, options.x, "iteration_s", True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds = parser.add_subparsers(dest="kind", required=True, metavar="FIGURE")
    for name, draw, text in (("memory", plot_memory, "POLICY.series.json"), ("policies", plot_policies, "results.json, or its folder"),
                             ("sweep", plot_sweep, "results.csv, or its folder"), ("frontier", plot_frontier, "results.csv of a sweep over hbm, or its folder, or the .json of plan --frontier")):
        kind = kinds.add_parser(name, description=f"Draws from {text}.")
        kind.add_argument("input", metavar="FILE", help=text)
        kind.add_argument("-o", "--output", required=True, help="figure to write: .png, .svg or .pdf")
        kind.set_defaults(draw=draw)
        if name == "memory":
            kind.add_argument("--iteration", choices=("first", "last"), default="last")
        if draw in (plot_sweep, plot_frontier):
            kind.add_argument("--x", default="hbm", help="column across (default: hbm)")
            kind.add_argument("--where", action="append", default=[], metavar="AXIS=VALUE", help="rows with this value only; repeatable")
        if name == "sweep":
            kind.add_argument("--y", default="iteration_s", help="column up (default: iteration_s)")
    options = parser.parse_args()
    try:
        extension = os.path.splitext(options.output)[1].lower()
        if extension not in (".png", ".svg", ".pdf"):
            raise WrongInput(f"-o {options.output}: found {extension or 'no ending'}, expected .png, .svg or .pdf")
        figure = options.draw(options)
        dates = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(extension)
        try:
            figure.savefig(options.output + ".tmp", format=extension[1:], dpi=150, metadata=dates)
            os.replace(options.output + ".tmp", options.output)
        except OSError as error:
            raise WrongInput(f"-o {options.output}: {error.strerror}, expected a file that can be written") from None
    except WrongInput as error:
        print(f"plot.py: {error}", file=sys.stderr)
        return 2
    except (KeyError, TypeError, ValueError, IndexError) as error:
        print(f"plot.py: {options.input}: not as expected ({type(error).__name__}: {error}), expected a file that this version's hyperoffload wrote",
              file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
