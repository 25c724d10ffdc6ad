#include "test/support/random_trace.h"

#include <algorithm>
#include <cmath>

namespace hyperoffload {
namespace {

bool chance(std::mt19937_64& random, int percent) { return static_cast<int>(random() % 100) < percent; }

// Names that need care in JSON: quotes, backslashes, control characters, other scripts.
std::string odd_name(std::mt19937_64& random, const std::string& prefix, std::size_t i) {
  const char* odd[] = {"", "", "", "/", "\"", "\\", "\n", "\x01", "\x7f", "é", "層", "😀", " "};
  return prefix + odd[random() % std::size(odd)] + std::to_string(i);
}

double odd_double(std::mt19937_64& random) {
  const int exponent = static_cast<int>(random() % 120) - 90;
  return chance(random, 10) ? 0.0 : std::ldexp(static_cast<double>(random() >> 11), exponent);
}

Bytes odd_bytes(std::mt19937_64& random) {
  return Bytes(static_cast<std::int64_t>(random() >> (1 + random() % 63)));
}

Tensor random_tensor(std::mt19937_64& random, std::size_t i) {
  Tensor tensor;
  tensor.name = odd_name(random, "t", i);
  tensor.bytes = odd_bytes(random);
  tensor.kind = kAllTensorKinds[random() % std::size(kAllTensorKinds)];
  tensor.persistent = chance(random, 30) != persistent_by_default(tensor.kind);
  if (tensor.persistent && chance(random, 30)) tensor.initial = Tier::kPool;
  return tensor;
}

void add_demand(std::mt19937_64& random, Op& op) {
  const int form = static_cast<int>(random() % 4);
  if (form == 0 || form == 3) op.duration = Seconds(odd_double(random));
  if (form == 1 || form == 3) op.flops = Flops(odd_double(random));
  if (form == 2 || form == 3) op.hbm_bytes = odd_bytes(random);
  if (chance(random, 20)) op.workspace = odd_bytes(random);
  if (chance(random, 10)) op.memory = Tier::kPool;
  if (chance(random, 10))
    op.collective = Collective{"all-reduce", odd_bytes(random), chance(random, 50) ? "tp" : ""};
  if (chance(random, 50)) op.layer = static_cast<int>(random() % 100);
  if (chance(random, 50)) op.phase = "forward";
  if (chance(random, 30)) op.kernel = "matmul";
}

}  // namespace

GraphSpec random_spec(std::mt19937_64& random) {
  GraphSpec spec;
  spec.name = odd_name(random, "trace", 0);
  if (chance(random, 50)) spec.meta_json = R"({"a": [1, 2.50, {"b": null}], "ü": "x\ny"})";
  spec.engines.clear();
  const std::size_t tensors = random() % 12;
  for (std::size_t i = 0; i < tensors; ++i) spec.tensors.push_back(random_tensor(random, i));
  std::vector<bool> written(tensors, false);
  const std::vector<std::string> engines = {"compute", "comm", "host"};
  const std::size_t ops = 1 + random() % 20;
  for (std::size_t i = 0; i < ops; ++i) {
    Op op;
    op.name = odd_name(random, "op", i);
    add_demand(random, op);
    for (std::size_t t = 0; t < tensors; ++t) {
      const Tensor& tensor = spec.tensors[t];
      const bool readable = written[t] || tensor.persistent || tensor.kind == TensorKind::kInput;
      if (readable && chance(random, 20)) op.reads.push_back(TensorId(t));
      if (chance(random, 15)) {
        op.writes.push_back(TensorId(t));
        written[t] = true;
      }
    }
    if (i > 0 && chance(random, 20)) op.after = {OpId(random() % i)};
    if (i > 0 && chance(random, 10)) op.known_after = OpId(random() % i);
    const std::string& engine = engines[random() % (1 + i % 3)];
    auto it = std::find(spec.engines.begin(), spec.engines.end(), engine);
    op.engine = EngineId(static_cast<std::size_t>(it - spec.engines.begin()));
    if (it == spec.engines.end()) spec.engines.push_back(engine);
    spec.ops.push_back(op);
  }
  return spec;
}

Plan random_plan(std::mt19937_64& random, const Graph& graph) {
  Plan plan;
  const std::size_t tensors = graph.tensors().size(), ops = graph.ops().size();
  for (std::size_t i = 0; tensors > 0 && i < random() % 10; ++i) {
    Action action;
    action.kind = static_cast<ActionKind>(random() % 3);
    action.tensor = TensorId(random() % tensors);
    action.to = graph.tensor(action.tensor).bytes;
    if (action.to > Bytes(1) && chance(random, 30)) {
      action.from = Bytes(static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(action.to.value)));
      action.to -= Bytes(
          static_cast<std::int64_t>(random() % static_cast<std::uint64_t>((action.to - action.from).value)));
    }
    if (chance(random, 80)) action.after_op = OpId(random() % ops);
    if (chance(random, 50)) action.before_op = OpId(random() % ops);
    action.scope = static_cast<IterationScope>(random() % 3);
    plan.actions.push_back(action);
  }
  for (std::size_t t = 0; t < tensors; ++t)
    if (graph.tensors()[t].persistent && chance(random, 50)) plan.initial_pool.push_back(TensorId(t));
  if (chance(random, 30))
    for (std::size_t i = 0; i < ops; ++i) plan.order.push_back(OpId(i));
  const auto seconds = [&] { return Seconds(odd_double(random)); };
  if (chance(random, 50))
    plan.prediction =
        Prediction{seconds(), seconds(), seconds(), seconds(), odd_bytes(random), odd_bytes(random)};
  if (chance(random, 50))
    plan.bound = Bound{odd_bytes(random), seconds(), "window", chance(random, 50) ? "program" : "plan"};
  if (plan.bound && chance(random, 50)) plan.bound->steady_stall = seconds();
  return plan;
}

}  // namespace hyperoffload
