#include "sim/import/chakra.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <queue>
#include <set>
#include <unordered_map>

#include "sim/import/chakra_nodes.h"
#include "sim/import/option_value.h"
#include "sim/import/trace_maker.h"
#include "sim/model/collective.h"
#include "sim/model/error.h"
#include "sim/model/nearest_name.h"

namespace hyperoffload {
namespace {

const char* kCollectives[] = {
    "all-reduce", "reduce",         "all-gather",           "gather", "scatter", "broadcast",
    "all-to-all", "reduce-scatter", "reduce-scatter-block", "barrier"};
constexpr std::int64_t kBarrier = 9;
constexpr std::uint64_t kLongestMicros = std::numeric_limits<std::int64_t>::max();

// An order that keeps every dependency; of the nodes that may come next, the one that started first, then the
// one that stands first in the file.
class ChakraOrder {
 public:
  ChakraOrder(const ChakraTrace& trace, const std::string& source, TraceMaker& maker)
      : nodes_(trace.nodes), source_(source), maker_(maker) {}

  std::vector<std::size_t> sort() {
    for (std::size_t i = 0; i < nodes_.size(); ++i)
      if (!by_id_.try_emplace(nodes_[i].id, i).second)
        throw InputError(source_, fmt::format("the node id {} twice", nodes_[i].id), "each once");
    before_.resize(nodes_.size());
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      resolve(i, nodes_[i].data, false);
      resolve(i, nodes_[i].control, true);
    }
    if (!missing_.empty())
      maker_.remark(fmt::format("{} {} {} that {} not in the file",
                                count_of(missing_uses_, "dependency", "dependencies"),
                                missing_uses_ == 1 ? "names" : "name", count_of(missing_.size(), "id"),
                                missing_.size() == 1 ? "is" : "are"));
    if (own_ > 0)
      maker_.remark(fmt::format("{} on the node itself {} left out",
                                count_of(own_, "dependency", "dependencies"), own_ == 1 ? "is" : "are"));
    run();
    return order_;
  }

  // Places of the nodes that a node waits for, without dropped dependencies.
  std::vector<std::size_t> before(std::size_t node) const {
    std::vector<std::size_t> places;
    for (const Dependency& d : before_[node])
      if (!d.dropped) places.push_back(d.node);
    return places;
  }

 private:
  struct Dependency {
    std::size_t node = 0;
    bool control = false, dropped = false;
  };

  void resolve(std::size_t node, const std::vector<std::int64_t>& ids, bool control) {
    for (const std::int64_t id : ids) {
      const auto found = by_id_.find(id);
      if (found == by_id_.end()) {
        ++missing_uses_;
        missing_.insert(id);
      } else if (found->second == node) {
        ++own_;
      } else {
        before_[node].push_back({found->second, control, false});
      }
    }
  }

  void run() {
    std::vector<std::size_t> waits(nodes_.size());
    std::vector<std::vector<std::size_t>> behind(nodes_.size());
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      waits[i] = before_[i].size();
      for (const Dependency& d : before_[i]) behind[d.node].push_back(i);
    }
    using Key = std::pair<std::uint64_t, std::size_t>;
    std::priority_queue<Key, std::vector<Key>, std::greater<>> ready;
    std::vector<char> placed(nodes_.size());
    for (std::size_t i = 0; i < nodes_.size(); ++i)
      if (waits[i] == 0) ready.emplace(nodes_[i].start_us, i);
    std::size_t dropped = 0, look_from = 0;
    while (order_.size() < nodes_.size()) {
      if (ready.empty()) {
        const std::size_t node = break_cycle(placed, look_from, dropped);
        waits[node] = 0;
        ready.emplace(nodes_[node].start_us, node);
      }
      const std::size_t node = ready.top().second;
      ready.pop();
      if (placed[node]) continue;
      placed[node] = 1;
      order_.push_back(node);
      for (const std::size_t next : behind[node])
        if (!placed[next] && waits[next] > 0 && --waits[next] == 0)
          ready.emplace(nodes_[next].start_us, next);
    }
    if (dropped > 0)
      maker_.remark(fmt::format("{} that close{} a cycle {} left out",
                                count_of(dropped, "control dependency", "control dependencies"),
                                dropped == 1 ? "s" : "", dropped == 1 ? "is" : "are"));
  }

