// Short forms of the SimGrid replay for tests.
#pragma once

#include "sim/model/graph.h"
#include "sim/model/hardware.h"
#include "sim/model/plan.h"
#include "sim/policy/on_demand.h"
#include "sim/report/run_record.h"

namespace hyperoffload {

RunRecord simulate_plan(const Graph& graph, const Plan& plan, const Hardware& hardware, int iterations = 1);
RunRecord simulate_on_demand(const Graph& graph, const Hardware& hardware, int iterations = 1,
                             OnDemandPolicy::Evict evict = OnDemandPolicy::Evict::kLru);
RunRecord simulate_ideal(const Graph& graph, const Hardware& hardware, int iterations = 1);

inline double total_seconds(const RunRecord& record, std::size_t npu = 0) {
  return record.npus[npu].iteration_end.back().value;
}

}  // namespace hyperoffload
