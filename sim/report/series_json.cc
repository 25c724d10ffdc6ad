#include "sim/report/series_json.h"

#include <algorithm>
#include <cmath>

#include "sim/report/result_fields.h"

namespace hyperoffload {
namespace {

using Json = nlohmann::ordered_json;

// Points as they are drawn: a point that took in several changes is the highest of them, and what holds
// after them is a point of its own.
std::vector<FillPoint> drawn_points(const IterationSeries& series) {
  std::vector<FillPoint> points;
  for (std::size_t i = 0; i < series.fill.size(); ++i) {
    const FillPoint& p = series.fill[i];
    points.push_back(p);
    if (p.last == p.peak && p.pool_last == p.pool) continue;
    const Seconds next = i + 1 < series.fill.size() ? series.fill[i + 1].time : series.end;
    const Seconds from = std::max(p.last_time, p.time);
    if (from >= next && i + 1 < series.fill.size()) continue;
    points.push_back({from, from, p.last, p.last, total(p.last), p.pool_last, p.pool_last});
  }
  return points;
}

template <class Value>
Json column(const std::vector<FillPoint>& points, Value value) {
  Json out = Json::array();
  for (const FillPoint& p : points) out.push_back(value(p));
  return out;
}

Json memory_fields(const IterationSeries& series) {
  const std::vector<FillPoint> points = drawn_points(series);
  Json kinds = Json::object();
  for (std::size_t k = 0; k < kFillKinds; ++k) {
    if (std::all_of(points.begin(), points.end(), [&](const FillPoint& p) { return p.peak[k] == Bytes(0); }))
      continue;
    const char* name = k == kTensorKinds ? "workspace" : to_string(static_cast<TensorKind>(k));
    kinds[name] = column(points, [&](const FillPoint& p) { return p.peak[k].value; });
  }
  return {{"changes", series.changes},
          {"step_s", series.fill_step.value},
          {"time_s", column(points, [&](const FillPoint& p) { return (p.time - series.start).value; })},
          {"hbm_bytes", column(points, [](const FillPoint& p) { return total(p.peak).value; })},
          {"hbm_low_bytes", column(points, [](const FillPoint& p) { return p.low.value; })},
          {"hbm_bytes_by_kind", kinds},
          {"pool_bytes", column(points, [](const FillPoint& p) { return p.pool.value; })}};
}

Json use_fields(const Graph& graph, const IterationSeries& series) {
  const std::size_t columns = series.engines + 2;
  const auto steps = static_cast<std::size_t>(
      std::ceil((series.end - series.start).value / series.use_step.value - 1e-9));
  const auto amounts = [&](std::size_t c) {
    Json out = Json::array();
    for (std::size_t step = 0; step < steps; ++step) {
      const std::size_t at = step * columns + c;
      out.push_back(at < series.use.size() ? series.use[at] : 0.0);
    }
    return out;
  };
  Json engines = Json::object();
  for (std::size_t e = 0; e < series.engines; ++e) engines[graph.engines()[e]] = amounts(2 + e);
  return {{"step_s", series.use_step.value},
          {"pool_to_hbm_bytes", amounts(0)},
          {"hbm_to_pool_bytes", amounts(1)},
          {"engine_busy_s", engines}};
}

Json link_fields(const LinkDirection& link) {
  return {{"bandwidth_bytes_per_s", link.bandwidth.value}, {"latency_s", link.latency.value}};
}

}  // namespace

std::string series_to_json(const Graph& graph, const Hardware& hardware, const Result& result,
                           const std::vector<IterationSeries>& iterations) {
  Json out = {{"format", "hyperoffload-series"},
              {"version", 1},
              {"trace", result.trace},
              {"hardware", result.hardware},
              {"policy", result.policy},
              {"npu", result.figures().npu},
              {"ops", graph.ops().size()},
              {"tensors", graph.tensors().size()},
              {"hbm_usable_bytes", hardware.hbm_usable().value},
              {"pool_capacity_bytes", hardware.pool_capacity.value},
              {"links",
               {{"pool_to_hbm", link_fields(fair_link(hardware, true))},
                {"hbm_to_pool", link_fields(fair_link(hardware, false))}}}};
  Json& list = out["iterations"] = Json::array();
  for (const IterationSeries& series : iterations)
    list.push_back({{"iteration", series.iteration},
                    {"start_s", series.start.value},
                    {"end_s", series.end.value},
                    {"memory", memory_fields(series)},
                    {"use", use_fields(graph, series)}});
  return json_text(out) + "\n";
}

}  // namespace hyperoffload