  // Nothing can come next: of the first node in the file that waits for control alone, the control
  // dependencies on nodes not placed yet are dropped.
  std::size_t break_cycle(const std::vector<char>& placed, std::size_t& look_from, std::size_t& dropped) {
    while (look_from < nodes_.size() && placed[look_from]) ++look_from;
    for (std::size_t i = look_from; i < nodes_.size(); ++i) {
      if (placed[i]) continue;
      const bool data = std::any_of(before_[i].begin(), before_[i].end(),
                                    [&](const Dependency& d) { return !d.control && !placed[d.node]; });
      if (data) continue;
      for (Dependency& d : before_[i])
        if (!placed[d.node] && !d.dropped) {
          d.dropped = true;
          ++dropped;
        }
      return i;
    }
    fail_with_cycle(placed, look_from);
  }

  [[noreturn]] void fail_with_cycle(const std::vector<char>& placed, std::size_t from) const {
    // Following data dependencies must come back to a node seen.
    std::vector<std::size_t> path;
    std::vector<char> seen(nodes_.size());
    for (std::size_t node = from; !seen[node];) {
      seen[node] = 1;
      path.push_back(node);
      for (const Dependency& d : before_[node])
        if (!d.control && !placed[d.node]) {
          node = d.node;
          break;
        }
    }
    std::string ids;
    for (std::size_t i = 0; i < std::min<std::size_t>(path.size(), 8); ++i)
      ids += fmt::format("{}{}", i > 0 ? ", " : "", nodes_[path[i]].id);
    throw InputError(source_,
                     "a cycle of data dependencies (nodes " + ids + (path.size() > 8 ? ", ..." : "") + ")",
                     "none");
  }

  const std::vector<ChakraNode>& nodes_;
  const std::string& source_;
  TraceMaker& maker_;
  std::unordered_map<std::int64_t, std::size_t> by_id_;
  std::vector<std::vector<Dependency>> before_;
  std::set<std::int64_t> missing_;
  std::size_t missing_uses_ = 0, own_ = 0;
  std::vector<std::size_t> order_;
};

class ChakraImport {
 public:
  ChakraImport(const std::vector<std::string>& files, bool fabric)
      : fabric_(fabric), maker_("chakra", files),
        stream_(files[0], "a Chakra execution trace (protobuf, schema 0.0.4 or later)") {}

  ImportResult run() {
    trace_ = read_chakra(stream_);
    ChakraOrder order(trace_, stream_.source(), maker_);
    const std::vector<std::size_t> places = order.sort();
    std::vector<OpId> ops(trace_.nodes.size());
    for (const std::size_t place : places) {
      Op op = op_of(trace_.nodes[place]);
      for (const std::size_t before : order.before(place)) op.after.push_back(ops[before]);
      ops[place] = maker_.add_op(std::move(op));
    }
    remark();
    return maker_.finish("nodes");
  }

 private:
  Op op_of(const ChakraNode& node) {
    Op op;
    op.name = node.name;
    const bool communicates = node.type == ChakraType::kSend || node.type == ChakraType::kReceive ||
                              node.type == ChakraType::kCollective;
    const bool host = node.is_cpu_op.value_or(false) || node.type == ChakraType::kMetadata ||
                      node.type == ChakraType::kInvalid;
    op.engine = maker_.engine(communicates ? "comm"
                              : node.type == ChakraType::kMemoryLoad || node.type == ChakraType::kMemoryStore
                                  ? "memory"
                              : host ? "host"
                                     : "compute");
    without_cpu_flag_ += !node.is_cpu_op && !communicates;
    if (node.duration_us > kLongestMicros)
      throw InputError(fmt::format("{}: node {} ({})", stream_.source(), node.id, in_quotes(node.name)),
                       fmt::format("a duration of {} us", node.duration_us),
                       fmt::format("at most {} us (beyond are negative numbers)", kLongestMicros));
    if (node.duration_us > 0) op.duration = Seconds(static_cast<double>(node.duration_us) / 1e6);
    if (communicates) {
      communicate(node, op);
    } else {
      if (node.num_ops) op.flops = Flops(*node.num_ops);
      if (node.tensor_size && node.duration_us == 0) op.hbm_bytes = Bytes(*node.tensor_size);
    }
    if (!op.duration && !op.flops && !op.hbm_bytes && !(fabric_ && op.collective)) {
      op.duration = Seconds(0);
      ++without_time_;
    }
    for (const ChakraTensor& t : node.inputs) op.reads.push_back(tensor(t));
    for (const ChakraTensor& t : node.outputs) op.writes.push_back(tensor(t));
    return op;
  }

