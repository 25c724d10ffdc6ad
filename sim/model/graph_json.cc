// The layer trace as JSON. Optional keys that have their default are not written; one tensor or op
// stands on a line, so that two traces can be compared with diff.
#include <fmt/format.h>

#include <utility>

#include "sim/model/decimal.h"
#include "sim/model/error.h"
#include "sim/model/graph.h"
#include "sim/model/json_reader.h"
#include "sim/model/name_index.h"
#include "sim/model/nearest_name.h"
#include "sim/model/read_file.h"

namespace hyperoffload {
namespace {

const std::string kFormat = "hyperoffload-trace";
constexpr int kVersion = 1;
const std::string kExpected = "a layer trace";
constexpr int kMicro = -6;  // duration_us -> Seconds
constexpr int kMaxLayer = 1'000'000'000;

class GraphReader {
 public:
  explicit GraphReader(const std::string& source) {
    spec_.source = source;
    spec_.engines.clear();
  }

  // Names of ops' tensors can't be looked up before `tensors` is read. Where a file has `ops` first,
  // they are skipped, and read in a second pass.
  void read(const std::string& text) {
    read_json_object(text, spec_.source, kExpected, handlers(true));
    check_header();
    if (!ops_skipped_) return;
    second_pass_ = true;
    read_json_object(text, spec_.source, kExpected, handlers(false));
  }

  GraphSpec take() { return std::move(spec_); }

  // A file of ranks: what stands beside them, and each rank's text.
  struct Ranks {
    std::string name, meta_json = "{}";
    std::vector<std::string> texts;
  };
  static Ranks read_ranks(const std::string& text, const std::string& source) {
    Ranks ranks;
    GraphReader top(source);
    JsonHandlers handlers;
    handlers.streamed = {"ranks"};
    handlers.member = [&](const std::string& key, const JsonValue& value) {
      const JsonAt at(source, key, value);
      if (key == "ranks")
        at.require_array();
      else if (key == "tensors" || key == "ops")
        at.fail("both `ranks` and `" + key + "`", "either one trace or one for each rank");
      else
        top.read_member(key, value);
    };
    handlers.item = [&](const std::string& key, std::size_t index, const JsonValue& value) {
      JsonAt(source, key, index, value).require_object("tensors and ops");
      ranks.texts.push_back(to_json(value));
    };
    read_json_object(text, source, kExpected, handlers);
    top.check_header();
    if (ranks.texts.empty()) throw InputError(source + ": ranks", "no ranks", "a trace for each NPU");
    ranks.name = top.spec_.name;
    ranks.meta_json = top.spec_.meta_json;
    return ranks;
  }

  static Graph read_rank(const Ranks& ranks, std::size_t index, const std::string& source) {
    GraphReader reader(fmt::format("{}: ranks[{}]", source, index));
    reader.format_seen_ = reader.version_seen_ = true;
    reader.spec_.name = ranks.name;
    reader.spec_.meta_json = ranks.meta_json;
    reader.read(ranks.texts[index]);
    return build_graph(reader.take());
  }

 private:
  void check_header() const {
    if (!format_seen_) throw InputError(spec_.source, "no \"format\"", "\"format\": " + in_quotes(kFormat));
    if (!version_seen_)
      throw InputError(spec_.source, "no \"version\"", fmt::format("\"version\": {}", kVersion));
  }

  JsonHandlers handlers(bool first_pass) {
    JsonHandlers handlers;
    handlers.streamed = {"tensors", "ops"};
    handlers.member = [this, first_pass](const std::string& key, const JsonValue& value) {
      if (first_pass) read_member(key, value);
    };
    handlers.item = [this](const std::string& key, std::size_t index, const JsonValue& value) {
      const JsonAt at(spec_.source, key, index, value);
      if (key == "tensors" && !second_pass_) read_tensor(at);
      if (key == "ops" && (tensors_seen_ || second_pass_)) read_op(at);
    };
    return handlers;
  }

