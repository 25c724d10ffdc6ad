#include "planner/memory_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "planner/analysis/flat_graph.h"
#include "planner/cost/walk.h"
#include "planner/cost/walk_memory.h"
#include "planner/decision_log.h"

namespace hyperoffload {
namespace {

constexpr int kHeight = 16;                                                     // lines of the stack
constexpr int kRows = 24;                                                       // tensors listed
constexpr char kLetters[kMapKinds] = {'W', 'G', 'O', 'A', 'K', 'I', 'X', 's'};  // kAllTensorKinds, workspace

class Mapper {
 public:
  Mapper(const Graph& graph, const Hardware& hardware, const Plan& plan, int iterations)
      : graph_(graph), flat_(graph, hardware), plan_(plan), iterations_(iterations) {}

  MemoryMap map(int columns, int rows) {
    choose_columns(columns);
    choose_rows(rows);
    look();
    return std::move(map_);
  }

 private:
  // The first walk: the fullest instant of each column. Instants are numbered, so that the second finds them.
  void choose_columns(int most) {
    const int each = (flat_.ops + most - 1) / most;
    for (int first = 0; first < flat_.ops; first += each)
      map_.columns.push_back({std::min(first + each, flat_.ops) - 1, first, {}, -1});
    fullest_.assign(map_.columns.size(), -1);
    follow(WalkRecord::kLastIteration, [&](int instant, int op, const WalkMemory& memory) {
      const auto c = static_cast<std::size_t>(op / each);
      MapColumn& column = map_.columns[c];
      if (memory.hbm_used() <= column.total) return;
      column.total = memory.hbm_used();
      column.op = op;
      fullest_[c] = instant;
    });
    map_.capacity = flat_.machine.hbm;
    map_.seconds = walk_.last_iteration;
    map_.peak = walk_.hbm_peak;
    ops_a_column_ = each;
  }

  // Visits every instant of the last iteration at which bytes were taken, with the op that started last.
  template <class Visit>
  void follow(WalkRecord record, Visit visit) {
    int instant = 0, running = 0;
    walk_ = walk_plan(flat_, plan_, {iterations_, record, false, [&](int op, const WalkMemory& memory) {
                                       if (op >= 0) running = op;
                                       visit(instant++, running, memory);
                                     }});
  }

  void choose_rows(int most) {
    std::vector<std::int64_t> moved(static_cast<std::size_t>(flat_.tensors));
    for (const Action& action : plan_.actions)
      if (action.kind != ActionKind::kDetach) moved[action.tensor.index()] += action.bytes().value;
    for (const TensorId t : plan_.initial_pool)
      moved[t.index()] = std::max<std::int64_t>(1, moved[t.index()]);
    std::vector<int> order(moved.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
      const auto left = static_cast<std::size_t>(a), right = static_cast<std::size_t>(b);
      return moved[left] != moved[right] ? moved[left] > moved[right]
                                         : flat_.bytes[left] > flat_.bytes[right];
    });
    map_.tensors = order.size();
    map_.tensors_that_move = static_cast<std::size_t>(
        std::count_if(moved.begin(), moved.end(), [](std::int64_t b) { return b > 0; }));
    order.resize(std::min(order.size(), static_cast<std::size_t>(most)));
    for (const int t : order) map_.rows.push_back({TensorId(t), std::string(map_.columns.size(), ' ')});
  }

  // The second walk: what is where. A line of a tensor tells of all instants of the column, the stack of one.
  void look() {
    find_transfers();
    follow(WalkRecord::kNothing, [&](int instant, int op, const WalkMemory& memory) {
      const auto c = static_cast<std::size_t>(op / ops_a_column_);
      if (instant == fullest_[c]) look(map_.columns[c], memory);
      for (std::size_t r = 0; r < map_.rows.size(); ++r) look(map_.rows[r], r, c, op, memory);
    });
  }

  void look(MapColumn& column, const WalkMemory& memory) const {
    std::int64_t tensors = 0;
    for (int t = 0; t < flat_.tensors; ++t) {
      const std::int64_t bytes = memory.in_hbm(t);
      column.by_kind[static_cast<std::size_t>(graph_.tensor(TensorId(t)).kind)] += bytes;
      tensors += bytes;
    }
    column.total = memory.hbm_used();
    column.by_kind.back() = column.total - tensors;
  }

  void look(MapRow& row, std::size_t r, std::size_t c, int op, const WalkMemory& memory) const {
    const int t = row.tensor.value;
    const std::int64_t here = memory.in_hbm(t), all = flat_.bytes[static_cast<std::size_t>(t)];
    char place = here == all && all > 0 ? '#' : here > 0 ? '=' : memory.in_pool(t) > 0 ? '.' : ' ';
    const char moving = under_way_[r][static_cast<std::size_t>(op)];
    if (moving == '>' || (moving == '<' && here > 0)) place = moving;
    const std::string order = " .=<#>";  // what comes later hides what comes before
    char& shown = row.places[c];
    if (order.find(place) > order.find(shown)) shown = place;
  }

