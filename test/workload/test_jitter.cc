#include "sim/workload/jitter.h"

#include <cmath>

#include "test/support/catch.h"
#include "test/support/tiny.h"

using namespace hyperoffload;
using namespace hyperoffload::tiny;

namespace {

constexpr int kOps = 1000;

Graph thousand_ops() {
  GraphMaker m;
  m.weight("w", 8);
  for (int i = 0; i < kOps; ++i) {
    m.op("op" + std::to_string(i), 1_us, {"w"}, {});
    if (i % 2 == 0) continue;
    m.last().duration.reset();
    m.last().flops = Flops(1e12);
    m.last().hbm_bytes = Bytes(1'000'000'000'000);
  }
  return m.build();
}

double factor(const Op& op) { return op.duration ? op.duration->value / 1e-6 : op.flops->value / 1e12; }

}  // namespace

TEST_CASE("jitter gives each op a factor of its own, evenly spread around 1") {
  const double share = 0.1;
  const Graph graph = with_jitter(thousand_ops(), share, 7);
  double sum = 0, squares = 0;
  for (const Op& op : graph.ops()) {
    CHECK(std::abs(factor(op) - 1) <= share * (1 + 1e-9));
    if (op.hbm_bytes) CHECK(static_cast<double>(op.hbm_bytes->value) / 1e12 == Approx(factor(op)).epsilon(1e-11));
    sum += factor(op);
    squares += (factor(op) - 1) * (factor(op) - 1);
  }
  // An even spread over [-s, s] has a deviation of s / sqrt(3); the mean of n draws, of that over sqrt(n): 4 sigma.
  const double deviation = share / std::sqrt(3);
  CHECK(std::abs(sum / kOps - 1) < 4 * deviation / std::sqrt(kOps));
  CHECK(std::sqrt(squares / kOps) == Approx(deviation).epsilon(0.05));
}

TEST_CASE("the same seed gives the same trace, another one another, and no jitter the trace itself") {
  const Graph graph = thousand_ops();
  CHECK(graph_to_json(with_jitter(graph, 0.1, 1)) == graph_to_json(with_jitter(graph, 0.1, 1)));
  CHECK(graph_to_json(with_jitter(graph, 0.1, 1)) != graph_to_json(with_jitter(graph, 0.1, 2)));
  CHECK(graph_to_json(with_jitter(graph, 0, 1)) == graph_to_json(graph));
}
