// The one table of policies: names, options, help, and what runs them. A new policy is a row here.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "app/policy_spec.h"
#include "sim/model/graph.h"
#include "sim/model/hardware.h"
#include "sim/policy/policy.h"
#include "sim/policy/static_plan.h"

namespace hyperoffload {

struct PolicyEntry {
  PolicyInfo info;
  // One of the two; `resident` and `graph` have neither: evaluate.cc knows them.
  std::function<std::unique_ptr<Policy>(const PolicySpec&)> runtime{};  // decides while time runs
  std::function<StaticPlan(const Graph&, const Hardware&, int iterations, const PolicySpec&)> fixed{};
};

const std::vector<PolicyEntry>& policy_table();
const PolicyEntry& policy_entry(const std::string& name);  // a name that was parsed

}  // namespace hyperoffload
