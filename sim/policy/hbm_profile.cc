#include "sim/policy/hbm_profile.h"

#include <algorithm>

#include "sim/model/later_ops.h"

namespace hyperoffload {
namespace {

constexpr int kRounds = 8;

// Bytes an op takes at its start when nothing is absent: births and workspace.
std::vector<WideBytes> taken_at_start(const Graph& graph) {
  std::vector<WideBytes> takes(graph.ops().size());
  for (std::size_t i = 0; i < takes.size(); ++i) takes[i] = graph.ops()[i].workspace.value;
  for (std::size_t t = 0; t < graph.tensors().size(); ++t)
    if (const OpId birth = graph.birth(TensorId(t)); !birth.is_none())
      takes[birth.index()] += graph.tensors()[t].bytes.value;
  return takes;
}

// Raises `charges` to those of this plan. True: any grew.
bool raise_charges(const Graph& graph, const LaterOps& later, const std::vector<WideBytes>& takes,
                   const Plan& plan, std::vector<Bytes>& charges) {
  std::vector<WideBytes> prefetches(graph.ops().size());
  for (const Action& action : plan.actions)
    if (action.kind == ActionKind::kPrefetch && !action.after_op.is_none())
      prefetches[action.after_op.index()] += action.bytes().value;
  const Charges now = later.charges(takes, prefetches);
  bool grew = false;
  for (std::size_t i = 0; i < now.hbm.size(); ++i) {
    const Bytes charge(static_cast<std::int64_t>(std::min<WideBytes>(now.hbm[i], Bytes::max().value)));
    grew |= charge > charges[i];
    charges[i] = std::max(charges[i], charge);
  }
  return grew;
}

}  // namespace

std::vector<Bytes> resident_profile(const Graph& graph) {
  const std::size_t ops = graph.ops().size();
  std::vector<Bytes> change(ops + 1);  // at op i against op i-1
  const auto add = [&](std::size_t from, std::size_t to, Bytes bytes) {
    change[from] += bytes;
    change[to] -= bytes;
  };
  for (std::size_t t = 0; t < graph.tensors().size(); ++t) {
    const auto accesses = graph.accesses(TensorId(t));
    const Tensor& tensor = graph.tensors()[t];
    if (accesses.empty()) {
      if (tensor.persistent && tensor.initial == Tier::kHbm) add(0, ops, tensor.bytes);
      continue;
    }
    const std::vector<char> after = resident_after(graph, TensorId(t));
    bool resident = graph.is_input(TensorId(t)) || (tensor.persistent && after.back());
    std::size_t from = 0;  // where the present stretch begins
    for (std::size_t i = 0; i < accesses.size(); ++i) {
      const Op& op = graph.op(accesses[i].op);
      const std::size_t here = accesses[i].op.index();
      const bool leaves = op.memory == Tier::kPool && accesses[i].writes;
      if (resident) add(from, leaves ? (i > 0 ? accesses[i - 1].op.index() + 1 : 0) : here, tensor.bytes);
      from = here;
      resident = after[i];
    }
    if (resident) add(from, tensor.persistent ? ops : from + 1, tensor.bytes);
  }
  std::vector<Bytes> profile(ops);
  Bytes sum;
  for (std::size_t i = 0; i < ops; ++i) {
    sum += change[i];
    profile[i] = sum + (graph.ops()[i].memory == Tier::kHbm ? graph.ops()[i].workspace : Bytes(0));
  }
  return profile;
}

Spared spared_by(const Graph& graph, const Stretch& stretch, const Absence& absence) {
  const auto behind = [](OpId op) { return static_cast<std::size_t>(op.value + 1); };  // none: 0
  const std::size_t from = behind(std::max(stretch.from, absence.leave_after)), ops = graph.ops().size();
  if (absence.ahead && !graph.op(stretch.to).known_after)
    return {from, std::max(from, behind(absence.load_after)), 0, 0};
  const OpId previous = stretch.wraps ? OpId::none() : stretch.from;
  const std::size_t load = std::min(behind(load_anchor(graph, stretch.to, previous, absence.load_after)), stretch.to.index());
  if (stretch.wraps) return {from, ops, 0, load};
  return {from, std::max(from, load), 0, 0};
}

Plan fit_absences(const Graph& graph, int iterations,
                  const std::function<std::vector<Absence>(const std::vector<Bytes>&)>& choose) {
  std::vector<Bytes> profile = resident_profile(graph);
  for (std::size_t t = 0; t < graph.tensors().size(); ++t) {
    const Tensor& tensor = graph.tensors()[t];
    if (tensor.persistent && tensor.initial == Tier::kHbm && graph.accesses(TensorId(t)).empty())
      for (Bytes& bytes : profile) bytes -= tensor.bytes;
  }
  if (graph.engines().size() < 2) return plan_absences(graph, choose(profile), iterations, true);
  const LaterOps later(graph);
  const std::vector<WideBytes> takes = taken_at_start(graph);
  std::vector<Bytes> charges(profile.size());
  raise_charges(graph, later, takes, {}, charges);
  Plan plan;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<Bytes> charged = profile;
    for (std::size_t i = 0; i < charged.size(); ++i) charged[i] += charges[i];
    plan = plan_absences(graph, choose(charged), iterations, true);
    if (!raise_charges(graph, later, takes, plan, charges)) break;
  }
  return plan;
}

}  // namespace hyperoffload
