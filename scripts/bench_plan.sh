#!/usr/bin/env bash
# Times planning and replaying of 10,000 and 100,000 ops at 40 % of the resident peak, two iterations, and
# the quickstart experiment: wall and user seconds and peak memory of whole commands, median of three.
# Needs python3 for the traces. Usage: scripts/bench_plan.sh
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/build.sh --target hyperoffload
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

measure() {  # NAME COMMAND...: runs it three times, prints the run with the median wall time
  local name=$1
  shift
  for _ in 1 2 3; do
    python3 - "$@" <<'PY'
import resource, subprocess, sys, time
start = time.monotonic()
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
wall = time.monotonic() - start
usage = resource.getrusage(resource.RUSAGE_CHILDREN)
print(f"{wall:9.2f} s wall {usage.ru_utime:9.2f} s user {usage.ru_maxrss / 1024:9.0f} MiB")
PY
  done | sort -n | sed -n 2p | sed "s|^|$(printf '%-28s' "$name")|"
}

machine=configs/hardware/cloudmatrix384-die.yaml
for ops in 10000 100000; do
  python3 scripts/synthetic_trace.py "$ops" "$work/$ops.json"
  hbm=$((ops * 40000))B
  at="--hardware $machine --hbm $hbm --iterations 2"
  measure "plan $ops ops" build/hyperoffload plan "$work/$ops.json" $at -o "$work/plan.json"
  measure "replay $ops ops" build/hyperoffload simulate "$work/$ops.json" $at --plan "$work/plan.json"
  measure "on_demand $ops ops" build/hyperoffload simulate "$work/$ops.json" $at --policy on_demand
done
measure "quickstart" build/hyperoffload run configs/experiments/quickstart.yaml -o "$work/quickstart"
