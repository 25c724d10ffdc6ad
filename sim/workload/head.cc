// From the last hidden states to logits and loss; and the modules that predict one token further.
#include "sim/workload/program_builder.h"

namespace hyperoffload {
namespace {

// Of `rows` rows of `in`: in inference the logits, in training the loss.
int logits_or_loss(ProgramBuilder& b, int in, std::int64_t rows) {
  const ProgramContext& c = b.context;
  const std::string matrix = c.model.tied_embeddings ? "embed_tokens" : "lm_head";
  const std::int64_t vocab = b.weight(matrix).parts.front().rows;
  const int logits = b.activation("logits", rows * vocab);
  Kernel& k = b.matmul("lm_head", "lm_head", rows, in, {logits}, {matrix});
  k.hbm_bytes +=
      bytes_of(rows * c.model.hidden, c.spec.dtype) - b.bytes(in);  // of the hidden states, those rows
  if (!c.pass.training()) {
    if (c.place.tp == 1) return logits;
    const int all = b.activation("logits_all", rows * c.model.vocab);
    return b.collective("logits_all_gather", logits, all, "all-gather", "", b.bytes(all), "tp");
  }
  // Cross entropy, split over the vocabulary: each rank's maximum and sum are shared; backwards the
  // logits become their own gradient in place.
  const int sums = b.value("loss_sums", Bytes(12 * rows));
  Kernel& loss = b.kernel("loss", "loss", {logits}, {sums}, {}, {logits, sums});
  loss.hbm_bytes += Bytes(4 * rows);  // the labels
  loss.grad_in_place = true;
  if (c.place.tp > 1) b.collective("loss_all_reduce", sums, sums, "all-reduce", "", b.bytes(sums), "tp");
  return sums;
}

std::int64_t logit_rows(const ProgramContext& c) {
  return c.pass.last_logits_only ? c.pass.sequences() : c.tokens();
}

}  // namespace

std::vector<WeightSpec> head_part_weights(const ModelConfig& model) {
  std::vector<WeightSpec> weights = head_weights(model);
  if (model.tied_embeddings) weights.push_back(embedding_weights(model).front());
  return weights;
}

Program head_program(const ProgramContext& c, std::shared_ptr<const PartWeights> weights) {
  ProgramBuilder b(c, std::move(weights));
  const int input = b.activation("hidden_in", c.resting_tokens() * c.resting_width());
  int h = input;
  if (c.model.streams > 0) {
    h = b.activation("collapsed", c.resting_tokens() * c.model.hidden);
    Kernel& k = b.kernel("streams", "collapse", {input}, {h}, {"head_streams"}, {input});
    k.flops = 2.0 * static_cast<double>(c.resting_tokens() * c.model.streams * c.resting_width());
    k.input_grad_flops = 2 * k.flops;
  }
  const int n = b.enter_split("lm_head", b.norm("final_norm", h, "final_norm"));
  return b.finish(input, logits_or_loss(b, n, logit_rows(c)));
}

std::vector<WeightSpec> mtp_part_weights(const ModelConfig& model) {
  std::vector<WeightSpec> weights = mtp_weights(model);
  weights.push_back(embedding_weights(model).front());
  if (!model.tied_embeddings) weights.push_back(head_weights(model).back());
  return weights;
}

// Beside the way of the hidden states, which pass through: the next token's embedding joins them, one
// layer, and a loss (or logits) of its own, with the main model's tables.
Program mtp_program(const ProgramContext& c, std::shared_ptr<const PartWeights> weights) {
  ProgramBuilder b(c, std::move(weights));
  const std::int64_t rows = c.resting_tokens(), hidden = c.model.hidden;
  const int input = b.activation("hidden_in", rows * hidden);
  const int partial = b.activation("embedded", c.tokens() * hidden);
  Kernel& embed = b.kernel("embed", "embed", {}, {partial}, {"embed_tokens"});
  embed.rows_of_table = true;
  embed.weight_elements = c.tokens() * hidden;
  embed.hbm_bytes = Bytes(4 * c.tokens()) + b.bytes(partial) + bytes_of(embed.weight_elements, c.spec.dtype);
  const int next = b.norm("embedding_norm", b.leave_split("embed", partial), "embedding_norm");
  const int now = b.norm("hidden_norm", input, "hidden_norm");
  const int joined = b.activation("joined", rows * hidden);
  Kernel& join = b.matmul("join", "join", rows, now, {joined}, {"join_proj"});
  join.reads = join.grads = join.saved = {now, next};
  join.hbm_bytes += b.bytes(next);
  const int h =
      layer_kernels(b, c.model.layers.back(), static_cast<std::int64_t>(c.model.layers.size()), joined);
  logits_or_loss(b, b.enter_split("lm_head", b.norm("final_norm", h, "final_norm")), logit_rows(c));
  return b.finish(input, input);
}

}  // namespace hyperoffload
