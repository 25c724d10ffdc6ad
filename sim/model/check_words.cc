#include "sim/model/check_words.h"

#include <fmt/format.h>

#include <algorithm>

namespace hyperoffload {

std::string bytes_words(WideBytes bytes) {
  std::string digits;
  WideBytes rest = bytes < 0 ? -bytes : bytes;
  do digits.insert(digits.begin(), static_cast<char>('0' + static_cast<int>(rest % 10)));
  while ((rest /= 10) != 0);
  if (bytes < 0) digits.insert(digits.begin(), '-');
  const double value = static_cast<double>(bytes);
  if (value >= 0x1p30) return fmt::format("{} B ({:.4g} GiB)", digits, value / 0x1p30);
  if (value >= 0x1p20) return fmt::format("{} B ({:.4g} MiB)", digits, value / 0x1p20);
  return digits + " B";
}

std::string quoted(const Graph& graph, TensorId tensor) { return '"' + graph.tensor(tensor).name + '"'; }
std::string quoted(const Graph& graph, OpId op) { return "op \"" + graph.op(op).name + '"'; }

std::string action_words(const Graph& graph, const Plan& plan, int index, OpId behind) {
  const Action& action = plan.actions[static_cast<std::size_t>(index)];
  const bool whole = action.from == Bytes(0) && action.to == graph.tensor(action.tensor).bytes;
  return fmt::format("{} of {}{} {} (actions[{}])", to_string(action.kind), quoted(graph, action.tensor),
                     whole ? "" : fmt::format(" bytes [{}, {})", action.from.value, action.to.value),
                     behind.is_none() ? "at the iteration's start" : "behind " + quoted(graph, behind),
                     index);
}

std::string iteration_words(int iteration) {
  return iteration == 0 ? "" : fmt::format(" in iteration {}", iteration + 1);
}

std::string largest_words(const Graph& graph, const std::vector<Bytes>& bytes) {
  std::vector<TensorId> held;
  for (std::size_t t = 0; t < bytes.size(); ++t)
    if (bytes[t] > Bytes(0)) held.push_back(TensorId(t));
  if (held.empty()) return "nothing is resident";
  const auto top = held.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(held.size(), 3));
  std::partial_sort(held.begin(), top, held.end(), [&](TensorId a, TensorId b) {
    return bytes[a.index()] != bytes[b.index()] ? bytes[a.index()] > bytes[b.index()] : a < b;
  });
  std::string words = "largest residents: ";
  for (auto it = held.begin(); it != top; ++it)
    words += fmt::format("{}{} {}", it == held.begin() ? "" : ", ", quoted(graph, *it),
                         bytes_words(bytes[it->index()].value));
  return words;
}

}  // namespace hyperoffload
