// Puts a Program together: values by handle, weights by name, traffic summed from operands.
#pragma once

#include <map>

#include "sim/workload/program.h"

namespace hyperoffload {

class ProgramBuilder {
 public:
  ProgramBuilder(const ProgramContext& context, const std::vector<WeightSpec>& weights);

  const ProgramContext& context;

  int value(const std::string& name, Bytes bytes);
  int activation(const std::string& name, std::int64_t elements);  // of the workload's dtype
  int state(const std::string& name, Bytes bytes);
  Bytes bytes(int value) const { return program_.values[static_cast<std::size_t>(value)].bytes; }

  // A kernel whose traffic is all its operands; `weights` by name. The reference holds until the next call.
  Kernel& kernel(const std::string& kind, const std::string& name, std::vector<int> reads,
                 std::vector<int> writes, const std::vector<std::string>& weights = {}, double flops = 0);
  // y = x W: `rows` tokens; the weights' local parts give k x n. Writes `outs`.
  Kernel& matmul(const std::string& kind, const std::string& name, std::int64_t rows, int in,
                 std::vector<int> outs, const std::vector<std::string>& weights);

  int norm(const std::string& name, int in, const std::string& weight);
  int add(const std::string& name, int a, int b);

  bool has_weight(const std::string& name) const { return by_name_.count(name) > 0; }
  int weight(const std::string& name) const;
  const WeightSpec& local(const std::string& name) const;
  // Elements of the matrices (not biases) of a weight as this rank holds it.
  std::int64_t matrix_elements(const std::string& name) const;

  Program finish(int input, int output);

 private:
  Program program_;
  std::vector<WeightSpec> local_;
  std::map<std::string, int> by_name_;
};

// Each writes its kernels and returns the value that goes to the residual sum.
int attention_kernels(ProgramBuilder& b, const AttentionSpec& attention, int in);
int mlp_kernels(ProgramBuilder& b, const MlpSpec& mlp, int in);

}  // namespace hyperoffload
