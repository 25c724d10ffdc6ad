#include "sim/import/execution_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <unordered_set>

#include "sim/import/json_records.h"
#include "sim/import/trace_maker.h"
#include "sim/model/error.h"
#include "sim/model/nearest_name.h"

namespace hyperoffload {
namespace {

enum Field : std::size_t {
  kId,
  kName,
  kParent,
  kControl,
  kInputs,
  kOutputs,
  kAttributes,
  kRecordId,
  kThread,
  kSchema
};

std::vector<JsonField> fields() {
  return {{{"id"}},           {{"name"}},          {{"parent"}},      {{"ctrl_deps"}},
          {{"inputs"}, true}, {{"outputs"}, true}, {{"attrs"}, true}, {{"rf_id"}},
          {{"tid"}},          {{"op_schema"}}};
}

std::int64_t number_or(const JsonValue* value, std::int64_t otherwise) {
  if (!value || value->type != JsonValue::Type::kNumber) return otherwise;
  std::int64_t number = 0;
  const auto [end, error] =
      std::from_chars(value->text.data(), value->text.data() + value->text.size(), number);
  return error == std::errc() && end == value->text.data() + value->text.size() ? number : otherwise;
}

const JsonValue* member(const JsonValue& object, std::string_view key) {
  if (object.type != JsonValue::Type::kObject) return nullptr;
  for (std::size_t i = 0; i < object.keys.size(); ++i)
    if (object.keys[i] == key) return &object.items[i];
  return nullptr;
}

// For each argument of "name(Tensor(a!) self, int[2] size, *, Tensor? out=None) -> ...": is it changed in
// place?
std::vector<bool> changed_arguments(const std::string& schema) {
  std::vector<bool> changed;
  std::size_t i = schema.find('(');
  if (i == std::string::npos) return changed;
  int depth = 0;
  bool any = false, mark = false, star = false;
  for (++i; i < schema.size(); ++i) {
    const char c = schema[i];
    if (depth == 0 && (c == ',' || c == ')')) {
      if (any && !star) changed.push_back(mark);
      any = mark = star = false;
      if (c == ')') break;
      continue;
    }
    depth += c == '(' || c == '[' ? 1 : c == ')' || c == ']' ? -1 : 0;
    mark |= c == '!' && depth > 0;
    star |= c == '*' && !any;
    any |= c != ' ';
  }
  return changed;
}

// The tensors in a value, which may be a list of them.
void collect_tensors(const JsonValue& value, bool changed, std::vector<TensorUse>& uses) {
  if (value.type != JsonValue::Type::kArray) return;
  const bool tensor = value.items.size() == 6 && value.items[5].type == JsonValue::Type::kString &&
                      value.items[0].type == JsonValue::Type::kNumber;
  if (!tensor) {
    for (const JsonValue& item : value.items) collect_tensors(item, changed, uses);
    return;
  }
  const std::int64_t offset = number_or(&value.items[2], 0), elements = number_or(&value.items[3], 0),
                     element = number_or(&value.items[4], 0);
  const std::string& device = value.items[5].text;
  TensorUse use;
  use.storage = number_or(&value.items[1], 0);
  if (use.storage == 0 && elements == 0) return;  // an undefined tensor
  if (elements > 0 && (__builtin_add_overflow(offset, elements, &use.end_bytes) ||
                       __builtin_mul_overflow(use.end_bytes, element, &use.end_bytes) || use.end_bytes < 0))
    use.end_bytes = 0;
  if (__builtin_mul_overflow(elements, element, &use.bytes) || use.bytes < 0) use.bytes = 0;
  use.on_device = !device.empty() && device != "cpu" && device != "meta";
  use.changed = changed;
  uses.push_back(use);
}

class NodeReader {
 public:
  explicit NodeReader(TextStream& stream) : stream_(stream) {}

  ExecutionTrace read() {
    JsonRecordReader reader;
    reader.arrays = {"nodes"};
    reader.fields = fields();
    reader.record = [this](const std::string&, std::size_t index, const JsonRecord& record) {
      node(index, record);
    };
    reader.member = [this](const std::string& key, const JsonValue& value) {
      if (key == "schema") trace_.schema = value.text;
      members_.add(key, value);
    };
    read_json_records(stream_, reader);
    if (trace_.nodes.empty())
      throw InputError(stream_.source(), members_.without_records("nodes"), stream_.expected());
    arrange();
    return std::move(trace_);
  }

