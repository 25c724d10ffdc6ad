// Traces of plain copies, and the machines they run on, for tests with formulas.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/model/hardware.h"
#include "sim/policy/planned.h"
#include "sim/replay/replay.h"
#include "test/support/catch.h"
#include "test/support/paths.h"
#include "test/support/simulate.h"
#include "test/support/tiny.h"

namespace hyperoffload::copies {

using namespace hyperoffload::tiny;

inline Approx exactly(double value) { return Approx(value).epsilon(1e-9).margin(0); }

inline Hardware preset(const std::string& name) {
  return load_hardware(source_dir() + "/configs/hardware/" + name + ".yaml");
}

// Reads weights of these sizes from the pool, all wanted at once, in order; one op waits for the last.
struct Trace {
  Graph graph;
  Plan plan;
};
inline Trace reads(const std::vector<std::int64_t>& sizes, double op_seconds = 1e-6) {
  GraphMaker m;
  Names names;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    names.push_back("w" + std::to_string(i));
    m.weight(names.back(), sizes[i]);
  }
  m.op("use", Seconds(op_seconds), names, {});
  Trace trace{m.build(), {}};
  PlanMaker plan(trace.graph);
  plan.initial_pool(names);
  for (const auto& name : names) plan.prefetch(name, "");
  trace.plan = plan.build();
  return trace;
}

// Writes an activation of so many bytes to the pool during a second of compute.
inline Trace write_one(std::int64_t bytes) {
  GraphMaker m;
  m.activation("x", bytes).op("make", 0_us, {}, {"x"}).op("long", 1_s, {}, {}).op("use", 0_us, {"x"}, {});
  Trace trace{m.build(), {}};
  trace.plan = PlanMaker(trace.graph).store("x", "make").detach("x", "long").prefetch("x", "long").build();
  return trace;
}

// Loads a weight of so many bytes and at the same time stores an activation that has as many, while `seconds` of compute pass;
// the NPU's first transfer is the load, its second the store.
inline Trace both_ways(std::int64_t bytes, double seconds) {
  GraphMaker m;
  m.weight("w", bytes).activation("x", bytes);
  m.op("make", 0_us, {}, {"x"})
      .op("long", Seconds(seconds), {}, {})
      .op("use", 0_us, {"w"}, {})
      .op("again", 0_us, {"x"}, {});
  Trace trace{m.build(), {}};
  trace.plan = PlanMaker(trace.graph)
                   .initial_pool({"w"})
                   .prefetch("w", "")
                   .store("x", "make")
                   .detach("x", "long")
                   .prefetch("x", "use")
                   .build();
  return trace;
}

inline RunRecord run(const Trace& trace, const Hardware& hardware, bool shortcuts = true) {
  ReplayOptions options;
  options.full_record = true;
  options.shortcuts = shortcuts;
  return replay(
      trace.graph, hardware, [&] { return std::make_unique<PlannedPolicy>(trace.graph, trace.plan); },
      options);
}

// Each NPU its own trace.
inline RunRecord run_ranks(const std::vector<Trace>& traces, const Hardware& hardware,
                           bool shortcuts = true) {
  ReplayOptions options;
  options.full_record = true;
  options.shortcuts = shortcuts;
  std::vector<const Graph*> graphs;
  for (const Trace& trace : traces) graphs.push_back(&trace.graph);
  return replay_ranks(
      graphs, hardware,
      [&](int n) {
        const Trace& trace = traces[static_cast<std::size_t>(n)];
        return std::make_unique<PlannedPolicy>(trace.graph, trace.plan);
      },
      options);
}

inline double transfer_end(const RunRecord& record, std::size_t npu = 0, std::size_t transfer = 0) {
  return record.npus[npu].transfers.at(transfer).end.value;
}

}  // namespace hyperoffload::copies
