#include "sim/import/kineto_link.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "sim/import/execution_trace.h"
#include "sim/model/error.h"

namespace hyperoffload {
namespace {

constexpr std::size_t kNone = static_cast<std::size_t>(-1);

// For each device event the host op that it comes from, or kNone.
class Launchers {
 public:
  explicit Launchers(const KinetoEvents& events) : events_(events) {
    for (std::size_t i = 0; i < events.host_ops.size(); ++i)
      if (events.host_ops[i].external_id >= 0) by_id_.try_emplace(events.host_ops[i].external_id, i);
    for (std::size_t i = 0; i < events.host_ops.size(); ++i)
      by_thread_[events.host_ops[i].thread].push_back(i);
    for (auto& [_, ops] : by_thread_)
      std::stable_sort(ops.begin(), ops.end(), [&](std::size_t a, std::size_t b) {
        const HostOp &x = events.host_ops[a], &y = events.host_ops[b];
        return x.start != y.start ? x.start < y.start : x.end > y.end;
      });
  }

  std::size_t of(const DeviceEvent& event) {
    if (event.external_id >= 0 && event.external_id != event.correlation) {
      const auto named = by_id_.find(event.external_id);
      if (named != by_id_.end()) return named->second;
    }
    const auto launch = events_.launches.find(event.correlation);
    return launch == events_.launches.end() ? kNone : innermost(launch->second);
  }

 private:
  // The op with the latest start among those that contain the call. Ops of a thread nest, so going back from
  // the last that starts before it, the first that hasn't ended is the one.
  std::size_t innermost(const LaunchEvent& launch) const {
    const auto thread = by_thread_.find(launch.thread);
    if (thread == by_thread_.end()) return kNone;
    const std::vector<std::size_t>& ops = thread->second;
    auto place = std::upper_bound(ops.begin(), ops.end(), launch.start, [&](Picoseconds at, std::size_t op) {
      return at < events_.host_ops[op].start;
    });
    // Bounded: one thread's ops before a call are mostly its siblings' children.
    for (int looked = 0; place != ops.begin() && looked < 10'000; ++looked) {
      --place;
      if (events_.host_ops[*place].end >= launch.start) return *place;
    }
    return kNone;
  }

  const KinetoEvents& events_;
  std::unordered_map<std::int64_t, std::size_t> by_id_;
  std::map<std::uint32_t, std::vector<std::size_t>> by_thread_;
};

// Which host op each node is, once for each iteration that the Kineto trace has of the nodes.
class NodeMatches {
 public:
  NodeMatches(const KinetoEvents& events, const ExecutionTrace& trace, const std::string& source)
      : events_(events), trace_(trace), source_(source) {}

  std::vector<std::vector<std::size_t>> find() {
    if (match_by_id()) return std::move(rounds_);
    match_by_order();
    return std::move(rounds_);
  }

 private:
  bool same_name(const HostOp& op, const ExecutionNode& node) const {
    return events_.names.name(op.name) == trace_.name(node);
  }

  bool match_by_id() {
    const bool recorded = std::any_of(events_.host_ops.begin(), events_.host_ops.end(),
                                      [](const HostOp& op) { return op.record_id > 0; });
    std::unordered_map<std::int64_t, std::size_t> ops;
    for (std::size_t i = 0; i < events_.host_ops.size(); ++i)
      ops.try_emplace(recorded ? events_.host_ops[i].record_id : events_.host_ops[i].external_id, i);
    std::vector<std::size_t> round(trace_.nodes.size(), kNone);
    for (std::size_t n = 0; n < trace_.nodes.size(); ++n) {
      const auto op = ops.find(trace_.nodes[n].record_id);
      if (trace_.nodes[n].record_id <= 0 || op == ops.end()) continue;
      ++shared_;
      if (!same_name(events_.host_ops[op->second], trace_.nodes[n])) ++different_;
      round[n] = op->second;
    }
    if (shared_ == 0 || different_ > 0) return false;
    rounds_.push_back(std::move(round));
    return true;
  }

