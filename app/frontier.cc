#include "app/frontier.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace hyperoffload {

std::string frontier_to_json(const std::vector<FrontierPoint>& curve, const Graph& graph, const Hardware& hardware,
                             int iterations) {
  nlohmann::ordered_json json{{"format", "hyperoffload-frontier"}, {"version", 1},
                              {"trace", graph.name()},             {"hardware", hardware.name},
                              {"iterations", iterations},          {"points", nlohmann::ordered_json::array()}};
  for (const FrontierPoint& p : curve)
    json["points"].push_back(
        {{"hbm_bytes", p.hbm.value},
         {"hbm_peak_bytes", p.prediction.hbm_peak.value},
         {"iteration_s", p.prediction.iteration.value},
         {"ideal_s", p.prediction.ideal.value},
         {"stall_s", p.prediction.iteration.value - p.prediction.ideal.value},
         {"pool_to_hbm_bytes", p.pool_to_hbm.value},
         {"hbm_to_pool_bytes", p.hbm_to_pool.value},
         {"bound", {{"stall_s", p.bound.stall.value}, {"method", p.bound.method}}}});
  return json.dump(1) + "\n";
}

std::string frontier_to_csv(const std::vector<FrontierPoint>& curve) {
  std::string csv =
      "hbm_bytes,hbm_peak_bytes,iteration_s,ideal_s,stall_s,pool_to_hbm_bytes,hbm_to_pool_bytes,bound.stall_s,"
      "bound.method\n";
  for (const FrontierPoint& p : curve)
    csv += fmt::format("{},{},{},{},{},{},{},{},{}\n", p.hbm.value, p.prediction.hbm_peak.value,
                       p.prediction.iteration.value, p.prediction.ideal.value,
                       p.prediction.iteration.value - p.prediction.ideal.value, p.pool_to_hbm.value,
                       p.hbm_to_pool.value, p.bound.stall.value, p.bound.method);
  return csv;
}

}  // namespace hyperoffload
