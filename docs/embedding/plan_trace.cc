// Plans a trace on a machine with less HBM than it wants: plan_trace TRACE.json MACHINE.yaml GB
#include <hyperoffload/hyperoffload.h>

#include <cstdio>
#include <cstdlib>

using namespace hyperoffload;

int main(int argc, char** argv) {
  if (argc != 4) return std::fputs("usage: plan_trace TRACE.json MACHINE.yaml GB\n", stderr), 2;
  try {
    const Graph graph = load_graph(argv[1]);
    Hardware machine = load_hardware(argv[2]);
    replace_hbm_capacity(machine, Bytes(static_cast<std::int64_t>(std::atof(argv[3]) * 1e9)), "GB");
    PlannerOptions options;
    options.iterations = 2;
    const Plan plan = make_plan(graph, machine, options).plan;
    const CheckLimits limits{machine.hbm_usable(), fair_pool(machine)};
    if (!check_plan(graph, plan, limits, options.iterations).empty()) return 1;  // it never happens
    std::printf("%zu actions, %.6g s an iteration, %.6g s with everything in HBM, peak %lld B\n",
                plan.actions.size(), plan.prediction->iteration.value, plan.prediction->ideal.value,
                static_cast<long long>(plan.prediction->hbm_peak.value));
  } catch (const InputError& error) {
    return std::fprintf(stderr, "%s\n", error.what()), 2;
  } catch (const InfeasibleError& error) {
    return std::fprintf(stderr, "%s\n", error.what()), 3;
  }
}
