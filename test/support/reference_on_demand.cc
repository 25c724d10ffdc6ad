#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "sim/model/check.h"
#include "sim/model/op_cost.h"
#include "test/support/reference_machine.h"
#include "test/support/reference_order.h"
#include "test/support/reference_replay.h"

namespace hyperoffload {
namespace {

using reference::Machine;
using reference::Order;
using reference::Time;

// Whole tensors only: reactive swapping knows no pieces.
struct Place {
  bool exists = false;
  bool in_hbm = false;  // its bytes are taken; `moving` while they arrive
  bool has_pool_bytes = false;
  bool valid = false;   // the pool copy holds the current content
  bool moving = false;  // a load or a store is under way
  Time used = 0, taken = 0;
};

class OnDemand {
 public:
  OnDemand(const Graph& graph, const Hardware& hardware, int iterations, Evict evict)
      : graph_(graph),
        hardware_(hardware),
        evict_(evict),
        order_(graph, iterations),
        machine_(hardware.hbm_bandwidth.value),
        places_(graph.tensors().size()) {
    for (const Op& op : graph.ops()) HYPER_CHECK(op.memory == Tier::kHbm, "on_demand with ops in the pool");
  }

  ReferenceResult run() {
    place_initial();
    if (pool_room() < Bytes(0)) return stuck("the pool is too small for what starts there");
    result_.iteration_start.push_back(0);
    for (;;) {
      end_what_is_over();
      if (order_.finished()) break;
      if (take_inputs() || start_an_op() || serve()) continue;
      if (!machine_.advance()) return stuck(describe());
    }
    do {
      while (const auto ended = machine_.take_ended())
        result_.transfers[static_cast<std::size_t>(ended->index)].end = machine_.now();
    } while (machine_.advance());
    for (const Direction d : {Direction::kPoolToHbm, Direction::kHbmToPool})
      (d == Direction::kPoolToHbm ? result_.pool_to_hbm : result_.hbm_to_pool) =
          carried_bytes(result_.transfers, d, result_.iteration_start.back(), result_.iteration_end.back());
    return std::move(result_);
  }

 private:
  Place& place(TensorId t) { return places_[t.index()]; }
  Bytes bytes(TensorId t) const { return graph_.tensor(t).bytes; }
  Bytes hbm_room() const { return hardware_.hbm_usable() - hbm_used_; }
  Bytes pool_room() const { return hardware_.pool_capacity - pool_used_; }
  void saw(const std::string& what) { ++result_.seen[what]; }
  void take(Bytes& used, Bytes bytes) {
    used += bytes;
    result_.hbm_peak = std::max(result_.hbm_peak, hbm_used_);
    result_.pool_peak = std::max(result_.pool_peak, pool_used_);
  }
  void take_hbm(TensorId t) {
    place(t).exists = place(t).in_hbm = true;
    place(t).taken = place(t).used = machine_.now();
    take(hbm_used_, bytes(t));
  }
  void leave_hbm(TensorId t) {
    if (place(t).in_hbm) hbm_used_ -= bytes(t);
    place(t).in_hbm = false;
  }
  Bytes input_bytes() const {
    Bytes sum;
    for (std::size_t t = 0; t < places_.size(); ++t)
      if (graph_.is_input(TensorId(t))) sum += graph_.tensors()[t].bytes;
    return sum;
  }

  void place_initial() {
    std::vector<TensorId> by_first_access;
    for (std::size_t t = 0; t < places_.size(); ++t)
      if (graph_.tensors()[t].persistent) by_first_access.push_back(TensorId(t));
    std::stable_sort(by_first_access.begin(), by_first_access.end(), [&](TensorId a, TensorId b) {
      const auto first = [&](TensorId t) {
        return graph_.accesses(t).empty() ? OpId(graph_.ops().size()) : graph_.accesses(t).front().op;
      };
      return first(a) < first(b);
    });
    Bytes planned = input_bytes();
    bool full = false;
    for (TensorId t : by_first_access) {
      place(t).exists = true;
      bool in_pool = graph_.tensor(t).initial == Tier::kPool;
      if (!in_pool) {
        full = full || planned + bytes(t) > hardware_.hbm_usable();
        in_pool = full;
      }
      if (in_pool) {
        place(t).has_pool_bytes = place(t).valid = true;
        take(pool_used_, bytes(t));
      } else {
        take_hbm(t);
        planned += bytes(t);
      }
    }
  }

