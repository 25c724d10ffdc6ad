// One training step: the micro-batches' passes in the pipeline's order, gradient sums, optimizer.
#include <fmt/format.h>

#include <algorithm>

#include "sim/workload/schedule.h"
#include "sim/workload/train_state.h"

namespace hyperoffload {
namespace {

// One pass over one part.
struct Use {
  PassStep step;
  std::size_t part = 0;              // index into all parts of the rank
  bool first = false, last = false;  // of this step
};

class Training {
 public:
  Training(const WorkloadSpec& spec, const ModelConfig& model, const RankPlace& place, TraceWriter& writer)
      : spec_(spec),
        place_(place),
        writer_(writer),
        programs_(model, spec, place),
        state_(spec, place, writer) {
    Pass pass;
    pass.phase = Phase::kTrain;
    pass.last_logits_only = false;
    pass.groups = {{spec.batch / spec.train.microbatches, spec.sequence, 0, 0, 0, ""}};
    programs_.set_pass(pass);
    for (int c = 0; c < spec.parallel.virtual_stages; ++c) add_chunk(model, c);
    for (TrainedPart& part : parts_) state_.add_part(part);
    passes_left_.assign(parts_.size(), spec.train.microbatches);
    bindings_.resize(static_cast<std::size_t>(spec.train.microbatches));
    for (auto& per_part : bindings_) per_part.resize(parts_.size());
  }

  void run() {
    const std::vector<Use> uses = all_uses();
    std::vector<TensorId> weights = gather(uses.front(), OpId::none());
    OpId before = OpId::none();
    for (std::size_t i = 0; i < uses.size(); ++i) {
      const Use& use = uses[i];
      std::vector<TensorId> next;
      // The next part's weights come while this one computes, not earlier.
      if (state_.gathers() && i + 1 < uses.size()) next = gather(uses[i + 1], before);
      if (use.step.backward)
        backward(use, std::move(weights));
      else
        forward(use, std::move(weights));
      before = writer_.last_op();
      if (!state_.gathers() && i + 1 < uses.size()) next = gather(uses[i + 1], OpId::none());
      weights = std::move(next);
    }
    state_.reduce_rest();
    tie_embeddings();
    if (spec_.train.optimizer != "none") state_.optimizer_step();
  }

 private:
  void add_chunk(const ModelConfig& model, int chunk) {
    const Stage stage = stage_of(model, place_, spec_.parallel.virtual_stages, chunk);
    const std::size_t from = parts_.size();
    if (stage.first) parts_.push_back({"embedding", "", -1, &programs_.embedding(), {}});
    for (std::int64_t i = stage.layers.from; i < stage.layers.to; ++i)
      parts_.push_back({fmt::format("layers.{}", i),
                        fmt::format("layers.{}.", i),
                        static_cast<int>(i),
                        &programs_.layer(i),
                        {}});
    for (int m = 0; stage.last && m < spec_.mtp; ++m)
      parts_.push_back({fmt::format("mtp.{}", m), fmt::format("mtp.{}.", m), -1, &programs_.mtp(), {}});
    if (stage.last) parts_.push_back({"head", "", -1, &programs_.head(), {}});
    stages_.push_back(stage);
    chunk_parts_.push_back({static_cast<std::int64_t>(from), static_cast<std::int64_t>(parts_.size())});
  }

  std::vector<Use> all_uses() const {
    std::vector<Use> uses;
    for (const PassStep& step :
         pipeline_schedule(spec_.train.schedule, place_.pp, place_.pp_rank, spec_.parallel.virtual_stages,
                           spec_.train.microbatches, spec_.at("train.microbatches"))) {
      const Share parts = chunk_parts_[static_cast<std::size_t>(step.chunk)];
      for (std::int64_t i = 0; i < parts.count(); ++i) {
        const std::int64_t part = step.backward ? parts.to - 1 - i : parts.from + i;
        uses.push_back({step, static_cast<std::size_t>(part), i == 0, i + 1 == parts.count()});
      }
    }
    return uses;
  }

  std::string prefix(const PassStep& step) const {
    return spec_.train.microbatches > 1 ? fmt::format("mb.{}.", step.microbatch) : "";
  }
  std::vector<TensorId> gather(const Use& use, OpId after) {
    return state_.gather(parts_[use.part], prefix(use.step), use.step.backward ? "backward" : "forward",
                         after);
  }
  Binding& binding(const Use& use) {
    return bindings_[static_cast<std::size_t>(use.step.microbatch)][use.part];
  }
  Emission emission(const Use& use, const std::string& phase) const {
    const TrainedPart& part = parts_[use.part];
    return {prefix(use.step) + part.prefix, part.layer, phase};
  }

