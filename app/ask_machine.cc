// Which machine of a price list is the cheapest that meets the target.
//
// An hour costs NPUs x `npu_hour` and the gigabytes (1e9 B) of pool that the run takes x `pool_gb_hour`.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "app/ask.h"
#include "sim/model/error.h"
#include "sim/report/human.h"

namespace hyperoffload {
namespace {

struct Offer {
  Hardware hardware;
  double npu_hour = 0, pool_gb_hour = 0;
};

struct PriceList {
  std::string currency;
  std::vector<Offer> offers;
};

PriceList load_prices(const std::string& path) {
  constexpr double kMostMoney = 1e9;
  const YamlMap map(load_yaml(path), {"currency", "description", "machines"});
  PriceList list{map.get("currency").string(), {}};
  for (const YamlNode& node : map.get("machines").list()) {
    const YamlMap keys(node, {"hardware", "hbm", "npu_hour", "pool_gb_hour"});
    const YamlNode hardware = keys.get("hardware");
    Offer offer{hardware.is_scalar() ? load_hardware(hardware.file_name()) : read_hardware(hardware),
                keys.get("npu_hour").number(0, kMostMoney), 0};
    if (const auto hbm = keys.find("hbm")) replace_hbm_capacity(offer.hardware, hbm->bytes(), hbm->where());
    if (const auto pool = keys.find("pool_gb_hour")) offer.pool_gb_hour = pool->number(0, kMostMoney);
    list.offers.push_back(std::move(offer));
  }
  if (list.offers.empty()) map.get("machines").fail("an empty list", "at least one machine");
  return list;
}

double cost_of(const Offer& offer, const Result& result) {
  return ranks_of(offer.hardware) * offer.npu_hour + static_cast<double>(result.pool_peak.value) / 1e9 * offer.pool_gb_hour;
}

std::string row(const PriceList& list, const Offer& offer, const Trial& trial) {
  const std::string& name = offer.hardware.name;
  if (!trial.result.has_figures()) return fmt::format("{}: {}\n", name, trial.result.reason);
  const double cost = cost_of(offer, trial.result);
  std::string text = fmt::format("{}: {:.2f} {} an hour, {}", name, cost, list.currency, figures_of(trial.result));
  if (const auto tokens = trial.result.throughput.tokens_per_s; tokens && *tokens > 0)
    text += fmt::format(", {:.4g} {} a million tokens", cost / (*tokens * 3600) * 1e6, list.currency);
  if (!trial.met) text += "; missed: " + binding_of_trial(trial);
  return text + "\n";
}

}  // namespace

Answer ask_machine(const AskContext& context) {
  if (context.options.prices.empty()) throw InputError("--prices", "nothing", "a price list (YAML), like configs/prices.yaml");
  const PriceList list = load_prices(context.options.prices);
  Search search(context.target, 0, [&](std::int64_t i) {
    return context.run(context.experiment.graphs[0], list.offers[static_cast<std::size_t>(i)].hardware);
  });
  std::string rows;
  std::optional<std::int64_t> best;
  const auto cost = [&](std::int64_t i) { return cost_of(list.offers[static_cast<std::size_t>(i)], search.at(i).result); };
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(list.offers.size()); ++i) {
    rows += row(list, list.offers[static_cast<std::size_t>(i)], search.at(i));
    if (search.met(i) && (!best || cost(i) < cost(*best))) best = i;
  }
  if (!best) throw InfeasibleError(fmt::format("no answer: no machine of the list meets the target ({})\n{}", context.target.text(), rows));
  Answer answer;
  const std::string name = list.offers[static_cast<std::size_t>(*best)].hardware.name;
  answer.sentence = fmt::format("{} is the cheapest that meets the target ({}), at {:.2f} {} an hour: {}\n{}\n{}", name,
                                context.target.text(), cost(*best), list.currency, figures_of(search.at(*best).result),
                                search.at(*best).result.binding.sentence, rows);
  answer.values = {{"machine", static_cast<double>(*best)}, {"cost_per_hour", cost(*best)}};
  answer.binds = search.at(*best).result.binding.sentence;
  answer.trials = search.trials();
  return answer;
}

}  // namespace hyperoffload
