#include "test/model/tiny.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <stdexcept>

namespace hyperoffload {
namespace {

Lines split(const std::string& text, char separator) {
  Lines parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, separator);)
    if (!part.empty()) parts.push_back(part);
  return parts;
}

template <class Named>
std::int32_t find(const std::vector<Named>& all, const std::string& name) {
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i].name == name) return static_cast<std::int32_t>(i);
  throw std::runtime_error("the test names an unknown " + name);
}

Op tiny_op(GraphSpec& spec, const std::string& line) {
  const Lines words = split(line, ' ');
  Op op;
  op.name = words.at(0);
  op.duration = Seconds(1e-6);
  op.engine = EngineId(0);
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string key = words[i].substr(0, words[i].find('='));
    const std::string value = words[i].substr(words[i].find('=') + 1);
    if (key == "reads")
      for (const auto& name : split(value, ',')) op.reads.emplace_back(find(spec.tensors, name));
    else if (key == "writes")
      for (const auto& name : split(value, ',')) op.writes.emplace_back(find(spec.tensors, name));
    else if (key == "after")
      for (const auto& name : split(value, ',')) op.after.emplace_back(find(spec.ops, name));
    else if (key == "workspace")
      op.workspace = Bytes(std::stoll(value));
    else if (key == "memory")
      op.memory = value == "pool" ? Tier::kPool : Tier::kHbm;
    else if (key == "engine") {
      auto it = std::find(spec.engines.begin(), spec.engines.end(), value);
      if (it == spec.engines.end()) it = spec.engines.insert(it, value);
      op.engine = EngineId(static_cast<std::size_t>(it - spec.engines.begin()));
    } else
      throw std::runtime_error("the test gives an op an unknown " + key);
  }
  return op;
}

}  // namespace

Graph tiny_graph(const Lines& tensors, const Lines& ops) {
  GraphSpec spec;
  for (const std::string& line : tensors) {
    const Lines words = split(line, ' ');
    Tensor t;
    t.name = words.at(0);
    t.kind = tensor_kind_from(words.at(1)).value();
    t.bytes = Bytes(std::stoll(words.at(2)));
    t.persistent = persistent_by_default(t.kind);
    for (std::size_t i = 3; i < words.size(); ++i) {
      if (words[i] == "pool") t.initial = Tier::kPool;
      if (words[i] == "persistent") t.persistent = true;
    }
    spec.tensors.push_back(t);
  }
  for (const std::string& line : ops) {
    Op op = tiny_op(spec, line);
    spec.ops.push_back(op);
  }
  return build_graph(std::move(spec));
}

Plan tiny_plan(const Graph& graph, const Lines& actions, const Lines& initial_pool) {
  Plan plan;
  for (const std::string& line : actions) {
    const Lines words = split(line, ' ');
    Action a;
    a.kind = words.at(0) == "prefetch" ? ActionKind::kPrefetch
             : words.at(0) == "store"  ? ActionKind::kStore
                                       : ActionKind::kDetach;
    a.tensor = TensorId(find(graph.tensors(), words.at(1)));
    a.to = graph.tensor(a.tensor).bytes;
    for (std::size_t i = 2; i < words.size(); ++i) {
      const std::string value = words[i].substr(words[i].find('=') + 1);
      if (words[i].starts_with("after=")) a.after_op = OpId(find(graph.ops(), value));
      if (words[i].starts_with("before=")) a.before_op = OpId(find(graph.ops(), value));
      if (words[i] == "iteration=first") a.scope = IterationScope::kFirst;
      if (words[i] == "iteration=later") a.scope = IterationScope::kLater;
      if (words[i].starts_with("range=")) {
        a.from = Bytes(std::stoll(value));
        a.to = Bytes(std::stoll(value.substr(value.find(':') + 1)));
      }
    }
    plan.actions.push_back(a);
  }
  for (const std::string& name : initial_pool) plan.initial_pool.emplace_back(find(graph.tensors(), name));
  std::sort(plan.initial_pool.begin(), plan.initial_pool.end());
  return plan;
}

std::string tiny_words(const Graph& graph, const Plan& plan) {
  std::string words;
  for (std::size_t i = 0; i < graph.tensors().size(); ++i) {
    const Tensor& t = graph.tensors()[i];
    const bool pool = t.initial == Tier::kPool ||
                      std::count(plan.initial_pool.begin(), plan.initial_pool.end(), TensorId(i)) > 0;
    words += fmt::format("{} {} {}{}{}\n", t.name, to_string(t.kind), t.bytes.value,
                         t.persistent ? " persistent" : "", pool ? " pool" : "");
  }
  const auto names = [&](const char* key, const std::vector<TensorId>& ids) {
    std::string list;
    for (TensorId t : ids) list += (list.empty() ? fmt::format(" {}=", key) : ",") + graph.tensor(t).name;
    return list;
  };
  for (const Op& op : graph.ops())
    words += fmt::format("{}{}{} workspace={} engine={} memory={}\n", op.name, names("reads", op.reads),
                         names("writes", op.writes), op.workspace.value, graph.engines()[op.engine.index()],
                         to_string(op.memory));
  for (const Action& a : plan.actions)
    words += fmt::format("{} {} after={} range={}:{}{}\n", to_string(a.kind), graph.tensor(a.tensor).name,
                         a.after_op.is_none() ? "start" : graph.op(a.after_op).name, a.from.value, a.to.value,
                         a.scope == IterationScope::kEvery   ? ""
                         : a.scope == IterationScope::kFirst ? " iteration=first"
                                                             : " iteration=later");
  return words;
}

Lines rules(const std::vector<Violation>& broken) {
  Lines names;
  for (const Violation& v : broken) names.push_back(v.rule);
  return names;
}

std::vector<Violation> check_tiny(const Graph& graph, const Plan& plan, std::int64_t hbm, std::int64_t pool,
                                  int iterations) {
  return check_plan(graph, plan, {Bytes(hbm), Bytes(pool)}, iterations);
}

}  // namespace hyperoffload
