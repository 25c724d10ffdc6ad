// The plan as JSON: one action a line. Names are those of the graph it belongs to.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "sim/model/decimal.h"
#include "sim/model/error.h"
#include "sim/model/json_reader.h"
#include "sim/model/name_index.h"
#include "sim/model/nearest_name.h"
#include "sim/model/plan.h"
#include "sim/model/plan_order.h"
#include "sim/model/read_file.h"

namespace hyperoffload {
namespace {

const std::string kFormat = "hyperoffload-plan";
constexpr int kVersion = 1;
const std::string kExpected = "a plan";
const std::string kOrder = "each op once, behind all that it depends on";

template <class Things>
NameIndex index_of(const Things& things) {
  NameIndex index;
  for (std::size_t i = 0; i < things.size(); ++i) index.add(things[i].name, i, things);
  return index;
}

class PlanReader {
 public:
  PlanReader(const std::string& source, const Graph& graph)
      : source_(source),
        graph_(graph),
        tensor_index_(index_of(graph.tensors())),
        op_index_(index_of(graph.ops())) {}

  Plan read(const std::string& text) {
    JsonHandlers handlers;
    handlers.streamed = {"actions", "initial_pool", "order", "addresses"};
    handlers.member = [this](const std::string& key, const JsonValue& value) { read_member(key, value); };
    handlers.item = [this](const std::string& key, std::size_t index, const JsonValue& value) {
      const JsonAt at(source_, key, index, value);
      if (key == "actions")
        plan_.actions.push_back(read_action(at));
      else if (key == "initial_pool")
        read_initial(at);
      else if (key == "addresses")
        plan_.addresses.push_back(read_address(at));
      else
        plan_.order.push_back(op(at));
    };
    read_json_object(text, source_, kExpected, handlers);
    if (!format_seen_) throw InputError(source_, "no \"format\"", "\"format\": " + in_quotes(kFormat));
    if (!version_seen_) throw InputError(source_, "no \"version\"", fmt::format("\"version\": {}", kVersion));
    if (!actions_seen_) throw InputError(source_, "no \"actions\"", "a list of actions (it may be empty)");
    std::sort(plan_.initial_pool.begin(), plan_.initial_pool.end());
    plan_.initial_pool.erase(std::unique(plan_.initial_pool.begin(), plan_.initial_pool.end()),
                             plan_.initial_pool.end());
    if (order_seen_) check_order();
    check_addresses();
    return std::move(plan_);
  }

 private:
  void read_member(const std::string& key, const JsonValue& value) {
    const JsonAt at(source_, key, value);
    if (key == "format" || key == "version") {
      check_json_header(at, key, kFormat, kVersion);
      (key == "format" ? format_seen_ : version_seen_) = true;
    } else if (key == "actions" || key == "initial_pool" || key == "order" || key == "addresses") {
      at.require_array();
      if (key == "actions") actions_seen_ = true;
      if (key == "order") order_seen_ = true;
    } else if (key == "prediction") {
      plan_.prediction = read_prediction(at);
    } else if (key == "bound") {
      plan_.bound = read_bound(at);
    } else if (key == "arena_bytes") {
      plan_.arena = at.bytes();
    } else if (key == "room_bytes") {
      plan_.room = at.bytes();
    } else {
      const std::string hint = format_seen_ ? "" : "; is this " + kExpected + "?";
      throw InputError(
          source_, "the unknown key " + in_quotes(key),
          one_of(key, {"format", "version", "actions", "initial_pool", "order", "prediction", "bound", "addresses",
                       "arena_bytes", "room_bytes"}) +
              hint);
    }
  }

