// Tensors cut into pieces at the boundaries of a plan's actions, for the plan checker: a piece is
// moved as a whole or not at all. A tensor that nothing cuts is one piece, also when it has no bytes.
// Instants count a tensor's own events (accesses and actions) from 1; 0 is "never".
// O(tensors + actions log actions).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/model/graph.h"
#include "sim/model/hardware.h"
#include "sim/model/plan.h"

namespace hyperoffload {

struct PlanPiece {
  Bytes from, to;
  bool resident = false;
  bool assumed = false;       // resident only so that a reader without a prefetch is reported once
  bool allocated = false;     // has pool bytes, whatever they hold
  std::uint32_t copied = 0;   // the version of its tensor that its pool copy holds; 0: none
  std::uint32_t arrived = 0;  // when its last prefetch stood; 0: it came otherwise
  std::uint32_t stored = 0;   // when its last store stood, if not detached since
  int store_action = -1;      // which store that was
  int detach_action = -1;     // which detach made it absent, or -1

  Bytes bytes() const { return to - from; }
};

// Outside its tensor, or empty though the tensor isn't.
bool range_is_bad(const Graph& graph, const Action& action);

class Pieces {
 public:
  Pieces(const Graph& graph, const Plan& plan);

  std::span<PlanPiece> of(TensorId t) {
    return {all_.data() + begin_[t.index()], all_.data() + begin_[t.index() + 1]};
  }
  std::span<const PlanPiece> of(TensorId t) const {
    return {all_.data() + begin_[t.index()], all_.data() + begin_[t.index() + 1]};
  }
  std::span<PlanPiece> of(const Action& action);  // those it moves; its range must not be bad
  std::size_t count() const { return all_.size(); }
  // By tensor: what it takes in the pool, each of its pieces an allocation.
  std::vector<Bytes> allocated(const Allocation& allocation) const;

 private:
  std::vector<PlanPiece> all_;
  std::vector<std::size_t> begin_;
};

}  // namespace hyperoffload
