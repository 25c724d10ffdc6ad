#include "sim/import/g10_layers.h"

#include <fmt/format.h>

#include <cctype>
#include <map>

#include "sim/import/module_tree.h"
#include "sim/model/error.h"
#include "sim/model/nearest_name.h"

namespace hyperoffload {
namespace {

using Type = G10LayerType;

constexpr int kStart = -1;  // before the first layer

const std::map<std::string, Type> kLayerTypes = {
    {"Conv2d", Type::kConv},          {"ReLU", Type::kReLU},
    {"MaxPool2d", Type::kMaxPool},    {"AdaptiveAvgPool2d", Type::kAvgPool},
    {"Dropout", Type::kDropout},      {"Linear", Type::kLinear},
    {"BatchNorm2d", Type::kBatchNorm}};

// "InceptionA" to "InceptionE"; the net itself is an "Inception3".
bool is_inception_block(const std::string& type) {
  return type.size() == 10 && type.starts_with("Inception") &&
         std::isalpha(static_cast<unsigned char>(type.back()));
}

class Wiring {
 public:
  explicit Wiring(const std::string& source) : source_(source) {}

  std::vector<G10Layer> wire(const Module& root) {
    place(root, kStart);
    if (layers_.empty()) throw InputError(source_, "no layers", "at least one");
    return std::move(layers_);
  }

 private:
  void connect(int from, int to) {
    if (from == kStart) return;
    layers_[static_cast<std::size_t>(from)].after.push_back(to);
    layers_[static_cast<std::size_t>(to)].before.push_back(from);
  }

  int add(G10Layer layer) {
    layers_.push_back(std::move(layer));
    return static_cast<int>(layers_.size()) - 1;
  }
  int add(Type type) {
    G10Layer layer;
    layer.type = type;
    return add(std::move(layer));
  }

  // Lays a module's layers behind layer `from`; returns the last.
  int place(const Module& module, int from) {
    if (module.children.empty()) return place_layer(module, from);
    if (module.type == "BasicBlock" || module.type == "Bottleneck") return place_residual(module, from);
    if (is_inception_block(module.type)) return place_inception(module, from);
    if (module.type == "SENetUnit") return place_senet_unit(module, from);
    for (const Module& child : module.children) from = place(child, from);
    return from;
  }

  int place_layer(const Module& module, int from) {
    const auto type = kLayerTypes.find(module.type);
    if (type == kLayerTypes.end()) {
      std::vector<std::string> names;
      for (const auto& [name, _] : kLayerTypes) names.push_back(name);
      throw InputError(fmt::format("{}:{}", source_, module.line), "the module " + in_quotes(module.type),
                       one_of(module.type, names));
    }
    G10Layer layer;
    layer.type = type->second;
    layer.line = module.line;
    const bool linear = layer.type == Type::kLinear;
    layer.in_channels = module.number(linear ? "in_features" : "0", 0, 0);
    layer.out_channels = module.number(linear ? "out_features" : "1", 0, 0);
    for (int axis = 0; axis < 2; ++axis) {
      layer.kernel[axis] = module.number("kernel_size", axis, 1);
      layer.stride[axis] = std::max(1, module.number("stride", axis, 1));
      layer.padding[axis] = module.number("padding", axis, 0);
      layer.output[axis] = module.number("output_size", axis, 1);
    }
    layer.groups = std::max(1, module.number("groups", 0, 1));
    layer.in_place = module.flag("inplace", false);
    layer.bias = module.flag("bias", false);
    layer.running_stats = module.flag("track_running_stats", true);
    const int place = add(std::move(layer));
    connect(from, place);
    return place;
  }

  int place_residual(const Module& module, int from) {
    int end = from, side = kStart;
    bool resized = false;
    for (const Module& child : module.children) {
      resized |= child.name == "downsample";
      (child.name == "downsample" ? side : end) = place(child, child.name == "downsample" ? from : end);
    }
    const int sum = add(Type::kAdd);
    connect(resized ? end : from, sum);
    connect(resized ? side : end, sum);
    return sum;
  }

  int add_pool(int stride, int padding, int from) {
    G10Layer layer;
    layer.type = Type::kMaxPool;
    for (int axis = 0; axis < 2; ++axis) {
      layer.kernel[axis] = 3;
      layer.stride[axis] = stride;
      layer.padding[axis] = padding;
    }
    const int place = add(std::move(layer));
    connect(from, place);
    return place;
  }

  int add_concat(const std::vector<int>& parts) {
    const int concat = add(Type::kConcat);
    for (int part : parts) connect(part, concat);
    return concat;
  }

  // "branch5x5_1" -> {"branch5x5", 0}; "branch3x3_2b" -> {"branch3x3", 'b'}: a part of a fork.
  static std::pair<std::string, char> branch_of(const std::string& name) {
    const std::size_t underscore = name.rfind('_');
    if (underscore == std::string::npos || underscore + 1 >= name.size() ||
        !std::isdigit(static_cast<unsigned char>(name[underscore + 1])))
      return {name, 0};
    const char last = name.back();
    return {name.substr(0, underscore), std::isalpha(static_cast<unsigned char>(last)) ? last : char{0}};
  }

