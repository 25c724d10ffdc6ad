// Why a plan is as it is, in short lines a person can read: what was short, what each action does, why
// then, and whether its time is hidden.
//
// Works from the plan and its walk alone, so it explains any valid plan, not only the planner's own.
// O(actions + ops) beside one walk.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/model/graph.h"
#include "sim/model/hardware.h"
#include "sim/model/plan.h"

namespace hyperoffload {

struct DecisionLog {
  std::vector<std::string> lines;
};

std::string to_text(const DecisionLog& log);  // one line each, the last one ended, too

DecisionLog explain_actions(const Graph& graph, const Hardware& hardware, const Plan& plan, int iterations);

// The same for one tensor or op by its name: who uses it, where it is when, and why it moves or stays. InputError
// with the nearest name if there is none of that name.
std::string explain_name(const Graph& graph, const Hardware& hardware, const Plan& plan, int iterations,
                         const std::string& name);

// "1.5 GB", "640 us": three digits, for people.
std::string show_bytes(std::int64_t bytes);
std::string show_seconds(double seconds);

}  // namespace hyperoffload
