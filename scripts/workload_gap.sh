#!/usr/bin/env bash
# Measures plans of the shipped workloads, and of G10's where its files are, against their proven limits, and writes
# docs/planner_workloads.md. A few minutes of CPU. Usage: scripts/workload_gap.sh [PATH/TO/shared/data]
set -euo pipefail
cd "$(dirname "$0")/.."
data=${1:-}
scripts/build.sh --target hyperoffload workload_gap
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
die=configs/hardware/cloudmatrix384-die.yaml
add() { printf '%s %s %s %s\n' "$1" "$2" "$work/$1.json" "$3" >>"$work/list"; }
for name in llama-3.1-8b-decode llama-3.1-8b-prefill llama-3.1-8b-train deepseek-v3-train deepseek-v3.2-sparse-decode; do
  build/hyperoffload trace generate "configs/workloads/$name.yaml" -o "$work/$name.json"
  # Eight decode steps are one pass; the others go on for ever.
  if [ "$name" = deepseek-v3.2-sparse-decode ]; then add "$name" "$die" 1; else add "$name" "$die" 40; fi
done
if [ -n "$data" ]; then
  # G10's machine with more of the same host memory, which its largest nets need.
  sed 's/128GB/2TB/; s/name: g10/name: g10-large/' configs/hardware/g10.yaml >"$work/g10.yaml"
  for net in BERT_Base:128 BERT_Base:512 BERT_Base:768 BERT_Base:1024 VIT:256 VIT:512 VIT:768 VIT:1024 VIT:1280 \
    Inceptionv3:512 Inceptionv3:1024 Inceptionv3:1536 ResNet152:256 ResNet152:1280 SENet154:1024; do
    files="$data/g10/results/${net%:*}/cudnn${net#*:}"
    build/hyperoffload trace import --format g10 "$data/g10/Nets/${net%:*}.txt" "$files.txt" "${files}Workspace.txt" \
      -o "$work/${net/:/-}.json" 2>/dev/null
    add "${net/:/-}" "$work/g10.yaml" 40
  done
fi
{
  cat docs/planner_workloads_intro.txt
  build/workload_gap "$work/list"
} >"$work/page"
cp "$work/page" docs/planner_workloads.md
