#include "sim/import/torch_types.h"

namespace hyperoffload {

std::string bare_name(const std::string& text) {
  std::string kept;
  for (const char c : text) {
    if (c >= 'A' && c <= 'Z') kept += static_cast<char>(c + 32);
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) kept += c;
  }
  return kept;
}

std::optional<std::int64_t> bytes_of_torch_type(const std::string& type) {
  const std::size_t colon = type.rfind(':');
  const std::string name = bare_name(colon == std::string::npos ? type : type.substr(colon + 1));
  struct Known {
    const char* name;
    std::int64_t bytes;
  };
  for (const Known& known : {Known{"double", 8},
                             {"long", 8},
                             {"longint", 8},
                             {"float", 4},
                             {"int", 4},
                             {"half", 2},
                             {"bfloat16", 2},
                             {"short", 2},
                             {"byte", 1},
                             {"char", 1},
                             {"signedchar", 1},
                             {"unsignedchar", 1},
                             {"bool", 1},
                             {"float8e4m3fn", 1},
                             {"float8e5m2", 1},
                             {"float8e4m3fnuz", 1},
                             {"float8e5m2fnuz", 1}})
    if (name == known.name) return known.bytes;
  return std::nullopt;
}

}  // namespace hyperoffload
