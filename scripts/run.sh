#!/usr/bin/env bash
# The main job: sets up, builds and runs the default experiment (or the one given) into out/.
# Usage: scripts/run.sh [EXPERIMENT.yaml [options of `hyperoffload run`]]
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/build.sh --target hyperoffload
if [ $# -eq 0 ]; then
  set -- configs/experiments/quickstart.yaml -o out/quickstart
fi
exec build/hyperoffload run "$@"
