#include "planner/bound/offload_lp.h"

#include <ClpConfig.h>

#include <algorithm>
#include <utility>

#include "planner/bound/master_program.h"
#include "planner/bound/pattern_prices.h"

namespace hyperoffload {
namespace {

double byte_scale(const OffloadLp& lp) {
  return std::max(1.0, *std::max_element(lp.excess.begin(), lp.excess.end()));
}

LpOutcome improve(const OffloadLp& lp, double bytes, MasterProgram& master, const PatternPricer& pricer,
                  const LpLimits& limits) {
  LpOutcome out;
  std::vector<std::pair<int, Pattern>> found;
  Prices best;
  const double scale = lp.question.bytes ? bytes : lp.time_scale;
  double lower = 0;
  bool any = false;
  for (out.rounds = 1;; ++out.rounds) {
    out.complete = master.solve(limits.work - out.work);
    out.upper = std::max(0.0, master.objective());
    out.work += master.work();
    const Prices now = master.prices();
    found.clear();
    // The solver's prices jump about while patterns are few: look at a mixture with the best so far, too.
    for (double weight : {0.0, 0.5, 0.9}) {
      if (weight > 0 && !any) continue;
      const Prices at = weight > 0 ? now.mixed(best, weight) : now;
      Priced priced = pricer.price(at);
      if (priced.limit > lower || !any) {
        lower = std::max(0.0, priced.limit);
        best = std::move(priced.prices);
        any = true;
      }
      const PatternPricer::At exact(pricer, now);
      for (auto& [u, pattern] : priced.patterns)
        if (exact.gain(u, pattern) > master.unit_price(u) + 1e-9) found.emplace_back(u, std::move(pattern));
    }
    const double close = std::max(limits.tolerance * out.upper, limits.seconds / scale);
    if (found.empty() || out.upper - lower <= close || out.rounds >= limits.rounds || !out.complete || out.work >= limits.work)
      break;
    master.add(found);
  }
  master.read_solution(out);
  out.lower = lower * scale;
  out.upper *= scale;
  for (double price : best.memory) out.seconds_per_byte += price * lp.time_scale / bytes;
  out.rows = master.rows();
  out.columns = master.columns();
  return out;
}

bool nothing_to_do(const OffloadLp& lp) {
  return *std::max_element(lp.excess.begin(), lp.excess.end()) <= 0 &&
         std::none_of(lp.units.begin(), lp.units.end(), [](const LpUnit& u) { return u.pool_only; });
}

}  // namespace

struct OffloadSolver::State {
  explicit State(const OffloadLp& lp) : bytes(byte_scale(lp)), master(lp, bytes), pricer(lp, bytes) {
    master.add(pricer.seeds());
  }
  double bytes;  // that count as one
  MasterProgram master;
  PatternPricer pricer;
};

OffloadSolver::OffloadSolver(OffloadLp lp) : lp_(std::move(lp)) {}
OffloadSolver::~OffloadSolver() = default;

LpOutcome OffloadSolver::solve(const LpLimits& limits) {
  if (nothing_to_do(lp_)) return {};
  if (!state_) state_ = std::make_unique<State>(lp_);
  return improve(lp_, state_->bytes, state_->master, state_->pricer, limits);
}

void OffloadSolver::fix_start(int unit, bool in_pool) {
  lp_.units[unit].pool_only = lp_.units[unit].pool_start = in_pool;
  if (state_) state_->master.fix_start(unit, in_pool);
}

void OffloadSolver::free_start(int unit) {
  lp_.units[unit].pool_only = false;
  lp_.units[unit].pool_start = true;
  if (state_) state_->master.free_start(unit);
}

void OffloadSolver::set_starts(const LpStarts& starts) {
  lp_.starts = starts;
  if (state_) state_->master.starts_changed();
}

void OffloadSolver::ask(const LpQuestion& question) {
  lp_.question = question;
  if (state_) state_->master.ask_question();
}

void OffloadSolver::set_excess(std::vector<double> excess) {
  if (!state_) state_ = std::make_unique<State>(lp_);
  lp_.excess = std::move(excess);
  state_->master.excess_changed();
}

std::vector<double> shares_not_stored(const OffloadLp& lp, const LpOutcome& outcome) {
  std::vector<double> shares(lp.units.size());
  for (const LpShare& share : outcome.shares)
    if (share.pattern.store < 0) shares[share.unit] += share.share;
  return shares;
}

LpOutcome solve(const OffloadLp& lp, const LpLimits& limits) { return OffloadSolver(lp).solve(limits); }

std::string clp_version() { return CLP_VERSION; }

}  // namespace hyperoffload
