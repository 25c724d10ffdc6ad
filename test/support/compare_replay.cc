#include "test/support/compare_replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

namespace hyperoffload {
namespace {

constexpr double kRelative = 1e-9;
constexpr double kTenInstants = 1e-11;

bool agree(long double a, long double b) {
  return std::fabs(a - b) <= kRelative * std::max(std::fabs(a), std::fabs(b)) + kTenInstants;
}

// "" or "WHAT at FOUND s, reference REFERENCE s".
std::string time_difference(const std::string& what, Seconds found, long double reference) {
  if (std::isfinite(found.value) && agree(found.value, reference)) return "";
  return fmt::format("{} at {:.15g} s, reference {:.15g} s", what, found.value,
                     static_cast<double>(reference));
}

std::string op_difference(const OpRecord& found, const ReferenceOp& op, const Graph& graph) {
  const std::string who = fmt::format("op \"{}\" of iteration {}", graph.op(op.op).name, op.iteration);
  if (found.iteration != op.iteration || found.op != op.op)
    return fmt::format("{} is missing; found op {} of iteration {}", who, found.op.value, found.iteration);
  const std::string start = time_difference(who + " starts", found.start, op.start);
  return start.empty() ? time_difference(who + " ends", found.end, op.end) : start;
}

std::string transfer_difference(const TransferRecord& found, const ReferenceTransfer& transfer,
                                const Graph& graph, long double end) {
  const std::string who = fmt::format("{} of \"{}\" [{}, {}) of iteration {} (action {})",
                                      transfer.direction == Direction::kPoolToHbm ? "prefetch" : "store",
                                      graph.tensor(transfer.tensor).name, transfer.from.value,
                                      transfer.to.value, transfer.iteration, transfer.action);
  if (std::tuple(found.iteration, found.action, found.tensor, found.from, found.to) !=
      std::tuple(transfer.iteration, transfer.action, transfer.tensor, transfer.from, transfer.to))
    return fmt::format(
        "{} is not where it should be in its queue; found tensor {} [{}, {}) of iteration {} (action {})",
        who, found.tensor.value, found.from.value, found.to.value, found.iteration, found.action);
  std::string difference = time_difference(who + " starts", found.start, transfer.start);
  if (difference.empty() && transfer.flow_start <= end)
    difference = time_difference(who + " begins its bandwidth part", found.flow_start, transfer.flow_start);
  if (difference.empty() && transfer.end <= end)
    difference = time_difference(who + " ends", found.end, transfer.end);
  return difference;
}

std::vector<OpRecord> in_program_order(std::vector<OpRecord> ops) {
  std::stable_sort(ops.begin(), ops.end(), [](const OpRecord& a, const OpRecord& b) {
    return std::tuple(a.iteration, a.op) < std::tuple(b.iteration, b.op);
  });
  return ops;
}
std::vector<ReferenceOp> in_program_order(std::vector<ReferenceOp> ops) {
  std::stable_sort(ops.begin(), ops.end(), [](const ReferenceOp& a, const ReferenceOp& b) {
    return std::tuple(a.iteration, a.op) < std::tuple(b.iteration, b.op);
  });
  return ops;
}

template <class Transfer>
std::vector<Transfer> one_way(const std::vector<Transfer>& transfers, Direction direction) {
  std::vector<Transfer> list;
  for (const Transfer& t : transfers)
    if (t.direction == direction) list.push_back(t);
  return list;
}

std::string count_difference(const char* what, std::size_t found, std::size_t reference) {
  return found == reference ? "" : fmt::format("{} {}, reference {}", found, what, reference);
}

// The record's own sum over the last iteration.
Bytes carried(const std::vector<TransferRecord>& transfers, Direction direction, Seconds from, Seconds to) {
  std::vector<ReferenceTransfer> same;
  for (const TransferRecord& t : transfers)
    same.push_back({t.direction, t.iteration, t.action, t.tensor, t.from, t.to, t.start.value,
                    t.flow_start.value, t.end.value});
  return carried_bytes(same, direction, from.value, to.value);
}

std::string carried_difference(const NpuRecord& npu, const ReferenceResult& reference, Direction direction) {
  const bool in = direction == Direction::kPoolToHbm;
  const long double begin = reference.iteration_start.back(), end = reference.iteration_end.back();
  std::int64_t crossing = 0;
  int in_flight = 0;
  for (const ReferenceTransfer& t : reference.transfers) {
    if (t.direction != direction) continue;
    if (t.end > end) ++in_flight;
    if ((t.start < begin && t.end > begin) || t.end > end) ++crossing;
  }
  for (const TransferRecord& t : npu.transfers)
    if (t.direction == direction && t.end.value > end) --in_flight;
  if (in_flight > 0) return "";  // the record need not say when what was in flight at the end would end
  const Bytes found = carried(npu.transfers, direction, npu.iteration_start.back(), npu.iteration_end.back());
  const Bytes expected = in ? reference.pool_to_hbm : reference.hbm_to_pool;
  const double slack = static_cast<double>(crossing) + kRelative * static_cast<double>(expected.value);
  if (std::fabs(static_cast<double>(found.value - expected.value)) <= slack) return "";
  return fmt::format("{} B carried {} in the last iteration, reference {} B", found.value,
                     in ? "pool to HBM" : "HBM to pool", expected.value);
}

}  // namespace

std::string first_difference(const RunRecord& record, const ReferenceResult& reference, const Graph& graph) {
  if (reference.stuck) return "the reference got stuck: " + reference.waiting;
  if (record.npus.size() != 1 || !record.full) return "the record is not a full one of one NPU";
  const NpuRecord& npu = record.npus.front();
  const long double end = reference.iteration_end.back();

  const auto found_ops = in_program_order(npu.ops);
  const auto ops = in_program_order(reference.ops);
  // The earliest wrong op tells most, whatever comes first in the lists.
  std::pair<long double, std::string> first{end + 1, ""};
  const auto note = [&](long double when, const std::string& difference) {
    if (!difference.empty() && when < first.first) first = {when, difference};
  };
  for (std::size_t i = 0; i < std::min(found_ops.size(), ops.size()); ++i)
    note(ops[i].start, op_difference(found_ops[i], ops[i], graph));
  for (const Direction direction : {Direction::kPoolToHbm, Direction::kHbmToPool}) {
    const auto found = one_way(npu.transfers, direction);
    const auto transfers = one_way(reference.transfers, direction);
    for (std::size_t i = 0; i < std::min(found.size(), transfers.size()); ++i)
      note(transfers[i].start, transfer_difference(found[i], transfers[i], graph, end));
    note(end, count_difference(direction == Direction::kPoolToHbm ? "prefetches" : "stores", found.size(),
                               transfers.size()));
  }
  note(end, count_difference("ops", found_ops.size(), ops.size()));
  note(end, count_difference("iterations", npu.iteration_start.size(), reference.iteration_start.size()));
  note(end, count_difference("iterations", npu.iteration_end.size(), reference.iteration_end.size()));
  if (!first.second.empty()) return first.second;

  for (std::size_t k = 0; k < reference.iteration_end.size(); ++k)
    for (const std::string& difference :
         {time_difference(fmt::format("iteration {} starts", k), npu.iteration_start[k],
                          reference.iteration_start[k]),
          time_difference(fmt::format("iteration {} ends", k), npu.iteration_end[k],
                          reference.iteration_end[k])})
      if (!difference.empty()) return difference;
  if (npu.hbm_peak != reference.hbm_peak)
    return fmt::format("HBM peak {} B, reference {} B", npu.hbm_peak.value, reference.hbm_peak.value);
  if (record.pool_peak != reference.pool_peak)
    return fmt::format("pool peak {} B, reference {} B", record.pool_peak.value, reference.pool_peak.value);
  for (const Direction direction : {Direction::kPoolToHbm, Direction::kHbmToPool})
    if (const std::string difference = carried_difference(npu, reference, direction); !difference.empty())
      return difference;
  return "";
}

RunRecord to_record(const ReferenceResult& reference) {
  RunRecord record;
  record.iterations = static_cast<int>(reference.iteration_end.size());
  record.full = true;
  record.pool_peak = reference.pool_peak;
  NpuRecord& npu = record.npus.emplace_back();
  npu.hbm_peak = reference.hbm_peak;
  const auto seconds = [](long double t) { return Seconds(static_cast<double>(t)); };
  for (const ReferenceOp& op : reference.ops) {
    OpRecord& r = npu.ops.emplace_back();
    r.iteration = op.iteration;
    r.op = op.op;
    r.ready = r.resident = r.start = seconds(op.start);
    r.end = seconds(op.end);
  }
  for (const ReferenceTransfer& t : reference.transfers) {
    TransferRecord& r = npu.transfers.emplace_back();
    r.direction = t.direction;
    r.iteration = t.iteration;
    r.tensor = t.tensor;
    r.from = t.from;
    r.to = t.to;
    r.queued = r.start = seconds(t.start);
    r.flow_start = seconds(t.flow_start);
    r.end = seconds(t.end);
    r.action = t.action;
  }
  for (long double t : reference.iteration_start) npu.iteration_start.push_back(seconds(t));
  for (long double t : reference.iteration_end) npu.iteration_end.push_back(seconds(t));
  return record;
}

}  // namespace hyperoffload
