#include "sim/model/plan_order.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/model/check.h"
#include "sim/model/check_words.h"

namespace hyperoffload {
namespace {

std::vector<OpId> places_of(const std::vector<OpId>& order) {
  std::vector<OpId> places(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) places[order[i].index()] = OpId(i);
  return places;
}

std::vector<Violation> check_permutation(const Graph& graph, const std::vector<OpId>& order) {
  std::vector<Violation> broken;
  std::vector<int> named(graph.ops().size(), 0);
  for (OpId op : order) {
    HYPER_CHECK(!op.is_none() && op.index() < named.size(), "order names an op out of range");
    ++named[op.index()];
  }
  for (std::size_t i = 0; i < named.size(); ++i)
    if (named[i] != 1)
      broken.push_back({"order", 0, OpId(i), TensorId::none(), -1,
                        fmt::format("order names {} {} times, not once", quoted(graph, OpId(i)), named[i])});
  return broken;
}

}  // namespace

std::vector<Violation> check_order(const Graph& graph, const Plan& plan) {
  if (plan.order.empty()) return {};
  std::vector<Violation> broken = check_permutation(graph, plan.order);
  if (!broken.empty()) return broken;
  const std::vector<OpId> place = places_of(plan.order);
  const auto swapped = [&](OpId earlier, OpId later) { return place[earlier.index()] > place[later.index()]; };
  const auto report = [&](OpId earlier, OpId later, TensorId tensor, const std::string& why) {
    broken.push_back({"order", 0, later, tensor, -1,
                      fmt::format("order puts {} before {}, but {}", quoted(graph, later), quoted(graph, earlier), why)});
  };
  for (std::size_t i = 0; i < graph.ops().size(); ++i) {
    const Op& op = graph.ops()[i];
    for (OpId after : op.after)
      if (swapped(after, OpId(i))) report(after, OpId(i), TensorId::none(), "it runs after that op");
    if (op.known_after && swapped(*op.known_after, OpId(i)))
      report(*op.known_after, OpId(i), TensorId::none(), "its reads are known only after that op");
  }
  for (std::size_t t = 0; t < graph.tensors().size(); ++t)
    for_each_data_dependency(graph.accesses(TensorId(t)), [&](const Access& earlier, const Access& later) {
      if (swapped(earlier.op, later.op))
        report(earlier.op, later.op, TensorId(t),
               fmt::format("it {} {}, which that op {}", later.reads ? "reads" : "writes", quoted(graph, TensorId(t)),
                           earlier.writes ? "writes" : "reads"));
    });
  return broken;
}

Reordered reorder(const Graph& graph, const Plan& plan) {
  const std::vector<OpId> place = places_of(plan.order);
  const auto moved = [&](OpId op) { return op.is_none() ? op : place[op.index()]; };
  GraphSpec spec;
  spec.name = graph.name();
  spec.meta_json = graph.meta_json();
  spec.tensors = graph.tensors();
  spec.engines = graph.engines();
  for (OpId old : plan.order) {
    Op& op = spec.ops.emplace_back(graph.op(old));
    for (OpId& after : op.after) after = moved(after);
    if (op.known_after) op.known_after = moved(*op.known_after);
  }
  Plan in_order = plan;
  in_order.order.clear();
  for (Action& action : in_order.actions) {
    action.after_op = moved(action.after_op);
    action.before_op = moved(action.before_op);
  }
  for (Address& address : in_order.addresses) address.op = moved(address.op);
  return {build_graph(std::move(spec)), std::move(in_order)};
}

}  // namespace hyperoffload
