// G10's expansion of a net of operator records: transformers.
//
// A record is: id, type, number of inputs, their ids, then for each input its rank and dimensions, closed by
// 19 dashes. The dimension 99 stands for the batch size; elements take 4 bytes. An operator's output has the
// operator's id; a SoftmaxBasic absorbs the next three records and takes the last one's id.
#include <fmt/format.h>

#include <charconv>
#include <map>
#include <set>

#include "sim/import/g10_program.h"
#include "sim/model/check.h"
#include "sim/model/error.h"
#include "sim/model/nearest_name.h"
#include "sim/model/utf8.h"

namespace hyperoffload {
namespace {

constexpr int kNone = -1;
constexpr std::int64_t kElementBytes = 4;  // fp32
constexpr std::string_view kEnd = "-------------------";

struct Input {
  std::int64_t id = 0;
  std::int64_t elements = 0;
  int tensor = kNone, gradient = kNone;  // places in the program
};

struct Operator {
  std::int64_t id = 0;
  std::string type;
  std::vector<Input> inputs;
  int output = kNone;
  std::vector<int> output_gradients;  // one a use of the output
};

// Names of the kernels of an operator type, where they aren't the type's own.
std::string kernel_name(const std::string& type) {
  static const std::map<std::string, std::string> kRenamed = {
      {"Dot", "Linear"}, {"Convolution", "Conv2d"}, {"Relu", "ReLU"}};
  const auto found = kRenamed.find(type);
  return found == kRenamed.end() ? type : found->second;
}

class RecordReader {
 public:
  RecordReader(std::string_view text, const std::string& source, std::int64_t batch)
      : text_(text), rest_(text), source_(source), batch_(batch) {}

  std::vector<Operator> read() {
    std::vector<Operator> operators;
    while (skip_space(), !rest_.empty()) {
      operators.push_back(record());
      if (operators.back().type != "SoftmaxBasic") continue;
      for (int i = 0; i < 3; ++i) operators.back().id = record().id;
    }
    return operators;
  }

  // Elements of a tensor of the net, as its last mention has them.
  const std::map<std::int64_t, std::int64_t>& elements() const { return elements_; }

 private:
  void skip_space() { rest_.remove_prefix(std::min(rest_.size(), rest_.find_first_not_of(" \t\r\n"))); }

  std::string_view word() {
    skip_space();
    const std::string_view word = rest_.substr(0, rest_.find_first_of(" \t\r\n"));
    rest_.remove_prefix(word.size());
    return word;
  }

  [[noreturn]] void fail(std::string_view word, const std::string& expected) const {
    const auto at = static_cast<std::size_t>(rest_.data() - text_.data()) - word.size();
    throw InputError(fmt::format("{}:{}", source_, line_of(text_, at)),
                     word.empty() ? "the end of the file" : in_quotes(word), expected);
  }

  std::int64_t number(const char* what, std::int64_t max) {
    const std::string_view text = word();
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value < 0 || value > max)
      fail(text, what);
    return value;
  }

