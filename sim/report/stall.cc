#include "sim/report/stall.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>

#include "sim/model/check.h"
#include "sim/model/op_cost.h"
#include "sim/report/intervals.h"

namespace hyperoffload {
namespace {

constexpr std::size_t kWorstWaits = 10;

// In the order in which they are switched on.
enum Part {
  kContention,
  kFabric,
  kInputRoom,
  kHost,
  kCarrying,
  kLatency,
  kLinkBusy,
  kTransferRoom,
  kHeldBack,
  kNoRoom,
  kUnexplained,
  kPartCount
};
using Parts = std::array<double, kPartCount>;  // seconds

// Times closer than this are one instant (docs/semantics.md, rule 1): no wait.
double instant(Seconds clock) { return 1e-12 + 1e-15 * clock.value; }

struct Links {
  std::array<IntervalSet, 2> busy;     // by direction: a transfer is under way
  std::array<IntervalSet, 2> waiting;  // the head of the queue waits for room
};

IntervalSet spans(const NpuRecord& npu, Direction direction, Seconds TransferRecord::*from,
                  Seconds TransferRecord::*to) {
  std::vector<Interval> parts;
  for (const TransferRecord& t : npu.transfers)
    if (t.direction == direction) parts.push_back({t.*from, t.*to});
  return IntervalSet(std::move(parts));
}

Links links_of(const NpuRecord& npu) {
  using T = TransferRecord;
  constexpr Direction in = Direction::kPoolToHbm, out = Direction::kHbmToPool;
  return {{spans(npu, in, &T::start, &T::end), spans(npu, out, &T::start, &T::end)},
          {spans(npu, in, &T::queued, &T::start), spans(npu, out, &T::queued, &T::start)}};
}

struct Step {  // one op of the iteration
  const OpRecord* op = nullptr;
  double base = 0;         // ideal duration
  Seconds follows;         // the latest end of what it follows
  Seconds byte_wait_from;  // when only late bytes held it
  Parts parts{};
};

class Iteration {
 public:
  explicit Iteration(const StallInput& input)
      : input_(input),
        start_(input.npu.iteration_start.at(static_cast<std::size_t>(input.iteration))),
        position_(input.graph.ops().size(), -1) {
    for (const OpRecord& op : input.npu.ops)
      if (op.iteration == input.iteration) {
        HYPER_CHECK(!op.op.is_none() && op.op.index() < position_.size(),
                    "an op record names no op of the graph");
        position_[op.op.index()] = static_cast<std::int32_t>(steps_.size());
        steps_.push_back({&op, op.alone.value, {}, {}, {}});
      }
    if (input.ideal)
      for (const OpRecord& op : input.ideal->ops)
        if (op.iteration == input.ideal_iteration && position_.at(op.op.index()) >= 0)
          steps_[static_cast<std::size_t>(position_[op.op.index()])].base = (op.end - op.start).value;
    find_followed();
    split_delays();
  }

  const std::vector<Step>& steps() const { return steps_; }

  // How much each part adds to the iteration.
  Parts shares() const {
    Parts shares{};
    if (input_.graph.engines().size() == 1) {
      for (const Step& step : steps_)
        for (int p = 0; p < kPartCount; ++p)
          shares[static_cast<std::size_t>(p)] += step.parts[static_cast<std::size_t>(p)];
      return shares;
    }
    double before = longest_path(0);
    for (std::size_t p = 0; p < kPartCount; ++p) {
      if (std::all_of(steps_.begin(), steps_.end(), [&](const Step& s) { return s.parts[p] == 0; })) continue;
      const double with = longest_path(p + 1);
      shares[p] = with - before;
      before = with;
    }
    return shares;
  }