  Action read_action(const JsonAt& at) const {
    at.require_object("kind, tensor and after_op");
    Action action;
    bool kind_seen = false;
    std::size_t range_at = at.size(), offset_at = at.size();
    for (std::size_t i = 0; i < at.size(); ++i) {
      const std::string& key = at.key(i);
      const JsonAt value = at.member(i);
      if (key == "kind") {
        action.kind = read_kind(value);
        kind_seen = true;
      } else if (key == "tensor") {
        action.tensor = tensor(value);
      } else if (key == "after_op") {
        if (!value.is_null()) action.after_op = op(value);
      } else if (key == "before_op") {
        if (!value.is_null()) action.before_op = op(value);
      } else if (key == "range_bytes") {
        range_at = i;
      } else if (key == "iteration") {
        action.scope = read_scope(value);
      } else if (key == "offset_bytes") {
        action.offset = value.bytes();
        offset_at = i;
      } else {
        at.fail_unknown_key(
            i, {"kind", "tensor", "after_op", "before_op", "range_bytes", "iteration", "offset_bytes"});
      }
    }
    if (!kind_seen) at.fail_missing("kind");
    if (action.offset && action.kind != ActionKind::kPrefetch)
      at.member(offset_at).fail(std::string("an address for a ") + to_string(action.kind), "a prefetch");
    if (action.tensor.is_none()) at.fail_missing("tensor");
    action.to = graph_.tensor(action.tensor).bytes;
    if (range_at < at.size()) read_range(at.member(range_at), action);
    return action;
  }

  void read_range(const JsonAt& at, Action& action) const {
    at.require_array();
    if (at.size() != 2) at.fail(fmt::format("{} numbers", at.size()), "[from, to)");
    const Bytes size = action.to;
    const Bytes from = at.item(0).bytes(), to = at.item(1).bytes();
    if (from >= to || to > size)
      at.fail(fmt::format("[{}, {})", from.value, to.value),
              fmt::format("0 <= from < to <= {}, the size of {}", size.value,
                          in_quotes(graph_.tensor(action.tensor).name)));
    action.from = from;
    action.to = to;
  }

  Address read_address(const JsonAt& at) const {
    at.require_object("tensor, op or both, and offset_bytes");
    Address address;
    bool offset_seen = false;
    for (std::size_t i = 0; i < at.size(); ++i) {
      const JsonAt value = at.member(i);
      if (at.key(i) == "tensor") {
        address.tensor = tensor(value);
      } else if (at.key(i) == "op") {
        address.op = op(value);
      } else if (at.key(i) == "offset_bytes") {
        address.offset = value.bytes();
        offset_seen = true;
      } else {
        at.fail_unknown_key(i, {"tensor", "op", "offset_bytes"});
      }
    }
    if (!offset_seen) at.fail_missing("offset_bytes");
    if (address.tensor.is_none() && address.op.is_none()) at.fail("neither \"tensor\" nor \"op\"", "one of them");
    return address;
  }

  void check_addresses() const {
    if (!plan_.arena && !plan_.addresses.empty())
      throw InputError(source_, "\"addresses\" without \"arena_bytes\"", "both or neither");
    std::set<std::pair<TensorId, OpId>> seen;
    for (std::size_t i = 0; i < plan_.addresses.size(); ++i)
      if (!seen.emplace(plan_.addresses[i].tensor, plan_.addresses[i].op).second)
        throw InputError(fmt::format("{}: addresses[{}]", source_, i), "an address that was given before",
                         "one for each tensor and op");
  }

  static ActionKind read_kind(const JsonAt& at) {
    std::vector<std::string> names;
    for (ActionKind kind : {ActionKind::kPrefetch, ActionKind::kStore, ActionKind::kDetach}) {
      if (at.string() == to_string(kind)) return kind;
      names.push_back(to_string(kind));
    }
    at.fail(one_of(at.string(), names));
  }

  static IterationScope read_scope(const JsonAt& at) {
    if (at.string() == "first") return IterationScope::kFirst;
    if (at.string() == "later") return IterationScope::kLater;
    at.fail(one_of(at.string(), {"first", "later"}));
  }

  void read_initial(const JsonAt& at) {
    const TensorId t = tensor(at);
    if (!graph_.tensor(t).persistent)
      at.fail(in_quotes(at.string()) + ", which is not persistent", "a persistent tensor");
    plan_.initial_pool.push_back(t);
  }

