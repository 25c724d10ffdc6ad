#include "sim/workload/backward.h"

#include <algorithm>

#include "sim/model/check.h"

namespace hyperoffload {
namespace {

class Backward {
 public:
  Backward(TraceWriter& writer, const BackwardJob& job)
      : writer_(writer), job_(job), grads_(job.program.values.size()) {
    if (!job.output_grad.is_none()) grad(job.program.output) = job.output_grad;
  }

  TensorId run() {
    const auto& kernels = job_.program.kernels;
    for (auto k = kernels.rbegin(); k != kernels.rend(); ++k) one(*k);
    return grad(job_.program.input);
  }

 private:
  TensorId& grad(int value) { return grads_[static_cast<std::size_t>(value)]; }
  const Value& value(int v) const { return job_.program.values[static_cast<std::size_t>(v)]; }
  TensorId bound(int v) const { return job_.binding.values[static_cast<std::size_t>(v)]; }
  Bytes size(TensorId t) const { return writer_.tensor(t).bytes; }

  Op start(const Kernel& k, const std::string& suffix) const {
    Op op;
    op.name = job_.emission.prefix + k.name + suffix;
    op.kernel = k.kernel;
    op.layer = job_.emission.layer;
    op.phase = "backward";
    op.hbm_bytes = Bytes(0);
    return op;
  }
  void read(Op& op, TensorId t) const { read(op, t, size(t)); }
  void read(Op& op, TensorId t, Bytes traffic) const {
    op.reads.push_back(t);
    *op.hbm_bytes += traffic;
  }

  // Makes op write the gradient of value v: a new tensor, or one more contribution to what is there.
  void contribute(Op& op, int v) {
    TensorId& g = grad(v);
    if (g.is_none())
      g = writer_.tensor(job_.emission.prefix + "grad." + value(v).name, value(v).bytes,
                         TensorKind::kActivation);
    else
      read(op, g);
    op.writes.push_back(g);
    *op.hbm_bytes += size(g);
  }

  void weight_gradients(Op& op, const Kernel& k) {
    bool any = false, carried = false;
    for (int w : k.weights) {
      WeightGradient* g = job_.weight_grads[static_cast<std::size_t>(w)];
      if (!g) continue;
      any = true;
      carried |= g->carried;
      // Rows scattered into a table add to what is there; first it must be zero everywhere.
      if (k.rows_of_table && !g->written) *op.hbm_bytes += size(g->tensor);
      if (g->written) op.reads.push_back(g->tensor);
      op.writes.push_back(g->tensor);
      g->written = true;
    }
    if (!any) return;
    const Bytes touched = bytes_of(k.weight_elements, job_.gradient_dtype);
    *op.hbm_bytes += touched;
    if (carried || k.rows_of_table) *op.hbm_bytes += touched;
  }

  void read_output_grads(Op& op, const Kernel& k) {
    for (int v : k.writes)
      if (!grad(v).is_none()) read(op, grad(v), value(v).bytes);
  }
  void read_weights(Op& op, const Kernel& k) const {
    for (int w : k.weights) op.reads.push_back(job_.binding.weights[static_cast<std::size_t>(w)]);
    // What the forward kernel reads of its weights, no more.
    Bytes operands;
    for (int v : k.reads) operands += value(v).bytes;
    for (int v : k.writes) operands += value(v).bytes;
    if (k.hbm_bytes > operands && !k.weights.empty()) *op.hbm_bytes += k.hbm_bytes - operands;
  }

  void alias(const Kernel& k) {
    const TensorId g = grad(k.writes.front());
    if (g.is_none()) return;
    for (int v : k.grads) {
      if (grad(v).is_none() || grad(v) == g) {
        grad(v) = g;
        continue;
      }
      Op op = start(k, ".grad_add." + value(v).name);
      op.kernel = "add";
      read(op, g);
      contribute(op, v);
      writer_.op(std::move(op));
    }
  }

  void collective(const Kernel& k) {
    Op op = start(k, ".grad");
    read_output_grads(op, k);
    if (op.reads.empty()) return;
    if (k.backward_collective->kind == "all-reduce") {  // in place, then it is the input's
      const TensorId g = op.reads.front();
      op.writes.push_back(g);
      *op.hbm_bytes += size(g);
      writer_.collective(std::move(op), *k.backward_collective);
      Kernel view = k;
      alias(view);
      return;
    }
    std::vector<TensorId> earlier;
    for (int v : k.grads) {
      earlier.push_back(grad(v));
      grad(v) = TensorId::none();
      contribute(op, v);
      if (!earlier.back().is_none()) writer_.tensor(grad(v)).name += ".part";
    }
    writer_.collective(std::move(op), *k.backward_collective);
    for (std::size_t i = 0; i < earlier.size(); ++i) {
      if (earlier[i].is_none()) continue;
      Op sum = start(k, ".grad_add." + value(k.grads[i]).name);
      sum.kernel = "add";
      read(sum, grad(k.grads[i]));
      grad(k.grads[i]) = earlier[i];
      contribute(sum, k.grads[i]);
      writer_.op(std::move(sum));
    }
  }

