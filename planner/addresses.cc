#include "planner/addresses.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "planner/cost/walk.h"
#include "planner/pack/pack.h"
#include "sim/model/check.h"
#include "sim/model/check_plan.h"
#include "sim/model/error.h"
#include "sim/model/residency.h"

namespace hyperoffload {
namespace {

// Of HBM: what the first plan for less does without (then 3, 6, 10, ... times as much), and how close to the most
// that fits it is worth to come.
constexpr double kFirstShare = 0.01, kFinest = 0.0025;
// So much longer an iteration, as a share, is as good as the plan without addresses.
constexpr double kFree = 1e-4;
// What finding a fit between two plans that differ by less, as a share of an iteration, isn't worth.
constexpr double kNearly = 1e-3;
// An arena of pieces that much above HBM needs more room than whole tensors, where those fit.
constexpr double kFarAbove = 0.05;
// Plans with tensors that move in pieces, each with less room by what the arena before was too high.
constexpr int kMovingAgain = 3;

// Follows residencies and keeps them as rectangles, by source.
class Recorder final : public ResidencyListener {
 public:
  using Source = std::tuple<Resident::By, TensorId, OpId, int>;

  // Begins another order of events, right behind the one before.
  void follow(const Residency& residency) {
    residency_ = &residency;
    shift_ = std::max<std::int64_t>(0, last_ - 1);
    iterations_.clear();
    iteration_ = 0;
  }
  void forget() { *this = Recorder(); }

  void taken(const Resident& r, std::int64_t event) override {
    const int source = number(r);
    note(source, event, 1);
    if (static_cast<std::size_t>(r.piece) >= open_.size())
      open_.resize(static_cast<std::size_t>(r.piece) + 1);
    open_[static_cast<std::size_t>(r.piece)] = {source, event + shift_};
    if (r.tensor.is_none()) return;
    for (int p = residency_->first_piece(r.tensor); p < residency_->last_piece(r.tensor); ++p)
      if (p != r.piece && residency_->here(p))
        return unite(source, open_[static_cast<std::size_t>(p)].source);
  }
  void given(const Resident& r, std::int64_t event) override {
    const Open& open = open_[static_cast<std::size_t>(r.piece)];
    note(open.source, event, 2);
    if (event + shift_ > open.since)
      stays_.push_back({open.source, {open.since, event + shift_, r.from.value, (r.to - r.from).value}});
  }
  void iteration_ended() override { iterations_.push_back(std::exchange(iteration_, 0)); }

  // The last two iterations did the same in the same order.
  bool steady() const {
    const std::size_t n = iterations_.size();
    return n >= 3 && iterations_[n - 1] == iterations_[n - 2];
  }
  std::vector<PackItem> items() const;
  int item_of(int source) const { return item_of_root_.at(root(source)); }
  const std::map<Source, int>& sources() const { return numbers_; }

 private:
  struct Open {
    int source = 0;
    std::int64_t since = 0;
  };
  struct Stay {
    int source;
    PackRect rect;
  };

  int number(const Resident& r) {
    const auto [it, fresh] =
        numbers_.try_emplace({r.by, r.tensor, r.op, r.action}, static_cast<int>(root_.size()));
    if (fresh) root_.push_back(it->second);
    return it->second;
  }
  int root(int source) const {
    while (root_[static_cast<std::size_t>(source)] != source)
      source = root_[static_cast<std::size_t>(source)];
    return source;
  }
  void unite(int a, int b) {
    a = root(a);
    b = root(b);
    root_[static_cast<std::size_t>(std::max(a, b))] = std::min(a, b);
  }
  void note(int source, std::int64_t event, std::uint64_t what) {
    last_ = event + shift_;
    iteration_ = (iteration_ ^ (static_cast<std::uint64_t>(source) * 4 + what)) * 0x100000001b3ULL;
  }

