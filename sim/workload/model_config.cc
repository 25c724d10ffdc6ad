// Entry of the config reader: what all families share, then the family by `model_type`.
#include "sim/workload/model_config.h"

#include <fmt/format.h>

#include "sim/model/read_file.h"
#include "sim/workload/config_reader.h"
#include "sim/workload/model_families.h"

namespace hyperoffload {
namespace {

std::string model_name(const std::string& source) {
  std::string name = source.substr(source.find_last_of('/') + 1);
  for (const std::string suffix : {".json", "_config"})
    if (name.size() > suffix.size() && name.compare(name.size() - suffix.size(), suffix.size(), suffix) == 0)
      name.resize(name.size() - suffix.size());
  return name;
}

}  // namespace

ModelConfig parse_model_config(const std::string& text, const std::string& source) {
  const nlohmann::json root = parse_config_json(text, source);
  ConfigReader reader(root, source);
  ModelConfig model;
  model.name = model_name(source);
  model.source = source;
  model.model_type = reader.text("model_type");
  read_family(reader, model);
  reader.finish();
  return model;
}

ModelConfig load_model_config(const std::string& path) {
  return parse_model_config(read_file(path, "a HuggingFace config.json"), source_name(path));
}

}  // namespace hyperoffload
