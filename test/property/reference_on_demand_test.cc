// Reactive swapping in the reference, step by step by hand, in microseconds. The toy's links move
// 1 B/us in and 0.5 B/us out: a weight of 10 B loads in 10 us and is stored in 20.
#include "sim/model/check.h"
#include "test/property/by_hand.h"

using namespace hyperoffload;

namespace {

constexpr double kLoad = 10, kStore = 20;  // us, of 10 B

ReferenceResult run(const Toy& toy, int iterations = 1, Evict evict = Evict::kLru) {
  const Graph graph = toy.graph();
  return reference_on_demand(graph, toy.hardware, iterations, evict);
}

}  // namespace

TEST_CASE("lru on four weights in a circle with room for three misses every time") {
  Toy toy;
  toy.hardware.hbm_capacity = Bytes(30);
  for (int i = 0; i < 4; ++i) toy.op(1, {toy.weight(10)}, {});
  const ReferenceResult r = run(toy, 3);
  // w0, w1, w2 start in HBM without a copy, w3 in the pool with one.
  CHECK(iteration_time(r, 0) == us(3 + kStore + kLoad + 1));  // w3 for w0
  CHECK(iteration_time(r, 1) ==
        us(2 * (kStore + kLoad + 1) + 2 * (kLoad + 1)));  // w0 for w1, w1 for w2: dirty
  CHECK(iteration_time(r, 2) == us(4 * (kLoad + 1)));     // every victim is clean
  CHECK(r.pool_to_hbm == Bytes(40));
  CHECK(r.hbm_to_pool == Bytes(0));
  CHECK(r.hbm_peak == Bytes(30));
  CHECK(r.pool_peak == Bytes(40));
}

TEST_CASE("lru keeps what was used last, oldest evicts what came first") {
  for (const Evict evict : {Evict::kLru, Evict::kOldest}) {
    Toy toy;
    toy.hardware.hbm_capacity = Bytes(20);
    const TensorId hot = toy.weight(10), once = toy.weight(10), late = toy.weight(10);
    toy.op(1, {hot}, {});
    toy.op(1, {once}, {});
    toy.op(1, {hot}, {});
    const OpId miss = toy.op(1, {late}, {});  // lru: for `once`; oldest: both since 0, so the lower index
    const OpId again = toy.op(1, {hot}, {});
    const ReferenceResult r = run(toy, 1, evict);
    CHECK(r.transfers[0].tensor == (evict == Evict::kLru ? once : hot));
    const double ready = 3 + kStore + kLoad + 1;
    CHECK(start_of(r, miss) == us(ready - 1));
    // oldest: hot back for `once`, which is dirty
    CHECK(start_of(r, again) == us(ready + (evict == Evict::kLru ? 0 : kStore + kLoad)));
  }
}

TEST_CASE("a tensor is as old as its bytes, or as its last access's end") {
  // The running op's tensor x is taken at 0 and used until 14; w is loaded from 0 to 10 beside it.
  for (const Evict evict : {Evict::kLru, Evict::kOldest}) {
    Toy toy;
    toy.hardware.hbm_capacity = Bytes(20);
    const TensorId x = toy.activation(10), w = toy.weight(10, Tier::kPool), v = toy.weight(10, Tier::kPool);
    const OpId make = toy.op(14, {}, {x}, "comm");
    const OpId use = toy.op(1, {w}, {}, "compute");
    const OpId miss = toy.op(1, {v}, {}, "compute");
    toy.at(miss).after = {make};
    toy.op(1, {x, w}, {}, "compute");
    const ReferenceResult r = run(toy, 1, evict);
    CHECK(start_of(r, use) == us(kLoad));
    // lru: w (used until 11) before x (until 14), clean; oldest: both since 0, x has the lower index, dirty
    CHECK(start_of(r, miss) == us(14 + kLoad + (evict == Evict::kLru ? 0 : kStore)));
  }
}

TEST_CASE("at the start inputs count first, then weights in order of use until one does not fit") {
  Toy toy;
  toy.hardware.hbm_capacity = Bytes(40);
  const TensorId unused = toy.weight(1), third = toy.weight(5), second = toy.weight(20),
                 first = toy.weight(12);
  const TensorId in = toy.tensor(TensorKind::kInput, 10);
  const OpId a = toy.op(1, {first, in},
                        {});  // 10 + 12 fit, 10 + 12 + 20 do not: second and all behind start in the pool
  const OpId b = toy.op(1, {second}, {});
  const OpId c = toy.op(1, {third}, {});
  const ReferenceResult r = run(toy);
  CHECK(start_of(r, a) == us(0));
  CHECK(start_of(r, b) == us(1 + 20));  // 40 - 12 left once the input has died: no eviction
  CHECK(start_of(r, c) == us(1 + 20 + 1 + 5));
  CHECK(r.pool_peak == Bytes(20 + 5 + 1));
  CHECK(r.transfers.size() == 2);
  (void)unused;
}

