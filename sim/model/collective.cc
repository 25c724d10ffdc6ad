#include "sim/model/collective.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "sim/model/error.h"
#include "sim/model/nearest_name.h"

namespace hyperoffload {
namespace {

constexpr std::array<const char*, 7> kKinds = {
    "all-reduce", "all-gather", "reduce-scatter", "all-to-all", "broadcast", "send", "recv"};
constexpr int kMostRanks = 1'000'000;

int positive(const nlohmann::json& value, int otherwise) {
  return value.is_number_integer() && value.get<std::int64_t>() > 0 && value.get<std::int64_t>() <= kMostRanks
             ? value.get<int>()
             : otherwise;
}

std::optional<Group> group_in_meta(const std::string& name, const nlohmann::json& meta) {
  const auto parallel = meta.find("parallel");
  if (parallel == meta.end() || !parallel->is_object()) return std::nullopt;
  const auto size = [&](const char* key, int otherwise = 1) {
    return parallel->contains(key) ? positive((*parallel)[key], otherwise) : otherwise;
  };
  const int tp = size("tp"), cp = size("cp"), dp = size("dp"), pp = size("pp"), ep = size("ep");
  const int etp = size("etp", ep == 1 ? tp : 1);
  const int stage = tp * cp * dp;
  if (name == "tp") return Group{tp, 1, {}};
  if (name == "cp") return Group{cp, tp, {}};
  if (name == "dp") return Group{dp, tp * cp, {}};
  if (name == "pp") return Group{pp, stage, {}};
  if (name == "etp") return Group{etp, 1, {}};
  if (name == "ep") return Group{ep, etp, {}};
  if (name == "edp") return Group{std::max(1, stage / (etp * ep)), etp * ep, {}};
  if (name == "embedding") return Group{pp > 1 ? 2 : 1, stage * std::max(1, pp - 1), {}};
  return std::nullopt;
}

Group listed(const nlohmann::json& list, const std::string& where) {
  Group group;
  for (const auto& rank : list) {
    if (!rank.is_number_integer() || rank.get<std::int64_t>() < 0 || rank.get<std::int64_t>() >= kMostRanks)
      throw InputError(where, list.dump(), "a list of ranks, whole numbers from 0");
    group.ranks.push_back(rank.get<int>());
  }
  std::vector<int> sorted = group.ranks;
  std::sort(sorted.begin(), sorted.end());
  if (sorted.empty() || std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end())
    throw InputError(where, list.dump(), "at least one rank, each once");
  return group;
}

// Bytes that each link of an idle machine would carry, and the time the slowest takes.
class PortLoads {
 public:
  explicit PortLoads(const Hardware& hardware) : hardware_(hardware) {}

  void add(int from, int to, double bytes, bool loads_hbm) {
    const Reach reach = reach_between(hardware_, from, to);
    longest_ = std::max(longest_, bytes / peer_path(hardware_, reach).bandwidth.value);
    if (loads_hbm)
      for (int npu : {from, to}) load(0, npu, bytes, hardware_.hbm_bandwidth);
    if (reach == Reach::kPackage) {
      load(1, from, bytes, hardware_.nodes->package_link->bandwidth);
      load(2, to, bytes, hardware_.nodes->package_link->bandwidth);
      return;
    }
    load(3, from, bytes, hardware_.npu_port);
    load(4, to, bytes, hardware_.npu_port);
    if (!hardware_.nodes) return;
    const int a = node_of(hardware_, from), b = node_of(hardware_, to);
    load(5, a, bytes, hardware_.nodes->first_level);
    if (a == b) return;
    load(5, b, bytes, hardware_.nodes->first_level);
    load(6, a, bytes, hardware_.nodes->second_level);
    load(7, b, bytes, hardware_.nodes->second_level);
  }
  Seconds time() const { return Seconds(longest_); }

 private:
  void load(int kind, int index, double bytes, const std::optional<BytesPerSecond>& bandwidth) {
    if (!bandwidth) return;
    double& sum = loads_[{kind, index}];
    sum += bytes;
    longest_ = std::max(longest_, sum / bandwidth->value);
  }

