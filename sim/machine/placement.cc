#include "sim/machine/placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <tuple>

#include "sim/model/check.h"

namespace hyperoffload {
namespace {

std::uint64_t mixed(std::uint64_t z) {  // splitmix64
  z += 0x9e3779b97f4a7c15ULL;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

bool over_all_nodes(const Hardware& h) {
  return h.placement.supernode && h.placement.spread != Spread::kLocal;
}

}  // namespace

std::vector<Bin> pool_bins(const Hardware& h, bool fold) {
  if (!h.nodes) return {{0, 1, 0, h.pool_capacity}};
  const Nodes& nodes = *h.nodes;
  const int reach = sockets_in_reach(h);
  const bool stripe = fold && h.placement.spread == Spread::kStripe;
  if (stripe && over_all_nodes(h) && !nodes.first_level && !nodes.second_level)
    return {{nodes.count == 1 ? 0 : -1, reach, 0, sockets_hold(h, reach)}};
  std::vector<Bin> bins;
  const int step = stripe ? nodes.sockets : 1;
  for (int s = 0; s < reach; s += step) bins.push_back({s / nodes.sockets, step, s, sockets_hold(h, step)});
  return bins;
}

Pool::Pool(const Hardware& hardware, bool fold, bool unlimited)
    : hardware_(hardware),
      bins_(pool_bins(hardware, fold)),
      taken_(bins_.size()),
      capacity_(unlimited ? Bytes::max() : hardware.pool_capacity) {
  if (unlimited) {
    for (Bin& bin : bins_) bin.capacity = Bytes::max();
    hardware_.allocation = {};
  }
  if (!fixed()) build_links();
}

Extents Pool::where(const PoolPiece& piece) const {
  const auto bins = static_cast<std::int64_t>(bins_.size());
  if (bins == 1) return {{0, piece.bytes}};
  const Placement& placement = hardware_.placement;
  if (placement.spread == Spread::kLocal) return {{local_socket(hardware_, piece.npu), piece.bytes}};
  const bool all = over_all_nodes(hardware_);
  const std::int64_t in_node = std::max<std::int64_t>(1, hardware_.nodes->sockets / bins_[0].sockets);
  const std::int64_t reach = all ? bins : in_node;
  const auto first = static_cast<std::int64_t>(all ? 0 : node_of(hardware_, piece.npu) * in_node);
  Extents extents;
  if (placement.spread == Spread::kStripe) {
    for (std::int64_t i = 0; i < reach; ++i) {
      const Bytes part(piece.bytes.value / reach + (i < piece.bytes.value % reach ? 1 : 0));
      extents.push_back({static_cast<int>(first + i), part});
    }
    return extents;
  }
  std::vector<Bytes> parts(static_cast<std::size_t>(reach));
  const std::int64_t block = placement.block.value, to = piece.from.value + piece.bytes.value;
  for (std::int64_t at = piece.from.value; at < to;) {
    const std::int64_t next = std::min(to, (at / block + 1) * block);
    const std::uint64_t key = mixed(mixed(mixed(static_cast<std::uint64_t>(piece.npu)) ^
                                          static_cast<std::uint64_t>(piece.tensor.value + 1)) ^
                                    static_cast<std::uint64_t>(at / block));
    parts[key % static_cast<std::uint64_t>(reach)] += Bytes(next - at);
    at = next;
  }
  for (std::int64_t i = 0; i < reach; ++i)
    if (parts[static_cast<std::size_t>(i)] > Bytes(0))
      extents.push_back({static_cast<int>(first + i), parts[static_cast<std::size_t>(i)]});
  return extents;
}

// Links that an allocation's traffic loads: per socket its memory and port, per node its uplink and its
// switches; those that are not declared have no bandwidth to speak of and count nothing.
void Pool::build_links() {
  const double none = std::numeric_limits<double>::infinity();
  const auto add = [&](const std::optional<BytesPerSecond>& bandwidth) {
    links_.push_back({bandwidth ? bandwidth->value : none, 0});
  };
  for (std::size_t b = 0; b < bins_.size(); ++b) {
    add(hardware_.socket_port);
    add(hardware_.socket_memory);
  }
  const int nodes = std::max(nodes_in_use(hardware_), bins_.back().node + 1);
  for (int n = 0; n < nodes; ++n) {
    add(hardware_.nodes->second_level);
    add(hardware_.nodes->first_level);
  }
}

std::vector<int> Pool::path(int npu, int bin) const {
  std::vector<int> links = {2 * bin, 2 * bin + 1};
  const int base = 2 * static_cast<int>(bins_.size());
  const int there = bins_[static_cast<std::size_t>(bin)].node, here = node_of(hardware_, npu);
  links.push_back(base + 2 * there + 1);
  if (here != there) links.insert(links.end(), {base + 2 * there, base + 2 * here, base + 2 * here + 1});
  return links;
}

// The bin after which busiest link (as a multiple of the time an even spread would take) plus fullest socket
// (as a share) are lowest; ties go to the less loaded path, the emptier socket, the nearer one, the lower
// index.
int Pool::least_loaded(int npu, Bytes bytes) const {
  double busiest = 0, fullest = 0, all = static_cast<double>(bytes.value), ports = 0;
  for (const Link& link : links_) busiest = std::max(busiest, link.bytes / link.bandwidth);
  for (std::size_t b = 0; b < bins_.size(); ++b) {
    fullest = std::max(fullest,
                       static_cast<double>(taken_[b].value) / static_cast<double>(bins_[b].capacity.value));
    all += static_cast<double>(taken_[b].value);
    ports += hardware_.socket_port ? hardware_.socket_port->value : 1;
  }
  const int here = node_of(hardware_, npu);
  const bool every_node = over_all_nodes(hardware_);
  std::tuple<double, double, double, int, int> best{std::numeric_limits<double>::infinity(), 0, 0, 0, 0};
  int chosen = -1;
  for (std::size_t b = 0; b < bins_.size(); ++b) {
    if (!every_node && bins_[b].node != here) continue;
    if (bytes > bins_[b].capacity - taken_[b]) continue;
    double load = 0;
    for (int l : path(npu, static_cast<int>(b))) {
      const Link& link = links_[static_cast<std::size_t>(l)];
      load = std::max(load, (link.bytes + static_cast<double>(bytes.value)) / link.bandwidth);
    }
    const double fill =
        static_cast<double>((taken_[b] + bytes).value) / static_cast<double>(bins_[b].capacity.value);
    const double even = all / ports;
    const double score = (even > 0 ? std::max(busiest, load) / even : 0) + std::max(fullest, fill);
    const std::tuple key{score, load, fill, bins_[b].node == here ? 0 : 1, static_cast<int>(b)};
    if (chosen >= 0 && key >= best) continue;
    best = key;
    chosen = static_cast<int>(b);
  }
  return chosen;
}

// Empty: no room. Block by block, each as if those before it were taken.
Extents Pool::place(const PoolPiece& piece) {
  if (fixed() || piece.bytes <= Bytes(0)) return where(piece);
  Extents blocks, extents;
  const Bytes block = hardware_.placement.block > Bytes(0) ? hardware_.placement.block : piece.bytes;
  const auto account_block = [&](const Extent& e, bool take) {
    account({piece.npu, piece.tensor, piece.from, e.bytes}, {e}, take);
  };
  for (Bytes left = piece.bytes; left > Bytes(0) && (blocks.empty() || blocks.back().bin >= 0);) {
    const Bytes part = std::min(block, left);
    blocks.push_back({least_loaded(piece.npu, allocated_bytes(hardware_.allocation, part)), part});
    if (blocks.back().bin >= 0) account_block(blocks.back(), true);
    left -= part;
  }
  const bool room = blocks.back().bin >= 0;
  for (const Extent& e : blocks) {
    if (e.bin < 0) continue;
    account_block(e, false);
    const auto same =
        std::find_if(extents.begin(), extents.end(), [&](const Extent& other) { return other.bin == e.bin; });
    if (same == extents.end())
      extents.push_back(e);
    else
      same->bytes += e.bytes;
  }
  return room ? extents : Extents{};
}

void Pool::for_each_taken(const PoolPiece& piece, const Extents& extents,
                          const std::function<void(const Extent&)>& visit) const {
  const Bytes all = allocated_bytes(hardware_.allocation, piece.bytes);
  Bytes more = all - piece.bytes;
  if (more <= Bytes(0)) {
    for (const Extent& extent : extents) visit(extent);
    return;
  }
  // What rounding adds is spread like the rest: evenly over stripes, else by the bytes there.
  for (std::size_t i = 0; i < extents.size(); ++i) {
    const auto share = static_cast<std::int64_t>(
        static_cast<double>(all.value - piece.bytes.value) *
        (static_cast<double>(extents[i].bytes.value) / static_cast<double>(piece.bytes.value)));
    const Bytes part = i + 1 == extents.size() ? more : std::min(more, Bytes(share));
    more -= part;
    visit({extents[i].bin, extents[i].bytes + part});
  }
}

bool Pool::room_for(const PoolPiece& piece, const Extents& extents) const {
  if (piece.bytes <= Bytes(0)) return true;
  if (extents.empty() || allocated_bytes(hardware_.allocation, piece.bytes) > capacity_ - used_) return false;
  bool room = true;
  for_each_taken(piece, extents, [&](const Extent& e) {
    const auto bin = static_cast<std::size_t>(e.bin);
    room &= e.bytes <= bins_[bin].capacity - taken_[bin];
  });
  return room;
}

void Pool::account(const PoolPiece& piece, const Extents& extents, bool take) {
  const Bytes all = allocated_bytes(hardware_.allocation, piece.bytes);
  used_ = take ? used_ + all : used_ - all;
  requested_ = take ? requested_ + piece.bytes : requested_ - piece.bytes;
  for_each_taken(piece, extents, [&](const Extent& e) {
    Bytes& taken = taken_[static_cast<std::size_t>(e.bin)];
    taken = take ? taken + e.bytes : taken - e.bytes;
  });
  if (fixed()) return;
  for (const Extent& e : extents)
    for (int l : path(piece.npu, e.bin))
      links_[static_cast<std::size_t>(l)].bytes += static_cast<double>(take ? e.bytes.value : -e.bytes.value);
}

bool Pool::fits(std::span<const PoolPiece> pieces) {
  Extents extents;
  if (pieces.size() == 1) return room_for(pieces[0], place(pieces[0]));
  std::vector<Extents> placed;
  bool room = true;
  for (const PoolPiece& piece : pieces) {
    extents = place(piece);
    if (!(room = room_for(piece, extents))) break;
    account(piece, extents, true);
    placed.push_back(extents);
  }
  for (std::size_t i = placed.size(); i-- > 0;) account(pieces[i], placed[i], false);
  return room;
}

Extents Pool::take(const PoolPiece& piece) {
  Extents extents = place(piece);
  HYPER_CHECK(room_for(piece, extents), "taking pool bytes beyond the capacity");
  account(piece, extents, true);
  peak_ = std::max(peak_, used_);
  requested_peak_ = std::max(requested_peak_, requested_);
  return extents;
}

void Pool::give(const PoolPiece& piece, const Extents& extents) {
  HYPER_CHECK(piece.bytes <= requested_, "giving back more pool bytes than were taken");
  account(piece, extents, false);
  if (piece.bytes > Bytes(0)) ++gives_;
}

std::string Pool::shortage(const PoolPiece& piece) {
  const Bytes all = allocated_bytes(hardware_.allocation, piece.bytes), left = capacity_ - used_;
  if (all > left) return fmt::format("the pool is short of {} B", (all - left).value);
  for (const Extent& e : where(piece)) {
    const Bin& bin = bins_[static_cast<std::size_t>(e.bin)];
    const Bytes room = bin.capacity - taken_[static_cast<std::size_t>(e.bin)];
    if (e.bytes <= room) continue;
    return fmt::format("the pool's socket{} {} of node {} {} short of {} B", bin.sockets > 1 ? "s from" : "",
                       bin.first_socket, bin.node, bin.sockets > 1 ? "are" : "is", (e.bytes - room).value);
  }
  return "no socket of the pool has room for it";
}

}  // namespace hyperoffload