 private:
  template <class Visit>
  void for_each_followed(std::size_t i, std::int32_t engine_previous, Visit visit) const {
    if (engine_previous >= 0) visit(static_cast<std::size_t>(engine_previous));
    for (OpId dep : input_.graph.cross_engine_deps(steps_[i].op->op)) {
      const std::int32_t at = position_[dep.index()];
      if (at >= 0 && static_cast<std::size_t>(at) < i) visit(static_cast<std::size_t>(at));
    }
  }

  void find_followed() {
    std::vector<std::int32_t> last(input_.graph.engines().size(), -1);
    engine_previous_.resize(steps_.size());
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      std::int32_t& previous = last[input_.graph.op(steps_[i].op->op).engine.index()];
      engine_previous_[i] = previous;
      previous = static_cast<std::int32_t>(i);
      steps_[i].follows = start_;
      for_each_followed(i, engine_previous_[i], [&](std::size_t j) {
        steps_[i].follows = std::max(steps_[i].follows, steps_[j].op->end);
      });
    }
  }

  void split_delays() {
    const Links links = links_of(input_.npu);
    const auto k = static_cast<std::size_t>(input_.iteration);
    const Seconds inputs = k < input_.npu.inputs_taken.size() ? input_.npu.inputs_taken[k] : start_;
    for (Step& step : steps_) {
      const OpRecord& op = *step.op;
      const Seconds inputs_in = std::max(step.follows, std::min(inputs, op.start));
      const Seconds ready = std::max(inputs_in, op.ready);
      step.byte_wait_from = std::max(ready, op.decided);
      const Seconds resident = std::max(step.byte_wait_from, op.resident);
      step.parts[kInputRoom] = (inputs_in - step.follows).value;
      step.parts[kHost] = (step.byte_wait_from - ready).value;
      step.parts[kUnexplained] = (ready - inputs_in).value;
      split_byte_wait(links, op, {step.byte_wait_from, resident}, step.parts);
      step.parts[kNoRoom] = (op.start - resident).value;
      const bool fabric = input_.hardware && over_fabric(input_.graph.op(op.op), *input_.hardware);
      step.parts[fabric ? kFabric : kContention] = (op.end - op.start).value - step.base;
      for (double& part : step.parts)
        if (std::abs(part) <= instant(op.end)) part = 0;
    }
  }

  void split_byte_wait(const Links& links, const OpRecord& op, Interval wait, Parts& parts) const {
    double rest = std::max(0.0, (wait.to - wait.from).value);
    if (rest == 0) return;
    const auto take = [&](Part part, Seconds amount) {
      const double taken = std::min(rest, amount.value);
      parts[part] += taken;
      rest -= taken;
    };
    if (op.waited_transfer >= 0) {
      HYPER_CHECK(static_cast<std::size_t>(op.waited_transfer) < input_.npu.transfers.size(),
                  "an op record names no transfer");
      const TransferRecord& t = input_.npu.transfers[static_cast<std::size_t>(op.waited_transfer)];
      const auto d = static_cast<std::size_t>(t.direction);
      take(kCarrying, overlap(wait, {t.flow_start, t.end}));
      take(kLatency, overlap(wait, {t.start, t.flow_start}));
      take(kTransferRoom, overlap(wait, {t.queued, t.start}));
      const Interval before{wait.from, std::min(wait.to, t.queued)};
      take(kLinkBusy, links.busy[d].covered(before));
      take(kTransferRoom, links.waiting[d].covered(before));
    }
    parts[kHeldBack] += rest;
  }

  // The iteration's length with the first `parts` parts of every op's delays.
  double longest_path(std::size_t parts) const {
    std::vector<double> end(steps_.size());
    double latest = 0;
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      double time = 0;
      for_each_followed(i, engine_previous_[i], [&](std::size_t j) { time = std::max(time, end[j]); });
      time += steps_[i].base;
      for (std::size_t p = 0; p < parts; ++p) time += steps_[i].parts[p];
      end[i] = time;
      latest = std::max(latest, time);
    }
    return latest;
  }

