// What a layer trace contains: the figures of `trace info`.
//
// Live bytes at a step: every persistent tensor, every other tensor whose lifetime covers the step (from
// its birth, for an input from step 0, to its last access, both inclusive), and the op's workspace. Steps
// are taken in program order, one op at a time: ops of several engines that overlap in a replay can need
// more. Both tiers count together: tensors that start in the pool and what `memory: pool` ops touch are in
// it, so for a trace without those it is the HBM that `resident` needs on one engine.
// Bytes saturate at 2^63-1. O(ops + tensors).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "sim/model/graph.h"

namespace hyperoffload {

struct TraceInfo {
  std::string name;
  std::size_t ops = 0;
  std::size_t tensors = 0;
  std::size_t accesses = 0;  // pairs of an op and a tensor it reads and/or writes
  Flops flops;               // sum over the ops that have them
  Bytes hbm_bytes;
  double duration_us = 0;                                         // sum over the ops that have one
  std::size_t timed_ops = 0;                                      // how many those are
  std::array<Bytes, std::size(kAllTensorKinds)> bytes_by_kind{};  // in the order of kAllTensorKinds
  std::vector<std::pair<std::string, std::size_t>> engines;       // with their ops, by first appearance
  Bytes peak_live;
  OpId peak_step;  // the first step that has it
  std::string peak_op;
  // The number of each from `meta.model` of a generated trace, as JSON text; empty: not there.
  std::string model_parameters, model_kv_bytes_per_token;
};

TraceInfo trace_info(const Graph& graph);
std::string trace_info_json(const TraceInfo& info);   // ends with a newline
std::string trace_info_table(const TraceInfo& info);  // for a person

}  // namespace hyperoffload