  // To or from the neighbouring stage.
  TensorId exchange(const Use& use, const std::string& kind, TensorId h) {
    const Bytes bytes = boundary_bytes(programs_.context());
    Op op;
    op.phase = use.step.backward ? "backward" : "forward";
    const std::string chunk =
        spec_.parallel.virtual_stages > 1 ? fmt::format("chunk.{}.", use.step.chunk) : "";
    op.name = prefix(use.step) + chunk + kind + (use.step.backward ? "_grad" : "");
    op.hbm_bytes = bytes;
    if (kind == "recv") {
      h = writer_.tensor(op.name + ".hidden", bytes, TensorKind::kActivation);
      op.writes = {h};
    } else {
      op.reads = {h};
    }
    writer_.collective(std::move(op), {kind, bytes, "pp"});
    return h;
  }

  void forward(const Use& use, std::vector<TensorId> weights) {
    const TrainedPart& part = parts_[use.part];
    const Program& program = *part.program;
    const Stage& stage = stages_[static_cast<std::size_t>(use.step.chunk)];
    if (use.first) {
      if (stage.first)
        hidden_ =
            writer_.tensor(prefix(use.step) + "tokens",
                           program.values[static_cast<std::size_t>(program.input)].bytes, TensorKind::kInput);
      else
        hidden_ = exchange(use, "recv", TensorId::none());
    }
    binding(use) =
        writer_.forward(program, part.prefix, emission(use, "forward"), hidden_, std::move(weights));
    hidden_ = binding(use).values[static_cast<std::size_t>(program.output)];
    if (use.last && !stage.last) exchange(use, "send", hidden_);
  }

  bool recomputed(const TrainedPart& part) const {
    if (part.layer < 0) return false;
    if (spec_.train.recompute == Recompute::kFull) return true;
    if (spec_.train.recompute != Recompute::kLayers) return false;
    for (const Stage& stage : stages_)
      if (part.layer >= stage.layers.from && part.layer < stage.layers.to)
        return part.layer - stage.layers.from < spec_.train.recompute_layers;
    return false;
  }

  void backward(const Use& use, std::vector<TensorId> weights) {
    TrainedPart& part = parts_[use.part];
    const Stage& stage = stages_[static_cast<std::size_t>(use.step.chunk)];
    if (use.first) gradient_ = stage.last ? TensorId::none() : exchange(use, "recv", TensorId::none());
    binding(use).weights = std::move(weights);
    const bool all = recomputed(part);
    if (all || (part.layer >= 0 && spec_.train.recompute == Recompute::kSelective))
      emit_recompute(writer_, *part.program, part.prefix, emission(use, "recompute"), binding(use),
                     kept_values(*part.program, spec_.train, all));
    const std::vector<WeightGradient*> gradients = state_.gradients(part, prefix(use.step));
    gradient_ = emit_backward(writer_, {*part.program, part.prefix, emission(use, "backward"), binding(use),
                                        gradient_, gradients, state_.gradient_dtype()});
    if (use.last && !stage.first) exchange(use, "send", gradient_);
    state_.reduce(part, prefix(use.step), --passes_left_[use.part] == 0);
  }

  // First and last stage each hold a tied table: their gradients are summed.
  void tie_embeddings() {
    if (!programs_.context().model.tied_embeddings || place_.pp == 1) return;
    for (const TrainedPart& part : parts_)
      for (TrainedWeight* w : part.weights) {
        if (w->name != "embed_tokens") continue;
        const TensorId g = w->shard.tensor.is_none() ? w->gradient.tensor : w->shard.tensor;
        const Bytes bytes = writer_.tensor(g).bytes;
        Op op;
        op.name = "tied_embedding_reduce";
        op.phase = "backward";
        op.reads = op.writes = {g};
        op.hbm_bytes = bytes + bytes;
        writer_.collective(std::move(op), {"all-reduce", bytes, "embedding"});
        return;
      }
  }

  const WorkloadSpec& spec_;
  const RankPlace& place_;
  TraceWriter& writer_;
  ProgramCache programs_;
  TrainState state_;
  std::vector<TrainedPart> parts_;
  std::vector<Stage> stages_;                   // one a chunk
  std::vector<Share> chunk_parts_;              // of parts_, one a chunk
  std::vector<int> passes_left_;                // backward passes, one a part
  std::vector<std::vector<Binding>> bindings_;  // by micro-batch and part
  TensorId hidden_, gradient_;
};

}  // namespace

void generate_training(const WorkloadSpec& spec, const ModelConfig& model, const RankPlace& place,
                       TraceWriter& writer) {
  Training(spec, model, place, writer).run();
}

}  // namespace hyperoffload