  // --- ends ---
  void end_what_is_over() {
    while (const auto ended = machine_.take_ended()) {
      if (ended->is_op)
        end_op(result_.ops[static_cast<std::size_t>(ended->index)]);
      else
        end_transfer(result_.transfers[static_cast<std::size_t>(ended->index)]);
    }
    for (std::size_t i = 0; i < places_.size(); ++i) bury(TensorId(i));
  }

  void end_op(ReferenceOp& record) {
    record.end = machine_.now();
    hbm_used_ -= graph_.op(record.op).workspace;
    for (const auto* list : {&graph_.op(record.op).reads, &graph_.op(record.op).writes})
      for (TensorId t : *list) place(t).used = machine_.now();
    if (!order_.end(record.op)) return;
    result_.iteration_end.push_back(machine_.now());
    if (!order_.finished()) result_.iteration_start.push_back(machine_.now());
  }

  void end_transfer(ReferenceTransfer& record) {
    record.end = machine_.now();
    transferring_ = false;
    Place& p = place(record.tensor);
    p.moving = false;
    if (record.direction == Direction::kPoolToHbm) {
      p.used = machine_.now();
      return;
    }
    p.valid = true;
    // A reader may have started beside the store; then the tensor stays, now with a copy.
    if (pinned(record.tensor))
      saw("victim taken into use during its store");
    else
      leave_hbm(record.tensor);
  }

  void bury(TensorId t) {
    Place& p = place(t);
    if (graph_.tensor(t).persistent || !p.exists || p.moving) return;
    for (const Access& a : graph_.accesses(t))
      if (!order_.ended(alive_since_[t], a.op)) return;
    leave_hbm(t);
    if (p.has_pool_bytes) pool_used_ -= bytes(t);
    p = Place();
  }

  // --- takes ---
  bool take_inputs() {
    if (inputs_taken_ > order_.iteration() || input_bytes() > hbm_room()) return false;
    for (std::size_t t = 0; t < places_.size(); ++t)
      if (graph_.is_input(TensorId(t)) && place(TensorId(t)).exists)
        return false;  // its last instance is being stored
    for (std::size_t t = 0; t < places_.size(); ++t)
      if (graph_.is_input(TensorId(t))) {
        take_hbm(TensorId(t));
        alive_since_[TensorId(t)] = order_.iteration();
      }
    ++inputs_taken_;
    return true;
  }

  bool startable(OpId o) const { return inputs_taken_ > order_.iteration() && order_.ready(o); }

  std::optional<TensorId> next_missing(OpId o) {
    for (TensorId t : graph_.op(o).reads)
      if (!place(t).in_hbm || (place(t).moving && loading_)) return t;
    return std::nullopt;
  }
  bool writes_what_is_being_stored(OpId o) {
    for (TensorId t : graph_.op(o).writes)
      if (place(t).moving && !loading_) return true;
    return false;
  }
  Bytes room_needed(OpId o) {
    Bytes need = graph_.op(o).workspace;
    for (TensorId t : graph_.op(o).writes)
      if (!place(t).in_hbm) need += bytes(t);
    return need;
  }

  bool start_an_op() {
    for (std::size_t i = 0; i < graph_.ops().size(); ++i) {
      const OpId o(i);
      if (!startable(o) || next_missing(o) || room_needed(o) > hbm_room()) continue;
      if (writes_what_is_being_stored(o)) {
        saw("writer waits for a victim's store");
        continue;
      }
      for (TensorId t : graph_.op(o).writes) {
        if (!place(t).exists) alive_since_[t] = order_.iteration();
        if (!place(t).in_hbm) take_hbm(t);
        place(t).valid = false;
      }
      take(hbm_used_, graph_.op(o).workspace);
      order_.start(o);
      if (o == served_) served_ = OpId::none();
      const OpCost cost = op_cost(graph_.op(o), hardware_);
      machine_.start({true, static_cast<int>(result_.ops.size()), cost.compute.value,
                      static_cast<long double>(cost.hbm_bytes.value), cost.hbm_rate_cap.value});
      result_.ops.push_back({order_.iteration(), o, machine_.now(), machine_.now()});
      return true;
    }
    return false;
  }

