// `ask`: questions of people who buy, rent or fill machines, one command each. An answer is found by
// bisection on exact runs (plan and replay) and names what binds just beyond it.
//
// Each question assumes that its quantity is monotone: more HBM, more bandwidth, a shorter sequence, a
// smaller batch, fewer layers in the pool never miss a target that was met. `tolerance` is relative; where
// the search ends, the answer meets the target and the value that far beside it doesn't.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "app/experiment.h"
#include "sim/report/result.h"

namespace hyperoffload {

struct AskOptions {
  std::string question, experiment;
  std::vector<std::string> settings;
  std::string policy = "graph";
  std::optional<std::string> max_slowdown, max_time;
  std::optional<double> min_tokens;
  std::string tolerance = "0.1%";
  std::int64_t step = 0;         // sequence, batch: only multiples of it; 0: see the question
  std::optional<int> layers;     // layers: the figures of so many, no search
  std::string prices;            // machine
  bool json = false;
};

int ask_command(const AskOptions& options);

// What a run must keep to; what isn't asked for is empty.
struct Target {
  std::optional<double> slowdown;  // iteration / ideal, at most
  std::optional<Seconds> time;     // of an iteration, at most
  std::optional<double> tokens;    // a second, at least

  bool met_by(const Result& result) const;
  std::string text() const;  // "no stall", "at least 5 tokens/s"
};
Target read_target(const AskOptions& options);  // none asked for: no stall

struct Trial {
  std::int64_t value = 0;
  bool met = false;
  Result result;
};

// Runs at integer values, each once. InputError and InfeasibleError of a run are a missed target, its
// message the reason.
class Search {
 public:
  Search(Target target, double tolerance, std::function<Result(std::int64_t)> run)
      : target_(std::move(target)), tolerance_(tolerance), run_(std::move(run)) {}

  const Trial& at(std::int64_t value);
  bool met(std::int64_t value) { return at(value).met; }
  // `good` meets the target, `bad` doesn't (it isn't run): both moved together until they are one step or the
  // tolerance apart. Either may be the larger.
  void close_in(std::int64_t& good, std::int64_t& bad, std::int64_t step = 1);
  const std::vector<Trial>& trials() const { return trials_; }  // in the order they were run

 private:
  Target target_;
  double tolerance_;
  std::function<Result(std::int64_t)> run_;
  std::vector<Trial> trials_;
};

// Every rate on the way between NPU and pool, times a factor.
Hardware with_pool_speed(Hardware hardware, double factor);

struct Answer {
  std::string sentence;  // the answer and what binds, lines for a terminal
  std::vector<std::pair<std::string, double>> values;  // "hbm_bytes": ...
  std::string binds;                                   // what keeps it from being better
  std::vector<Trial> trials;
};

std::string figures_of(const Result& result);  // "5.687 s an iteration, 1.000x the ideal one, 11524 tokens/s"
std::string binding_of_trial(const Trial& trial);

// The experiment with its graph; questions replace parts of it.
struct AskContext {
  const AskOptions& options;
  YamlNode document;
  Experiment experiment;
  PolicySpec policy;
  Target target;
  double tolerance = 0;

  Result run(const Graph& graph, const Hardware& hardware) const;
};

// InfeasibleError, saying why, where there is no answer.
Answer ask_hbm(const AskContext& context);
Answer ask_bandwidth(const AskContext& context);
Answer ask_size(const AskContext& context, const std::string& key);  // "sequence" or "batch"
Answer ask_layers(const AskContext& context);
Answer ask_machine(const AskContext& context);

}  // namespace hyperoffload
