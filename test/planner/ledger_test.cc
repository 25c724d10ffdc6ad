#include "planner/analysis/memory_profile.h"
#include "planner/cost/step_clock.h"
#include "planner/ledger/eviction_ledger.h"
#include "planner/ledger/link_ledger.h"
#include "planner/passes/choose_evictions.h"
#include "test/planner/families.h"
#include "test/planner/toy.h"
#include "test/support/catch.h"
#include "test/support/rng.h"

using namespace hyperoffload;

namespace {
using Spans = std::map<Ticks, Ticks>;
}

TEST_CASE("link ledger: the latest fit stands right before its deadline, or before what is booked there") {
  LinkLedger ledger;
  CHECK(ledger.book_latest(0, 100, 10)->start == 90);
  CHECK(ledger.book_latest(0, 100, 10)->start == 80);
  CHECK(ledger.book_latest(0, 95, 5)->start == 75);
  CHECK(ledger.busy() == Spans{{75, 100}});
}

TEST_CASE("link ledger: a booking fills holes and is refused when they don't suffice") {
  LinkLedger ledger;
  ledger.book_latest(0, 20, 10);                    // [10, 20)
  const auto split = ledger.book_latest(5, 25, 8);  // [20, 25) and [7, 10)
  REQUIRE(split);
  CHECK(split->start == 7);
  CHECK(split->end == 25);
  CHECK(split->parts == std::vector<TickSpan>{{20, 25}, {7, 10}});
  CHECK_FALSE(ledger.book_latest(5, 25, 3));  // only [5, 7) is left
  CHECK(ledger.free(5, 25, 100) == 2);
  CHECK(ledger.book_earliest(0, 30, 6)->end == 6);  // [0, 6)
  CHECK(ledger.earliest_end(0, 2) == 26);           // [6, 7) and [25, 26)
}

TEST_CASE("link ledger: on a circle a window may begin before the period or end behind it") {
  LinkLedger ledger(100);
  const auto before = ledger.book_latest(-50, 5, 10);  // [0, 5) and the last 5 of the turn before
  REQUIRE(before);
  CHECK(before->start == -5);
  CHECK(ledger.busy() == Spans{{0, 5}, {95, 100}});
  const auto behind = ledger.book_earliest(94, 150, 3);  // [94, 95), then from 105 on
  REQUIRE(behind);
  CHECK(behind->end == 107);
  CHECK(ledger.busy() == Spans{{0, 7}, {94, 100}});
}

TEST_CASE("link ledger: cancelling in any order is the exact inverse") {
  Rng rng(7);
  for (Ticks period : {Ticks(0), Ticks(1000)}) {
    LinkLedger ledger(period, 600, 16);  // the last bucket goes on behind the horizon
    std::vector<Booking> bookings;
    std::vector<char> second(1000);
    for (int round = 0; round < 2000; ++round) {
      if (!bookings.empty() && rng.chance(0.45)) {
        const std::size_t i = rng.between(0, static_cast<std::int64_t>(bookings.size()) - 1);
        ledger.cancel(bookings[i]);
        for (const auto& [a, b] : bookings[i].parts)
          for (Ticks t = a; t < b; ++t) second[t] = 0;
        bookings.erase(bookings.begin() + static_cast<std::ptrdiff_t>(i));
      } else {
        const Ticks release = rng.between(0, 900);
        const Ticks deadline = rng.between(release, period > 0 ? release + 999 : 1000);
        const Ticks length = rng.between(1, 60);
        Ticks start = deadline, left = length;  // tick by tick
        while (start > release && left > 0) left -= second[--start % 1000] == 0;
        CHECK(ledger.free(release, deadline, length) == length - left);
        CHECK((ledger.latest_start(release, deadline, length) == start) == (left == 0));
        const auto booking = rng.chance(0.5) ? ledger.book_latest(release, deadline, length)
                                             : ledger.book_earliest(release, deadline, length);
        Ticks room = 0;  // counted tick by tick
        for (Ticks t = release; t < deadline; ++t) room += second[t % 1000] == 0;
        REQUIRE(booking.has_value() == (room >= length));
        if (!booking) continue;
        CHECK(booking->start >= release);
        CHECK(booking->end <= deadline);
        for (const auto& [a, b] : booking->parts)
          for (Ticks t = a; t < b; ++t) {
            REQUIRE(second[t] == 0);
            second[t] = 1;
          }
        bookings.push_back(*booking);
      }
      Ticks busy = 0;
      for (const auto& [a, b] : ledger.busy()) busy += b - a;
      REQUIRE(busy == std::count(second.begin(), second.end(), 1));
    }
    for (const Booking& booking : bookings) ledger.cancel(booking);
    CHECK(ledger.busy().empty());
  }
}

TEST_CASE("memory profile: range add, maximum and the last position above a limit agree with plain sums") {
  Rng rng(3);
  for (int count : {1, 2, 7, 64, 100}) {
    std::vector<std::int64_t> plain;
    for (int i = 0; i < count; ++i) plain.push_back(rng.between(0, 50));
    MemoryProfile profile(plain);
    for (int round = 0; round < 500; ++round) {
      const int from = rng.pick(0, count - 1), to = rng.pick(from, from + count);
      const std::int64_t bytes = rng.between(-20, 20), limit = rng.between(0, 80);
      profile.add(from, to, bytes);
      for (int p = from; p < to; ++p) plain[p % count] += bytes;
      const int a = rng.pick(0, 2 * count - 1), b = rng.pick(a, a + count);
      if (b > 2 * count) continue;
      std::int64_t max = std::numeric_limits<std::int64_t>::min();
      int last = a - 1;
      for (int p = a; p < b; ++p) {
        max = std::max(max, plain[p % count]);
        if (plain[p % count] > limit) last = p;
      }
      CHECK(profile.max(a, b) == max);
      CHECK(profile.last_above(a, b, limit) == last);
    }
  }
}

TEST_CASE("eviction ledger: restoring everything leaves bytes and link time as they were") {
  for (Family family : kAllFamilies) {
    FamilyCase c = family_case(family, 5, 60, 1.0);
    c.hardware.hbm_capacity = Bytes(c.peak * 6 / 10);
    const FlatGraph flat(c.graph, c.hardware);
    const Walk ideal = walk_plan(flat, Plan{}, {1, WalkRecord::kLastIteration, true});
    const Liveness liveness(flat, {c.repeats, 300});
    const StepClock clock(flat, ideal, 1000);
    EvictionLedger ledger(flat, liveness, clock);
    choose_evictions(flat, liveness, clock, rank_by_name(c.graph), Score::kFarthestUse, ledger);
    CHECK(ledger.bytes_over(0, liveness.positions) <= c.hardware.hbm_capacity.value);
    const std::vector<std::int32_t> history = ledger.history();
    CHECK_FALSE(history.empty());
    for (auto unit = history.rbegin(); unit != history.rend(); ++unit)
      if (ledger.evicted(*unit)) ledger.restore(*unit);
    for (int p = 0; p < liveness.positions; ++p) REQUIRE(ledger.bytes_at(p) == liveness.resident[p]);
    CHECK(ledger.idle());
  }
}