  const Residency* residency_ = nullptr;
  std::int64_t shift_ = 0, last_ = 0;
  std::map<Source, int> numbers_;
  std::vector<int> root_;   // by source: another one of its item, or itself
  std::vector<Open> open_;  // by piece
  std::vector<Stay> stays_;
  std::vector<std::uint64_t> iterations_;  // what each did, hashed
  std::uint64_t iteration_ = 0;
  mutable std::map<int, int> item_of_root_;
};

// Joins what touches in time, byte range by byte range, then neighbours in bytes that come and go together.
std::vector<PackRect> joined(std::vector<PackRect> rects) {
  const auto join = [&](auto key, auto touch) {
    std::sort(rects.begin(), rects.end(),
              [&](const PackRect& a, const PackRect& b) { return key(a) < key(b); });
    std::vector<PackRect> out;
    for (const PackRect& r : rects)
      if (out.empty() || !touch(out.back(), r)) out.push_back(r);
    rects = std::move(out);
  };
  join([](const PackRect& r) { return std::tuple(r.offset, r.size, r.lower); },
       [](PackRect& a, const PackRect& b) {
         if (a.offset != b.offset || a.size != b.size || a.upper < b.lower) return false;
         a.upper = b.upper;
         return true;
       });
  join([](const PackRect& r) { return std::tuple(r.lower, r.upper, r.offset); },
       [](PackRect& a, const PackRect& b) {
         if (a.lower != b.lower || a.upper != b.upper || a.offset + a.size != b.offset) return false;
         a.size += b.size;
         return true;
       });
  return rects;
}

std::vector<PackItem> Recorder::items() const {
  std::vector<PackItem> items;
  item_of_root_.clear();
  for (std::size_t s = 0; s < root_.size(); ++s)
    if (item_of_root_.try_emplace(root(static_cast<int>(s)), static_cast<int>(items.size())).second)
      items.emplace_back();
  for (const Stay& stay : stays_)
    items[static_cast<std::size_t>(item_of(stay.source))].rects.push_back(stay.rect);
  for (PackItem& item : items) item.rects = joined(std::move(item.rects));
  return items;
}

CheckLimits limits_of(const FlatGraph& graph) {
  return {Bytes(graph.machine.hbm), Bytes(graph.machine.pool), graph.machine.allocation};
}

// The walk's own order of takes and frees, until two iterations are alike.
std::int64_t follow_walk(const FlatGraph& graph, const Plan& plan, int iterations, Recorder& recorder) {
  for (int some = std::min(iterations, 4);; some = std::min(iterations, 2 * some)) {
    recorder.forget();
    Residency residency(*graph.graph, plan, recorder);
    recorder.follow(residency);
    const Walk walk = walk_plan(graph, plan, {some, WalkRecord::kNothing, false, {}, &residency});
    HYPER_CHECK(!walk.stuck, "the walk gets stuck on a plan that the checker passed");
    residency.end();
    if (some == iterations || recorder.steady()) return walk.hbm_peak;
  }
}

}  // namespace

Arena give_addresses(const FlatGraph& graph, Plan& plan, int iterations) {
  Arena arena;
  Recorder recorder;
  arena.live_peak = follow_walk(graph, plan, iterations, recorder);
  Residency residency(*graph.graph, plan, recorder);
  recorder.follow(residency);
  watch_program_order(*graph.graph, plan, limits_of(graph), iterations, residency);
  residency.end();

  const std::vector<PackItem> items = recorder.items();
  PackOptions options;  // a part in a thousand above the peak will do, if HBM has it
  const std::int64_t peak = live_peak(items);
  options.enough = std::max(peak, std::min(graph.machine.hbm, peak + peak / 1000));
  options.most = graph.machine.hbm;
  const Packing packing = pack(items, options);
  arena.height = packing.height;
  arena.program_peak = packing.peak;
  arena.proven = packing.proven;
  arena.first_fit_by_size = packing.first_fit_by_size;
  arena.planned_for = graph.machine.hbm;
  arena.items = static_cast<int>(items.size());
  plan.arena = Bytes(packing.height);
  plan.addresses.clear();
  for (const auto& [source, number] : recorder.sources()) {
    const auto& [by, tensor, op, action] = source;
    const std::int64_t base = packing.offsets[static_cast<std::size_t>(recorder.item_of(number))];
    if (by == Resident::By::kPrefetch) {
      Action& prefetch = plan.actions[static_cast<std::size_t>(action)];
      prefetch.offset = Bytes(base) + prefetch.from;
    } else {
      plan.addresses.push_back({tensor, op, Bytes(base)});
    }
  }
  return arena;
}

namespace {

// Plans again until an arena fits, and keeps what takes the least time.
class RoomSearch {
 public:
  RoomSearch(const FlatGraph& graph, int iterations, const PlanFor& plan_for, Arena lowest, double bare_seconds)
      : graph_(graph), iterations_(iterations), plan_for_(plan_for), lowest_(lowest), bare_(bare_seconds) {}

  // With whole tensors, or with pieces: ever less room until an arena fits, then halfway back.
  void search(Parts parts, bool moves) {
    double too_little = 0, enough = 1;  // shares: none that small fits; one that large does, or stalls more than the best
    double over = parts == Parts::kNone ? 0 : share_of(lowest_.height - graph_.machine.hbm), least = bare_;
    // Without loads there is nothing to start later.
    for (int again = 0, step = moves ? 0 : 1; again < kPlanAgain && !finished() && enough - too_little >= kFinest; ++again) {
      double share = enough < 1 ? (too_little + enough) / 2 : kFirstShare * step * (step + 1) / 2;
      // What is too high now may be all that has to be done without.
      if (enough == 1 && step == 1 && too_little < over && over < share)
        share = over;
      else
        ++step;
      try {
        const Verdict verdict = judge(share, parts);
        (verdict.fits || verdict.worse ? enough : too_little) = share;
        if (verdict.broken) continue;
        over = share_of(verdict.height - graph_.machine.hbm);
        if (!verdict.fits && !verdict.worse) least = verdict.seconds;
      } catch (const InfeasibleError&) {
        if (enough == 1) break;
        too_little = share;
      }
      // Plans for more room than `too_little` leaves don't fit; what lies between gains next to nothing.
      if (best_ && seconds_ - least <= kNearly * bare_) break;
    }
  }

