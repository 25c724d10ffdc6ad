// What one run comes down to: the fields of the result format, as plain numbers.
//
// `metrics.h` derives a Result from a replay's record; `result_json.h`, `result_csv.h` and `table.h`
// write it. Times in seconds, all of the last iteration unless the name says otherwise. A run that
// could not happen has no `figures`; everything else in it still holds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/model/plan.h"
#include "sim/model/units.h"

namespace hyperoffload {

// Why an op's wait for bytes took as long as it did; the five add up to
// `StallCauses::late_transfer` but for rounding.
struct LateTransfer {
  Seconds carrying;   // its bytes were on the link
  Seconds latency;    // the link's latency
  Seconds link_busy;  // other transfers were ahead of it on the same link
  Seconds room;       // it, or one ahead of it, waited for room in the tier it fills
  Seconds held_back;  // the link was free, but its anchor or the tensor's earlier uses were not done

  Seconds sum() const { return carrying + latency + link_busy + room + held_back; }
};

// Where `stall` went. The seven add up to it to the last bit, in this order (with several engines, to
// rounding where the causes are far larger than the stall).
struct StallCauses {
  Seconds late_transfer;   // ops waited for bytes to arrive
  Seconds no_room;         // ops waited for room: births, workspace, missing bytes of a pure write
  Seconds hbm_contention;  // ops ran longer than in the ideal run: they shared HBM bandwidth
  Seconds fabric_contention;  // collectives did: they shared ports, switches or HBM with transfers and others
  Seconds input_room;      // the iteration's inputs waited for room
  Seconds host;            // ops waited for the host that decides while time runs
  Seconds other;           // the rest: ops of several engines overlapped otherwise than ideally

  Seconds sum() const { return late_transfer + no_room + hbm_contention + fabric_contention + input_room + host + other; }
};

enum class StallCause { kLateTransfer, kNoRoom, kHbmContention, kFabricContention, kInputRoom, kHost };
inline constexpr StallCause kAllStallCauses[] = {StallCause::kLateTransfer, StallCause::kNoRoom,
                                                 StallCause::kHbmContention, StallCause::kFabricContention,
                                                 StallCause::kInputRoom, StallCause::kHost};
const char* to_string(StallCause cause);  // "late_transfer", ...

// One op's wait for one cause.
struct Wait {
  std::string op;
  StallCause cause = StallCause::kLateTransfer;
  std::string reason;  // of a late transfer: the largest of LateTransfer, by name; else empty
  Seconds from;        // when it began, from the run's start
  Seconds wait;
  std::string tensor;          // the one waited for; empty: none, or not known
  std::optional<Bytes> bytes;  // of the transfer waited for
  std::optional<Seconds> transfer_start, transfer_end;
  // What held the transfer back before it started: "transfer" (one ahead on the same link), "room" in the
  // tier it fills, or "op" (its anchor, or an earlier use of its tensor, was not done). Empty: nothing known.
  std::string held_by, held_by_name;
  std::optional<Bytes> short_bytes;  // room that was missing, for the op or for that transfer, at first
};

// Stall of single ops: start - ready plus the time above its ideal duration, over all ops.
struct WaitSpread {
  std::int64_t stalled_ops = 0;
  Seconds max;
  Seconds p99;  // nearest rank
};

// One transfer direction of one NPU.
struct LinkUse {
  Bytes bytes;                 // carried, pro rata
  std::int64_t transfers = 0;  // that were under way at some time
  Seconds busy;                // a transfer was under way, latency included
  Seconds carrying;            // of it, the bandwidth parts
  Seconds hidden;              // of `busy`, while an op ran on some engine
  Seconds exposed;             // busy - hidden
  double utilisation = 0;      // busy / iteration
};

// What keeps the iteration from being as short as the ideal one.
struct Binding {
  std::string resource;                  // docs/results.md, "What binds", lists them
  std::optional<BytesPerSecond> needed;  // bandwidth that carries the same bytes in the ideal time
  std::string sentence;
};

// What the trace's phase is measured in; absent where the trace doesn't say.
struct Throughput {
  std::optional<double> tokens_per_s, samples_per_s;
  std::optional<Seconds> time_to_first_token, time_per_output_token;
  std::optional<double> model_flops_utilisation;  // of one NPU's declared compute
};

struct NpuFigures {
  int npu = 0;
  Seconds iteration, total, first_iteration, ideal, stall;  // stall = iteration - ideal
  double slowdown = 1;  // iteration / ideal; infinite where only the ideal takes no time
  StallCauses stalls;
  LateTransfer late_transfer;
  WaitSpread per_op;
  std::vector<Wait> worst;  // the ten largest, largest first
  Bytes hbm_peak;
  LinkUse pool_to_hbm, hbm_to_pool;
};

// What the planner was asked to place transfers for, and the plans it tried in replays (app/shared_links.h).
struct PlannerUse {
  double read_slack = 0, write_slack = 0;  // of several ranks the largest
  int replays = 1;
  int recomputed_layers = 0;  // that it chose to compute again
};

// Bound::order of a policy that changed the program: the bound is for plans of the trace as given.
inline constexpr const char* kAsGiven = "as given";

struct Result {
  std::string trace, hardware, policy;
  int iterations = 1;
  bool fits = false;
  std::string reason;  // why not; empty where it fits

  std::vector<NpuFigures> npus;      // empty: the run could not happen
  int slowest = 0;                   // index into `npus`; the top level is this one
  Bytes hbm_peak;                    // the highest of all NPUs
  Bytes pool_peak;                   // of the whole pool, as allocated
  Bytes pool_requested_peak;         // the same before allocations are rounded up
  Bytes hbm_capacity, hbm_reserved;  // of one NPU, as declared; tensors may take the difference
  Bytes pool_capacity;
  int stands_for = 1;  // so many NPUs each of `npus` stands for
  Throughput throughput;
  Binding binding;
  std::optional<Bound> bound;
  std::optional<PlannerUse> planner;  // of `graph`

  bool has_figures() const { return !npus.empty(); }
  const NpuFigures& figures() const { return npus[static_cast<std::size_t>(slowest)]; }
};

}  // namespace hyperoffload
