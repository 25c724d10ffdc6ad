#include "sim/export/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

#include "sim/model/error.h"
#include "sim/model/json_reader.h"
#include "sim/model/nearest_name.h"

namespace hyperoffload {
namespace {

const std::string kExpected = "a plan, or hyper-parallel's schedule";
const char* kCopyIn = "COPY_H2D";
const char* kCopyOut = "COPY_D2H";
const char* kRelease = "RELEASE_DEVICE";
const char* kReleaseCopy = "RELEASE_HOST";

std::optional<std::int64_t> whole(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value >= 0 ? std::optional(value)
                                                                                : std::nullopt;
}

// The storage id of each tensor: N where all are called "storageN", else their places.
std::vector<std::int64_t> storage_ids(const Graph& graph) {
  const std::string prefix = "storage";
  std::vector<std::int64_t> ids;
  for (const Tensor& tensor : graph.tensors()) {
    const auto id = tensor.name.starts_with(prefix)
                        ? whole(std::string_view(tensor.name).substr(prefix.size()))
                        : std::nullopt;
    if (!id) break;
    ids.push_back(*id);
  }
  if (ids.size() == graph.tensors().size()) return ids;
  ids.clear();
  for (std::size_t i = 0; i < graph.tensors().size(); ++i) ids.push_back(static_cast<std::int64_t>(i));
  return ids;
}

OpId last_access(const Graph& graph, TensorId t) {
  return graph.accesses(t).empty() ? OpId::none() : graph.accesses(t).back().op;
}

// Where an action stands: before or behind an op.
struct Place {
  std::size_t op = 0;
  bool pre = false;
};

Place place_of(const Action& action, const Graph& graph) {
  if (action.after_op.is_none()) return {0, true};
  const std::size_t op = action.after_op.index();
  if (action.kind != ActionKind::kPrefetch || op + 1 == graph.ops().size()) return {op, false};
  return {op + 1, true};
}

class ScheduleWriter {
 public:
  ScheduleWriter(const Plan& plan, const Graph& graph)
      : plan_(plan),
        graph_(graph),
        ids_(storage_ids(graph)),
        pre_(graph.ops().size()),
        post_(graph.ops().size()) {}

  Exported write() {
    for (std::size_t i = 0; i < plan_.actions.size(); ++i) {
      const Place place = place_of(plan_.actions[i], graph_);
      (place.pre ? pre_ : post_)[place.op].push_back(i);
    }
    in_order_ = read_order() == plan_order();
    std::string text =
        "{\"pre\": " + lists(pre_, true) + ",\n \"post\": " + lists(post_, false) + ",\n \"storages\": {";
    for (std::size_t t = 0; t < ids_.size(); ++t) {
      text += fmt::format("{}\"{}\": ", t > 0 ? ", " : "", ids_[t]);
      append_json_string(text, graph_.tensors()[t].name);
    }
    text += "}";
    if (!plan_.initial_pool.empty())
      text += ",\n \"initial_pool\": " +
              numbers(plan_.initial_pool, [this](TensorId t) { return ids_[t.index()]; });
    if (!plan_.order.empty())
      text += ",\n \"order\": " +
              numbers(plan_.order, [](OpId o) { return static_cast<std::int64_t>(o.index()); });
    return {text + "}\n", remarks()};
  }

