#include "sim/machine/machine.h"

#include <algorithm>
#include <cmath>
#include <deque>

#include "sim/machine/collectives.h"
#include "sim/machine/platform.h"
#include "sim/model/check.h"
#include "sim/model/collective.h"

namespace hyperoffload {
namespace {

// Something in several parts; over with the last.
struct Parts : Completion {
  int pending = 0;
  Completion* over = nullptr;
  void done() override {
    if (--pending == 0) over->done();
  }
};

struct EngineSlot : Parts {
  Flow flow;
  int collective = -1;  // the one it waits in or takes part in
};

struct CopySlot : Parts {
  std::deque<Flow> streams;
  std::vector<double> shares;  // of the copy, a stream
  std::size_t running = 0;     // streams of this copy
  double weight = 1;
};

struct NpuSlots {
  std::deque<EngineSlot> engines;
  CopySlot copies[2];
};

PlatformUse link_use(const Hardware& hardware, const std::vector<RankWork>& works, bool shortcuts) {
  PlatformUse use;
  use.leave_out = shortcuts;
  use.hbm = !shortcuts;
  for (std::size_t w = 0; w < works.size(); ++w) {
    use.hbm |= !works[w].hbm.idle;
    for (const Op& op : works[w].graph->ops()) {
      if (!over_fabric(op, hardware)) continue;
      use.peers_near = true;
      use.peers_without_hbm |= op.hbm_bytes.has_value();
      use.self |= reaches_beyond(op.collective->members, hardware);
    }
  }
  if (!use.peers_near) return use;
  use.peers_far = hardware.nodes && (nodes_in_use(hardware) > 1 || use.self);
  use.peers_package = hardware.nodes && hardware.nodes->package_link;
  return use;
}

}  // namespace

struct Machine::Impl {
  Impl(const Hardware& h, const std::vector<Bin>& pool_bins, const std::vector<RankWork>& rank_works,
       Seconds horizon, bool shortcuts)
      : hardware(h),
        bins(pool_bins),
        works(rank_works),
        leave_out(shortcuts),
        engine(horizon),
        platform(hardware, bins, link_use(hardware, works, shortcuts)),
        collectives(hardware, engine, platform, works.size() > 1),
        npus(static_cast<std::size_t>(hardware.npu_count)) {
    for (int n = 0; n < hardware.npu_count; ++n)
      npus[static_cast<std::size_t>(n)].engines.resize(work(n).graph->engines().size());
  }

  const RankWork& work(int npu) const { return works[works.size() > 1 ? static_cast<std::size_t>(npu) : 0]; }
  NpuSlots& npu(int index) { return npus[static_cast<std::size_t>(index)]; }

  bool far(int npu, const Extent& extent) const {
    const int node = bins[static_cast<std::size_t>(extent.bin)].node;
    return hardware.nodes && node >= 0 && node != node_of(hardware, npu);
  }

  // Cap and latency of a whole copy. The bin that holds sockets of all nodes has paths of both kinds.
  LinkDirection path_of(int npu, bool read, const Extents& extents) const {
    LinkDirection path{BytesPerSecond(std::numeric_limits<double>::infinity()), Seconds(0)};
    const auto meet = [&](bool is_far) {
      const LinkDirection one = pool_path(hardware, read, is_far);
      path = {std::min(path.bandwidth, one.bandwidth), std::max(path.latency, one.latency)};
    };
    for (const Extent& extent : extents) {
      if (extent.bytes <= Bytes(0) && extent.padding > Bytes(0)) continue;  // nothing to carry
      const bool all = bins[static_cast<std::size_t>(extent.bin)].node < 0;
      if (all || !far(npu, extent)) meet(false);
      if (all || far(npu, extent)) meet(true);
    }
    if (extents.empty()) meet(false);
    if (hardware.npu_port) path.bandwidth = std::min(path.bandwidth, *hardware.npu_port);
    return path;
  }

  void start_streams(int npu, Direction direction, const Extents& extents, double cap) {
    CopySlot& slot = this->npu(npu).copies[static_cast<int>(direction)];
    Bytes all;
    for (const Extent& extent : extents) all += extent.bytes;
    slot.running = 0;
    slot.shares.clear();
    if (all <= Bytes(0)) return;
    const bool striped = hardware.placement.spread == Spread::kStripe;
    while (slot.streams.size() < extents.size()) slot.streams.emplace_back();
    const double total = static_cast<double>(all.value), equal = 1 / static_cast<double>(extents.size());
    for (const Extent& extent : extents) {
      const double share = striped ? equal : static_cast<double>(extent.bytes.value) / total;
      if (share <= 0) continue;
      const bool is_far = far(npu, extent);
      const End& bin = platform.bin(extent.bin, is_far);
      const End& here = platform.npu(npu, is_far ? Reach::kFar : Reach::kNear);
      const bool read = direction == Direction::kPoolToHbm;
      slot.shares.push_back(share);
      ++slot.pending;
      start_flow(engine, slot.streams[slot.running++], read ? bin : here, read ? here : bin, total * share,
                 cap * share, slot.weight * share, slot);
    }
  }