  const StallInput& input_;
  Seconds start_;
  std::vector<Step> steps_;             // in order of start
  std::vector<std::int32_t> position_;  // of an op in steps_, or -1
  std::vector<std::int32_t> engine_previous_;
};

double late_bytes(const Parts& p) {
  return p[kCarrying] + p[kLatency] + p[kLinkBusy] + p[kTransferRoom] + p[kHeldBack];
}

// Makes the causes add up to `stall` bit by bit. Rounding goes to the largest cause, where it can't
// be seen; anything more is `other`.
void settle(StallCauses& causes, double share_of_noise, Seconds stall) {
  Seconds* largest = &causes.late_transfer;
  for (Seconds* cause : {&causes.no_room, &causes.hbm_contention, &causes.fabric_contention, &causes.input_room,
                         &causes.host})
    if (*cause > *largest) largest = cause;
  causes.other = Seconds(0);
  for (int round = 0; round < 4; ++round) {
    const Seconds rest = stall - causes.sum();
    if (rest == Seconds(0)) return;
    if (std::abs(rest.value) > share_of_noise || std::abs(rest.value) >= largest->value) break;
    *largest += rest;
  }
  const Seconds known = causes.sum();
  causes.other = stall - known;
  for (int round = 0; round < 4 && causes.sum() != stall; ++round)
    causes.other = Seconds(std::nextafter(causes.other.value, causes.sum() < stall ? 1e300 : -1e300));
}

const char* largest_reason(const Parts& p) {
  constexpr std::pair<Part, const char*> names[] = {{kCarrying, "carrying"},
                                                    {kLatency, "latency"},
                                                    {kLinkBusy, "link_busy"},
                                                    {kTransferRoom, "room"},
                                                    {kHeldBack, "held_back"}};
  const auto* best = &names[0];
  for (const auto& name : names)
    if (p[name.first] > p[best->first]) best = &name;
  return best->second;
}

struct Candidate {
  const Step* step;
  StallCause cause;
  double wait;
};

// What a transfer waited for last, before it started.
void say_what_held(const StallInput& input, const TransferRecord& t, Wait& wait) {
  const double same = instant(t.start);
  if ((t.start - t.queued).value > same) {
    wait.held_by = "room";
    wait.short_bytes = t.room_short;
    return;
  }
  const auto ends_at_its_start = [&](Seconds end) { return std::abs((t.queued - end).value) <= same; };
  for (const TransferRecord& other : input.npu.transfers)
    if (&other != &t && other.direction == t.direction && other.start < t.start && ends_at_its_start(other.end)) {
      wait.held_by = "transfer";
      wait.held_by_name = input.graph.tensor(other.tensor).name;
    }
  if (!wait.held_by.empty()) return;
  for (const OpRecord& op : input.npu.ops)
    if (ends_at_its_start(op.end)) {
      wait.held_by = "op";
      wait.held_by_name = input.graph.op(op.op).name;
    }
}

Wait describe(const StallInput& input, const Candidate& c) {
  const OpRecord& op = *c.step->op;
  Wait wait;
  wait.op = input.graph.op(op.op).name;
  wait.cause = c.cause;
  wait.wait = Seconds(c.wait);
  switch (c.cause) {
    case StallCause::kLateTransfer:
      wait.from = c.step->byte_wait_from;
      break;
    case StallCause::kNoRoom:
      wait.from = op.start - Seconds(c.wait);
      break;
    case StallCause::kHbmContention:
    case StallCause::kFabricContention:
      wait.from = op.start;
      break;
    case StallCause::kInputRoom:
      wait.from = c.step->follows;
      break;
    case StallCause::kHost:
      wait.from = c.step->byte_wait_from - Seconds(c.wait);
      break;
  }
  if (c.cause == StallCause::kNoRoom && op.room_short > Bytes(0)) wait.short_bytes = op.room_short;
  if (c.cause != StallCause::kLateTransfer) return wait;
  wait.reason = largest_reason(c.step->parts);
  if (!op.waited_for.is_none()) wait.tensor = input.graph.tensor(op.waited_for).name;
  if (op.waited_transfer >= 0) {
    const TransferRecord& t = input.npu.transfers[static_cast<std::size_t>(op.waited_transfer)];
    wait.bytes = t.bytes();
    wait.transfer_start = t.start;
    wait.transfer_end = t.end;
    say_what_held(input, t, wait);
    if (wait.tensor.empty() && !t.tensor.is_none()) wait.tensor = input.graph.tensor(t.tensor).name;
  }
  return wait;
}

