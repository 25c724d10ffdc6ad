// G10's program of one training iteration: kernels in order, with the tensors each reads and writes.
//
// It comes from the expanded form (kernels.config), or from the shipped nets by G10's own expansion rules.
// Facts: github.com/platformxlab/G10 at c42dfb1 (src/ast.cc, src/analysis.cc, src/main.cc): tensors are
// numbered in the order that its passes create them, and sizes are rounded up to pages of 4,096 bytes;
// kernels are the forward pass in file order, makeLoss, and the backward pass in reverse.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/model/units.h"

namespace hyperoffload {

struct G10Tensor {
  int id = 0;  // "tensorN" in G10's files
  std::int64_t bytes = 0;
  bool global = false;
};

struct G10Kernel {
  std::string name;                // "Conv2d_Forward"
  int layer = -1;                  // of a net given as a module tree
  std::vector<int> reads, writes;  // places in G10Program::tensors
  Seconds duration;
  std::int64_t workspace_bytes = 0;
};

struct G10Program {
  std::vector<G10Tensor> tensors;
  std::vector<G10Kernel> kernels;

  int add_tensor(std::int64_t bytes, bool global);  // rounds the bytes up to pages; returns its place
};

std::int64_t whole_pages(std::int64_t bytes);

// kernels.config: everything is in it (workspaces are tensors there).
bool is_g10_expanded(std::string_view text);
G10Program read_g10_expanded(const std::string& text, const std::string& source);

// A net of operator records (BERT_Base.txt, VIT.txt). Tensors whose id in the net is below `border` are
// global.
bool is_g10_operator_net(std::string_view text);
G10Program expand_g10_operators(const std::string& text, const std::string& source, std::int64_t batch,
                                int border);

// A net as a printed module tree (ResNet152.txt, Inceptionv3.txt, SENet154.txt); images are
// `pixels` x `pixels`, or what the family of nets is trained on when none is given.
bool is_g10_module_tree(std::string_view text);
G10Program expand_g10_modules(const std::string& text, const std::string& source, std::int64_t batch,
                              std::optional<int> pixels);

}  // namespace hyperoffload
