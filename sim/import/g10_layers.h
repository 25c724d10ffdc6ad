// The layers of a net that PyTorch printed, wired as G10 wires them.
//
// Children follow each other, but for the blocks whose wiring the printed tree doesn't show: residual blocks
// of ResNet (BasicBlock, Bottleneck), Inception's branches and SENet's units. G10 puts max pooling where
// Inception pools by averages, and its Scale reads the squeezed input alone; so do we, to get its tensors.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hyperoffload {

enum class G10LayerType {
  kConv,
  kReLU,
  kMaxPool,
  kAvgPool,
  kDropout,
  kLinear,
  kBatchNorm,
  kAdd,
  kConcat,
  kScale
};

struct G10Shape {
  std::int64_t channels = 0, height = 0, width = 0;  // of one sample
  std::int64_t elements() const { return channels * height * width; }
};

struct G10Layer {
  G10LayerType type = G10LayerType::kReLU;
  int line = 0;  // in the net's file; 0: not there (Add, Concat, Scale, Inception's pooling)
  std::int64_t in_channels = 0, out_channels = 0;  // conv; features of a linear layer
  int kernel[2] = {1, 1}, stride[2] = {1, 1}, padding[2] = {0, 0}, output[2] = {1, 1};
  std::int64_t groups = 1;
  bool in_place = false, bias = false, running_stats = false;
  int scale_like = -1;             // the layer whose output's height and width a Scale takes
  std::vector<int> before, after;  // neighbours, in the order they were wired
  G10Shape in, out;
};

// Shapes are computed for square images of so many pixels, or what the net is trained on: 299 for Inception,
// 224 for others. InputError with the line for modules of unknown types and shapes that don't fit.
std::vector<G10Layer> g10_layers(const std::string& text, const std::string& source,
                                 std::optional<int> pixels);

}  // namespace hyperoffload
