#include "sim/replay/replay.h"

#include <fmt/format.h>

#include <algorithm>
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
Seconds horizon_of(const RankWork& work, const Hardware& hardware, const ReplayOptions& options) {
  const LinkDirection read = fair_link(hardware, true), write = fair_link(hardware, false);
  const Graph& graph = *work.graph;
  Seconds once;
  for (std::size_t i = 0; i < work.costs.size(); ++i) {
    once += options.host_overhead + work.costs[i].alone + work.costs[i].hbm_bytes / hardware.hbm_bandwidth;
    for (const auto* list : {&graph.ops()[i].reads, &graph.ops()[i].writes})
      for (TensorId t : *list)
        once += read.latency + write.latency + graph.tensor(t).bytes / read.bandwidth +
                graph.tensor(t).bytes / write.bandwidth;
  }
  return once * (static_cast<double>(options.iterations) * hardware.npu_count);
}

RankWork work_of(const Graph& graph, const Hardware& hardware, int rank) {
  RankWork work;
  work.graph = &graph;
  work.costs.reserve(graph.ops().size());
  work.local.reserve(graph.ops().size());
  for (const Op& op : graph.ops()) {
    work.costs.push_back(op_cost(op, hardware, rank));
    work.local.push_back(local_cost(op, hardware));
  }
  work.hbm = hbm_use(graph, work.local, hardware);
  return work;
}

std::vector<RankWork> works_of(const std::vector<const Graph*>& graphs, const Hardware& hardware) {
  std::vector<RankWork> works;
  for (std::size_t n = 0; n < graphs.size(); ++n)
    works.push_back(work_of(*graphs[n], hardware, static_cast<int>(n)));
  return works;
}

Seconds horizon_of(const std::vector<RankWork>& works, const Hardware& hardware, const ReplayOptions& options) {
  Seconds longest;
  for (const RankWork& work : works) longest = std::max(longest, horizon_of(work, hardware, options));
  return longest;
}

// All NPUs on one machine, sharing the pool.
class World {
 public:
  // `graphs`: one for all NPUs, or one each.
  World(const std::vector<const Graph*>& graphs, const Hardware& hardware,
        const RankPolicyFactory& make_policy, const ReplayOptions& options)
      : options_(options),
        works_(works_of(graphs, hardware)),
        pool_(hardware, options.shortcuts, options.everything_in_place),
        machine_(hardware, pool_.bins(), works_, horizon_of(works_, hardware, options),
                 options.shortcuts) {
    for (int n = 0; n < hardware.npu_count; ++n)
      npus_.push_back(std::make_unique<NpuReplay>(n,
                                                  works_[works_.size() > 1 ? static_cast<std::size_t>(n) : 0],
                                                  hardware, make_policy(n), options_, machine_, pool_));
  }

  RunRecord run() {
    for (auto& npu : npus_) npu->place_initial();
    machine_.on_instant([this] { settle(); });
    machine_.wake();
    machine_.run();
    report_stuck();
    report_addresses();
    RunRecord record;
    record.iterations = options_.iterations;
    record.full = options_.full_record;
    record.pool_peak = pool_.peak();
    record.pool_requested_peak = pool_.requested_peak();
    record.pool_exceeded = pool_.exceeded();
    const std::size_t slowest = slowest_npu();
    for (auto& npu : npus_) {
      record.waited_for_pool |= npu->ever_waited_for_pool();
      record.npus.push_back(npu->take_record(record.npus.size() == slowest));
    }
    return record;
  }

 private:
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

  // As sim/report chooses it: the longest last iteration, the lowest index among equals.
  std::size_t slowest_npu() const {
    std::size_t slowest = 0;
    for (std::size_t n = 1; n < npus_.size(); ++n)
      if (npus_[n]->last_iteration() > npus_[slowest]->last_iteration()) slowest = n;
    return slowest;
  }

  void report_stuck() {
    for (std::size_t n = 0; n < npus_.size(); ++n)
      if (!npus_[n]->finished())
        throw InfeasibleError(fmt::format("the run gets stuck at {:.9g} s on NPU {}: {}",
                                          machine_.now().value, n, npus_[n]->waiting_for()));
  }

  void report_addresses() {
    for (const auto& npu : npus_)
      if (const std::string& fault = npu->address_fault(); !fault.empty())
        throw InfeasibleError("the plan's addresses do not hold " + fault);
  }

  ReplayOptions options_;
  std::vector<RankWork> works_;
  Pool pool_;
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
                                     record.pool_requested_peak.value, record.pool_exceeded.value,
                                     record.waited_for_pool,
                                     static_cast<std::int64_t>(record.npus.size())});
  for (const NpuRecord& npu : record.npus) {
    put(out, npu.ops);
    put(out, npu.transfers);
    put(out, npu.memory);
    put(out, npu.iteration_start);
    put(out, npu.iteration_end);
    put(out, npu.inputs_taken);
    put(out, std::vector<Bytes>{npu.hbm_peak});
    put(out, std::vector<std::uint64_t>{npu.series.size()});
    for (const IterationSeries& s : npu.series) {
      put(out, std::vector<std::int64_t>{s.iteration, s.changes, static_cast<std::int64_t>(s.engines)});
      put(out, std::vector<Seconds>{s.start, s.end, s.fill_step, s.use_step});
      put(out, s.fill);
      put(out, s.use);
    }
  }
  return out;
}

void unpack_series(const std::string& in, std::size_t& at, IterationSeries& series) {
  std::vector<std::int64_t> counts;
  std::vector<Seconds> times;
  get(in, at, counts);
  get(in, at, times);
  get(in, at, series.fill);
  get(in, at, series.use);
  series.iteration = static_cast<int>(counts[0]);
  series.changes = counts[1];
  series.engines = static_cast<std::size_t>(counts[2]);
  series.start = times[0];
  series.end = times[1];
  series.fill_step = times[2];
  series.use_step = times[3];
}

RunRecord unpack(const std::string& in) {
  std::size_t at = 0;
  std::vector<std::int64_t> head;
  get(in, at, head);
  RunRecord record;
  record.iterations = static_cast<int>(head[0]);
  record.full = head[1] != 0;
  record.pool_peak = Bytes(head[2]);
  record.pool_requested_peak = Bytes(head[3]);
  record.pool_exceeded = Bytes(head[4]);
  record.waited_for_pool = head[5] != 0;
  record.npus.resize(static_cast<std::size_t>(head[6]));
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
    std::vector<std::uint64_t> count;
    get(in, at, count);
    npu.series.resize(count[0]);
    for (IterationSeries& s : npu.series) unpack_series(in, at, s);
  }
  HYPER_CHECK(at == in.size(), "a record that was packed otherwise");
  return record;
}

}  // namespace

RunRecord replay(const Graph& graph, const Hardware& hardware, const PolicyFactory& make_policy,
                 const ReplayOptions& options) {
  const RankPolicyFactory each = [&](int) { return make_policy(); };
  return unpack(run_isolated([&] { return pack(World({&graph}, hardware, each, options).run()); }));
}

RunRecord replay_ranks(const std::vector<const Graph*>& graphs, const Hardware& hardware,
                       const RankPolicyFactory& make_policy, const ReplayOptions& options) {
  HYPER_CHECK(graphs.size() == static_cast<std::size_t>(hardware.npu_count), "a trace for each NPU");
  return unpack(run_isolated([&] { return pack(World(graphs, hardware, make_policy, options).run()); }));
}

}  // namespace hyperoffload
