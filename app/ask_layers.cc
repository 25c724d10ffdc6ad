// How many layers' weights may live in the pool, streamed in at each use.
#include <fmt/format.h>

#include <algorithm>

#include "app/ask.h"
#include "app/evaluate.h"
#include "app/layer_plan.h"
#include "sim/model/error.h"
#include "sim/report/human.h"

namespace hyperoffload {
namespace {

struct Streaming {
  const AskContext& context;
  std::vector<LayerWeights> layers;

  // On an HBM that holds whatever it takes: how fast it is. Whether it fits is another question.
  Result run(std::int64_t offloaded) const {
    Hardware hardware = context.experiment.hardware;
    hardware.hbm_capacity = Bytes(std::int64_t{1} << 60);
    const int iterations = std::max(3, context.experiment.iterations);  // the first begins cold
    return evaluate({context.experiment.graphs[0], hardware, iterations},
                    stream_layers(context.experiment.graphs[0], layers, static_cast<int>(offloaded)))
        .result;
  }
  Bytes hbm_of(const Result& result) const { return result.hbm_peak + context.experiment.hardware.hbm_reserved; }
  bool fits(const Result& result) const { return hbm_of(result) <= context.experiment.hardware.hbm_capacity; }
  std::string share(std::int64_t n) const { return fmt::format("{} of {} layers", n, layers.size()); }
  std::string needs(const Result& result) const {
    return fmt::format("it takes {} of HBM, the machine has {}", human_bytes(hbm_of(result)),
                       human_bytes(context.experiment.hardware.hbm_capacity));
  }
  // What was tried, as it is on this machine.
  std::vector<Trial> judged(std::vector<Trial> trials) const {
    for (Trial& trial : trials) trial.result.fits = fits(trial.result);
    return trials;
  }
};

Streaming streaming_of(const AskContext& context) {
  Streaming streaming{context, layer_weights(context.experiment.graphs[0])};
  if (streaming.layers.empty())
    throw InputError(context.options.experiment + ": workload",
                     "no weights that one layer alone reads and none writes",
                     "a trace of inference whose ops name their `layer`");
  return streaming;
}

Answer figures_only(const Streaming& streaming, int offloaded) {
  const auto all = static_cast<int>(streaming.layers.size());
  if (offloaded < 0 || offloaded > all)
    throw InputError("--layers", std::to_string(offloaded), fmt::format("0 to {}, the layers there are", all));
  Trial trial{offloaded, false, streaming.run(offloaded)};
  const AskOptions& options = streaming.context.options;
  const bool has_target = options.max_slowdown || options.max_time || options.min_tokens;
  const bool fits = streaming.fits(trial.result), in_time = !has_target || streaming.context.target.met_by(trial.result);
  trial.met = fits && in_time;
  Answer answer;
  answer.sentence = fmt::format("{} in the pool: {}\n{}\nit {}: {}\n", streaming.share(offloaded), figures_of(trial.result),
                                binding_of_trial(trial), fits ? "fits" : "does not fit, the figures are those of a device big enough",
                                streaming.needs(trial.result));
  if (has_target)
    answer.sentence += fmt::format("the target ({}) is {}\n", streaming.context.target.text(), in_time ? "met" : "missed");
  answer.values = {{"layers", offloaded}, {"hbm_bytes", static_cast<double>(streaming.hbm_of(trial.result).value)}};
  if (const auto tokens = trial.result.throughput.tokens_per_s) answer.values.emplace_back("tokens_per_s", *tokens);
  answer.binds = binding_of_trial(trial);
  answer.trials = streaming.judged({trial});
  return answer;
}

// Fewest layers in the pool that let the rest fit; none: even all of them don't.
std::optional<std::int64_t> fewest_that_fit(const Streaming& streaming, std::int64_t from) {
  std::int64_t bad = from, good = static_cast<std::int64_t>(streaming.layers.size());
  if (!streaming.fits(streaming.run(good))) return std::nullopt;
  while (good - bad > 1) {
    const std::int64_t middle = bad + (good - bad) / 2;
    (streaming.fits(streaming.run(middle)) ? good : bad) = middle;
  }
  return good;
}

}  // namespace

Answer ask_layers(const AskContext& context) {
  const Streaming streaming = streaming_of(context);
  if (context.options.layers) return figures_only(streaming, *context.options.layers);
  const auto all = static_cast<std::int64_t>(streaming.layers.size());
  Search search(context.target, 0, [&](std::int64_t n) { return streaming.run(n); });
  if (!search.met(0))
    throw InfeasibleError(fmt::format("no answer: with every layer in HBM the target ({}) isn't met: {}; {}", context.target.text(),
                                      figures_of(search.at(0).result), binding_of_trial(search.at(0))));
  std::int64_t good = 0, bad = all;
  if (search.met(all))
    good = all;
  else
    search.close_in(good, bad);
  const Result best = search.at(good).result;
  Answer answer;
  answer.sentence = fmt::format("at most {} may be in the pool for {}: {}\n", streaming.share(good), context.target.text(),
                                figures_of(best));
  if (good < all) {
    answer.binds = binding_of_trial(search.at(bad));
    answer.sentence += fmt::format("{}: {}\n{}\n", streaming.share(bad), figures_of(search.at(bad).result), answer.binds);
  }
  if (!streaming.fits(best)) {
    const std::optional<std::int64_t> fewest = fewest_that_fit(streaming, good);
    throw InfeasibleError(
        answer.sentence + "no answer on this machine: " + streaming.needs(best) + "; " +
        (fewest ? fmt::format("at least {} must be in the pool, and that gives {}", streaming.share(*fewest),
                              figures_of(streaming.run(*fewest)))
                : std::string("even with all of them in the pool the rest doesn't fit")));
  }
  answer.sentence += streaming.needs(best) + "\n";
  answer.values = {{"layers", static_cast<double>(good)}, {"of_layers", static_cast<double>(all)},
                   {"hbm_bytes", static_cast<double>(streaming.hbm_of(best).value)}};
  answer.trials = streaming.judged(search.trials());
  return answer;
}

}  // namespace hyperoffload