  // All `names` are needed, in the order of the results.
  static std::vector<double> read_numbers(const JsonAt& at, const std::vector<std::string>& names,
                                          const std::vector<std::string>& others = {}) {
    std::string list;
    for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
    at.require_object(list);
    std::vector<std::optional<double>> numbers(names.size());
    for (std::size_t i = 0; i < at.size(); ++i) {
      const auto it = std::find(names.begin(), names.end(), at.key(i));
      if (it != names.end()) {
        // Engines that share HBM may end earlier than ideally: their least stall can be below 0.
        numbers[static_cast<std::size_t>(it - names.begin())] =
            *it == "stall_s" ? at.member(i).signed_number() : at.member(i).number();
      } else if (std::find(others.begin(), others.end(), at.key(i)) == others.end()) {
        std::vector<std::string> valid = names;
        valid.insert(valid.end(), others.begin(), others.end());
        at.fail_unknown_key(i, valid);
      }
    }
    std::vector<double> values;
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (!numbers[i]) at.fail_missing(names[i]);
      values.push_back(*numbers[i]);
    }
    return values;
  }

  static Bytes bytes_member(const JsonAt& at, const std::string& name) {
    for (std::size_t i = 0; i < at.size(); ++i)
      if (at.key(i) == name) return at.member(i).bytes();
    return Bytes(0);
  }

  static Prediction read_prediction(const JsonAt& at) {
    const std::vector<double> n = read_numbers(
        at, {"iteration_s", "first_iteration_s", "total_s", "ideal_s", "hbm_peak_bytes", "pool_peak_bytes"});
    return {Seconds(n[0]),
            Seconds(n[1]),
            Seconds(n[2]),
            Seconds(n[3]),
            bytes_member(at, "hbm_peak_bytes"),
            bytes_member(at, "pool_peak_bytes")};
  }

  static Bound read_bound(const JsonAt& at) {
    const std::vector<double> n = read_numbers(at, {"hbm_peak_bytes", "stall_s"}, {"method", "order", "steady_stall_s"});
    Bound bound;
    bound.hbm_peak = bytes_member(at, "hbm_peak_bytes");
    bound.stall = Seconds(n[1]);
    for (std::size_t i = 0; i < at.size(); ++i) {
      if (at.key(i) == "method") bound.method = at.member(i).name();
      if (at.key(i) == "order") bound.order = at.member(i).name();
      if (at.key(i) == "steady_stall_s") bound.steady_stall = Seconds(at.member(i).number());
    }
    if (bound.method.empty()) at.fail_missing("method");
    return bound;
  }

  TensorId tensor(const JsonAt& at) const {
    return TensorId(find(at, tensor_index_, graph_.tensors(), "tensor"));
  }
  OpId op(const JsonAt& at) const { return OpId(find(at, op_index_, graph_.ops(), "op")); }

  template <class Things>
  static std::int32_t find(const JsonAt& at, const NameIndex& index, const Things& things,
                           const std::string& what) {
    if (const std::int32_t found = index.find(at.string(), things); found >= 0) return found;
    NearestName nearest(at.string());
    for (const auto& thing : things) nearest.offer(thing.name);
    at.fail(in_quotes(at.string()) + ", which is no " + what + " of the trace",
            nearest.best().empty() ? "the name of one" : in_quotes(nearest.best()) + " or another " + what);
  }

  // All ops, and no dependency the other way round.
  void check_order() const {
    if (plan_.order.empty()) throw InputError(source_ + ": order", "no ops", kOrder);
    const std::vector<Violation> broken = hyperoffload::check_order(graph_, plan_);
    if (!broken.empty()) throw InputError(source_, "that " + broken.front().message, kOrder);
  }

