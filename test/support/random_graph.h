// Seeded random graphs and machines for property tests: small, of the shapes met in practice.
//
// Tied ones count in whole microseconds and kilobytes over links of whole bytes per microsecond, so
// that many events fall on one instant; untied ones are random reals. Typical op 5 us, typical tensor
// 4 kB; links move that in a fraction of an op's time (easy), about it (marginal) or several times
// it (too little). The same seed gives the same graph on every machine.
#pragma once

#include <string>

#include "sim/model/graph.h"
#include "sim/model/hardware.h"
#include "test/support/rng.h"

namespace hyperoffload {

enum class Shape { kWeightStream, kTraining, kSkips, kExperts, kStates };
inline constexpr Shape kAllShapes[] = {Shape::kWeightStream, Shape::kTraining, Shape::kSkips, Shape::kExperts,
                                       Shape::kStates};
const char* to_string(Shape shape);

struct RandomGraphOptions {
  Shape shape = Shape::kWeightStream;
  bool tied = false;
  bool engines = false;   // some ops on comm and host engines
  bool pool_ops = false;  // some of the host's ops with `memory: pool`
  int size = 8;           // about the number of ops
};

Graph random_graph(const RandomGraphOptions& options, Rng& rng);

// Links easy, marginal or too little; HBM bandwidth plenty or so scarce that copies and kernels
// contend. Capacities hold everything the graph has, in either tier: plans choose tighter ones.
Hardware random_hardware(const Graph& graph, bool tied, Rng& rng);

// The graph, one line an op, for messages.
std::string describe(const Graph& graph);
std::string describe(const Hardware& hardware);

}  // namespace hyperoffload
