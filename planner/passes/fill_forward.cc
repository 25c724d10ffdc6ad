#include "planner/passes/fill_forward.h"

#include <algorithm>
#include <limits>
#include <queue>
#include <set>
#include <tuple>

#include "planner/analysis/memory_profile.h"

namespace hyperoffload {
namespace {

constexpr Ticks kNever = std::numeric_limits<Ticks>::max() / 4;
constexpr int kForgetful = 3;  // iterations walked of a repeated body; the last but one is kept
constexpr int kClosed = -9;    // lap of a gap no instance of which is open
constexpr int kFar = std::numeric_limits<int>::max() / 4;

class Filler {
 public:
  Filler(const FlatGraph& graph, const Liveness& liveness, const StepClock& clock,
         const std::vector<std::int32_t>& rank)
      : graph_(graph),
        liveness_(liveness),
        clock_(clock),
        rank_(rank),
        resident_(liveness.resident),
        opening_(liveness.positions + 1),
        closing_(liveness.positions),
        written_(liveness.positions),
        gaps_(liveness.gaps.size()),
        copied_(liveness.versions.size()) {}

  std::optional<Filled> run();

 private:
  struct GapState {
    int lap = kClosed;   // whose instance this is
    int evicted = 0;   // pieces [0, evicted) have left
    int loaded = 0;    // of them, back or on their way
    int arrived = 0;   // of them, back
    bool asked = false;  // stands among the dirty
  };
  struct Candidate {
    int use;  // on the walk's axis
    int rank;
    int gap;
    bool operator<(const Candidate& o) const {
      return std::tuple(use, -rank, gap) < std::tuple(o.use, -o.rank, o.gap);
    }
  };
  struct Missing {
    int use, rank, gap;
    bool operator<(const Missing& o) const {
      return std::tuple(use, rank, gap) < std::tuple(o.use, o.rank, o.gap);
    }
  };

  int P() const { return liveness_.positions; }
  bool index();
  void open(int gap, int lap);
  int use_of(int gap) const {
    const Gap& g = liveness_.gaps[gap];
    return !g.loads && g.close == P() && !liveness_.repeats ? kFar : g.close + gaps_[gap].lap * P();
  }
  int pieces(int gap) const { return liveness_.pieces[liveness_.gaps[gap].tensor]; }
  bool always_clean(int gap) const;
  int clean_pieces(int gap) const;
  std::int64_t bytes_at(int q) const { return resident_.at(q % P()) - away_; }
  std::int64_t most(int from, int to) const;
  bool usable(const Candidate& c, int after) const {
    return gaps_[c.gap].lap != kClosed && use_of(c.gap) == c.use && c.use > after;
  }
  void evict(int gap);
  bool make_room(std::int64_t bytes, int after, int q);
  std::int64_t could_leave(std::int64_t enough, int after);
  void try_load(int q, bool urgent);
  void try_store(int q);
  void finish(int q);
  bool blocked(int q);
  bool wait(int q);
  void advance(Ticks until, int q);
  void begin(int q);