 private:
  void node(std::size_t index, const JsonRecord& r) {
    ExecutionNode node;
    const auto field = [&](Field f) { return r.has(f) ? &r.value(f) : nullptr; };
    node.id = number_or(field(kId), -1);
    if (node.id < 0)
      throw InputError(fmt::format("{}: nodes[{}]", stream_.source(), index), "a node without an id",
                       "a whole number");
    if (r.value(kControl).type == JsonValue::Type::kArray)
      throw InputError(fmt::format("{}: nodes[{}].ctrl_deps", stream_.source(), index), "an array",
                       "the id of the parent");
    node.parent = number_or(field(kParent), number_or(field(kControl), -1));
    node.name = trace_.names.number(r.text(kName));
    node.record_id = number_or(field(kRecordId), 0);
    node.thread = number_or(field(kThread), 0);
    std::string schema = r.text(kSchema);
    if (r.has(kAttributes))
      for (const JsonValue& attribute : r.value(kAttributes).items) take_attribute(attribute, node, schema);
    node.is_operator = !schema.empty();
    const std::vector<bool> changed = changed_arguments(schema);
    if (const JsonValue* values = field(kInputs)) collect(*values, changed, node.inputs);
    if (const JsonValue* values = field(kOutputs)) collect(*values, {}, node.outputs);
    trace_.nodes.push_back(std::move(node));
  }

  static void take_attribute(const JsonValue& attribute, ExecutionNode& node, std::string& schema) {
    const JsonValue* name = member(attribute, "name");
    const JsonValue* value = member(attribute, "value");
    if (!name || !value) return;
    if (name->text == "rf_id") node.record_id = number_or(value, 0);
    if (name->text == "tid") node.thread = number_or(value, 0);
    if (name->text == "op_schema") schema = value->text;
  }

  // One array of values, or {values, shapes, types}.
  static void collect(const JsonValue& inputs, const std::vector<bool>& changed,
                      std::vector<TensorUse>& uses) {
    const JsonValue* values = inputs.type == JsonValue::Type::kObject ? member(inputs, "values") : &inputs;
    if (!values || values->type != JsonValue::Type::kArray) return;
    for (std::size_t i = 0; i < values->items.size(); ++i)
      collect_tensors(values->items[i], i < changed.size() && changed[i], uses);
  }

  // The place of a node, sorted by id; nodes.size() if there is none.
  std::size_t place_of(std::int64_t id) const {
    const auto found = std::lower_bound(trace_.nodes.begin(), trace_.nodes.end(), id,
                                        [](const ExecutionNode& node, std::int64_t wanted) { return node.id < wanted; });
    return found != trace_.nodes.end() && found->id == id ? static_cast<std::size_t>(found - trace_.nodes.begin())
                                                          : trace_.nodes.size();
  }

  void make_forest() {
    std::vector<ExecutionNode>& nodes = trace_.nodes;
    std::set<std::int64_t> absent;
    std::size_t absent_uses = 0, own = 0, cycles = 0;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      ExecutionNode& node = nodes[i];
      if (node.parent == node.id) {
        own += i > 0;
        node.parent = -1;
      } else if (node.parent >= 0 && place_of(node.parent) == nodes.size()) {
        absent.insert(node.parent);
        ++absent_uses;
        node.parent = -1;
      }
    }
    std::vector<std::size_t> walk_of(nodes.size());  // by which walk up a node was reached; 0: by none
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      std::size_t at = i;
      while (walk_of[at] == 0) {
        walk_of[at] = i + 1;
        if (nodes[at].parent >= 0) at = place_of(nodes[at].parent);
      }
      if (walk_of[at] != i + 1 || nodes[at].parent < 0) continue;
      std::size_t least = at;
      for (std::size_t next = place_of(nodes[at].parent); next != at; next = place_of(nodes[next].parent))
        least = std::min(least, next);
      nodes[least].parent = -1;
      ++cycles;
    }
    remark_parents(absent_uses, absent.size(), own, cycles);
  }

  void remark_parents(std::size_t absent_uses, std::size_t absent, std::size_t own, std::size_t cycles) {
    if (absent > 0)
      trace_.remarks.push_back(fmt::format(
          "{} {} {} that {} not in the file: taken as roots", count_of(absent_uses, "node"),
          absent_uses == 1 ? "names" : "name", count_of(absent, "parent"), absent == 1 ? "is" : "are"));
    if (own > 0)
      trace_.remarks.push_back(fmt::format("{} that {} the node itself {} left out", count_of(own, "parent"),
                                           own == 1 ? "is" : "are", own == 1 ? "is" : "are"));
    if (cycles > 0)
      trace_.remarks.push_back(fmt::format("{} that close{} a cycle {} left out", count_of(cycles, "parent"),
                                           cycles == 1 ? "s" : "", cycles == 1 ? "is" : "are"));
  }