  // --- the service ---
  // One step of it; true: something changed at this instant. It stays with an op until that starts.
  bool serve() {
    if (transferring_) return false;
    if (inputs_taken_ <= order_.iteration())  // the inputs wait like an op
      return input_bytes() > hbm_room() && (saw("inputs make room"), evict_one());
    for (std::size_t i = 0; i < graph_.ops().size() && served_.is_none(); ++i)
      if (startable(OpId(i))) served_ = OpId(i);
    if (served_.is_none()) return false;
    const auto missing = next_missing(served_);
    if (!missing) return room_needed(served_) > hbm_room() && evict_one();
    if (bytes(*missing) > hbm_room()) return evict_one();
    take_hbm(*missing);
    transfer(*missing, Direction::kPoolToHbm);
    return true;
  }

  bool pinned(TensorId t) const {
    for (std::size_t i = 0; i < graph_.ops().size(); ++i) {
      const Op& op = graph_.ops()[i];
      if (!order_.running(OpId(i)) && OpId(i) != served_) continue;
      if (std::find(op.reads.begin(), op.reads.end(), t) != op.reads.end()) return true;
      if (std::find(op.writes.begin(), op.writes.end(), t) != op.writes.end()) return true;
    }
    return false;
  }

  bool evict_one() {
    TensorId victim;
    const auto age = [&](TensorId t) { return evict_ == Evict::kLru ? place(t).used : place(t).taken; };
    for (std::size_t i = 0; i < places_.size(); ++i)
      if (places_[i].in_hbm && !pinned(TensorId(i)) && (victim.is_none() || age(TensorId(i)) < age(victim)))
        victim = TensorId(i);
    if (victim.is_none()) return false;
    Place& p = place(victim);
    if (p.valid) {
      saw("clean eviction");
      leave_hbm(victim);
      return true;
    }
    if (!p.has_pool_bytes) {
      if (bytes(victim) > pool_room()) {
        saw("eviction waits for pool room");
        return false;
      }
      p.has_pool_bytes = true;
      take(pool_used_, bytes(victim));
    }
    saw("dirty eviction");
    transfer(victim, Direction::kHbmToPool);
    return true;
  }

  void transfer(TensorId t, Direction direction) {
    loading_ = direction == Direction::kPoolToHbm;
    transferring_ = place(t).moving = true;
    const LinkDirection& link = loading_ ? hardware_.link_read : hardware_.link_write;
    BytesPerSecond cap = link.bandwidth;
    if (const auto& port = loading_ ? hardware_.pool_read_port : hardware_.pool_write_port)
      cap = std::min(cap, *port);
    machine_.start({false, static_cast<int>(result_.transfers.size()), link.latency.value,
                    static_cast<long double>(bytes(t).value), cap.value});
    result_.transfers.push_back({direction, order_.iteration(), -1, t, Bytes(0), bytes(t), machine_.now(),
                                 machine_.now() + static_cast<long double>(link.latency.value), 0});
  }

  ReferenceResult stuck(const std::string& who) {
    result_.stuck = true;
    result_.waiting = who;
    return std::move(result_);
  }
  std::string describe() {
    std::string text = fmt::format("iteration {}: {} B of HBM and {} B of the pool are free",
                                   order_.iteration(), hbm_room().value, pool_room().value);
    if (inputs_taken_ <= order_.iteration())
      text += fmt::format("; the inputs need {} B", input_bytes().value);
    for (std::size_t i = 0; i < graph_.ops().size(); ++i)
      if (startable(OpId(i)))
        text += fmt::format("; op \"{}\" waits with {} B to take", graph_.ops()[i].name,
                            room_needed(OpId(i)).value);
    return text;
  }

  const Graph& graph_;
  const Hardware& hardware_;
  const Evict evict_;
  Order order_;
  Machine machine_;
  std::vector<Place> places_;            // by tensor
  std::map<TensorId, int> alive_since_;  // iteration of birth, of what is not persistent
  Bytes hbm_used_, pool_used_;
  int inputs_taken_ = 0;
  OpId served_;
  bool transferring_ = false, loading_ = false;
  ReferenceResult result_;
};

}  // namespace

ReferenceResult reference_on_demand(const Graph& graph, const Hardware& hardware, int iterations,
                                    Evict evict) {
  return OnDemand(graph, hardware, iterations, evict).run();
}

}  // namespace hyperoffload
