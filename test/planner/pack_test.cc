// Static addresses: first fits, the search, and both together. Sizes are bytes, times are instants.
#include "planner/pack/pack.h"

#include <algorithm>
#include <filesystem>
#include <numeric>

#include "planner/pack/clique_bound.h"
#include "planner/pack/ejection.h"
#include "planner/pack/first_fit.h"
#include "planner/pack/floor_search.h"
#include "test/planner/packing.h"
#include "test/support/catch.h"
#include "test/support/paths.h"
#include "test/support/rng.h"

using namespace hyperoffload;
using Verdict = FloorSearchResult::Verdict;

namespace {

PackItem box(std::int64_t lower, std::int64_t upper, std::int64_t size) {
  return {{{lower, upper, 0, size}}};
}

std::vector<PackItem> random_boxes(Rng& rng, int count, int instants, int largest) {
  std::vector<PackItem> items;
  for (int i = 0; i < count; ++i) {
    const std::int64_t lower = rng.between(0, instants - 1);
    items.push_back(box(lower, lower + rng.between(1, instants - lower), rng.between(1, largest)));
  }
  return items;
}

// Boxes, some with a hole in time or a second piece.
std::vector<PackItem> random_items(Rng& rng, int count, int instants) {
  std::vector<PackItem> items = random_boxes(rng, count, instants, 9);
  for (PackItem& item : items)
    if (const PackRect r = item.rects[0]; rng.chance(0.3)) {
      item.rects.push_back({r.upper + rng.between(0, 2), r.upper + 4, r.offset, r.size});
      if (rng.chance(0.5)) item.rects.push_back({r.lower, r.upper + 1, r.size, rng.between(1, 5)});
    }
  return items;
}

// The heaviest set of boxes (with holes in time) of which any two are there at once: all subsets are tried.
std::int64_t heaviest_clique(const std::vector<PackItem>& items) {
  const auto meet = [&](const PackItem& a, const PackItem& b) {
    for (const PackRect& r : a.rects)
      for (const PackRect& s : b.rects)
        if (std::max(r.lower, s.lower) < std::min(r.upper, s.upper)) return true;
    return false;
  };
  std::int64_t heaviest = 0;
  for (unsigned set = 1; set < 1U << items.size(); ++set) {
    std::int64_t bytes = 0;
    bool clique = true;
    for (std::size_t a = 0; a < items.size() && clique; ++a) {
      if ((set >> a & 1U) == 0) continue;
      bytes += items[a].rects[0].size;
      for (std::size_t b = 0; b < a; ++b) clique = clique && ((set >> b & 1U) == 0 || meet(items[a], items[b]));
    }
    if (clique) heaviest = std::max(heaviest, bytes);
  }
  return heaviest;
}

// A rectangle of time by bytes cut apart until `count` boxes: they fill its height at every instant.
std::vector<PackItem> cut_apart(Rng& rng, int count, std::int64_t instants, std::int64_t height) {
  struct Box {
    std::int64_t lower, upper, size;
  };
  std::vector<Box> boxes{{0, instants, height}};
  while (static_cast<int>(boxes.size()) < count) {
    Box& b = boxes[static_cast<std::size_t>(rng.between(0, static_cast<std::int64_t>(boxes.size()) - 1))];
    Box other = b;
    if (rng.chance(0.5) ? b.upper - b.lower > 1 : b.size == 1) {
      if (b.upper - b.lower == 1) continue;
      other.lower = b.upper = b.lower + rng.between(1, b.upper - b.lower - 1);
    } else {
      if (b.size == 1) continue;
      other.size = rng.between(1, b.size - 1);
      b.size -= other.size;
    }
    boxes.push_back(other);
  }
  std::vector<PackItem> items;
  for (const Box& b : boxes) items.push_back(box(b.lower, b.upper, b.size));
  return items;
}

// The least height of all: every canonical packing is a first fit in the order of its bases.
std::int64_t least_height(const std::vector<PackItem>& items) {
  std::vector<int> order(items.size());
  std::iota(order.begin(), order.end(), 0);
  std::int64_t least = INT64_MAX;
  do {
    std::vector<std::int64_t> base(items.size());
    std::int64_t height = 0;
    for (std::size_t k = 0; k < order.size(); ++k) {
      const PackRect& mine = items[order[k]].rects[0];
      bool moved = true;
      for (std::int64_t& at = base[order[k]]; moved;) {
        moved = false;
        for (std::size_t j = 0; j < k; ++j) {
          const PackRect& other = items[order[j]].rects[0];
          const std::int64_t low = base[order[j]], high = low + other.size;
          if (mine.lower < other.upper && other.lower < mine.upper && at < high && low < at + mine.size)
            at = high, moved = true;
        }
      }
      height = std::max(height, base[order[k]] + mine.size);
    }
    least = std::min(least, height);
  } while (std::next_permutation(order.begin(), order.end()));
  return least;
}

}  // namespace

