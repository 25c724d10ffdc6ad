#include "sim/import/chakra_nodes.h"

#include <fmt/format.h>

#include <bit>
#include <charconv>
#include <cmath>
#include <variant>

#include "sim/import/json_records.h"
#include "sim/import/protobuf_stream.h"
#include "sim/model/decimal.h"
#include "sim/model/error.h"
#include "sim/model/nearest_name.h"

namespace hyperoffload {
namespace {

using Texts = std::vector<std::string>;
// An attribute's value: none, a whole number (also of a bool), a fraction, a text, a list of texts, another
// list.
struct OtherList {};
using Value = std::variant<std::monostate, std::int64_t, double, std::string, Texts, OtherList>;

std::int64_t zigzag(std::uint64_t value) {
  return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
}

// "8388608.0" -> 8388608.
std::optional<std::int64_t> whole_bytes(std::string_view text) {
  const auto number = take_decimal(text);
  Bytes bytes;
  if (!number || !text.empty() || to_bytes(*number, 0, 0, bytes) != ByteCheck::kOk) return std::nullopt;
  return bytes.value;
}

// The tensors of a Python repr: tuples or lists of tensor id, storage id, offset, elements, element bytes,
// 'device'.
void collect_tuples(const std::string& text, std::vector<ChakraTensor>& tensors) {
  for (std::size_t open = text.find_first_of("(["); open != std::string::npos;
       open = text.find_first_of("([", open + 1)) {
    std::int64_t numbers[5] = {};
    const char* at = text.data() + open + 1;
    const char* end = text.data() + text.size();
    int count = 0;
    for (; count < 5; ++count) {
      while (at < end && (*at == ' ' || *at == ',')) ++at;
      const auto [next, error] = std::from_chars(at, end, numbers[count]);
      if (error != std::errc()) break;
      at = next;
    }
    while (at < end && (*at == ' ' || *at == ',')) ++at;
    if (count < 5 || at == end || (*at != '\'' && *at != '"')) continue;
    std::int64_t bytes = 0;
    if (__builtin_add_overflow(numbers[2], numbers[3], &bytes) ||
        __builtin_mul_overflow(bytes, numbers[4], &bytes) || bytes < 0)
      continue;
    if (numbers[3] > 0) tensors.push_back({fmt::format("storage{}", numbers[1]), bytes});
  }
}

class ProtobufReader {
 public:
  explicit ProtobufReader(TextStream& stream) : stream_(stream), input_(stream) {}

  ChakraTrace read() {
    int messages = 0;
    for (; !input_.at_end(); ++messages) {
      where_ = stream_.source() + (messages == 0 ? std::string(": metadata")
                                                 : fmt::format(": node {} of the file", messages - 1));
      // One stream a message: it may not count beyond 2 GiB.
      google::protobuf::io::CodedInputStream coded(&input_);
      ProtobufMessage top(coded, where_);
      std::uint32_t size = 0;
      if (!coded.ReadVarint32(&size)) top.fail("the end of the file in a length");
      if (size > (1u << 30)) top.fail("a length of more than 1 GiB");
      const auto limit = coded.PushLimit(static_cast<int>(size));
      messages == 0 ? metadata(top) : node(top);
      if (coded.BytesUntilLimit() > 0) top.fail("a message that ends too early");
      coded.PopLimit(limit);
    }
    if (messages == 0) throw InputError(stream_.source(), "an empty file", stream_.expected());
    return std::move(trace_);
  }

 private:
  // {1 version, 2 attributes}: nothing else may be in it, which tells other files.
  void metadata(ProtobufMessage& m) {
    while (const int field = m.next()) {
      if (field > 2 || m.wire() != ProtobufMessage::kBytes)
        throw InputError(stream_.source(), "no Chakra metadata at the begin", stream_.expected());
      m.skip();
    }
  }

  void node(ProtobufMessage& m) {
    ChakraNode node;
    while (const int field = m.next()) {
      switch (field) {
        case 1:
          node.id = static_cast<std::int64_t>(m.varint());
          break;
        case 2:
          node.name = m.bytes();
          break;
        case 3:
          node.type = type(m.varint());
          break;
        case 4:
          append(m.varints(), node.control);
          break;
        case 5:
          append(m.varints(), node.data);
          break;
        case 6:
          node.start_us = m.varint();
          break;
        case 7:
          node.duration_us = m.varint();
          break;
        case 8:
          m.message([&](ProtobufMessage& io) { values(io, node.inputs); });
          break;
        case 9:
          m.message([&](ProtobufMessage& io) { values(io, node.outputs); });
          break;
        case 10:
          m.message([&](ProtobufMessage& a) { attribute(a, node); });
          break;
        default:
          m.skip();
      }
    }
    trace_.nodes.push_back(std::move(node));
  }

