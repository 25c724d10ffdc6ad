// Where bytes lie in the pool, what they take there, and what that does to copies.
#include "sim/machine/placement.h"

#include "sim/model/error.h"
#include "test/machine/copies.h"

using namespace hyperoffload;
using namespace hyperoffload::copies;

namespace {

// Two nodes of two NPUs and two sockets each; sockets of 1000 B.
Hardware two_nodes(Spread spread, bool supernode = false) {
  Hardware h = machine();
  h.npu_count = 4;
  h.nodes = Nodes{};
  h.nodes->count = 2;
  h.nodes->npus = h.nodes->sockets = 2;
  h.socket_capacity = Bytes(1000);
  h.placement = {spread, supernode, Bytes(100)};
  h.pool_capacity = Bytes(4000);
  return h;
}

std::vector<std::int64_t> lying(const Extents& extents, std::size_t bins) {
  std::vector<std::int64_t> bytes(bins);
  for (const Extent& e : extents) bytes[static_cast<std::size_t>(e.bin)] += e.bytes.value;
  return bytes;
}

std::vector<std::int64_t> lying(const Hardware& h, const PoolPiece& piece) {
  const Pool pool(h, false, false);
  return lying(pool.where(piece), pool.bins().size());
}

PoolPiece piece(int npu, std::int64_t bytes, int tensor = 0, std::int64_t from = 0) {
  return {npu, TensorId(tensor), Bytes(from), Bytes(bytes)};
}

bool takes(Pool& pool, const PoolPiece& p) {
  const bool fits = pool.fits(std::vector<PoolPiece>{p});
  if (fits) pool.take(p);
  return fits;
}

}  // namespace

TEST_CASE("local bytes lie on the NPU's own socket, striped ones on all in reach") {
  using List = std::vector<std::int64_t>;
  CHECK(lying(two_nodes(Spread::kLocal), piece(1, 90)) == List{0, 90, 0, 0});
  CHECK(lying(two_nodes(Spread::kLocal), piece(2, 90)) == List{0, 0, 90, 0});
  CHECK(lying(two_nodes(Spread::kStripe), piece(0, 91)) == List{46, 45, 0, 0});
  CHECK(lying(two_nodes(Spread::kStripe), piece(3, 91)) == List{0, 0, 46, 45});
  CHECK(lying(two_nodes(Spread::kStripe, true), piece(3, 90)) == List{23, 23, 22, 22});
}

