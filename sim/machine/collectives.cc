#include "sim/machine/collectives.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "sim/model/check.h"
#include "sim/model/error.h"

namespace hyperoffload {
namespace {

bool is_message(const Op& op) {
  const auto kind = collective_kind(op.collective->kind);
  return kind == CollectiveKind::kSend || kind == CollectiveKind::kRecv;
}

// What one rank gives and takes, for a rank that stands for all of its group.
struct OwnPart {
  double out = 0, in = 0;         // bytes
  int out_hops = 0, in_hops = 0;  // streams at once
  int steps = 0;
};

OwnPart own_part(const Op& op, CollectiveAlgorithm algorithm, int ranks, int place) {
  const CollectiveKind kind = *collective_kind(op.collective->kind);
  OwnPart part;
  // Of two ranks or of a ring each is like the first; direct: as many streams as there are others.
  const bool pairs = algorithm == CollectiveAlgorithm::kDirect && kind != CollectiveKind::kBroadcast;
  const CollectiveFlows flows = collective_flows(kind, algorithm, op.collective->bytes, pairs ? 2 : ranks);
  part.steps = flows.steps;
  if (kind == CollectiveKind::kSend || kind == CollectiveKind::kRecv) {
    (kind == CollectiveKind::kSend ? part.out : part.in) = flows.hops[0].bytes;
    (kind == CollectiveKind::kSend ? part.out_hops : part.in_hops) = 1;
  } else if (pairs) {
    part.out = part.in = flows.hops[0].bytes * 2 / ranks * (ranks - 1);
    part.out_hops = part.in_hops = ranks - 1;
  } else {
    for (const Hop& hop : flows.hops) {
      if (hop.from == place) part.out += hop.bytes, ++part.out_hops;
      if (hop.to == place) part.in += hop.bytes, ++part.in_hops;
    }
  }
  return part;
}

}  // namespace

void start_flow(EventEngine& engine, Flow& flow, const End& from, const End& to, double bytes, double cap,
                double weight, Completion& over) {
  const double least = std::min(from.up, to.down);
  if (least < std::numeric_limits<double>::infinity())
    return engine.start(flow, from.host, to.host, bytes, cap, least, weight, over);
  engine.after(Seconds(bytes / cap), [&engine, &over] {
    over.done();
    engine.wake();
  });
}

bool reaches_beyond(const Group& group, const Hardware& hardware) {
  const int world = hardware.npu_count;
  if (hardware.stands_for > 1) return true;
  if (!group.ranks.empty()) return *std::max_element(group.ranks.begin(), group.ranks.end()) >= world;
  const std::int64_t set = std::int64_t{group.size} * group.stride;
  return group.size > 0 && world % set != 0;
}

void Collectives::Meeting::done() {
  if (--pending > 0) return;
  const std::vector<Completion*> told = std::move(waiting);
  waiting.clear();
  free = true;  // to be used again from the next instant's callback on, not before
  for (Completion* over : told) over->done();
}

int Collectives::party_of(const std::vector<int>& ranks, int channel) {
  const auto [it, fresh] = parties_by_ranks_.try_emplace({channel, ranks}, static_cast<int>(parties_.size()));
  if (fresh) {
    parties_.emplace_back();
    parties_.back().ranks = ranks;
    parties_.back().joined.assign(ranks.size(), 0);
  }
  return it->second;
}

Collectives::Place Collectives::place_of(int npu, const Op& op) {
  const auto known = places_.find({&op, npu});
  if (known != places_.end()) return known->second;
  Place place;
  place.group = &op.collective->members;
  std::vector<int> ranks = members_of(*place.group, npu, ranks_of(hardware_));
  const auto at = std::find(ranks.begin(), ranks.end(), npu);
  place.index = static_cast<int>(at - ranks.begin());
  const bool present =
      std::all_of(ranks.begin(), ranks.end(), [&](int r) { return r < hardware_.npu_count; });
  if (ranks.size() > 1 && present && is_message(op)) {
    if (traces_) {
      const bool sends = collective_kind(op.collective->kind) == CollectiveKind::kSend;
      const auto size = static_cast<int>(ranks.size());
      const int peer = ranks[static_cast<std::size_t>((place.index + (sends ? 1 : size - 1)) % size)];
      place.party = party_of(sends ? std::vector<int>{npu, peer} : std::vector<int>{peer, npu}, 1);
      place.index = sends ? 0 : 1;
    }
  } else if (ranks.size() > 1 && present) {
    place.party = party_of(ranks, 0);
  }
  places_.emplace(std::pair{&op, npu}, place);
  return place;
}

bool Collectives::takes_time(int npu, const Op& op) {
  if (place_of(npu, op).party >= 0) return true;
  return collective_alone(*op.collective, hardware_, npu, !op.hbm_bytes).value > 0;
}

int Collectives::open_meeting(const Op& op, const std::vector<int>& ranks) {
  const auto unused =
      std::find_if(meetings_.begin(), meetings_.end(), [](const Meeting& m) { return m.free; });
  const auto number = static_cast<int>(unused - meetings_.begin());
  if (unused == meetings_.end()) meetings_.emplace_back();
  Meeting& meeting = meetings_[static_cast<std::size_t>(number)];
  meeting.free = false;
  meeting.op = &op;
  meeting.ranks = ranks;
  meeting.here.assign(ranks.size(), 0);
  meeting.arrived = 0;
  return number;
}

void Collectives::check_same(const Op& first, const Op& op, int npu) const {
  const bool kinds =
      is_message(op) || collective_kind(first.collective->kind) == collective_kind(op.collective->kind);
  if (kinds && first.collective->bytes == op.collective->bytes) return;
  throw InputError(fmt::format("op \"{}\" of rank {}", op.name, npu),
                   fmt::format("{} of {} B where others of its group come to \"{}\", {} of {} B",
                               op.collective->kind, op.collective->bytes.value, first.name,
                               first.collective->kind, first.collective->bytes.value),
                   "the same collectives in the same order at all ranks of a group");
}

int Collectives::join(int npu, const Op& op, Completion& over) {
  const Place place = place_of(npu, op);
  if (place.party < 0) {
    const int number = open_meeting(op, {});
    Meeting& meeting = meetings_[static_cast<std::size_t>(number)];
    meeting.waiting.push_back(&over);
    start_alone(meeting, npu, op);
    return number;
  }
  Party& party = parties_[static_cast<std::size_t>(place.party)];
  const std::int64_t which = party.joined[static_cast<std::size_t>(place.index)]++;
  while (party.first + static_cast<std::int64_t>(party.meetings.size()) <= which)
    party.meetings.push_back(open_meeting(op, party.ranks));
  const int number = party.meetings[static_cast<std::size_t>(which - party.first)];
  Meeting& meeting = meetings_[static_cast<std::size_t>(number)];
  check_same(*meeting.op, op, npu);
  meeting.here[static_cast<std::size_t>(place.index)] = 1;
  meeting.waiting.push_back(&over);
  if (++meeting.arrived == party.ranks.size()) {
    party.meetings.pop_front();  // ranks come in order: it is the oldest
    ++party.first;
    start(meeting);
  }
  return number;
}

void Collectives::start(Meeting& meeting) {
  const Op& op = *meeting.op;
  const CollectiveFlows flows =
      collective_flows(*collective_kind(op.collective->kind), algorithm_of(hardware_, op.collective->kind),
                       op.collective->bytes, static_cast<int>(meeting.ranks.size()));
  Seconds latency;
  for (const Hop& hop : flows.hops)
    latency = std::max(latency, peer_path(hardware_, reach_between(hardware_, meeting.ranks[hop.from],
                                                                   meeting.ranks[hop.to]))
                                    .latency);
  meeting.pending = 1;  // the latencies
  const auto stream = [this, &meeting, hops = flows.hops, hbm = !op.hbm_bytes] {
    meeting.streams.resize(hops.size());
    for (std::size_t h = 0; h < hops.size(); ++h) {
      if (hops[h].bytes <= 0) continue;
      const int from = meeting.ranks[static_cast<std::size_t>(hops[h].from)];
      const int to = meeting.ranks[static_cast<std::size_t>(hops[h].to)];
      const Reach reach = reach_between(hardware_, from, to);
      ++meeting.pending;
      start_flow(engine_, meeting.streams[h], platform_.npu(from, reach, hbm), platform_.npu(to, reach, hbm),
                 hops[h].bytes, peer_path(hardware_, reach).bandwidth.value, 1, meeting);
    }
    meeting.done();
    engine_.wake();
  };
  const Seconds all = latency * flows.steps;
  if (all.value > 0)
    engine_.after(all, stream);
  else
    stream();
}

// A rank that stands for its whole group, or one side of a message.
void Collectives::start_alone(Meeting& meeting, int npu, const Op& op) {
  const std::vector<int> ranks = members_of(op.collective->members, npu, ranks_of(hardware_));
  const int size = static_cast<int>(ranks.size());
  const auto at = static_cast<int>(std::find(ranks.begin(), ranks.end(), npu) - ranks.begin());
  const CollectiveAlgorithm algorithm = algorithm_of(hardware_, op.collective->kind);
  const OwnPart part = own_part(op, algorithm, size, at);
  const bool ring = algorithm == CollectiveAlgorithm::kRing || is_message(op);
  Reach worst = Reach::kPackage;
  for (int i = 0; i < size; ++i) {
    if (i == at || (ring && i != (at + 1) % size && i != (at + size - 1) % size)) continue;
    worst = std::max(worst, reach_between(hardware_, npu, ranks[static_cast<std::size_t>(i)]));
  }
  const LinkDirection path = peer_path(hardware_, worst);
  meeting.pending = 1;
  const auto stream = [this, &meeting, npu, part, worst, path, hbm = !op.hbm_bytes] {
    meeting.streams.resize(2);
    const auto one = [&](std::size_t i, const End& from, const End& to, double bytes, int hops) {
      if (bytes <= 0) return;
      ++meeting.pending;
      start_flow(engine_, meeting.streams[i], from, to, bytes, path.bandwidth.value * hops, hops, meeting);
    };
    if (part.out == part.in && part.out_hops == part.in_hops && part.out > 0) {
      const Platform::Self& self = platform_.self(npu, worst, hbm);
      one(0, self.from, self.to, part.out, part.out_hops);
    } else {
      one(0, platform_.npu(npu, worst, hbm), platform_.nowhere(), part.out, part.out_hops);
      one(1, platform_.nowhere(), platform_.npu(npu, worst, hbm), part.in, part.in_hops);
    }
    meeting.done();
    engine_.wake();
  };
  const Seconds all = path.latency * part.steps;
  if (all.value > 0)
    engine_.after(all, stream);
  else
    stream();
}

std::string Collectives::missing(int number, const Completion& over) const {
  const Meeting& meeting = meetings_[static_cast<std::size_t>(number)];
  if (std::find(meeting.waiting.begin(), meeting.waiting.end(), &over) == meeting.waiting.end()) return "";
  std::string text;
  int count = 0;
  for (std::size_t i = 0; i < meeting.ranks.size(); ++i) {
    if (meeting.here[i]) continue;
    if (++count <= 4) text += fmt::format("{}{}", text.empty() ? "" : ", ", meeting.ranks[i]);
  }
  return count > 4 ? fmt::format("{} and {} others", text, count - 4) : text;
}

}  // namespace hyperoffload
