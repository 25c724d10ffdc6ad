#include "test/support/replay_property.h"

#include <fmt/format.h>

#include <sstream>

#include "sim/model/error.h"
#include "test/support/compare_replay.h"
#include "test/support/fork.h"
#include "test/support/random_graph.h"

namespace hyperoffload {
namespace {

// What differs between a replay in a child and the reference, or "".
std::string difference(const std::function<RunRecord()>& replay, const ReferenceResult& reference,
                       const Graph& graph) {
  try {
    const RunRecord record = record_from_child(replay);
    return first_difference(record, reference, graph);
  } catch (const InfeasibleError& e) {
    return reference.stuck ? "" : std::string("the replay can't be done: ") + e.what();
  } catch (const std::exception& e) {
    return std::string("the replay threw: ") + e.what();
  }
}

struct Worker {
  PropertyReport report;
  std::size_t smallest = 0;  // ops and actions of the smallest failing case

  void count(const ReferenceResult& reference, const std::string& what, const RandomCase& c) {
    ++report.cases;
    report.stuck += reference.stuck;
    cover(c, reference, report.coverage);
    if (what.empty()) return;
    const std::size_t size = c.graph.ops().size() + c.plan.actions.size();
    if (report.failures++ > 0 && size >= smallest) return;
    smallest = size;
    report.smallest_failure = what + "\n" + describe(c);
  }

  std::string to_text() const {
    std::string text = fmt::format("{} {} {} {} {}\n", report.cases, report.stuck, report.failures, smallest,
                                   report.coverage.size());
    for (const auto& [feature, count] : report.coverage) text += fmt::format("{} {}\n", count, feature);
    return text + report.smallest_failure;
  }
  static Worker from_text(const std::string& text) {
    Worker w;
    std::istringstream in(text);
    std::size_t features = 0;
    in >> w.report.cases >> w.report.stuck >> w.report.failures >> w.smallest >> features;
    in.ignore();  // the line's end
    for (; features-- > 0;) {
      int count = 0;
      std::string name;
      in >> count;
      std::getline(in >> std::ws, name);
      w.report.coverage[name] = count;
    }
    w.report.smallest_failure.assign(std::istreambuf_iterator<char>(in), {});
    return w;
  }
  void add(const Worker& other) {
    report.cases += other.report.cases;
    report.stuck += other.report.stuck;
    for (const auto& [feature, count] : other.report.coverage) report.coverage[feature] += count;
    if (other.report.failures == 0) return;
    if (report.failures == 0 || other.smallest < smallest) {
      smallest = other.smallest;
      report.smallest_failure = other.report.smallest_failure;
    }
    report.failures += other.report.failures;
  }
};

// play(seed, worker) once for each seed, the seeds dealt out to `jobs` children.
PropertyReport deal(std::uint64_t first_seed, int cases, int jobs,
                    const std::function<void(std::uint64_t, Worker&)>& play) {
  const auto results = run_in_children(jobs, [&](int job) {
    Worker worker;
    for (int i = job; i < cases; i += jobs) play(first_seed + static_cast<std::uint64_t>(i), worker);
    return worker.to_text();
  });
  Worker all;
  for (const std::string& text : results) all.add(Worker::from_text(text));
  return all.report;
}

}  // namespace

std::string compare_plan(const RandomCase& c, const ReferenceResult& reference, const PlanReplay& replay) {
  return difference([&] { return replay(c.graph, c.plan, c.hardware, c.iterations); }, reference, c.graph);
}

PropertyReport compare_plans(std::uint64_t first_seed, int cases, int jobs, const PlanReplay& replay) {
  return deal(first_seed, cases, jobs, [&](std::uint64_t seed, Worker& worker) {
    const RandomCase c = random_case(seed);
    const ReferenceResult reference = reference_replay(c.graph, c.plan, c.hardware, c.iterations);
    worker.count(reference, compare_plan(c, reference, replay), c);
  });
}

PropertyReport compare_on_demand(std::uint64_t first_seed, int cases, int jobs,
                                 const OnDemandReplay& replay) {
  return deal(first_seed, cases, jobs, [&](std::uint64_t seed, Worker& worker) {
    const RandomCase c = random_on_demand_case(seed);
    const Evict evict = seed % 2 == 0 ? Evict::kLru : Evict::kOldest;
    const ReferenceResult reference = reference_on_demand(c.graph, c.hardware, c.iterations, evict);
    const auto run = [&] { return replay(c.graph, c.hardware, c.iterations, evict); };
    worker.count(reference, difference(run, reference, c.graph), c);
  });
}

}  // namespace hyperoffload
