#include "sim/report/metrics.h"

#include <algorithm>
#include <cmath>

#include "sim/model/check.h"
#include "sim/model/clock_noise.h"
#include "sim/report/binding.h"
#include "sim/report/intervals.h"
#include "sim/report/stall.h"
#include "sim/report/throughput.h"

namespace hyperoffload {
namespace {

Interval last_iteration(const NpuRecord& npu) {
  HYPER_CHECK(!npu.iteration_start.empty() && npu.iteration_start.size() == npu.iteration_end.size(),
              "a run record without iterations");
  return {npu.iteration_start.back(), npu.iteration_end.back()};
}

// The share of a transfer's bytes carried inside the window. One whose bandwidth part takes no time
// belongs to the window that contains, or starts at, its instant.
long double bytes_inside(const TransferRecord& t, Interval window) {
  const auto bytes = static_cast<long double>(t.bytes().value);
  const Seconds length = t.end - t.flow_start;
  if (length <= Seconds(0)) return t.flow_start >= window.from && t.flow_start < window.to ? bytes : 0;
  const Seconds inside = overlap({t.flow_start, t.end}, window);
  return inside == length ? bytes : bytes * inside.value / length.value;
}

LinkUse link_use(const NpuRecord& npu, Direction direction, Interval window, const IntervalSet& ops_running) {
  LinkUse use;
  long double bytes = 0;
  std::vector<Interval> under_way, carrying;
  for (const TransferRecord& t : npu.transfers) {
    if (t.direction != direction) continue;
    bytes += bytes_inside(t, window);
    const Interval part{std::max(t.start, window.from), std::min(t.end, window.to)};
    if (part.from > part.to || (part.from == part.to && t.start != t.end)) continue;
    ++use.transfers;
    under_way.push_back(part);
    carrying.push_back({std::max(t.flow_start, window.from), part.to});
  }
  const IntervalSet busy(std::move(under_way));
  for (const Interval& part : busy.parts()) use.hidden += ops_running.covered(part);
  use.bytes = Bytes(std::llround(bytes));
  use.busy = busy.covered(window);
  use.carrying = IntervalSet(std::move(carrying)).covered(window);
  use.hidden = std::min(use.hidden, use.busy);
  use.exposed = use.busy - use.hidden;
  if (window.to > window.from)
    use.utilisation = std::min(1.0, use.busy.value / (window.to - window.from).value);
  return use;
}

// The run without any delay, where nobody measured it: what the ops' own times add up to.
Seconds longest_path_alone(const Graph& graph, const NpuRecord& npu, int iteration) {
  std::vector<Seconds> end(graph.ops().size());
  Seconds latest;
  for (const OpRecord& op : npu.ops) {
    if (op.iteration != iteration) continue;
    Seconds start;
    graph.for_each_before(op.op, [&](OpId before) { start = std::max(start, end[before.index()]); });
    end[op.op.index()] = start + op.alone;
    latest = std::max(latest, end[op.op.index()]);
  }
  return latest;
}

NpuFigures figures_of(const RunOutcome& run, std::size_t index) {
  const NpuRecord& npu = run.record->npus[index];
  const NpuRecord* ideal = nullptr;
  if (run.ideal) ideal = &run.ideal->npus.at(run.ideal->npus.size() == 1 ? 0 : index);
  const Interval window = last_iteration(npu);
  const int last = run.record->iterations - 1;

  NpuFigures f;
  f.npu = static_cast<int>(index);
  if (run.ideal_time)
    f.ideal = *run.ideal_time;
  else
    f.ideal = ideal ? last_iteration(*ideal).to - last_iteration(*ideal).from
                    : longest_path_alone(run.graph_of(index), npu, last);
  f.iteration = without_noise(window.to - window.from, f.ideal);
  f.first_iteration = without_noise(npu.iteration_end.front() - npu.iteration_start.front(), f.ideal);
  f.total = last == 0 ? f.iteration : window.to - npu.iteration_start.front();
  f.stall = f.iteration - f.ideal;
  f.slowdown = f.iteration == f.ideal ? 1 : f.iteration.value / f.ideal.value;
  f.hbm_peak = npu.hbm_peak;

  StallReport stall =
      attribute_stall({run.replayed(index), npu, last, ideal, ideal ? run.ideal->iterations - 1 : 0, f.stall,
                       &run.hardware});
  f.stalls = stall.causes;
  f.late_transfer = stall.late_transfer;
  f.per_op = stall.per_op;
  f.worst = std::move(stall.worst);

  std::vector<Interval> running;
  for (const OpRecord& op : npu.ops)
    if (op.iteration == last) running.push_back({op.start, op.end});
  const IntervalSet ops_running(std::move(running));
  f.pool_to_hbm = link_use(npu, Direction::kPoolToHbm, window, ops_running);
  f.hbm_to_pool = link_use(npu, Direction::kHbmToPool, window, ops_running);
  return f;
}

}  // namespace

Result summarize(const RunOutcome& run) {
  Result result;
  result.trace = run.graph.name();
  result.hardware = run.hardware.name;
  result.policy = run.policy;
  result.iterations = run.record ? run.record->iterations : run.iterations;
  result.fits = run.fits;
  result.reason = run.reason;
  result.hbm_capacity = run.hardware.hbm_capacity;
  result.hbm_reserved = run.hardware.hbm_reserved;
  result.pool_capacity = run.hardware.pool_capacity;
  result.bound = run.bound;
  if (!run.record) return result;

  HYPER_CHECK(!run.record->npus.empty(), "a run record without NPUs");
  for (std::size_t i = 0; i < run.record->npus.size(); ++i) {
    result.npus.push_back(figures_of(run, i));
    if (result.npus[i].iteration > result.figures().iteration) result.slowest = static_cast<int>(i);
    result.hbm_peak = std::max(result.hbm_peak, result.npus[i].hbm_peak);
  }
  const double noise = kClockNoise * result.figures().ideal.value;
  if (result.bound && std::abs(result.bound->stall.value) <= noise) result.bound->stall = Seconds(0);
  if (result.bound && result.bound->steady_stall && result.bound->steady_stall->value <= noise)
    result.bound->steady_stall = Seconds(0);
  result.pool_peak = run.record->pool_peak;
  result.stands_for = run.record->stands_for;
  result.pool_requested_peak = run.record->pool_requested_peak;
  result.throughput = throughput_of(run.graph_of(static_cast<std::size_t>(result.slowest)), run.hardware, result.figures().iteration);
  result.binding = binding_of(result.figures(), run.hardware, run.changed != nullptr);
  return result;
}

}  // namespace hyperoffload