  Hardware hardware;
  std::vector<Bin> bins;
  const std::vector<RankWork>& works;
  bool leave_out;
  EventEngine engine;
  Platform platform;
  Collectives collectives;
  std::vector<NpuSlots> npus;
};

Machine::Machine(const Hardware& hardware, const std::vector<Bin>& bins, const std::vector<RankWork>& works,
                 Seconds horizon, bool shortcuts)
    : impl_(std::make_unique<Impl>(hardware, bins, works, horizon, shortcuts)) {}

Machine::~Machine() = default;

Seconds Machine::now() const { return impl_->engine.now(); }

bool Machine::takes_time(int npu, OpId op) const {
  const RankWork& work = impl_->work(npu);
  return work.local[op.index()].alone.value > 0 || (over_fabric(work.graph->op(op), impl_->hardware) &&
                                                    impl_->collectives.takes_time(npu, work.graph->op(op)));
}

void Machine::run_op(int npu, OpId id, EngineId engine, Completion& over) {
  EngineSlot& slot = impl_->npu(npu).engines[engine.index()];
  HYPER_CHECK(slot.pending == 0, "an op needs an idle engine");
  const RankWork& work = impl_->work(npu);
  const OpCost& cost = work.local[id.index()];
  const bool quiet = impl_->leave_out && work.hbm.quiet[id.index()];
  const Seconds timed = quiet ? cost.alone : cost.compute;
  const bool flows = !quiet && cost.hbm_bytes > Bytes(0);
  const Op& op = work.graph->op(id);
  const bool collective = over_fabric(op, impl_->hardware) && impl_->collectives.takes_time(npu, op);
  slot.over = &over;
  slot.collective = -1;
  slot.pending = (timed.value > 0 ? 1 : 0) + (flows ? 1 : 0) + (collective ? 1 : 0);
  HYPER_CHECK(slot.pending > 0, "an op needs time");
  if (timed.value > 0)
    impl_->engine.after(timed, [this, &slot] {
      slot.done();
      wake();
    });
  if (flows)
    start_flow(impl_->engine, slot.flow, impl_->platform.kernel(npu), impl_->platform.nowhere(),
               static_cast<double>(cost.hbm_bytes.value), cost.hbm_rate_cap.value, 1, slot);
  if (collective) slot.collective = impl_->collectives.join(npu, op, slot);
}

void Machine::copy(int npu, Direction direction, const Extents& extents, bool demand, Completion& flowing,
                   Completion& over) {
  CopySlot& slot = impl_->npu(npu).copies[static_cast<int>(direction)];
  HYPER_CHECK(slot.pending == 0, "one transfer a direction at a time");
  slot.pending = 1;  // the latency
  slot.over = &over;
  slot.running = 0;
  slot.weight = demand ? impl_->hardware.priority.demand : impl_->hardware.priority.prefetch;
  const LinkDirection path = impl_->path_of(npu, direction == Direction::kPoolToHbm, extents);
  const auto flow = [this, npu, direction, extents, path, &slot, &flowing] {
    flowing.done();
    impl_->start_streams(npu, direction, extents, path.bandwidth.value);
    slot.done();
    wake();
  };
  if (path.latency.value > 0)
    impl_->engine.after(path.latency, flow);
  else
    flow();
}

void Machine::copy_is_demand(int npu, Direction direction) {
  CopySlot& slot = impl_->npu(npu).copies[static_cast<int>(direction)];
  const double weight = impl_->hardware.priority.demand;
  if (slot.weight == weight) return;
  slot.weight = weight;
  for (std::size_t s = 0; s < slot.running; ++s)
    impl_->engine.set_weight(slot.streams[s], weight * slot.shares[s]);
}

bool Machine::copy_takes_time(Direction direction, Bytes bytes) const {
  const Hardware& h = impl_->hardware;
  const bool read = direction == Direction::kPoolToHbm;
  return bytes > Bytes(0) || pool_path(h, read, false).latency.value > 0;
}

std::string Machine::waits_for_ranks(int npu, EngineId engine) const {
  const EngineSlot& slot = impl_->npu(npu).engines[engine.index()];
  return slot.pending > 0 && slot.collective >= 0 ? impl_->collectives.missing(slot.collective, slot) : "";
}

void Machine::on_instant(std::function<void()> callback) { impl_->engine.on_instant(std::move(callback)); }

void Machine::after(Seconds delay, Completion& over) {
  impl_->engine.after(delay, [this, &over] {
    over.done();
    wake();
  });
}

void Machine::wake() { impl_->engine.wake(); }

void Machine::run() { impl_->engine.run(); }

}  // namespace hyperoffload
