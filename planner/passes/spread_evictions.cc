#include "planner/passes/spread_evictions.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace hyperoffload {
namespace {

constexpr int kRounds = 12;      // of the bisection
constexpr double kFastest = 4;   // allowance at most, in links

// How much of a tensor the allowance must cover: less than all of what left before, so that it leaves again, and more of
// what would have to be stored to leave. Measured on DeepSeek-V3.2's sparse decode.
constexpr double kAgain = 0.5, kFromPool = 0.75, kToStore = 1.5;

class Spreader {
 public:
  Spreader(const FlatGraph& graph, const Liveness& liveness, const StepClock& clock, std::int64_t least_bytes)
      : graph_(graph), liveness_(liveness), clock_(clock), least_(least_bytes) {}
  std::optional<Filled> run();

 private:
  int P() const { return liveness_.positions; }
  const Gap& gap(int g) const { return liveness_.gaps[g]; }
  std::int64_t bytes(int g) const { return graph_.bytes[gap(g).tensor]; }
  int use(int g) const { return gap(g).close % P(); }
  void list();
  int usual_length() const;
  int choose(double rate);  // positions without room then
  bool covered(double allowance, int g, const std::vector<char>& left_before) const;
  void take_away(std::vector<std::int64_t>& change, int g) const;

  const FlatGraph& graph_;
  const Liveness& liveness_;
  const StepClock& clock_;
  const std::int64_t least_;
  std::vector<std::int32_t> reads_;   // gaps to choose from, by use
  std::vector<std::int32_t> always_;  // gaps that leave whatever the rate
  std::vector<std::int32_t> last_;    // gaps behind the last use: free of charge for what has a copy
  std::vector<std::int32_t> chosen_;
  std::vector<std::int64_t> excess_;  // by position, without those that always leave
};

// It is back from where its load must have begun.
void Spreader::take_away(std::vector<std::int64_t>& change, int g) const {
  int from = gap(g).open + 1, to = gap(g).until;
  if (gap(g).loads) {
    const Ticks length = clock_.ticks(graph_.machine.load_seconds(bytes(g)));
    to = std::max(from, std::min(to, clock_.last_end_by(clock_.start(gap(g).close) - length) + 1));
  }
  if (from >= P()) from -= P(), to -= P();
  change[from] -= bytes(g);
  change[std::min(to, P())] += bytes(g);
  if (to <= P()) return;
  change[0] -= bytes(g);
  change[to - P()] += bytes(g);
}

// In positions; half the bytes that are read again are so in less.
int Spreader::usual_length() const {
  std::vector<std::pair<int, std::int64_t>> lengths;
  double all = 0, sum = 0;
  for (int g : reads_) {
    lengths.emplace_back(gap(g).close - gap(g).open, bytes(g));
    all += static_cast<double>(bytes(g));
  }
  std::sort(lengths.begin(), lengths.end());
  for (const auto& [length, size] : lengths)
    if ((sum += static_cast<double>(size)) * 2 >= all) return length;
  return 0;
}

void Spreader::list() {
  for (int g = 0; g < static_cast<int>(liveness_.gaps.size()); ++g) {
    if (bytes(g) == 0 || gap(g).must_leave || liveness_.versions[gap(g).version].written >= 0) continue;
    (gap(g).loads ? reads_ : gap(g).open < 0 ? always_ : last_).push_back(g);
  }
  const int usual = usual_length();
  const auto length = [&](int g) { return gap(g).close - gap(g).open; };
  const auto move_long = [&](std::vector<std::int32_t>& list, int than) {
    for (int g : list)
      if (length(g) > than) always_.push_back(g);
    std::erase_if(list, [&](int g) { return length(g) > than; });
  };
  move_long(reads_, usual + usual / 2);
  move_long(last_, usual);
  std::erase_if(reads_, [&](int g) { return bytes(g) < least_ || (gap(g).open >= 0 && length(g) < usual / 2); });
  std::stable_sort(reads_.begin(), reads_.end(), [&](int a, int b) { return use(a) < use(b); });
  std::vector<std::int64_t> change(P() + 1);
  for (int g : always_) take_away(change, g);
  excess_ = liveness_.resident;
  std::int64_t sum = 0;
  for (int p = 0; p < P(); ++p) excess_[p] += (sum += change[p]) - graph_.machine.hbm;
}

bool Spreader::covered(double allowance, int g, const std::vector<char>& left_before) const {
  const bool again = liveness_.repeats || left_before[gap(g).tensor] != 0;
  return allowance >= (again ? kAgain : gap(g).open < 0 ? kFromPool : kToStore) * static_cast<double>(bytes(g));
}

int Spreader::choose(double rate) {
  chosen_.clear();
  std::vector<std::int64_t> change(P() + 1);
  std::vector<char> left_before(graph_.tensors);
  std::vector<std::int32_t> now;
  double allowance = 0;
  Ticks then = 0;
  for (std::size_t i = 0; i < reads_.size(); i += now.size()) {
    now.clear();
    for (std::size_t k = i; k < reads_.size() && use(reads_[k]) == use(reads_[i]); ++k) now.push_back(reads_[k]);
    std::stable_sort(now.begin(), now.end(),
                     [&](int a, int b) { return left_before[gap(a).tensor] > left_before[gap(b).tensor]; });
    const Ticks start = clock_.start(use(reads_[i]));
    allowance += rate * clock_.seconds(start - std::exchange(then, start));
    for (int g : now) {
      if (!covered(allowance, g, left_before)) continue;
      allowance -= static_cast<double>(bytes(g));
      left_before[gap(g).tensor] = 1;
      chosen_.push_back(g);
      take_away(change, g);
    }
  }
  for (int g : last_)
    if (left_before[gap(g).tensor] != 0) take_away(change, g);
  int full = 0;
  std::int64_t sum = 0;
  for (int p = 0; p < P(); ++p) full += excess_[p] + (sum += change[p]) > 0;
  return full;
}

std::optional<Filled> Spreader::run() {
  list();
  double low = 0, high = kFastest * graph_.machine.read_bandwidth;
  if (2 * choose(high) > P()) return std::nullopt;
  for (int k = 0; k < kRounds; ++k) {
    const double middle = (low + high) / 2;
    (2 * choose(middle) > P() ? low : high) = middle;
  }
  choose(high);
  double seconds = 0;
  std::vector<Eviction> evictions;
  for (const auto* list : {&always_, &chosen_})
    for (int g : *list) {
      for (int k = 0; k < liveness_.pieces[gap(g).tensor]; ++k)
        evictions.push_back({gap(g).first_unit + k, gap(g).open + 1});
      if (gap(g).loads) seconds += graph_.machine.load_seconds(bytes(g));
    }
  std::stable_sort(evictions.begin(), evictions.end(),
                   [](const Eviction& a, const Eviction& b) { return a.position < b.position; });
  return Filled{std::move(evictions), clock_.stretched(std::max(1.0, seconds / clock_.seconds(clock_.period())))};
}

}  // namespace

std::optional<Filled> spread_evictions(const FlatGraph& graph, const Liveness& liveness, const StepClock& clock,
                                       std::int64_t least_bytes) {
  return Spreader(graph, liveness, clock, least_bytes).run();
}

}  // namespace hyperoffload
