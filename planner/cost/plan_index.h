// A plan as the walk reads it: queues by direction, actions by tensor, and who waits for whom.
//
// An action's *place* is the step it stands right behind (-1: before the first op): its `after_op`, or
// the place of the tensor's previous action of the same iteration, if that is later. Actions come in two
// sets: those of the first iteration and those of every later one. All lists are flat and by index.
// O(actions + accesses of tensors with actions).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "planner/analysis/flat_graph.h"
#include "sim/model/plan.h"

namespace hyperoffload {

// An access that has to wait for actions of its tensor. `first` and `later`: how many of that
// iteration's actions must be done (counted along the tensor's list); 0: none of this iteration.
struct Gate {
  std::int32_t tensor;
  std::int32_t first;
  std::int32_t later;
  bool all;  // waits for stores, too (a writer, an op in the pool); else prefetches and detaches only
};

struct TensorActions {
  std::int32_t first = 0, later = 0;            // how many actions in the first and in a later iteration
  std::int32_t last_first = 0, last_later = 0;  // 1 + rank of the last that is no store; 0: none
};

template <class T>
struct Lists {  // one list an index, flat
  std::vector<std::uint32_t> begin;
  std::vector<T> items;
  std::span<const T> operator[](std::size_t i) const {
    return {items.data() + begin[i], items.data() + begin[i + 1]};
  }
};

struct PlanIndex {
  PlanIndex(const FlatGraph& graph, const Plan& plan);

  std::vector<std::int32_t> loads, stores;  // actions by queue, in file order
  Lists<std::int32_t> by_tensor;            // actions, in file order
  std::vector<TensorActions> counts;        // by tensor
  Lists<Gate> gates;                        // by op
  // By action: ops it waits for besides `after_op`, in the first and in a later iteration.
  Lists<std::int32_t> waits_first, waits_later;
  Lists<std::int32_t> detaches;              // by op: detaches that wait for it
  std::vector<std::int32_t> start_detaches;  // detaches that wait for nothing but the iteration's start
  std::vector<char> starts_in_pool;          // by tensor
};

}  // namespace hyperoffload
