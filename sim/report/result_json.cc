#include "sim/report/result_json.h"

#include "sim/report/json_node.h"
#include "sim/report/result_fields.h"

namespace hyperoffload {
namespace {

using Json = nlohmann::ordered_json;

StallCause read_cause(const JsonNode& node) {
  const std::string name = node.text();
  for (StallCause cause : kAllStallCauses)
    if (name == to_string(cause)) return cause;
  node.expect(false, "late_transfer, no_room, hbm_contention, fabric_contention, input_room or host");
  return {};
}

std::vector<Wait> read_worst(const JsonNode& list) {
  std::vector<Wait> waits;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const JsonNode in = list.at(i);
    Wait w;
    w.op = in.at("op").text();
    w.cause = read_cause(in.at("cause"));
    w.reason = in.at("reason").text_or_null();
    w.from = in.at("from_s").seconds();
    w.wait = in.at("wait_s").seconds();
    w.tensor = in.at("tensor").text_or_null();
    if (const JsonNode bytes = in.at("bytes"); !bytes.is_null()) w.bytes = bytes.bytes();
    w.transfer_start = in.at("transfer_start_s").maybe_seconds();
    w.transfer_end = in.at("transfer_end_s").maybe_seconds();
    w.held_by = in.at("held_by").text_or_null();
    w.held_by_name = in.at("held_by_name").text_or_null();
    if (const JsonNode room = in.at("short_bytes"); !room.is_null()) w.short_bytes = room.bytes();
    waits.push_back(std::move(w));
  }
  return waits;
}

LinkUse read_link(const JsonNode& in, Bytes bytes) {
  LinkUse use;
  use.bytes = bytes;
  use.transfers = in.at("transfers").integer();
  use.busy = in.at("busy_s").seconds();
  use.carrying = in.at("carrying_s").seconds();
  use.hidden = in.at("hidden_s").seconds();
  use.exposed = in.at("exposed_s").seconds();
  use.utilisation = in.at("utilisation").number();
  return use;
}

NpuFigures read_npu(const JsonNode& in) {
  NpuFigures f;
  f.npu = in.at("npu").count();
  f.iteration = in.at("iteration_s").seconds();
  f.total = in.at("total_s").seconds();
  f.first_iteration = in.at("first_iteration_s").seconds();
  f.ideal = in.at("ideal_s").seconds();
  f.stall = in.at("stall_s").seconds();
  f.slowdown = in.at("slowdown").number();
  const JsonNode stalls = in.at("stalls");
  f.stalls = {stalls.at("late_transfer_s").seconds(), stalls.at("no_room_s").seconds(),
              stalls.at("hbm_contention_s").seconds(), stalls.at("fabric_contention_s").seconds(),
              stalls.at("input_room_s").seconds(), stalls.at("host_s").seconds(), stalls.at("other_s").seconds()};
  const JsonNode late = stalls.at("late_transfer");
  f.late_transfer = {late.at("carrying_s").seconds(), late.at("latency_s").seconds(),
                     late.at("link_busy_s").seconds(), late.at("room_s").seconds(),
                     late.at("held_back_s").seconds()};
  const JsonNode per_op = stalls.at("per_op");
  f.per_op = {per_op.at("stalled_ops").integer(), per_op.at("max_s").seconds(), per_op.at("p99_s").seconds()};
  f.hbm_peak = in.at("hbm_peak_bytes").bytes();
  const JsonNode links = in.at("links");
  f.pool_to_hbm = read_link(links.at("pool_to_hbm"), in.at("pool_to_hbm_bytes").bytes());
  f.hbm_to_pool = read_link(links.at("hbm_to_pool"), in.at("hbm_to_pool_bytes").bytes());
  return f;
}

void read_figures(const JsonNode& in, Result& r) {
  NpuFigures top = read_npu(in);
  const JsonNode npus = in.at("npus");
  for (std::size_t i = 0; i < npus.size(); ++i) {
    r.npus.push_back(read_npu(npus.at(i)));
    if (r.npus.back().npu == top.npu) r.slowest = static_cast<int>(i);
  }
  npus.expect(!r.npus.empty() && r.figures().npu == top.npu, "an entry for the result's `npu`");
  top.hbm_peak = r.figures().hbm_peak;  // the top level's is the highest of all
  top.worst = read_worst(in.at("stalls").at("worst"));
  r.npus[static_cast<std::size_t>(r.slowest)] = std::move(top);
  r.hbm_peak = in.at("hbm_peak_bytes").bytes();
  r.pool_peak = in.at("pool_peak_bytes").bytes();
  r.stands_for = in.at("npus_represented").count();
  r.pool_requested_peak = in.at("pool_requested_peak_bytes").bytes();
  const JsonNode t = in.at("throughput");
  r.throughput = {t.at("tokens_per_s").maybe_number(), t.at("samples_per_s").maybe_number(),
                  t.at("time_to_first_token_s").maybe_seconds(),
                  t.at("time_per_output_token_s").maybe_seconds(),
                  t.at("model_flops_utilisation").maybe_number()};
  const JsonNode binding = in.at("binding");
  r.binding.resource = binding.at("resource").text();
  r.binding.sentence = binding.at("sentence").text();
  if (const auto needed = binding.at("needed_bytes_per_s").maybe_number())
    r.binding.needed = BytesPerSecond(*needed);
  if (const JsonNode use = in.at("planner"); !use.is_null())
    r.planner = PlannerUse{use.at("read_slack").number(), use.at("write_slack").number(),
                           use.at("replays").count(), use.at("recomputed_layers").count()};
}

Result read_result(const JsonNode& in) {
  const JsonNode format = in.at("format");
  format.expect(format.value == "hyperoffload-result", "\"hyperoffload-result\"");
  const JsonNode version = in.at("version");
  version.expect(version.value == 1, "1, the version this program reads");
  Result r;
  r.trace = in.at("trace").text();
  r.hardware = in.at("hardware").text();
  r.policy = in.at("policy").text();
  r.iterations = in.at("iterations").count();
  const JsonNode fits = in.at("fits");
  fits.expect(fits.value.is_boolean(), "true or false");
  r.fits = fits.value.get<bool>();
  r.reason = in.at("reason").text_or_null();
  r.hbm_capacity = in.at("hbm_capacity_bytes").bytes();
  r.hbm_reserved = in.at("hbm_reserved_bytes").bytes();
  r.pool_capacity = in.at("pool_capacity_bytes").bytes();
  if (const JsonNode bound = in.at("bound"); !bound.is_null())
    r.bound = Bound{bound.at("hbm_peak_bytes").bytes(), bound.at("stall_s").seconds(),
                    bound.at("method").text(), bound.at("order").text(),
                    bound.value.contains("steady_stall_s") ? bound.at("steady_stall_s").maybe_seconds() : std::nullopt};
  if (!in.at("npu").is_null()) read_figures(in, r);
  return r;
}

}  // namespace

std::string result_to_json(const Result& result) { return json_text(result_fields(result), 1) + "\n"; }

std::string results_to_json(const std::vector<Result>& results) {
  Json runs = Json::array();
  for (const Result& result : results) runs.push_back(result_fields(result));
  return json_text(Json{{"runs", std::move(runs)}}, 1) + "\n";
}

std::vector<Result> parse_results(const std::string& text, const std::string& source) {
  const Json json = parse_json(text, source, "results (JSON)");
  const JsonNode root{json, source + ": $"};
  if (!json.is_object() || !json.contains("runs")) return {read_result(root)};
  const JsonNode runs = root.at("runs");
  std::vector<Result> results;
  for (std::size_t i = 0; i < runs.size(); ++i) results.push_back(read_result(runs.at(i)));
  return results;
}

}  // namespace hyperoffload
