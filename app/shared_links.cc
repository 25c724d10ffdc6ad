#include "app/shared_links.h"

#include <algorithm>

#include "planner/analysis/flat_graph.h"
#include "sim/model/op_cost.h"

namespace hyperoffload {
namespace {

bool anything_shared(const std::vector<const Graph*>& graphs, const Hardware& hardware) {
  if (one_npu(hardware).estimate) return true;
  return std::any_of(graphs.begin(), graphs.end(), [&](const Graph* graph) {
    return std::any_of(graph->ops().begin(), graph->ops().end(),
                       [&](const Op& op) { return over_fabric(op, hardware); });
  });
}

// How much longer transfers took than the machine's share has it, as a share of that.
class Measured {
 public:
  explicit Measured(const Hardware& hardware) : machine_(one_npu(hardware)) {}

  void add(const NpuRecord& npu) {
    for (const TransferRecord& t : npu.transfers) {
      if (t.bytes() == Bytes(0)) continue;
      const bool read = t.direction == Direction::kPoolToHbm;
      const std::int64_t bytes = t.bytes().value;
      Way& way = read ? read_ : write_;
      way.took += (t.end - t.start).value;
      way.promised += read ? machine_.load_seconds(bytes) : machine_.store_seconds(bytes);
    }
  }
  LinkSlack slack() const { return {read_.slack(), write_.slack()}; }

 private:
  struct Way {
    double took = 0, promised = 0;
    // Of links that are faster than promised a tenth of the time counts, so that none is planned as free.
    double slack() const { return promised > 0 ? std::max(-0.9, took / promised - 1) : 0; }
  };
  NpuMachine machine_;
  Way read_, write_;
};

// By plan: one for all NPUs takes what all of them got.
std::vector<LinkSlack> measured_slack(const Hardware& hardware, const RunRecord& record, std::size_t plans) {
  std::vector<Measured> all(plans, Measured(hardware));
  for (std::size_t n = 0; n < record.npus.size(); ++n) all[plans == 1 ? 0 : n].add(record.npus[n]);
  std::vector<LinkSlack> slack;
  for (const Measured& measured : all) slack.push_back(measured.slack());
  return slack;
}

bool notable(const std::vector<LinkSlack>& slack) {
  return std::any_of(slack.begin(), slack.end(),
                     [](const LinkSlack& s) { return std::max(std::abs(s.read), std::abs(s.write)) > 0.001; });
}

PlannerUse use_of(const std::vector<LinkSlack>& slack) {
  PlannerUse use{slack.front().read, slack.front().write};
  for (const LinkSlack& s : slack) {
    use.read_slack = std::max(use.read_slack, s.read);
    use.write_slack = std::max(use.write_slack, s.write);
  }
  return use;
}

}  // namespace

std::optional<double> slack_of(const PolicySpec& graph) {
  return graph.is("slack", "auto") ? std::nullopt : std::optional(graph.number("slack"));
}

Plan plan_with(const Graph& graph, const Hardware& hardware, int iterations, int rank, const LinkSlack& slack) {
  PlannerOptions options;
  options.iterations = iterations;
  options.rank = rank;
  options.read_slack = slack.read;
  options.write_slack = slack.write;
  return make_plan(graph, hardware, options).plan;
}

ReplayedPlans plan_and_replay(const std::vector<const Graph*>& graphs, const Hardware& hardware, int iterations,
                              std::optional<double> slack, const PlanRank& plan, const ReplayPlans& replay) {
  double ops = 0, ideal = 0;
  for (const Graph* graph : graphs) ops += static_cast<double>(graph->ops().size());
  ops *= static_cast<double>(iterations) * (graphs.size() == 1 ? hardware.npu_count : 1);
  const bool once = slack || !anything_shared(graphs, hardware);
  const int most = once ? 1 : std::clamp(static_cast<int>(kReplayedOps / ops), 1, kReplays);

  std::vector<LinkSlack> now(graphs.size(), LinkSlack{slack.value_or(0), slack.value_or(0)});
  ReplayedPlans best;
  for (int replays = 1;; ++replays) {
    ReplayedPlans tried;
    for (std::size_t rank = 0; rank < graphs.size(); ++rank) {
      tried.plans.push_back(plan(static_cast<int>(rank), now[rank]));
      ideal = std::max(ideal, tried.plans.back().prediction->ideal.value);
    }
    tried.record = replay(tried.plans);
    tried.use = use_of(now);
    const Seconds time = slowest_iteration(tried.record);
    const std::vector<LinkSlack> measured = measured_slack(hardware, tried.record, now.size());
    const bool better = replays == 1 || time < slowest_iteration(best.record);
    if (better) best = std::move(tried);
    best.use.replays = replays;
    if (!better || replays == most || time.value <= 1.001 * ideal) return best;
    if (replays == 1)
      now = measured;
    else
      for (LinkSlack& s : now) s = {2 * std::max(s.read, 0.05), 2 * std::max(s.write, 0.05)};  // at least 10 %
    if (!notable(now)) return best;
  }
}

}  // namespace hyperoffload
