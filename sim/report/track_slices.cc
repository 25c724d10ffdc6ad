#include "sim/report/track_slices.h"

#include <algorithm>
#include <cmath>

namespace hyperoffload {
namespace {

// What a reader of the decimal text gets: below 2^53 ps (2.5 hours) one division rounds the same way.
double as_read(Picoseconds ps) { return static_cast<double>(ps) / 1e6; }

// What counts as rounding: an instant of the replay (docs/semantics.md, rule 1).
Picoseconds instant(Picoseconds clock) { return 2 + clock / 1'000'000'000'000'000; }

Picoseconds length_for_viewers(Picoseconds from, Picoseconds length, Picoseconds next, Picoseconds origin) {
  if (ends_in_every_viewer(from, length, next, origin)) return length;
  // The longest that still rounds down to the whole ns between the two starts, as rounded or cut.
  const auto whole_ns = [&](auto turn) {
    return static_cast<Picoseconds>(turn(as_read(next) * 1e3) - turn(as_read(from) * 1e3));
  };
  const Picoseconds rounded = whole_ns([](double ns) { return std::llround(ns); });
  const Picoseconds cut = whole_ns([](double ns) { return static_cast<long long>(ns); });
  length = std::clamp<Picoseconds>(std::min(rounded * 1000 + 499, cut * 1000 + 999), 0, length);
  while (length > 0 && !ends_in_every_viewer(from, length, next, origin)) --length;
  return length;
}

}  // namespace

Picoseconds picoseconds(Seconds time) {
  constexpr double kMost = 9.2e18;
  return static_cast<Picoseconds>(std::llround(std::clamp(time.value * 1e12, -kMost, kMost)));
}

bool ends_in_every_viewer(Picoseconds from, Picoseconds length, Picoseconds next, Picoseconds origin) {
  const double ts = as_read(from), dur = as_read(length), limit = as_read(next);
  const auto cut = [](double us) { return static_cast<long long>(us * 1e3); };
  const auto rounded = [](double us) { return std::llround(us * 1e3); };
  const double first = as_read(origin);
  return ts + dur <= limit && (ts - first) + dur <= limit - first && cut(ts) + cut(dur) <= cut(limit) &&
         rounded(ts) + rounded(dur) <= rounded(limit);
}

std::vector<std::vector<Slice>> lay_out(std::vector<Slice> slices) {
  std::stable_sort(slices.begin(), slices.end(),
                   [](const Slice& a, const Slice& b) { return a.from < b.from; });
  std::vector<std::vector<Slice>> lanes(1);
  for (Slice& slice : slices) {
    slice.to = std::max(slice.to, slice.from);
    std::size_t lane = 0;
    while (lane < lanes.size() && !lanes[lane].empty() &&
           lanes[lane].back().to > slice.from + instant(slice.from))
      ++lane;
    if (lane == lanes.size()) lanes.emplace_back();
    if (!lanes[lane].empty()) lanes[lane].back().to = std::min(lanes[lane].back().to, slice.from);
    lanes[lane].push_back(slice);
  }
  for (auto& lane : lanes)
    for (std::size_t i = 0; i + 1 < lane.size(); ++i)
      lane[i].to = lane[i].from + length_for_viewers(lane[i].from, lane[i].to - lane[i].from,
                                                     lane[i + 1].from, lane.front().from);
  return lanes;
}

}  // namespace hyperoffload