TEST_CASE("a birth and a workspace make room like a miss, and what was evicted comes back") {
  Toy toy;
  toy.hardware.hbm_capacity = Bytes(30);
  const TensorId x = toy.activation(10), y = toy.activation(10), w = toy.weight(10);
  toy.op(1, {w}, {x});
  const OpId wide = toy.op(2, {w}, {y});    // 10 more for y: 30 in use
  toy.at(wide).workspace = Bytes(10);       // 10 too many: x goes, stored first
  const OpId back = toy.op(1, {x, y}, {});  // room once the workspace is free
  const ReferenceResult r = run(toy);
  CHECK(start_of(r, wide) == us(1 + kStore));
  CHECK(start_of(r, back) == us(1 + kStore + 2 + kLoad));
}

TEST_CASE("the service serves one op after another, in program order, one transfer at a time") {
  Toy toy;
  toy.hardware.hbm_capacity = Bytes(40);
  const TensorId a = toy.weight(10, Tier::kPool), b = toy.weight(10, Tier::kPool),
                 c = toy.weight(10, Tier::kPool);
  const OpId first = toy.op(1, {c, a}, {}, "compute");  // missing tensors by index: a, then c
  const OpId second = toy.op(1, {b}, {}, "comm");
  const ReferenceResult r = run(toy);
  REQUIRE(r.transfers.size() == 3);
  CHECK(r.transfers[0].tensor == a);
  CHECK(r.transfers[1].tensor == c);
  CHECK(r.transfers[2].tensor == b);
  CHECK(start_of(r, first) == us(2 * kLoad));
  CHECK(start_of(r, second) == us(3 * kLoad));
}

TEST_CASE("the tensors of running ops are never evicted") {
  Toy toy;
  toy.hardware.hbm_capacity = Bytes(10);
  const TensorId held = toy.weight(10), wanted = toy.weight(10);
  toy.op(50, {held}, {}, "comm");
  const OpId op = toy.op(1, {wanted}, {}, "compute");
  CHECK(start_of(run(toy), op) == us(50 + kStore + kLoad));
}

TEST_CASE("a reader may start beside a victim's store, and then keeps it") {
  Toy toy;
  toy.hardware.hbm_capacity = Bytes(20);
  const TensorId victim = toy.weight(10), other = toy.weight(10), wanted = toy.weight(10);
  const OpId timer = toy.op(5, {}, {}, "host");
  const OpId both = toy.op(1, {victim, other}, {}, "compute");
  const OpId miss = toy.op(1, {wanted}, {}, "compute");   // from 1: stores `victim` until 21
  const OpId reader = toy.op(100, {victim}, {}, "comm");  // from 5 to 105
  toy.at(reader).after = {timer, both};
  const ReferenceResult r = run(toy);
  CHECK(start_of(r, reader) == us(5));
  CHECK(start_of(r, miss) == us(1 + kStore + kStore + kLoad));  // `other` has to go instead
}

TEST_CASE("a writer waits for the store of a victim, then finds it gone") {
  Toy toy;
  toy.hardware.hbm_capacity = Bytes(20);
  const TensorId victim = toy.weight(10), other = toy.weight(10), wanted = toy.weight(10);
  const OpId both = toy.op(1, {victim, other}, {}, "compute");
  const OpId miss = toy.op(1, {wanted}, {}, "compute");  // from 1: stores `victim` until 21
  const OpId timer = toy.op(5, {}, {}, "host");
  const OpId writer = toy.op(1, {victim}, {victim}, "comm");  // ready from 5
  toy.at(writer).after = {timer, both};
  const ReferenceResult r = run(toy);
  CHECK(start_of(r, miss) == us(1 + kStore + kLoad));
  // The victim comes back for `other`, used last at 1 and dirty; `wanted` is in use.
  CHECK(start_of(r, writer) == us(1 + kStore + kLoad + kStore + kLoad));
}

TEST_CASE("the inputs of a later iteration make room for themselves") {
  Toy toy;
  toy.hardware.hbm_capacity = Bytes(20);
  const TensorId in = toy.tensor(TensorKind::kInput, 10), a = toy.weight(10), b = toy.weight(10);
  const OpId first = toy.op(1, {in, a}, {});
  toy.op(1, {b}, {});  // b starts in the pool; the input has died, so it fits
  const ReferenceResult r = run(toy, 2);
  CHECK(start_of(r, first, 1) ==
        us(1 + kLoad + 1 + kStore + kLoad));  // a (used until 1) is dirty, and needed
  CHECK(r.transfers[1].tensor == a);
}

TEST_CASE("an op too large for HBM, or a pool without room for the victim, ends the run with a reason") {
  Toy toy;
  toy.hardware.hbm_capacity = Bytes(15);
  toy.op(1, {toy.weight(10), toy.weight(10)}, {});
  CHECK(run(toy).stuck);
  Toy full;
  full.hardware.hbm_capacity = Bytes(10);
  full.hardware.pool_capacity = Bytes(10);
  full.op(1, {full.weight(10)}, {});
  full.op(1, {full.weight(10)}, {});  // starts in the pool and keeps its bytes there
  const ReferenceResult r = run(full);
  CHECK(r.stuck);
  CHECK(r.waiting.find("op \"op1\" waits") != std::string::npos);
}

TEST_CASE("ops in the pool are no part of reactive swapping") {
  Toy toy;
  toy.at(toy.op(1, {}, {})).memory = Tier::kPool;
  CHECK_THROWS_AS(run(toy), CheckFailure);
}
