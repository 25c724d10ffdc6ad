// Which op may go next, as far as engines, dependencies and iterations decide: shared by the
// reference's drivers. Iterations and ops count from 0; all questions are about the current
// iteration unless one is named. All pairs of ops are compared once: O(ops^2 x accesses).
#pragma once

#include <vector>

#include "sim/model/graph.h"

namespace hyperoffload::reference {

class Order {
 public:
  Order(const Graph& graph, int iterations)
      : graph_(graph), iterations_(iterations), state_(graph.ops().size()), before_(graph.ops().size()) {
    for (std::size_t i = 0; i < before_.size(); ++i)
      for (std::size_t j = 0; j < i; ++j)
        if (must_precede(OpId(j), OpId(i))) before_[i].push_back(OpId(j));
  }

  int iteration() const { return iteration_; }  // every op of the earlier ones has ended
  bool finished() const { return iteration_ == iterations_; }
  bool ended(int iteration, OpId op) const {
    return iteration < iteration_ || (iteration == iteration_ && state_[op.index()] == State::kEnded);
  }
  bool waiting(OpId op) const { return !finished() && state_[op.index()] == State::kWaiting; }
  bool running(OpId op) const { return !finished() && state_[op.index()] == State::kRunning; }

  // Its engine is free and has come to it, and all it depends on has ended.
  bool ready(OpId op) const {
    if (!waiting(op)) return false;
    for (OpId o : before_[op.index()])
      if (state_[o.index()] != State::kEnded) return false;
    return true;
  }
  // It could run but for an op on another engine.
  bool held_by_another_engine(OpId op) const {
    if (!waiting(op) || ready(op)) return false;
    for (OpId o : before_[op.index()])
      if (state_[o.index()] != State::kEnded && graph_.op(o).engine == graph_.op(op).engine) return false;
    return true;
  }

  void start(OpId op) { state_[op.index()] = State::kRunning; }
  // True when it was the iteration's last.
  bool end(OpId op) {
    state_[op.index()] = State::kEnded;
    for (State s : state_)
      if (s != State::kEnded) return false;
    ++iteration_;
    state_.assign(state_.size(), State::kWaiting);
    return true;
  }

 private:
  enum class State { kWaiting, kRunning, kEnded };

  bool must_precede(OpId first, OpId second) const {
    const Op& a = graph_.op(first);
    const Op& b = graph_.op(second);
    if (a.engine == b.engine) return true;
    for (OpId o : b.after)
      if (o == first) return true;
    for (TensorId t : a.writes)
      if (contains(b.reads, t) || contains(b.writes, t)) return true;
    for (TensorId t : a.reads)
      if (contains(b.writes, t)) return true;
    return false;
  }
  static bool contains(const std::vector<TensorId>& list, TensorId t) {
    for (TensorId other : list)
      if (other == t) return true;
    return false;
  }

  const Graph& graph_;
  int iterations_;
  int iteration_ = 0;
  std::vector<State> state_;
  std::vector<std::vector<OpId>> before_;  // all that must end before each op
};

}  // namespace hyperoffload::reference
