// The workload file: read, resolved, refused.
#include "sim/model/yaml_reader.h"
#include "test/support/paths.h"
#include "test/workload/support.h"

namespace hyperoffload {
namespace {

const std::string kSmallest = "model: m.json\nphase: decode\nbatch: 8\nsequence: 32768\ndtype: bf16\n";

WorkloadSpec parse(const std::string& text) { return read_workload(parse_yaml(text, "w.yaml")); }

}  // namespace

TEST_CASE("the shipped workloads generate a trace") {
  for (const auto& file :
       std::filesystem::directory_iterator(source_dir() + "/configs/workloads")) {
    const WorkloadSpec spec = load_workload(file.path().string());
    const Graph g = generate_trace(spec);
    CHECK(g.ops().size() > 100);
  }
}

TEST_CASE("a workload file says model, phase, sizes and types") {
  const WorkloadSpec spec = parse(kSmallest + "kv_dtype: fp8\nparallel: {tp: 2, rank: 1}\n");
  CHECK(spec.phase == Phase::kDecode);
  CHECK(spec.batch == 8);
  CHECK(spec.sequence == 32768);
  CHECK(spec.weights() == DataType::kBf16);
  CHECK(spec.kv() == DataType::kFp8);
  CHECK(spec.parallel.tp == 2);
  CHECK(spec.parallel.rank == 1);
}

TEST_CASE("every key of a training workload is read") {
  const WorkloadSpec spec = parse(
      "name: run\nmodel: m.json\nphase: train\nbatch: 8\nsequence: 4096\ndtype: bf16\ndetail: layer\nmtp: 1\n"
      "parallel: {tp: 2, pp: 4, dp: 8, ep: 4, cp: 2, etp: 2, sp: true, virtual_stages: 2, rank: 5}\n"
      "train: {optimizer: adamw, optimizer_on: host, recompute: selective, recompute_kernels: [act, "
      "attention], zero: 2,\n"
      "        microbatches: 4, schedule: gpipe, gradient_dtype: fp32, bucket: 25MB}\n"
      "experts: {routing: random, seed: 3}\ncollectives: {bandwidth: 100GB/s, latency: 2us}\n");
  CHECK(spec.name == "run");
  CHECK(spec.detail == Detail::kLayer);
  CHECK(spec.mtp == 1);
  CHECK(spec.parallel.virtual_stages == 2);
  CHECK(spec.parallel.sp);
  CHECK(spec.parallel.etp == 2);
  CHECK(spec.train.optimizer_on_host);
  CHECK(spec.train.recompute == Recompute::kSelective);
  CHECK(spec.train.recompute_kernels == std::vector<std::string>{"act", "attention"});
  CHECK(spec.train.schedule == Schedule::kGPipe);
  CHECK(spec.train.gradient_dtype == DataType::kFp32);
  CHECK(spec.train.bucket_bytes == 25'000'000);
  CHECK(spec.experts.routing == Routing::kRandom);
  CHECK(spec.experts.seed == 3);
  CHECK(spec.collectives->bandwidth.value == 100e9);
}

TEST_CASE("every key of an inference workload is read") {
  const WorkloadSpec spec = parse(
      "model: m.json\nphase: mixed\nbatch: 8\nsequence: 4096\ndtype: bf16\nweight_dtype: published\nsteps: "
      "3\nkv_block: 64\n"
      "prefill: {batch: 2, tokens: 512, cached: 1024}\nsparse: {top_k: 2048, reuse: 0.75, seed: 9}\n");
  CHECK(spec.published_weights);
  CHECK(spec.steps == 3);
  CHECK(spec.kv_block == 64);
  CHECK(spec.prefill->cached == 1024);
  CHECK(spec.sparse.top_k == 2048);
  CHECK(spec.sparse.reuse == 0.75);
}

TEST_CASE("keys that need another key, or are not what they should be, are refused with their line") {
  const std::string train = "model: m.json\nphase: train\nbatch: 8\nsequence: 64\ndtype: bf16\n";
  CHECK(contains(input_error([&] { parse(train + "train: {recompute: full, recompute_kernels: [act]}\n"); }),
                 "w.yaml:6"));
  CHECK(contains(input_error([&] { parse(train + "train: {recompute: layers}\n"); }), "recompute_layers"));
  CHECK(contains(input_error([&] { parse(train + "train: {zero: 4}\n"); }), "train.zero"));
  CHECK(contains(
      input_error([&] { parse(train + "train: {recompute: selective, recompute_kernels: [softmax]}\n"); }),
      "softmax"));
  CHECK(contains(input_error([&] { parse(train + "train: {bucket: 25}\n"); }), "bucket"));
  CHECK(contains(input_error([&] { parse(train + "collectives: {bandwidth: 0GB/s}\n"); }),
                 "bandwidth above 0"));
  CHECK(contains(input_error([&] { parse(train + "parallel: {tp: 0}\n"); }), "parallel.tp"));
}

TEST_CASE("unknown keys, phases and types are refused with their line") {
  CHECK(contains(input_error([] { parse(kSmallest + "batches: 1\n"); }), "w.yaml:6"));
  CHECK(contains(
      input_error([] { parse("model: m.json\nphase: decoding\nbatch: 1\nsequence: 1\ndtype: bf16\n"); }),
      "w.yaml:2: phase"));
  CHECK(contains(input_error([] { parse(kSmallest + "kv_dtype: fp7\n"); }), "kv_dtype"));
  CHECK(contains(input_error([] { parse("model: m.json\n"); }), "phase"));
}

}  // namespace hyperoffload