  void read_member(const std::string& key, const JsonValue& value) {
    const JsonAt at(spec_.source, key, value);
    if (key == "format" || key == "version") {
      check_json_header(at, key, kFormat, kVersion);
      (key == "format" ? format_seen_ : version_seen_) = true;
    } else if (key == "name") {
      spec_.name = at.string();
    } else if (key == "meta") {
      at.require_object("anything in it");
      spec_.meta_json = to_json(value);
    } else if (key == "tensors") {
      at.require_array();
      tensors_seen_ = true;
    } else if (key == "ops") {
      at.require_array();
      ops_skipped_ = !tensors_seen_;
    } else if (key == "ranks") {
      at.fail("a trace of several ranks", "a trace of one rank (only `simulate` takes several)");
    } else {
      const std::string hint = format_seen_ ? "" : "; is this " + kExpected + "?";
      throw InputError(spec_.source, "the unknown key " + in_quotes(key),
                       one_of(key, {"format", "version", "name", "meta", "tensors", "ops"}) + hint);
    }
  }

  void read_tensor(const JsonAt& at) {
    at.require_object("name, bytes and kind");
    Tensor tensor;
    bool bytes_seen = false, kind_seen = false;
    std::optional<bool> persistent;
    for (std::size_t i = 0; i < at.size(); ++i) {
      const std::string& key = at.key(i);
      const JsonAt value = at.member(i);
      if (key == "name") {
        tensor.name = value.name();
      } else if (key == "bytes") {
        tensor.bytes = value.bytes();
        bytes_seen = true;
      } else if (key == "kind") {
        tensor.kind = read_kind(value);
        kind_seen = true;
      } else if (key == "persistent") {
        persistent = value.boolean();
      } else if (key == "initial") {
        tensor.initial = read_tier(value);
      } else {
        at.fail_unknown_key(i, {"name", "bytes", "kind", "persistent", "initial"});
      }
    }
    if (tensor.name.empty()) at.fail_missing("name");
    if (!bytes_seen) at.fail_missing("bytes");
    if (!kind_seen) at.fail_missing("kind");
    tensor.persistent = persistent.value_or(persistent_by_default(tensor.kind));
    add_name(at, tensor_index_, tensor.name, spec_.tensors, "tensors");
    spec_.tensors.push_back(std::move(tensor));
  }

  static TensorKind read_kind(const JsonAt& at) {
    if (const auto kind = tensor_kind_from(at.string())) return *kind;
    std::vector<std::string> names;
    for (TensorKind kind : kAllTensorKinds) names.push_back(to_string(kind));
    at.fail(one_of(at.string(), names));
  }

  static Tier read_tier(const JsonAt& at) {
    if (at.string() == "hbm") return Tier::kHbm;
    if (at.string() == "pool") return Tier::kPool;
    at.fail(one_of(at.string(), {"hbm", "pool"}));
  }

  void read_op(const JsonAt& at) {
    at.require_object("name, and duration_us or flops and/or hbm_bytes");
    Op op;
    std::string engine = "compute";
    for (std::size_t i = 0; i < at.size(); ++i) {
      const std::string& key = at.key(i);
      const JsonAt value = at.member(i);
      if (key == "engine")
        engine = value.name();
      else if (!read_op_demand(op, key, value) && !read_op_place(op, key, value))
        at.fail_unknown_key(
            i, {"name", "duration_us", "flops", "hbm_bytes", "reads", "writes", "engine", "after", "layer",
                "phase", "kernel", "workspace_bytes", "memory", "collective", "known_after"});
    }
    if (op.name.empty()) at.fail_missing("name");
    op.engine = engine_id(engine);
    add_name(at, op_index_, op.name, spec_.ops, "ops");
    spec_.ops.push_back(std::move(op));
  }

  // What the op asks of the machine.
  bool read_op_demand(Op& op, const std::string& key, const JsonAt& value) {
    if (key == "duration_us")
      op.duration = Seconds(value.number(kMicro));
    else if (key == "flops")
      op.flops = Flops(value.number());
    else if (key == "hbm_bytes")
      op.hbm_bytes = value.bytes();
    else if (key == "workspace_bytes")
      op.workspace = value.bytes();
    else if (key == "reads")
      op.reads = read_names<TensorId>(value, tensor_index_, spec_.tensors, "tensor of the trace");
    else if (key == "writes")
      op.writes = read_names<TensorId>(value, tensor_index_, spec_.tensors, "tensor of the trace");
    else if (key == "collective")
      op.collective = read_collective(value);
    else if (key == "memory")
      op.memory = read_tier(value);
    else
      return false;
    return true;
  }