  void matmul(const Kernel& k) {
    bool any = false;
    for (int v : k.writes) any |= !grad(v).is_none();
    if (!any) return;
    Op weights = start(k, ".weight_grad");
    read_output_grads(weights, k);
    for (int v : k.saved) read(weights, bound(v));
    weights.flops = Flops(k.weight_grad_flops);
    weight_gradients(weights, k);
    Op input = start(k, ".input_grad");
    read_output_grads(input, k);
    read_weights(input, k);
    input.flops = Flops(k.input_grad_flops);
    for (int v : k.grads) contribute(input, v);
    if (!k.grads.empty()) writer_.op(std::move(input));
    if (!weights.writes.empty()) writer_.op(std::move(weights));
  }

  void one(const Kernel& k) {
    if (k.backward == BackwardForm::kNone) return;
    if (k.backward_collective) return collective(k);
    if (k.backward == BackwardForm::kAlias) return alias(k);
    if (k.backward == BackwardForm::kMatmul) return matmul(k);
    Op op = start(k, ".grad");
    bool any = k.grad_in_place;
    for (int v : k.writes) any |= !grad(v).is_none();
    if (!any) return;
    read_output_grads(op, k);
    for (int v : k.saved)
      if (std::find(op.reads.begin(), op.reads.end(), bound(v)) == op.reads.end()) read(op, bound(v));
    if (k.grads.size() > 0) read_weights(op, k);
    if (k.input_grad_flops + k.weight_grad_flops > 0)
      op.flops = Flops(k.input_grad_flops + k.weight_grad_flops);
    for (int v : k.grads) {
      if (k.grad_in_place) {
        grad(v) = bound(v);
        op.writes.push_back(bound(v));
        *op.hbm_bytes += size(bound(v));
      } else if (std::find(k.writes.begin(), k.writes.end(), v) != k.writes.end()) {
        op.writes.push_back(grad(v));  // the forward kernel was in place, so is this one
        *op.hbm_bytes += size(grad(v));
      } else {
        contribute(op, v);
      }
    }
    weight_gradients(op, k);
    writer_.op(std::move(op));
  }

  TraceWriter& writer_;
  const BackwardJob& job_;
  std::vector<TensorId> grads_;
};

}  // namespace

TensorId emit_backward(TraceWriter& writer, const BackwardJob& job) { return Backward(writer, job).run(); }

std::vector<bool> values_needed(const Program& program) {
  std::vector<bool> needed(program.values.size(), false);
  for (const Kernel& k : program.kernels)
    if (k.backward != BackwardForm::kNone && !k.backward_collective)
      for (int v : k.saved) needed[static_cast<std::size_t>(v)] = true;
  return needed;
}

std::vector<bool> kept_values(const Program& program, const TrainSpec& train, bool recompute_all) {
  std::vector<bool> kept(program.values.size(), !recompute_all);
  if (!recompute_all && train.recompute == Recompute::kSelective)
    for (const Kernel& k : program.kernels)
      if (std::find(train.recompute_kernels.begin(), train.recompute_kernels.end(), k.kernel) !=
          train.recompute_kernels.end())
        for (int v : k.writes) kept[static_cast<std::size_t>(v)] = false;
  kept[static_cast<std::size_t>(program.input)] = true;
  return kept;
}

void emit_recompute(TraceWriter& writer, const Program& program, const std::string& part, Emission e,
                    Binding& binding, const std::vector<bool>& kept) {
  // What is missing, and what it takes to make it, from the last kernel to the first.
  std::vector<bool> missing = values_needed(program);
  for (std::size_t v = 0; v < missing.size(); ++v) missing[v] = missing[v] && !kept[v];
  std::vector<bool> again(program.kernels.size(), false);
  for (std::size_t i = program.kernels.size(); i-- > 0;) {
    const Kernel& k = program.kernels[i];
    for (int v : k.writes) again[i] = again[i] || missing[static_cast<std::size_t>(v)];
    if (!again[i]) continue;
    for (int v : k.reads)
      if (!kept[static_cast<std::size_t>(v)]) missing[static_cast<std::size_t>(v)] = true;
  }
  e.phase = "recompute";
  e.prefix += "again.";
  for (std::size_t v = 0; v < missing.size(); ++v)
    if (!kept[v]) binding.values[v] = TensorId::none();
  for (std::size_t i = 0; i < program.kernels.size(); ++i)
    if (again[i]) writer.kernel(program, program.kernels[i], part, e, binding);
}

}  // namespace hyperoffload
