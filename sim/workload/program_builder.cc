#include "sim/workload/program_builder.h"

#include <algorithm>

#include "sim/model/check.h"

namespace hyperoffload {

std::int64_t Pass::tokens() const {
  std::int64_t sum = 0;
  for (const TokenGroup& group : groups) sum += group.tokens();
  return sum;
}

std::int64_t Pass::sequences() const {
  std::int64_t sum = 0;
  for (const TokenGroup& group : groups) sum += group.sequences;
  return sum;
}

std::int64_t ProgramContext::resting_tokens() const {
  return sequence_parallel() ? even_share(tokens(), place.tp, place.tp_rank).count() : tokens();
}

int PartWeights::index(const std::string& name) const {
  for (std::size_t i = 0; i < weights.size(); ++i)
    if (weights[i].name == name) return static_cast<int>(i);
  return -1;
}

std::string weight_name(const std::string& part, const std::string& weight) {
  return weight == "embed_tokens" || weight == "lm_head" ? weight : part + weight;
}

std::shared_ptr<const PartWeights> part_weights(const ProgramContext& c,
                                                const std::vector<WeightSpec>& weights) {
  auto part = std::make_shared<PartWeights>();
  const QuantSpec* quant = c.spec.published_weights && c.model.quant ? &*c.model.quant : nullptr;
  const DataType plain = c.spec.published_weights ? c.model.dtype.value_or(DataType::kBf16) : c.spec.dtype;
  const DataType type = c.spec.published_weights ? plain : c.spec.weights();
  std::int64_t experts = 0;
  for (const WeightSpec& weight : weights) experts += weight.expert >= 0 ? 1 : 0;
  const Share mine = even_share(experts, c.place.ep, c.place.ep_rank);
  for (const WeightSpec& weight : weights) {
    if (weight.expert >= 0 && (weight.expert < mine.from || weight.expert >= mine.to)) continue;
    WeightSpec local = local_weight(weight, c.place);
    PartWeights::Local l;
    l.name = weight.name;
    l.bytes = hyperoffload::weight_bytes(local, plain, type, quant);
    l.elements = elements(local);
    l.expert = weight.expert >= 0;
    l.replicated_in_tp = true;
    for (const WeightPart& p : local.parts) {
      if (p.cols > 1) l.matrix_elements += p.rows * p.cols;
      if (p.split != Split::kNone) l.replicated_in_tp = false;
    }
    part->weights.push_back(std::move(l));
    part->specs.push_back(std::move(local));
  }
  return part;
}

ProgramBuilder::ProgramBuilder(const ProgramContext& c, std::shared_ptr<const PartWeights> weights)
    : context(c) {
  program_.weights = std::move(weights);
}

int ProgramBuilder::value(const std::string& name, Bytes bytes) {
  program_.values.push_back({name, bytes});
  return static_cast<int>(program_.values.size()) - 1;
}

int ProgramBuilder::activation(const std::string& name, std::int64_t elements) {
  return value(name, bytes_of(elements, context.spec.dtype));
}

Bytes ProgramBuilder::group_bytes(int v, const TokenGroup& group) const {
  if (context.pass.groups.size() == 1) return bytes(v);
  return Bytes(bytes(v).value / context.pass.tokens() * group.tokens());
}

int ProgramBuilder::state(const std::string& name, Bytes bytes, bool persistent) {
  const auto [it, fresh] = states_.emplace(name, static_cast<int>(program_.states.size()));
  if (fresh) program_.states.push_back({name, bytes, persistent});
  return it->second;
}

int ProgramBuilder::weight_index(const std::string& name) const {
  const int index = program_.weights->index(name);
  HYPER_CHECK(index >= 0, "no weight " + name);
  return index;
}

const WeightSpec& ProgramBuilder::weight(const std::string& name) const {
  return program_.weights->specs[static_cast<std::size_t>(weight_index(name))];
}

Bytes ProgramBuilder::weight_bytes(const std::string& name) const {
  return program_.weights->weights[static_cast<std::size_t>(weight_index(name))].bytes;
}

Kernel& ProgramBuilder::kernel(const std::string& kind, const std::string& name, std::vector<int> reads,
                               std::vector<int> writes, const std::vector<std::string>& weights,
                               std::vector<int> saved) {
  Kernel k;
  k.kernel = kind;
  k.name = name;
  for (int v : reads) k.hbm_bytes += bytes(v);
  for (int v : writes) k.hbm_bytes += bytes(v);
  for (const std::string& w : weights) {
    const int index = weight_index(w);
    const PartWeights::Local& local = program_.weights->weights[static_cast<std::size_t>(index)];
    k.weights.push_back(index);
    k.hbm_bytes += local.bytes;
    k.weight_elements += local.elements;
  }
  k.grads = reads;
  k.reads = std::move(reads);
  k.writes = std::move(writes);
  k.saved = std::move(saved);
  program_.kernels.push_back(std::move(k));
  return program_.kernels.back();
}

Kernel& ProgramBuilder::matmul(const std::string& kind, const std::string& name, std::int64_t rows, int in,
                               std::vector<int> outs, const std::vector<std::string>& weights) {
  Kernel& k = kernel(kind, name, {in}, std::move(outs), weights, {in});
  std::int64_t matrix = 0;
  for (int w : k.weights) matrix += program_.weights->weights[static_cast<std::size_t>(w)].matrix_elements;
  k.flops = k.input_grad_flops = k.weight_grad_flops =
      2.0 * static_cast<double>(rows) * static_cast<double>(matrix);
  k.backward = BackwardForm::kMatmul;
  return k;
}

int ProgramBuilder::norm(const std::string& name, int in, const std::string& weight_name) {
  const int out = value(name + "ed", bytes(in));
  kernel("norm", name, {in}, {out}, {weight_name}, {in});
  return out;
}

int ProgramBuilder::add(const std::string& name, int a, int b) {
  const int out = value(name, bytes(a));
  kernel("add", name, {a, b}, {out}).backward = BackwardForm::kAlias;
  return out;
}

int ProgramBuilder::collective(const std::string& name, int in, int out, const std::string& kind,
                               const std::string& back_kind, Bytes size, const std::string& group) {
  Kernel& k = kernel(kind, name, {in}, {out});
  k.collective = Collective{kind, size, group};
  if (back_kind.empty())
    k.backward = BackwardForm::kAlias;
  else
    k.backward_collective = Collective{back_kind, size, group};
  return out;
}

int ProgramBuilder::enter_split(const std::string& name, int in) {
  const ProgramContext& c = context;
  if (c.place.tp == 1) return in;
  if (c.sequence_parallel()) {
    const int whole = activation(name + ".gathered", c.tokens() * c.model.hidden);
    return collective(name + ".all_gather", in, whole, "all-gather", "reduce-scatter", bytes(whole), "tp");
  }
  if (!c.pass.training()) return in;
  const int same = value(name + ".shared", bytes(in));
  Kernel& k = kernel("all-reduce", name + ".grad_all_reduce", {in}, {same});
  k.forward = false;
  k.backward_collective = Collective{"all-reduce", bytes(in), "tp"};
  return same;
}

int ProgramBuilder::leave_split(const std::string& name, int partial) {
  const ProgramContext& c = context;
  if (c.place.tp == 1) return partial;
  if (c.sequence_parallel()) {
    const int rest = activation(name + ".scattered", c.resting_tokens() * c.model.hidden);
    return collective(name + ".reduce_scatter", partial, rest, "reduce-scatter", "all-gather", bytes(partial),
                      "tp");
  }
  return collective(name + ".all_reduce", partial, partial, "all-reduce", "", bytes(partial), "tp");
}

Program ProgramBuilder::finish(int input, int output) {
  program_.input = input;
  program_.output = output;
  return std::move(program_);
}

}  // namespace hyperoffload