  // From the room on in which whole tensors fit: what moves in pieces hardly fits into less.
  void move_in_pieces() {
    double share = share_of(graph_.machine.hbm - arena_.planned_for);
    for (int again = 0; again < kMovingAgain && best_ && !finished(); ++again) try {
        const Verdict verdict = judge(share, Parts::kMoving);
        if (verdict.broken || verdict.fits || verdict.worse) return;
        share += share_of(verdict.height - graph_.machine.hbm);
      } catch (const InfeasibleError&) {
        return;
      }
  }

  bool finished() const { return seconds_ <= bare_ * (1 + kFree); }
  std::optional<Plan>& best() { return best_; }
  const Arena& arena() const { return arena_; }
  const Arena& lowest() const { return lowest_; }

 private:
  struct Verdict {
    bool fits = false, worse = false;  // worse: takes longer than the best so far, and wasn't packed
    bool broken = true;                // a rule: there is nothing to pack
    double seconds = 0;
    std::int64_t height = 0;
  };
  double share_of(std::int64_t bytes) const {
    return static_cast<double>(bytes) / static_cast<double>(graph_.machine.hbm);
  }

  // The plan that does without this share of HBM.
  Verdict judge(double share, Parts parts) {
    const std::int64_t hbm = graph_.machine.hbm;
    const std::int64_t room = hbm - static_cast<std::int64_t>(share * static_cast<double>(hbm));
    Plan plan = plan_for_({room, parts});
    plan.room = Bytes(room);
    Verdict verdict;
    if (!check_plan(*graph_.graph, plan, limits_of(graph_), iterations_).empty()) return verdict;
    verdict.broken = false;
    verdict.seconds = walk_plan(graph_, plan, {iterations_, WalkRecord::kNothing}).last_iteration;
    verdict.worse = verdict.seconds >= seconds_;
    if (verdict.worse) return verdict;
    Arena arena = give_addresses(graph_, plan, iterations_);
    arena.planned_for = room;
    arena.late = true;
    verdict.height = arena.height;
    verdict.fits = arena.height <= hbm;
    if (arena.height < lowest_.height) lowest_ = arena;
    if (verdict.fits) {
      seconds_ = verdict.seconds;
      best_ = std::move(plan);
      arena_ = arena;
    }
    return verdict;
  }

  const FlatGraph& graph_;
  const int iterations_;
  const PlanFor& plan_for_;
  Arena lowest_, arena_;
  const double bare_;  // seconds without addresses
  double seconds_ = std::numeric_limits<double>::infinity();
  std::optional<Plan> best_;
};

bool in_pieces(const FlatGraph& graph, const Plan& plan) {
  return std::any_of(plan.actions.begin(), plan.actions.end(),
                     [&](const Action& a) { return a.bytes() < graph.graph->tensor(a.tensor).bytes; });
}

}  // namespace

Arena fit_addresses(const FlatGraph& graph, Plan& plan, int iterations, const PlanFor& plan_for) {
  const std::int64_t hbm = graph.machine.hbm;
  const Arena first = give_addresses(graph, plan, iterations);
  if (first.height <= hbm) return first;
  RoomSearch search(graph, iterations, plan_for, first,
                    walk_plan(graph, plan, {iterations, WalkRecord::kNothing}).last_iteration);
  // What whole tensors take then bounds what pieces may: those that take longer aren't packed.
  search.search(Parts::kNone, !plan.actions.empty());
  const bool pieces = in_pieces(graph, plan);
  if (pieces) search.move_in_pieces();
  const double over = static_cast<double>(first.height - hbm) / static_cast<double>(hbm);
  if (pieces && (!search.best() || over < kFarAbove)) search.search(Parts::kAny, true);
  if (search.best()) {
    plan = std::move(*search.best());
    return search.arena();
  }
  const Arena& lowest = search.lowest();
  throw InfeasibleError(
      fmt::format("no addresses fit into HBM: the lowest arena found is {} B high, with {} B alive at its "
                  "fullest, and {} B are "
                  "there, {} B short",
                  lowest.height, lowest.program_peak, hbm, lowest.height - hbm));
}

}  // namespace hyperoffload
