// A trace and a machine as a user's files, small enough to follow by hand.
//
// One weight in the pool, read by the second of two ops of 10 us: the second starts after latency (1 us) + 18,000 B /
// bandwidth = 19 us, or after the first. x is stored by none: writing speed can't matter.
#pragma once

namespace hyperoffload {

inline constexpr const char* kTinyTrace = R"({"format": "hyperoffload-trace", "version": 1, "name": "two",
 "tensors": [{"name": "w", "bytes": 18000, "kind": "weight", "initial": "pool"}, {"name": "x", "bytes": 1000, "kind": "activation"}],
 "ops": [{"name": "a", "duration_us": 10, "reads": [], "writes": ["x"]},
         {"name": "b", "duration_us": 10, "reads": ["w", "x"], "writes": []}]})";
inline constexpr const char* kTinyMachine = R"(name: tiny
npu: {count: 1, compute: 1TFLOPS, hbm: {capacity: 20kB, bandwidth: 1.6TB/s}}
link: {read: {bandwidth: 1GB/s, latency: 1us}, write: {bandwidth: 1GB/s, latency: 1us}}
pool: {capacity: 1GB}
)";

}  // namespace hyperoffload