  // Where it stands in the program.
  bool read_op_place(Op& op, const std::string& key, const JsonAt& value) {
    if (key == "name")
      op.name = value.name();
    else if (key == "after")
      op.after = read_names<OpId>(value, op_index_, spec_.ops, "earlier op");
    else if (key == "known_after")
      op.known_after = OpId(find(value, op_index_, spec_.ops, "earlier op"));
    else if (key == "layer")
      op.layer = value.count(kMaxLayer);
    else if (key == "phase")
      op.phase = value.string();
    else if (key == "kernel")
      op.kernel = value.string();
    else
      return false;
    return true;
  }

  static Collective read_collective(const JsonAt& at) {
    at.require_object("kind, bytes and group");
    Collective collective;
    bool bytes_seen = false;
    for (std::size_t i = 0; i < at.size(); ++i) {
      const std::string& key = at.key(i);
      const JsonAt value = at.member(i);
      if (key == "kind") {
        collective.kind = value.name();
      } else if (key == "bytes") {
        collective.bytes = value.bytes();
        bytes_seen = true;
      } else if (key == "group") {
        collective.group = read_group(value);
      } else {
        at.fail_unknown_key(i, {"kind", "bytes", "group"});
      }
    }
    if (collective.kind.empty()) at.fail_missing("kind");
    if (!bytes_seen) at.fail_missing("bytes");
    return collective;
  }

  // A name; a size or a list of ranks is kept as its JSON text.
  static std::string read_group(const JsonAt& at) {
    const JsonValue::Type type = at.value().type;
    if (type == JsonValue::Type::kNumber || type == JsonValue::Type::kArray) return to_json(at.value());
    return at.string();
  }

  template <class Id, class Things>
  static std::vector<Id> read_names(const JsonAt& at, const NameIndex& index, const Things& things,
                                    const char* what) {
    at.require_array();
    std::vector<Id> found;
    found.reserve(at.size());
    for (std::size_t i = 0; i < at.size(); ++i) found.push_back(Id(find(at.item(i), index, things, what)));
    return found;
  }

  template <class Things>
  static std::int32_t find(const JsonAt& at, const NameIndex& index, const Things& things, const char* what) {
    const std::int32_t found = index.find(at.string(), things);
    if (found >= 0) return found;
    NearestName nearest(at.string());
    for (const auto& thing : things) nearest.offer(thing.name);
    at.fail(in_quotes(at.string()) + ", which is no " + what,
            nearest.best().empty() ? std::string("the name of one")
                                   : in_quotes(nearest.best()) + " or another " + what);
  }

  template <class Things>
  static void add_name(const JsonAt& at, NameIndex& index, const std::string& name, const Things& things,
                       const char* list) {
    const std::int32_t other = index.add(name, things.size(), things);
    if (other < 0) return;
    at.fail(in_quotes(name) + fmt::format(", already the name of {}[{}]", list, other), "a unique name");
  }

  EngineId engine_id(const std::string& name) {
    for (std::size_t i = 0; i < spec_.engines.size(); ++i)
      if (spec_.engines[i] == name) return EngineId(i);
    spec_.engines.push_back(name);
    return EngineId(spec_.engines.size() - 1);
  }