TEST_CASE("The validator tells overlapping items, and items outside of the arena") {
  const std::vector<PackItem> items{box(0, 2, 3), box(1, 3, 3)};
  CHECK(packing_fault(items, {0, 3}, 6).empty());
  CHECK(packing_fault(items, {0, 2}, 6) == "items 0 and 1 overlap");
  CHECK(packing_fault(items, {0, 3}, 5) == "item 1 lies at [3, 6), outside of 5");
  CHECK(packing_fault({box(0, 2, 3), box(2, 3, 3)}, {0, 0}, 3).empty());  // half-open
}

TEST_CASE("What is never alive together shares its bytes") {
  const Packing packing = pack({box(0, 1, 5), box(1, 2, 7), box(2, 3, 6)});
  CHECK(packing.height == 7);
  CHECK(packing.offsets == std::vector<std::int64_t>{0, 0, 0});
}

TEST_CASE("Nothing to pack takes nothing") {
  CHECK(pack({}).height == 0);
  const Packing packing = pack({PackItem{}, box(0, 3, 0), box(0, 3, 2)});
  CHECK(packing.height == 2);
  CHECK(packing.offsets.size() == 3);
}

TEST_CASE("Where first fit by size fragments, the search finds the peak") {
  Rng rng(7);
  int harder = 0;
  for (int round = 0; round < 60; ++round) {
    const std::vector<PackItem> items = cut_apart(rng, 40, 30, 60);
    const Packing packing = pack(items);
    REQUIRE(packing_fault(items, packing.offsets, packing.height) == "");
    REQUIRE(packing.peak == 60);
    CHECK(packing.height == 60);
    harder += packing.first_fit_by_size > 60;
  }
  CHECK(harder > 30);
}

TEST_CASE("The search finds the least height of all, and proves that none is lower") {
  Rng rng(11);
  for (int round = 0; round < 300; ++round) {
    const std::vector<PackItem> items = random_boxes(rng, 6, 6, 5);
    const std::int64_t least = least_height(items);
    const FloorSearchResult found = search_floors(items, least, 1'000'000);
    REQUIRE(found.verdict == Verdict::kFound);
    REQUIRE(packing_fault(items, found.offsets, least) == "");
    CHECK(search_floors(items, least - 1, 1'000'000).verdict == Verdict::kImpossible);
  }
}

TEST_CASE("The search proves that no packing is as low as the peak exactly where trying all finds none") {
  int none = 0;
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    Rng rng(seed);
    const std::vector<PackItem> items = random_full(rng, 5, 5, 6);
    const std::int64_t peak = live_peak(items);
    const FloorSearchResult found = search_floors(items, peak, 1'000'000);
    if (found.verdict == Verdict::kFound) {
      REQUIRE(packing_fault(items, found.offsets, peak) == "");
      continue;
    }
    ++none;
    const std::int64_t least = least_height(items);
    CHECK(least > peak);
    CHECK(search_floors(items, least - 1, 1'000'000).verdict == Verdict::kImpossible);
    CHECK(search_floors(items, least, 1'000'000).verdict == Verdict::kFound);
    CHECK(pack(items).height == least);
  }
  CHECK(none > 0);
}

TEST_CASE("A search that runs out of nodes says so, and takes no more") {
  Rng rng(3);
  const std::vector<PackItem> items = cut_apart(rng, 200, 100, 1000);
  const FloorSearchResult result = search_floors(items, 1000, 50);
  CHECK(result.verdict == Verdict::kOutOfNodes);
  CHECK(result.nodes <= 50);
}

TEST_CASE("An item that is away for a while leaves its bytes to others, and comes back to the same") {
  // a holds 4 of 6 bytes at [0, 1) and [3, 4); between, b takes 3 bytes and c, d 3 more.
  const PackItem a{{{0, 1, 0, 4}, {3, 4, 0, 4}}};
  const std::vector<PackItem> items{a, box(1, 3, 3), box(1, 2, 3), box(2, 3, 3), box(0, 4, 1)};
  const Packing packing = pack(items);
  CHECK(packing_fault(items, packing.offsets, packing.height) == "");
  CHECK(packing.peak == 7);
  CHECK(packing.height == 7);
}

TEST_CASE("Pieces of one item keep their distance, and others lie where one is missing") {
  // Bytes [0, 2) of a stay; bytes [2, 6) leave for [1, 2), when b takes 4 bytes: in 6 bytes only there.
  const PackItem a{{{0, 3, 0, 2}, {0, 1, 2, 4}, {2, 3, 2, 4}}};
  const std::vector<PackItem> items{a, box(1, 2, 4)};
  const Packing packing = pack(items);
  CHECK(packing_fault(items, packing.offsets, packing.height) == "");
  CHECK(packing.height == 6);
  CHECK(packing.offsets[1] - packing.offsets[0] == 2);
}

TEST_CASE("An item of which only a later piece is ever there needs no room below it") {
  const Packing packing = pack({PackItem{{{0, 1, 100, 8}}}, box(1, 2, 8)});
  CHECK(packing.height == 8);
  CHECK(packing.offsets[0] + 100 == 0);
}

