#include "sim/model/nearest_name.h"

#include <algorithm>
#include <utility>

#include "sim/model/utf8.h"

namespace hyperoffload {
namespace {

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return lower;
}

// Optimal string alignment distance; returns `limit` as soon as it can't be smaller.
std::size_t distance(const std::string& a, const std::string& b, std::size_t limit) {
  if (std::max(a.size(), b.size()) - std::min(a.size(), b.size()) >= limit) return limit;
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
    if (*std::min_element(row.begin(), row.end()) >= limit && last.front() >= limit) return limit;
    before = std::exchange(last, row);
  }
  return std::min(last[b.size()], limit);
}

}  // namespace

NearestName::NearestName(std::string_view wanted)
    : wanted_(lower_case(wanted.substr(0, 200))),
      limit_(std::max<std::size_t>(1, (wanted_.size() + 1) / 3) + 1) {}

void NearestName::offer(std::string_view candidate) {
  if (candidate.size() > 300) return;
  const std::size_t d = distance(wanted_, lower_case(candidate), limit_);
  if (d >= limit_) return;
  limit_ = d;
  best_ = candidate;
}

std::string nearest_name(std::string_view wanted, const std::vector<std::string>& valid) {
  NearestName nearest(wanted);
  for (const std::string& name : valid) nearest.offer(name);
  return nearest.best();
}

std::string one_of(std::string_view wanted, const std::vector<std::string>& valid) {
  std::string list;
  for (const std::string& name : valid) list += (list.empty() ? "" : ", ") + name;
  const std::string nearest = nearest_name(wanted, valid);
  return nearest.empty() ? "one of " + list : "\"" + nearest + "\" (one of " + list + ")";
}

std::string shortened(std::string_view text) {
  std::string shown = printable(text);
  std::size_t end = 0;
  for (int characters = 0; end < shown.size(); ++end)
    if ((shown[end] & 0xC0) != 0x80 && ++characters > 57) break;
  if (end + 3 < shown.size()) shown = shown.substr(0, end) + "...";
  return shown;
}

std::string in_quotes(std::string_view text) { return "\"" + shortened(text) + "\""; }

}  // namespace hyperoffload
