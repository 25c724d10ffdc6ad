#include "planner/bound/reload_bound.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

namespace hyperoffload {
namespace {

class Reloads {
 public:
  Reloads(const FlatGraph& graph, int iterations)
      : graph_(graph), iterations_(iterations), next_(graph.tensors, 0), until_(graph.tensors, kNone),
        kept_(graph.tensors, 0), loads_(graph.ops, 0) {}
  double run();

 private:
  static constexpr int kNone = -1;
  bool sweep();
  void begin();
  void open(int tensor);
  bool make_room(int op);
  double seconds() const;

  const FlatGraph& graph_;
  const int iterations_;
  std::vector<std::int32_t> next_;   // by tensor: its accesses so far
  std::vector<std::int32_t> until_;  // by tensor: the op that its stay ends at
  std::vector<std::int64_t> kept_;   // by tensor: bytes of that stay
  std::vector<std::int64_t> loads_;  // by op: bytes loaded for it
  std::priority_queue<std::pair<std::int32_t, std::int32_t>> stays_;  // the last to end first; over or empty ones, too
  std::int64_t there_ = 0;           // bytes of all stays
};

// The stay behind the accesses so far; none where nothing reads the bytes again as they are.
void Reloads::open(int tensor) {
  const auto accesses = graph_.graph->accesses(TensorId(tensor));
  const std::size_t k = next_[tensor];
  until_[tensor] = kNone;
  if (k >= accesses.size() || !accesses[k].reads || graph_.bytes[tensor] == 0) return;
  until_[tensor] = accesses[k].op.value;
  there_ += kept_[tensor] = graph_.bytes[tensor];
  stays_.emplace(until_[tensor], tensor);
}

void Reloads::begin() {
  for (int t = 0; t < graph_.tensors; ++t) {
    if (!graph_.persistent[t] && !graph_.graph->is_input(TensorId(t))) continue;
    open(t);
    if (iterations_ > 1 || !graph_.bound_to_pool[t] || until_[t] == kNone) continue;
    loads_[until_[t]] += kept_[t];
    there_ -= std::exchange(kept_[t], 0);
  }
}

bool Reloads::make_room(int op) {
  const std::int64_t room = graph_.machine.hbm - graph_.working_set(op);
  while (there_ > room) {
    if (stays_.empty()) return false;
    const auto [until, tensor] = stays_.top();
    if (until_[tensor] != until || kept_[tensor] == 0) {
      stays_.pop();
      continue;
    }
    const std::int64_t bytes = std::min(kept_[tensor], there_ - room);
    loads_[until] += bytes;
    kept_[tensor] -= bytes;
    there_ -= bytes;
  }
  return true;
}

bool Reloads::sweep() {
  begin();
  for (int op = 0; op < graph_.ops; ++op) {
    for (const FlatAccess& access : graph_.accesses(op)) {
      if (until_[access.tensor] == op) there_ -= std::exchange(kept_[access.tensor], 0);
      until_[access.tensor] = kNone;
      ++next_[access.tensor];
    }
    if (!make_room(op)) return false;
    for (const FlatAccess& access : graph_.accesses(op)) open(access.tensor);
  }
  return true;
}

// Transfers are whole: of the largest tensors first, each as often as it is read.
double Reloads::seconds() const {
  std::vector<std::pair<std::int64_t, std::int64_t>> sizes;  // bytes, how often
  for (int t = 0; t < graph_.tensors; ++t) {
    const auto accesses = graph_.graph->accesses(TensorId(t));
    sizes.emplace_back(graph_.bytes[t], std::count_if(accesses.begin(), accesses.end(), [](const Access& a) { return a.reads; }));
  }
  std::sort(sizes.begin(), sizes.end(), std::greater<>());
  const NpuMachine& m = graph_.machine;
  double rest = 0;
  for (const OpCost& cost : graph_.cost) rest += cost.alone.value;
  double longest = 0;
  std::int64_t loaded = 0, carried = 0, transfers = 0;  // by those of the largest
  auto size = sizes.begin();
  std::int64_t left = sizes.empty() ? 0 : size->second;
  for (int op = 0; op < graph_.ops; ++op) {
    loaded += loads_[op];
    while (carried < loaded && size != sizes.end()) {
      if (left == 0) {
        if (++size != sizes.end()) left = size->second;
        continue;
      }
      const std::int64_t more = std::clamp<std::int64_t>((loaded - carried + size->first - 1) / std::max<std::int64_t>(1, size->first), 1, left);
      carried += more * size->first;
      transfers += more;
      left -= more;
    }
    if (loads_[op] > 0)
      longest = std::max(longest, static_cast<double>(transfers) * m.read_latency +
                                      static_cast<double>(loaded) / std::min(m.read_bandwidth, m.hbm_bandwidth) + rest);
    rest -= graph_.cost[op].alone.value;
  }
  return longest;
}

double Reloads::run() { return sweep() ? seconds() : 0; }

}  // namespace

double reload_bound(const FlatGraph& graph, int iterations) {
  if (graph.engines != 1 || graph.any_in_pool) return 0;
  return Reloads(graph, iterations).run();
}

}  // namespace hyperoffload
