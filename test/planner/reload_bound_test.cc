// What loads alone take: by hand, and against every choice of what is kept.
#include "planner/bound/reload_bound.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "test/planner/toy.h"
#include "test/support/catch.h"
#include "test/support/rng.h"

using namespace hyperoffload;
using namespace hyperoffload::toy;

TEST_CASE("reload bound: of two turns through four weights, with room for three, two are loaded") {
  // At op0 w3 is given up, used last of what is there, at op3 w2. Both come at 10 B/s; behind the second two ops run.
  Toy t;
  std::vector<TensorId> w;
  for (int k = 0; k < 4; ++k) w.push_back(t.weight("w" + std::to_string(k), 100));
  for (int turn = 0; turn < 2; ++turn)
    for (TensorId weight : w) t.op(1, {weight});
  const Graph g = t.build();
  CHECK(reload_bound(FlatGraph(g, machine(300, 10, 10)), 1) == Approx(2 * 100 / 10.0 + 2));
  CHECK(reload_bound(FlatGraph(g, machine(300, 10, 10, 1)), 1) == Approx(2 * (1 + 100 / 10.0) + 2));
  CHECK(reload_bound(FlatGraph(g, machine(400, 10, 10)), 1) == 0);
  CHECK(reload_bound(FlatGraph(g, machine(99, 10, 10)), 1) == 0);  // op0 doesn't fit: nothing to say
}

TEST_CASE("reload bound: what is written anew, dies, or starts in the pool") {
  // y is written before anything reads it again: to let it go costs nothing. x (100 B) must start in the pool.
  Toy t;
  const TensorId x = t.weight("x", 100), y = t.weight("y", 100), all = t.activation("all", 150);
  t.spec.tensors[x.index()].initial = Tier::kPool;
  t.op(1, {y});
  t.op(1, {}, {all});
  t.op(1, {}, {y});
  t.op(1, {x});
  const Graph g = t.build();
  CHECK(reload_bound(FlatGraph(g, machine(200, 10, 10)), 1) == Approx(100 / 10.0 + 1));
  CHECK(reload_bound(FlatGraph(g, machine(200, 10, 10)), 3) == Approx(50 / 10.0 + 1));  // later it may be there, but for op1's sake
}

TEST_CASE("reload bound: loads as few bytes as the best of all choices") {
  int any = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    INFO("seed " << seed);
    Rng rng(seed);
    Toy t;
    const int tensors = rng.pick(3, 5), ops = rng.pick(4, 8);
    std::vector<TensorId> w;
    for (int k = 0; k < tensors; ++k) w.push_back(t.weight("w" + std::to_string(k), 1));
    struct Stay {
      int from, to;  // ops strictly between
    };
    std::vector<Stay> stays;
    std::vector<int> last(tensors, -1), taken;
    for (int op = 0; op < ops; ++op) {
      std::set<int> reads{rng.pick(0, tensors - 1)};
      if (rng.chance(0.4)) reads.insert(rng.pick(0, tensors - 1));
      std::vector<TensorId> ids;
      for (int k : reads) {
        ids.push_back(w[k]);
        if (last[k] < op - 1) stays.push_back({last[k], op});
        last[k] = op;
      }
      taken.push_back(static_cast<int>(reads.size()));
      t.op(1e-9, ids);
    }
    if (stays.size() > 14) continue;
    const int hbm = 2 + rng.pick(0, 1);
    int least = 1000;
    for (int kept = 0; kept < 1 << stays.size(); ++kept) {
      bool fits = true;
      for (int op = 0; op < ops && fits; ++op) {
        int there = taken[op];
        for (std::size_t i = 0; i < stays.size(); ++i) there += (kept >> i & 1) && stays[i].from < op && op < stays[i].to;
        fits = there <= hbm;
      }
      if (fits) least = std::min(least, static_cast<int>(stays.size()) - __builtin_popcount(static_cast<unsigned>(kept)));
    }
    REQUIRE(reload_bound(FlatGraph(t.build(), machine(hbm, 1, 1)), 1) == Approx(least).margin(1e-7));
    any += least > 0;
  }
  CHECK(any > 100);
}
