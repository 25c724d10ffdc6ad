// Fits a machine's efficiencies, launch overhead and link figures to measured times.
//
// Kernels: time = o + max(flops / (C c), bytes / (B b)), with the declared peaks C and B, one overhead o >= 0
// for all and an efficiency c, b of each kind. Which of the two terms an op pays follows from the figures so
// far; then the lines are fitted, and so on until no op changes sides (50 rounds at most). Copies: time =
// latency + bytes / bandwidth. Least squares of (model - measured)^2 / model, by reweighting: errors grow
// with durations, which span four decades, and the model then takes as long in sum as was measured. What
// can't be true is left out and counted: copies faster than the link (a profiler that saw the call, not the
// copy), kernels faster than the declared peaks. Latency and overhead need samples of at least two sizes, else
// the declared ones are taken; efficiency and bandwidth need work that is long enough to show beside them, and
// none comes out above the peak, the link. O(samples) a round.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/import/kineto_measured.h"
#include "sim/model/hardware.h"

namespace hyperoffload {

struct Residuals {  // of |model / measured - 1| over the samples used
  double median = 0, p90 = 0, worst = 0;
};

struct KernelFit {
  std::string kernel;
  std::size_t samples = 0, compute_bound = 0, too_fast = 0;  // too_fast: left out
  std::optional<double> compute, bandwidth;  // efficiencies; none where no sample is bound by it for long enough
  Residuals residuals;
};

struct CopyFit {
  bool to_device = true, pageable = false;
  std::size_t samples = 0, too_fast = 0;  // too_fast: left out of `samples`
  double fastest = 0;                     // bytes/s, of those left out
  double bandwidth = 0;                   // bytes/s; 0: the copies are too small to show it, or none is left
  Seconds latency;             // the declared one where samples of one size can't show it
  bool latency_known = false;  // samples have different sizes, and it came out positive
  Seconds typical;             // the median time
  Residuals residuals;
};

struct Calibration {
  Seconds launch_overhead;  // the declared one where samples of one size can't show it
  bool overhead_known = false;
  std::vector<KernelFit> kernels;  // by name
  std::vector<CopyFit> copies;     // to the device, from it; pinned before pageable
  std::size_t other_kernels = 0;
};

// `link`: what no copy can exceed; 0: the machine's declared link, each way.
Calibration calibrate(const Measured& measured, const Hardware& hardware, BytesPerSecond link);

}  // namespace hyperoffload
