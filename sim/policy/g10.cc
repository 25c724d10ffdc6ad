#include "sim/policy/g10.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "sim/model/error.h"
#include "sim/model/op_cost.h"
#include "sim/policy/absences.h"
#include "sim/policy/hbm_profile.h"

namespace hyperoffload {
namespace {

constexpr double kTarget = 0.99, kSpare = 0.5;
constexpr Seconds kMigration{45e-6};  // what the system takes to begin one

// What one link still carries during each op, in bytes, over two iterations that are the same.
class FreeLink {
 public:
  FreeLink(const std::vector<Seconds>& durations, BytesPerSecond bandwidth) : ops_(durations.size()) {
    for (Seconds d : durations) free_.push_back(d.value * bandwidth.value);
    add_up();
  }
  // The op during which `bytes` are through when they start with op `from`; `beyond` if not before that one.
  std::size_t end_of(double bytes, std::size_t from, std::size_t beyond) const {
    const auto it =
        std::lower_bound(sum_.begin() + static_cast<std::ptrdiff_t>(from) + 1,
                         sum_.begin() + static_cast<std::ptrdiff_t>(beyond) + 1, sum_[from] + bytes);
    return std::min(beyond, static_cast<std::size_t>(it - sum_.begin()) - 1);
  }
  // The op with which they have to start to be through before op `to`; `from` if not after it.
  std::size_t start_of(double bytes, std::size_t to, std::size_t from) const {
    const auto it = std::upper_bound(sum_.begin() + static_cast<std::ptrdiff_t>(from),
                                     sum_.begin() + static_cast<std::ptrdiff_t>(to), sum_[to] - bytes);
    const auto after = static_cast<std::size_t>(it - sum_.begin());
    return after > from ? after - 1 : from;
  }
  // Takes them from what is free, op by op.
  void book(double bytes, std::size_t from, std::size_t to) {
    for (std::size_t k = from; k < to && bytes > 0; ++k) {
      const double taken = std::min(bytes, free_[k % ops_]);
      free_[k % ops_] -= taken;
      bytes -= taken;
    }
    add_up();
  }

 private:
  void add_up() {
    sum_.assign(1, 0);
    for (std::size_t k = 0; k < 2 * ops_; ++k) sum_.push_back(sum_.back() + free_[k % ops_]);
  }
  std::size_t ops_;
  std::vector<double> free_, sum_;  // sum_[k]: of the ops before k
};

struct Period {
  Stretch stretch;
  std::size_t from = 0,
              to = 0;  // its ops: behind the use before, up to the use after (counted on if it wraps)
  double bytes = 0, length = 0;  // seconds
  bool done = false;             // taken, or passed over
  int delays = -1;               // in the late pass: the chosen one whose load it puts off
};

struct Taken {
  std::size_t period;  // index
  std::size_t clear;   // the op during which the eviction ends
  std::size_t load;    // with which the load starts
  bool late = false;   // right before the use
};

class Migration {
 public:
  Migration(const Graph& graph, const Hardware& hardware, const std::vector<Bytes>& profile)
      : graph_(graph),
        profile_(profile),
        ops_(graph.ops().size()),
        capacity_(static_cast<double>(hardware.hbm_usable().value)),
        durations_(timeline(graph, hardware)),
        in_(fair_link(hardware, true)),
        out_(fair_link(hardware, false)),
        loads_(durations_, in_.bandwidth),
        evictions_(durations_, out_.bandwidth) {
    for (Bytes b : profile) taken_.push_back(static_cast<double>(b.value));
    std::vector<Seconds> at(1);
    for (std::size_t k = 0; k < 2 * ops_; ++k) at.push_back(at.back() + durations_[k % ops_]);
    for (const Stretch& s : stretches(graph)) {
      Period p{s, s.from.index() + 1, s.to.index() + (s.wraps ? ops_ : 0)};
      if (p.to < p.from + 1) continue;
      p.bytes = static_cast<double>(graph.tensor(s.tensor).bytes.value);
      p.length = (at[p.to] - at[p.from]).value;
      periods_.push_back(p);
    }
  }

  std::vector<Absence> choose() {
    while (too_much(kTarget * capacity_)) {
      Period* best = largest(kTarget * capacity_, true);
      if (!best) break;
      best->done = true;
      take(static_cast<std::size_t>(best - periods_.data()));
    }
    load_eagerly();
    load_late();
    std::vector<Absence> absences;
    for (const Taken& t : chosen_) absences.push_back(absence(t));
    return absences;
  }

 private:
  static std::vector<Seconds> timeline(const Graph& graph, const Hardware& hardware) {
    std::vector<Seconds> durations, busy(graph.engines().size());
    for (const Op& op : graph.ops()) {
      durations.push_back(op_cost(op, hardware).alone);
      busy[op.engine.index()] += durations.back();
    }
    const auto busiest = static_cast<std::size_t>(std::max_element(busy.begin(), busy.end()) - busy.begin());
    for (std::size_t i = 0; i < durations.size(); ++i)
      if (graph.ops()[i].engine.index() != busiest) durations[i] = Seconds(0);
    return durations;
  }

