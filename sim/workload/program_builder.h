// Puts a Program together: values by handle, weights by name, traffic summed from operands.
#pragma once

#include <map>

#include "sim/workload/program.h"

namespace hyperoffload {

class ProgramBuilder {
 public:
  ProgramBuilder(const ProgramContext& context, std::shared_ptr<const PartWeights> weights);

  const ProgramContext& context;

  int value(const std::string& name, Bytes bytes);
  int activation(const std::string& name, std::int64_t elements);  // of the workload's dtype
  int state(const std::string& name, Bytes bytes,
            bool persistent = true);  // the same handle for the same name
  Bytes bytes(int value) const { return program_.values[static_cast<std::size_t>(value)].bytes; }

  // Of a value of all tokens, the part of one group's.
  Bytes group_bytes(int value, const TokenGroup& group) const;

  // A kernel whose traffic is all its operands. Backwards it is one kernel that reads `saved`. The
  // reference holds until the next kernel is made.
  Kernel& kernel(const std::string& kind, const std::string& name, std::vector<int> reads,
                 std::vector<int> writes, const std::vector<std::string>& weights = {},
                 std::vector<int> saved = {});
  // y = x W over `rows` tokens; writes `outs`.
  Kernel& matmul(const std::string& kind, const std::string& name, std::int64_t rows, int in,
                 std::vector<int> outs, const std::vector<std::string>& weights);
  int norm(const std::string& name, int in, const std::string& weight);
  int add(const std::string& name, int a, int b);

  // Collectives of tensor parallelism (nothing without it). enter: a value all ranks share goes into
  // split matrices, so that its gradient must be summed. leave: partial sums become the whole.
  int enter_split(const std::string& name, int in);
  int leave_split(const std::string& name, int partial);
  // A collective forwards and its counterpart backwards. `bytes`: the larger side, as NCCL counts.
  int collective(const std::string& name, int in, int out, const std::string& kind,
                 const std::string& back_kind, Bytes bytes, const std::string& group);

  const WeightSpec& weight(const std::string& name) const;  // local
  Bytes weight_bytes(const std::string& name) const;
  int last_kernel() const { return static_cast<int>(program_.kernels.size()) - 1; }
  Program finish(int input, int output);

 private:
  int weight_index(const std::string& name) const;
  Program program_;
  std::map<std::string, int> states_;  // by name
};

// A layer's kernels from its input value to its output.
int layer_kernels(ProgramBuilder& b, const LayerSpec& layer, std::int64_t index, int input);

// Each writes its kernels and returns the value that goes to the residual sum.
int attention_kernels(ProgramBuilder& b, const AttentionSpec& attention, std::int64_t layer, int in);
int mla_kernels(ProgramBuilder& b, const MlaSpec& attention, std::int64_t layer, int in);
int compressed_attention_kernels(ProgramBuilder& b, const CompressedAttentionSpec& attention,
                                 std::int64_t layer, int in);
int mamba_kernels(ProgramBuilder& b, const MambaSpec& mamba, int in);
int delta_net_kernels(ProgramBuilder& b, const DeltaNetSpec& delta, int in);
int mlp_kernels(ProgramBuilder& b, const MlpSpec& mlp, const std::string& prefix,
                int in);  // without collectives
int moe_kernels(ProgramBuilder& b, const MoeSpec& moe, std::int64_t layer, int in, int residual);

}  // namespace hyperoffload
