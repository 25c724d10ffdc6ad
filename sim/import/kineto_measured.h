// What a Kineto trace measured of the machine itself: how long copies of so many bytes took, and kernels
// whose operator's shapes say what they computed and moved.
//
// Copies: gpu_memcpy events between host and device that name their bytes. Kernels: those whose External id
// is that of an operator with shapes ("Input Dims", record_shapes=True) of a kind whose work follows from
// them:
//   mm, bmm, addmm, baddbmm   "matmul": 2 m n k FLOPs; both matrices, the result and what is added move once
//   copy_, add, mul, ...      "vector": no FLOPs; all inputs and the result (the largest of them) move once
// Several kernels of one operator are one sample with the sum of their times. What caches keep is not known:
// a vector kernel of small tensors may seem faster than HBM. O(file) time.
#pragma once

#include <string>
#include <vector>

#include "sim/model/units.h"

namespace hyperoffload {

struct MeasuredKernel {
  std::string kernel;  // "matmul", "vector"; of a layer trace the op's `kernel`
  double flops = 0, bytes = 0;
  Seconds time;
};

struct MeasuredCopy {
  bool to_device = true;
  bool pageable = false;  // host memory that is not pinned: the copy goes through a buffer
  double bytes = 0;
  Seconds time;
};

struct Measured {
  std::vector<MeasuredKernel> kernels;
  std::vector<MeasuredCopy> copies;
  std::size_t other_kernels = 0;  // whose work is not known
};

// Adds to `measured`. InputError for a file that is no Kineto trace.
void read_kineto_measured(const std::string& file, Measured& measured);

}  // namespace hyperoffload
