#include "app/calibrate.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace hyperoffload {
namespace {

constexpr double kSlack = 1.01;  // a profiler's clock: so much faster than possible is still possible
constexpr int kRounds = 50;
// A copy whose bytes would pass the link in less time shows what a copy costs, not what the link carries:
// measured small copies take 1 to 5 us.
constexpr double kShortest = 2e-6;

Residuals residuals_of(std::vector<double> errors) {
  if (errors.empty()) return {};
  for (double& e : errors) e = std::abs(e);
  std::sort(errors.begin(), errors.end());
  const auto at = [&](double share) {  // nearest rank
    const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(errors.size())));
    return errors[std::clamp<std::size_t>(rank, 1, errors.size()) - 1];
  };
  return {at(0.5), at(0.9), errors.back()};
}

struct Point {  // time = overhead + slope of the group * x
  double x, time;
  std::size_t group;
};

struct Lines {
  double overhead = 0;
  bool overhead_known = false;
  std::vector<double> slopes;  // by group; 0: no point in it

  double time(const Point& p) const { return overhead + slopes[p.group] * p.x; }
};

// Weighted sums of one group: of 1, x, x^2, t, x t.
struct Sums {
  double n = 0, x = 0, xx = 0, t = 0, xt = 0;
  double slope(double overhead) const { return xx > 0 ? (xt - overhead * x) / xx : 0; }
};

// One overhead for all groups, slopes of at least `least`. Each free slope is eliminated, what is left is one
// equation for the overhead; slopes that come out below `least` are held there and it is solved anew. Where no
// group has points at two x any overhead would do: then it is `declared`, if that leaves room for the work.
Lines solve(const std::vector<Sums>& groups, double least, double declared) {
  Lines lines;
  std::vector<bool> held(groups.size());
  bool determined = false;
  for (int round = 0; round < kRounds; ++round) {
    double square = 0, product = 0, scale = 0;
    for (std::size_t k = 0; k < groups.size(); ++k) {
      const Sums& g = groups[k];
      if (g.xx <= 0) continue;
      square += held[k] ? g.n : g.n - g.x * g.x / g.xx;
      product += held[k] ? g.t - least * g.x : g.t - g.x * g.xt / g.xx;
      scale += g.n;
    }
    determined = square > 1e-9 * scale;
    lines.overhead_known = determined && product > 0;
    lines.overhead = lines.overhead_known ? product / square : 0;
    std::vector<bool> low(groups.size());
    for (std::size_t k = 0; k < groups.size(); ++k) low[k] = groups[k].xx > 0 && groups[k].slope(lines.overhead) < least;
    if (!lines.overhead_known || low == held) break;
    held = low;
  }
  if (!determined && std::all_of(groups.begin(), groups.end(),
                                 [&](const Sums& g) { return g.xx <= 0 || g.slope(declared) >= least; }))
    lines.overhead = declared;
  for (const Sums& g : groups) lines.slopes.push_back(g.xx > 0 ? std::max(least, g.slope(lines.overhead)) : 0);
  return lines;
}

Lines fit_lines(const std::vector<Point>& points, std::size_t groups, double least, double declared) {
  Lines lines;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<Sums> sums(groups);
    for (const Point& p : points) {
      const double weight = 1 / (round == 0 ? p.time : lines.time(p));
      Sums& s = sums[p.group];
      s.n += weight;
      s.x += weight * p.x;
      s.xx += weight * p.x * p.x;
      s.t += weight * p.time;
      s.xt += weight * p.x * p.time;
    }
    lines = solve(sums, least, declared);
  }
  return lines;
}

struct KernelSample {
  double compute, memory, time;  // at the declared peaks; measured
  std::size_t kind;
  bool by_compute;
};

class KernelFitter {
 public:
  KernelFitter(const Measured& measured, const Hardware& hardware) : declared_(hardware.launch_overhead.value) {
    std::map<std::string, std::size_t> kinds;
    for (const MeasuredKernel& k : measured.kernels) kinds.emplace(k.kernel, 0);
    for (auto& [name, index] : kinds) {
      index = fits_.size();
      fits_.emplace_back().kernel = name;
    }
    for (const MeasuredKernel& k : measured.kernels) {
      KernelSample s{k.flops / hardware.compute.value, k.bytes / hardware.hbm_bandwidth.value, k.time.value,
                     kinds.at(k.kernel), false};
      s.by_compute = s.compute > s.memory;
      if (std::max(s.compute, s.memory) <= 0) continue;
      if (s.time * kSlack < std::max(s.compute, s.memory))
        ++fits_[s.kind].too_fast;
      else
        samples_.push_back(s);
    }
  }