  void match_by_order() {
    std::map<std::int64_t, std::vector<std::size_t>> nodes;  // by thread
    for (std::size_t n = 0; n < trace_.nodes.size(); ++n)
      if (trace_.nodes[n].record_id > 0) nodes[trace_.nodes[n].thread].push_back(n);
    std::map<std::uint32_t, std::vector<std::size_t>> ops;
    for (std::size_t i = 0; i < events_.host_ops.size(); ++i)
      if (events_.host_ops[i].external_id >= 0) ops[events_.host_ops[i].thread].push_back(i);
    for (auto& [_, list] : ops)
      std::stable_sort(list.begin(), list.end(), [&](std::size_t a, std::size_t b) {
        return events_.host_ops[a].external_id < events_.host_ops[b].external_id;
      });
    std::vector<std::vector<std::vector<std::size_t>>>
        found;  // of each thread of nodes: the ops of each occurrence
    for (const auto& [_, wanted] : nodes) {
      std::vector<std::vector<std::size_t>> places;
      for (const auto& [__, list] : ops)
        if (places.empty()) places = occurrences(wanted, list);
      if (places.empty()) fail();
      found.push_back(std::move(places));
    }
    if (found.empty()) fail();
    combine(nodes, found);
  }

  // Knuth, Morris and Pratt's search for the nodes' names in the ops' names; occurrences don't overlap.
  std::vector<std::vector<std::size_t>> occurrences(const std::vector<std::size_t>& wanted,
                                                    const std::vector<std::size_t>& list) const {
    const auto node_name = [&](std::size_t i) -> const std::string& {
      return trace_.name(trace_.nodes[wanted[i]]);
    };
    const auto op_name = [&](std::size_t i) -> const std::string& {
      return events_.names.name(events_.host_ops[list[i]].name);
    };
    std::vector<std::size_t> border(wanted.size() + 1);
    for (std::size_t i = 1, k = 0; i < wanted.size(); ++i) {
      while (k > 0 && node_name(i) != node_name(k)) k = border[k];
      k += node_name(i) == node_name(k);
      border[i + 1] = k;
    }
    std::vector<std::vector<std::size_t>> places;
    for (std::size_t i = 0, k = 0; i < list.size(); ++i) {
      while (k > 0 && op_name(i) != node_name(k)) k = border[k];
      k += op_name(i) == node_name(k);
      if (k < wanted.size()) continue;
      places.emplace_back(list.begin() + static_cast<std::ptrdiff_t>(i + 1 - k),
                          list.begin() + static_cast<std::ptrdiff_t>(i + 1));
      k = 0;
    }
    return places;
  }

  // Puts the threads' occurrences together by time: a round begins where the one with the fewest does, and
  // another thread's part of it is the first that begins then or later.
  void combine(const std::map<std::int64_t, std::vector<std::size_t>>& nodes,
               const std::vector<std::vector<std::vector<std::size_t>>>& found) {
    const auto begin = [&](const std::vector<std::size_t>& ops) {
      return events_.host_ops[ops.front()].start;
    };
    for (std::size_t i = 0; i < found.front().size(); ++i) {
      std::vector<std::size_t> round(trace_.nodes.size(), kNone);
      std::size_t thread = 0;
      bool complete = true;
      const bool last = i + 1 == found.front().size();
      for (const auto& [_, list] : nodes) {
        const std::vector<std::size_t>* part = nullptr;
        for (const auto& occurrence : found[thread]) {
          if (begin(occurrence) < begin(found.front()[i])) continue;
          if (thread == 0 || last || begin(occurrence) < begin(found.front()[i + 1])) part = &occurrence;
          break;
        }
        complete &= part != nullptr;
        for (std::size_t k = 0; part && k < list.size(); ++k) round[list[k]] = (*part)[k];
        ++thread;
      }
      if (complete) rounds_.push_back(std::move(round));
    }
    if (rounds_.empty()) fail();
  }

  [[noreturn]] void fail() const {
    throw InputError(
        source_,
        shared_ > 0
            ? fmt::format(
                  "an execution trace in which {} of {} name another operator than in the trace, and whose "
                  "operators don't follow each other there",
                  different_, count_of(shared_, "shared id"))
            : "an execution trace that shares no operator with the trace",
        "one of the same run");
  }