TEST_CASE("Packings of random items with holes and pieces never overlap, whatever finds them") {
  Rng rng(5);
  for (int round = 0; round < 200; ++round) {
    const std::vector<PackItem> items = random_items(rng, 30, 40);
    const Packing packing = pack(items, {10'000, 2'000'000, 200'000});
    REQUIRE(packing_fault(items, packing.offsets, packing.height) == "");
    CHECK(packing.height >= packing.peak);
    CHECK(packing.height <= packing.first_fit_by_size);
    CHECK(pack(items, {10'000, 2'000'000, 200'000}).offsets == packing.offsets);
    FirstFit fitter(items);
    for (FitOrder by : {FitOrder::kSize, FitOrder::kArea, FitOrder::kLifetime, FitOrder::kStart})
      for (bool tightest : {false, true}) {
        const FirstFit::Result result = fitter.place(fitter.order(by), tightest);
        REQUIRE(packing_fault(items, result.offsets, result.height) == "");
      }
  }
}

TEST_CASE("Ejection finds the least height of all, and never one below it") {
  Rng rng(13);
  int missed = 0;
  for (int round = 0; round < 300; ++round) {
    const std::vector<PackItem> items = random_boxes(rng, 6, 6, 5);
    const std::int64_t least = least_height(items);
    Ejection ejection(items);
    std::int64_t scans = 20'000;
    const std::vector<std::int64_t> found = ejection.search(least, scans);
    missed += found.empty();
    if (!found.empty()) REQUIRE(packing_fault(items, found, least) == "");
    scans = 20'000;
    CHECK(ejection.search(least - 1, scans).empty());
  }
  CHECK(missed <= 3);
}

TEST_CASE("Ejection packs items with holes and pieces without overlaps, where first fits stay above") {
  Rng rng(17);
  int lower = 0;
  for (int round = 0; round < 60; ++round) {
    const std::vector<PackItem> items = random_items(rng, 60, 60);
    const std::int64_t without = pack(items, {100'000, 0, 0}).height;
    const Packing packing = pack(items, {100'000, 0, 2'000'000});
    REQUIRE(packing_fault(items, packing.offsets, packing.height) == "");
    CHECK(packing.height >= packing.peak);
    CHECK(packing.height <= without);
    lower += packing.height < without;
    CHECK(pack(items, {100'000, 0, 2'000'000}).offsets == packing.offsets);
    PackOptions useless{100'000, 0, 2'000'000};
    useless.most = packing.peak - 1;
    const Packing given_up = pack(items, useless);
    CHECK(packing_fault(items, given_up.offsets, given_up.height) == "");
  }
  CHECK(lower > 10);
}

TEST_CASE("MiniMalloc's hard instances are packed into their capacity") {
  for (const char* name : {"A", "G", "K"}) {
    const std::string path = shared_data_dir() + "/minimalloc/" + name + ".1048576.csv";
    if (!std::filesystem::exists(path)) {
      WARN("skipped: " << path << " is absent");
      continue;
    }
    const std::vector<PackItem> items = read_minimalloc(path);
    REQUIRE(items.size() > 100);
    const Packing packing = pack(items);
    CHECK(packing.height == 1048576);
    CHECK(packing_fault(items, packing.offsets, 1048576) == "");
    CHECK(packing.nodes < 100'000);  // seconds, whatever the machine
  }
}

TEST_CASE("pack: three that meet two by two lie side by side, though two are there at most at one time") {
  // a and b meet at 1, b and c at 2, c and a at 4.
  const std::vector<PackItem> items{{{{0, 2, 0, 5}, {4, 5, 0, 5}}}, box(1, 3, 5), {{{2, 3, 0, 5}, {4, 5, 0, 5}}}};
  CHECK(live_peak(items) == 10);
  CHECK(clique_bound(items) == 15);
  const Packing packing = pack(items);
  CHECK(packing.proven == 15);
  CHECK(packing.height == 15);
}

TEST_CASE("pack: no packing is lower than the clique bound, which is no more than the heaviest clique") {
  int above_peak = 0, equal = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    INFO("seed " << seed);
    Rng rng(seed);
    std::vector<PackItem> items = random_boxes(rng, 10, 12, 9);
    for (PackItem& item : items)
      if (const PackRect r = item.rects[0]; rng.chance(0.5)) item.rects.push_back({r.upper + 2, r.upper + 4, 0, r.size});
    const std::int64_t bound = clique_bound(items), heaviest = heaviest_clique(items);
    CHECK(bound <= heaviest);
    CHECK(bound >= live_peak(items));
    CHECK(bound <= pack(items).height);
    above_peak += bound > live_peak(items);
    equal += bound == heaviest;
  }
  CHECK(above_peak > 10);
  CHECK(equal > 150);
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    INFO("seed " << seed);
    Rng rng(seed);
    const std::vector<PackItem> items = random_items(rng, 30, 40);
    CHECK(clique_bound(items) <= pack(items).height);
  }
}