  int place_inception(const Module& module, int from) {
    std::vector<int> ends;
    std::string branch;
    std::vector<int> fork;  // ends of the parts of a fork
    int fork_from = from, end = from;
    const auto close_fork = [&] {
      if (fork.empty()) return;
      ends.back() = add_concat(fork);
      fork.clear();
    };
    bool pooled = false;
    for (const Module& child : module.children) {
      const auto [name, part] = branch_of(child.name);
      if (name != branch) {
        close_fork();
        branch = name;
        end = from;
        ends.push_back(end);
      }
      if (name == "branch_pool") {
        end = add_pool(1, 1, from);
        pooled = true;
      }
      if (part && fork.empty()) fork_from = end;
      end = place(child, part ? fork_from : end);
      if (part) fork.push_back(end);
      ends.back() = end;
    }
    close_fork();
    if (!pooled) ends.push_back(add_pool(2, 0, from));
    return add_concat(ends);
  }

  int place_senet_unit(const Module& module, int from) {
    int end = from, scale = kStart, side = from;
    bool summed = false;
    for (const Module& child : module.children) {
      if (child.name == "identity_conv") {
        side = place(child, from);
      } else if (child.name == "se") {
        const int body = end;
        end = place(child, body);
        scale = add(Type::kScale);
        layers_[static_cast<std::size_t>(scale)].scale_like = body;
        connect(end, scale);
      } else if (child.name == "activ" && scale != kStart) {
        const int sum = add(Type::kAdd);
        connect(scale, sum);
        connect(side, sum);
        end = place(child, sum);
        summed = true;
      } else {
        end = place(child, end);
      }
    }
    if (!summed)
      throw InputError(fmt::format("{}:{}", source_, module.line), "a SENetUnit without \"se\" and \"activ\"",
                       "both");
    return end;
  }

  const std::string& source_;
  std::vector<G10Layer> layers_;
};

class Shapes {
 public:
  Shapes(std::vector<G10Layer>& layers, const std::string& source) : layers_(layers), source_(source) {}

  void fill(int pixels) {
    for (G10Layer& layer : layers_) {
      if (layer.before.empty())
        layer.in = {layer.in_channels, pixels, pixels};
      else
        layer.in = output(layer.before[0]);
      for (std::size_t i = 1; i < layer.before.size(); ++i) join(layer, output(layer.before[i]));
      layer.out = output_of(layer);
      if (layer.out.elements() <= 0 || layer.out.elements() > (1LL << 40))
        fail(layer,
             fmt::format("an output of {} x {} x {}", layer.out.channels, layer.out.height, layer.out.width),
             "sizes that fit the layer before");
    }
  }

 private:
  const G10Shape& output(int layer) const { return layers_[static_cast<std::size_t>(layer)].out; }

  void join(G10Layer& layer, const G10Shape& other) {
    const bool concat = layer.type == Type::kConcat;
    if (other.height != layer.in.height || other.width != layer.in.width ||
        (!concat && other.channels != layer.in.channels))
      fail(layer, "parts of different sizes", "equal ones");
    if (concat) layer.in.channels += other.channels;
  }

  G10Shape output_of(const G10Layer& layer) const {
    const auto slid = [&](std::int64_t size, int axis) {
      return (size - layer.kernel[axis] + 2 * layer.padding[axis]) / layer.stride[axis] + 1;
    };
    switch (layer.type) {
      case Type::kConv:
        if (layer.in_channels != layer.in.channels) break;
        return {layer.out_channels, slid(layer.in.height, 0), slid(layer.in.width, 1)};
      case Type::kMaxPool:
        return {layer.in.channels, slid(layer.in.height, 0), slid(layer.in.width, 1)};
      case Type::kAvgPool:
        return {layer.in.channels, layer.output[0], layer.output[1]};
      case Type::kLinear:
        if (layer.in_channels != layer.in.elements()) break;
        return {layer.out_channels, 1, 1};
      case Type::kScale:
        return {layer.in.channels, output(layer.scale_like).height, output(layer.scale_like).width};
      default:
        return layer.in;
    }
    fail(layer,
         fmt::format("{} inputs behind {} x {} x {}", layer.in_channels, layer.in.channels, layer.in.height,
                     layer.in.width),
         "as many as the layer before gives");
  }

  [[noreturn]] void fail(const G10Layer& layer, const std::string& found, const std::string& expected) const {
    throw InputError(layer.line > 0 ? fmt::format("{}:{}", source_, layer.line) : source_, found, expected);
  }

  std::vector<G10Layer>& layers_;
  const std::string& source_;
};

}  // namespace

std::vector<G10Layer> g10_layers(const std::string& text, const std::string& source,
                                 std::optional<int> pixels) {
  const Module root = parse_module_tree(text, source);
  std::vector<G10Layer> layers = Wiring(source).wire(root);
  if (layers.front().type != Type::kConv)
    throw InputError(fmt::format("{}:{}", source, layers.front().line), "another first layer", "a Conv2d");
  const int usual = root.type.starts_with("Inception") ? 299 : 224;
  Shapes(layers, source).fill(pixels.value_or(usual));
  return layers;
}

}  // namespace hyperoffload
