#include "sim/replay/replay.h"

#include <fmt/format.h>

#include <cstring>
#include <type_traits>
#include <utility>

#include "sim/model/check.h"
#include "sim/model/error.h"
#include "sim/replay/isolate.h"
#include "sim/replay/npu_replay.h"

namespace hyperoffload {
namespace {

// An upper estimate of the simulated time: everything one after another, each access a copy both ways.
Seconds horizon_of(const Graph& graph, const Hardware& hardware, const std::vector<OpCost>& costs,
                   int iterations) {
  Seconds once;
  for (std::size_t i = 0; i < costs.size(); ++i) {
    once += costs[i].alone + costs[i].hbm_bytes / hardware.hbm_bandwidth;
    for (const auto* list : {&graph.ops()[i].reads, &graph.ops()[i].writes})
      for (TensorId t : *list)
        once += hardware.link_read.latency + hardware.link_write.latency +
                graph.tensor(t).bytes / hardware.link_read.bandwidth +
                graph.tensor(t).bytes / hardware.link_write.bandwidth;
  }
  return once * (static_cast<double>(iterations) * hardware.npu_count);
}

// All NPUs on one machine, sharing the pool.
class World {
 public:
  World(const Graph& graph, const Hardware& hardware, const PolicyFactory& make_policy,
        const ReplayOptions& options)
      : options_(options),
        costs_(costs_of(graph, hardware)),
        pool_(options.everything_in_place ? Bytes::max() : hardware.pool_capacity),
        machine_(hardware, graph.engines(), horizon_of(graph, hardware, costs_, options.iterations)) {
    for (int n = 0; n < hardware.npu_count; ++n)
      npus_.push_back(
          std::make_unique<NpuReplay>(n, graph, hardware, costs_, make_policy(), options_, machine_, pool_));
  }

  RunRecord run() {
    for (auto& npu : npus_) npu->place_initial();
    machine_.on_instant([this] { settle(); });
    machine_.wake();
    machine_.run();
    report_stuck();
    RunRecord record;
    record.iterations = options_.iterations;
    record.full = options_.full_record;
    record.pool_peak = pool_.peak();
    for (auto& npu : npus_) record.npus.push_back(npu->take_record());
    return record;
  }

 private:
  static std::vector<OpCost> costs_of(const Graph& graph, const Hardware& hardware) {
    std::vector<OpCost> costs;
    costs.reserve(graph.ops().size());
    for (const Op& op : graph.ops()) costs.push_back(op_cost(op, hardware));
    return costs;
  }

  // All that can be done now, NPUs in order; pool bytes given back wake those that wait for them.
  void settle() {
    for (bool again = true; again;) {
      again = false;
      if (std::exchange(pool_gives_, pool_.gives()) != pool_.gives())
        for (auto& npu : npus_)
          if (npu->waits_for_pool()) npu->make_dirty();
      for (auto& npu : npus_) {
        if (npu->finished() || !npu->take_dirty()) continue;
        npu->settle();
        again = true;
      }
    }
  }

  void report_stuck() const {
    for (std::size_t n = 0; n < npus_.size(); ++n)
      if (!npus_[n]->finished())
        throw InfeasibleError(fmt::format("the run gets stuck at {:.9g} s on NPU {}: {}",
                                          machine_.now().value, n, npus_[n]->waiting_for()));
  }

  ReplayOptions options_;
  std::vector<OpCost> costs_;
  Ledger pool_;
  std::uint64_t pool_gives_ = 0;
  Machine machine_;
  std::vector<std::unique_ptr<NpuReplay>> npus_;
};

// A RunRecord is plain numbers: its vectors go through the pipe as they are.
template <class T>
void put(std::string& out, const std::vector<T>& values) {
  static_assert(std::is_trivially_copyable_v<T>);
  const std::uint64_t count = values.size();
  out.append(reinterpret_cast<const char*>(&count), sizeof count);
  out.append(reinterpret_cast<const char*>(values.data()), count * sizeof(T));
}

template <class T>
void get(const std::string& in, std::size_t& at, std::vector<T>& values) {
  std::uint64_t count = 0;
  std::memcpy(&count, in.data() + at, sizeof count);
  at += sizeof count;
  values.resize(count);
  if (count) std::memcpy(static_cast<void*>(values.data()), in.data() + at, count * sizeof(T));
  at += count * sizeof(T);
}

std::string pack(const RunRecord& record) {
  std::string out;
  put(out, std::vector<std::int64_t>{record.iterations, record.full, record.pool_peak.value,
                                     static_cast<std::int64_t>(record.npus.size())});
  for (const NpuRecord& npu : record.npus) {
    put(out, npu.ops);
    put(out, npu.transfers);
    put(out, npu.memory);
    put(out, npu.iteration_start);
    put(out, npu.iteration_end);
    put(out, npu.inputs_taken);
    put(out, std::vector<Bytes>{npu.hbm_peak});
  }
  return out;
}

RunRecord unpack(const std::string& in) {
  std::size_t at = 0;
  std::vector<std::int64_t> head;
  get(in, at, head);
  RunRecord record;
  record.iterations = static_cast<int>(head[0]);
  record.full = head[1] != 0;
  record.pool_peak = Bytes(head[2]);
  record.npus.resize(static_cast<std::size_t>(head[3]));
  for (NpuRecord& npu : record.npus) {
    std::vector<Bytes> peak;
    get(in, at, npu.ops);
    get(in, at, npu.transfers);
    get(in, at, npu.memory);
    get(in, at, npu.iteration_start);
    get(in, at, npu.iteration_end);
    get(in, at, npu.inputs_taken);
    get(in, at, peak);
    npu.hbm_peak = peak[0];
  }
  HYPER_CHECK(at == in.size(), "a record that was packed otherwise");
  return record;
}

}  // namespace

RunRecord replay(const Graph& graph, const Hardware& hardware, const PolicyFactory& make_policy,
                 const ReplayOptions& options) {
  return unpack(run_isolated([&] { return pack(World(graph, hardware, make_policy, options).run()); }));
}

}  // namespace hyperoffload
