#include "test/support/paths.h"

#include <cstdlib>

namespace hyperoffload {

std::string source_dir() { return SOURCE_DIR; }

std::string shared_data_dir() {
  const char* place = std::getenv("HYPEROFFLOAD_SHARED_DATA");
  return place ? place : SOURCE_DIR "/../shared/data";
}

std::string binary_path() { return HYPEROFFLOAD_BINARY; }

}  // namespace hyperoffload