  bool too_much(double limit) const { return *std::max_element(taken_.begin(), taken_.end()) > limit; }

  // The open period with the largest benefit; null if none has any.
  Period* largest(double limit, bool by_ledger) {
    std::vector<double> pressed(1, 0);  // time of the ops before k that exceed the limit
    for (std::size_t k = 0; k < 2 * ops_; ++k)
      pressed.push_back(pressed.back() + (taken_[k % ops_] > limit ? durations_[k % ops_].value + 1e-12 : 0));
    Period* best = nullptr;
    double most = 0;
    for (Period& p : periods_) {
      if (p.done) continue;
      std::size_t from = p.from, to = p.to;
      if (by_ledger) {
        from = evictions_.end_of(p.bytes / 2, from, to);
        to = loads_.start_of(p.bytes / 2, to, p.from);
      }
      const double benefit = from < to ? p.bytes * (pressed[to] - pressed[from]) : 0;
      if (benefit > most ||
          (best && benefit == most && benefit > 0 && p.bytes * p.length > best->bytes * best->length)) {
        best = &p;
        most = benefit;
      }
    }
    return best;
  }

  void take(std::size_t index) {
    const Period& p = periods_[index];
    const auto move = [&](const LinkDirection& link) {
      return kMigration.value + link.latency.value + p.bytes / link.bandwidth.value;
    };
    if (p.length <= move(out_) + (1 + kSpare) * move(in_)) return;
    const std::size_t clear = evictions_.end_of(p.bytes, p.from, p.to);
    const std::size_t load = loads_.start_of(p.bytes, p.to, p.from);
    if (load <= clear) return;
    evictions_.book(p.bytes, p.from, p.to);
    loads_.book(p.bytes, load, p.to);
    for (std::size_t k = clear + 1; k < load; ++k) taken_[k % ops_] -= p.bytes;
    chosen_.push_back({index, clear, load});
  }

  void load_eagerly() {
    std::stable_sort(chosen_.begin(), chosen_.end(),
                     [](const Taken& a, const Taken& b) { return a.load < b.load; });
    for (Taken& t : chosen_)
      while (t.load > t.clear + 1 &&
             taken_[(t.load - 1) % ops_] + periods_[t.period].bytes <= kTarget * capacity_)
        taken_[--t.load % ops_] += periods_[t.period].bytes;
  }

  Absence absence(const Taken& t) const {
    const Stretch& s = periods_[t.period].stretch;
    const bool next = t.load >= ops_;  // in the iteration that follows
    Absence a{s.tensor, s.access, OpId::none(), s.wraps && !next};
    if (t.late)
      a.load_after = load_point(graph_, s.to);
    else if (t.load % ops_ > 0)
      a.load_after = OpId(t.load % ops_ - 1);
    return a;
  }

  // What still doesn't fit, with the bytes there really are when an absence lasts from its use to its load:
  // further periods go, and loads come right before the use, by the same benefit and without the ledger.
  void load_late() {
    std::size_t k = 0;
    for (Bytes b : profile_) taken_[k++] = static_cast<double>(b.value);
    for (Period& p : periods_) p.done = false;
    for (std::size_t i = 0; i < chosen_.size(); ++i) {
      const Taken& t = chosen_[i];
      Period p = periods_[t.period];
      periods_[t.period].done = true;
      for (std::size_t op = p.from; op < t.load; ++op) taken_[op % ops_] -= p.bytes;
      p.from = t.load;
      p.delays = static_cast<int>(i);
      if (p.from < p.to) periods_.push_back(p);
    }
    while (too_much(capacity_)) {
      Period* best = largest(capacity_, false);
      if (!best) report_short();
      best->done = true;
      for (std::size_t op = best->from; op < best->to; ++op) taken_[op % ops_] -= best->bytes;
      if (best->delays < 0) {
        chosen_.push_back({static_cast<std::size_t>(best - periods_.data()), best->from, best->to, true});
      } else {
        Taken& t = chosen_[static_cast<std::size_t>(best->delays)];
        t.load = best->to;
        t.late = true;
      }
    }
  }

  [[noreturn]] void report_short() const {
    const auto at = static_cast<std::size_t>(std::max_element(taken_.begin(), taken_.end()) - taken_.begin());
    throw InfeasibleError(
        fmt::format("g10 has everything inactive away and is short of {:.0f} B of HBM at op \"{}\"",
                    taken_[at] - capacity_, graph_.ops()[at].name));
  }

  const Graph& graph_;
  const std::vector<Bytes>& profile_;
  const std::size_t ops_;
  const double capacity_;
  const std::vector<Seconds> durations_;
  const LinkDirection in_, out_;
  FreeLink loads_, evictions_;
  std::vector<double> taken_;  // bytes in HBM at each op
  std::vector<Period> periods_;
  std::vector<Taken> chosen_;
};

}  // namespace

StaticPlan g10_migration(const Graph& graph, const Hardware& hardware, int iterations) {
  StaticPlan made;
  made.plan = fit_absences(graph, iterations, [&](const std::vector<Bytes>& profile) {
    return Migration(graph, hardware, profile).choose();
  });
  return made;
}

}  // namespace hyperoffload