  void communicate(const ChakraNode& node, Op& op) {
    const auto fail = [&](const std::string& found, const std::string& expected) {
      throw InputError(fmt::format("{}: node {} ({})", stream_.source(), node.id, in_quotes(node.name)),
                       found, expected);
    };
    std::string kind = node.type == ChakraType::kSend ? "send" : "recv";
    if (node.type == ChakraType::kCollective) {
      if (!node.comm_type && node.duration_us == 0) fail("a collective without comm_type", "one of 0 to 9");
      if (node.comm_type && *node.comm_type >= static_cast<std::int64_t>(std::size(kCollectives)))
        fail(fmt::format("comm_type {}", *node.comm_type), "one of 0 to 9");
      kind = node.comm_type ? kCollectives[*node.comm_type] : "collective";
    }
    const std::int64_t bytes = node.comm_size.value_or(0);
    const bool barrier = node.type == ChakraType::kCollective && node.comm_type == kBarrier;
    if (bytes == 0 && node.duration_us == 0 && !barrier)
      fail("communication of no bytes and no duration", "comm_size");
    op.collective = Collective{kind, Bytes(bytes), node.group};
    if (fabric_ && bytes > 0 && collective_kind(kind)) {
      op.duration.reset();
      return;
    }
    if (node.duration_us > 0) return;
    ++untimed_communication_;
    op.hbm_bytes = Bytes(bytes);
  }

  TensorId tensor(const ChakraTensor& tensor) {
    const auto [place, fresh] = tensors_.try_emplace(tensor.name);
    if (fresh) {
      place->second = maker_.add_tensor(tensor.name, Bytes(tensor.bytes), TensorKind::kActivation);
    } else if (Bytes& bytes = maker_.tensor_at(place->second).bytes; bytes != Bytes(tensor.bytes)) {
      resized_.insert(tensor.name);
      bytes = std::max(bytes, Bytes(tensor.bytes));
    }
    return place->second;
  }

  void remark() {
    if (without_cpu_flag_ > 0)
      maker_.remark(fmt::format("{} without is_cpu_op: taken as work of the device",
                                count_of(without_cpu_flag_, "node")));
    if (without_time_ > 0)
      maker_.remark(fmt::format("{} with zero time: neither a duration nor num_ops nor tensor_size",
                                count_of(without_time_, "node")));
    if (untimed_communication_ > 0)
      maker_.remark(fmt::format(
          "{} without a duration: comm_size is kept as the collective's bytes, and as HBM traffic",
          count_of(untimed_communication_, "communication node")));
    if (!resized_.empty())
      maker_.remark(
          fmt::format("{} of several sizes: the largest counts", count_of(resized_.size(), "tensor")));
    if (tensors_.empty()) maker_.remark("no tensors: the trace names none");
    std::string names;
    for (const auto& [name, count] : trace_.unread)
      names += fmt::format("{}{} ({})", names.empty() ? "" : ", ", in_quotes(name), count);
    if (!names.empty()) maker_.remark("attributes that are not used: " + names);
  }

  const bool fabric_;
  TraceMaker maker_;
  TextStream stream_;
  ChakraTrace trace_;
  std::unordered_map<std::string, TensorId> tensors_;
  std::set<std::string> resized_;
  std::size_t without_cpu_flag_ = 0, without_time_ = 0, untimed_communication_ = 0;
};

}  // namespace

ImportResult import_chakra(const std::vector<std::string>& files, const ImportOptions& options) {
  const bool fabric =
      options.collectives && one_word(*options.collectives, "--collectives", {"fabric"}) == "fabric";
  return ChakraImport(files, fabric).run();
}

}  // namespace hyperoffload
