// The two kinds of generators behind generate_trace(), and what they share.
#pragma once

#include "sim/workload/trace_writer.h"

namespace hyperoffload {

// The layers of one virtual pipeline stage, and whether it embeds and ends in the head.
struct Stage {
  Share layers;
  bool first = false, last = false;
};
Stage stage_of(const ModelConfig& model, const RankPlace& place, int chunks, int chunk);

// Weights and programs of the model's parts for one pass, each made once for all equal layers.
class ProgramCache {
 public:
  ProgramCache(const ModelConfig& model, const WorkloadSpec& spec, const RankPlace& place);
  void set_pass(Pass pass);
  const Program& embedding();
  const Program& layer(std::int64_t index);
  const Program& head();
  const Program& mtp();
  const ProgramContext& context() const { return context_; }

 private:
  ProgramContext context_;
  std::vector<std::size_t> kind_of_;  // of each layer: the first layer equal to it
  std::map<std::string, std::shared_ptr<const PartWeights>> weights_;
  std::map<std::string, Program> programs_;
};

void generate_inference(const WorkloadSpec& spec, const ModelConfig& model, const RankPlace& place,
                        TraceWriter& writer);
void generate_training(const WorkloadSpec& spec, const ModelConfig& model, const RankPlace& place,
                       TraceWriter& writer);

// What goes from one pipeline stage to the next.
Bytes boundary_bytes(const ProgramContext& context);

}  // namespace hyperoffload