  ChakraType type(std::uint64_t number) const {
    if (number > 7) throw InputError(where_, fmt::format("the node type {}", number), "one of 0 to 7");
    return static_cast<ChakraType>(number);
  }

  static void append(const std::vector<std::uint64_t>& ids, std::vector<std::int64_t>& to) {
    for (const std::uint64_t id : ids) to.push_back(static_cast<std::int64_t>(id));
  }

  // IOInfo: 1 values, 2 shapes, 3 types.
  static void values(ProtobufMessage& m, std::vector<ChakraTensor>& tensors) {
    while (const int field = m.next()) {
      if (field == 1)
        collect_tuples(m.bytes(), tensors);
      else
        m.skip();
    }
  }

  void attribute(ProtobufMessage& m, ChakraNode& node) {
    std::string name;
    Value value;
    while (const int field = m.next()) {
      if (field == 1)
        name = m.bytes();
      else if (field == 2)
        m.skip();
      else
        value = attribute_value(m, name);
    }
    take(name, value, node);
  }

  // Fields 3, 5, 7, ... hold one value, the next field a list of such.
  Value attribute_value(ProtobufMessage& m, const std::string& name) const {
    switch (m.field()) {
      case 3:
        return std::bit_cast<double>(m.fixed64());
      case 5:
        return static_cast<double>(std::bit_cast<float>(m.fixed32()));
      case 7:
        return static_cast<std::int64_t>(static_cast<std::int32_t>(m.varint()));
      case 9:
      case 11:
      case 13:
      case 27:
        return static_cast<std::int64_t>(m.varint());
      case 15:
      case 17:
        return zigzag(m.varint());
      case 19:
        return static_cast<std::int64_t>(m.fixed32());
      case 21:
      case 25:
        return static_cast<std::int64_t>(m.fixed64());
      case 23:
        return static_cast<std::int64_t>(static_cast<std::int32_t>(m.fixed32()));
      case 29:
      case 31:
        return m.bytes();
      case 30:
        return texts(m);
      default:
        if (m.field() < 3 || m.field() > 32)
          throw InputError(fmt::format("{}: attribute {}", where_, in_quotes(name)),
                           fmt::format("a value of the unknown type {}", m.field()),
                           "one of Chakra's types 3 to 32");
        m.skip();
        return OtherList{};
    }
  }

  static Texts texts(ProtobufMessage& m) {
    Texts list;
    m.message([&](ProtobufMessage& inner) {
      while (const int field = inner.next()) {
        if (field == 1)
          list.push_back(inner.bytes());
        else
          inner.skip();
      }
    });
    return list;
  }

  void take(const std::string& name, const Value& value, ChakraNode& node) {
    if (name == "is_cpu_op")
      node.is_cpu_op = whole(name, value, node) != 0;
    else if (name == "num_ops")
      node.num_ops = std::holds_alternative<double>(value) ? std::get<double>(value)
                                                           : static_cast<double>(whole(name, value, node));
    else if (name == "tensor_size")
      node.tensor_size = whole(name, value, node);
    else if (name == "comm_type")
      node.comm_type = whole(name, value, node);
    else if (name == "comm_size")
      node.comm_size = whole(name, value, node);
    else if (name == "pg_name" && std::holds_alternative<std::string>(value))
      node.group = std::get<std::string>(value);
    else if (name == "inputs" || name == "outputs")
      pairs(name, value, node, name == "inputs" ? node.inputs : node.outputs);
    else
      ++trace_.unread[name];
  }

  std::int64_t whole(const std::string& name, const Value& value, const ChakraNode& node) const {
    const std::int64_t* number = std::get_if<std::int64_t>(&value);
    if (!number || *number < 0)
      throw InputError(
          fmt::format("{}: node {} ({}): {}", stream_.source(), node.id, in_quotes(node.name), name),
          number ? fmt::format("{}", *number) : "a value that is no whole number",
          "a whole number of 0 or more");
    return *number;
  }

