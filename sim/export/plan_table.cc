#include "sim/export/plan_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "sim/model/utf8.h"

namespace hyperoffload {
namespace {

using Row = std::array<std::string, 7>;
constexpr std::size_t kWidest = 48;  // of a name

std::string cell(const std::string& text) {
  const std::string shown = printable(text);
  if (shown.size() <= kWidest) return shown;
  return shown.substr(0, kWidest - 3) + "...";
}

std::string op_name(const Graph& graph, OpId op, const char* none) {
  return op.is_none() ? none : cell(graph.op(op).name);
}

}  // namespace

Exported plan_to_table(const Plan& plan, const Graph& graph) {
  std::vector<Row> rows = {{"#", "action", "tensor", "bytes", "after", "before", "iteration"}};
  std::array<Bytes, 3> moved{};
  std::array<std::size_t, 3> counts{};
  for (std::size_t i = 0; i < plan.actions.size(); ++i) {
    const Action& a = plan.actions[i];
    moved[static_cast<std::size_t>(a.kind)] += a.bytes();
    ++counts[static_cast<std::size_t>(a.kind)];
    const bool piece = a.bytes() != graph.tensor(a.tensor).bytes;
    rows.push_back({std::to_string(i), to_string(a.kind), cell(graph.tensor(a.tensor).name),
                    piece ? fmt::format("{} [{}, {})", a.bytes().value, a.from.value, a.to.value)
                          : std::to_string(a.bytes().value),
                    op_name(graph, a.after_op, "(start)"), op_name(graph, a.before_op, ""),
                    a.scope == IterationScope::kFirst   ? "first"
                    : a.scope == IterationScope::kLater ? "later"
                                                        : ""});
  }
  std::array<std::size_t, 7> widths{};
  for (const Row& row : rows)
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
  std::string text;
  for (const Row& row : rows) {
    std::string line;
    for (std::size_t c = 0; c < row.size(); ++c)
      line += c == 0 || c == 3 ? fmt::format("{:>{}}  ", row[c], widths[c])
                               : fmt::format("{:<{}}  ", row[c], widths[c]);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  for (const ActionKind kind : {ActionKind::kPrefetch, ActionKind::kStore, ActionKind::kDetach})
    text += fmt::format("{}: {} actions, {} bytes\n", to_string(kind), counts[static_cast<std::size_t>(kind)],
                        moved[static_cast<std::size_t>(kind)].value);
  Bytes pool;
  for (const TensorId t : plan.initial_pool) pool += graph.tensor(t).bytes;
  text +=
      fmt::format("in the pool at the start: {} tensors, {} bytes\n", plan.initial_pool.size(), pool.value);
  if (!plan.order.empty()) text += "the ops have an order of their own\n";
  return {text, {}};
}

}  // namespace hyperoffload
