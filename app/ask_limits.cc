// Least HBM, least pool bandwidth, longest sequence, largest batch.
#include <fmt/format.h>

#include <algorithm>

#include "app/ask.h"
#include "app/evaluate.h"
#include "sim/model/error.h"
#include "sim/model/yaml_reader.h"
#include "sim/report/human.h"

namespace hyperoffload {
namespace {

[[noreturn]] void no_answer(const std::string& why, const Trial& trial) {
  throw InfeasibleError(fmt::format("no answer: {}: {}{}", why, figures_of(trial.result),
                                    trial.result.has_figures() ? "; " + binding_of_trial(trial) : ""));
}

std::string beyond(const std::string& at, const Trial& trial) {
  if (!trial.result.fits || !trial.result.has_figures())
    return fmt::format("at {}: {}\n", at, trial.result.reason);
  return fmt::format("at {}: {}\n{}\n", at, figures_of(trial.result), trial.result.binding.sentence);
}

// All bytes there are, at once: with several engines a plan needs room for whatever may run early, which can be more than what
// is ever there when nothing moves.
std::int64_t all_bytes(const Graph& graph) {
  std::int64_t sum = 0;
  for (const Tensor& tensor : graph.tensors()) sum += tensor.bytes.value;
  for (const Op& op : graph.ops()) sum += op.workspace.value;
  return sum;
}

}  // namespace

Hardware with_pool_speed(Hardware hardware, double factor) {
  const auto scale = [&](std::optional<BytesPerSecond>& rate) {
    if (rate) rate->value *= factor;
  };
  for (LinkDirection* link : {&hardware.link_read, &hardware.link_write}) link->bandwidth.value *= factor;
  if (hardware.link_far)
    for (LinkDirection* link : {&hardware.link_far->read, &hardware.link_far->write}) link->bandwidth.value *= factor;
  for (auto* rate : {&hardware.pool_read_port, &hardware.pool_write_port, &hardware.socket_memory, &hardware.socket_port})
    scale(*rate);
  return hardware;
}

Answer ask_hbm(const AskContext& context) {
  const Hardware& declared = context.experiment.hardware;
  const Graph& graph = context.experiment.graphs[0];
  Search search(context.target, context.tolerance, [&](std::int64_t bytes) {
    Hardware hardware = declared;
    hardware.hbm_capacity = Bytes(bytes);
    return context.run(graph, hardware);
  });
  // With room for everything at once nothing need move but what the trace keeps in the pool.
  const Result resident = evaluate({graph, declared, context.experiment.iterations}, PolicySpec{"resident", {}}).result;
  std::int64_t good = (resident.hbm_peak + declared.hbm_reserved).value, bad = declared.hbm_reserved.value;
  good = std::max(good, bad + 1);
  if (graph.engines().size() > 1 && !search.met(good)) {
    bad = good;
    good = all_bytes(graph) + declared.hbm_reserved.value;
  }
  if (!search.met(good))
    no_answer(fmt::format("with {} of HBM, room for all at once, the target ({}) isn't met", human_bytes(Bytes(good)), context.target.text()),
              search.at(good));
  search.close_in(good, bad);

  Answer answer;
  Result found = search.at(good).result;
  if (context.experiment.bound == BoundMethod::kLp) {
    Hardware hardware = declared;
    hardware.hbm_capacity = Bytes(good);
    found.bound = prove_bound(graph, hardware, context.experiment.iterations, BoundMethod::kLp);
  }
  answer.sentence = fmt::format("{} ({} B) of HBM are the least that policy {} takes for {}: {}\n", human_bytes(Bytes(good)),
                                good, context.policy.text(), context.target.text(), figures_of(found));
  answer.values = {{"hbm_bytes", static_cast<double>(good)}, {"resident_bytes", static_cast<double>(resident.hbm_peak.value)}};
  if (found.bound) {
    if (context.target.slowdown == 1.0)
      answer.sentence += fmt::format("no plan does with less than {} ({} bound); everything at once takes {}\n",
                                     human_bytes(found.bound->hbm_peak + declared.hbm_reserved), found.bound->method,
                                     human_bytes(resident.hbm_peak + declared.hbm_reserved));
    answer.values.emplace_back("bound_hbm_bytes", static_cast<double>((found.bound->hbm_peak + declared.hbm_reserved).value));
  }
  if (bad > declared.hbm_reserved.value) {
    answer.binds = binding_of_trial(search.at(bad));
    answer.sentence += beyond(human_bytes(Bytes(bad)), search.at(bad));
  }
  answer.trials = search.trials();
  return answer;
}

Answer ask_bandwidth(const AskContext& context) {
  constexpr double kEndless = 1e6, kNone = 1e-6;  // times what is declared
  const Hardware& declared = context.experiment.hardware;
  const double read = declared.link_read.bandwidth.value, write = declared.link_write.bandwidth.value;
  // The value searched is the read bandwidth in B/s; all else on the way keeps its ratio to it.
  Search search(context.target, context.tolerance, [&](std::int64_t rate) {
    return context.run(context.experiment.graphs[0], with_pool_speed(declared, static_cast<double>(rate) / read));
  });
  const auto bytes_per_s = [&](double factor) { return static_cast<std::int64_t>(std::clamp(read * factor, 1.0, 4e18)); };
  if (const std::int64_t most = bytes_per_s(kEndless); !search.met(most))
    no_answer(fmt::format("even a million times the machine's pool bandwidth doesn't meet the target ({})", context.target.text()),
              search.at(most));
  std::int64_t good = bytes_per_s(1), bad = good;
  while (!search.met(good)) {
    bad = good;
    good = std::min(2 * good, bytes_per_s(kEndless));
  }
  while (good == bad || search.met(bad)) {
    if (search.met(bad)) good = bad;
    if (bad <= bytes_per_s(kNone)) break;
    bad = std::max(bytes_per_s(kNone), bad / 2);
  }
  Answer answer;
  if (good != bad) search.close_in(good, bad);
  const double factor = static_cast<double>(good) / read;
  answer.values = {{"read_bytes_per_s", static_cast<double>(good)}, {"write_bytes_per_s", write * factor}, {"factor", factor}};
  if (good == bad) {
    answer.sentence = fmt::format("next to none: the target ({}) is met even at a millionth of the machine's pool bandwidth: {}\n",
                                  context.target.text(), figures_of(search.at(good).result));
  } else {
    answer.sentence = fmt::format(
        "{} from the pool (and {} to it, all rates on the way in the machine's ratio) are the least that policy {} takes for {}: "
        "{}\nthat is {} of what the machine has\n",
        human_rate(BytesPerSecond(static_cast<double>(good))), human_rate(BytesPerSecond(write * factor)),
        context.policy.text(), context.target.text(), figures_of(search.at(good).result), human_factor(factor));
    answer.binds = binding_of_trial(search.at(bad));
    answer.sentence += beyond(human_rate(BytesPerSecond(static_cast<double>(bad))), search.at(bad));
  }
  answer.trials = search.trials();
  return answer;
}

Answer ask_size(const AskContext& context, const std::string& key) {
  const std::string path = "workload." + key;
  const YamlNode workload = workload_of(context.document);
  if (trace_file_of(workload)) workload.fail("a trace", fmt::format("a model's workload with `{}`", key));
  std::optional<YamlNode> place;
  std::int64_t microbatches = 1;
  for (const auto& [name, value] : workload.map()) {
    if (name == key) place = value;
    if (name == "train" && value.is_map())
      for (const auto& [inner, count] : value.map())
        if (inner == "microbatches") microbatches = count.integer(1, 1'000'000);
  }
  const std::int64_t start = place->integer(1, std::int64_t{1} << 31);
  const std::int64_t step = context.options.step > 0 ? context.options.step : key == "batch" ? microbatches : 1;
  Search search(context.target, context.tolerance, [&](std::int64_t value) {
    const YamlNode document = with_experiment_value(context.document, path, with_text(*place, std::to_string(value)));
    return context.run(read_workload_graph(workload_of(document)), context.experiment.hardware);
  });
  const std::string unit = key == "sequence" ? "tokens" : "samples";
  std::int64_t good = std::max(step, start / step * step), bad = 0;
  if (search.met(good)) {
    for (bad = 2 * good; search.met(bad); bad *= 2) good = bad;
  } else {
    for (bad = good; !search.met(good); good = std::max(step, good / 2 / step * step)) {
      bad = good;
      if (good == step) no_answer(fmt::format("not even {} {} meet the target ({})", step, unit, context.target.text()), search.at(good));
    }
  }
  search.close_in(good, bad, step);
  Answer answer;
  answer.sentence = fmt::format("{} {}: the {} that policy {} runs with {}: {}\n", good, unit,
                                key == "sequence" ? "longest sequence" : "largest batch", context.policy.text(),
                                context.target.text(), figures_of(search.at(good).result));
  answer.values = {{key, static_cast<double>(good)}};
  answer.binds = binding_of_trial(search.at(bad));
  answer.sentence += beyond(fmt::format("{} {}", bad, unit), search.at(bad));
  answer.trials = search.trials();
  return answer;
}

}  // namespace hyperoffload