  const Hardware& hardware_;
  std::map<std::pair<int, int>, double> loads_;
  double longest_ = 0;
};

}  // namespace

std::optional<CollectiveKind> collective_kind(const std::string& name) {
  std::string wanted = name;
  std::replace(wanted.begin(), wanted.end(), '_', '-');
  for (std::size_t i = 0; i < kKinds.size(); ++i)
    if (wanted == kKinds[i]) return static_cast<CollectiveKind>(i);
  return std::nullopt;
}

std::vector<std::string> collective_kinds() { return {kKinds.begin(), kKinds.end()}; }

Group group_named(const std::string& group, const std::string& meta_json, const std::string& where) {
  if (group.empty()) return {};
  const auto value = nlohmann::json::parse(group, nullptr, false);
  if (value.is_array()) return listed(value, where);
  if (value.is_number()) {
    if (positive(value, 0) == 0) throw InputError(where, group, "a number of ranks, 1 or more");
    return {positive(value, 0), 1, {}};
  }
  const auto meta = nlohmann::json::parse(meta_json.empty() ? "{}" : meta_json, nullptr, false);
  if (meta.is_object())
    if (const auto found = group_in_meta(group, meta)) return *found;
  return {};
}

std::vector<int> members_of(const Group& group, int rank, int world) {
  if (!group.ranks.empty()) {
    const bool in = std::find(group.ranks.begin(), group.ranks.end(), rank) != group.ranks.end();
    return in ? group.ranks : std::vector<int>{};
  }
  const std::int64_t size = group.size > 0 ? group.size : world;
  const std::int64_t stride = group.size > 0 ? group.stride : 1;
  const std::int64_t base = rank / (size * stride) * (size * stride) + rank % stride;
  std::vector<int> members;
  members.reserve(static_cast<std::size_t>(size));
  for (std::int64_t i = 0; i < size; ++i) members.push_back(static_cast<int>(base + i * stride));
  return members;
}

CollectiveFlows collective_flows(CollectiveKind kind, CollectiveAlgorithm algorithm, Bytes bytes, int ranks) {
  CollectiveFlows flows;
  if (ranks < 2) return flows;
  const double n = static_cast<double>(bytes.value), p = ranks;
  if (kind == CollectiveKind::kSend || kind == CollectiveKind::kRecv) {
    flows = {{{0, 1, n}}, 1};
    return flows;
  }
  const bool reduce = kind == CollectiveKind::kAllReduce, broadcast = kind == CollectiveKind::kBroadcast;
  if (algorithm == CollectiveAlgorithm::kRing) {
    const bool all_to_all = kind == CollectiveKind::kAllToAll;
    const double stream = broadcast ? n : all_to_all ? n * (p - 1) / 2 : (reduce ? 2 : 1) * (p - 1) / p * n;
    for (int i = 0; i < (broadcast ? ranks - 1 : ranks); ++i)
      flows.hops.push_back({i, (i + 1) % ranks, stream});
    flows.steps = (reduce ? 2 : 1) * (ranks - 1);
    return flows;
  }
  flows.steps = reduce ? 2 : 1;
  for (int i = 0; i < (broadcast ? 1 : ranks); ++i)
    for (int j = 0; j < ranks; ++j)
      if (i != j) flows.hops.push_back({i, j, broadcast ? n : (reduce ? 2 : 1) * n / p});
  return flows;
}

CollectiveAlgorithm algorithm_of(const Hardware& hardware, const std::string& kind) {
  const auto wanted = collective_kind(kind);
  for (const auto& [name, algorithm] : hardware.algorithms)
    if (collective_kind(name) == wanted) return algorithm;
  return wanted == CollectiveKind::kAllToAll ? CollectiveAlgorithm::kDirect : CollectiveAlgorithm::kRing;
}

Reach reach_between(const Hardware& hardware, int from, int to) {
  if (!hardware.nodes) return Reach::kNear;
  const Nodes& nodes = *hardware.nodes;
  if (nodes.package_link && from / nodes.package_npus == to / nodes.package_npus) return Reach::kPackage;
  return from / nodes.npus == to / nodes.npus ? Reach::kNear : Reach::kFar;
}

LinkDirection peer_path(const Hardware& hardware, Reach reach) {
  if (reach == Reach::kPackage) return *hardware.nodes->package_link;
  return reach == Reach::kNear ? hardware.peer->near.write : hardware.peer->far.write;
}

Seconds collective_alone(const Collective& collective, const Hardware& hardware, int rank, bool loads_hbm) {
  const auto kind = collective_kind(collective.kind);
  if (!kind)
    throw InputError("collective", in_quotes(collective.kind), one_of(collective.kind, collective_kinds()));
  const std::vector<int> members = members_of(collective.members, rank, ranks_of(hardware));
  const CollectiveFlows flows = collective_flows(*kind, algorithm_of(hardware, collective.kind),
                                                 collective.bytes, static_cast<int>(members.size()));
  PortLoads loads(hardware);
  Seconds latency;
  for (const Hop& hop : flows.hops) {
    const int from = members[static_cast<std::size_t>(hop.from)],
              to = members[static_cast<std::size_t>(hop.to)];
    loads.add(from, to, hop.bytes, loads_hbm);
    latency = std::max(latency, peer_path(hardware, reach_between(hardware, from, to)).latency);
  }
  return latency * flows.steps + loads.time();
}

}  // namespace hyperoffload
