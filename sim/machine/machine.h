// The machine on SimGrid: NPUs with engines, HBM and two copy directions, the pool, and the fabric.
//
// An op's compute time and a transfer's latency are timers; what shares bandwidth is a flow (event_engine.h)
// over the links of platform.h. A copy has one stream for each bin of the pool its bytes lie in; they start
// together after the longest latency of their paths, have parts of the copy's cap and weight in proportion
// to their bytes, and the copy is over with the last. So alone it takes latency + bytes / bandwidth.
// Collectives wait for the last of their ranks, then pay their latencies, then stream (collective.h).
// A group that reaches beyond the NPUs that take part is one in which all others do what this rank does: its
// streams go out of the NPU and into it again. So is `send`/`recv` where all NPUs replay one trace: they
// load this side's ports and wait for nobody.
// One Machine a process: SimGrid's engine can't be had twice (sim/replay forks).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sim/machine/event_engine.h"
#include "sim/machine/hbm_use.h"
#include "sim/machine/placement.h"
#include "sim/model/graph.h"
#include "sim/model/hardware.h"
#include "sim/model/ids.h"
#include "sim/model/op_cost.h"
#include "sim/report/run_record.h"

namespace hyperoffload {

// What an NPU will do: one for all, or one each.
struct RankWork {
  const Graph* graph = nullptr;
  std::vector<OpCost> costs;  // op_cost(): with a collective's time alone
  std::vector<OpCost> local;  // local_cost(): without
  HbmUse hbm;
};

class Machine {
 public:
  // `works`: one, or one an NPU. `horizon`: an upper estimate of the simulated time.
  // `shortcuts`: false makes a flow of everything that could be one.
  Machine(const Hardware& hardware, const std::vector<Bin>& bins, const std::vector<RankWork>& works,
          Seconds horizon, bool shortcuts = true);
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  Seconds now() const;

  // Runs an op on an idle engine: its compute time, its HBM flow and its collective at once, over at the
  // latest of them. Must take time (what takes none needs no machine).
  void run_op(int npu, OpId op, EngineId engine, Completion& over);
  bool takes_time(int npu, OpId op) const;

  // A copy between pool and HBM on an idle direction: latency, then the bytes. Must take time.
  // `flowing` is told when the bandwidth part begins (at once if there is no latency).
  void copy(int npu, Direction direction, const Extents& extents, bool demand, Completion& flowing,
            Completion& over);
  // From now on an op waits for the copy under way.
  void copy_is_demand(int npu, Direction direction);
  bool copy_takes_time(Direction direction, Bytes bytes) const;

  // Who is not there yet, for an op that runs but waits for other ranks; empty if it doesn't.
  std::string waits_for_ranks(int npu, EngineId engine) const;

  // Called once an instant, after every completion of that instant was told.
  void on_instant(std::function<void()> callback);
  // Tells `over` after so long (> 0), as an event of that instant.
  void after(Seconds delay, Completion& over);
  // Asks for such a call at the present instant.
  void wake();

  // Runs until nothing is going on any more.
  void run();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hyperoffload