  const std::string& source_;
  const Graph& graph_;
  const NameIndex tensor_index_, op_index_;
  Plan plan_;
  bool format_seen_ = false, version_seen_ = false, actions_seen_ = false, order_seen_ = false;
};

// ---- writing

template <class Ids, class NameOf>
void append_names(std::string& out, const char* key, const Ids& ids, NameOf name_of) {
  out += fmt::format(",\n \"{}\": [", key);
  const char* separator = "\n  ";
  for (auto id : ids) {
    out += std::exchange(separator, ",\n  ");
    append_json_string(out, name_of(id));
  }
  out += ']';
}

void append_action(std::string& out, const Graph& graph, const Action& action) {
  const Tensor& tensor = graph.tensor(action.tensor);
  out += fmt::format("{{\"kind\": \"{}\", \"tensor\": ", to_string(action.kind));
  append_json_string(out, tensor.name);
  out += ", \"after_op\": ";
  if (action.after_op.is_none())
    out += "null";
  else
    append_json_string(out, graph.op(action.after_op).name);
  if (!action.before_op.is_none()) {
    out += ", \"before_op\": ";
    append_json_string(out, graph.op(action.before_op).name);
  }
  if (action.from != Bytes(0) || action.to != tensor.bytes)
    out += fmt::format(", \"range_bytes\": [{}, {}]", action.from.value, action.to.value);
  if (action.scope != IterationScope::kEvery)
    out += fmt::format(", \"iteration\": \"{}\"", action.scope == IterationScope::kFirst ? "first" : "later");
  if (action.offset) out += fmt::format(", \"offset_bytes\": {}", action.offset->value);
  out += '}';
}

void append_addresses(std::string& out, const Graph& graph, const Plan& plan) {
  out += ",\n \"addresses\": [";
  const char* separator = "\n  ";
  for (const Address& a : plan.addresses) {
    out += std::exchange(separator, ",\n  ");
    out += '{';
    if (!a.tensor.is_none()) {
      out += "\"tensor\": ";
      append_json_string(out, graph.tensor(a.tensor).name);
      out += ", ";
    }
    if (!a.op.is_none()) {
      out += "\"op\": ";
      append_json_string(out, graph.op(a.op).name);
      out += ", ";
    }
    out += fmt::format("\"offset_bytes\": {}}}", a.offset.value);
  }
  out += fmt::format("],\n \"arena_bytes\": {}", plan.arena->value);
}

std::string prediction_json(const Prediction& p) {
  return fmt::format(
      "{{\"iteration_s\": {}, \"first_iteration_s\": {}, \"total_s\": {}, \"ideal_s\": {}, "
      "\"hbm_peak_bytes\": {}, "
      "\"pool_peak_bytes\": {}}}",
      shortest_decimal(p.iteration.value), shortest_decimal(p.first_iteration.value),
      shortest_decimal(p.total.value), shortest_decimal(p.ideal.value), p.hbm_peak.value, p.pool_peak.value);
}

std::string bound_json(const Bound& bound) {
  std::string out =
      fmt::format("{{\"hbm_peak_bytes\": {}, \"stall_s\": {}, \"method\": ", bound.hbm_peak.value,
                  shortest_decimal(bound.stall.value));
  append_json_string(out, bound.method);
  out += ", \"order\": ";
  append_json_string(out, bound.order);
  if (bound.steady_stall) out += fmt::format(", \"steady_stall_s\": {}", shortest_decimal(bound.steady_stall->value));
  return out + "}";
}

}  // namespace

Plan parse_plan(const std::string& text, const std::string& source, const Graph& graph) {
  return PlanReader(source, graph).read(text);
}

Plan load_plan(const std::string& path, const Graph& graph) {
  return parse_plan(read_file(path, kExpected), source_name(path), graph);
}

std::string plan_to_json(const Plan& plan, const Graph& graph) {
  std::string out = fmt::format("{{\"format\": \"{}\", \"version\": {},\n \"actions\": [", kFormat, kVersion);
  const char* separator = "\n  ";
  for (const Action& action : plan.actions) {
    out += std::exchange(separator, ",\n  ");
    append_action(out, graph, action);
  }
  out += ']';
  append_names(out, "initial_pool", plan.initial_pool,
               [&](TensorId t) -> const std::string& { return graph.tensor(t).name; });
  if (!plan.order.empty())
    append_names(out, "order", plan.order, [&](OpId o) -> const std::string& { return graph.op(o).name; });
  if (plan.prediction) out += ",\n \"prediction\": " + prediction_json(*plan.prediction);
  if (plan.bound) out += ",\n \"bound\": " + bound_json(*plan.bound);
  if (plan.arena) append_addresses(out, graph, plan);
  if (plan.room) out += fmt::format(",\n \"room_bytes\": {}", plan.room->value);
  return out + "}\n";
}

}  // namespace hyperoffload
