// What a point's figures depend on, as one short key: this program (its own file), the experiment's
// machine, workload, `hbm` and `iterations` with the content of the files they name. Names, descriptions of
// the experiment and the list of policies are not in it. XXH3, 128 bits, by Debian's libxxhash; a file is
// read once.
#pragma once

#include <cstddef>
#include <map>
#include <string>

#include "sim/model/yaml_reader.h"

namespace hyperoffload {

// So many digits of a point's key end its folder's name.
inline constexpr std::size_t kKeyInName = 16;

// XXH3 of these bytes, 128 bits in 32 hexadecimal digits, as `xxh128sum` prints it.
std::string digest(const std::string& bytes);

class PointKeys {
 public:
  PointKeys();
  // 32 hexadecimal digits. Of an experiment whose machine and workload stand in it as content.
  std::string key(const YamlNode& experiment);

 private:
  const std::string& file_digest(const std::string& path);

  std::string program_;
  std::map<std::string, std::string> files_;
};

}  // namespace hyperoffload