  // A name, its bytes, the next name, its bytes, ...
  void pairs(const std::string& name, const Value& value, const ChakraNode& node,
             std::vector<ChakraTensor>& tensors) const {
    if (std::holds_alternative<std::monostate>(value)) return;
    const Texts* list = std::get_if<Texts>(&value);
    const auto fail = [&](const std::string& found) {
      throw InputError(
          fmt::format("{}: node {} ({}): {}", stream_.source(), node.id, in_quotes(node.name), name), found,
          "names and bytes in turn");
    };
    if (!list) fail("a value that is no list of texts");
    if (list->size() % 2 != 0) fail(fmt::format("{} texts", list->size()));
    for (std::size_t i = 0; i < list->size(); i += 2) {
      const auto bytes = whole_bytes((*list)[i + 1]);
      if (!bytes) fail(in_quotes((*list)[i + 1]));
      tensors.push_back({(*list)[i], *bytes});
    }
  }

  TextStream& stream_;
  ProtobufInput input_;
  std::string where_;
  ChakraTrace trace_;
};

enum Field : std::size_t {
  kId,
  kName,
  kType,
  kControl,
  kControlToo,
  kData,
  kRuntime,
  kCpu,
  kOps,
  kTensorSize,
  kCommType,
  kCommSize
};

// {"workload_graph": [{"Id", "Name", "NodeType", "ctrlDeps", "data_deps", "runtime", "is_cpu_op", ...}]}
class JsonNodeReader {
 public:
  explicit JsonNodeReader(TextStream& stream) : stream_(stream) {}

  ChakraTrace read() {
    JsonRecordReader reader;
    reader.arrays = {"workload_graph"};
    reader.fields = {{{"Id"}},
                     {{"Name"}},
                     {{"NodeType"}},
                     {{"ctrlDeps"}, true},
                     {{"ctrl_deps"}, true},
                     {{"data_deps"}, true},
                     {{"runtime"}},
                     {{"is_cpu_op"}},
                     {{"num_ops"}},
                     {{"tensor_size"}},
                     {{"comm_type"}},
                     {{"comm_size"}}};
    reader.record = [this](const std::string&, std::size_t index, const JsonRecord& record) {
      node(index, record);
    };
    read_json_records(stream_, reader);
    return std::move(trace_);
  }

 private:
  void node(std::size_t index, const JsonRecord& r) {
    const auto whole = [&](Field field, const char* key) -> std::optional<std::int64_t> {
      if (!r.has(field)) return std::nullopt;
      if (const auto value = whole_bytes(r.text(field))) return value;
      throw InputError(fmt::format("{}: workload_graph[{}].{}", stream_.source(), index, key),
                       in_quotes(r.text(field)), "a whole number of 0 or more");
    };
    ChakraNode node;
    node.id = whole(kId, "Id").value_or(0);
    node.name = r.text(kName);
    const std::int64_t type = whole(kType, "NodeType").value_or(0);
    if (type > 7)
      throw InputError(fmt::format("{}: workload_graph[{}].NodeType", stream_.source(), index),
                       std::to_string(type), "one of 0 to 7");
    node.type = static_cast<ChakraType>(type);
    for (const Field field : {kControl, kControlToo}) ids(r, field, index, node.control);
    ids(r, kData, index, node.data);
    node.duration_us = static_cast<std::uint64_t>(whole(kRuntime, "runtime").value_or(0));
    if (r.has(kCpu)) node.is_cpu_op = r.text(kCpu) == "true" || r.text(kCpu) == "1";
    if (const auto ops = whole(kOps, "num_ops")) node.num_ops = static_cast<double>(*ops);
    node.tensor_size = whole(kTensorSize, "tensor_size");
    node.comm_type = whole(kCommType, "comm_type");
    node.comm_size = whole(kCommSize, "comm_size");
    trace_.nodes.push_back(std::move(node));
  }

  void ids(const JsonRecord& r, Field field, std::size_t index, std::vector<std::int64_t>& to) const {
    if (!r.has(field)) return;
    for (const JsonValue& item : r.value(field).items) {
      const auto id = whole_bytes(item.text);
      if (!id)
        throw InputError(fmt::format("{}: workload_graph[{}]", stream_.source(), index),
                         "a dependency that is no id", "whole numbers");
      to.push_back(*id);
    }
  }

  TextStream& stream_;
  ChakraTrace trace_;
};

}  // namespace

ChakraTrace read_chakra(TextStream& stream) {
  const std::string_view begin = stream.next_piece();
  if (begin.empty()) throw InputError(stream.source(), "an empty file", stream.expected());
  const std::size_t first = begin.find_first_not_of(" \t\r\n");
  const bool json = first != std::string_view::npos && begin[first] == '{' &&
                    begin.find('"') != std::string_view::npos && begin.find('"') < first + 16;
  stream.put_back(begin);
  return json ? JsonNodeReader(stream).read() : ProtobufReader(stream).read();
}

}  // namespace hyperoffload
