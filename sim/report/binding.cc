#include "sim/report/binding.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/report/human.h"

namespace hyperoffload {
namespace {

struct Side {
  const LinkUse& use;
  const LinkDirection& link;
  const char* name;      // "pool -> HBM"
  const char* resource;  // when its bandwidth binds
  const char* shared;    // when what it shares with others does
  bool read;
};

// Of what all NPUs share, that which leaves each the least; empty: nothing does that the link itself wouldn't.
std::string narrowest_shared(const Hardware& hardware, bool read) {
  const auto widens = [&](auto&& widen) {
    Hardware more = hardware;
    widen(more);
    return fair_link(more, read).bandwidth > fair_link(hardware, read).bandwidth;
  };
  const auto twice = [](std::optional<BytesPerSecond>& rate) {
    if (rate) rate = BytesPerSecond(2 * rate->value);
  };
  if (widens([&](Hardware& h) { twice(h.npu_port); })) return "the NPU's port";
  if (widens([&](Hardware& h) { twice(read ? h.pool_read_port : h.pool_write_port); })) return "the pool's port";
  if (widens([&](Hardware& h) { twice(h.socket_port); })) return "the sockets' ports";
  if (widens([&](Hardware& h) { twice(h.socket_memory); })) return "the sockets' memory";
  if (!hardware.nodes) return "";
  if (widens([&](Hardware& h) { twice(h.nodes->first_level); })) return "the node's switches";
  if (widens([&](Hardware& h) { twice(h.nodes->second_level); })) return "the node's uplink";
  return "";
}

// The bandwidth that was there for it, and who else used it.
std::string had(const Side& side, const Hardware& hardware, BytesPerSecond got) {
  std::string text = fmt::format("its link has {}, of which it got {}", human_rate(side.link.bandwidth), human_rate(got));
  if (const std::string narrow = narrowest_shared(hardware, side.read); !narrow.empty())
    return text + fmt::format(": {} give{} each NPU {} when all copy", narrow, narrow.back() == 's' ? "" : "s",
                              human_rate(fair_link(hardware, side.read).bandwidth));
  return text + ": collectives, other NPUs or kernels use ports, switches or HBM that it crosses";
}

Binding bandwidth_binds(const Side& side, const NpuFigures& f, const Hardware& hardware) {
  Binding binding;
  binding.resource = side.resource;
  const BytesPerSecond got(side.use.carrying > Seconds(0)
                               ? static_cast<double>(side.use.bytes.value) / side.use.carrying.value
                               : side.link.bandwidth.value);
  const bool shared = got.value < 0.99 * side.link.bandwidth.value;
  if (shared) binding.resource = side.shared;
  binding.sentence = fmt::format(
      "{} bandwidth{} binds: that link is busy {} of the iteration and takes {} for its {}, "
      "against {} of the ideal iteration",
      side.name, shared ? " that is shared" : "", human_percent(side.use.utilisation), human_time(side.use.busy), human_bytes(side.use.bytes),
      human_time(f.ideal));
  const Seconds room = f.ideal - (side.use.busy - side.use.carrying);
  if (room <= Seconds(0)) {
    binding.resource = "link_latency";
    binding.sentence += fmt::format("; the latency of its {} transfers alone fills that", side.use.transfers);
    return binding;
  }
  binding.needed = BytesPerSecond(static_cast<double>(side.use.bytes.value) / room.value);
  binding.sentence += fmt::format("; to carry the same in that time it would take at least {}, ", human_rate(*binding.needed)) +
                      (shared ? had(side, hardware, got) : "it has " + human_rate(side.link.bandwidth));
  return binding;
}

Binding late_transfers_bind(const NpuFigures& f) {
  const LateTransfer& late = f.late_transfer;
  const std::pair<Seconds, int> reasons[] = {
      {late.carrying + late.link_busy, 0}, {late.latency, 1}, {late.room, 2}, {late.held_back, 3}};
  const int reason =
      std::max_element(std::begin(reasons), std::end(reasons), [](const auto& a, const auto& b) {
        return a.first < b.first;
      })->second;
  const std::string waits = fmt::format("ops wait {} for transfers", human_time(f.stalls.late_transfer));
  const std::string links =
      fmt::format("pool -> HBM is busy {} of the iteration, HBM -> pool {}",
                  human_percent(f.pool_to_hbm.utilisation), human_percent(f.hbm_to_pool.utilisation));
  switch (reason) {
    case 0:
      return {
          "overlap",
          {},
          fmt::format("too little overlap binds: {} that are under way or queued, while {}; a faster link or more HBM shortens "
                      "that (`hyperoffload ask bandwidth` and `ask hbm` find how much)", waits, links)};
    case 1:
      return {"link_latency",
              {},
              fmt::format("link latency binds: {}, {} of it latency; {}", waits, human_time(late.latency),
                          links)};
    case 2:
      return {
          "hbm_capacity",
          {},
          fmt::format("capacity binds: {}, which wait {} for room; {}", waits, human_time(late.room), links)};
    default:
      return {"transfer_order",
              {},
              fmt::format("the order of transfers binds: {}, {} of it before they may start; {}", waits,
                          human_time(late.held_back), links)};
  }
}

}  // namespace

Binding binding_of(const NpuFigures& f, const Hardware& hardware, bool changed) {
  if (f.stall.value <= 1e-9 * f.ideal.value) {
    const Seconds busy = f.pool_to_hbm.busy + f.hbm_to_pool.busy;
    if (busy == Seconds(0))
      return {"none", {}, "nothing binds: the iteration takes its ideal time without transfers"};
    return {
        "none",
        {},
        fmt::format(
            "nothing binds: the iteration takes its ideal time and hides all its transfers; pool -> HBM is "
            "busy {} of it, HBM -> pool {}",
            human_percent(f.pool_to_hbm.utilisation), human_percent(f.hbm_to_pool.utilisation))};
  }
  const Side sides[] = {{f.pool_to_hbm, hardware.link_read, "pool -> HBM", "pool_to_hbm_bandwidth",
                         "pool_to_hbm_share", true},
                        {f.hbm_to_pool, hardware.link_write, "HBM -> pool", "hbm_to_pool_bandwidth",
                         "hbm_to_pool_share", false}};
  const Side& busier = f.hbm_to_pool.busy > f.pool_to_hbm.busy ? sides[1] : sides[0];
  if ((busier.use.busy - f.ideal) * 2 >= f.stall) return bandwidth_binds(busier, f, hardware);

  const StallCauses& s = f.stalls;
  const Seconds room = s.no_room + s.input_room;
  const Seconds largest = std::max({s.late_transfer, room, s.hbm_contention, s.fabric_contention, s.host, s.other});
  if (largest == s.late_transfer) return late_transfers_bind(f);
  if (largest == room)
    return {"hbm_capacity", {}, fmt::format("capacity binds: ops wait {} for room", human_time(room))};
  if (largest == s.hbm_contention)
    return {"hbm_bandwidth",
            {},
            fmt::format(
                "HBM bandwidth binds: ops run {} longer than ideally because copies and other ops use it too",
                human_time(s.hbm_contention))};
  if (largest == s.fabric_contention)
    return {"fabric_bandwidth",
            {},
            fmt::format("the fabric binds: collectives run {} longer than ideally because transfers and other collectives "
                        "use their ports, switches or HBM too",
                        human_time(s.fabric_contention))};
  if (largest == s.host)
    return {"host", {}, fmt::format("the host binds: ops wait {} for what it decides", human_time(s.host))};
  if (changed)
    return {"program",
            {},
            fmt::format("the changed program binds: its own ops, such as those computed again, account for {}",
                        human_time(s.other))};
  return {"engines",
          {},
          fmt::format("the order of ops on several engines binds: it accounts for {}", human_time(s.other))};
}

}  // namespace hyperoffload