  // By row and op: the transfer under way as the op starts, else one that starts before the next op does.
  void find_transfers() {
    std::vector<std::pair<double, int>> starts;
    for (const OpWalk& op : walk_.ops) starts.emplace_back(op.start, op.op);
    std::sort(starts.begin(), starts.end());
    under_way_.assign(map_.rows.size(), std::string(static_cast<std::size_t>(flat_.ops), ' '));
    std::vector<std::int32_t> row_of(static_cast<std::size_t>(flat_.tensors), -1);
    for (std::size_t r = 0; r < map_.rows.size(); ++r)
      row_of[map_.rows[r].tensor.index()] = static_cast<std::int32_t>(r);
    for (const TransferWalk& t : walk_.transfers) {
      const Action& action = plan_.actions[static_cast<std::size_t>(t.action)];
      const std::int32_t r = row_of[action.tensor.index()];
      if (r < 0) continue;
      const char sign = action.kind == ActionKind::kPrefetch ? '<' : '>';
      auto at = std::lower_bound(starts.begin(), starts.end(), std::pair(t.start, -1));
      if (at != starts.begin() && (at == starts.end() || at->first > t.start))
        if (char& before = under_way_[static_cast<std::size_t>(r)][static_cast<std::size_t>(std::prev(at)->second)]; before == ' ')
          before = sign;
      for (; at != starts.end() && at->first < t.end; ++at)
        under_way_[static_cast<std::size_t>(r)][static_cast<std::size_t>(at->second)] = sign;
    }
  }

  const Graph& graph_;
  const FlatGraph flat_;
  const Plan& plan_;
  const int iterations_;
  Walk walk_;
  std::vector<int> fullest_;  // by column: the instant
  int ops_a_column_ = 1;
  std::vector<std::string> under_way_;
  MemoryMap map_;
};

// A name in so many characters, its end kept: that is where names differ.
std::string fitted(const std::string& name, std::size_t width) {
  std::string text;
  for (const char c : name)
    text += static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) > 0x7e ? '?' : c;
  return text.size() <= width ? text : ".." + text.substr(text.size() - (width - 2));
}

char letter_at(const MapColumn& column, double level) {
  double sum = 0;
  for (std::size_t k = 0; k < kMapKinds; ++k) {
    sum += static_cast<double>(column.by_kind[k]);
    if (level < sum) return kLetters[k];
  }
  return ' ';
}

std::string stack(const MemoryMap& map, std::size_t label) {
  std::string text;
  for (int line = kHeight; line-- > 0;) {
    const double level = (line + 0.5) / kHeight * static_cast<double>(map.capacity);
    std::string name;
    if (line == kHeight - 1) name = "HBM " + show_bytes(map.capacity);
    if (line == kHeight / 2) name = show_bytes(map.capacity / 2);
    if (line == 0) name = "0 B";
    std::string row;
    for (const MapColumn& column : map.columns) row += letter_at(column, level);
    row.erase(row.find_last_not_of(' ') + 1);
    text += fmt::format("{:>{}} |{}\n", name, label, row);
  }
  return text + std::string(label + 1, ' ') + '+' + std::string(map.columns.size(), '-') + '\n';
}

std::string legend(const MemoryMap& map) {
  std::string text;
  for (std::size_t k = 0; k < kMapKinds; ++k) {
    if (std::none_of(map.columns.begin(), map.columns.end(),
                     [&](const MapColumn& c) { return c.by_kind[k] > 0; }))
      continue;
    const char* name = k + 1 < kMapKinds ? to_string(kAllTensorKinds[k]) : "workspace";
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", kLetters[k], name);
  }
  return text;
}

// Words in lines of at most so many characters.
std::string wrapped(const std::string& text, std::size_t width) {
  std::string out, line;
  for (std::size_t from = 0; from < text.size();) {
    const std::size_t blank = std::min(text.find(' ', from), text.size());
    const std::string word = text.substr(from, blank - from);
    if (!line.empty() && line.size() + 1 + word.size() > width) {
      out += line + "\n";
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
    from = blank + 1;
  }
  return out + line + "\n";
}

}  // namespace

MemoryMap memory_map(const Graph& graph, const Hardware& hardware, const Plan& plan, int iterations,
                     int columns, int rows) {
  return Mapper(graph, hardware, plan, iterations).map(columns, rows);
}

std::string draw_memory_map(const Graph& graph, const Hardware& hardware, const Plan& plan, int iterations,
                            int width) {
  const std::size_t all = static_cast<std::size_t>(std::max(width, kLeastMapWidth));
  const std::size_t label = std::clamp<std::size_t>(all / 3, 12, 40);
  const MemoryMap map =
      memory_map(graph, hardware, plan, iterations, static_cast<int>(all - label - 2), kRows);
  const int each = map.columns.front().last_op + 1;
  const auto fullest =
      std::max_element(map.columns.begin(), map.columns.end(),
                       [](const MapColumn& a, const MapColumn& b) { return a.total < b.total; });
  const std::string before =
      map.peak > fullest->total ? fmt::format(" ({} in an iteration before)", show_bytes(map.peak)) : "";
  std::string text = stack(map, label);
  text += wrapped(fmt::format("a column is {}, {} ops in {}; at most {} taken, at {}{}; {}",
                              each == 1 ? "an op" : fmt::format("{} ops (the fullest instant)", each),
                              graph.ops().size(), show_seconds(map.seconds), show_bytes(fullest->total),
                              fitted(graph.op(OpId(fullest->op)).name, 30), before, legend(map)),
                  all);
  text += '\n';
  for (const MapRow& row : map.rows) {
    const std::string size = show_bytes(graph.tensor(row.tensor).bytes.value);
    const std::string name = fitted(graph.tensor(row.tensor).name, label - size.size() - 1);
    std::string line = fmt::format("{:<{}} {} |{}", name, label - size.size() - 1, size, row.places);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  std::string key = "# in HBM, = a part of it, < being loaded, > being stored, . in the pool";
  key += fmt::format("; {} of {} tensors move or start in the pool", map.tensors_that_move, map.tensors);
  if (map.rows.size() < map.tensors) key += fmt::format(", {} are shown", map.rows.size());
  return text + wrapped(key, all);
}

}  // namespace hyperoffload
