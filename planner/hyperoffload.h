// All that a program needs that plans by itself: the public interface of the installed library.
//
//   load_graph, load_hardware, load_plan      files -> Graph, Hardware, Plan (InputError with the place)
//   GraphSpec -> build_graph                  a trace made in memory
//   make_plan(graph, hardware, options)       the planner (InfeasibleError: what is short, and where)
//   cheap_bound(graph, hardware, iterations)  what no plan can do better; prove_bound: the same, tighter
//   check_plan(graph, plan, limits, n)        the independent validator; empty: the plan keeps every rule
//   plan_to_json, graph_to_json               for `hyperoffload check`, `simulate` and other tools
//
// Units are types (units.h): Bytes, Seconds, BytesPerSecond. Nothing here is global: calls on different
// objects may run in different threads. What isn't included here may change with any version.
#pragma once

#include "planner/planner.h"
#include "sim/model/check_plan.h"
#include "sim/model/error.h"
#include "sim/model/graph.h"
#include "sim/model/hardware.h"
#include "sim/model/plan.h"
#include "sim/model/units.h"
