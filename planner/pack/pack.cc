#include "planner/pack/pack.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "planner/pack/clique_bound.h"
#include "planner/pack/ejection.h"
#include "planner/pack/first_fit.h"
#include "planner/pack/floor_search.h"
#include "planner/pack/sections.h"
#include "sim/model/check.h"

namespace hyperoffload {
namespace {

constexpr int kRepairs = 40;        // passes with the blamed moved to the front, an order
constexpr int kHeightsBetween = 3;  // that the search tries after the peak
constexpr int kEjections = 4;       // heights that ejection tries
constexpr std::int64_t kRounds = 400;  // so often each item of a small instance may be placed again, about

// Items with the lowest of their bytes at 0, those alive all the time apart.
struct Split {
  std::vector<PackItem> rest;
  std::vector<std::size_t> place;       // in the input, of each of `rest`
  std::vector<std::int64_t> low, base;  // by item of the input: its lowest byte; where it lies, if decided
  std::int64_t height = 0;              // of those that are
};

Split split(const std::vector<PackItem>& items) {
  std::int64_t begin = std::numeric_limits<std::int64_t>::max(),
               end = std::numeric_limits<std::int64_t>::min();
  for (const PackItem& item : items)
    for (const PackRect& r : item.rects) {
      HYPER_CHECK(r.lower < r.upper && r.size >= 0, "a rectangle to pack without time, or of negative size");
      begin = std::min(begin, r.lower);
      end = std::max(end, r.upper);
    }
  Split split;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const std::vector<PackRect>& rects = items[i].rects;
    std::int64_t low = rects.empty() ? 0 : std::numeric_limits<std::int64_t>::max();
    for (const PackRect& r : rects) low = std::min(low, r.offset);
    split.low.push_back(low);
    split.base.push_back(split.height);
    if (rects.size() == 1 && rects[0].lower == begin && rects[0].upper == end) {
      split.height += rects[0].size;
      continue;
    }
    split.place.push_back(i);
    PackItem& item = split.rest.emplace_back(items[i]);
    std::erase_if(item.rects, [](const PackRect& r) { return r.size == 0; });
    for (PackRect& r : item.rects) r.offset -= low;
  }
  return split;
}

class Packer {
 public:
  Packer(const std::vector<PackItem>& items, const PackOptions& options, std::int64_t goal,
         std::int64_t most, Packing& best)
      : items_(items), options_(options), goal_(goal), most_(most), proven_(goal), best_(best) {}

  void run() {
    fit();
    if (best_.height <= goal_) return;
    best_.proven = clique_bound(items_);
    goal_ = std::max(goal_, best_.proven);
    proven_ = goal_;
    if (best_.proven > most_) return;  // nothing of use can be found
    if (best_.height > goal_ && options_.search_steps > 0 && are_boxes(items_)) search();
    if (best_.height > proven_ && options_.scans > 0) eject();
  }

 private:
  void search() {
    std::int64_t least = goal_;  // no packing is known to be lower, or was found to be
    const std::int64_t a_node = std::max<std::int64_t>(1, section_entries(items_));
    const std::int64_t share = options_.search_steps / a_node / (1 + kHeightsBetween);
    if (share < 4 * static_cast<std::int64_t>(items_.size())) return;  // it would not get to the end once
    for (int tries = 0; tries <= kHeightsBetween && least < best_.height; ++tries) {
      const std::int64_t height = tries == 0 ? goal_ : least + (best_.height - least) / 2;
      FloorSearchResult found = search_floors(items_, height, share);
      best_.nodes += found.nodes;
      if (found.verdict == FloorSearchResult::Verdict::kFound)
        offer({std::move(found.offsets), height}, "search");
      else
        least = height + 1;
      if (found.verdict == FloorSearchResult::Verdict::kImpossible) proven_ = height + 1;
    }
  }

  // What is of use first, then halfway to the goal from there.
  void eject() {
    Ejection ejection(items_);
    std::int64_t least = proven_;
    const auto count = static_cast<std::int64_t>(items_.size());
    for (int tries = 0; tries < kEjections && least < best_.height && !ejection.too_large(); ++tries) {
      const bool of_use = best_.height <= most_;
      const std::int64_t height = of_use ? least + (best_.height - 1 - least) / 2 : most_;
      // Half of the work for what would be of use at all.
      const std::int64_t share = of_use ? options_.scans / 2 / (kEjections - 1) : options_.scans / 2;
      std::int64_t scans = std::min(share, kRounds * count * count);
      std::vector<std::int64_t> offsets = ejection.search(height, scans);
      if (!offsets.empty())
        offer({std::move(offsets), height}, "ejection");
      else if (!of_use)
        return;
      else
        least = height + 1;
    }
  }

  void fit() {
    FirstFit fitter(items_);
    best_.height = std::numeric_limits<std::int64_t>::max();
    for (FitOrder by : {FitOrder::kSize, FitOrder::kArea, FitOrder::kLifetime, FitOrder::kStart})
      for (bool tightest : {false, true}) {
        std::vector<int> order = fitter.order(by);
        FirstFit::Result result = fitter.place(order, tightest);
        if (by == FitOrder::kSize && !tightest) best_.first_fit_by_size = result.height;
        const std::string name = fmt::format("{} fit by {}", tightest ? "best" : "first", to_string(by));
        for (int repair = 0;; ++repair) {
          offer(result, repair == 0 ? name : name + ", repaired");
          if (best_.height <= goal_ || fitter.pairs() > options_.fit_pairs) return;
          if (repair == kRepairs) break;
          order = fitter.blame(order, result, std::max(goal_, best_.height - 1));
          result = fitter.place(order, tightest);
        }
      }
  }

  void offer(FirstFit::Result result, const std::string& method) {
    if (result.height >= best_.height) return;
    best_.height = result.height;
    best_.offsets = std::move(result.offsets);
    best_.method = method;
  }

  const std::vector<PackItem>& items_;
  const PackOptions& options_;
  std::int64_t goal_;
  const std::int64_t most_;
  std::int64_t proven_;  // no packing is lower
  Packing& best_;
};

}  // namespace

std::int64_t live_peak(const std::vector<PackItem>& items) {
  std::vector<std::pair<std::int64_t, std::int64_t>>
      changes;  // ends sort before beginnings: they are negative
  for (const PackItem& item : items)
    for (const PackRect& r : item.rects) {
      changes.emplace_back(r.lower, r.size);
      changes.emplace_back(r.upper, -r.size);
    }
  std::sort(changes.begin(), changes.end());
  std::int64_t alive = 0, peak = 0;
  for (const auto& [at, change] : changes) peak = std::max(peak, alive += change);
  return peak;
}

Packing pack(const std::vector<PackItem>& items, const PackOptions& options) {
  const Split parts = split(items);
  Packing rest;
  Packer(parts.rest, options, std::max(live_peak(parts.rest), options.enough - parts.height),
         options.most - parts.height, rest)
      .run();
  Packing all = std::move(rest);
  all.height += parts.height;
  all.first_fit_by_size += parts.height;
  all.peak = live_peak(items);
  all.proven = std::max(all.peak, all.proven + parts.height);
  const std::vector<std::int64_t> inner = std::exchange(all.offsets, parts.base);
  for (std::size_t k = 0; k < parts.place.size(); ++k) all.offsets[parts.place[k]] = parts.height + inner[k];
  for (std::size_t i = 0; i < items.size(); ++i) all.offsets[i] -= parts.low[i];
  return all;
}

}  // namespace hyperoffload
