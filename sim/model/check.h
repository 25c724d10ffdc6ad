// HYPER_CHECK(condition, message): our own mistakes stop the program, in release builds too.
#pragma once

#include <stdexcept>
#include <string>

namespace hyperoffload {

class CheckFailure : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

[[noreturn]] inline void check_failed(const char* file, int line, const std::string& message) {
  throw CheckFailure(std::string(file) + ":" + std::to_string(line) + ": internal error: " + message);
}

}  // namespace hyperoffload

#define HYPER_CHECK(condition, message)                                            \
  do {                                                                             \
    if (!(condition)) ::hyperoffload::check_failed(__FILE__, __LINE__, (message)); \
  } while (false)
