#include "sim/report/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "sim/report/human.h"

namespace hyperoffload {
namespace {

constexpr std::size_t kGap = 2;  // blanks between columns

std::size_t code_points(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

// Names come from files: what would move the cursor or break the row is shown as '?'.
std::string printable(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  return text;
}

// The one rate that all results of a table are shown in; null: none of them has one.
struct Rate {
  const char* heading;
  std::optional<double> Throughput::*value;
};
std::optional<Rate> common_rate(const std::vector<Result>& results) {
  for (const Rate& rate :
       {Rate{"tokens/s", &Throughput::tokens_per_s}, Rate{"samples/s", &Throughput::samples_per_s}})
    if (std::any_of(results.begin(), results.end(),
                    [&](const Result& r) { return (r.throughput.*rate.value).has_value(); }))
      return rate;
  return std::nullopt;
}

std::vector<std::string> cells(const Result& r) {
  std::vector<std::string> row = {printable(r.policy), r.fits ? "yes" : "no"};
  if (!r.has_figures()) {
    row.resize(8, "-");
    return row;
  }
  const NpuFigures& f = r.figures();
  row.insert(row.end(),
             {human_time(f.iteration), human_factor(f.slowdown), human_time(f.stall), human_bytes(r.hbm_peak),
              human_bytes(f.pool_to_hbm.bytes), human_bytes(f.hbm_to_pool.bytes)});
  return row;
}

std::string caption(const Result& r) {
  std::string text = fmt::format("{} on {}, {} of HBM", printable(r.trace), printable(r.hardware),
                                 human_bytes(r.hbm_capacity));
  if (r.hbm_reserved > Bytes(0)) text += fmt::format(" ({} of it reserved)", human_bytes(r.hbm_reserved));
  text += r.iterations == 1 ? ", one cold iteration"
                            : fmt::format(", iteration {} of {}", r.iterations, r.iterations);
  if (r.has_figures()) text += fmt::format(", ideal {}", human_time(r.figures().ideal));
  return text;
}

bool same_caption(const Result& a, const Result& b) {
  return a.trace == b.trace && a.hardware == b.hardware && a.hbm_capacity == b.hbm_capacity &&
         a.hbm_reserved == b.hbm_reserved && a.iterations == b.iterations;
}

bool is_tight(const Bound& bound) { return bound.method.find("lp") != std::string::npos; }

std::string bound_line(const Bound& b) {
  const std::string stall = b.stall > Seconds(0)
                                ? "the stall is at least " + human_time(b.stall)
                                : std::string("no stall is proven to be needed");
  const std::string order = b.order == kAsGiven ? "the program as given" : printable(b.order) + " order";
  const std::string steady =
      b.steady_stall && *b.steady_stall > b.stall
          ? fmt::format(", of iterations that end as they began at least {}", human_time(*b.steady_stall))
          : "";
  return fmt::format("bound ({}, {}): zero stall takes at least {} of HBM; at this capacity {}{}{}\n",
                     printable(b.method), order, human_bytes(b.hbm_peak), stall, steady,
                     is_tight(b) ? "" : " (a cheap bound)");
}

std::string row_text(const std::vector<std::string>& row, const std::vector<std::size_t>& widths) {
  std::string line;
  for (std::size_t i = 0; i < row.size(); ++i) {
    const std::string pad(widths[i] - code_points(row[i]), ' ');
    if (i) line.append(kGap, ' ');
    line += i < 2 ? row[i] + pad : pad + row[i];  // texts left, numbers right
  }
  return line;
}

}  // namespace

std::string results_table(const std::vector<Result>& results) {
  if (results.empty()) return "";
  std::vector<std::vector<std::string>> rows = {
      {"policy", "fits", "time", "slowdown", "stall", "peak HBM", "moved in", "moved out"}};
  for (const Result& r : results) rows.push_back(cells(r));
  if (const auto rate = common_rate(results)) {
    rows[0].push_back(rate->heading);
    for (std::size_t i = 0; i < results.size(); ++i) {
      const std::optional<double>& value = results[i].throughput.*rate->value;
      rows[i + 1].push_back(value ? human_number(*value) : "-");
    }
  }
  std::vector<std::size_t> widths(rows[0].size());
  for (const auto& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], code_points(row[i]));

