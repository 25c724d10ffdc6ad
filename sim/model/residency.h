// Who is in HBM, piece by piece, and what put it there: told of takes and frees by whoever replays a plan
// (the checker in program order, the planner's walk, the replay on SimGrid), tells a listener.
//
// A *source* is what brings bytes into HBM: the start (what is there from the beginning, an input from its
// iteration's start), an op's write (a birth, missing bytes of a pure write), a prefetch, an op (its
// workspace). Tensors are cut into pieces at the byte offsets where the plan's actions cut them; a piece
// comes and goes as a whole. Pieces without bytes are left out. *Event*: counts the calls; all that one
// call takes or gives has one number. O(pieces touched) a call.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/model/check_pieces.h"
#include "sim/model/graph.h"
#include "sim/model/plan.h"

namespace hyperoffload {

struct Resident {
  enum class By { kStart, kWrite, kPrefetch, kWorkspace } by = By::kStart;
  TensorId tensor;  // none: workspace
  OpId op;          // kWrite, kWorkspace
  int action = -1;  // kPrefetch
  Bytes from, to;   // of the tensor
  int piece = -1;   // a number for this piece, or this op's workspace
};

class ResidencyListener {
 public:
  virtual ~ResidencyListener() = default;
  virtual void taken(const Resident& resident, std::int64_t event) = 0;
  virtual void given(const Resident& resident, std::int64_t event) = 0;
  virtual void iteration_ended() {}
};

class Residency {
 public:
  Residency(const Graph& graph, const Plan& plan, ResidencyListener& listener);

  void begin();  // persistent tensors that don't start in the pool
  void take_input(TensorId tensor);
  void start_op(OpId op);
  void end_op(OpId op);
  void prefetch(int action);
  void detach(const Action& action) { detach(action.tensor, action.from, action.to); }
  void detach(TensorId tensor, Bytes from, Bytes to);
  void die(TensorId tensor);
  // All that is there goes, as when a replay is over.
  void end();

  // Numbers of a tensor's pieces: [first, last).
  int first_piece(TensorId tensor) const { return first_[tensor.index()]; }
  int last_piece(TensorId tensor) const { return first_[tensor.index() + 1]; }
  int pieces() const { return first_.back(); }  // workspaces come behind them, by op
  bool here(int piece) const { return here_[static_cast<std::size_t>(piece)]; }

 private:
  void take(int piece, Resident resident);
  void give(int piece);

  const Graph& graph_;
  const Plan& plan_;
  ResidencyListener& listener_;
  std::vector<int> first_;           // by tensor, and one more
  std::vector<Resident> residents_;  // by number: who is there, or was last
  std::vector<char> here_;
  std::int64_t event_ = 0;
  std::size_t ops_ended_ = 0;
};

}  // namespace hyperoffload