  Operator record() {
    Operator op;
    op.id = number("an operator's id", 1'000'000'000);
    const std::string_view type = word();
    if (type.empty()) fail(type, "an operator's type");
    op.type = type;
    op.inputs.resize(static_cast<std::size_t>(number("a number of inputs", 16)));
    for (Input& input : op.inputs) input.id = number("an input's id", 1'000'000'000);
    for (Input& input : op.inputs) {
      input.elements = 1;
      for (auto rank = number("a rank", 16); rank > 0; --rank) {
        std::int64_t dimension = number("a dimension", 1'000'000'000);
        if (dimension == 99) dimension = batch_;
        if (__builtin_mul_overflow(input.elements, dimension, &input.elements) ||
            input.elements > (1LL << 60))
          fail("", "a tensor of less than 2^60 elements");
      }
      elements_[input.id] = input.elements;
    }
    const std::string_view end = word();
    if (end != kEnd) fail(end, "19 dashes behind the record");
    return op;
  }

  std::string_view text_, rest_;
  const std::string& source_;
  std::int64_t batch_;
  std::map<std::int64_t, std::int64_t> elements_;
};

class OperatorExpander {
 public:
  OperatorExpander(std::vector<Operator> operators, const std::map<std::int64_t, std::int64_t>& elements,
                   int border, const std::string& source)
      : operators_(std::move(operators)), elements_(elements), border_(border), source_(source) {}

  G10Program expand() {
    for (std::size_t i = 0; i < operators_.size(); ++i) producer_[operators_[i].id] = i;
    for (Operator& op : operators_) make_tensors(op);
    for (const Operator& op : operators_) {
      emit(kernel_name(op.type) + "_Forward");
      for (const Input& input : op.inputs) read(input.tensor);
      write(op.output);
    }
    emit("makeLoss");
    read(operators_.back().output);
    write(operators_.back().output_gradients.front());
    for (auto op = operators_.rbegin(); op != operators_.rend(); ++op) backward(*op);
    return std::move(program_);
  }

 private:
  bool global(int tensor) const { return program_.tensors[static_cast<std::size_t>(tensor)].global; }

  int tensor_of(std::int64_t id) {
    const auto known = places_.find(id);
    if (known != places_.end()) return known->second;
    return places_[id] = program_.add_tensor(elements_.at(id) * kElementBytes, id < border_);
  }

  void make_tensors(Operator& op) {
    if (op.inputs.empty()) fail(op, "no inputs", "at least one");
    // What nothing reads has the size of the first input.
    op.output = elements_.count(op.id) ? tensor_of(op.id)
                                       : program_.add_tensor(op.inputs[0].elements * kElementBytes, false);
    for (Input& input : op.inputs) input.tensor = tensor_of(input.id);
    for (Input& input : op.inputs) {
      const auto producer = producer_.find(input.id);
      const bool made = producer != producer_.end();
      if (op.type == "Power" ? global(input.tensor) || !made : !global(input.tensor) && !made) continue;
      const std::int64_t bytes = program_.tensors[static_cast<std::size_t>(input.tensor)].bytes;
      input.gradient = program_.add_tensor(bytes, false);
      if (made) operators_[producer->second].output_gradients.push_back(input.gradient);
    }
    if (&op == &operators_.back())
      op.output_gradients.push_back(
          program_.add_tensor(program_.tensors[static_cast<std::size_t>(op.output)].bytes, false));
  }

  void emit(const std::string& name) {
    program_.kernels.emplace_back();
    program_.kernels.back().name = name;
  }
  void read(int tensor) { program_.kernels.back().reads.push_back(tensor); }
  void write(int tensor) { program_.kernels.back().writes.push_back(tensor); }

  void apply(const std::string& name, const Input& weight) {
    emit(name);
    read(weight.tensor);
    read(weight.gradient);
    write(weight.tensor);
  }

  void backward(const Operator& op) {
    if (op.output_gradients.empty())
      fail(op, "an output that nothing reads", "one that is read, or the net's last");
    const int gradient = op.output_gradients.front();
    if (op.output_gradients.size() > 1) {
      emit("Add_MultiGredient");  // spelt so
      for (int part : op.output_gradients) read(part);
      write(gradient);
    }
    const std::string name = kernel_name(op.type) + "_Backward";
    if (op.type == "GatherV2" || op.type == "Dot" || op.type == "Convolution") return weighted(op, gradient);
    if (op.type == "Add" || op.type == "Subtract") {
      emit(name);
      read(gradient);
      for (const Input& input : op.inputs)
        if (input.gradient != kNone) write(input.gradient);
    } else if (op.type == "BatchMatMul" || op.type == "Multiply" || op.type == "Divide") {
      two_sided(op, gradient);
    } else if (op.type == "Relu" || op.type == "Power" || op.type == "SoftmaxBasic" || op.type == "Sqrt" ||
               op.type == "Sum" || op.type == "Tanh" || op.type == "Erf") {
      if (op.inputs[0].gradient == kNone)
        fail(op, "an input that no operator makes", "the output of an operator");
      emit(name);
      read(gradient);
      read(op.inputs[0].tensor);
      if (op.type == "Power" && op.inputs.size() > 1) read(op.inputs[1].tensor);
      write(op.inputs[0].gradient);
      return;
    } else {
      fail(op, "the operator type " + in_quotes(op.type),
           one_of(op.type, {"Add", "BatchMatMul", "Convolution", "Divide", "Dot", "Erf", "GatherV2",
                            "Multiply", "Power", "Relu", "SoftmaxBasic", "Sqrt", "Subtract", "Sum", "Tanh"}));
    }
    const Input* weight = nullptr;
    for (const Input& input : op.inputs)
      if (global(input.tensor)) weight = &input;
    if (weight) apply("Apply_Grad", *weight);
  }

  // A weight and an input: the gradient of each, then the weight is updated.
  void weighted(const Operator& op, int gradient) {
    const Input *weight = nullptr, *input = nullptr;
    for (const Input& each : op.inputs) (global(each.tensor) ? weight : input) = &each;
    if (!weight || !input)
      fail(op, "a " + op.type + (weight ? " without an input" : " without a weight"),
           "one global tensor and one other");
    if (op.type == "GatherV2") {
      emit("GatherV2_Backward");
      read(gradient);
      read(input->tensor);
      write(weight->gradient);
      if (input->gradient != kNone) write(input->gradient);
      return apply("Apply_Grad", *weight);
    }
    const std::string name = kernel_name(op.type);
    emit(name + "_Backward_Weight");
    read(gradient);
    read(input->tensor);
    write(weight->gradient);
    if (input->gradient != kNone) {
      emit(name + "_Backward_Input");
      read(gradient);
      read(weight->tensor);
      write(input->gradient);
    }
    apply(op.type == "Dot" ? "Linear_Apply_Grad_Weight" : "Apply_Grad", *weight);
  }

  // One kernel a side; Divide names them, and its second needs the quotient, not the dividend.
  void two_sided(const Operator& op, int gradient) {
    if (op.inputs.size() != 2) fail(op, fmt::format("{} inputs", op.inputs.size()), "2");
    const std::string name = op.type + "_Backward";
    const bool divide = op.type == "Divide";
    for (std::size_t side = 0; side < 2; ++side) {
      if (op.inputs[side].gradient == kNone) continue;
      emit(divide ? name + (side == 0 ? "_A" : "_B") : name);
      read(gradient);
      read(divide ? op.inputs[1].tensor : op.inputs[1 - side].tensor);
      if (divide && side == 1) read(op.output);
      write(op.inputs[side].gradient);
    }
  }

  [[noreturn]] void fail(const Operator& op, const std::string& found, const std::string& expected) const {
    throw InputError(fmt::format("{}: operator {} ({})", source_, op.id, printable(op.type)), found,
                     expected);
  }

  std::vector<Operator> operators_;
  const std::map<std::int64_t, std::int64_t>& elements_;
  int border_;
  const std::string& source_;
  std::map<std::int64_t, std::size_t> producer_;  // id of an output -> its operator
  std::map<std::int64_t, int> places_;            // id in the net -> place in the program
  G10Program program_;
};

}  // namespace

std::int64_t whole_pages(std::int64_t bytes) {
  constexpr std::int64_t kPage = 4096;
  return (bytes + kPage - 1) / kPage * kPage;
}

int G10Program::add_tensor(std::int64_t bytes, bool global) {
  const int place = static_cast<int>(tensors.size());
  tensors.push_back({place, whole_pages(bytes), global});
  return place;
}

bool is_g10_operator_net(std::string_view text) { return text.find(kEnd) != std::string_view::npos; }

G10Program expand_g10_operators(const std::string& text, const std::string& source, std::int64_t batch,
                                int border) {
  RecordReader reader(text, source, batch);
  std::vector<Operator> operators = reader.read();
  HYPER_CHECK(!operators.empty(), "a net of records has one");
  return OperatorExpander(std::move(operators), reader.elements(), border, source).expand();
}

}  // namespace hyperoffload
