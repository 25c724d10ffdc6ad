#include "test/support/coverage.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "sim/model/op_cost.h"

namespace hyperoffload {
namespace {

using Features = std::set<std::string>;

void graph_features(const RandomCase& c, Features& found) {
  const Graph& g = c.graph;
  found.insert(c.tied ? "tied numbers" : "untied numbers");
  found.insert(c.iterations == 1 ? "one iteration" : "several iterations");
  found.insert("shape: " + g.name());
  if (g.ops().size() > 50) found.insert("more than 50 ops");
  for (std::size_t i = 0; i < g.ops().size(); ++i) {
    const Op& op = g.ops()[i];
    const bool pool = op.memory == Tier::kPool;
    if (pool) found.insert("op in the pool");
    if (op.workspace > Bytes(0)) found.insert(pool ? "workspace in the pool" : "workspace");
    if (op_cost(op, c.hardware).alone == Seconds(0)) found.insert("op that takes no time");
    if (op.duration && op.hbm_bytes) found.insert("duration with HBM demand");
    if (!op.duration && op.flops && op.hbm_bytes) found.insert("roofline op");
    if (!op.after.empty()) found.insert("after");
    if (op.known_after) found.insert("known_after");
    for (TensorId t : op.writes) {
      if (g.birth(t) == OpId(i)) found.insert(pool ? "birth in the pool" : "birth");
      const bool reads = std::find(op.reads.begin(), op.reads.end(), t) != op.reads.end();
      if (g.birth(t) != OpId(i))
        found.insert(reads ? (pool ? "update in place in the pool" : "update in place")
                           : (pool ? "pure rewrite in the pool" : "pure rewrite"));
      if (g.is_input(t)) found.insert("input written");
    }
  }
  for (std::size_t i = 0; i < g.tensors().size(); ++i) {
    const TensorId t(i);
    if (g.is_input(t)) found.insert("input");
    if (!g.accesses(t).empty()) continue;
    found.insert(g.tensor(t).persistent ? "persistent tensor without access" : "other tensor without access");
  }
}

void plan_shape_features(const RandomCase& c, Features& found) {
  for (TensorId t : c.plan.initial_pool)
    found.insert(c.graph.tensor(t).initial == Tier::kPool ? "initial pool by trace and plan"
                                                          : "initial pool by plan");
  for (const Tensor& t : c.graph.tensors())
    if (t.initial == Tier::kPool) found.insert("initial pool by trace");
  std::map<TensorId, std::int32_t> place;
  for (const Action& a : c.plan.actions) {
    const std::string kind = to_string(a.kind);
    const auto accesses = c.graph.accesses(a.tensor);
    if (a.scope == IterationScope::kFirst) found.insert("first: " + kind);
    if (a.scope == IterationScope::kLater) found.insert("later: " + kind);
    if (a.bytes() < c.graph.tensor(a.tensor).bytes) found.insert("piece: " + kind);
    if (a.bytes() == Bytes(0)) found.insert("no bytes: " + kind);
    if (a.after_op.is_none()) found.insert("at the iteration's start: " + kind);
    if (c.graph.is_input(a.tensor)) found.insert("input: " + kind);
    const auto previous = place.find(a.tensor);
    if (previous != place.end() && previous->second > a.after_op.value)
      found.insert("behind the tensor's previous action: " + kind);
    if (accesses.empty()) {
      found.insert("action on a tensor without access");
    } else if (a.after_op >= accesses.back().op) {
      found.insert((c.graph.tensor(a.tensor).persistent ? "behind the last access: " : "before its death: ") +
                   kind);
    }
    place[a.tensor] = std::max(a.after_op.value, previous == place.end() ? -1 : previous->second);
  }
}

void run_features(const RandomCase& c, const ReferenceResult& r, Features& found) {
  for (const auto& [what, count] : r.seen) found.insert(what);
  if (r.stuck) {
    found.insert("stuck");
    return;
  }
  const long double begin = r.iteration_start.back(), end = r.iteration_end.back();
  std::set<long double> starts, ends;
  for (const ReferenceOp& op : r.ops) {
    if (!ends.insert(op.end).second) found.insert("two ops end at one instant");
    starts.insert(op.start);
  }
  for (const ReferenceTransfer& t : r.transfers) {
    if (t.end > end) found.insert("transfer in flight at the end");
    if (t.flow_start < begin && t.end > begin) found.insert("transfer crosses the last iteration's start");
    if (t.start < begin && t.flow_start > begin) found.insert("latency crosses the last iteration's start");
    if (t.start >= r.iteration_end[static_cast<std::size_t>(t.iteration)])
      found.insert("transfer starts after its iteration");
    if (ends.count(t.end) > 0) found.insert("transfer ends with an op");
    if (starts.count(t.start) > 0) found.insert("transfer starts with an op");
    if (t.start == t.end) found.insert("transfer that takes no time");
    for (const ReferenceTransfer& other : r.transfers)
      if (t.direction != other.direction && t.start < other.end && other.start < t.end)
        found.insert("both directions at once");
  }
  if (r.hbm_peak == c.hardware.hbm_usable()) found.insert("HBM filled to the last byte");
  if (r.pool_peak == c.hardware.pool_capacity) found.insert("pool filled to the last byte");
}

}  // namespace

void cover(const RandomCase& c, const ReferenceResult& result, Coverage& coverage) {
  Features found;
  graph_features(c, found);
  plan_shape_features(c, found);
  run_features(c, result, found);
  for (const std::string& feature : found) ++coverage[feature];
}

std::vector<std::string> plan_features() {
  std::vector<std::string> all = {
      // the graph
      "tied numbers", "untied numbers", "one iteration", "several iterations", "more than 50 ops",
      "op in the pool", "workspace", "workspace in the pool", "op that takes no time",
      "duration with HBM demand", "roofline op", "after", "known_after", "birth", "birth in the pool",
      "update in place", "update in place in the pool", "pure rewrite", "pure rewrite in the pool", "input",
      "input written", "persistent tensor without access", "other tensor without access",
      // the plan
      "initial pool by plan", "initial pool by trace", "initial pool by trace and plan",
      "action on a tensor without access", "before its death: detach",
      // the run
      "stuck", "action waits for the tensor's previous one", "copy slowed by HBM", "kernel slowed by HBM",
      "death waits for an action", "store waits for an access", "prefetch waits for an access",
      "detach waits for an access", "inputs wait for an earlier action", "inputs wait for room",
      "op in the pool waits for a detach", "op in the pool waits for a prefetch",
      "op in the pool waits for a store", "op waits for HBM room", "op waits for pool room",
      "op waits for an earlier iteration's action", "op waits for another engine", "prefetch waits for room",
      "store waits for room", "pure write takes all bytes", "pure write takes the missing bytes",
      "read beside a store", "reader waits for a detach", "reader waits for a prefetch",
      "reader waits for a store", "writer waits for a detach", "writer waits for a prefetch",
      "writer waits for a store", "store reuses its pool bytes", "the queue's head holds up another",
      "transfer never starts", "transfer waits for its anchor", "write makes the pool copy stale",
      "two ops end at one instant", "transfer in flight at the end",
      "transfer crosses the last iteration's start", "latency crosses the last iteration's start",
      "transfer starts after its iteration", "transfer ends with an op", "transfer starts with an op",
      "transfer that takes no time", "both directions at once", "HBM filled to the last byte",
      "pool filled to the last byte"};
  for (const char* shape : {"weight stream", "training", "skips", "experts", "states"})
    all.push_back(std::string("shape: ") + shape);
  for (const char* kind : {"prefetch", "store", "detach"})
    for (const char* what : {"first: ", "later: ", "piece: ", "no bytes: ", "at the iteration's start: ",
                             "input: ", "behind the tensor's previous action: ", "behind the last access: "})
      all.push_back(what + std::string(kind));
  std::sort(all.begin(), all.end());
  return all;
}

}  // namespace hyperoffload