TEST_CASE("hashed blocks spread over the sockets in reach, the same every time, whole blocks together") {
  const Hardware h = two_nodes(Spread::kHash, true);
  const auto bytes = lying(h, piece(0, 40'000));
  CHECK(bytes == lying(h, piece(0, 40'000)));
  for (std::int64_t b : bytes) {
    CHECK(b % 100 == 0);
    CHECK(b > 7'000);  // 100 of 400 blocks, give or take 3 standard deviations of 8.7
    CHECK(b < 13'000);
  }
  CHECK(bytes != lying(h, piece(1, 40'000)));
  CHECK(bytes != lying(h, piece(0, 40'000, 1)));
  // A piece of the tensor lies where its blocks do.
  const auto head = lying(h, piece(0, 150)), tail = lying(h, piece(0, 39'850, 0, 150));
  for (std::size_t b = 0; b < 4; ++b) CHECK(head[b] + tail[b] == bytes[b]);
  const auto near = lying(two_nodes(Spread::kHash), piece(0, 40'000));
  CHECK(near[2] + near[3] == 0);
}

TEST_CASE("a socket's capacity is hard, however empty the others are") {
  Pool local(two_nodes(Spread::kLocal), true, false);
  CHECK(takes(local, piece(0, 1000)));
  CHECK_FALSE(takes(local, piece(0, 1)));
  CHECK(local.shortage(piece(0, 1)) == "the pool's socket 0 of node 0 is short of 1 B");
  CHECK(takes(local, piece(1, 1000)));
  Pool striped(two_nodes(Spread::kStripe), true, false);
  CHECK(striped.bins().size() == 2);
  CHECK(takes(striped, piece(0, 2000)));
  CHECK_FALSE(takes(striped, piece(1, 2)));
  CHECK(takes(striped, piece(2, 2000)));
  CHECK_FALSE(takes(striped, piece(2, 2)));
  CHECK(striped.shortage(piece(2, 2)) == "the pool is short of 2 B");
}

TEST_CASE("what does not fit together is not taken in part") {
  for (const Spread spread : {Spread::kLocal, Spread::kStripe, Spread::kHash, Spread::kLoad}) {
    INFO(to_string(spread));
    Pool pool(two_nodes(spread), true, false);
    CHECK_FALSE(pool.fits(std::vector<PoolPiece>{piece(0, 900), piece(0, 900, 1), piece(0, 900, 2)}));
    CHECK(pool.used() == Bytes(0));
    for (std::size_t b = 0; b < pool.bins().size(); ++b) CHECK(pool.used_in(b) == Bytes(0));
  }
}

TEST_CASE("taking and giving back leaves nothing behind, with rounding as well") {
  for (const Spread spread : {Spread::kLocal, Spread::kStripe, Spread::kHash, Spread::kLoad}) {
    INFO(to_string(spread));
    Hardware h = two_nodes(spread, true);
    h.allocation = {Bytes(64), true};
    h.socket_capacity = Bytes(100'000);
    h.pool_capacity = Bytes(400'000);
    Pool pool(h, true, false);
    std::vector<Extents> taken;
    for (int i = 0; i < 20; ++i) taken.push_back(pool.take(piece(i % 4, 1 + 97 * i, i)));
    Bytes requested, allocated;
    for (int i = 0; i < 20; ++i) {
      requested += Bytes(1 + 97 * i);
      allocated += allocated_bytes(h.allocation, Bytes(1 + 97 * i));
    }
    CHECK(pool.requested() == requested);
    CHECK(pool.used() == allocated);
    Bytes in_bins;
    for (std::size_t b = 0; b < pool.bins().size(); ++b) in_bins += pool.used_in(b);
    CHECK(in_bins == allocated);
    for (int i = 0; i < 20; ++i) pool.give(piece(i % 4, 1 + 97 * i, i), taken[static_cast<std::size_t>(i)]);
    CHECK(pool.used() == Bytes(0));
    CHECK(pool.requested() == Bytes(0));
    for (std::size_t b = 0; b < pool.bins().size(); ++b) CHECK(pool.used_in(b) == Bytes(0));
  }
}

TEST_CASE("by load, allocations go where the busiest link and the fullest socket end up lowest") {
  Hardware h = two_nodes(Spread::kLoad);
  h.placement.block = Bytes(0);
  h.socket_port = BytesPerSecond(1e9);
  Pool pool(h, true, false);
  // 500 to one socket, 300 and 100 to the other, 100 to whichever is emptier, and so on.
  const auto first = pool.take(piece(0, 500, 0)), second = pool.take(piece(0, 300, 1)),
             third = pool.take(piece(1, 100, 2));
  CHECK(first[0].bin == 0);
  CHECK(second[0].bin == 1);
  CHECK(third[0].bin == 1);
  pool.give(piece(0, 500, 0), first);
  CHECK(pool.take(piece(0, 350, 3))[0].bin == 0);
}

TEST_CASE("on a skewed machine placement by load beats every other") {
  // Two NPUs of node 0 read 10 x 1 GB each, node 1 has only a socket to lend. Sockets of 100 GB/s, links of
  // 100, but the nodes' uplinks carry 30 GB/s. Local or striped over the node: 20 GB through one socket, 0.2
  // s. Striped over the supernode: 10 GB through an uplink of 30, 0.33 s. By load, in blocks: as much abroad
  // as the uplink carries in the time the socket takes for the rest, at best 20 / 130 s.
  Hardware h = machine();
  h.hbm_capacity = 1000_GB;
  h.npu_count = 2;
  h.link_read = h.link_write = {BytesPerSecond(100e9), 0_us};
  h.nodes = Nodes{};
  h.nodes->count = 2;
  h.nodes->npus = 2;
  h.nodes->second_level = BytesPerSecond(30e9);
  h.socket_port = BytesPerSecond(100e9);
  h.socket_capacity = 1000_GB;
  const Trace trace = reads(std::vector<std::int64_t>(10, 1'000'000'000));
  const auto seconds = [&](Spread spread, bool supernode) {
    Hardware placed = h;
    placed.placement = {spread, supernode, Bytes(50'000'000)};
    placed.pool_capacity = Bytes(sockets_in_reach(placed) * h.socket_capacity->value);
    const RunRecord record = run(trace, placed);
    return std::max(transfer_end(record, 0, 9), transfer_end(record, 1, 9));
  };
  const double local = seconds(Spread::kLocal, false), node = seconds(Spread::kStripe, false);
  const double supernode = seconds(Spread::kStripe, true), hashed = seconds(Spread::kHash, true);
  const double load = seconds(Spread::kLoad, true);
  CHECK(local == exactly(20e9 / 100e9));
  CHECK(node == exactly(20e9 / 100e9));
  CHECK(supernode == exactly(10e9 / 30e9));
  CHECK(load >= 20e9 / 130e9);
  CHECK(load < 1.05 * 20e9 / 130e9);
  for (double other : {local, node, supernode, hashed}) CHECK(load < 0.85 * other);
}

TEST_CASE("case 10: a pinned allocator that rounds up to a power of two needs up to twice the bytes") {
  // https://github.com/vllm-project/vllm/issues/56410: 1.05 x 2^k takes 2^(k+1).
  const Allocation power{Bytes(1), true};
  const std::int64_t k = std::int64_t{1} << 30, asked = k + k / 20;
  CHECK(allocated_bytes(power, Bytes(asked)) == Bytes(2 * k));
  CHECK(allocated_bytes(power, Bytes(k)) == Bytes(k));
  CHECK(allocated_bytes({Bytes(4096), false}, Bytes(1)) == Bytes(4096));
  CHECK(allocated_bytes({Bytes(4096), false}, Bytes(8192)) == Bytes(8192));
  CHECK(allocated_bytes({Bytes(1), false}, Bytes(0)) == Bytes(0));
  CHECK(allocated_bytes(power, Bytes::max()) == Bytes::max());

  Hardware h = machine(100_GB);
  h.allocation = power;
  h.pool_capacity = Bytes(4 * k);
  const RunRecord record = run(reads({asked, asked}), h);
  CHECK(record.pool_peak == Bytes(4 * k));
  CHECK(record.pool_requested_peak == Bytes(2 * asked));
  h.pool_capacity = Bytes(4 * k - 1);  // what is asked for would fit
  REQUIRE(2 * asked < h.pool_capacity.value);
  CHECK_THROWS_AS(run(reads({asked, asked}), h), InfeasibleError);
}
