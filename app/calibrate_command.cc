#include "app/calibrate_command.h"

#include <fmt/format.h>

#include <algorithm>

#include "app/calibrate.h"
#include "app/output.h"
#include "sim/model/count_of.h"
#include "sim/model/error.h"
#include "sim/model/graph.h"
#include "sim/model/json_reader.h"
#include "sim/model/nearest_name.h"
#include "sim/model/parse_units.h"
#include "sim/report/human.h"

namespace hyperoffload {
namespace {

// Kernels of generated traces that are products of matrices, and those that only move bytes.
const std::vector<std::string> kMatmuls = {
    "qkv", "q_a",   "q_b",    "kv_a",    "kv_b",    "absorb_q", "absorb_v", "gate_up",     "down",
    "out", "out_a", "router", "experts", "lm_head", "ssm_in",   "ssm_out",  "indexer_proj"};
const std::vector<std::string> kVectors = {"norm",  "qk_norm",  "rope",    "kv_append", "gate",  "add", "act",
                                           "embed", "dispatch", "combine", "streams",   "scale", "join"};

void add_layer_trace(const std::string& path, Measured& measured) {
  const Graph graph = load_graph(path);
  for (const Op& op : graph.ops()) {
    if (!op.duration || op.duration->value <= 0 || op.memory == Tier::kPool || op.collective) continue;
    const double flops = op.flops ? op.flops->value : 0;
    const double bytes = op.hbm_bytes ? static_cast<double>(op.hbm_bytes->value) : 0;
    if (flops > 0 || bytes > 0)
      measured.kernels.push_back({op.kernel, flops, bytes, *op.duration});
    else
      ++measured.other_kernels;
  }
}

std::string microseconds(Seconds time) { return fmt::format("{:.6g}us", time.value * 1e6); }

// A mapping's key: a kernel's name comes from a file. JSON's strings are YAML's.
std::string yaml_key(const std::string& name) {
  const bool plain = name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_-") == std::string::npos &&
                     !name.empty() && name[0] >= 'a' && name != "null";
  if (plain) return name;
  std::string text;
  append_json_string(text, name);
  for (std::size_t at = 0; (at = text.find('\x7f', at)) != std::string::npos;) text.replace(at, 1, "\\u007f");  // no YAML
  return text;
}

std::vector<std::string> names_of(const KernelFit& fit, bool by_class) {
  if (by_class && fit.kernel == "matmul") return kMatmuls;
  if (by_class && fit.kernel == "vector") return kVectors;
  return {fit.kernel};
}

std::string efficiency_lines(const Calibration& c, bool by_class) {
  std::string text;
  for (const KernelFit& fit : c.kernels) {
    if (!(fit.compute || fit.bandwidth) || fit.kernel.empty()) continue;
    std::string entry;
    if (fit.compute) entry = fmt::format("compute: {:.6g}", *fit.compute);
    if (fit.bandwidth) entry += fmt::format("{}bandwidth: {:.6g}", entry.empty() ? "" : ", ", *fit.bandwidth);
    for (const std::string& name : names_of(fit, by_class))
      text += fmt::format("    {}: {{{}}}\n", yaml_key(name), entry);
  }
  return text;
}

// The link is that of pinned memory; of pageable memory where nothing else was seen.
const CopyFit* link_fit(const Calibration& c, bool to_device) {
  const CopyFit* best = nullptr;
  for (const CopyFit& fit : c.copies)
    if (fit.to_device == to_device && fit.bandwidth > 0 && !best) best = &fit;
  return best;
}

std::string fragment(const Calibration& c, const Hardware& hardware, bool by_class) {
  std::string npu, link;
  // Where it is not the declared one the efficiencies hold beside it only.
  const bool shown = std::any_of(c.kernels.begin(), c.kernels.end(), [](const KernelFit& k) { return k.samples > 0; });
  if (c.overhead_known || (shown && c.launch_overhead != hardware.launch_overhead))
    npu += "  launch_overhead: " + microseconds(c.launch_overhead) + "\n";
  if (const std::string lines = efficiency_lines(c, by_class); !lines.empty())
    npu += "  efficiency:\n" + lines;
  for (const bool to_device : {true, false})
    if (const CopyFit* fit = link_fit(c, to_device))
      link += fmt::format("  {}: {{bandwidth: {:.6g}GB/s, latency: {}}}\n", to_device ? "read" : "write",
                          fit->bandwidth / 1e9, microseconds(fit->latency));
  return (npu.empty() ? "" : "npu:\n" + npu) + (link.empty() ? "" : "link:\n" + link);
}

std::string line(const std::string& name, std::size_t samples, const Residuals* r, const std::string& fit) {
  const auto percent = [&](double Residuals::*part) { return r ? human_percent(r->*part) : "-"; };
  return fmt::format("# {:<24} {:>7} {:>8} {:>8} {:>8}  {}\n", name, samples, percent(&Residuals::median),
                     percent(&Residuals::p90), percent(&Residuals::worst), fit);
}

std::string kernel_lines(const KernelFit& fit, const Hardware& hardware) {
  std::string what;
  if (fit.compute) what = fmt::format("{} of compute ({})", human_percent(*fit.compute), count_of(fit.compute_bound, "op"));
  if (fit.bandwidth)
    what += fmt::format("{}{} of HBM ({})", what.empty() ? "" : ", ", human_percent(*fit.bandwidth),
                        count_of(fit.samples - fit.compute_bound, "op"));
  if (what.empty() && fit.samples > 0) what = "not to be told: too short beside the launch overhead";
  std::string text = line(fit.kernel.empty() ? "(no kernel named)" : shortened(fit.kernel), fit.samples,
                          fit.samples > 0 ? &fit.residuals : nullptr, what);
  if (fit.kernel.empty() && (fit.compute || fit.bandwidth))
    text += "#   not written: a machine file has efficiencies by kernel, and these ops name none\n";
  if (fit.too_fast > 0)
    text += fmt::format("#   left out: {} faster than {}'s peaks allow (caches, or figures that are wrong)\n",
                        fit.too_fast, shortened(hardware.name));
  return text;
}

std::string copy_lines(const CopyFit& fit) {
  std::string what;
  if (fit.bandwidth > 0)
    what = fmt::format("{}, latency {}", human_rate(BytesPerSecond(fit.bandwidth)),
                       fit.latency_known ? human_time(fit.latency)
                                         : fmt::format("not seen ({})", human_time(fit.latency)));
  else if (fit.samples > 0)
    what = fmt::format("too small to show the bandwidth; {} each", human_time(fit.typical));
  std::string text = line(fmt::format("{} {}", fit.pageable ? "pageable" : "pinned",
                                      fit.to_device ? "host -> device" : "device -> host"),
                          fit.samples, fit.bandwidth > 0 ? &fit.residuals : nullptr, what);
  if (fit.too_fast > 0)
    text += fmt::format(
        "#   left out: {} faster than the link, up to {}: a timing artefact (the call's time, not "
        "the copy's), unless the link is faster (--link)\n",
        fit.too_fast, human_rate(BytesPerSecond(fit.fastest)));
  return text;
}

std::string table(const Calibration& c, const Hardware& hardware) {
  std::string text = fmt::format("# {:<24} {:>7} {:>8} {:>8} {:>8}  {}\n", "|model / measured - 1|",
                                 "samples", "median", "p90", "worst", "fit");
  for (const KernelFit& fit : c.kernels) text += kernel_lines(fit, hardware);
  for (const CopyFit& fit : c.copies) text += copy_lines(fit);
  if (c.other_kernels > 0)
    text += fmt::format("# {} without known FLOPs or bytes\n", count_of(c.other_kernels, "kernel"));
  return text;
}

std::string nothing_to_write(const Calibration& c, bool kineto) {
  if (c.kernels.empty() && c.copies.empty())
    return kineto ? "nothing to fit: no copy between host and device names its bytes, and no kernel belongs to an "
                    "operator with shapes (record_shapes=True)"
                  : "nothing to fit: no op has duration_us beside flops or hbm_bytes";
  std::size_t too_fast = 0, unnamed = 0, too_short = 0;
  for (const KernelFit& fit : c.kernels) {
    too_fast += fit.too_fast;
    (fit.compute || fit.bandwidth ? unnamed : too_short) += fit.samples;
  }
  for (const CopyFit& fit : c.copies) {
    too_fast += fit.too_fast;
    too_short += fit.samples;
  }
  std::string why;
  const auto add = [&](std::size_t count, const char* what) {
    if (count > 0) why += fmt::format("{}{}, {}", why.empty() ? "" : "; ", count_of(count, "sample"), what);
  };
  add(too_fast, "faster than the machine's peaks or link");
  add(too_short, "too short to show a rate");
  add(unnamed, "of ops that name no kernel, and a machine file has efficiencies by kernel");
  return "nothing to write: " + why;
}

}  // namespace

std::vector<std::string> calibrate_formats() { return {"trace", "kineto"}; }

int calibrate_command(const CalibrateCommand& command) {
  const bool kineto = command.format == "kineto";
  if (!kineto && command.format != "trace")
    throw InputError("--format", in_quotes(command.format), one_of(command.format, calibrate_formats()));
  const Hardware hardware = load_hardware(command.hardware);
  const BytesPerSecond link = command.link.empty() ? BytesPerSecond(0) : parse_rate(command.link, "--link");
  if (!command.link.empty() && link.value <= 0)
    throw InputError("--link", in_quotes(command.link), "a rate above 0");
  Measured measured;
  for (const std::string& file : command.files) {
    if (kineto)
      read_kineto_measured(file, measured);
    else
      add_layer_trace(file, measured);
  }
  const Calibration result = calibrate(measured, hardware, link);
  const std::string figures = fragment(result, hardware, kineto);
  if (figures.empty()) throw InfeasibleError(nothing_to_write(result, kineto));
  const std::string said = table(result, hardware);
  if (!command.output.empty() && command.output != "-") {
    write_output(command.output, said + figures);
    write_output("-", said);
  } else {
    write_output("-", said + figures);
  }
  return 0;
}

}  // namespace hyperoffload
