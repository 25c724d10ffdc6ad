// A plan: cache operators (Prefetch, Store, Detach) placed in a graph's program order.
//
// An action stands right behind its `after_op` (none: the iteration's start), or behind the
// tensor's previous action in the file if that stands later. Every iteration repeats the body,
// except for actions restricted to the first or to later iterations. Byte ranges are half-open.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "sim/model/graph.h"

namespace hyperoffload {

enum class ActionKind { kPrefetch, kStore, kDetach };
enum class IterationScope { kEvery, kFirst, kLater };
const char* to_string(ActionKind kind);

struct Action {
  ActionKind kind = ActionKind::kPrefetch;
  TensorId tensor;
  OpId after_op;   // none: at the iteration's start
  OpId before_op;  // informative; none: not given
  Bytes from, to;  // the piece moved; the whole tensor is [0, bytes)
  IterationScope scope = IterationScope::kEvery;
  std::optional<Bytes> offset{};  // of a prefetch: where in HBM `from` comes to lie

  Bytes bytes() const { return to - from; }
  bool in_iteration(int iteration) const {  // iterations count from 0
    return scope == IterationScope::kEvery || (scope == IterationScope::kFirst) == (iteration == 0);
  }
};

// The planner's own exact walk of time over its plan, for the same number of iterations.
struct Prediction {
  Seconds iteration, first_iteration, total, ideal;
  Bytes hbm_peak, pool_peak;
};

// Proven lower limits. `stall`: least stall of the last iteration at the given HBM capacity.
// `hbm_peak`: least HBM capacity at which that stall can be zero. `steady_stall`: least stall of an iteration that ends in
// the state it began in (several iterations, one engine, tight bound); the last of N may still live on what the first left.
struct Bound {
  Bytes hbm_peak;
  Seconds stall;
  std::string method;             // "window", "lp", ...
  std::string order = "program";  // the op order it is proven for
  std::optional<Seconds> steady_stall = {};
};

// Where in HBM something lies that no prefetch brings there.
struct Address {
  TensorId tensor;  // none: the op's workspace
  OpId op;          // whose write takes the bytes; none: there from the start, or an input
  Bytes offset;     // of the first byte
};

struct Plan {
  std::vector<Action> actions;
  std::vector<TensorId> initial_pool;  // persistent tensors that start in the pool; sorted, unique
  std::vector<OpId> order;             // empty: program order
  std::optional<Prediction> prediction;
  std::optional<Bound> bound;
  std::vector<Address> addresses{};
  std::optional<Bytes> arena{};  // no address reaches above it; set: the plan comes with addresses
  // Most bytes that may be in HBM at once: whoever takes bytes waits for room as if HBM had no more. None: all of it.
  std::optional<Bytes> room{};

  Bytes room_of(Bytes hbm) const { return room ? std::min(*room, hbm) : hbm; }
};

// JSON, strictly: InputError with the path inside the file for unknown keys and names, wrong types, a
// range outside of its tensor, an `order` that is no permutation of the ops or breaks a dependency. An
// absent `after_op` is null. That the actions make sense is check_plan's business, not the reader's.
Plan load_plan(const std::string& path, const Graph& graph);
Plan parse_plan(const std::string& text, const std::string& source, const Graph& graph);
std::string plan_to_json(const Plan& plan, const Graph& graph);

}  // namespace hyperoffload
