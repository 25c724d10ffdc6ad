// What would hide a plan's transfers: each figure does, and a little less doesn't.
#include "app/remedies.h"

#include "app/ask.h"
#include "planner/objectives.h"
#include "sim/model/check_plan.h"
#include "test/planner/toy.h"
#include "test/support/catch.h"
#include "test/support/command.h"
#include "test/support/paths.h"

using namespace hyperoffload;
using namespace hyperoffload::toy;

namespace {

// Three weights of 1000 B, read in turns by ops of 10 s.
Graph in_turns() {
  Toy t;
  for (int k = 0; k < 3; ++k) t.op(10, {t.weight("w" + std::to_string(k), 1000)});
  return t.build();
}

double slowdown(const Graph& g, const Hardware& h, const PlannerOptions& options) {
  const Prediction p = *make_plan(g, h, options).plan.prediction;
  return p.iteration.value / p.ideal.value;
}

}  // namespace

TEST_CASE("remedies: so much bandwidth or HBM hides the transfers, and a little less does not") {
  const Graph g = in_turns();
  const Hardware h = machine(2500, 20, 80);
  PlannerOptions options;
  options.iterations = 3;
  REQUIRE(slowdown(g, h, options) > 1.1);
  const Remedies found = find_remedies(g, h, options);
  REQUIRE(found.link);
  REQUIRE(found.hbm);
  CHECK(slowdown(g, with_pool_speed(h, *found.link), options) <= 1.001);
  CHECK(slowdown(g, with_pool_speed(h, *found.link / 1.03), options) > 1.001);
  // 500 B are too little whenever an op runs, so at least so many come in each 30 s.
  CHECK(*found.link * 20 >= 500 / 30.0);
  // The plan of `--max-slowdown 0.1%`, in just that.
  CHECK(*found.hbm > h.hbm_capacity);
  CHECK(*found.hbm <= Bytes(3000));
  const Plan plan = least_hbm(g, machine(3000, 20, 80), options, 1e-3).outcome.plan;
  CHECK(check_plan(g, plan, {*found.hbm, h.pool_capacity}, options.iterations).empty());
  const Walk walk = walk_plan(FlatGraph(g, machine(found.hbm->value, 20, 80)), plan, {options.iterations});
  CHECK_FALSE(walk.stuck);
  CHECK(walk.last_iteration <= 30 * 1.001);
  const std::string words = remedy_words(g, h, options, make_plan(g, h, options).plan);
  CHECK(words.find("what would hide it") == 0);
}

TEST_CASE("remedies: nothing is said of a plan that hides its transfers, and of latency that no bandwidth helps") {
  const Graph g = in_turns();
  PlannerOptions options;
  options.iterations = 3;
  const Hardware fast = machine(2500, 1e6, 1e6);
  CHECK(remedy_words(g, fast, options, make_plan(g, fast, options).plan).empty());
  const Hardware late = machine(2500, 1e6, 1e6, 100);  // 100 s of latency in 30 s
  const Remedies found = find_remedies(g, late, options);
  CHECK_FALSE(found.link);
  CHECK(found.hbm == Bytes(3000));
}

TEST_CASE("plan tells a pattern that names nothing by the option that it was given to") {
  const std::string on = "plan " + source_dir() + "/traces/chain-100.json --hardware " + source_dir() + "/configs/hardware/toy.yaml ";
  for (const std::string option : {"--pin", "--never-offload"}) {
    const CommandResult said = run_hyperoffload(on + option + " nothing-of-that-name");
    CHECK(said.status == 2);
    CHECK(said.err.find(option + ": found \"nothing-of-that-name\"") != std::string::npos);
  }
}
