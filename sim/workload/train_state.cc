#include "sim/workload/train_state.h"

#include <fmt/format.h>

#include <algorithm>

namespace hyperoffload {

TrainState::TrainState(const WorkloadSpec& spec, const RankPlace& place, TraceWriter& writer)
    : spec_(spec), place_(place), writer_(writer) {}

void TrainState::add_part(TrainedPart& part) {
  for (const PartWeights::Local& local : part.program->weights->weights) {
    const std::string name = weight_name(part.prefix, local.name);
    auto& slot = by_name_[name];
    if (!slot) {
      slot = std::make_unique<TrainedWeight>();
      TrainedWeight& w = *slot;
      w.name = name;
      w.elements = w.shard_elements = local.elements;
      w.bytes = local.bytes;
      w.expert = local.expert;
      w.trained = local.name != "router_correction";  // moved by a rule of its own, not by a gradient
      if (shards(w.expert)) {
        const int index = w.expert ? place_.edp_rank : place_.dp_rank * place_.cp + place_.cp_rank;
        w.shard_elements = even_share(w.elements, replicas(w.expert), index).count();
      }
      const bool cut = gathers() && shards(w.expert);
      w.weight = cut ? writer_.named(name + ".shard", bytes_of(w.shard_elements, spec_.weights()),
                                     TensorKind::kWeight, true)
                     : writer_.named(name, w.bytes, TensorKind::kWeight, true);
      order_.push_back(slot.get());
    }
    ++slot->parts;
    part.weights.push_back(slot.get());
  }
}

std::vector<WeightGradient*> TrainState::gradients(TrainedPart& part, const std::string& prefix) {
  std::vector<WeightGradient*> slots;
  for (TrainedWeight* w : part.weights) {
    if (!w->trained) {
      slots.push_back(nullptr);
      continue;
    }
    if (w->gradient.tensor.is_none())
      w->gradient.tensor = writer_.tensor((spec_.train.zero >= 2 ? prefix : "") + w->name + ".grad",
                                          bytes_of(w->elements, gradient_dtype()), TensorKind::kGradient);
    w->gradient.carried = w->gradient.written && w->contributions % w->parts == 0;
    slots.push_back(&w->gradient);
  }
  return slots;
}

std::vector<TensorId> TrainState::gather(const TrainedPart& part, const std::string& prefix,
                                         const std::string& phase, OpId after) {
  std::vector<TensorId> ids;
  for (const TrainedWeight* w : part.weights) ids.push_back(w->weight);
  if (!gathers()) return ids;
  for (const bool expert : {false, true}) {
    if (!shards(expert)) continue;
    Op op;
    op.name = prefix + part.label + (expert ? ".expert" : "") + ".weights_all_gather." + phase;
    op.layer = part.layer;
    op.phase = phase;
    Bytes whole, mine;
    for (std::size_t i = 0; i < part.weights.size(); ++i) {
      const TrainedWeight& w = *part.weights[i];
      if (w.expert != expert) continue;
      ids[i] = writer_.tensor(prefix + w.name + ".whole." + (part.layer < 0 ? part.label + "." : "") + phase,
                              w.bytes, TensorKind::kOther);
      op.reads.push_back(w.weight);
      op.writes.push_back(ids[i]);
      whole += w.bytes;
      mine += writer_.tensor(w.weight).bytes;
    }
    if (op.writes.empty()) continue;
    op.hbm_bytes = mine + whole;
    if (!after.is_none()) op.after = {after};
    writer_.collective(std::move(op), {"all-gather", whole, expert ? "edp" : "dp"});
  }
  return ids;
}

void TrainState::reduce_now(const std::vector<TrainedWeight*>& weights, bool expert,
                            const std::string& name) {
  Op op;
  op.name = name;
  op.phase = "backward";
  Bytes whole, moved;
  for (TrainedWeight* w : weights) {
    const TensorId g = w->gradient.tensor;
    op.reads.push_back(g);
    whole += writer_.tensor(g).bytes;
    if (!shards(expert)) {
      op.writes.push_back(g);
      continue;
    }
    const Bytes bytes = bytes_of(w->shard_elements, gradient_dtype());
    if (w->shard.tensor.is_none())
      w->shard.tensor = writer_.tensor(w->name + ".grad_shard", bytes, TensorKind::kGradient);
    if (w->shard.written) op.reads.push_back(w->shard.tensor);
    moved += Bytes(bytes.value * (w->shard.written ? 2 : 1));
    op.writes.push_back(w->shard.tensor);
    w->shard.written = true;
    w->gradient = {};  // what was summed is done with
  }
  op.hbm_bytes = whole + (shards(expert) ? moved : whole);
  writer_.collective(std::move(op),
                     {shards(expert) ? "reduce-scatter" : "all-reduce", whole, expert ? "edp" : "dp"});
}

void TrainState::flush(bool expert) {
  auto& bucket = bucket_[expert ? 1 : 0];
  if (bucket.empty()) return;
  reduce_now(bucket, expert, fmt::format("{}gradient_bucket.{}", expert ? "expert_" : "", buckets_++));
  bucket.clear();
}

void TrainState::reduce(TrainedPart& part, const std::string& prefix, bool last) {
  const bool each = spec_.train.zero >= 2;
  for (TrainedWeight* w : part.weights) ++w->contributions;
  for (const bool expert : {false, true}) {
    if (replicas(expert) == 1 || !(last || (each && shards(expert)))) continue;
    std::vector<TrainedWeight*> mine;
    for (TrainedWeight* w : part.weights)  // a tied table waits for its other part
      if (w->expert == expert && w->gradient.written && w->contributions % w->parts == 0) mine.push_back(w);
    if (mine.empty()) continue;
    if (spec_.train.bucket_bytes == 0 || each) {
      reduce_now(mine, expert, prefix + part.label + (expert ? ".expert" : "") + ".gradient_reduce");
      continue;
    }
    auto& bucket = bucket_[expert ? 1 : 0];
    for (TrainedWeight* w : mine) {
      bucket.push_back(w);
      Bytes sum;
      for (TrainedWeight* b : bucket) sum += writer_.tensor(b->gradient.tensor).bytes;
      if (sum.value >= spec_.train.bucket_bytes) flush(expert);
    }
  }
}

void TrainState::reduce_rest() {
  flush(false);
  flush(true);
}

void TrainState::update(const std::vector<TrainedWeight*>& weights, int index) {
  const bool masters = spec_.dtype != DataType::kFp32;  // fp32 weights are their own master
  const std::int64_t state_bytes = masters ? 12 : 8;
  Op op;
  op.name = fmt::format("optimizer.{}", index);
  op.kernel = "adamw";
  op.phase = "optimizer";
  op.hbm_bytes = Bytes(0);
  if (spec_.train.optimizer_on_host) op.memory = Tier::kPool;
  Op gather;
  gather.name = op.name + ".weights_all_gather";
  gather.phase = "optimizer";
  Bytes whole[2];
  std::vector<TensorId> gathered[2];
  for (TrainedWeight* w : weights) {
    const bool cut = shards(w->expert);
    const TensorId gradient = cut ? w->shard.tensor : w->gradient.tensor;
    const TensorId states =
        writer_.tensor(w->name + ".adamw", Bytes(state_bytes * w->shard_elements), TensorKind::kOptimizer);
    if (spec_.train.optimizer_on_host) writer_.tensor(states).initial = Tier::kPool;
    op.reads.insert(op.reads.end(), {gradient, states});
    op.writes.insert(op.writes.end(), {states, w->weight});
    // With a master the old weights aren't read; a part of a tensor, or a master itself, is updated in place.
    const bool partial = cut && !gathers();
    const Bytes written = bytes_of(w->shard_elements, spec_.weights());
    if (partial || !masters) op.reads.push_back(w->weight);
    *op.hbm_bytes += writer_.tensor(gradient).bytes + Bytes(2 * state_bytes * w->shard_elements) +
                     Bytes(written.value * (masters ? 1 : 2));
    if (partial) {
      gathered[w->expert ? 1 : 0].push_back(w->weight);
      whole[w->expert ? 1 : 0] += w->bytes;
    }
  }
  writer_.op(std::move(op), spec_.train.optimizer_on_host ? "host" : "compute");
  for (const bool expert : {false, true}) {
    const auto& ids = gathered[expert ? 1 : 0];
    if (ids.empty()) continue;
    Op all = gather;
    if (expert) all.name += ".experts";
    all.reads = all.writes = ids;
    const Bytes bytes = whole[expert ? 1 : 0];
    all.hbm_bytes = bytes + Bytes(bytes.value / replicas(expert));
    writer_.collective(std::move(all), {"all-gather", bytes, expert ? "edp" : "dp"});
  }
}

void TrainState::optimizer_step() {
  // A weight nothing has contributed to (an expert no token went to) has a gradient of zero.
  constexpr std::int64_t kSmallest = std::int64_t{1} << 20;  // elements; smaller weights share an op
  std::vector<TrainedWeight*> together;
  std::int64_t elements = 0;
  int index = 0;
  for (TrainedWeight* w : order_) {
    if (!w->trained) continue;
    WeightGradient& g = shards(w->expert) ? w->shard : w->gradient;
    if (!g.written) {
      const std::int64_t count = shards(w->expert) ? w->shard_elements : w->elements;
      if (g.tensor.is_none())
        g.tensor =
            writer_.tensor(w->name + ".grad", bytes_of(count, gradient_dtype()), TensorKind::kGradient);
      Op zero;
      zero.name = w->name + ".zero_grad";
      zero.kernel = "zero";
      zero.phase = "optimizer";
      zero.writes = {g.tensor};
      zero.hbm_bytes = writer_.tensor(g.tensor).bytes;
      writer_.op(std::move(zero));
    }
    together.push_back(w);
    elements += w->elements;
    if (elements < kSmallest) continue;
    update(together, index++);
    together.clear();
    elements = 0;
  }
  if (!together.empty()) update(together, index);
}

}  // namespace hyperoffload
