// The forward pass of one part of a model (embedding, a layer, the head) on one rank, as kernels over
// values, with what the backward pass needs beside them: inference emits it as it is, training runs it
// forwards, backwards and again.
//
// What is counted. FLOPs: matrix products only, 2 m n k each, and attention's products over the
// (query, key) pairs the mask lets through; vector kernels (norm, rope, activation, add) have none: HBM
// bounds them. HBM bytes: each operand read once, each result written once, so that a kernel is taken to
// keep its tiles on chip (flash attention writes no sequence x sequence tensor); of a table or a cache,
// only the rows used. Values are in SSA form: each is written by one kernel, except for kernels that
// update theirs in place. Equal layers share one program.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/workload/weights.h"
#include "sim/workload/workload.h"

namespace hyperoffload {

// Samples that go through the layers together: `new_tokens` of each now, after `cached` before.
struct TokenGroup {
  std::int64_t sequences = 1;
  std::int64_t new_tokens = 1;
  std::int64_t cached = 0;
  std::int64_t capacity = 0;    // tokens a sample its cache is sized for
  std::int64_t persistent = 0;  // of them, those whose cache is there from the start (with kv_block)
  std::string cache = "kv";     // name of its cache tensors
  std::int64_t tokens() const { return sequences * new_tokens; }
};

// One pass over the layers on one rank. Token counts are the sample's; context parallelism divides them.
struct Pass {
  Phase phase = Phase::kPrefill;
  std::vector<TokenGroup> groups;
  std::int64_t index = 0;        // of the pass in the trace: seeds what changes from pass to pass
  bool last_logits_only = true;  // the head computes the last token of each sample only
  bool training() const { return phase == Phase::kTrain; }
  std::int64_t tokens() const;
  std::int64_t sequences() const;
};

struct Value {
  std::string name;
  Bytes bytes;
};

// What outlives the pass beside weights: a layer's KV cache or recurrent state.
struct State {
  std::string name;
  Bytes bytes;
  bool persistent = true;
};

// The weights of a part as one rank holds them.
struct PartWeights {
  struct Local {
    std::string name;
    Bytes bytes;
    std::int64_t elements = 0;
    std::int64_t matrix_elements = 0;
    bool expert = false;
    bool replicated_in_tp = false;  // held whole by every rank of a tensor-parallel group
  };
  std::vector<Local> weights;
  std::vector<WeightSpec> specs;
  int index(const std::string& name) const;  // -1: none
};

enum class BackwardForm {
  kNone,    // nothing to differentiate
  kAlias,   // y = a + b: both gradients are y's
  kOne,     // one kernel for the gradients of inputs and weights
  kMatmul,  // one kernel for the input's gradient, one for the weights'
};

struct Kernel {
  std::string kernel;              // its kind: "norm", "qkv", "attention", ...
  std::string name;                // unique in the program
  std::vector<int> reads, writes;  // values; in both: updated in place
  std::vector<int> weights;
  std::vector<int> state_reads, state_writes;
  double flops = 0;
  Bytes hbm_bytes;
  Bytes workspace;
  std::int64_t weight_elements = 0;      // of the weights, those this kernel touches
  bool rows_of_table = false;            // they are rows of a table, some of them perhaps twice
  std::optional<Collective> collective;  // forwards; then on the comm engine
  bool forward = true;                   // false: forwards there is nothing to do, `writes` is `reads`
  int known_after = -1;                  // kernel whose result decides what this one reads

  BackwardForm backward = BackwardForm::kOne;
  std::vector<int> saved;      // values the backward pass reads beside gradients
  std::vector<int> grads;      // of `reads`, those with a gradient
  bool grad_in_place = false;  // the gradient of what it reads takes that value's place
  double input_grad_flops = 0;
  double weight_grad_flops = 0;
  std::optional<Collective> backward_collective;  // backwards this is a collective
};

struct Program {
  std::vector<Value> values;
  std::shared_ptr<const PartWeights> weights;
  std::vector<State> states;
  std::vector<Kernel> kernels;
  int input = -1, output = -1;  // values
};

struct ProgramContext {
  const ModelConfig& model;
  const WorkloadSpec& spec;
  RankPlace place;
  Pass pass;

  // Tokens of this rank in matrix products, and between them (sequence parallel splits those over tp).
  std::int64_t tokens() const { return pass.tokens() / place.cp; }
  std::int64_t resting_tokens() const;
  std::int64_t resting_width() const { return model.hidden * (model.streams > 0 ? model.streams : 1); }
  bool sequence_parallel() const { return spec.parallel.sp && place.tp > 1; }
};

std::shared_ptr<const PartWeights> part_weights(const ProgramContext& context,
                                                const std::vector<WeightSpec>& weights);
Program embedding_program(const ProgramContext& context, std::shared_ptr<const PartWeights> weights);
// `index`: of the layer, which decides the experts a pass visits where it doesn't visit all.
Program layer_program(const ProgramContext& context, const LayerSpec& layer, std::int64_t index,
                      std::shared_ptr<const PartWeights> weights);
Program head_program(const ProgramContext& context, std::shared_ptr<const PartWeights> weights);
std::vector<WeightSpec> head_part_weights(const ModelConfig& model);  // with the embedding table where tied
// A multi-token-prediction module: one more layer beside the main model, which passes through.
Program mtp_program(const ProgramContext& context, std::shared_ptr<const PartWeights> weights);
std::vector<WeightSpec> mtp_part_weights(const ModelConfig& model);  // with the shared tables
// The tensor's name: tables that parts share have one name everywhere.
std::string weight_name(const std::string& part, const std::string& weight);

// Whether each layer's program is its own: experts or cache blocks picked by layer.
bool depends_on_layer(const ProgramContext& context, const LayerSpec& layer);

}  // namespace hyperoffload