std::vector<Wait> worst_waits(const StallInput& input, const std::vector<Step>& steps) {
  std::vector<Candidate> all;
  for (const Step& step : steps) {
    const auto add = [&](StallCause cause, double wait) {
      if (wait > 0) all.push_back({&step, cause, wait});
    };
    add(StallCause::kLateTransfer, late_bytes(step.parts));
    add(StallCause::kNoRoom, step.parts[kNoRoom]);
    add(StallCause::kHbmContention, step.parts[kContention]);
    add(StallCause::kFabricContention, step.parts[kFabric]);
    add(StallCause::kInputRoom, step.parts[kInputRoom]);
    add(StallCause::kHost, step.parts[kHost]);
  }
  const std::size_t count = std::min(kWorstWaits, all.size());
  std::partial_sort(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count), all.end(),
                    [](const Candidate& a, const Candidate& b) {
                      const auto key = [](const Candidate& c) {
                        return std::tuple(-c.wait, c.step->op->start, c.step->op->op, c.cause);
                      };
                      return key(a) < key(b);
                    });
  std::vector<Wait> worst;
  for (std::size_t i = 0; i < count; ++i) worst.push_back(describe(input, all[i]));
  return worst;
}

WaitSpread spread(const std::vector<Step>& steps) {
  WaitSpread spread;
  if (steps.empty()) return spread;
  std::vector<double> stalls;
  for (const Step& step : steps) {
    double stall = 0;
    for (double part : step.parts) stall += std::max(0.0, part);
    stalls.push_back(stall);
    if (stall > 0) ++spread.stalled_ops;
  }
  const std::size_t rank = (stalls.size() * 99 + 99) / 100 - 1;
  std::sort(stalls.begin(), stalls.end());
  spread.max = Seconds(stalls.back());
  spread.p99 = Seconds(stalls[rank]);
  return spread;
}

}  // namespace

const char* to_string(StallCause cause) {
  switch (cause) {
    case StallCause::kLateTransfer:
      return "late_transfer";
    case StallCause::kNoRoom:
      return "no_room";
    case StallCause::kHbmContention:
      return "hbm_contention";
    case StallCause::kFabricContention:
      return "fabric_contention";
    case StallCause::kInputRoom:
      return "input_room";
    case StallCause::kHost:
      return "host";
  }
  return "";
}

StallReport attribute_stall(const StallInput& input) {
  const Iteration iteration(input);
  const Parts shares = iteration.shares();
  const auto share = [&](Part p) { return Seconds(std::max(0.0, shares[p])); };

  StallReport report;
  report.late_transfer = {share(kCarrying), share(kLatency), share(kLinkBusy), share(kTransferRoom),
                          share(kHeldBack)};
  report.causes = {report.late_transfer.sum(), share(kNoRoom), share(kContention), share(kFabric),
                   share(kInputRoom), share(kHost), {}};
  const auto k = static_cast<std::size_t>(input.iteration);
  const Seconds length = input.npu.iteration_end.at(k) - input.npu.iteration_start.at(k);
  settle(report.causes, 1e-9 * length.value, input.stall);
  report.per_op = spread(iteration.steps());
  report.worst = worst_waits(input, iteration.steps());
  return report;
}

}  // namespace hyperoffload