  GraphSpec spec_;
  NameIndex tensor_index_, op_index_;
  bool format_seen_ = false, version_seen_ = false;
  bool tensors_seen_ = false, ops_skipped_ = false, second_pass_ = false;
};

// ---- writing

void append_key(std::string& out, const char* key) {
  if (out.back() != '{') out += ", ";
  out.append(1, '"').append(key).append("\": ");
}

void append_text(std::string& out, const char* key, const std::string& text) {
  append_key(out, key);
  append_json_string(out, text);
}

template <class Ids, class NameOf>
void append_names(std::string& out, const char* key, const Ids& ids, NameOf name_of) {
  if (ids.empty()) return;
  append_key(out, key);
  const char* separator = "[";
  for (auto id : ids) {
    out += std::exchange(separator, ", ");
    append_json_string(out, name_of(id));
  }
  out += ']';
}

void append_tensor(std::string& out, const Tensor& tensor) {
  out += '{';
  append_text(out, "name", tensor.name);
  append_key(out, "bytes");
  out += std::to_string(tensor.bytes.value);
  append_text(out, "kind", to_string(tensor.kind));
  if (tensor.persistent != persistent_by_default(tensor.kind)) {
    append_key(out, "persistent");
    out += tensor.persistent ? "true" : "false";
  }
  if (tensor.initial != Tier::kHbm) append_text(out, "initial", to_string(tensor.initial));
  out += '}';
}

void append_op_demand(std::string& out, const Op& op) {
  const auto number = [&](const char* key, const std::string& text) {
    append_key(out, key);
    out += text;
  };
  if (op.duration) number("duration_us", shortest_decimal(op.duration->value, -kMicro));
  if (op.flops) number("flops", shortest_decimal(op.flops->value));
  if (op.hbm_bytes) number("hbm_bytes", std::to_string(op.hbm_bytes->value));
  if (op.workspace != Bytes(0)) number("workspace_bytes", std::to_string(op.workspace.value));
  if (op.memory != Tier::kHbm) append_text(out, "memory", to_string(op.memory));
  if (!op.collective) return;
  append_key(out, "collective");
  out += '{';
  append_text(out, "kind", op.collective->kind);
  number("bytes", std::to_string(op.collective->bytes.value));
  if (!op.collective->group.empty()) append_text(out, "group", op.collective->group);
  out += '}';
}

void append_op(std::string& out, const Graph& graph, const Op& op) {
  const auto tensor_name = [&](TensorId t) -> const std::string& { return graph.tensor(t).name; };
  const auto op_name = [&](OpId o) -> const std::string& { return graph.op(o).name; };
  out += '{';
  append_text(out, "name", op.name);
  append_op_demand(out, op);
  append_names(out, "reads", op.reads, tensor_name);
  append_names(out, "writes", op.writes, tensor_name);
  const std::string& engine = graph.engines()[op.engine.index()];
  if (engine != "compute") append_text(out, "engine", engine);
  append_names(out, "after", op.after, op_name);
  if (op.known_after) append_text(out, "known_after", op_name(*op.known_after));
  if (op.layer >= 0) {
    append_key(out, "layer");
    out += std::to_string(op.layer);
  }
  if (!op.phase.empty()) append_text(out, "phase", op.phase);
  if (!op.kernel.empty()) append_text(out, "kernel", op.kernel);
  out += '}';
}

// One line, whatever the generator's spacing was.
std::string normalised_meta(const std::string& meta) {
  std::string out;
  JsonHandlers handlers;
  handlers.member = [&](const std::string&, const JsonValue& value) { out = to_json(value); };
  read_json_object("{\"meta\": " + (meta.empty() ? "{}" : meta) + "}", "meta", "a JSON object", handlers);
  return out;
}

}  // namespace

Graph parse_graph(const std::string& text, const std::string& source) {
  GraphReader reader(source);
  reader.read(text);
  return build_graph(reader.take());
}

Graph load_graph(const std::string& path) {
  return parse_graph(read_file(path, kExpected), source_name(path));
}

std::vector<Graph> parse_rank_graphs(const std::string& text, const std::string& source) {
  // Only a file of ranks has that key, but where it stands is not known before it is read.
  bool has_ranks = false;
  JsonHandlers look;
  look.streamed = {"ranks", "tensors", "ops"};
  look.member = [&](const std::string& key, const JsonValue&) { has_ranks |= key == "ranks"; };
  look.item = [](const std::string&, std::size_t, const JsonValue&) {};
  if (text.find("\"ranks\"") != std::string::npos) read_json_object(text, source, kExpected, look);
  std::vector<Graph> graphs;
  if (!has_ranks) {
    graphs.push_back(parse_graph(text, source));
    return graphs;
  }
  const GraphReader::Ranks ranks = GraphReader::read_ranks(text, source);
  for (std::size_t r = 0; r < ranks.texts.size(); ++r)
    graphs.push_back(GraphReader::read_rank(ranks, r, source));
  return graphs;
}

std::vector<Graph> load_rank_graphs(const std::string& path) {
  return parse_rank_graphs(read_file(path, kExpected), source_name(path));
}

std::string graph_to_json(const Graph& graph) {
  std::string out = fmt::format("{{\"format\": \"{}\", \"version\": {}, \"name\": ", kFormat, kVersion);
  append_json_string(out, graph.name());
  out += ", \"meta\": " + normalised_meta(graph.meta_json());
  out += ",\n \"tensors\": [";
  const char* separator = "\n  ";
  for (const Tensor& tensor : graph.tensors()) {
    out += std::exchange(separator, ",\n  ");
    append_tensor(out, tensor);
  }
  out += "],\n \"ops\": [";
  separator = "\n  ";
  for (const Op& op : graph.ops()) {
    out += std::exchange(separator, ",\n  ");
    append_op(out, graph, op);
  }
  return out + "]}\n";
}

}  // namespace hyperoffload
