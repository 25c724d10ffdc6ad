// One engine's ops in a row, with what the window bound asks about them: prefix sums of time and of
// link bytes that fit beside them, and by window the bytes it must have and the bytes it leaves behind.
//
// Places: an op's place on its engine; the place behind the last is the iteration's end. A *demand* is
// a tensor's bytes in a rectangle: windows that begin in one range of places and end in another. For
// windows of one length that is a range of begins, so sums by begin are differences. Bytes int64.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/analysis/flat_graph.h"

namespace hyperoffload {

struct Demand {
  std::int32_t begin_from, begin_to;  // windows that begin at these places, both included
  std::int32_t end_from, end_to;      // and end at these
  std::int64_t bytes;
};

struct EngineLine {
  EngineLine(const FlatGraph& graph, int engine);

  int places = 0;                              // ops
  std::vector<std::int32_t> op;                // by place
  std::vector<double> time;                    // prefix sum: ops alone
  std::vector<double> free_bytes, slow_bytes;  // prefix sums: f, and what more an HBM-bound op can bear
  std::vector<std::int64_t> only_writes;       // by place: bytes only written, and workspace
  std::vector<std::int64_t> born;              // by place: bytes born, and workspace
  std::vector<Demand> reads, writes;
  std::vector<std::int64_t> touched;  // by place: bytes accessed before it and still alive
  std::int64_t largest = 1;           // of the tensors in them

  // By begin, the bytes of all demands that hold for windows [begin, begin + length].
  std::vector<std::int64_t> by_begin(const std::vector<Demand>& demands, int length) const;

 private:
  void add_tensor(const FlatGraph& graph, int engine, int tensor);
};

}  // namespace hyperoffload
