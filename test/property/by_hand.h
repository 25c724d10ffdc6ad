// Shared by the tests that compute the reference's times by hand, in microseconds.
#pragma once

#include "test/support/catch.h"
#include "test/support/reference_replay.h"
#include "test/support/toy.h"

namespace hyperoffload {

inline ReferenceResult replay(const Toy& toy, int iterations = 1) {
  const Graph graph = toy.graph();
  return reference_replay(graph, toy.plan, toy.hardware, iterations);
}

inline Approx us(double microseconds) { return Approx(microseconds * 1e-6).epsilon(1e-12).margin(1e-18); }

inline double start_of(const ReferenceResult& r, OpId op, int iteration = 0) {
  for (const ReferenceOp& o : r.ops)
    if (o.op == op && o.iteration == iteration) return static_cast<double>(o.start);
  return -1;
}
inline double end_of(const ReferenceResult& r, OpId op, int iteration = 0) {
  for (const ReferenceOp& o : r.ops)
    if (o.op == op && o.iteration == iteration) return static_cast<double>(o.end);
  return -1;
}
inline double start_of(const ReferenceTransfer& t) { return static_cast<double>(t.start); }
inline double end_of(const ReferenceTransfer& t) { return static_cast<double>(t.end); }
inline double iteration_time(const ReferenceResult& r, std::size_t k) {
  return static_cast<double>(r.iteration_end[k] - r.iteration_start[k]);
}
inline double last_iteration_time(const ReferenceResult& r) {
  return iteration_time(r, r.iteration_end.size() - 1);
}
inline bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace hyperoffload
