#include "app/ask.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "app/evaluate.h"
#include "app/output.h"
#include "sim/model/check.h"
#include "sim/model/error.h"
#include "sim/model/nearest_name.h"
#include "sim/model/parse_units.h"
#include "sim/report/human.h"
#include "sim/report/result_fields.h"

namespace hyperoffload {
namespace {

// Sums of an exact replay and of the ideal one differ by rounding.
constexpr double kRounding = 1e-9;

Answer answer_of(const AskContext& context) {
  const std::string& question = context.options.question;
  if (question == "hbm") return ask_hbm(context);
  if (question == "bandwidth") return ask_bandwidth(context);
  if (question == "sequence" || question == "batch") return ask_size(context, question);
  if (question == "layers") return ask_layers(context);
  if (question == "machine") return ask_machine(context);
  throw InputError("ask", in_quotes(question),
                   one_of(question, {"hbm", "bandwidth", "sequence", "batch", "layers", "machine"}));
}

std::string to_json(const AskContext& context, const Answer& answer) {
  nlohmann::ordered_json json;
  json["question"] = context.options.question;
  json["policy"] = context.policy.text();
  json["target"] = context.target.text();
  for (const auto& [name, value] : answer.values)
    if (value == std::floor(value) && std::fabs(value) < 0x1p53)
      json[name] = static_cast<std::int64_t>(value);
    else
      json[name] = value;
  json["binds"] = answer.binds;
  json["answer"] = answer.sentence;
  for (const Trial& trial : answer.trials) {
    nlohmann::ordered_json each;
    each["value"] = trial.value;
    each["met"] = trial.met;
    each["fits"] = trial.result.fits;
    if (trial.result.has_figures()) {
      each["iteration_s"] = trial.result.figures().iteration.value;
      each["slowdown"] = trial.result.figures().slowdown;
      if (const auto tokens = trial.result.throughput.tokens_per_s) each["tokens_per_s"] = *tokens;
    } else {
      each["reason"] = trial.result.reason;
    }
    json["tried"].push_back(each);
  }
  return json_text(json, 1) + "\n";
}

}  // namespace

Target read_target(const AskOptions& options) {
  Target target;
  if (options.max_slowdown) target.slowdown = 1 + parse_share(*options.max_slowdown, "--max-slowdown");
  if (options.max_time) target.time = parse_seconds(*options.max_time, "--max-time");
  if (options.min_tokens) {
    if (!(*options.min_tokens > 0 && std::isfinite(*options.min_tokens)))
      throw InputError("--min-tokens", fmt::format("{}", *options.min_tokens), "tokens a second, above 0");
    target.tokens = options.min_tokens;
  }
  if (!target.time && !target.tokens && !target.slowdown) target.slowdown = 1;
  return target;
}

bool Target::met_by(const Result& result) const {
  if (!result.fits || !result.has_figures()) return false;
  const NpuFigures& figures = result.figures();
  if (slowdown && figures.iteration > figures.ideal * (*slowdown + kRounding)) return false;
  if (time && figures.iteration > *time * (1 + kRounding)) return false;
  return !tokens || result.throughput.tokens_per_s.value_or(0) >= *tokens * (1 - kRounding);
}

std::string Target::text() const {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : " and ") + part; };
  if (slowdown) add(*slowdown == 1 ? "no stall" : fmt::format("at most {} slower than ideal", human_percent(*slowdown - 1)));
  if (time) add("at most " + human_time(*time) + " an iteration");
  if (tokens) add("at least " + human_number(*tokens) + " tokens/s");
  return text;
}

const Trial& Search::at(std::int64_t value) {
  for (const Trial& trial : trials_)
    if (trial.value == value) return trial;
  Trial trial{value, false, {}};
  try {
    trial.result = run_(value);
    trial.met = target_.met_by(trial.result);
  } catch (const InputError& e) {
    trial.result.reason = e.what();
  } catch (const InfeasibleError& e) {
    trial.result.reason = e.what();
  }
  trials_.push_back(std::move(trial));
  return trials_.back();
}

void Search::close_in(std::int64_t& good, std::int64_t& bad, std::int64_t step) {
  for (;;) {
    const std::int64_t apart = std::abs(good - bad);
    if (apart <= step || static_cast<double>(apart) <= tolerance_ * static_cast<double>(std::abs(good))) return;
    const std::int64_t steps = apart / step / 2;
    const std::int64_t middle = good < bad ? good + steps * step : good - steps * step;
    if (middle == good || middle == bad) return;
    (met(middle) ? good : bad) = middle;
  }
}

std::string figures_of(const Result& result) {
  if (!result.has_figures()) return "it can't run: " + result.reason;
  const NpuFigures& figures = result.figures();
  std::string text = fmt::format("{} an iteration, {} the ideal one", human_time(figures.iteration),
                                 human_factor(figures.slowdown));
  if (const auto tokens = result.throughput.tokens_per_s) text += fmt::format(", {} tokens/s", human_number(*tokens));
  return text;
}

std::string binding_of_trial(const Trial& trial) {
  return trial.result.has_figures() && trial.result.fits ? trial.result.binding.sentence : trial.result.reason;
}

Result AskContext::run(const Graph& graph, const Hardware& hardware) const {
  return evaluate({graph, hardware, experiment.iterations}, policy).result;
}

int ask_command(const AskOptions& options) {
  const YamlNode document = load_experiment_file(options.experiment, options.settings);
  AskContext context{options, document, read_experiment(document), parse_policy(options.policy, "--policy"),
                     read_target(options), parse_share(options.tolerance, "--tolerance")};
  if (context.tolerance > 0.5) throw InputError("--tolerance", options.tolerance, "at most 50%");
  for (const auto& [key, value] : document.map())
    if (key == "sweep")
      write_output("", value.where() + ": passed over: a question is asked of the experiment without its axes (--set gives "
                                       "it one of their values)\n");
  context.experiment.graphs = {read_workload_graph(workload_of(document))};
  if (context.target.tokens) {
    const Result resident = evaluate({context.experiment.graphs[0], context.experiment.hardware, 1},
                                     PolicySpec{"resident", {}}).result;
    if (!resident.throughput.tokens_per_s)
      throw InputError("--min-tokens", "a trace whose `meta` says nothing of tokens", "--max-time for this one");
  }
  const Answer answer = answer_of(context);
  write_output("-", options.json ? to_json(context, answer) : answer.sentence);
  return 0;
}

}  // namespace hyperoffload
