// Turns programs into the ops and tensors of one trace: names, tensor ids, engines.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "sim/model/graph.h"
#include "sim/workload/program.h"

namespace hyperoffload {

class TraceWriter {
 public:
  TensorId tensor(const std::string& name, Bytes bytes, TensorKind kind);
  OpId op(Op op, const std::string& engine = "compute");

  // Persistent tensors of a part, made once: "layers.3.q_proj". A tied lm_head names the embedding's.
  std::vector<TensorId> weights(const Program& program, const std::string& part);
  std::vector<TensorId> states(const Program& program, const std::string& part);

  // The part's kernels in order. `input` stands for its input value; returns the tensor of its output.
  TensorId forward(const Program& program, const std::string& part, int layer, const std::string& phase,
                   TensorId input);

  Graph finish(const std::string& name, const std::string& meta_json, const std::string& source);

 private:
  TensorId named(const std::string& name, Bytes bytes, TensorKind kind);
  GraphSpec spec_;
  std::map<std::string, TensorId> persistent_;
};

}  // namespace hyperoffload