  void fit(Calibration& result) {
    compute_.assign(fits_.size(), 1);  // slopes: 1 / efficiency
    memory_.assign(fits_.size(), 1);
    for (int round = 0; round < kRounds; ++round) {
      fit_sides();
      if (!choose_sides()) break;
    }
    for (std::size_t k = 0; k < fits_.size(); ++k) sum_up(k);
    result.launch_overhead = Seconds(overhead_);
    result.overhead_known = overhead_known_;
    result.kernels = std::move(fits_);
  }

 private:
  void fit_sides() {
    std::vector<Point> points;
    for (const KernelSample& s : samples_)
      points.push_back({s.by_compute ? s.compute : s.memory, s.time, 2 * s.kind + s.by_compute});
    const Lines lines = fit_lines(points, 2 * fits_.size(), 1, declared_);
    overhead_ = lines.overhead;
    overhead_known_ = lines.overhead_known;
    const auto slope = [&](std::size_t group) {  // the peak where nothing shows
      return std::max(1.0, lines.slopes[group]);
    };
    for (std::size_t k = 0; k < fits_.size(); ++k) {
      memory_[k] = slope(2 * k);
      compute_[k] = slope(2 * k + 1);
    }
  }

  bool choose_sides() {
    bool changed = false;
    for (KernelSample& s : samples_) {
      const bool by_compute = s.compute * compute_[s.kind] > s.memory * memory_[s.kind];
      changed |= by_compute != s.by_compute;
      s.by_compute = by_compute;
    }
    return changed;
  }

  void sum_up(std::size_t k) {
    KernelFit& fit = fits_[k];
    std::vector<double> errors;
    double longest[2] = {0, 0};  // work bound by bandwidth, by compute
    for (const KernelSample& s : samples_) {
      if (s.kind != k) continue;
      fit.compute_bound += s.by_compute;
      const double work = std::max(s.compute * compute_[k], s.memory * memory_[k]);
      longest[s.by_compute] = std::max(longest[s.by_compute], work);
      errors.push_back((overhead_ + work) / s.time - 1);
    }
    fit.samples = errors.size();
    const double shortest = (kSlack - 1) * overhead_;  // less can't be told from the overhead
    if (longest[1] > shortest) fit.compute = 1 / compute_[k];
    if (longest[0] > shortest) fit.bandwidth = 1 / memory_[k];
    fit.residuals = residuals_of(std::move(errors));
  }

  std::vector<KernelFit> fits_;
  std::vector<KernelSample> samples_;
  std::vector<double> compute_, memory_;
  double declared_ = 0, overhead_ = 0;
  bool overhead_known_ = false;
};

CopyFit fit_copies(const Measured& measured, bool to_device, bool pageable, double limit, Seconds declared) {
  CopyFit fit;
  fit.to_device = to_device;
  fit.pageable = pageable;
  std::vector<const MeasuredCopy*> used;
  for (const MeasuredCopy& c : measured.copies) {
    if (c.to_device != to_device || c.pageable != pageable) continue;
    const double rate = c.bytes / c.time.value;
    if (rate <= limit * kSlack) {
      used.push_back(&c);
      continue;
    }
    ++fit.too_fast;
    fit.fastest = std::max(fit.fastest, rate);
  }
  fit.samples = used.size();
  if (used.empty()) return fit;
  std::vector<Point> points;
  std::vector<double> times;
  for (const MeasuredCopy* c : used) {
    points.push_back({c->bytes, c->time.value, 0});
    times.push_back(c->time.value);
  }
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
  fit.typical = Seconds(times[times.size() / 2]);
  const Lines lines = fit_lines(points, 1, 1 / limit, declared.value);
  fit.latency = Seconds(lines.overhead);
  fit.latency_known = lines.overhead_known;
  const double largest = std::max_element(points.begin(), points.end(), [](const Point& a, const Point& b) {
                           return a.x < b.x;
                         })->x;
  if (lines.slopes[0] * largest < lines.overhead || largest / limit < kShortest) return fit;
  fit.bandwidth = 1 / lines.slopes[0];
  std::vector<double> errors;
  for (const Point& p : points) errors.push_back(lines.time(p) / p.time - 1);
  fit.residuals = residuals_of(std::move(errors));
  return fit;
}

}  // namespace

Calibration calibrate(const Measured& measured, const Hardware& hardware, BytesPerSecond link) {
  Calibration result;
  result.other_kernels = measured.other_kernels;
  KernelFitter(measured, hardware).fit(result);
  for (const bool to_device : {true, false})
    for (const bool pageable : {false, true}) {
      const LinkDirection& declared = to_device ? hardware.link_read : hardware.link_write;
      const double limit = link.value > 0 ? link.value : declared.bandwidth.value;
      CopyFit fit = fit_copies(measured, to_device, pageable, limit, declared.latency);
      if (fit.samples + fit.too_fast > 0) result.copies.push_back(fit);
    }
  return result;
}

}  // namespace hyperoffload
