#include "app/policy_table.h"

#include <algorithm>

#include "sim/model/check.h"
#include "sim/policy/greedy_gap.h"
#include "sim/policy/on_demand.h"

namespace hyperoffload {
namespace {

using Kind = PolicyOption::Kind;

PolicyEntry on_demand_entry() {
  PolicyEntry entry;
  entry.info = {"on_demand",
                "reactive swapping",
                {{"evict", Kind::kWord, "lru", "victim: least recently used, or longest in HBM", {"lru", "oldest"}}}};
  entry.runtime = [](const PolicySpec& spec) {
    return std::make_unique<OnDemandPolicy>(spec.is("evict", "oldest") ? OnDemandPolicy::Evict::kOldest
                                                                       : OnDemandPolicy::Evict::kLru);
  };
  return entry;
}

PolicyEntry greedy_gap_entry() {
  PolicyEntry entry;
  entry.info = {"greedy_gap",
                "static: longest gap first, no transfer times, each load right before its use (hyper-parallel)",
                {{"wrap", Kind::kWord, "yes", "weights and states may be away from one iteration to the next",
                  {"yes", "no"}},
                 {"streams", Kind::kInteger, "1", "copy streams: 1 for both directions, or one each", {}, 1, 2}}};
  entry.fixed = [](const Graph& graph, const Hardware& hardware, int iterations, const PolicySpec& spec) {
    return greedy_gap(graph, hardware, iterations,
                      {spec.is("wrap", "yes"), static_cast<int>(spec.integer("streams"))});
  };
  return entry;
}

}  // namespace

const std::vector<PolicyEntry>& policy_table() {
  static const std::vector<PolicyEntry> table = {
      {{"resident", "everything in HBM", {}}},
      on_demand_entry(),
      {{"graph", "the graph-driven planner", {}}},
      greedy_gap_entry(),
  };
  return table;
}

const PolicyEntry& policy_entry(const std::string& name) {
  const auto& table = policy_table();
  const auto found =
      std::find_if(table.begin(), table.end(), [&](const PolicyEntry& e) { return e.info.name == name; });
  HYPER_CHECK(found != table.end(), "a policy that is in the table");
  return *found;
}

const std::vector<PolicyInfo>& known_policies() {
  static const std::vector<PolicyInfo> all = [] {
    std::vector<PolicyInfo> infos;
    for (const PolicyEntry& entry : policy_table()) infos.push_back(entry.info);
    return infos;
  }();
  return all;
}

}  // namespace hyperoffload
