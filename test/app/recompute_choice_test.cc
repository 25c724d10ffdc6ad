// Keep, move, or compute again: the number of layers that compute again against closed forms.
#include "app/recompute_choice.h"

#include "app/evaluate.h"
#include "sim/model/error.h"
#include "sim/report/table.h"
#include "test/support/catch.h"
#include "test/support/tiny.h"

using namespace hyperoffload;
using namespace hyperoffload::tiny;

namespace {

constexpr int kLayers = 12;  // unless a test says otherwise
constexpr std::int64_t kHidden = 1000;  // bytes a layer leaves to its backward op: 1 us at 1e9 B/s

// Layer i makes a hidden tensor (10 us), then its output; backward ops (20 us) read the hidden ones, last first.
Graph layers(int count = kLayers, std::int64_t first_hidden = kHidden) {
  GraphMaker m;
  m.activation("x0", 1).op("begin", 0_us, {}, {"x0"});
  for (int i = 0; i < count; ++i) {
    const std::string n = std::to_string(i), next = std::to_string(i + 1);
    m.activation("h" + n, i == 0 ? first_hidden : kHidden).activation("x" + next, 1);
    m.op("f" + n, 10_us, {"x" + n}, {"h" + n});
    m.last().phase = "forward", m.last().layer = i;
    m.op("g" + n, 0_us, {"h" + n}, {"x" + next});
    m.last().phase = "forward", m.last().layer = i;
  }
  for (int i = count; i-- > 0;) {
    const std::string n = std::to_string(i);
    m.op("b" + n, 20_us, {"h" + n, "x" + n}, {});
    m.last().phase = "backward", m.last().layer = i;
  }
  return m.build();
}

// HBM for so many hidden tensors and all outputs; links of so many bytes a microsecond.
Hardware with(int hidden, double bytes_per_us) {
  Hardware h = machine(Bytes(hidden * kHidden + 100));
  h.link_read = h.link_write = {BytesPerSecond(bytes_per_us * 1e6), Seconds(0)};
  return h;
}

Result of(const std::string& policy, const Hardware& hardware) {
  const Graph graph = layers();
  return evaluate({graph, hardware}, parse_policy(policy, "--policy")).result;
}

}  // namespace

TEST_CASE("nothing is computed again where the link carries what HBM can't hold") {
  const Result r = of("graph:recompute=auto", with(6, kHidden / 5.0));  // 5 us a tensor
  CHECK(r.planner->recomputed_layers == 0);
  CHECK(r.figures().stall.value == Approx(0).margin(1e-12));
}

TEST_CASE("a link that carries nothing in time leaves the rest to be computed again, and no more") {
  // HBM for 6 of 12: 6 layers are kept, or 7 and one of the six dropped ones has its place while it is used.
  const Result r = of("graph:recompute=auto", with(6, kHidden / 1e6));  // 1 s a tensor
  CHECK(r.planner->recomputed_layers >= kLayers - 6);
  CHECK(r.planner->recomputed_layers <= kLayers - 5);
  CHECK(r.figures().stall.value == Approx(r.planner->recomputed_layers * 10e-6).epsilon(1e-9));
  CHECK(r.hbm_peak <= with(6, 1).hbm_capacity);
}

TEST_CASE("part moves, part is computed again, and together that beats either alone") {
  const Hardware h = with(3, kHidden / 40.0);  // 40 us a tensor: the link carries some, not all
  const Result both = of("graph:recompute=auto", h), moved = of("graph", h), again = of("recompute", h);
  REQUIRE(both.has_figures());
  CHECK(both.planner->recomputed_layers > 0);
  CHECK(both.planner->recomputed_layers < kLayers - 3);
  CHECK(both.figures().pool_to_hbm.bytes > Bytes(0));
  CHECK(both.figures().iteration < moved.figures().iteration);
  CHECK(both.figures().iteration < again.figures().iteration);
}

TEST_CASE("with the choice a plan is never slower than moving alone, or computing the first layers again alone") {
  for (int hidden = 2; hidden <= 8; hidden += 2)
    for (double us : {5.0, 20.0, 80.0}) {
      INFO(hidden << " tensors in HBM, " << us << " us to move one");
      const Hardware h = with(hidden, kHidden / us);
      const Result both = of("graph:recompute=auto", h);
      for (const char* alone : {"graph", "recompute"})
        if (const Result other = of(alone, h); other.has_figures())
          CHECK(both.figures().iteration.value <= other.figures().iteration.value * (1 + 1e-9));
    }
}

TEST_CASE("what is computed again is neither stall that a bound forbids, nor an order of engines") {
  const Result r = of("graph:recompute=auto", with(6, kHidden / 1e6));
  CHECK(r.bound->order == kAsGiven);
  CHECK(r.binding.resource == "program");
  CHECK(results_answer({r}).find("can't be avoided") == std::string::npos);
}

TEST_CASE("where one layer's tensor is the larger one, that layer computes again, and it alone") {
  // 3 + 1 hidden tensors, HBM for 3: without the first layer's 1 is left, without the second's 3 and a place to make
  // the second's again are 4. Nothing can be moved in time.
  const Graph graph = layers(2, 3 * kHidden);
  const Hardware h = with(3, kHidden / 1e6);
  const Result r = evaluate({graph, h}, parse_policy("graph:recompute=auto", "--policy")).result;
  CHECK(r.planner->recomputed_layers == 1);
  CHECK(r.figures().stall.value == Approx(10e-6).epsilon(1e-9));
}

TEST_CASE("more layers than there are to compute again are refused") {
  CHECK_THROWS_AS(of("graph:recompute=13", with(6, 1)), InputError);
}
