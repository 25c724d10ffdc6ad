// Who is in HBM when, under a plan: what fills it at each op, and where each tensor is.
//
// From the planner's own walk of time, for its last iteration: a prefetch's bytes count from its start, a detached
// tensor's until its detach, a dying one's until it dies. A column of the map is the time from an op's start to the
// next op's, or so many ops that they all fit. It shows the instant with most bytes in HBM, and of each tensor what
// tells most: that it is stored, is there, is loaded, in part there, in the pool. So the highest column is what the
// plan's prediction says, unless an iteration before took more. Two walks, O(columns x tensors + takes x rows).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/model/graph.h"
#include "sim/model/hardware.h"
#include "sim/model/plan.h"

namespace hyperoffload {

inline constexpr std::size_t kMapKinds = std::size(kAllTensorKinds) + 1;  // those, then workspace

struct MapColumn {
  int last_op = 0, op = 0;  // `op`: the last that started before the instant shown
  std::array<std::int64_t, kMapKinds> by_kind{};
  std::int64_t total = 0;
};

struct MapRow {
  TensorId tensor;
  // By column: ' ' not alive, '.' in the pool, '#' in HBM, '=' a part of it, '<' being loaded, '>' stored.
  std::string places;
};

struct MemoryMap {
  std::int64_t capacity = 0;  // of HBM, for tensors and workspace
  double seconds = 0;         // of the iteration
  std::int64_t peak = 0;      // of all iterations
  std::vector<MapColumn> columns;
  std::vector<MapRow> rows;
  std::size_t tensors_that_move = 0, tensors = 0;
};

// At most so many columns and rows; rows are those that move most bytes, then the largest.
MemoryMap memory_map(const Graph& graph, const Hardware& hardware, const Plan& plan, int iterations,
                     int columns, int rows);

// For a terminal of so many characters a line, at least kLeastMapWidth.
inline constexpr int kLeastMapWidth = 40;
std::string draw_memory_map(const Graph& graph, const Hardware& hardware, const Plan& plan, int iterations,
                            int width);

}  // namespace hyperoffload
