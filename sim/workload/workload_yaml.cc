// The `workload:` block: strict, each unknown key an InputError with file and line.
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

ParallelSpec read_parallel(const YamlNode& node) {
  const YamlMap map(node, {"tp", "pp", "dp", "ep", "rank"});
  ParallelSpec p;
  const auto size = [&](const char* key, int& value, std::int64_t least) {
    if (const auto found = map.find(key)) value = static_cast<int>(found->integer(least, kMostRanks));
  };
  size("tp", p.tp, 1);
  size("pp", p.pp, 1);
  size("dp", p.dp, 1);
  size("ep", p.ep, 1);
  size("rank", p.rank, 0);
  return p;
}

}  // namespace

WorkloadSpec read_workload(const YamlNode& node) {
  const YamlMap map(
      node, {"name", "model", "phase", "batch", "sequence", "dtype", "weight_dtype", "kv_dtype", "parallel"});
  WorkloadSpec spec;
  spec.source = node.where();
  if (const auto name = map.find("name")) spec.name = name->string();
  spec.model_path = map.get("model").file_name();
  spec.phase = named(map.get("phase"), std::vector<Phase>{Phase::kTrain, Phase::kPrefill, Phase::kDecode});
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
  if (const auto parallel = map.find("parallel")) spec.parallel = read_parallel(*parallel);
  return spec;
}

WorkloadSpec load_workload(const std::string& path) { return read_workload(load_yaml(path)); }

}  // namespace hyperoffload
