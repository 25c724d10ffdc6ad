// How an iteration ran over time, in a bounded number of points however long it is: what fills HBM by kind,
// pool use, bytes carried each way, and how long each engine ran.
//
// Recorded while the replay runs, for the first and the last iteration. Levels (HBM, pool) are step functions:
// changes that fall into one step of time become one point, which keeps the instant of the highest HBM use
// exactly, the lowest use, and the level it ended with. Amounts (bytes carried, time run) are sums a step.
// A step is 1 ns, doubled whenever there are more than `points` of them: short iterations are exact to the
// nanosecond. O(1) a change, amortised; O(points) memory.
// A transfer's bytes spread evenly over its bandwidth part; what lies outside of the iteration is left out.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "sim/model/graph.h"
#include "sim/model/units.h"

namespace hyperoffload {

enum class Direction { kPoolToHbm, kHbmToPool };  // prefetch (load), store (write back)

inline constexpr std::size_t kTensorKinds = 7;
inline constexpr std::size_t kFillKinds = kTensorKinds + 1;  // by TensorKind; the last is workspace
using HbmFill = std::array<Bytes, kFillKinds>;
Bytes total(const HbmFill& fill);

struct FillPoint {
  Seconds time;       // of its first change
  Seconds last_time;  // of its last change
  HbmFill peak;       // at its highest HBM use
  HbmFill last;       // from `last_time` on
  Bytes low;          // lowest HBM use
  Bytes pool, pool_last;  // highest pool use; from `last_time` on
};

struct IterationSeries {
  int iteration = 0;
  Seconds start, end;
  std::int64_t changes = 0;  // of HBM or pool use, before they became points
  Seconds fill_step, use_step;
  std::vector<FillPoint> fill;
  std::size_t engines = 0;
  std::vector<double> use;  // a step: bytes pool -> HBM, bytes HBM -> pool, seconds run by each engine
};

class SeriesRecorder {
 public:
  explicit SeriesRecorder(std::size_t engines, std::size_t points = 1024);

  void start_iteration(int iteration, Seconds now);  // ends the one before
  void finish(Seconds now);
  void sample(Seconds now, const HbmFill& fill, Bytes pool);  // the levels now
  void carried(Direction direction, Seconds from, Seconds to, Bytes bytes);
  void ran(EngineId engine, Seconds from, Seconds to);
  std::vector<IterationSeries> take();  // the first and the last iteration; one, if there is only one

 private:
  struct Window {
    IterationSeries series;
    bool open = false;
  };
  void add_use(Window& window, std::size_t column, Seconds from, Seconds to, double amount);
  void add_use(std::size_t column, Seconds from, Seconds to, double amount);
  void coarsen_fill(IterationSeries& series) const;
  void coarsen_use(IterationSeries& series) const;
  std::size_t columns() const { return engines_ + 2; }

  std::size_t engines_, points_;
  Window first_, current_;
  bool has_first_ = false;
  FillPoint level_;  // what holds now
};

}  // namespace hyperoffload
