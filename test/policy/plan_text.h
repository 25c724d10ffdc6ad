// A plan in one line, for tests that pin one by hand.
#pragma once

#include <string>

#include "sim/model/plan.h"

namespace hyperoffload {

inline std::string plan_text(const Graph& graph, const Plan& plan) {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : "; ") + part; };
  if (!plan.initial_pool.empty()) {
    std::string names = "pool:";
    for (TensorId t : plan.initial_pool) names += " " + graph.tensor(t).name;
    add(names);
  }
  for (const Action& a : plan.actions) {
    std::string part = std::string(to_string(a.kind)) + " " + graph.tensor(a.tensor).name +
                       (a.after_op.is_none() ? " at the start" : " after " + graph.op(a.after_op).name);
    if (!a.before_op.is_none()) part += " for " + graph.op(a.before_op).name;
    if (a.scope == IterationScope::kFirst) part += " (first)";
    if (a.scope == IterationScope::kLater) part += " (later)";
    add(part);
  }
  return text;
}

}  // namespace hyperoffload
