// The reference replay against closed forms: who waits for room, and when bytes are given back. The
// toy's links move 1 B/us in and 0.5 B/us out.
#include "test/property/by_hand.h"

using namespace hyperoffload;

TEST_CASE("at one instant frees come first, then ops, then transfers") {
  Toy toy;
  toy.hardware.hbm_capacity = Bytes(10);
  const TensorId w = toy.weight(10, Tier::kPool), x = toy.activation(10);
  const OpId first = toy.op(5, {}, {});
  toy.at(first).workspace = Bytes(10);
  const OpId second = toy.op(7, {}, {x});  // wants the ten bytes the workspace leaves
  toy.prefetch(w, first);                  // so does this
  const OpId third = toy.op(1, {w}, {});
  const ReferenceResult r = replay(toy);
  CHECK(start_of(r, second) == us(5));
  CHECK(start_of(r.transfers[0]) == us(5 + 7));  // x dies there
  CHECK(start_of(r, third) == us(5 + 7 + 10));
  CHECK(r.hbm_peak == Bytes(10));
}

TEST_CASE("what waits for room reserves nothing: a later op on another engine may take it") {
  Toy toy;
  toy.hardware.hbm_capacity = Bytes(10);
  const TensorId x = toy.activation(6), y = toy.activation(8), z = toy.activation(4);
  toy.op(5, {}, {x}, "compute");
  toy.op(20, {x}, {});                            // x lives until 25
  const OpId big = toy.op(1, {}, {y}, "comm");    // 8 > 10 - 6: waits from 0
  const OpId small = toy.op(9, {}, {z}, "host");  // 4 fit at once
  const ReferenceResult r = replay(toy);
  CHECK(start_of(r, small) == us(0));
  CHECK(start_of(r, big) == us(5 + 20));
}

TEST_CASE("bytes leave HBM at the later of the store's end and the last use, not before") {
  // The store takes 10 / 0.5 = 20 us from 4; the detach waits for it, the next birth for the detach.
  Toy toy;
  toy.hardware.hbm_capacity = Bytes(10);
  const TensorId x = toy.activation(10), y = toy.activation(10);
  const OpId make = toy.op(4, {}, {x});
  toy.store(x, make);
  const OpId use = toy.op(6, {x}, {});  // beside the store
  toy.detach(x, use);
  const OpId next = toy.op(2, {}, {y});
  toy.prefetch(x, next);
  const OpId last = toy.op(1, {x}, {});
  const ReferenceResult r = replay(toy);
  CHECK(start_of(r, use) == us(4));
  CHECK(start_of(r, next) == us(4 + 20));
  CHECK(start_of(r, last) == us(4 + 20 + 2 + 10));
  CHECK(r.pool_peak == Bytes(10));
  CHECK(r.hbm_to_pool == Bytes(10));
}

TEST_CASE("a store waits for pool room, a writer for the store of what it writes") {
  Toy toy;
  toy.hardware.pool_capacity = Bytes(10);
  const TensorId x = toy.activation(10), y = toy.activation(10);
  const OpId one = toy.op(2, {}, {x, y});
  toy.store(x, one);
  toy.store(y, one);                      // the pool is full until x has died
  const OpId two = toy.op(1, {x}, {});    // x's last access; its store ends at 2 + 20
  const OpId three = toy.op(1, {}, {y});  // writes y: waits for y's store as well
  toy.detach(y, two);
  toy.prefetch(y, two);
  const ReferenceResult r = replay(toy);
  CHECK(start_of(r, two) == us(2));
  CHECK(start_of(r.transfers[1]) == us(2 + 20));
  CHECK(start_of(r, three) == us(2 + 20 + 20 + 10));
  CHECK(r.seen.at("death waits for an action") == 1);
}

TEST_CASE("a pure write takes only the bytes that are missing and needs no old ones") {
  Toy toy;
  toy.hardware.hbm_capacity = Bytes(10);
  const TensorId s = toy.tensor(TensorKind::kKv, 10);
  const OpId read = toy.op(2, {s}, {});
  toy.store(s, read).to = Bytes(4);
  toy.detach(s, read).to = Bytes(4);
  const OpId middle = toy.op(50, {}, {});
  const OpId write = toy.op(1, {}, {s});
  toy.at(middle).workspace = Bytes(4);
  const ReferenceResult r = replay(toy);
  CHECK(start_of(r, middle) == us(2 + 4 / 0.5));  // room for its workspace after the detach
  CHECK(start_of(r, write) == us(2 + 8 + 50));
  CHECK(r.hbm_peak == Bytes(10));
  CHECK(r.pool_peak == Bytes(4));
  CHECK(r.seen.at("pure write takes the missing bytes") == 1);
}

TEST_CASE("pool bytes stay a tensor's own: a later store of the same bytes takes none") {
  Toy toy;
  toy.hardware.pool_capacity = Bytes(10);
  const TensorId s = toy.tensor(TensorKind::kKv, 10);
  const OpId write = toy.op(1, {}, {s});
  toy.store(s, write);
  const ReferenceResult r = replay(toy, 3);
  REQUIRE_FALSE(r.stuck);
  CHECK(r.pool_peak == Bytes(10));
  // Each iteration's write waits for the last one's store: 1 + 20, then 1 + 20, ...
  CHECK(start_of(r, write, 2) == us(2 * (1 + 20.0)));
}

