// The `workload:` block: strict, each unknown key an InputError with file and line.
#include <algorithm>

#include "sim/model/nearest_name.h"
#include "sim/model/yaml_reader.h"
#include "sim/workload/workload.h"

namespace hyperoffload {
namespace {

constexpr std::int64_t kMostTokens = std::int64_t{1} << 31;
constexpr std::int64_t kMostRanks = 1'000'000;

template <class Enum>
Enum named(const YamlNode& node, const std::vector<Enum>& values) {
  std::vector<std::string> names;
  const std::string text = node.string();
  for (Enum value : values) {
    names.push_back(to_string(value));
    if (text == names.back()) return value;
  }
  node.fail(one_of(text, names));
}

DataType data_type(const YamlNode& node) {
  return named(node, std::vector<DataType>(std::begin(kAllDataTypes), std::end(kAllDataTypes)));
}

void read_count(const YamlMap& map, const char* key, std::int64_t& value, std::int64_t least = 1) {
  if (const auto found = map.find(key)) value = found->integer(least, kMostTokens);
}

void read_count(const YamlMap& map, const char* key, int& value, std::int64_t least = 1) {
  if (const auto found = map.find(key)) value = static_cast<int>(found->integer(least, kMostRanks));
}

ParallelSpec read_parallel(const YamlNode& node) {
  const YamlMap map(node, {"tp", "pp", "dp", "ep", "cp", "etp", "sp", "virtual_stages", "rank"});
  ParallelSpec p;
  read_count(map, "tp", p.tp);
  read_count(map, "pp", p.pp);
  read_count(map, "dp", p.dp);
  read_count(map, "ep", p.ep);
  read_count(map, "cp", p.cp);
  read_count(map, "etp", p.etp);
  read_count(map, "virtual_stages", p.virtual_stages);
  read_count(map, "rank", p.rank, 0);
  if (const auto sp = map.find("sp")) p.sp = sp->boolean();
  return p;
}

TrainSpec read_train(const YamlNode& node) {
  const YamlMap map(node, {"optimizer", "optimizer_on", "recompute", "recompute_kernels", "recompute_layers",
                           "zero", "microbatches", "schedule", "gradient_dtype", "bucket"});
  TrainSpec t;
  if (const auto optimizer = map.find("optimizer")) {
    t.optimizer = optimizer->string();
    if (t.optimizer != "adamw" && t.optimizer != "none") optimizer->fail("adamw or none");
  }
  if (const auto where = map.find("optimizer_on")) {
    const std::string text = where->string();
    if (text != "npu" && text != "host") where->fail("npu or host");
    t.optimizer_on_host = text == "host";
  }
  if (const auto recompute = map.find("recompute"))
    t.recompute = named(*recompute, std::vector<Recompute>{Recompute::kNone, Recompute::kSelective,
                                                           Recompute::kFull, Recompute::kLayers});
  if (const auto kernels = map.find("recompute_kernels")) {
    if (t.recompute != Recompute::kSelective) kernels->fail("no list, unless recompute is selective");
    t.recompute_kernels.clear();
    const std::vector<std::string> known = {
        "norm", "act", "rope", "qk_norm",  "attention", "gate",    "gate_up", "down",     "qkv",
        "kv_b", "q_b", "out",  "dispatch", "experts",   "combine", "router",  "ssm_conv", "ssm_scan"};
    for (const YamlNode& kernel : kernels->list()) {
      if (std::find(known.begin(), known.end(), kernel.string()) == known.end())
        kernel.fail(one_of(kernel.string(), known));
      t.recompute_kernels.push_back(kernel.string());
    }
  }
  read_count(map, "recompute_layers", t.recompute_layers, 0);
  if (const auto layers = map.find("recompute_layers");
      (t.recompute == Recompute::kLayers) != layers.has_value())
    (layers ? *layers : map.node()).fail("recompute_layers with recompute: layers, and only there");
  if (const auto zero = map.find("zero")) t.zero = static_cast<int>(zero->integer(0, 3));
  read_count(map, "microbatches", t.microbatches);
  if (const auto schedule = map.find("schedule"))
    t.schedule = named(*schedule, std::vector<Schedule>{Schedule::k1F1B, Schedule::kGPipe});
  if (const auto type = map.find("gradient_dtype")) t.gradient_dtype = data_type(*type);
  if (const auto bucket = map.find("bucket")) t.bucket_bytes = bucket->bytes().value;
  return t;
}

void read_extras(const YamlMap& map, WorkloadSpec& spec) {
  if (const auto experts = map.find("experts")) {
    const YamlMap keys(*experts, {"routing", "seed"});
    if (const auto routing = keys.find("routing"))
      spec.experts.routing = named(*routing, std::vector<Routing>{Routing::kBalanced, Routing::kRandom});
    if (const auto seed = keys.find("seed"))
      spec.experts.seed = static_cast<std::uint64_t>(seed->integer(0, kMostTokens));
  }
  if (const auto sparse = map.find("sparse")) {
    const YamlMap keys(*sparse, {"top_k", "reuse", "seed"});
    read_count(keys, "top_k", spec.sparse.top_k);
    if (const auto reuse = keys.find("reuse")) spec.sparse.reuse = reuse->number(0, 1);
    if (const auto seed = keys.find("seed"))
      spec.sparse.seed = static_cast<std::uint64_t>(seed->integer(0, kMostTokens));
  }
  if (const auto prefill = map.find("prefill")) {
    const YamlMap keys(*prefill, {"batch", "tokens", "cached"});
    spec.prefill.emplace();
    read_count(keys, "batch", spec.prefill->batch);
    spec.prefill->tokens = keys.get("tokens").integer(1, kMostTokens);
    read_count(keys, "cached", spec.prefill->cached, 0);
  }
  if (const auto link = map.find("collectives")) {
    const YamlMap keys(*link, {"bandwidth", "latency"});
    spec.collectives.emplace();
    spec.collectives->bandwidth = keys.get("bandwidth").rate();
    if (spec.collectives->bandwidth <= BytesPerSecond(0)) keys.get("bandwidth").fail("a bandwidth above 0");
    if (const auto latency = keys.find("latency")) spec.collectives->latency = latency->seconds();
  }
}

}  // namespace

WorkloadSpec read_workload(const YamlNode& node) {
  const YamlMap map(node, {"name", "model", "phase", "batch", "sequence", "dtype", "weight_dtype", "kv_dtype",
                           "detail", "parallel", "train", "experts", "sparse", "prefill", "chunk", "steps",
                           "kv_block", "mtp", "collectives"});
  WorkloadSpec spec;
  spec.source = node.where();
  if (const auto name = map.find("name")) spec.name = name->string();
  spec.model_path = map.get("model").file_name();
  spec.phase = named(map.get("phase"),
                     std::vector<Phase>{Phase::kTrain, Phase::kPrefill, Phase::kDecode, Phase::kMixed});
  spec.batch = map.get("batch").integer(1, kMostTokens);
  spec.sequence = map.get("sequence").integer(1, kMostTokens);
  spec.dtype = data_type(map.get("dtype"));
  if (const auto type = map.find("weight_dtype")) {
    if (type->string() == "published")
      spec.published_weights = true;
    else
      spec.weight_dtype = data_type(*type);
  }
  if (const auto type = map.find("kv_dtype")) spec.kv_dtype = data_type(*type);
  if (const auto detail = map.find("detail"))
    spec.detail = named(*detail, std::vector<Detail>{Detail::kKernel, Detail::kLayer});
  if (const auto parallel = map.find("parallel")) spec.parallel = read_parallel(*parallel);
  if (const auto train = map.find("train")) spec.train = read_train(*train);
  read_count(map, "chunk", spec.chunk);
  read_count(map, "steps", spec.steps);
  read_count(map, "kv_block", spec.kv_block);
  read_count(map, "mtp", spec.mtp, 0);
  read_extras(map, spec);
  return spec;
}

WorkloadSpec load_workload(const std::string& path) { return read_workload(load_yaml(path)); }

}  // namespace hyperoffload