 private:
  std::vector<std::size_t> read_order() const {
    std::vector<std::size_t> order;
    for (std::size_t op = 0; op < pre_.size(); ++op)
      for (const auto* list : {&pre_[op], &post_[op]}) order.insert(order.end(), list->begin(), list->end());
    return order;
  }
  std::vector<std::size_t> plan_order() const {
    std::vector<std::size_t> order(plan_.actions.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    return order;
  }

  template <class Ids, class Number>
  static std::string numbers(const Ids& ids, Number number) {
    std::string text = "[";
    for (std::size_t i = 0; i < ids.size(); ++i)
      text += fmt::format("{}{}", i > 0 ? ", " : "", number(ids[i]));
    return text + "]";
  }

  std::string lists(const std::vector<std::vector<std::size_t>>& places, bool pre) const {
    std::map<std::size_t, std::vector<std::string>> ops;
    for (std::size_t op = 0; op < places.size(); ++op)
      for (const std::size_t i : places[op]) ops[op].push_back(action_text(op, i));
    if (!pre) add_deaths(ops);
    std::string text = "{";
    for (const auto& [op, actions] : ops) {
      text += fmt::format("{}\n  \"{}\": [", text.size() > 1 ? "," : "", op);
      for (std::size_t i = 0; i < actions.size(); ++i) text += (i > 0 ? ",\n    " : "") + actions[i];
      text += "]";
    }
    return text + "}";
  }

  std::string begin(std::size_t op, TensorId tensor, const char* kind) const {
    return fmt::format("{{\"op_id\": {}, \"storage_id\": {}, \"kind\": \"{}\"", op, ids_[tensor.index()],
                       kind);
  }

  std::string action_text(std::size_t op, std::size_t i) const {
    const Action& a = plan_.actions[i];
    std::string text = begin(op, a.tensor,
                             a.kind == ActionKind::kPrefetch ? kCopyIn
                             : a.kind == ActionKind::kStore  ? kCopyOut
                                                             : kRelease);
    if (!a.before_op.is_none()) text += fmt::format(", \"before_op\": {}", a.before_op.index());
    if (a.bytes() != graph_.tensor(a.tensor).bytes)
      text += fmt::format(", \"range_bytes\": [{}, {}]", a.from.value, a.to.value);
    if (a.scope != IterationScope::kEvery)
      text += a.scope == IterationScope::kFirst ? ", \"iteration\": \"first\"" : ", \"iteration\": \"later\"";
    if (!in_order_) text += fmt::format(", \"position\": {}", i);
    return text + "}";
  }

  void add_deaths(std::map<std::size_t, std::vector<std::string>>& ops) const {
    std::vector<bool> stored(graph_.tensors().size());
    for (const Action& action : plan_.actions)
      stored[action.tensor.index()] = stored[action.tensor.index()] || action.kind == ActionKind::kStore;
    for (std::size_t i = 0; i < graph_.tensors().size(); ++i) {
      const TensorId t(i);
      const OpId last = last_access(graph_, t);
      if (graph_.tensor(t).persistent || last.is_none()) continue;
      ops[last.index()].push_back(begin(last.index(), t, kRelease) + "}");
      if (stored[i]) ops[last.index()].push_back(begin(last.index(), t, kReleaseCopy) + "}");
    }
  }

  std::vector<std::string> remarks() const {
    std::vector<std::string> remarks;
    std::size_t pieces = 0, scoped = 0;
    for (const Action& a : plan_.actions) {
      pieces += a.bytes() != graph_.tensor(a.tensor).bytes;
      scoped += a.scope != IterationScope::kEvery;
    }
    const std::string ours = ": under a key that hyper-parallel doesn't read";
    if (pieces > 0) remarks.push_back(fmt::format("{} actions move a piece of a storage{}", pieces, ours));
    if (scoped > 0)
      remarks.push_back(
          fmt::format("{} actions belong to the first or to later iterations alone{}", scoped, ours));
    if (!plan_.initial_pool.empty())
      remarks.push_back(fmt::format("{} storages start in the pool{}", plan_.initial_pool.size(), ours));
    if (!plan_.order.empty()) remarks.push_back("the ops have an order of their own" + ours);
    if (!in_order_)
      remarks.push_back("the transfers' queues don't follow the order of the ops: \"position\" keeps it" +
                        ours);
    if (graph_.engines().size() > 1) remarks.push_back("ops of several engines are one sequence there");
    return remarks;
  }

  const Plan& plan_;
  const Graph& graph_;
  std::vector<std::int64_t> ids_;
  std::vector<std::vector<std::size_t>> pre_, post_;  // places of actions in the plan, of each op
  bool in_order_ = true;
};

class ScheduleReader {
 public:
  ScheduleReader(const std::string& source, const Graph& graph) : source_(source), graph_(graph) {
    const std::vector<std::int64_t> ids = storage_ids(graph);
    for (std::size_t t = 0; t < ids.size(); ++t) tensors_[ids[t]] = TensorId(t);
  }

  Plan read(const std::string& text) {
    JsonHandlers handlers;
    handlers.member = [this](const std::string& key, const JsonValue& value) {
      member(key, JsonAt(source_, key, value));
    };
    read_json_object(text, source_, kExpected, handlers);
    if (!seen_) throw InputError(source_, "neither \"pre\" nor \"post\"", kExpected);
    std::stable_sort(placed_.begin(), placed_.end(), [](const Placed& a, const Placed& b) {
      if (a.position && b.position) return *a.position < *b.position;
      return a.place.op != b.place.op ? a.place.op < b.place.op : a.place.pre && !b.place.pre;
    });
    for (const Placed& placed : placed_) plan_.actions.push_back(placed.action);
    return std::move(plan_);
  }

 private:
  struct Placed {
    Place place;
    std::optional<std::int64_t> position;
    Action action;
  };

