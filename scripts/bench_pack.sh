#!/usr/bin/env bash
# What packing hard instances of static allocation takes (MiniMalloc's published ones: github.com/google/minimalloc,
# benchmarks). Columns: items, most bytes alive at once, height reached, that of first fit by size, nodes of the
# search, seconds. Usage: scripts/bench_pack.sh FILE.csv...
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/build.sh --target bench_pack
exec build/bench_pack "$@"