  const bool one_caption = std::all_of(results.begin(), results.end(),
                                       [&](const Result& r) { return same_caption(r, results[0]); });
  const auto with_ideal =
      std::find_if(results.begin(), results.end(), [](const Result& r) { return r.has_figures(); });
  std::string out;
  if (one_caption) out += caption(with_ideal == results.end() ? results[0] : *with_ideal) + "\n";
  out += row_text(rows[0], widths) + "\n";
  const std::string indent(widths[0] + kGap, ' ');
  for (std::size_t i = 0; i < results.size(); ++i) {
    const Result& r = results[i];
    out += row_text(rows[i + 1], widths) + "\n";
    if (!r.reason.empty()) out += indent + printable(r.reason) + "\n";
    if (one_caption) continue;
    out += indent + caption(r) + "\n";
    if (r.bound) out += indent + bound_line(*r.bound);
  }
  if (!one_caption) return out;
  const Result* bounded = nullptr;  // of one trace and machine: the tighter of what was worked out
  for (const Result& r : results)
    if (r.bound && (!bounded || (is_tight(*r.bound) && !is_tight(*bounded->bound)))) bounded = &r;
  if (bounded) out += bound_line(*bounded->bound);
  return out;
}

namespace {

const Result* subject_of(const std::vector<Result>& results) {
  const Result* best = nullptr;
  for (const Result& r : results) {
    if (r.policy == "graph" || r.policy.rfind("graph:", 0) == 0) return &r;
    if (!r.has_figures()) continue;
    const bool better = !best || (r.fits && !best->fits) ||
                        (r.fits == best->fits && r.figures().iteration < best->figures().iteration);
    if (better) best = &r;
  }
  return best ? best : results.empty() ? nullptr : &results.front();
}

std::string speed_phrase(const NpuFigures& f) {
  if (f.stall.value <= 1e-9 * f.ideal.value) return "at the ideal time";
  if (f.slowdown < 2) return fmt::format("at +{} of the ideal time", human_percent(f.slowdown - 1));
  return fmt::format("at {} the ideal time", human_factor(f.slowdown));
}

std::string bound_phrase(const Result& r) {
  if (!r.bound) return "";
  const Bound& b = *r.bound;
  const bool stalls = r.figures().stall.value > 1e-9 * r.figures().ideal.value;
  if (b.order == kAsGiven)
    return fmt::format("; it changes the program, which takes at least {} as given for no stall{}", human_bytes(b.hbm_peak),
                       is_tight(b) ? "" : " (cheap bound)");
  std::string text = fmt::format("; zero stall takes at least {}", human_bytes(b.hbm_peak));
  const bool steady = b.steady_stall && *b.steady_stall > b.stall;
  if (stalls && b.stall > Seconds(0))
    text += fmt::format(", and at this capacity at least {} of its {} stall can't be avoided{}", human_time(b.stall),
                        human_time(r.figures().stall),
                        steady ? fmt::format(" ({} once iterations end as they began)", human_time(*b.steady_stall)) : "");
  else if (stalls && steady)
    text += fmt::format(", and at this capacity iterations that end as they began stall at least {}", human_time(*b.steady_stall));
  return text + (is_tight(b) ? "" : " (cheap bound)");
}

}  // namespace

std::string results_answer(const std::vector<Result>& results) {
  const Result* subject = subject_of(results);
  if (!subject) return "";
  const std::string name = printable(subject->policy);
  if (!subject->has_figures()) return fmt::format("{} can't run: {}\n", name, printable(subject->reason));
  const NpuFigures& f = subject->figures();
  std::string text =
      subject->fits
          ? fmt::format("{} fits in {} {}", name, human_bytes(subject->hbm_peak), speed_phrase(f))
          : fmt::format("{} does not fit: it takes {}, {} are there", name, human_bytes(subject->hbm_peak),
                        human_bytes(subject->hbm_capacity - subject->hbm_reserved));
  text += bound_phrase(*subject);
  for (const Result& r : results) {
    if (&r == subject || !r.has_figures() || !r.fits) continue;
    const double ratio = r.figures().iteration.value / f.iteration.value;
    if (ratio > 1 + 1e-9)
      text += fmt::format("; {} takes {} its time{}", printable(r.policy), human_factor(ratio),
                          subject->fits && r.hbm_peak >= subject->hbm_peak ? " and no less HBM (dominated)" : "");
  }
  return text + ".\n" +
         (!subject->fits || subject->binding.sentence.empty() ? "" : printable(subject->binding.sentence) + ".\n");
}

}  // namespace hyperoffload
