#include "sim/report/series.h"

#include <nlohmann/json.hpp>

#include "sim/report/series_json.h"
#include "test/report/toy_run.h"
#include "test/support/catch.h"

namespace hyperoffload {
namespace {

using namespace test;

constexpr std::size_t kWeight = 0, kActivation = 3;

HbmFill fill(std::int64_t weight, std::int64_t activation = 0) {
  HbmFill f{};
  f[kWeight] = Bytes(weight);
  f[kActivation] = Bytes(activation);
  return f;
}

}  // namespace

TEST_CASE("A short iteration keeps every change of memory, at its time") {
  SeriesRecorder recorder(1, 8);
  recorder.sample(us(0), fill(100), Bytes(7));
  recorder.start_iteration(0, us(0));
  recorder.sample(us(3), fill(100, 50), Bytes(7));
  recorder.sample(us(3), fill(100, 50), Bytes(7));  // nothing changed
  recorder.sample(us(5), fill(100), Bytes(9));
  recorder.finish(us(10));
  const auto all = recorder.take();
  REQUIRE(all.size() == 1);
  CHECK(all[0].changes == 2);
  REQUIRE(all[0].fill.size() == 3);
  CHECK(all[0].fill[1].time == us(3));
  CHECK(all[0].fill[1].peak == fill(100, 50));
  CHECK(all[0].fill[2].pool == Bytes(9));
}

TEST_CASE("A long iteration has a bounded number of points, and its highest and lowest use exactly") {
  SeriesRecorder recorder(1, 64);
  recorder.start_iteration(0, us(0));
  for (int i = 0; i < 100'000; ++i) recorder.sample(us(i), fill(1000 + i % 7, i == 54'321 ? 999 : 1), Bytes(i % 3));
  recorder.sample(us(100'000), fill(5), Bytes(0));
  recorder.finish(us(200'000));
  const IterationSeries series = recorder.take()[0];
  CHECK(series.fill.size() <= 64);
  CHECK(series.fill.size() >= 16);  // 200 ms; doubling wastes at most half, and half is empty
  CHECK(series.changes >= 100'000);
  Bytes highest, lowest = Bytes::max();
  Seconds from;
  for (const FillPoint& p : series.fill) {
    CHECK(p.time >= from);
    from = p.time;
    if (total(p.peak) > highest) {
      highest = total(p.peak);
      CHECK((p.peak[kActivation] == Bytes(999)) == (highest > Bytes(1007)));
    }
    lowest = std::min(lowest, p.low);
  }
  CHECK(highest == Bytes(1000 + 54'321 % 7 + 999));
  CHECK(lowest == Bytes(0));  // nothing is there before the first sample
  CHECK(series.fill.back().last == fill(5));
}

TEST_CASE("A transfer's bytes go to the iterations it lies in, by its time there") {
  SeriesRecorder recorder(1, 1024);
  recorder.start_iteration(0, us(0));
  recorder.start_iteration(1, us(100));
  recorder.carried(Direction::kPoolToHbm, us(80), us(120), Bytes(4000));  // half in each
  recorder.finish(us(200));
  recorder.carried(Direction::kHbmToPool, us(190), us(230), Bytes(4000));  // a quarter before the end
  recorder.ran(EngineId(0), us(100), us(150));
  const auto all = recorder.take();
  REQUIRE(all.size() == 2);
  const auto sum = [](const IterationSeries& s, std::size_t column) {
    double total = 0;
    for (std::size_t i = column; i < s.use.size(); i += 3) total += s.use[i];
    return total;
  };
  CHECK(sum(all[0], 0) == Approx(2000));
  CHECK(sum(all[1], 0) == Approx(2000));
  CHECK(sum(all[0], 1) == 0);
  CHECK(sum(all[1], 1) == Approx(1000));
  CHECK(sum(all[1], 2) == Approx(50e-6));
}

TEST_CASE("Of many iterations the first and the last are kept, each from the level it starts with") {
  SeriesRecorder recorder(1);
  recorder.sample(us(0), fill(10), Bytes(0));
  for (int k = 0; k < 5; ++k) {
    recorder.start_iteration(k, us(10 * k));
    recorder.sample(us(10 * k + 5), fill(10 + k), Bytes(0));
  }
  recorder.finish(us(50));
  const auto all = recorder.take();
  REQUIRE(all.size() == 2);
  CHECK(all[0].iteration == 0);
  CHECK(all[1].iteration == 4);
  CHECK(all[1].fill.front().peak == fill(13));
  CHECK(all[1].fill.back().peak == fill(14));
  CHECK(all[1].start == us(40));
  CHECK(all[1].end == us(50));
}

TEST_CASE("What took in several changes is written as its highest use, then what holds after it") {
  SeriesRecorder recorder(1);
  recorder.sample(us(0), fill(10), Bytes(0));
  recorder.start_iteration(0, us(0));
  recorder.sample(us(2), fill(10, 90), Bytes(0));  // within one instant: taken and given back
  recorder.sample(us(2), fill(10), Bytes(0));
  recorder.finish(us(4));
  const Graph graph = toy_graph({0});
  Result result;
  result.npus.emplace_back();
  const auto json = nlohmann::json::parse(series_to_json(graph, toy_hardware(), result, recorder.take()));
  const auto memory = json["iterations"][0]["memory"];
  CHECK(memory["hbm_bytes"] == nlohmann::json{10, 100, 10});
  CHECK(memory["time_s"] == nlohmann::json{0.0, 2e-6, 2e-6});
  CHECK(memory["hbm_bytes_by_kind"]["activation"] == nlohmann::json{0, 90, 0});
  CHECK_FALSE(memory["hbm_bytes_by_kind"].contains("kv"));
}

}  // namespace hyperoffload
