// `calibrate`: figures of a machine from measured times. Times made by the model's formulas must give the
// formulas' parameters back; real profiles must give sensible ones.
#include "app/calibrate.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "sim/model/hardware.h"
#include "test/support/catch.h"
#include "test/support/command.h"
#include "test/support/paths.h"
#include "test/support/rng.h"

using namespace hyperoffload;
using nlohmann::json;

namespace {

// Peaks of 1e12 FLOP/s and 1e12 B/s; a link of 10 GB/s each way.
Hardware machine() {
  Hardware h;
  h.name = "declared";
  h.compute = FlopsPerSecond(1e12);
  h.hbm_bandwidth = BytesPerSecond(1e12);
  h.hbm_capacity = Bytes(1'000'000'000);
  h.link_read = {BytesPerSecond(10e9), Seconds(0)};
  h.link_write = {BytesPerSecond(10e9), Seconds(0)};
  return h;
}

const KernelFit& kernel(const Calibration& c, const std::string& name) {
  return *std::find_if(c.kernels.begin(), c.kernels.end(),
                       [&](const KernelFit& k) { return k.kernel == name; });
}

double roofline(double flops, double bytes, double compute, double bandwidth) {
  return std::max(flops / (1e12 * compute), bytes / (1e12 * bandwidth));
}

}  // namespace

TEST_CASE("calibrate: times made from overhead and efficiencies give them back") {
  // matmul reaches 60 % of compute and 50 % of bandwidth, norm 80 % of bandwidth, 5 us before each.
  Measured measured;
  for (double n = 1e6; n < 2e9; n *= 1.7) {
    measured.kernels.push_back({"matmul", 8 * n, n, Seconds(5e-6 + roofline(8 * n, n, 0.6, 0.5))});
    measured.kernels.push_back({"matmul", n / 8, n, Seconds(5e-6 + roofline(n / 8, n, 0.6, 0.5))});
    measured.kernels.push_back({"norm", 0, n, Seconds(5e-6 + roofline(0, n, 1, 0.8))});
  }
  const Calibration c = calibrate(measured, machine(), BytesPerSecond(0));
  CHECK(c.overhead_known);
  CHECK(c.launch_overhead.value == Approx(5e-6).epsilon(1e-9));
  CHECK(kernel(c, "matmul").compute.value() == Approx(0.6).epsilon(1e-9));
  CHECK(kernel(c, "matmul").bandwidth.value() == Approx(0.5).epsilon(1e-9));
  CHECK(kernel(c, "matmul").compute_bound == measured.kernels.size() / 3);
  CHECK(kernel(c, "norm").bandwidth.value() == Approx(0.8).epsilon(1e-9));
  CHECK(kernel(c, "norm").compute_bound == 0);
  CHECK(kernel(c, "norm").residuals.worst < 1e-9);
}

TEST_CASE("calibrate: which side binds is told by the fitted figures, not by the declared ones") {
  // At the peaks an op with 1.5 FLOPs a byte is bound by compute; at 90 % of compute and 30 % of bandwidth
  // by bandwidth: it moves its bytes in n / 0.3e12.
  Measured measured;
  for (double n = 1e6; n < 2e9; n *= 1.7)
    for (const double intensity : {0.1, 1.5, 2.0, 20.0})
      measured.kernels.push_back({"k", intensity * n, n, Seconds(roofline(intensity * n, n, 0.9, 0.3))});
  const Calibration c = calibrate(measured, machine(), BytesPerSecond(0));
  CHECK(kernel(c, "k").compute.value() == Approx(0.9).epsilon(1e-6));
  CHECK(kernel(c, "k").bandwidth.value() == Approx(0.3).epsilon(1e-6));
  CHECK(kernel(c, "k").compute_bound == measured.kernels.size() / 4);
}

TEST_CASE("calibrate: copies give latency and bandwidth back, each direction on its own, noise or not") {
  Measured exact, noisy;
  Rng rng(7);
  for (double n = 1000; n < 1e9; n *= 1.4) {
    exact.copies.push_back({true, false, n, Seconds(3e-6 + n / 8e9)});
    exact.copies.push_back({false, false, n, Seconds(2e-6 + n / 6e9)});
    for (int i = 0; i < 20; ++i)
      noisy.copies.push_back({true, false, n, Seconds((3e-6 + n / 8e9) * rng.real(0.95, 1.05))});
  }
  const Calibration c = calibrate(exact, machine(), BytesPerSecond(0));
  REQUIRE(c.copies.size() == 2);
  CHECK(c.copies[0].to_device);
  CHECK(c.copies[0].bandwidth == Approx(8e9).epsilon(1e-9));
  CHECK(c.copies[0].latency.value == Approx(3e-6).epsilon(1e-9));
  CHECK(c.copies[1].bandwidth == Approx(6e9).epsilon(1e-9));
  CHECK(c.copies[1].latency.value == Approx(2e-6).epsilon(1e-9));
  // Uniform errors of up to 5 %: their mean over 820 samples has a deviation of 5 % / sqrt(3 * 820) = 0.1 %.
  const CopyFit fit = calibrate(noisy, machine(), BytesPerSecond(0)).copies.at(0);
  CHECK(fit.bandwidth == Approx(8e9).epsilon(5e-3));
  CHECK(fit.latency.value == Approx(3e-6).epsilon(1e-2));
  CHECK(fit.residuals.median == Approx(0.025).margin(5e-3));
  CHECK(fit.residuals.worst < 0.06);
}

TEST_CASE("calibrate: a transfer faster than the link is a timing artefact, left out and told") {
  // 4.5831 GB in 14.07 ms is 325.7 GB/s: the time of the call, not of the copy (LMCache issue 1755).
  Measured measured;
  for (double n = 1e6; n < 1e9; n *= 2) measured.copies.push_back({true, false, n, Seconds(1e-6 + n / 8e9)});
  const std::size_t good = measured.copies.size();
  measured.copies.push_back({true, false, 4.5831e9, Seconds(14.07e-3)});
  const CopyFit fit = calibrate(measured, machine(), BytesPerSecond(0)).copies.at(0);
  CHECK(fit.samples == good);
  CHECK(fit.too_fast == 1);
  CHECK(fit.fastest == Approx(4.5831e9 / 14.07e-3));
  CHECK(fit.bandwidth == Approx(8e9).epsilon(1e-9));
  CHECK(calibrate(measured, machine(), BytesPerSecond(400e9)).copies.at(0).too_fast == 0);
}

TEST_CASE("calibrate: with samples of one size there is a bandwidth, and no latency is made up") {
  Measured measured;
  for (int i = 0; i < 5; ++i) measured.copies.push_back({true, false, 1e6, Seconds(200e-6)});
  const CopyFit fit = calibrate(measured, machine(), BytesPerSecond(0)).copies.at(0);
  CHECK_FALSE(fit.latency_known);
  CHECK(fit.bandwidth == Approx(1e6 / 200e-6));
}

TEST_CASE("calibrate: kernels faster than the declared peaks are left out") {
  Measured measured;
  for (double n = 1e6; n < 1e9; n *= 2) measured.kernels.push_back({"k", 0, n, Seconds(n / 0.5e12)});
  measured.kernels.push_back({"k", 0, 1e9, Seconds(1e-4)});  // 10 TB/s
  const Calibration c = calibrate(measured, machine(), BytesPerSecond(0));
  CHECK(kernel(c, "k").too_fast == 1);
  CHECK(kernel(c, "k").bandwidth.value() == Approx(0.5).epsilon(1e-9));
}

TEST_CASE("calibrate: an overhead that hides the work is found, and no efficiency is made up beside it") {
  // 100 us each, whatever the work: at the peak it takes 1e-12 to 1e-9 s.
  Measured equal;
  for (const double flops : {1., 10., 100., 1000.}) equal.kernels.push_back({"k", flops, 0, Seconds(100e-6)});
  const Calibration hidden = calibrate(equal, machine(), BytesPerSecond(0));
  CHECK(hidden.overhead_known);
  CHECK(hidden.launch_overhead.value == Approx(100e-6).epsilon(1e-5));
  CHECK_FALSE(kernel(hidden, "k").compute);
  CHECK(kernel(hidden, "k").residuals.worst < 1e-5);
  // Work of 10 and 20 us at the peak, 100 us each: no slope above the peak's is allowed, so with an overhead o
  // the model takes u = o + 10 and u + 10. As long in sum as measured, weighted by 1 / model:
  // (100 - u) / u + (100 - u - 10) / (u + 10) = 0, u^2 - 90 u - 500 = 0.
  Measured held;
  for (const double us : {10., 20.}) held.kernels.push_back({"k", us * 1e6, 0, Seconds(100e-6)});
  const Calibration peak = calibrate(held, machine(), BytesPerSecond(0));
  const double u = (90 + std::sqrt(90. * 90 + 4 * 500)) / 2;
  CHECK(peak.launch_overhead.value == Approx((u - 10) * 1e-6).epsilon(1e-6));
  CHECK(kernel(peak, "k").compute.value() == Approx(1).epsilon(1e-9));
  // Another kernel's slope stays what it is: 40 us + n / 0.5e12 beside a kernel that takes 40 us always.
  Measured both;
  for (const double n : {1e6, 2e6, 4e6, 8e6, 16e6, 32e6}) {
    both.kernels.push_back({"slow", 0, n, Seconds(40e-6 + n / 0.5e12)});
    both.kernels.push_back({"flat", n * 1e-6, 0, Seconds(40e-6)});
  }
  const Calibration mixed = calibrate(both, machine(), BytesPerSecond(0));
  CHECK(mixed.launch_overhead.value == Approx(40e-6).epsilon(1e-5));
  CHECK(kernel(mixed, "slow").bandwidth.value() == Approx(0.5).epsilon(1e-5));
  CHECK_FALSE(kernel(mixed, "flat").compute);
}

TEST_CASE("calibrate: samples of one size keep the declared latency and overhead, and are fitted beside them") {
  Hardware declared = machine();
  declared.launch_overhead = Seconds(20e-6);
  declared.link_read.latency = Seconds(50e-6);
  Measured measured;
  for (int i = 0; i < 5; ++i) {
    measured.copies.push_back({true, false, 1e6, Seconds(250e-6)});
    measured.kernels.push_back({"k", 0, 40e6, Seconds(100e-6)});
  }
  const Calibration c = calibrate(measured, declared, BytesPerSecond(0));
  CHECK_FALSE(c.overhead_known);
  CHECK(c.launch_overhead.value == 20e-6);
  CHECK(kernel(c, "k").bandwidth.value() == Approx(40e6 / 1e12 / 80e-6));
  CHECK_FALSE(c.copies.at(0).latency_known);
  CHECK(c.copies.at(0).latency.value == 50e-6);
  CHECK(c.copies.at(0).bandwidth == Approx(1e6 / 200e-6));
  // A declared overhead that leaves no room for the work at the peak, 40 us, can't be: 0 is taken.
  declared.launch_overhead = Seconds(90e-6);
  const Calibration none = calibrate(measured, declared, BytesPerSecond(0));
  CHECK(none.launch_overhead.value == 0);
  CHECK(kernel(none, "k").bandwidth.value() == Approx(0.4));
}

TEST_CASE(
    "calibrate: the fragment of a layer trace is part of a machine file that replays to the measured times") {
  TemporaryFolder folder;
  const std::string declared = folder / "declared.yaml", fitted = folder / "fitted.yaml",
                    fragment = folder / "fragment.yaml", measured = folder / "measured.json",
                    bare = folder / "bare.json";
  const std::string
      head = "name: m\n",
      hbm = "hbm: {capacity: 100GB, bandwidth: 1TB/s}",
      rest = "link: {read: {bandwidth: 10GB/s}, write: {bandwidth: 10GB/s}}\npool: {capacity: 1TB}\n";
  write_text(declared, head + "npu: {compute: 1TFLOPS, " + hbm + "}\n" + rest);
  json trace = {{"format", "hyperoffload-trace"}, {"version", 1}, {"ops", json::array()}};
  double total = 0;
  for (int i = 0; i < 12; ++i) {
    const double n = 1e6 * std::pow(2, i);
    const double time = 4e-6 + (i % 2 ? roofline(4 * n, n, 0.7, 1) : roofline(0, n, 1, 0.6));
    trace["ops"].push_back({{"name", "o" + std::to_string(i)},
                            {"kernel", i % 2 ? "dot" : "Odd: \"one\""},
                            {"duration_us", time * 1e6},
                            {"hbm_bytes", static_cast<std::int64_t>(n)}});
    if (i % 2) trace["ops"].back()["flops"] = 4 * n;
    total += time;
  }
  write_text(measured, trace.dump());
  for (json& op : trace["ops"]) op.erase("duration_us");
  write_text(bare, trace.dump());

  const CommandResult run =
      run_hyperoffload("calibrate " + measured + " --hardware " + declared + " -o " + fragment);
  INFO(run.err);
  REQUIRE(run.status == 0);
  const std::string text = read_text(fragment);
  const std::size_t npu = text.find("npu:\n");
  REQUIRE(npu != std::string::npos);
  write_text(fitted, head + text.substr(npu) + "  compute: 1TFLOPS\n  " + hbm + "\n" + rest);
  const CommandResult replay =
      run_hyperoffload("simulate " + bare + " --hardware " + fitted + " --policy resident -o -");
  INFO(text << replay.err);
  REQUIRE(replay.status == 0);
  // Six digits of each figure are written.
  CHECK(json::parse(replay.out).at("iteration_s").get<double>() == Approx(total).epsilon(1e-4));
}

TEST_CASE("calibrate: a kernel's name may hold anything, the fragment reads back") {
  TemporaryFolder folder;
  const std::string names[] = {"line\nbreak", "tab\t\"q\" \\ back", "# no: remark {[", "\x01\x7f", "caf\u00e9 \u2028 \u0085 \u0080",
                               " space ", "null", "- a", "'", "*x &y !z %"};
  json trace = {{"format", "hyperoffload-trace"}, {"version", 1}, {"ops", json::array()}};
  for (const std::string& name : names)  // 1 MB at 1 TB/s is 1 us: half of the peak
    trace["ops"].push_back({{"name", "op " + name}, {"kernel", name}, {"duration_us", 2}, {"hbm_bytes", 1000000}});
  write_text(folder / "t.json", trace.dump());
  const std::string head = "name: m\n", npu = "  compute: 1TFLOPS\n  hbm: {capacity: 100GB, bandwidth: 1TB/s}\n",
                    rest = "link: {read: {bandwidth: 10GB/s}, write: {bandwidth: 10GB/s}}\npool: {capacity: 1TB}\n";
  write_text(folder / "m.yaml", head + "npu:\n" + npu + rest);
  const CommandResult run = run_hyperoffload("calibrate " + (folder / "t.json") + " --hardware " + (folder / "m.yaml"));
  INFO(run.out << run.err);
  REQUIRE(run.status == 0);
  write_text(folder / "fitted.yaml", head + run.out + npu + rest);
  const Hardware fitted = load_hardware(folder / "fitted.yaml");
  CHECK(fitted.efficiency.size() == std::size(names));
  for (const std::string& name : names) {
    INFO(name);
    REQUIRE(fitted.efficiency.count(name) == 1);
    CHECK(fitted.efficiency.at(name).bandwidth == Approx(0.5));
  }
}

TEST_CASE("calibrate: what can't be written into a machine file is said, and nothing written is exit 3") {
  TemporaryFolder folder;
  write_text(folder / "m.yaml",
             "name: m\nnpu: {compute: 1TFLOPS, hbm: {capacity: 80GB, bandwidth: 1TB/s}}\n"
             "link: {read: {bandwidth: 50GB/s}, write: {bandwidth: 50GB/s}}\npool: {capacity: 1TB}\n");
  const auto calibrate_ops = [&](const std::string& ops) {
    write_text(folder / "t.json", R"({"format": "hyperoffload-trace", "version": 1, "ops": [)" + ops + "]}");
    return run_hyperoffload("calibrate " + (folder / "t.json") + " --hardware " + (folder / "m.yaml") + " -o " + (folder / "f.yaml"));
  };
  // 1 MB in 2 us, half of the peak; no kernel named.
  const std::string unnamed = R"({"name": "a", "duration_us": 2, "hbm_bytes": 1000000})",
                    named = R"({"name": "b", "kernel": "k", "duration_us": 2, "hbm_bytes": 1000000})",
                    fast = R"({"name": "c", "kernel": "k", "duration_us": 0.1, "hbm_bytes": 1000000})";
  const CommandResult some = calibrate_ops(unnamed + "," + named);
  CHECK(some.status == 0);
  CHECK(some.out.find("50.0 % of HBM (1 op)\n#   not written: a machine file has efficiencies by kernel") != std::string::npos);
  CHECK(read_text(folder / "f.yaml").find("    k: {bandwidth: 0.5}\n") != std::string::npos);
  std::filesystem::remove(folder / "f.yaml");
  for (const auto& [ops, why] : {std::pair{unnamed, "nothing to write: 1 sample, of ops that name no kernel"},
                                 {fast, "nothing to write: 1 sample, faster than the machine's peaks or link"}}) {
    const CommandResult none = calibrate_ops(ops);
    CHECK(none.status == 3);
    CHECK(none.err.find(why) != std::string::npos);
    CHECK_FALSE(std::filesystem::exists(folder / "f.yaml"));
  }
}

TEST_CASE("calibrate: what says nothing of the machine is exit 3, what is no trace exit 2") {
  TemporaryFolder folder;
  const std::string toy = source_dir() + "/configs/hardware/toy.yaml", empty = folder / "t.json";
  write_text(empty,
             R"({"format": "hyperoffload-trace", "version": 1, "ops": [{"name": "a", "duration_us": 1}]})");
  const std::string machine = " --hardware " + toy;
  const CommandResult nothing = run_hyperoffload("calibrate " + empty + machine);
  CHECK(nothing.status == 3);
  CHECK(nothing.out.empty());
  CHECK(nothing.err.find("nothing to fit") != std::string::npos);
  for (const std::string& wrong : {empty + machine + " --format kineto", empty + machine + " --format kinto",
                                   empty + machine + " --link 5", "missing.json" + machine}) {
    const CommandResult run = run_hyperoffload("calibrate " + wrong);
    INFO(wrong << "\n" << run.err);
    CHECK(run.status == 2);
    CHECK(run.out.empty());
  }
}

TEST_CASE("calibrate: matrix products and copies of a Kineto trace are found by its operators' shapes") {
  // mm of 1000 x 2000 by 2000 x 500 in bf16: 2e9 FLOPs, 2 * (2e6 + 1e6 + 0.5e6) = 7 MB. Its two kernels take
  // 4 us together: half of 1 PFLOPS. 8 MB in 2 ms: 4 GB/s.
  TemporaryFolder folder;
  write_text(folder / "m.yaml",
             "name: m\nnpu: {compute: 1000TFLOPS, hbm: {capacity: 80GB, bandwidth: 10TB/s}}\n"
             "link: {read: {bandwidth: 50GB/s}, write: {bandwidth: 50GB/s}}\npool: {capacity: 1TB}\n");
  write_text(folder / "k.json", R"k({"traceEvents": [
 {"ph": "X", "cat": "kernel", "name": "g1", "ts": 5, "dur": 3, "args": {"External id": 9, "correlation": 1}},
 {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": 1, "dur": 2, "args": {"External id": 9,
  "Input Dims": [[1000, 2000], [2000, 500], []], "Input type": ["c10::BFloat16", "c10::BFloat16", ""]}},
 {"ph": "X", "cat": "kernel", "name": "g2", "ts": 9, "dur": 1, "args": {"External id": 9, "correlation": 2}},
 {"ph": "X", "cat": "kernel", "name": "other", "ts": 10, "dur": 1, "args": {"External id": 11, "correlation": 3}},
 {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD (Pinned -> Device)", "ts": 20, "dur": 2000, "args": {"bytes": 8000000}},
 {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD (Pinned -> Device)", "ts": 20, "dur": 1, "args": {"bytes": 8000000}}]})k");
  const CommandResult run = run_hyperoffload("calibrate " + (folder / "k.json") +
                                             " --format kineto --hardware " + (folder / "m.yaml"));
  INFO(run.out << run.err);
  REQUIRE(run.status == 0);
  CHECK(run.out.find("    qkv: {compute: 0.5}\n") != std::string::npos);
  CHECK(run.out.find("  read: {bandwidth: 4GB/s, latency: 0us}\n") != std::string::npos);
  CHECK(run.out.find("left out: 1 faster than the link, up to 8.000 TB/s") != std::string::npos);
  CHECK(run.out.find("1 kernel without known FLOPs or bytes") != std::string::npos);
}

TEST_CASE("calibrate: real profiles give figures that their hardware can have") {
  const std::string data = shared_data_dir();
  if (!std::filesystem::exists(data)) {
    WARN("skipped: no " << data);
    return;
  }
  const Hardware h200 = load_hardware(source_dir() + "/configs/hardware/h200-pcie5.yaml");
  // An H100 that runs a small model: products of 559 tokens, at most the peak, at least a tenth of it.
  Measured h100;
  read_kineto_measured(data + "/kineto_tracelens/traces__h100__Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz",
                       h100);
  const Calibration kernels = calibrate(h100, h200, BytesPerSecond(0));
  const KernelFit matmul = kernel(kernels, "matmul");
  CHECK(matmul.samples >= 160);  // 96 mm and 72 addmm, some of which caches may have made too fast
  CHECK(matmul.compute.value() > 0.1);
  CHECK(matmul.compute.value() < 1);
  CHECK(matmul.residuals.median < 0.5);
  // Pinned copies of up to 55 MB, as PCIe 3.0 does them: 5 to 13 GB/s.
  Measured control;
  read_kineto_measured(data + "/kineto_hta/trace_diff__control__control.json.gz", control);
  const CopyFit pinned = calibrate(control, h200, BytesPerSecond(0)).copies.at(0);
  CHECK(pinned.to_device);
  CHECK_FALSE(pinned.pageable);
  CHECK(pinned.samples == 150);
  CHECK(pinned.bandwidth > 5e9);
  CHECK(pinned.bandwidth < 13e9);
  // Pageable ones of AlexNet's weights: 150,994,944 B take 34.78 ms, 4.34 GB/s.
  Measured alexnet;
  read_kineto_measured(
      data + "/kineto_hta/critical_path__alexnet__benchmark_result_2869224_1695835535_trace.json.gz",
      alexnet);
  const CopyFit pageable = calibrate(alexnet, h200, BytesPerSecond(0)).copies.at(0);
  CHECK(pageable.pageable);
  CHECK(pageable.bandwidth == Approx(4.34e9).epsilon(0.25));
}