  void member(const std::string& key, const JsonAt& at) {
    if (key == "pre" || key == "post") {
      seen_ = true;
      at.require_object("ops and their actions");
      for (std::size_t i = 0; i < at.size(); ++i) {
        const auto op = whole(at.key(i));
        if (!op || *op >= static_cast<std::int64_t>(graph_.ops().size()))
          at.fail("op " + in_quotes(at.key(i)), fmt::format("0 to {}", graph_.ops().size() - 1));
        list(at.member(i), {static_cast<std::size_t>(*op), key == "pre"});
      }
    } else if (key == "initial_pool") {
      for (std::size_t i = 0; i < at.size(); ++i) plan_.initial_pool.push_back(tensor(at.item(i)));
      std::sort(plan_.initial_pool.begin(), plan_.initial_pool.end());
    } else if (key == "order") {
      for (std::size_t i = 0; i < at.size(); ++i) plan_.order.push_back(op(at.item(i)));
    } else if (key != "storages") {
      throw InputError(source_, "the unknown key " + in_quotes(key),
                       one_of(key, {"pre", "post", "storages", "initial_pool", "order"}));
    }
  }

  TensorId tensor(const JsonAt& at) const {
    const auto found = tensors_.find(at.bytes().value);
    if (found == tensors_.end()) at.fail("the id of a storage of the trace");
    return found->second;
  }
  OpId op(const JsonAt& at) const {
    return OpId(static_cast<std::int32_t>(at.count(static_cast<int>(graph_.ops().size()) - 1)));
  }

  void list(const JsonAt& at, const Place& place) {
    at.require_array();
    for (std::size_t i = 0; i < at.size(); ++i) action(at.item(i), place);
  }

  void action(const JsonAt& at, const Place& place) {
    at.require_object("op_id, storage_id and kind");
    Placed placed;
    placed.place = place;
    Action& action = placed.action;
    std::string kind;
    std::size_t range = at.size();
    for (std::size_t i = 0; i < at.size(); ++i) {
      const JsonAt value = at.member(i);
      if (at.key(i) == "storage_id") {
        action.tensor = tensor(value);
      } else if (at.key(i) == "kind") {
        kind = value.string();
      } else if (at.key(i) == "before_op") {
        action.before_op = op(value);
      } else if (at.key(i) == "range_bytes") {
        range = i;
      } else if (at.key(i) == "position") {
        placed.position = value.bytes().value;
      } else if (at.key(i) == "iteration") {
        if (value.string() != "first" && value.string() != "later") value.fail("\"first\" or \"later\"");
        action.scope = value.string() == "first" ? IterationScope::kFirst : IterationScope::kLater;
      } else if (at.key(i) == "op_id") {
        if (op(value).index() != place.op)
          value.fail(fmt::format("{}, the op whose list it stands in", place.op));
      } else {
        at.fail_unknown_key(
            i, {"op_id", "storage_id", "kind", "before_op", "range_bytes", "iteration", "position"});
      }
    }
    if (action.tensor.is_none()) at.fail_missing("storage_id");
    if (kind.empty()) at.fail_missing("kind");
    if (kind.starts_with("ResidencyActionType.")) kind = kind.substr(20);
    if (dies(kind, action.tensor, place)) return;
    action.kind = kind_of(at, kind);
    action.to = graph_.tensor(action.tensor).bytes;
    if (range < at.size()) {
      action.from = at.member(range).item(0).bytes();
      action.to = at.member(range).item(1).bytes();
    }
    action.after_op = !place.pre ? OpId(place.op) : place.op == 0 ? OpId::none() : OpId(place.op - 1);
    placed_.push_back(std::move(placed));
  }

  // A release at the last access: the tensor dies, which a plan need not say.
  bool dies(const std::string& kind, TensorId t, const Place& place) const {
    if (kind == kReleaseCopy) return true;
    return kind == kRelease && !graph_.tensor(t).persistent && !place.pre &&
           last_access(graph_, t) == OpId(place.op);
  }

  static ActionKind kind_of(const JsonAt& at, const std::string& kind) {
    if (kind == kCopyIn) return ActionKind::kPrefetch;
    if (kind == kCopyOut) return ActionKind::kStore;
    if (kind == kRelease) return ActionKind::kDetach;
    at.fail("the kind " + in_quotes(kind), one_of(kind, {kCopyIn, kCopyOut, kRelease, kReleaseCopy}));
  }

  const std::string& source_;
  const Graph& graph_;
  std::map<std::int64_t, TensorId> tensors_;
  std::vector<Placed> placed_;
  bool seen_ = false;
  Plan plan_;
};

}  // namespace

Exported plan_to_schedule(const Plan& plan, const Graph& graph) {
  return ScheduleWriter(plan, graph).write();
}

Plan parse_schedule(const std::string& text, const std::string& source, const Graph& graph) {
  return ScheduleReader(source, graph).read(text);
}

}  // namespace hyperoffload