  const FlatGraph& graph_;
  const Liveness& liveness_;
  const StepClock& clock_;
  const std::vector<std::int32_t>& rank_;
  MemoryProfile resident_;
  std::vector<std::vector<std::int32_t>> opening_;  // gaps, by the position whose end opens them, plus one
  std::vector<std::vector<std::int32_t>> closing_;  // gaps, by the position of the access that closes them
  std::vector<std::vector<std::int32_t>> written_;  // versions, by position
  std::vector<GapState> gaps_;
  std::vector<std::int32_t> copied_;  // by version: pieces [0, copied) have a valid pool copy
  std::priority_queue<Candidate> clean_, dirty_;
  std::set<Missing> missing_;  // gaps with pieces away that are to come back
  std::int64_t away_ = 0;
  Ticks now_ = 0, stall_ = 0;
  Ticks load_end_ = kNever, store_end_ = kNever;  // kNever: idle
  int loading_ = -1, storing_ = -1;               // gaps
  int store_version_ = -1;
  int refused_ = -2;  // what had ended when a load was put off
  int settled_ = -1;  // all up to this position have ended
  int keep_ = 0;      // lap whose gaps count
  std::vector<Eviction> result_;
  std::vector<Ticks> extra_;
};

bool Filler::index() {
  if (liveness_.reads_known_late) return false;
  for (std::size_t g = 0; g < liveness_.gaps.size(); ++g) {
    const Gap& gap = liveness_.gaps[g];
    if (gap.must_leave || liveness_.versions[gap.version].clean) return false;
    if (graph_.bytes[gap.tensor] == 0) continue;
    if (gap.open >= P()) return false;
    opening_[gap.open + 1].push_back(static_cast<std::int32_t>(g));
    if (gap.close % P() != 0 || gap.close < P()) closing_[gap.close % P()].push_back(static_cast<std::int32_t>(g));
  }
  for (std::size_t v = 0; v < liveness_.versions.size(); ++v)
    if (liveness_.versions[v].written >= 0)
      written_[liveness_.versions[v].written].push_back(static_cast<std::int32_t>(v));
  return true;
}

bool Filler::always_clean(int gap) const {
  const Gap& g = liveness_.gaps[gap];
  const Version& version = liveness_.versions[g.version];
  return g.open < 0 || (version.written < 0 && (liveness_.repeats || graph_.bound_to_pool[g.tensor]));
}

int Filler::clean_pieces(int gap) const {
  return always_clean(gap) ? pieces(gap) : copied_[liveness_.gaps[gap].version];
}

void Filler::open(int gap, int lap) {
  GapState& state = gaps_[gap];
  state = GapState{};
  state.lap = lap;
  const int use = use_of(gap), rank = rank_[liveness_.gaps[gap].tensor];
  if (clean_pieces(gap) > 0) clean_.push({use, rank, gap});
  if (clean_pieces(gap) < pieces(gap)) {
    dirty_.push({use, rank, gap});
    state.asked = true;
  }
}

// The most bytes at positions [from, to), as things stand.
std::int64_t Filler::most(int from, int to) const {
  if (to <= from) to = from + 1;
  if (!liveness_.repeats) return resident_.max(from, std::min(to, P())) - away_;
  if (to - from >= P()) return resident_.max(0, P()) - away_;
  return resident_.max(from % P(), from % P() + to - from) - away_;
}

void Filler::evict(int gap) {
  GapState& state = gaps_[gap];
  const Gap& g = liveness_.gaps[gap];
  const int count = g.open < 0 ? pieces(gap) : state.evicted + 1;
  for (; state.evicted < count; ++state.evicted) {
    away_ += liveness_.piece_bytes(g.tensor, state.evicted);
    if (state.lap == keep_)
      result_.push_back({g.first_unit + state.evicted, std::max(g.open + 1, settled_ + 1 - state.lap * P())});
  }
  if (g.open < 0) {
    copied_[g.version] = pieces(gap);
  }
  if (g.loads) missing_.insert({use_of(gap), rank_[g.tensor], gap});
}

// Evicts what is clean and used last, later than `after`, until `bytes` more fit at q.
bool Filler::make_room(std::int64_t bytes, int after, int q) {
  while (bytes_at(q) + bytes > graph_.machine.hbm) {
    if (clean_.empty()) return false;
    const Candidate top = clean_.top();
    if (!usable(top, q) || gaps_[top.gap].evicted >= clean_pieces(top.gap) ||
        gaps_[top.gap].loaded > 0) {  // what comes back is not sent away again
      clean_.pop();
      continue;
    }
    if (top.use <= after) return false;
    evict(top.gap);
  }
  return true;
}

// Bytes that are clean and used later than `after`, counted up to `enough` among the first few.
std::int64_t Filler::could_leave(std::int64_t enough, int after) {
  std::int64_t sum = 0;
  std::vector<Candidate> seen;
  while (!clean_.empty() && sum < enough && seen.size() < 48) {
    const Candidate top = clean_.top();
    if (top.use <= after) break;
    clean_.pop();
    if (!usable(top, after)) continue;
    const GapState& state = gaps_[top.gap];
    if (state.loaded > 0 || state.evicted >= clean_pieces(top.gap)) continue;
    for (int k = state.evicted; k < clean_pieces(top.gap); ++k)
      sum += liveness_.piece_bytes(liveness_.gaps[top.gap].tensor, k);
    seen.push_back(top);
  }
  for (const Candidate& c : seen) clean_.push(c);
  return sum;
}

void Filler::try_load(int q, bool urgent) {
  if (loading_ >= 0 || missing_.empty()) return;
  const Missing next = *missing_.begin();
  GapState& state = gaps_[next.gap];
  const Gap& g = liveness_.gaps[next.gap];
  const std::int64_t bytes = liveness_.piece_bytes(g.tensor, state.loaded);
  const Ticks length = clock_.ticks(graph_.machine.load_seconds(bytes));
  if (next.use > q || !urgent) {
    const std::int64_t excess = most(q, next.use) + bytes - graph_.machine.hbm;
    if (refused_ == settled_) return;
    if (excess > 0 && could_leave(excess, next.use) < excess) {
      refused_ = settled_;  // its anchor could not make it wait for less than the next op
      return;
    }
  }
  if (!make_room(bytes, next.use, q) && bytes_at(q) + bytes > graph_.machine.hbm) return;
  away_ -= bytes;
  ++state.loaded;
  loading_ = next.gap;
  load_end_ = now_ + length;
  if (state.loaded == state.evicted) missing_.erase(missing_.begin());
}

void Filler::try_store(int q) {
  while (storing_ < 0 && !dirty_.empty()) {
    const Candidate top = dirty_.top();
    dirty_.pop();
    if (!usable(top, q)) continue;
    const Gap& g = liveness_.gaps[top.gap];
    const int piece = copied_[g.version];
    if (piece >= pieces(top.gap)) continue;
    storing_ = top.gap;
    store_version_ = g.version;
    store_end_ = now_ + clock_.ticks(graph_.machine.store_seconds(liveness_.piece_bytes(g.tensor, piece)));
    dirty_.push(top);
  }
}

// Ends what ends now.
void Filler::finish(int q) {
  if (loading_ >= 0 && load_end_ <= now_) {
    ++gaps_[loading_].arrived;
    loading_ = -1;
    load_end_ = kNever;
  }
  if (storing_ >= 0 && store_end_ <= now_) {
    const int gap = storing_;
    storing_ = -1;
    store_end_ = kNever;
    if (store_version_ >= 0) {
      ++copied_[store_version_];
      if (gaps_[gap].lap != kClosed && use_of(gap) > q)
        clean_.push({use_of(gap), rank_[liveness_.gaps[gap].tensor], gap});
    }
  }
}

void Filler::advance(Ticks until, int q) {
  for (;;) {
    try_load(q, false);
    try_store(q);
    const Ticks next = std::min(load_end_, store_end_);
    if (next > until) break;
    now_ = next;
    finish(q);
  }
  now_ = std::max(now_, until);
}

bool Filler::blocked(int q) {
  if (!make_room(0, q, q)) return true;
  for (int gap : closing_[q % P()])
    if (gaps_[gap].lap != kClosed && use_of(gap) == q && liveness_.gaps[gap].loads &&
        gaps_[gap].arrived < gaps_[gap].evicted)
      return true;
  return false;
}

bool Filler::wait(int q) {
  while (blocked(q)) {
    try_load(q, true);
    try_store(q);
    const Ticks next = std::min(load_end_, store_end_);
    if (next == kNever) return false;
    now_ = next;
    finish(q);
  }
  return true;
}

// The access at q begins: gaps it closes are over, versions it writes are new.
void Filler::begin(int q) {
  for (int gap : closing_[q % P()]) {
    if (gaps_[gap].lap != kClosed && use_of(gap) == q) gaps_[gap].lap = kClosed;
  }
  for (int version : written_[q % P()]) {
    copied_[version] = 0;
    if (store_version_ == version) store_version_ = -1;
  }
}

std::optional<Filled> Filler::run() {
  if (!index()) return std::nullopt;
  const int laps = liveness_.repeats ? kForgetful : 1;
  keep_ = liveness_.repeats ? laps - 2 : 0;
  extra_.assign(P(), 0);
  if (liveness_.repeats) {  // gaps that reach into the first iteration
    for (std::size_t v = 0; v < copied_.size(); ++v) copied_[v] = liveness_.pieces[liveness_.versions[v].tensor];
    for (std::size_t g = 0; g < gaps_.size(); ++g)
      if (liveness_.gaps[g].close > P() && graph_.bytes[liveness_.gaps[g].tensor] > 0) open(static_cast<int>(g), -1);
  }
  for (int q = 0; q < laps * P(); ++q) {
    const int p = q % P(), lap = q / P();
    const Ticks due = clock_.start(p) + lap * clock_.period() + stall_;
    if (q > 0) advance(due, q - 1);
    settled_ = q - 1;
    if (p == 0 && lap > 0)
      for (int gap : opening_[P()]) open(gap, lap - 1);
    for (int gap : opening_[p]) open(gap, lap);
    // What only is written needs room at its write, but no bytes from elsewhere.
    for (int gap : closing_[p])
      if (gaps_[gap].lap != kClosed && use_of(gap) == q && !liveness_.gaps[gap].loads)
        for (; gaps_[gap].arrived < gaps_[gap].evicted; ++gaps_[gap].arrived)
          away_ -= liveness_.piece_bytes(liveness_.gaps[gap].tensor, gaps_[gap].arrived);
    if (!wait(q)) return std::nullopt;
    if (now_ > due) {
      if (lap == keep_) extra_[p] += now_ - due;
      stall_ += now_ - due;
    }
    begin(q);
  }
  return Filled{std::move(result_), clock_.delayed(extra_)};
}

}  // namespace

std::optional<Filled> fill_forward(const FlatGraph& graph, const Liveness& liveness, const StepClock& clock,
                                   const std::vector<std::int32_t>& rank) {
  return Filler(graph, liveness, clock, rank).run();
}

}  // namespace hyperoffload
