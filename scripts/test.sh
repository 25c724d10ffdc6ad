#!/usr/bin/env bash
# Sets up, builds and runs all tests. Options go to ctest, e.g. scripts/test.sh -R replay
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/setup.sh --tests
scripts/build.sh
exec ctest --preset release -j "$(nproc)" "$@"
