#include "app/published_policies.h"

#include <fmt/format.h>

#include "sim/model/error.h"
#include "sim/policy/capuchin.h"
#include "sim/policy/flash_neuron.h"
#include "sim/policy/g10.h"
#include "sim/policy/page_fault.h"

namespace hyperoffload {
namespace {

using Kind = PolicyOption::Kind;

PolicyEntry page_fault_entry() {
  PolicyEntry entry;
  entry.info = {
      "page_fault",
      "unified memory: ops fault on what isn't in HBM, least recently used pages go",
      {{"fault_latency", Kind::kSeconds, "45us", "a fault's handling, before its bytes"},
       {"page", Kind::kBytes, "64KiB", "what one fault needs"},
       {"prefetch", Kind::kInteger, "32", "pages a fault brings, in order of address", {}, 1, 1'000'000},
       {"frees",
        Kind::kWord,
        "yes",
        "pages of dead tensors go to new ones; no: each tensor keeps its own",
        {"yes", "no"}},
       {"overlap",
        Kind::kWord,
        "no",
        "pages leave beside others that arrive, not before them",
        {"yes", "no"}},
       {"correlation",
        Kind::kWord,
        "no",
        "DeepUM: learn in iteration 1 what follows, fetch it ahead",
        {"yes", "no"}},
       {"degree", Kind::kInteger, "8", "ops that correlation looks ahead", {}, 1, 1'000'000}}};
  entry.runtime = [](const PolicySpec& spec) {
    PageFaultOptions options;
    options.fault_latency = spec.seconds("fault_latency");
    options.page = spec.bytes("page");
    if (options.page < Bytes(1) || options.page > Bytes(1LL << 40))
      throw InputError("option page of policy page_fault", fmt::format("{} B", options.page.value),
                       "1B to 1TiB");
    options.prefetch = static_cast<int>(spec.integer("prefetch"));
    options.frees = spec.is("frees", "yes");
    options.overlap = spec.is("overlap", "yes");
    options.correlation = spec.is("correlation", "yes");
    options.degree = static_cast<int>(spec.integer("degree"));
    return std::make_unique<PageFaultPolicy>(options);
  };
  return entry;
}

PolicyEntry capuchin_entry() {
  PolicyEntry entry;
  entry.info = {
      "capuchin", "first iteration on demand and measured, later ones swap by free time (ASPLOS 2020)", {}};
  entry.runtime = [](const PolicySpec&) { return std::make_unique<CapuchinPolicy>(); };
  return entry;
}

PolicyEntry flash_neuron_entry() {
  PolicyEntry entry;
  entry.info = {"flash_neuron", "static: activations in linear order until the rest fits (FAST 2021)", {}};
  entry.fixed = [](const Graph& graph, const Hardware& hardware, int iterations, const PolicySpec&) {
    return flash_neuron(graph, hardware, iterations);
  };
  return entry;
}

PolicyEntry g10_entry() {
  PolicyEntry entry;
  entry.info = {"g10", "static: inactive periods by benefit, with a ledger of the links (MICRO 2023)", {}};
  entry.fixed = [](const Graph& graph, const Hardware& hardware, int iterations, const PolicySpec&) {
    return g10_migration(graph, hardware, iterations);
  };
  return entry;
}

}  // namespace

std::vector<PolicyEntry> published_policies() {
  return {page_fault_entry(), capuchin_entry(), flash_neuron_entry(), g10_entry()};
}

}  // namespace hyperoffload
