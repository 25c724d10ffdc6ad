#!/usr/bin/env bash
# A sweep over all processors of this machine, or over a Slurm cluster. Run it again to do what is missing.
# Usage: scripts/sweep.sh EXPERIMENT.yaml -o DIR [--set key=value]...                  here, a job a processor
#        scripts/sweep.sh --slurm N EXPERIMENT.yaml -o DIR [--set key=value]...        N shares, as an array of jobs
# With --slurm: words of SBATCH_ARGS (a partition, a time limit, ...) go to sbatch, HYPEROFFLOAD_JOBS (default 1) is
# how many results a job runs at once; it waits for the array. DIR and the program must be seen by all machines.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
program=${HYPEROFFLOAD:-$here/build/hyperoffload}

if [ "${1:-}" != --slurm ]; then
  [ -x "$program" ] || "$here/scripts/build.sh"
  exec "$program" sweep "$@" --jobs "$(nproc)"
fi

shares=${2:-}
[[ "$shares" =~ ^[1-9][0-9]*$ ]] || { echo "sweep.sh: --slurm: found '$shares', expected a number of shares" >&2; exit 2; }
shift 2
command -v sbatch >/dev/null || { echo "sweep.sh: --slurm: no sbatch here" >&2; exit 2; }
[ -x "$program" ] || "$here/scripts/build.sh"
jobs=${HYPEROFFLOAD_JOBS:-1}
"$program" sweep "$@" --list >/dev/null   # wrong input is said here, not in N jobs' logs
words=$(printf ' %q' "$program" sweep "$@" --jobs "$jobs")
read -ra extra <<<"${SBATCH_ARGS:-}"
status=0
sbatch --wait --parsable --job-name=hyperoffload-sweep --array="1-$shares" --cpus-per-task="$jobs" "${extra[@]}" \
  --wrap="exec$words --shard \$SLURM_ARRAY_TASK_ID/$shares" >&2 || status=$?
[ "$status" -eq 0 ] || { echo "sweep.sh: a job failed: its log says why; run this again for what is missing" >&2; exit 1; }
exec "$program" sweep "$@"                # all is there: the summary, and results.csv once more
