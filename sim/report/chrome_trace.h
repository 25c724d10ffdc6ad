// A run's timeline as Chrome trace event JSON, for Perfetto and chrome://tracing.
//
// Time in us from 0 with fractions down to the picosecond. One process per NPU, in order; in it one
// track for the iterations, one per engine, one per transfer direction (more where slices really
// overlap: track_slices.h). Waits stand on the engine's track, before the op. Counters: HBM and pool
// in use and their capacity (GiB), link use (GB/s, a transfer's bytes over its bandwidth part). A
// flow leads from a transfer to each op that waited for it; ids count from 1. Colours go by tensor
// kind and by kind of slice, for viewers that know `cname`.
//
// Written as it goes, track by track: memory O(slices of the longest track) beside the record
// itself. Needs a record with `full` set: with the last iteration only, only that is shown.
// Source of the format: "Trace Event Format" (Chromium project, docs.google.com document
// 1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU); of the colour names: catapult's color_scheme.html.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "sim/model/graph.h"
#include "sim/model/hardware.h"
#include "sim/model/plan.h"
#include "sim/report/run_record.h"

namespace hyperoffload {

// What is left out of a timeline, for runs too long to be looked at whole. A slice that reaches into the
// window is shown whole; levels start with what holds at `from`. Iterations count as long enough.
struct TimelineFilter {
  Seconds from{0}, to = Seconds::max();
  int npu = -1;             // only this one; -1: all
  Seconds min_duration{0};  // of ops, waits and transfers
};

struct Timeline {
  const Graph& graph;
  const Hardware& hardware;
  const RunRecord& record;
  std::string policy;
  const Plan* plan = nullptr;  // for the anchors of transfers that a plan's action asked for
  TimelineFilter filter{};
  // Where NPUs have traces of their own: one each, `graph` is the first; and their plans, if planned.
  std::vector<const Graph*> ranks{};
  std::vector<const Plan*> rank_plans{};
};

struct TimelineSummary {
  std::int64_t events = 0;
  std::int64_t zero_length = 0;  // slices that take no time: hardly visible in a viewer
  std::int64_t left_out = 0;     // slices, by the filter
  std::string warning;           // one sentence when the filter leaves nothing, or more than viewers take well
};

TimelineSummary write_chrome_trace(std::ostream& out, const Timeline& timeline);

}  // namespace hyperoffload
