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

// Indices of the bins that an NPU's allocations may lie in: the first, and how many.
std::pair<std::int64_t, std::int64_t> bins_in_reach(const Hardware& h, const std::vector<Bin>& bins,
                                                    int npu) {
  if (over_all_nodes(h)) return {0, static_cast<std::int64_t>(bins.size())};
  const std::int64_t in_node = std::max<std::int64_t>(1, h.nodes->sockets / bins[0].sockets);
  return {node_of(h, npu) * in_node, in_node};
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
      npus_(static_cast<std::size_t>(hardware.npu_count)),
      capacity_(unlimited ? Bytes::max() : hardware.pool_capacity),
      unlimited_(unlimited) {
  const Spread spread = hardware.placement.spread;
  const bool bounded = hardware.socket_capacity && !unlimited;
  fixed_ = bins_.size() == 1 || (spread != Spread::kLoad && !(spread == Spread::kHash && bounded));
  if (unlimited)
    for (Bin& bin : bins_) bin.capacity = Bytes::max();
  Quota reach;
  if (hardware.nodes)
    reach.capacity = sockets_hold(hardware, spread == Spread::kLocal    ? 1
                                            : over_all_nodes(hardware) ? sockets_in_reach(hardware)
                                                                       : hardware.nodes->sockets);
  const bool one_region = !hardware.nodes || over_all_nodes(hardware);
  const int regions = one_region                 ? 1
                      : spread == Spread::kLocal ? sockets_in_reach(hardware)
                                                 : nodes_in_use(hardware);
  regions_.assign(static_cast<std::size_t>(regions), reach);
  if (!fixed_) build_links();
}

void Pool::hold_to_share(int npu) {
  if (!unlimited_) npus_[static_cast<std::size_t>(npu)].capacity = fair_pool(hardware_);
}

std::size_t Pool::region(int npu) const {
  if (regions_.size() == 1) return 0;
  return static_cast<std::size_t>(hardware_.placement.spread == Spread::kLocal ? local_socket(hardware_, npu)
                                                                               : node_of(hardware_, npu));
}

// Where placement wants it.
Extents Pool::where(const PoolPiece& piece) const {
  const auto bins = static_cast<std::int64_t>(bins_.size());
  const Bytes all = allocated_bytes(hardware_.allocation, piece.bytes), padding = all - piece.bytes;
  if (bins == 1) return {{0, piece.bytes, padding}};
  const Placement& placement = hardware_.placement;
  if (placement.spread == Spread::kLocal)
    return {{local_socket(hardware_, piece.npu), piece.bytes, padding}};
  const auto [first, reach] = bins_in_reach(hardware_, bins_, piece.npu);
  Extents extents;
  if (placement.spread == Spread::kStripe) {
    const auto part = [&, count = reach](Bytes bytes, std::int64_t i) {
      return Bytes(bytes.value / count + (i < bytes.value % count ? 1 : 0));
    };
    for (std::int64_t i = 0; i < reach; ++i)
      extents.push_back(
          {static_cast<int>(first + i), part(piece.bytes, i), part(all, i) - part(piece.bytes, i)});
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
      extents.push_back({static_cast<int>(first + i), parts[static_cast<std::size_t>(i)], Bytes(0)});
  if (!extents.empty()) extents.back().padding = padding;
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

// Block by block, each as if those before it were taken; what no socket has room for whole is wanted at the
// NPU's own.
Extents Pool::by_load(const PoolPiece& piece) {
  Extents blocks;
  const Bytes block = hardware_.placement.block > Bytes(0) ? hardware_.placement.block : piece.bytes;
  for (Bytes left = piece.bytes; left > Bytes(0); left -= std::min(block, left)) {
    const Bytes part = std::min(block, left);
    const int bin = least_loaded(piece.npu, part);
    blocks.push_back({bin >= 0 ? bin : local_socket(hardware_, piece.npu), part, Bytes(0)});
    account(piece.npu, blocks.back(), true);
  }
  Extents extents;
  for (const Extent& e : blocks) {
    account(piece.npu, e, false);
    const auto same =
        std::find_if(extents.begin(), extents.end(), [&](const Extent& other) { return other.bin == e.bin; });
    if (same == extents.end())
      extents.push_back(e);
    else
      same->bytes += e.bytes;
  }
  extents.back().padding = allocated_bytes(hardware_.allocation, piece.bytes) - piece.bytes;
  return extents;
}

// What a socket has no room for goes on to the next ones in reach, in order, as much as each has room for.
void Pool::spill(const PoolPiece& piece, Extents& extents) const {
  const auto room = [&](int bin) {
    const auto b = static_cast<std::size_t>(bin);
    return bins_[b].capacity - taken_[b];
  };
  Bytes bytes, padding;  // without a place
  const int from = extents.front().bin;
  for (Extent& e : extents) {
    const Bytes stays = std::min(e.bytes, room(e.bin));
    bytes += e.bytes - stays;
    e.bytes = stays;
    const Bytes pads = std::min(e.padding, room(e.bin) - e.bytes);
    padding += e.padding - pads;
    e.padding = pads;
  }
  const auto [first, reach] = bins_in_reach(hardware_, bins_, piece.npu);
  for (std::int64_t i = 0; i < reach && bytes + padding > Bytes(0); ++i) {
    const int bin = static_cast<int>(first + (from - first + i) % reach);
    auto here = std::find_if(extents.begin(), extents.end(), [&](const Extent& e) { return e.bin == bin; });
    if (here == extents.end()) here = extents.insert(here, {bin, Bytes(0), Bytes(0)});
    const Bytes goes = std::min(bytes, room(bin) - here->bytes - here->padding);
    here->bytes += goes;
    bytes -= goes;
    const Bytes pads = std::min(padding, room(bin) - here->bytes - here->padding);
    here->padding += pads;
    padding -= pads;
  }
  HYPER_CHECK(bytes + padding == Bytes(0), "an allocation that fits in the sum finds no sockets");
  std::erase_if(extents, [](const Extent& e) { return e.bytes + e.padding == Bytes(0); });
}

Extents Pool::place(const PoolPiece& piece) {
  if (fixed_ || piece.bytes <= Bytes(0)) return where(piece);
  Extents extents = hardware_.placement.spread == Spread::kHash ? where(piece) : by_load(piece);
  spill(piece, extents);
  return extents;
}

void Pool::account(int npu, const Extent& extent, bool take) {
  Bytes& taken = taken_[static_cast<std::size_t>(extent.bin)];
  const Bytes all = extent.bytes + extent.padding;
  taken = take ? taken + all : taken - all;
  if (links_.empty()) return;
  const auto bytes = static_cast<double>(take ? extent.bytes.value : -extent.bytes.value);
  for (int l : path(npu, extent.bin)) links_[static_cast<std::size_t>(l)].bytes += bytes;
}

Bytes Pool::needs(std::span<const PoolPiece> pieces) const {
  Bytes sum;
  for (const PoolPiece& piece : pieces) sum += allocated_bytes(hardware_.allocation, piece.bytes);
  return sum;
}

Bytes Pool::most_for(int npu) const {
  if (unlimited_) return Bytes::max();
  return std::min({capacity_, npus_[static_cast<std::size_t>(npu)].capacity, regions_[region(npu)].capacity});
}

Bytes Pool::left_for(int npu) const {
  if (unlimited_) return Bytes::max();
  return std::min(
      {capacity_ - used_, npus_[static_cast<std::size_t>(npu)].left(), regions_[region(npu)].left()});
}

bool Pool::fits(std::span<const PoolPiece> pieces) const {
  return pieces.empty() || needs(pieces) <= left_for(pieces.front().npu);
}

Extents Pool::take(const PoolPiece& piece) {
  HYPER_CHECK(fits({&piece, 1}), "taking pool bytes beyond the capacity");
  Extents extents = place(piece);
  for (const Extent& e : extents) account(piece.npu, e, true);
  const Bytes all = allocated_bytes(hardware_.allocation, piece.bytes);
  Quota& mine = npus_[static_cast<std::size_t>(piece.npu)];
  Quota& reach = regions_[region(piece.npu)];
  mine.used += all;
  reach.used += all;
  used_ += all;
  requested_ += piece.bytes;
  peak_ = std::max(peak_, used_);
  requested_peak_ = std::max(requested_peak_, requested_);
  if (unlimited_) exceeded_ = std::max({exceeded_, used_ - hardware_.pool_capacity, -reach.left()});
  return extents;
}

void Pool::give(const PoolPiece& piece, const Extents& extents) {
  HYPER_CHECK(piece.bytes <= requested_, "giving back more pool bytes than were taken");
  for (const Extent& e : extents) account(piece.npu, e, false);
  const Bytes all = allocated_bytes(hardware_.allocation, piece.bytes);
  npus_[static_cast<std::size_t>(piece.npu)].used -= all;
  regions_[region(piece.npu)].used -= all;
  used_ -= all;
  requested_ -= piece.bytes;
  if (piece.bytes > Bytes(0)) ++gives_;
}

std::string Pool::shortage(const PoolPiece& piece) const {
  const Bytes all = allocated_bytes(hardware_.allocation, piece.bytes);
  const Quota& mine = npus_[static_cast<std::size_t>(piece.npu)];
  const std::size_t here = region(piece.npu);
  if (all > capacity_ - used_) return fmt::format("the pool is short of {} B", (all - capacity_ + used_).value);
  if (all > mine.left())
    return fmt::format("NPU {}'s share of the pool is short of {} B", piece.npu, (all - mine.left()).value);
  const std::int64_t lacks = (all - regions_[here].left()).value;
  if (hardware_.placement.spread != Spread::kLocal || !hardware_.nodes)
    return fmt::format("the pool's sockets of node {} are short of {} B", here, lacks);
  const auto sockets = static_cast<std::size_t>(hardware_.nodes->sockets);
  return fmt::format("the pool's socket {} of node {} is short of {} B", here, here / sockets, lacks);
}

}  // namespace hyperoffload