TEST_CASE("inputs are taken together at their iteration's start, or not at all") {
  Toy toy;
  toy.hardware.hbm_capacity = Bytes(20);
  const TensorId a = toy.tensor(TensorKind::kInput, 6), b = toy.tensor(TensorKind::kInput, 6);
  const TensorId w = toy.weight(10, Tier::kPool);
  const OpId uses_inputs = toy.op(5, {a, b}, {});
  toy.prefetch(w, uses_inputs).scope = IterationScope::kFirst;  // fits once the inputs have died
  const OpId uses_weight = toy.op(1, {w}, {});
  const ReferenceResult once = replay(toy);
  CHECK(start_of(once, uses_weight) == us(5 + 10));
  CHECK(once.hbm_peak == Bytes(6 + 6));
  const ReferenceResult twice = replay(toy, 2);  // beside the weight one input has room, two have not
  CHECK(twice.stuck);
  CHECK(says(twice.waiting, "inputs wait"));
}

TEST_CASE("the next iteration's inputs wait for room, and no op of it starts before") {
  Toy toy;
  toy.hardware.hbm_capacity = Bytes(12);
  const TensorId in = toy.tensor(TensorKind::kInput, 12);
  const TensorId w = toy.tensor(TensorKind::kKv, 6, Tier::kPool);
  const OpId uses_input = toy.op(5, {in}, {});
  toy.prefetch(w, uses_input);
  const OpId writes = toy.op(1, {w}, {w});
  toy.store(w, writes);  // 6 / 0.5 = 12 us, beyond the iteration's end
  toy.detach(w, writes);
  const ReferenceResult r = replay(toy, 2);
  const double first = 5 + 6 + 1;
  CHECK(static_cast<double>(r.iteration_start[1]) == us(first));
  CHECK(start_of(r, uses_input, 1) == us(first + 12));
  CHECK(last_iteration_time(r) == us(12 + first));
}

TEST_CASE("no op of an iteration starts before its inputs have room, whether it reads them or not") {
  Toy toy;
  toy.hardware.hbm_capacity = Bytes(12);
  const TensorId in = toy.tensor(TensorKind::kInput, 12);
  const TensorId w = toy.tensor(TensorKind::kKv, 6, Tier::kPool);
  const OpId other = toy.op(1, {}, {}, "comm");
  const OpId uses_input = toy.op(5, {in}, {});
  toy.store(in).scope = IterationScope::kLater;  // waits for the input it stores
  toy.detach(in, uses_input).scope = IterationScope::kLater;
  toy.prefetch(w, uses_input);
  const OpId writes = toy.op(1, {w}, {w});
  toy.store(w, writes);
  toy.detach(w, writes);
  const ReferenceResult r = replay(toy, 2);
  const double inputs = 5 + 6 + 1 + 6 / 0.5;  // the store of w and its detach
  REQUIRE_FALSE(r.stuck);
  CHECK(start_of(r, other, 1) == us(inputs));
  CHECK(start_of(r, uses_input, 1) == us(inputs));
  CHECK(start_of(r.transfers[2]) == us(inputs));
  CHECK(start_of(r, writes, 1) == us(inputs + 12 / 0.5 + 6));  // the input's store, then the prefetch of w
}

TEST_CASE("an action on an input waits until the iteration's inputs have their bytes") {
  Toy toy;
  toy.hardware.hbm_capacity = Bytes(18);
  const TensorId in = toy.tensor(TensorKind::kInput, 12), w = toy.weight(12, Tier::kPool);
  const OpId uses_input = toy.op(5, {in}, {});
  const OpId uses_weight = toy.op(1, {w}, {});
  toy.op(2, {}, {});
  const auto front = [](Action& a) { a.to = Bytes(6); };
  const auto back = [](Action& a) { a.from = Bytes(6); };
  toy.store(in).scope = IterationScope::kLater;
  toy.detach(in, uses_input).scope = IterationScope::kLater;
  front(toy.prefetch(w, uses_input));
  back(toy.prefetch(w, uses_input));
  toy.plan.actions.back().scope = IterationScope::kFirst;
  back(toy.detach(w, uses_weight));
  back(toy.prefetch(w, uses_weight));  // 6 us into the next iteration; then the front's detach,
  front(toy.detach(w, uses_weight));   // for which the next inputs wait
  const ReferenceResult r = replay(toy, 2);
  const double inputs = 5 + 6 + 6 + 1 + 6;  // beyond the iteration's end, 2 us behind uses_weight
  REQUIRE_FALSE(r.stuck);
  CHECK(start_of(r, uses_input, 1) == us(inputs));
  CHECK(start_of(r.transfers[3]) == us(inputs));  // the input's store: 12 / 0.5 us, then it dies and
  CHECK(start_of(r, uses_weight, 1) == us(inputs + 24 + 6));  // the front has room
}
