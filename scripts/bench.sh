#!/usr/bin/env bash
# How fast the replay is and how it grows: 1 to 768 dies of a CloudMatrix384, every op waiting for pool traffic
# (scripts/bench_replay.cc says what runs). Columns: dies, mode, ops, ops/s of wall time, ops/s of CPU time, wall and
# CPU seconds, peak MiB, simulated seconds. Then where the time goes, if `perf` is installed and may be used.
# Usage: scripts/bench.sh [OPS a die, default 1000]
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/build.sh --target bench_replay
ops=${1:-1000}
machine=configs/hardware/cloudmatrix384.yaml
bench=build/bench_replay

grep -m1 "model name" /proc/cpuinfo | sed 's/.*: //' || true
echo "$(nproc) cores, load $(cut -d' ' -f1 /proc/loadavg)"
printf '%6s %-7s %9s %10s %10s %8s %8s %8s %11s\n' dies mode ops ops/wall_s ops/cpu_s wall_s cpu_s MiB simulated_s
for mode in alike uneven; do
  for dies in 1 8 64 384 768; do
    # A few dies alone are over in a blink: more ops, for a figure that means something.
    $bench $machine $dies $((dies < 64 ? 20 * ops : dies < 384 ? 4 * ops : ops)) $mode
  done
done
$bench $machine 768 "$ops" folded

# The share of SimGrid's library (solver: its max-min system), of the C library and of ours.
command -v perf >/dev/null || exit 0
data=$(mktemp)
trap 'rm -f "$data"' EXIT
for dies in 8 64 768; do
  perf record -q -F 500 -o "$data" $bench $machine $dies $((dies < 768 ? 2000 : 100)) uneven >/dev/null 2>&1 || exit 0
  perf report -i "$data" --no-children -s dso,symbol --stdio 2>/dev/null |
    awk -v dies=$dies '/^ *[0-9.]+%/ { p = $1 + 0
        if ($2 ~ /simgrid/) { simgrid += p; if (/lmm::/) solver += p; if ($NF ~ /^0x/) inner += p }
        else if ($2 ~ /bench_replay/) ours += p; else rest += p }
      END { printf "%d dies: SimGrid %.0f %% (max-min solver %.0f %%, without names %.0f %%), ours %.0f %%, C library and kernel %.0f %%\n",
                   dies, simgrid, solver, inner, ours, rest }'
done