  void arrange() {
    std::stable_sort(trace_.nodes.begin(), trace_.nodes.end(),
                     [](const ExecutionNode& a, const ExecutionNode& b) { return a.id < b.id; });
    for (std::size_t i = 1; i < trace_.nodes.size(); ++i)
      if (trace_.nodes[i].id == trace_.nodes[i - 1].id)
        throw InputError(stream_.source(), fmt::format("the node id {} twice", trace_.nodes[i].id),
                         "each once");
    make_forest();
    std::unordered_set<std::int64_t> parents;
    for (const ExecutionNode& node : trace_.nodes) parents.insert(node.parent);
    for (ExecutionNode& node : trace_.nodes) node.leaf = parents.count(node.id) == 0;
  }

  TextStream& stream_;
  ExecutionTrace trace_;
  TopMembers members_;
};

}  // namespace

ExecutionTrace read_execution_trace(TextStream& stream) { return NodeReader(stream).read(); }

// A node whose descendants are being walked.
struct StorageLives::Open {
  std::size_t node = 0;
  std::vector<std::pair<TensorUse, int>> inputs;  // on the device, with their lives
};

int StorageLives::life_of(const TensorUse& use) {
  const auto known = current_.find(use.storage);
  if (known != current_.end()) {
    StorageLife& life = lives_[static_cast<std::size_t>(known->second)];
    life.bytes = std::max(life.bytes, use.end_bytes);
    return known->second;
  }
  const auto [place, fresh] = before_.try_emplace(use.storage, static_cast<int>(lives_.size()));
  if (fresh) {
    lives_.push_back({use.storage, 0, true});
    written_.push_back(true);
  }
  current_[use.storage] = place->second;
  StorageLife& life = lives_[static_cast<std::size_t>(place->second)];
  life.bytes = std::max(life.bytes, use.end_bytes);
  return place->second;
}

void StorageLives::finish(const ExecutionTrace& trace, const Open& open, bool acts,
                          const std::function<void(std::size_t, NodeAccess)>& visit) {
  const ExecutionNode& node = trace.nodes[open.node];
  NodeAccess access;
  const auto is_input = [&](std::int64_t storage) {
    return std::any_of(open.inputs.begin(), open.inputs.end(),
                       [&](const auto& input) { return input.first.storage == storage; });
  };
  for (const TensorUse& use : node.outputs) {
    if (!use.on_device || is_input(use.storage)) continue;                 // a view, or changed in place
    if (!acts && !node.leaf && current_.count(use.storage) > 0) continue;  // made by a descendant
    const auto maker = made_by_.find(use.storage);
    const bool by_descendant = maker != made_by_.end() && maker->second > node.id && !node.leaf;
    if (!by_descendant) {
      current_[use.storage] = static_cast<int>(lives_.size());
      lives_.push_back({use.storage, 0, false});
      written_.push_back(false);
      made_by_[use.storage] = node.id;
    }
    access.writes.push_back(life_of(use));
  }
  if (!acts) return;
  for (const auto& [use, life] : open.inputs) {
    const auto l = static_cast<std::size_t>(life);
    if (use.changed) access.writes.push_back(life);
    if (!use.changed || written_[l]) access.reads.push_back(life);
  }
  for (const int life : access.writes) written_[static_cast<std::size_t>(life)] = true;
  visit(open.node, std::move(access));
}

void StorageLives::walk(const ExecutionTrace& trace, const std::function<bool(std::size_t)>& acts,
                        const std::function<void(std::size_t, NodeAccess)>& visit) {
  current_.clear();
  made_by_.clear();
  std::unordered_map<std::int64_t, std::vector<Open>> threads;  // open nodes of each thread, outermost first
  const auto close_until = [&](std::vector<Open>& open, std::int64_t parent) {
    while (!open.empty() && trace.nodes[open.back().node].id != parent) {
      finish(trace, open.back(), acts(open.back().node), visit);
      open.pop_back();
    }
  };
  std::vector<std::int64_t> order;  // threads, as they appear
  for (std::size_t i = 0; i < trace.nodes.size(); ++i) {
    const ExecutionNode& node = trace.nodes[i];
    auto [place, fresh] = threads.try_emplace(node.thread);
    if (fresh) order.push_back(node.thread);
    close_until(place->second, node.parent);
    Open open;
    open.node = i;
    for (const TensorUse& use : node.inputs)
      if (use.on_device) open.inputs.emplace_back(use, life_of(use));
    place->second.push_back(std::move(open));
  }
  for (const std::int64_t thread : order) close_until(threads[thread], -1);
}

}  // namespace hyperoffload
