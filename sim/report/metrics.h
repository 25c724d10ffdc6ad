// From a replay's record to the figures of the result format.
//
// "The iteration" is the last one, [its start, its last op's end). Bytes moved count each transfer
// by the share of its bandwidth part (flow_start to end) that lies in that window; the sum over the
// transfers is rounded to whole bytes once (docs/semantics.md, rule 17). stall = iteration - ideal,
// subtracted as they stand: times of iterations within 1e-12 of the ideal one's are that time, so that
// rounding of the clock is no stall, and limits that small are zero. With several NPUs the slowest is the one with the longest last
// iteration, the lowest index among equals.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/model/graph.h"
#include "sim/model/hardware.h"
#include "sim/report/result.h"
#include "sim/report/run_record.h"

namespace hyperoffload {

struct RunOutcome {
  const Graph& graph;
  const Hardware& hardware;  // with the HBM capacity of this run
  std::string policy{};      // as the user named it: "on_demand:evict=oldest"
  int iterations = 1;        // that were asked for; a record says how many it has

  bool fits = true;
  std::string reason{};  // when it doesn't fit, or could not run

  // Null: the run could not happen. With `fits` false: the figures of a device big enough.
  const RunRecord* record = nullptr;
  // The ideal run, and the ideal time where that run's is not it: a policy that changed the program is judged by the
  // trace as given, its ops by the changed one. Without either, ops' times alone count.
  const RunRecord* ideal = nullptr;
  std::optional<Seconds> ideal_time{};
  const Graph* changed = nullptr;  // the program that was replayed, where a policy changed it

  std::optional<Bound> bound{};

  // Where NPUs have traces of their own: one each; `graph` is the first.
  std::vector<const Graph*> ranks{};
  const Graph& graph_of(std::size_t npu) const { return ranks.empty() ? graph : *ranks[npu]; }
  const Graph& replayed(std::size_t npu) const { return changed ? *changed : graph_of(npu); }
};

Result summarize(const RunOutcome& outcome);

}  // namespace hyperoffload
