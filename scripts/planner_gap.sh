#!/usr/bin/env bash
# Measures plans against their proven limits over seeded traces, what each step of the search is worth, and what
# planning takes, and writes docs/planner.md. The stall of 50 seeds a family takes 15 minutes of CPU, half of it the bounds;
# their least HBM 30. All cores are used. Usage: scripts/planner_gap.sh [SEEDS [SEEDS_OF_THE_REST]]
set -euo pipefail
cd "$(dirname "$0")/.."
seeds=${1:-50}
few=${2:-4}
scripts/build.sh --target planner_gap hbm_gap step_gap
bounds=$(mktemp)
page=$(mktemp)
trap 'rm -f "$bounds" "$page"' EXIT
gap() { build/planner_gap --bounds "$bounds" "$@"; }
{
  cat docs/planner_intro.txt
  printf '\n## Stall above the bound, %% of the ideal time (seeds 1 to %s)\n\n' "$seeds"
  gap --seeds "$seeds" --worst 10 --branches 30
  printf '\n## What each step is worth: the same without it (link load 2, HBM 50 %%, seeds 1 and 2)\n\n'
  printf '| without | number | median | 90th percentile | worst | mean | CPU s |\n|---|---|---|---|---|---|---|\n'
  gap --seeds 2 --load 2 --share 50 --summary nothing
  for step in replay fill stretch feedback smooth cancel latest-reload pieces lp transcribe hasten contention postpone spread; do
    gap --seeds 2 --load 2 --share 50 --skip "$step" --summary "$step"
  done
  printf '\n## The same on 300 small random graphs\n\n'
  build/step_gap 300
  printf '\n## Least HBM without stall, above the least proven (a stall of 0.01 %% counts as none; seeds 1 to %s)\n\n' "$seeds"
  build/hbm_gap --seeds "$seeds" --slowdown 0.0001 --worst 10
  printf '\n## Whole tensors: plans without pieces, against a limit that knows that (seeds 1 to %s)\n\n' "$few"
  gap --whole --seeds "$few"
  gap --whole --seeds "$few" --skip swap --summary 'all, without swap'
  printf '\n## Time and memory (HBM 60 %% of the peak)\n\n'
  build/planner_gap --times
} >"$page"
cp "$page" docs/planner.md
