#include "sim/report/result_fields.h"

#include <cmath>

namespace hyperoffload {
namespace {

using Json = nlohmann::ordered_json;

Json number(double value) {
  if (!std::isfinite(value)) return nullptr;
  return value == 0 ? 0.0 : value;  // no -0.0
}
Json number(Seconds value) { return number(value.value); }
Json number(BytesPerSecond value) { return number(value.value); }
Json number(Bytes value) { return value.value; }

template <class T>
Json number(const std::optional<T>& value) {
  return value ? number(*value) : Json(nullptr);
}

Json text(const std::string& value) { return value.empty() ? Json(nullptr) : Json(value); }

Json wait_fields(const Wait& w) {
  return {{"op", w.op},
          {"cause", to_string(w.cause)},
          {"reason", text(w.reason)},
          {"from_s", number(w.from)},
          {"wait_s", number(w.wait)},
          {"tensor", text(w.tensor)},
          {"bytes", number(w.bytes)},
          {"transfer_start_s", number(w.transfer_start)},
          {"transfer_end_s", number(w.transfer_end)},
          {"held_by", text(w.held_by)},
          {"held_by_name", text(w.held_by_name)},
          {"short_bytes", number(w.short_bytes)}};
}

Json stall_fields(const NpuFigures& f, bool with_worst) {
  Json stalls = {{"late_transfer_s", number(f.stalls.late_transfer)},
                 {"no_room_s", number(f.stalls.no_room)},
                 {"hbm_contention_s", number(f.stalls.hbm_contention)},
                 {"fabric_contention_s", number(f.stalls.fabric_contention)},
                 {"input_room_s", number(f.stalls.input_room)},
                 {"host_s", number(f.stalls.host)},
                 {"other_s", number(f.stalls.other)},
                 {"late_transfer",
                  {{"carrying_s", number(f.late_transfer.carrying)},
                   {"latency_s", number(f.late_transfer.latency)},
                   {"link_busy_s", number(f.late_transfer.link_busy)},
                   {"room_s", number(f.late_transfer.room)},
                   {"held_back_s", number(f.late_transfer.held_back)}}},
                 {"per_op",
                  {{"stalled_ops", f.per_op.stalled_ops},
                   {"max_s", number(f.per_op.max)},
                   {"p99_s", number(f.per_op.p99)}}}};
  if (!with_worst) return stalls;
  Json& worst = stalls["worst"] = Json::array();
  for (const Wait& wait : f.worst) worst.push_back(wait_fields(wait));
  return stalls;
}

Json link_fields(const LinkUse& use) {
  return {{"transfers", use.transfers},         {"busy_s", number(use.busy)},
          {"carrying_s", number(use.carrying)}, {"hidden_s", number(use.hidden)},
          {"exposed_s", number(use.exposed)},   {"utilisation", number(use.utilisation)}};
}

// The fields that the top level and an entry of `npus` share, in two halves: the machine's figures
// stand between them at the top.
void add_times(Json& out, const NpuFigures& f, bool with_worst) {
  out["iteration_s"] = number(f.iteration);
  out["total_s"] = number(f.total);
  out["first_iteration_s"] = number(f.first_iteration);
  out["ideal_s"] = number(f.ideal);
  out["stall_s"] = number(f.stall);
  out["slowdown"] = number(f.slowdown);
  out["stalls"] = stall_fields(f, with_worst);
}

void add_moved(Json& out, const NpuFigures& f) {
  out["pool_to_hbm_bytes"] = number(f.pool_to_hbm.bytes);
  out["hbm_to_pool_bytes"] = number(f.hbm_to_pool.bytes);
}

Json links_of(const NpuFigures& f) {
  return {{"pool_to_hbm", link_fields(f.pool_to_hbm)}, {"hbm_to_pool", link_fields(f.hbm_to_pool)}};
}

Json npu_fields(const NpuFigures& f) {
  Json out = {{"npu", f.npu}};
  add_times(out, f, false);
  out["hbm_peak_bytes"] = number(f.hbm_peak);
  add_moved(out, f);
  out["links"] = links_of(f);
  return out;
}

Json bound_fields(const std::optional<Bound>& bound) {
  if (!bound) return nullptr;
  return {{"hbm_peak_bytes", number(bound->hbm_peak)},
          {"stall_s", number(bound->stall)},
          {"method", bound->method},
          {"order", bound->order},
          {"steady_stall_s", number(bound->steady_stall)}};
}

Json throughput_fields(const Throughput& t) {
  return {{"tokens_per_s", number(t.tokens_per_s)},
          {"samples_per_s", number(t.samples_per_s)},
          {"time_to_first_token_s", number(t.time_to_first_token)},
          {"time_per_output_token_s", number(t.time_per_output_token)},
          {"model_flops_utilisation", number(t.model_flops_utilisation)}};
}

Json binding_fields(const Binding& b) {
  return {{"resource", b.resource}, {"needed_bytes_per_s", number(b.needed)}, {"sentence", b.sentence}};
}

Json planner_fields(const std::optional<PlannerUse>& use) {
  if (!use) return nullptr;
  return {{"read_slack", number(use->read_slack)},
          {"write_slack", number(use->write_slack)},
          {"replays", use->replays},
          {"recomputed_layers", use->recomputed_layers}};
}

// The same keys as with figures, all null, in the same places.
Json without_figures(const Result& r) {
  Json out = Json::object();
  for (const char* key : {"npu", "iteration_s", "total_s", "first_iteration_s", "ideal_s", "stall_s",
                          "slowdown", "stalls", "hbm_peak_bytes"})
    out[key] = nullptr;
  out["hbm_capacity_bytes"] = number(r.hbm_capacity);
  out["hbm_reserved_bytes"] = number(r.hbm_reserved);
  out["pool_peak_bytes"] = nullptr;
  out["pool_requested_peak_bytes"] = nullptr;
  out["pool_capacity_bytes"] = number(r.pool_capacity);
  for (const char* key : {"pool_to_hbm_bytes", "hbm_to_pool_bytes"}) out[key] = nullptr;
  out["bound"] = bound_fields(r.bound);
  for (const char* key : {"throughput", "links", "binding", "planner"}) out[key] = nullptr;
  out["npus_represented"] = nullptr;
  out["npus"] = Json::array();
  return out;
}

Json with_figures(const Result& r) {
  const NpuFigures& f = r.figures();
  Json out = {{"npu", f.npu}};
  add_times(out, f, true);
  out["hbm_peak_bytes"] = number(r.hbm_peak);
  out["hbm_capacity_bytes"] = number(r.hbm_capacity);
  out["hbm_reserved_bytes"] = number(r.hbm_reserved);
  out["pool_peak_bytes"] = number(r.pool_peak);
  out["pool_requested_peak_bytes"] = number(r.pool_requested_peak);
  out["pool_capacity_bytes"] = number(r.pool_capacity);
  add_moved(out, f);
  out["bound"] = bound_fields(r.bound);
  out["throughput"] = throughput_fields(r.throughput);
  out["links"] = links_of(f);
  out["binding"] = binding_fields(r.binding);
  out["planner"] = planner_fields(r.planner);
  out["npus_represented"] = r.stands_for;
  Json& npus = out["npus"] = Json::array();
  for (const NpuFigures& npu : r.npus) npus.push_back(npu_fields(npu));
  return out;
}

}  // namespace

Json result_fields(const Result& r) {
  Json out = {{"format", "hyperoffload-result"},
              {"version", 1},
              {"trace", r.trace},
              {"hardware", r.hardware},
              {"policy", r.policy},
              {"iterations", r.iterations},
              {"fits", r.fits},
              {"reason", text(r.reason)}};
  out.update(r.has_figures() ? with_figures(r) : without_figures(r));
  return out;
}

std::string json_text(const Json& value, int indent) {
  return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace hyperoffload