  const KinetoEvents& events_;
  const ExecutionTrace& trace_;
  const std::string& source_;
  std::size_t shared_ = 0, different_ = 0;
  std::vector<std::vector<std::size_t>> rounds_;
};

class Linker {
 public:
  Linker(const ExecutionTrace& trace, const std::vector<OpId>& ops, TraceMaker& maker)
      : trace_(trace), ops_(ops), maker_(maker) {}

  void link(const KinetoEvents& events, const std::vector<std::vector<std::size_t>>& rounds) {
    std::vector<std::vector<std::size_t>> device_events(events.host_ops.size());  // of each host op
    Launchers launchers(events);
    for (std::size_t i = 0; i < events.device.size(); ++i)
      if (const std::size_t op = launchers.of(events.device[i]); op != kNone) device_events[op].push_back(i);
    for (const std::vector<std::size_t>& round : rounds) {
      const auto kernels = [&](std::size_t node) -> const std::vector<std::size_t>& {
        return round[node] == kNone ? none_ : device_events[round[node]];
      };
      lives_.walk(
          trace_, [&](std::size_t node) { return !kernels(node).empty(); },
          [&](std::size_t node, NodeAccess access) { take(kernels(node), access); });
    }
    remark(rounds.size());
    for (std::size_t i = 0; i < tensors_.size(); ++i)
      if (!tensors_[i].is_none()) maker_.tensor_at(tensors_[i]).bytes = Bytes(lives_.lives()[i].bytes);
  }

 private:
  void take(const std::vector<std::size_t>& kernels, const NodeAccess& access) {
    linked_ += kernels.size();
    for (const std::size_t kernel : kernels) {
      Op& op = maker_.op_at(ops_[kernel]);
      for (const int life : access.reads) op.reads.push_back(tensor(life));
      for (const int life : access.writes) {
        op.writes.push_back(tensor(life));
        if (kernel != kernels.front()) op.reads.push_back(tensor(life));  // goes on with what the first began
      }
    }
  }

  TensorId tensor(int life) {
    const auto i = static_cast<std::size_t>(life);
    if (i >= tensors_.size()) tensors_.resize(i + 1);
    if (tensors_[i].is_none()) {
      const StorageLife& storage = lives_.lives()[i];
      tensors_[i] =
          maker_.add_tensor(fmt::format("storage{}", storage.storage), Bytes(0), TensorKind::kActivation);
    }
    return tensors_[i];
  }

  void remark(std::size_t rounds) const {
    if (rounds > 1)
      maker_.remark(fmt::format(
          "the execution trace's operators occur {} times in the trace: each time makes its tensors anew",
          rounds));
    if (linked_ < ops_.size())
      maker_.remark(
          fmt::format("{} of {} belong to no operator of the execution trace: they access no tensors",
                      ops_.size() - linked_, count_of(ops_.size(), "op")));
    std::size_t before = 0;
    for (std::size_t i = 0; i < tensors_.size(); ++i)
      before += !tensors_[i].is_none() && lives_.lives()[i].there_before;
    maker_.remark(
        fmt::format("{} of the execution trace, {} of them there before it: weights among these can't be "
                    "told from inputs",
                    count_of(maker_.tensor_count(), "storage"), before));
  }

  const ExecutionTrace& trace_;
  const std::vector<OpId>& ops_;
  TraceMaker& maker_;
  StorageLives lives_;
  std::vector<TensorId> tensors_;  // of each life
  std::size_t linked_ = 0;
  const std::vector<std::size_t> none_;
};

}  // namespace

void link_execution_trace(const std::string& file, const KinetoEvents& events, const std::vector<OpId>& ops,
                          TraceMaker& maker) {
  TextStream stream(file, "a PyTorch execution trace");
  const ExecutionTrace trace = read_execution_trace(stream);
  for (const std::string& sentence : trace.remarks) maker.remark(sentence);
  Linker(trace, ops, maker).link(events, NodeMatches(events, trace, stream.source()).find());
}

}  // namespace hyperoffload
