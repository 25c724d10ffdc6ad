#include "app/policy_table.h"

#include <algorithm>

#include "app/published_policies.h"
#include "sim/model/check.h"
#include "sim/policy/activation_offload.h"
#include "sim/policy/fixed_distance.h"
#include "sim/policy/greedy_gap.h"
#include "sim/policy/layer_ahead.h"
#include "sim/policy/on_demand.h"
#include "sim/policy/recompute.h"
#include "sim/policy/sliding_window.h"
#include "sim/policy/zero_offload.h"

namespace hyperoffload {
namespace {

using Kind = PolicyOption::Kind;

int whole(const PolicySpec& spec, const std::string& option) { return static_cast<int>(spec.integer(option)); }
int whole_or_auto(const PolicySpec& spec, const std::string& option) {
  return spec.is(option, "auto") ? 0 : whole(spec, option);
}

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
                      {spec.is("wrap", "yes"), whole(spec, "streams")});
  };
  return entry;
}

PolicyEntry layer_ahead_entry() {
  PolicyEntry entry;
  entry.info = {"layer_ahead",
                "static: weights of some layers stream from the pool, a few layers ahead (vLLM)",
                {{"group", Kind::kInteger, "4", "layers a group", {}, 1, 100'000},
                 {"offload", Kind::kInteger, "auto", "layers of each group in the pool; auto: the fewest that fit",
                  {"auto"}, 1, 100'000},
                 {"step", Kind::kInteger, "auto", "copied so many offloaded layers ahead; auto: as many as `offload`",
                  {"auto"}, 1, 100'000}}};
  entry.fixed = [](const Graph& graph, const Hardware& hardware, int iterations, const PolicySpec& spec) {
    return layer_ahead(graph, hardware, iterations,
                       {whole(spec, "group"), whole_or_auto(spec, "offload"), whole_or_auto(spec, "step")});
  };
  return entry;
}

PolicyEntry sliding_window_entry() {
  PolicyEntry entry;
  entry.info = {"sliding_window",
                "looks a few ops ahead while time runs, by next use (MindSpore's runtime variant)",
                {{"horizon", Kind::kInteger, "1", "ops behind the present one that are looked at", {}, 0, 1'000'000},
                 {"buffer", Kind::kNumber, "0.1", "share of HBM kept free ahead of need", {}, 0, 1}}};
  entry.runtime = [](const PolicySpec& spec) {
    return std::make_unique<SlidingWindowPolicy>(whole(spec, "horizon"), spec.number("buffer"));
  };
  return entry;
}

PolicyEntry fixed_distance_entry() {
  PolicyEntry entry;
  entry.info = {"fixed_distance",
                "static: idle tensors leave, each load starts a fixed number of ops before its use (MindSpore)",
                {{"distance", Kind::kInteger, "2", "ops beside which a load may hide", {}, 0, 1'000'000},
                 {"select", Kind::kInteger, "auto", "least ops a tensor is idle; auto: those that spare an op",
                  {"auto"}, 1, 1'000'000},
                 {"count", Kind::kInteger, "auto", "idle stretches used; auto: until everything fits", {"auto"}, 1,
                  1'000'000'000},
                 {"release", Kind::kInteger, "0", "ops after the last use that still find the bytes taken", {}, 0,
                  1'000'000}}};
  entry.fixed = [](const Graph& graph, const Hardware& hardware, int iterations, const PolicySpec& spec) {
    return fixed_distance(graph, hardware, iterations,
                          {whole(spec, "distance"), whole_or_auto(spec, "select"), whole_or_auto(spec, "count"),
                           whole(spec, "release")});
  };
  return entry;
}

PolicyEntry activation_offload_entry() {
  PolicyEntry entry;
  entry.info = {"activation_offload",
                "static: activations leave after forward, the previous layer's return as this one runs backward "
                "(Megatron, torchtune)",
                {{"layers", Kind::kInteger, "auto", "of so many layers; auto: the fewest that fit", {"auto"}, 1, 100'000},
                 {"smallest", Kind::kBytes, "1024B", "smaller ones stay", {}}}};
  entry.fixed = [](const Graph& graph, const Hardware& hardware, int iterations, const PolicySpec& spec) {
    return activation_offload(graph, hardware, iterations, {whole_or_auto(spec, "layers"), spec.bytes("smallest")});
  };
  return entry;
}

PolicyEntry zero_offload_entry() {
  PolicyEntry entry;
  entry.info = {"zero_offload", "rewrites: the optimizer and its states on the host (ZeRO-Offload)", {}};
  entry.fixed = [](const Graph& graph, const Hardware& hardware, int iterations, const PolicySpec&) {
    return zero_offload(graph, hardware, iterations);
  };
  return entry;
}

PolicyEntry recompute_entry() {
  PolicyEntry entry;
  entry.info = {"recompute",
                "rewrites: activations are dropped and computed again for the backward pass; nothing moves",
                {{"layers", Kind::kInteger, "auto", "of so many layers; auto: the fewest that fit", {"auto"}, 1, 100'000}}};
  entry.fixed = [](const Graph& graph, const Hardware& hardware, int iterations, const PolicySpec& spec) {
    return recompute(graph, hardware, iterations, {whole_or_auto(spec, "layers")});
  };
  return entry;
}

// A host that decides while time runs takes time for it.
std::vector<PolicyEntry> all_of(std::vector<PolicyEntry> table) {
  for (PolicyEntry& entry : published_policies()) table.push_back(std::move(entry));
  for (PolicyEntry& entry : table)
    if (entry.runtime)
      entry.info.options.push_back({"host_overhead", Kind::kSeconds, "0us", "what the host takes before each op"});
  return table;
}

}  // namespace

const std::vector<PolicyEntry>& policy_table() {
  static const std::vector<PolicyEntry> table = all_of({
      {{"resident", "everything in HBM", {}}},
      on_demand_entry(),
      {{"graph",
        "the graph-driven planner",
        {{"slack", Kind::kNumber, "auto", "transfers are placed as if they took (1 + slack) times as long; auto: none, or "
          "where NPUs share links what the replay shows to help", {"auto"}, 0, 100},
         {"recompute", Kind::kInteger, "none", "so many layers compute again what backward ops need, instead of keeping or moving "
          "it; auto: as many as pay", {"none", "auto"}, 1, 100'000}}}},
      greedy_gap_entry(),
      fixed_distance_entry(),
      layer_ahead_entry(),
      sliding_window_entry(),
      activation_offload_entry(),
      zero_offload_entry(),
      recompute_entry(),
  });
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
