// Plans in other tools' words: hyper-parallel's schedule and back, vLLM's settings, a table.
#include "sim/export/plan_table.h"
#include "sim/export/schedule.h"
#include "sim/export/vllm_settings.h"
#include "sim/policy/layer_ahead.h"
#include "test/model/message.h"
#include "test/support/catch.h"
#include "test/support/tiny.h"
#include "test/support/toy.h"

namespace hyperoffload {
namespace {

using tiny::GraphMaker;
using tiny::PlanMaker;

// a writes x, b runs, c reads x and w; w is persistent.
Graph small_graph() {
  return GraphMaker()
      .weight("w", 100)
      .activation("x", 50)
      .activation("y", 10)
      .op("a", Seconds(1), {}, {"x"})
      .op("b", Seconds(1), {}, {"y"})
      .op("c", Seconds(1), {"x", "w", "y"}, {})
      .build();
}

std::string compact(std::string text) {
  std::string out;
  for (const char c : text)
    if (c != ' ' && c != '\n') out += c;
  return out;
}

// `layers` layers of one op and one weight of 1 GiB each; those in `offloaded` start in the pool and are
// loaded behind the op of the `step`-th offloaded layer before.
struct Streamed {
  Graph graph;
  Plan plan;
};
Streamed streamed(int layers, const std::vector<int>& offloaded, int step) {
  GraphMaker maker;
  for (int i = 0; i < layers; ++i) maker.weight("w" + std::to_string(i), 1LL << 30);
  for (int i = 0; i < layers; ++i) {
    maker.op("l" + std::to_string(i), Seconds(1), {"w" + std::to_string(i)}, {});
    maker.last().layer = i;
  }
  Graph graph = maker.build();
  PlanMaker plan(graph);
  std::vector<std::string> pool;
  for (std::size_t k = 0; k < offloaded.size(); ++k) {
    const std::string layer = std::to_string(offloaded[k]);
    pool.push_back("w" + layer);
    const int from = static_cast<int>(k) - step;
    plan.prefetch("w" + layer,
                  from < 0 ? "" : "l" + std::to_string(offloaded[static_cast<std::size_t>(from)]));
    plan.detach("w" + layer, "l" + layer);
  }
  plan.initial_pool(pool);
  Plan built = plan.build();
  return {std::move(graph), std::move(built)};
}

}  // namespace

TEST_CASE(
    "a plan becomes hyper-parallel's schedule: loads before an op, stores before releases behind one (case "
    "52)") {
  const Graph graph = small_graph();
  const Plan plan = PlanMaker(graph).store("x", "a").detach("x", "a").prefetch("x", "b").build();
  const Exported schedule = plan_to_schedule(plan, graph);
  // x has id 1, y 2. The prefetch starts once b is done: before c. At c, x (with its copy) and y die.
  CHECK(compact(schedule.text) ==
        compact(R"({"pre": {"2": [{"op_id": 2, "storage_id": 1, "kind": "COPY_H2D"}]},
  "post": {"0": [{"op_id": 0, "storage_id": 1, "kind": "COPY_D2H"}, {"op_id": 0, "storage_id": 1, "kind": "RELEASE_DEVICE"}],
           "2": [{"op_id": 2, "storage_id": 1, "kind": "RELEASE_DEVICE"}, {"op_id": 2, "storage_id": 1, "kind": "RELEASE_HOST"},
                 {"op_id": 2, "storage_id": 2, "kind": "RELEASE_DEVICE"}]},
  "storages": {"0": "w", "1": "x", "2": "y"}})"));
  CHECK(schedule.remarks.empty());
  const Plan back = parse_schedule(schedule.text, "schedule.json", graph);
  CHECK(plan_to_json(back, graph) == plan_to_json(plan, graph));
}

TEST_CASE("out and in again is the same plan, whatever it holds") {
  const Graph graph = small_graph();
  PlanMaker maker(graph);
  maker.initial_pool({"w"}).prefetch(
      "w", "c");  // behind the last op, for the next iteration, and first in the queue
  maker.last().scope = IterationScope::kLater;
  maker.prefetch("w", "");
  maker.last().scope = IterationScope::kFirst;
  maker.last().before_op = OpId(2);
  maker.store("x", "a");
  maker.last().to = Bytes(20);
  maker.store("x", "a");
  maker.last().from = Bytes(20);
  Plan plan = maker.build();
  plan.order = {OpId(1), OpId(0), OpId(2)};
  const Exported schedule = plan_to_schedule(plan, graph);
  CHECK(schedule.remarks.size() ==
        5);  // pieces, iterations, pool at the start, order of ops, order of queues
  CHECK(plan_to_json(parse_schedule(schedule.text, "schedule.json", graph), graph) ==
        plan_to_json(plan, graph));
}

TEST_CASE("storages keep the ids of an imported ActivationTrace, and wrong schedules are refused") {
  const Graph graph = GraphMaker()
                          .activation("storage7", 5)
                          .op("a", Seconds(1), {}, {"storage7"})
                          .op("b", Seconds(1), {"storage7"}, {})
                          .build();
  CHECK(contains(plan_to_schedule(PlanMaker(graph).store("storage7", "a").build(), graph).text,
                 "\"storage_id\": 7, \"kind\": \"COPY_D2H\""));
  const auto message = [&](const std::string& text) {
    return input_error([&] { parse_schedule(text, "s.json", graph); });
  };
  CHECK(contains(message("{}"), "neither \"pre\" nor \"post\""));
  CHECK(contains(message(R"({"post": {"5": []}})"), "found op \"5\", expected 0 to 1"));
  CHECK(contains(message(R"({"post": {"0": [{"op_id": 0, "storage_id": 8, "kind": "COPY_D2H"}]}})"),
                 "post.0[0].storage_id: found 8"));
  CHECK(contains(message(R"({"post": {"0": [{"op_id": 1, "storage_id": 7, "kind": "COPY_D2H"}]}})"),
                 "expected 0, the op whose list it stands in"));
  CHECK(contains(message(R"({"post": {"0": [{"op_id": 0, "storage_id": 7, "kind": "COPY"}]}})"),
                 "the kind \"COPY\""));
}

TEST_CASE("the layers of case 1 become vLLM's settings") {
  // 8 layers, group 4, the last 2 of each: layers 2, 3, 6, 7.
  for (const int step : {1, 2}) {
    const Streamed s = streamed(8, {2, 3, 6, 7}, step);
    const Exported settings = plan_to_vllm_settings(s.plan, s.graph);
    CHECK(contains(settings.text,
                   "\"offload_group_size\": 4, \"offload_num_in_group\": 2, \"offload_prefetch_step\": " +
                       std::to_string(step)));
  }
}

TEST_CASE("vLLM's settings of a layer_ahead plan are those that it was made with") {
  // Copies that wrap around the iteration, and those of the first iteration alone, say the same step; as many
  // steps ahead as there are offloaded layers (4 of 8) is behind the layer's own last use.
  for (const int step : {1, 2, 3, 4})
    for (const std::int64_t copy : {20, 30}) {  // us of a copy, against 10 of a layer
      Toy toy;
      for (int i = 0; i < 8; ++i) toy.weight(copy);
      for (int i = 0; i < 8; ++i) toy.at(toy.op(10, {TensorId(static_cast<std::size_t>(i))}, {})).layer = i;
      const Graph graph = toy.graph();
      const Exported settings =
          plan_to_vllm_settings(layer_ahead(graph, toy.hardware, 4, {4, 2, step}).plan, graph);
      CHECK(contains(settings.text,
                     "\"offload_group_size\": 4, \"offload_num_in_group\": 2, \"offload_prefetch_step\": " +
                         std::to_string(step) + ", \"lost\": []"));
    }
}

TEST_CASE("vLLM's settings count copies that start elsewhere") {
  // In each iteration layers 2 and 3 are copied from its start on: 1 and 2 offloaded layers ahead; 6 and 7 are 2 ahead.
  const Streamed s = streamed(8, {2, 3, 6, 7}, 2);
  CHECK(plan_to_vllm_settings(s.plan, s.graph).remarks ==
        std::vector<std::string>{"1 of 4 copies start elsewhere than 2 offloaded layers ahead"});
}

TEST_CASE("layers of no pattern become gigabytes on the host, and what is lost is said") {
  const Streamed s = streamed(8, {0, 3, 4}, 1);
  const Exported settings = plan_to_vllm_settings(s.plan, s.graph);
  CHECK(contains(settings.text, "\"cpu_offload_gb\": 3,"));
  CHECK(contains(settings.text, "form no pattern of groups"));
  const Graph graph = small_graph();
  const Exported other = plan_to_vllm_settings(PlanMaker(graph).store("x", "a").build(), graph);
  CHECK(contains(other.text, "\"cpu_offload_gb\": 0"));
  CHECK(contains(other.text, "1 actions on tensors of kind activation"));
}

TEST_CASE("a plan's table has a line for each action and the bytes in all") {
  const Graph graph = small_graph();
  const std::string table =
      plan_to_table(
          PlanMaker(graph).initial_pool({"w"}).store("x", "a").detach("x", "a").prefetch("x", "b").build(),
          graph)
          .text;
  CHECK(contains(table, "0  store     x          50  a"));
  CHECK(contains(table, "prefetch: 1 actions, 50 bytes"));
  CHECK(contains(table, "in the pool at the start: 1 tensors, 100 bytes"));
}

}  // namespace hyperoffload
