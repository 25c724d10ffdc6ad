#include "sim/report/series.h"

#include <algorithm>
#include <cmath>

namespace hyperoffload {
namespace {

constexpr Seconds kFinest(1e-9);

std::int64_t step_of(const IterationSeries& series, Seconds time, Seconds step) {
  return static_cast<std::int64_t>(std::floor((time - series.start).value / step.value));
}

FillPoint merged(const FillPoint& a, const FillPoint& b) {
  FillPoint point = b;
  point.time = a.time;
  point.peak = total(b.peak) > total(a.peak) ? b.peak : a.peak;
  point.low = std::min(a.low, b.low);
  point.pool = std::max(a.pool, b.pool);
  return point;
}

}  // namespace

Bytes total(const HbmFill& fill) {
  Bytes sum;
  for (Bytes bytes : fill) sum += bytes;
  return sum;
}

SeriesRecorder::SeriesRecorder(std::size_t engines, std::size_t points)
    : engines_(engines), points_(points) {}

void SeriesRecorder::start_iteration(int iteration, Seconds now) {
  if (current_.open) {
    finish(now);
    if (!has_first_) first_ = std::move(current_);
    has_first_ = true;
  }
  current_ = {};
  current_.open = true;
  IterationSeries& series = current_.series;
  series.iteration = iteration;
  series.start = now;
  series.engines = engines_;
  series.fill_step = series.use_step = kFinest;
  level_.time = level_.last_time = now;
  level_.peak = level_.last;
  level_.low = total(level_.last);
  level_.pool = level_.pool_last;
  series.fill.push_back(level_);
}

void SeriesRecorder::finish(Seconds now) {
  current_.open = false;
  current_.series.end = now;
}

void SeriesRecorder::sample(Seconds now, const HbmFill& fill, Bytes pool) {
  if (level_.last == fill && level_.pool_last == pool) return;
  level_ = {now, now, fill, fill, total(fill), pool, pool};
  if (!current_.open) return;
  IterationSeries& series = current_.series;
  ++series.changes;
  const FillPoint& last = series.fill.back();
  if (step_of(series, last.time, series.fill_step) == step_of(series, now, series.fill_step))
    series.fill.back() = merged(last, level_);
  else
    series.fill.push_back(level_);
  while (series.fill.size() > points_) coarsen_fill(series);
}

void SeriesRecorder::coarsen_fill(IterationSeries& series) const {
  series.fill_step = series.fill_step * 2;
  std::vector<FillPoint> coarse;
  for (const FillPoint& point : series.fill) {
    if (!coarse.empty() && step_of(series, coarse.back().time, series.fill_step) ==
                               step_of(series, point.time, series.fill_step))
      coarse.back() = merged(coarse.back(), point);
    else
      coarse.push_back(point);
  }
  series.fill = std::move(coarse);
}

void SeriesRecorder::carried(Direction direction, Seconds from, Seconds to, Bytes bytes) {
  add_use(direction == Direction::kPoolToHbm ? 0 : 1, from, to, static_cast<double>(bytes.value));
}

void SeriesRecorder::ran(EngineId engine, Seconds from, Seconds to) {
  add_use(2 + engine.index(), from, to, (to - from).value);
}

void SeriesRecorder::add_use(std::size_t column, Seconds from, Seconds to, double amount) {
  if (has_first_) add_use(first_, column, from, to, amount);
  add_use(current_, column, from, to, amount);
}

void SeriesRecorder::add_use(Window& window, std::size_t column, Seconds from, Seconds to, double amount) {
  IterationSeries& series = window.series;
  const double length = (to - from).value;
  const Seconds begin = std::max(from, series.start);
  const Seconds end = window.open ? to : std::min(to, series.end);
  if (amount == 0 || end < begin || (length > 0 && end == begin) || (!window.open && begin == series.end)) return;
  const auto limit = static_cast<std::int64_t>(points_);
  while (step_of(series, end, series.use_step) >= limit) coarsen_use(series);
  const std::int64_t first = step_of(series, begin, series.use_step);
  const std::int64_t last = std::max(first, step_of(series, end, series.use_step));
  const std::size_t needed = static_cast<std::size_t>(last + 1) * columns();
  if (series.use.size() < needed) series.use.resize(needed);
  for (std::int64_t step = first; step <= last; ++step) {
    const Seconds step_from = series.start + series.use_step * static_cast<double>(step);
    const Seconds part = std::min(end, step_from + series.use_step) - std::max(begin, step_from);
    const double share = length > 0 ? std::max(0.0, part.value) / length : 1;
    series.use[static_cast<std::size_t>(step) * columns() + column] += amount * share;
  }
}

void SeriesRecorder::coarsen_use(IterationSeries& series) const {
  series.use_step = series.use_step * 2;
  const std::size_t steps = series.use.size() / columns();
  std::vector<double> coarse((steps + 1) / 2 * columns());
  for (std::size_t step = 0; step < steps; ++step)
    for (std::size_t c = 0; c < columns(); ++c)
      coarse[step / 2 * columns() + c] += series.use[step * columns() + c];
  series.use = std::move(coarse);
}

std::vector<IterationSeries> SeriesRecorder::take() {
  std::vector<IterationSeries> all;
  if (has_first_) all.push_back(std::move(first_.series));
  all.push_back(std::move(current_.series));
  return all;
}

}  // namespace hyperoffload
