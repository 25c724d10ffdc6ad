// What lies where in the reference replay: HBM and pool bytes of every tensor, piece by piece.
//
// A piece is the largest stretch of a tensor that every action moves as a whole, so each is wholly
// in a tier or not at all. Takes and frees are booked at once; the peaks are the highest sums seen.
// A move that breaks a rule of the plan format is a CheckFailure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "sim/model/graph.h"
#include "sim/model/hardware.h"
#include "sim/model/plan.h"

namespace hyperoffload::reference {

class Memory {
 public:
  Memory(const Graph& graph, const Plan& plan, const Hardware& hardware);

  // Persistent tensors take their bytes. False: they don't fit.
  bool place_initial(const Plan& plan);
  Bytes hbm_room() const { return hbm_capacity_ - hbm_used_; }
  Bytes pool_room() const { return pool_capacity_ - pool_used_; }
  Bytes hbm_peak() const { return hbm_peak_; }
  Bytes pool_peak() const { return pool_peak_; }

  // Iteration of the birth of a tensor that is not persistent; -1: it doesn't exist.
  int born_in(TensorId t) const { return born_in_[t.index()]; }
  void take_input(TensorId t, int iteration);
  void bury(TensorId t);

  bool in_place(const Op& op) const;  // what it reads is there (in the pool: what it writes isn't in HBM)
  bool fits(const Op& op) const;      // births, missing bytes of what it writes, workspace
  void start(OpId o, int iteration);
  void end(OpId o);

  bool fits(const Action& transfer) const;
  void start(const Action& transfer);
  void end(const Action& transfer);
  void detach(const Action& detach);

  std::map<std::string, int> seen;  // events that tests want to have met

 private:
  struct Piece {
    Bytes from, to;
    bool in_hbm = false;          // its HBM bytes are taken
    bool arriving = false;        // by a prefetch in flight
    bool has_pool_bytes = false;  // until the tensor dies, valid or stale
    bool valid = false;           // the pool copy holds the content
    bool touched = true;          // accessed since its last prefetch
    Bytes bytes() const { return to - from; }
    bool within(const Action& a) const { return from >= a.from && to <= a.to; }
  };
  const std::vector<Piece>& pieces(TensorId t) const { return pieces_[t.index()]; }
  std::vector<Piece>& pieces(TensorId t) { return pieces_[t.index()]; }
  Bytes bytes_to_take(const Op& op) const;
  Bytes bytes_to_take(const Action& transfer) const;
  void write(const Op& op, Piece& piece);
  Bytes in_pool(Bytes bytes) const { return allocated_bytes(allocation_, bytes); }  // as one allocation
  void take_hbm(Bytes bytes);
  void take_pool(Bytes bytes);
  void leave_hbm(Piece& piece);

  const Graph& graph_;
  Bytes hbm_capacity_, pool_capacity_;
  Allocation allocation_;
  Bytes hbm_used_, pool_used_, hbm_peak_, pool_peak_;
  std::vector<std::vector<Piece>> pieces_;  // by tensor
  std::vector<int> born_in_;                // by tensor
};

}  // namespace hyperoffload::reference
