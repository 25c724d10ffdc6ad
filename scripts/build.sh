#!/usr/bin/env bash
# Sets up, then builds the release preset into build/ (what is up to date is not built again).
# Usage: scripts/build.sh [cmake --build options, e.g. --target hyperoffload]
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/setup.sh
cmake --preset release >/dev/null
cmake --build --preset release "$@" >&2
