#include "sim/model/graph.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "sim/model/collective.h"
#include "sim/model/error.h"
#include "sim/model/name_index.h"

namespace hyperoffload {
namespace {

constexpr std::array<const char*, 7> kKindNames = {"weight", "gradient", "optimizer", "activation",
                                                   "kv",     "input",    "other"};

std::string at(const GraphSpec& spec, const std::string& path) {
  return spec.source.empty() ? path : spec.source + ": " + path;
}

template <class T>
void sort_unique(std::vector<T>& ids) {
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
}

void check_tensors(const GraphSpec& spec) {
  NameIndex seen;
  for (std::size_t i = 0; i < spec.tensors.size(); ++i) {
    const Tensor& t = spec.tensors[i];
    const std::string path = fmt::format("tensors[{}]", i);
    if (const std::int32_t other = seen.add(t.name, i, spec.tensors); other >= 0)
      throw InputError(at(spec, path + ".name"), fmt::format("\"{}\", already the name of tensors[{}]", t.name, other),
                       "a unique name");
    if (t.bytes < Bytes(0))
      throw InputError(at(spec, path + ".bytes"), std::to_string(t.bytes.value), "0 to 2^63-1");
    if (t.initial == Tier::kPool && !t.persistent)
      throw InputError(at(spec, path + ".initial"), fmt::format("\"pool\" on \"{}\", which is not persistent", t.name),
                       "no `initial`, or `persistent: true`");
  }
}

void check_number(const GraphSpec& spec, const std::string& path, double value) {
  if (!std::isfinite(value) || value < 0)
    throw InputError(at(spec, path), fmt::format("{}", value), "a finite number, 0 or more");
}

void check_op(const GraphSpec& spec, std::size_t i) {
  const Op& op = spec.ops[i];
  const std::string path = fmt::format("ops[{}]", i);
  if (!op.duration && !op.flops && !op.hbm_bytes && !op.collective)
    throw InputError(at(spec, path), fmt::format("op \"{}\" without a time", op.name),
                     "duration_us, or flops and/or hbm_bytes, or a collective");
  if (op.duration) check_number(spec, path + ".duration_us", op.duration->value);
  if (op.flops) check_number(spec, path + ".flops", op.flops->value);
  if (op.hbm_bytes) check_number(spec, path + ".hbm_bytes", static_cast<double>(op.hbm_bytes->value));
  check_number(spec, path + ".workspace_bytes", static_cast<double>(op.workspace.value));
  if (op.engine.is_none() || op.engine.index() >= spec.engines.size())
    throw InputError(at(spec, path + ".engine"), "an unknown engine", "one of the trace's engines");
  for (const auto* list : {&op.reads, &op.writes})
    for (TensorId t : *list)
      if (t.is_none() || t.index() >= spec.tensors.size())
        throw InputError(at(spec, path), "an unknown tensor", "a name from `tensors`");
  for (OpId other : op.after)
    if (other.is_none() || other.index() >= i)
      throw InputError(at(spec, path + ".after"), fmt::format("an op that is not earlier than \"{}\"", op.name),
                       "an earlier op");
  if (op.known_after && (op.known_after->is_none() || op.known_after->index() >= i))
    throw InputError(at(spec, path + ".known_after"), fmt::format("an op that is not earlier than \"{}\"", op.name),
                     "an earlier op");
}

void check_ops(const GraphSpec& spec) {
  if (spec.ops.empty()) throw InputError(at(spec, "ops"), "no ops", "at least one op");
  NameIndex seen;
  for (std::size_t i = 0; i < spec.ops.size(); ++i) {
    if (const std::int32_t other = seen.add(spec.ops[i].name, i, spec.ops); other >= 0)
      throw InputError(at(spec, fmt::format("ops[{}].name", i)),
                       fmt::format("\"{}\", already the name of ops[{}]", spec.ops[i].name, other), "a unique name");
    check_op(spec, i);
  }
}

void resolve_groups(GraphSpec& spec) {
  std::map<std::string, Group> known;
  for (std::size_t i = 0; i < spec.ops.size(); ++i) {
    if (!spec.ops[i].collective) continue;
    Collective& collective = *spec.ops[i].collective;
    auto it = known.find(collective.group);
    if (it == known.end())
      it = known.emplace(collective.group, group_named(collective.group, spec.meta_json,
                                                       at(spec, fmt::format("ops[{}].collective.group", i)))).first;
    collective.members = it->second;
  }
}

}  // namespace

const char* to_string(TensorKind kind) { return kKindNames[static_cast<std::size_t>(kind)]; }
const char* to_string(Tier tier) { return tier == Tier::kHbm ? "hbm" : "pool"; }

std::optional<TensorKind> tensor_kind_from(const std::string& name) {
  for (TensorKind kind : kAllTensorKinds)
    if (name == to_string(kind)) return kind;
  return std::nullopt;
}

bool persistent_by_default(TensorKind kind) {
  return kind == TensorKind::kWeight || kind == TensorKind::kOptimizer || kind == TensorKind::kKv;
}

OpId Graph::birth(TensorId t) const {
  if (tensor(t).persistent || tensor(t).kind == TensorKind::kInput || accesses(t).empty()) return OpId::none();
  return accesses(t).front().op;
}

Graph build_graph(GraphSpec spec) {
  for (Op& op : spec.ops) {
    sort_unique(op.reads);
    sort_unique(op.writes);
    sort_unique(op.after);
  }
  check_tensors(spec);
  check_ops(spec);
  resolve_groups(spec);

  Graph g;
  const std::size_t tensor_count = spec.tensors.size();
  const std::size_t op_count = spec.ops.size();

  // Accesses, counted then placed; ops are visited in program order, so each list is in order.
  g.access_begin_.assign(tensor_count + 1, 0);
  for (const Op& op : spec.ops)
    for_each_access(op, [&](TensorId t, bool, bool) { ++g.access_begin_[t.index() + 1]; });
  for (std::size_t t = 0; t < tensor_count; ++t) g.access_begin_[t + 1] += g.access_begin_[t];
  g.accesses_.resize(g.access_begin_.back());
  std::vector<std::uint32_t> next(g.access_begin_.begin(), g.access_begin_.end() - 1);
  for (std::size_t i = 0; i < op_count; ++i)
    for_each_access(spec.ops[i], [&](TensorId t, bool read, bool write) {
      const Tensor& tensor = spec.tensors[t.index()];
      const bool first = next[t.index()] == g.access_begin_[t.index()];
      if (first && read && !tensor.persistent && tensor.kind != TensorKind::kInput)
        throw InputError(at(spec, fmt::format("ops[{}].reads", i)),
                         fmt::format("\"{}\" ({}) read by \"{}\" before anything wrote it", tensor.name,
                                     to_string(tensor.kind), spec.ops[i].name),
                         "an earlier write, `persistent: true` or kind \"input\"");
      g.accesses_[next[t.index()]++] = Access{OpId(i), read, write};
    });

  g.engine_ops_.resize(spec.engines.size());
  g.place_on_engine_.resize(op_count);
  for (std::size_t i = 0; i < op_count; ++i) {
    auto& queue = g.engine_ops_[spec.ops[i].engine.index()];
    g.place_on_engine_[i] = static_cast<int>(queue.size());
    queue.push_back(OpId(i));
  }

  // Direct dependencies across engines: `after`, and per tensor the last write and the reads since.
  std::vector<std::vector<OpId>> deps(spec.engines.size() > 1 ? op_count : 0);
  if (!deps.empty()) {
    for (std::size_t i = 0; i < op_count; ++i) deps[i] = spec.ops[i].after;
    for (std::size_t t = 0; t < tensor_count; ++t)
      for_each_data_dependency(g.accesses(TensorId(t)), [&](const Access& earlier, const Access& later) {
        deps[later.op.index()].push_back(earlier.op);
      });
  }
  g.deps_begin_.assign(op_count + 1, 0);
  for (std::size_t i = 0; i < deps.size(); ++i) {
    sort_unique(deps[i]);
    for (OpId d : deps[i])
      if (spec.ops[d.index()].engine != spec.ops[i].engine) g.deps_.push_back(d);
    g.deps_begin_[i + 1] = static_cast<std::uint32_t>(g.deps_.size());
  }

  g.name_ = std::move(spec.name);
  g.meta_json_ = std::move(spec.meta_json);
  g.tensors_ = std::move(spec.tensors);
  g.ops_ = std::move(spec.ops);
  g.engines_ = std::move(spec.engines);
  return g;
}

}  // namespace hyperoffload
