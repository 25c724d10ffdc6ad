#include "app/sweep_key.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <fstream>
#include <sstream>

#include "app/experiment.h"
#include "sim/model/check.h"
#include "sim/model/read_file.h"

namespace hyperoffload {
namespace {

std::string program_digest() {
  std::ifstream file("/proc/self/exe", std::ios::binary);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  HYPER_CHECK(file.good() && !bytes.str().empty(), "the program can't read itself");
  return digest(bytes.str());
}

}  // namespace

std::string digest(const std::string& bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

PointKeys::PointKeys() : program_(std::string(HYPEROFFLOAD_VERSION) + " " + program_digest()) {}

const std::string& PointKeys::file_digest(const std::string& path) {
  const auto [it, fresh] = files_.emplace(path, "");
  if (fresh) it->second = digest(read_file(path, "a file that the workload names"));
  return it->second;
}

std::string PointKeys::key(const YamlNode& experiment) {
  std::string text = program_ + "\n";
  for (const auto& [name, value] : experiment.map())
    if (name == "hardware" || name == "workload" || name == "hbm" || name == "iterations")
      text += name + ": " + value.flow_text() + "\n";
  const YamlNode workload = workload_of(experiment);
  for (const auto& [name, value] : workload.map())
    if (name == "trace" || name == "model") text += file_digest(value.file_name()) + "\n";
  return digest(text);
}

}  // namespace hyperoffload
