// The events of a Kineto trace that an import needs, read in one pass.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "sim/import/exact_time.h"
#include "sim/import/import.h"
#include "sim/import/name_table.h"
#include "sim/import/timeline.h"
#include "sim/import/trace_maker.h"

namespace hyperoffload {

// What says where a device event comes from; -1: not given.
struct DeviceEvent {
  std::int64_t correlation = -1, external_id = -1;
};

// A call of the CUDA or HIP runtime or driver that has a correlation.
struct LaunchEvent {
  Picoseconds start = 0;
  std::uint32_t thread = 0;  // in `names`
};

// An operator or annotation on the host.
struct HostOp {
  std::uint32_t name = 0, thread = 0;  // in `names`
  Picoseconds start = 0, end = 0;
  std::int64_t external_id = -1, record_id = -1;  // "External id", "Record function id"
};

// An allocation (bytes > 0) or a free (bytes < 0) of device memory.
struct MemoryEvent {
  Picoseconds at = 0;
  std::int64_t bytes = 0;
  std::string place;  // device type, device and address: what pairs them
};

struct KinetoEvents {
  NameTable names;
  std::vector<DeviceEvent> device;                         // numbered as in the timeline
  std::unordered_map<std::int64_t, LaunchEvent> launches;  // by correlation; only if wanted
  std::map<std::size_t, Collective> collectives;           // of device events, by their number
  std::size_t unsaid_collectives = 0;                      // by their names, but not what they carry
  std::vector<HostOp> host_ops;                            // only if wanted
  std::vector<MemoryEvent> memory;                         // only if wanted
  std::size_t memory_events = 0;                           // of device memory, wanted or not
  std::int64_t allocated_before = 0;                       // bytes before the first memory event
  std::size_t events = 0;
  std::map<std::string, std::size_t> categories;  // of complete events
};

struct KinetoWanted {
  bool launches = false, host_ops = false, memory = false;
};

// Device events go to the timeline, and their streams become engines of the maker.
KinetoEvents read_kineto_events(const std::string& file, const KinetoWanted& wanted,
                                const ImportOptions& options, StreamTimeline& timeline, TraceMaker& maker);

// "768 kernel, 161 gpu_memcpy"; the largest first.
std::string counts_by_category(const std::map<std::string, std::size_t>& categories);

}  // namespace hyperoffload
