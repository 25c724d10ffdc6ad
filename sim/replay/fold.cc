#include "sim/replay/fold.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "sim/model/check.h"
#include "sim/model/collective.h"
#include "sim/model/error.h"
#include "sim/model/op_cost.h"

namespace hyperoffload {
namespace {

bool over_all_nodes(const Hardware& h) {
  return h.nodes && h.nodes->count > 1 && h.placement.supernode && h.placement.spread != Spread::kLocal;
}

// That share a socket's links.
int sharers_of_sockets(const Hardware& h) {
  if (h.placement.spread == Spread::kLocal)
    return std::min(npus_in_node(h, 0), h.nodes->npus / h.nodes->sockets);
  return over_all_nodes(h) ? h.npu_count : npus_in_node(h, 0);
}

std::string uneven_nodes(const Hardware& h) {
  if (!h.nodes) return "";
  const Nodes& nodes = *h.nodes;
  if (h.npu_count > nodes.npus && h.npu_count % nodes.npus != 0)
    return fmt::format("{} NPUs fill nodes of {} unevenly", h.npu_count, nodes.npus);
  if (h.placement.spread == Spread::kHash || h.placement.spread == Spread::kLoad)
    return fmt::format("placement by {} treats NPUs differently", to_string(h.placement.spread));
  if (over_all_nodes(h) && (nodes.first_level || nodes.second_level))
    return "copies from other nodes meet on declared switches";
  if (h.placement.spread == Spread::kLocal &&
      (nodes.npus % nodes.sockets != 0 || (npus_in_node(h, 0) > nodes.npus / nodes.sockets &&
                                           npus_in_node(h, 0) % (nodes.npus / nodes.sockets) != 0)))
    return "NPUs fill sockets unevenly";
  return "";
}

// The hops of one collective, of all ranks, are of one kind.
std::string mixed_hops(const Op& op, const Hardware& h) {
  const auto kind = collective_kind(op.collective->kind);
  if (!kind) return "";
  if (kind == CollectiveKind::kSend || kind == CollectiveKind::kRecv || kind == CollectiveKind::kBroadcast)
    return fmt::format("op \"{}\": ranks of a {} do different things", op.name, op.collective->kind);
  if (!op.collective->members.ranks.empty())
    return fmt::format("op \"{}\": a list of ranks leaves others out", op.name);
  const CollectiveAlgorithm algorithm = algorithm_of(h, op.collective->kind);
  std::set<Reach> kinds;
  std::size_t size = 0;
  std::vector<char> seen(static_cast<std::size_t>(h.npu_count));
  for (int rank = 0; rank < h.npu_count; ++rank) {
    if (seen[static_cast<std::size_t>(rank)]) continue;
    const std::vector<int> members = members_of(op.collective->members, rank, h.npu_count);
    size = members.size();
    for (int m : members)
      if (m < h.npu_count) seen[static_cast<std::size_t>(m)] = 1;
    if (size > 1 && members.back() >= h.npu_count)
      return fmt::format("op \"{}\": its group reaches beyond the {} NPUs", op.name, h.npu_count);
    for (const Hop& hop : collective_flows(*kind, algorithm, Bytes(1), static_cast<int>(size)).hops)
      kinds.insert(reach_between(h, members[static_cast<std::size_t>(hop.from)],
                                 members[static_cast<std::size_t>(hop.to)]));
    if (kinds.size() > 1)
      return fmt::format("op \"{}\": its ranks reach each other over different kinds of links", op.name);
  }
  if (kinds.count(Reach::kFar) && (h.nodes->second_level || h.nodes->first_level))
    return fmt::format("op \"{}\": its streams meet others on declared switches", op.name);
  return "";
}

std::optional<BytesPerSecond> shared(const std::optional<BytesPerSecond>& link, int sharers) {
  if (!link) return std::nullopt;
  return BytesPerSecond(link->value / sharers);
}

}  // namespace

std::string why_not_fold(const Graph& graph, const Hardware& hardware) {
  if (hardware.npu_count == 1) return "";
  if (const std::string uneven = uneven_nodes(hardware); !uneven.empty()) return uneven;
  for (const Op& op : graph.ops())
    if (over_fabric(op, hardware))
      if (const std::string mixed = mixed_hops(op, hardware); !mixed.empty()) return mixed;
  return "";
}

Hardware folded_hardware(const Hardware& hardware) {
  Hardware one = hardware;
  if (hardware.npu_count == 1) return one;  // stands for itself, whatever the placement
  one.npu_count = 1;
  one.stands_for = ranks_of(hardware);
  one.pool_read_port = shared(hardware.pool_read_port, hardware.npu_count);
  one.pool_write_port = shared(hardware.pool_write_port, hardware.npu_count);
  one.pool_capacity = fair_pool(hardware);
  if (!hardware.nodes) return one;
  const int sharers = sharers_of_sockets(hardware);
  one.socket_port = shared(hardware.socket_port, sharers);
  one.socket_memory = shared(hardware.socket_memory, sharers);
  one.nodes->first_level = shared(hardware.nodes->first_level, npus_in_node(hardware, 0));
  one.socket_capacity.reset();  // pool_capacity says it
  return one;
}

RunRecord replay_folded(const Graph& graph, const Hardware& hardware, const PolicyFactory& make_policy,
                        const ReplayOptions& options) {
  if (const std::string reason = why_not_fold(graph, hardware); !reason.empty())
    throw InfeasibleError("the fold would not be exact: " + reason);
  RunRecord record = replay(graph, folded_hardware(hardware), make_policy, options);
  if (record.waited_for_pool && hardware.npu_count > 1)
    throw InfeasibleError("the fold would not be exact: NPUs wait for room in the pool, one after another");
  record.stands_for = hardware.npu_count;
  const auto all = [&](Bytes bytes) { return Bytes(bytes.value * hardware.npu_count); };
  record.pool_peak = all(record.pool_peak);
  record.pool_requested_peak = all(record.pool_requested_peak);
  record.pool_exceeded = all(record.pool_exceeded);
  return record;
}

}  // namespace hyperoffload
