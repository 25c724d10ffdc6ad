#include "planner/passes/check_capacity.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/model/error.h"

namespace hyperoffload {
namespace {

std::string step_name(const FlatGraph& graph, int position) {
  return position == 0
             ? "the iteration's start"
             : fmt::format("step {} (op \"{}\")", position - 1, graph.graph->ops()[position - 1].name);
}

// The largest of the tensors and the workspace, if there is one.
std::string largest(const FlatGraph& graph, const std::vector<std::int32_t>& tensors, std::int64_t workspace = 0) {
  constexpr std::size_t kNamed = 3;
  std::vector<std::pair<std::int64_t, std::string>> all;
  for (int t : tensors) all.emplace_back(-graph.bytes[t], "\"" + graph.graph->tensors()[t].name + "\"");
  if (workspace > 0) all.emplace_back(-workspace, "workspace");
  std::sort(all.begin(), all.end());
  if (all.size() > kNamed) all.resize(kNamed);
  std::string words;
  for (const auto& [bytes, name] : all) words += fmt::format("{}{} {} B", words.empty() ? "" : ", ", name, -bytes);
  return words.empty() ? "workspace only" : words;
}

// A pinned tensor that lives there.
bool held_by_pin(const FlatGraph& graph, int t, int position) {
  if (!graph.stays[t] || graph.persistent[t]) return graph.stays[t];
  const auto accesses = graph.graph->accesses(TensorId(t));
  return !accesses.empty() && accesses.front().op.value < position && accesses.back().op.value >= position - 1;
}

// What must be in HBM there.
std::vector<std::int32_t> needed_at(const FlatGraph& graph, int position) {
  std::vector<std::int32_t> tensors;
  if (position == 0) tensors = graph.inputs;
  if (position > 0 || !graph.in_pool[0])  // at the start what op 0 reads is there or on its way
    for (const FlatAccess& access : graph.accesses(std::max(position - 1, 0)))
      if (position > 0 || (graph.persistent[access.tensor] && access.reads)) tensors.push_back(access.tensor);
  for (int t = 0; t < graph.tensors; ++t)
    if (held_by_pin(graph, t, position) && std::count(tensors.begin(), tensors.end(), t) == 0)
      tensors.push_back(t);
  return tensors;
}

// What pins hold there beside what is needed; empty: nothing.
std::string pins_at(const FlatGraph& graph, int position) {
  std::vector<std::int32_t> held;
  std::int64_t sum = 0;
  for (int t = 0; t < graph.tensors; ++t) {
    if (!held_by_pin(graph, t, position)) continue;
    held.push_back(t);
    sum += graph.bytes[t];
  }
  if (position > 0)  // what the op uses anyway
    for (const FlatAccess& access : graph.accesses(position - 1))
      if (const auto found = std::find(held.begin(), held.end(), access.tensor); found != held.end()) {
        sum -= graph.bytes[access.tensor];
        held.erase(found);
      }
  if (held.empty()) return "";
  return fmt::format("; {} B of it only because {} pinned: {}", sum, held.size() == 1 ? "a tensor is" : "tensors are",
                     largest(graph, held));
}

}  // namespace

void check_capacity(const FlatGraph& graph, const Liveness& liveness) {
  const auto fullest = std::max_element(liveness.pool_resident.begin(), liveness.pool_resident.end());
  if (*fullest > graph.machine.pool) {
    const int position = static_cast<int>(fullest - liveness.pool_resident.begin());
    std::vector<std::int32_t> there;
    for (int t = 0; t < graph.tensors; ++t)
      if (liveness.pool_touched[t] || graph.bound_to_pool[t]) there.push_back(t);
    throw InfeasibleError(
        fmt::format("{} needs {} B of the pool, {} B more than the {} B this NPU has of it; largest: {}",
                    step_name(graph, position), *fullest, *fullest - graph.machine.pool, graph.machine.pool,
                    largest(graph, there)));
  }
  const auto& needs = liveness.working_set;
  auto worst = std::max_element(needs.begin() + 1, needs.end());  // rather an op than the start that waits for it
  if (needs[0] > *worst) worst = needs.begin();
  if (*worst <= graph.machine.hbm) return;
  const int position = static_cast<int>(worst - needs.begin());
  throw InfeasibleError(fmt::format("{} needs {} B of HBM at once, {} B more than its {} B{}; largest: {}",
                                    step_name(graph, position), *worst, *worst - graph.machine.hbm, graph.machine.hbm,
                                    pins_at(graph, position),
                                    largest(graph, needed_at(graph, position), position > 0 ? graph.workspace[position - 1] : 0)));
}

void throw_infeasible(const FlatGraph& graph, const Liveness& liveness, int position, bool pool) {
  const int p = position % liveness.positions;
  std::vector<std::int32_t> alive;
  for (int t = 0; t < graph.tensors; ++t) {
    const auto accesses = graph.graph->accesses(TensorId(t));
    if (graph.persistent[t] ||
        (!accesses.empty() && accesses.front().op.value < p && accesses.back().op.value + 1 >= p))
      alive.push_back(t);
  }
  const std::int64_t over = liveness.resident[p] - graph.machine.hbm;
  throw InfeasibleError(
      fmt::format("{}: HBM ({} B) would have to give up {} B more and {}; largest: {}", step_name(graph, p),
                  graph.machine.hbm, std::max<std::int64_t>(over, 0),
                  pool ? fmt::format("the pool ({} B for this NPU) has no room for them", graph.machine.pool)
                       : "nothing that may leave is left in every timing of the overlapping engines",
                  largest(graph, alive)));
}

}  // namespace hyperoffload
