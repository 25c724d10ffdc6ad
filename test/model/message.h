// The message of the InputError that a call throws; "no error" when it doesn't.
#pragma once

#include <string>

#include "sim/model/error.h"

namespace hyperoffload {

template <class Call>
std::string input_error(Call call) {
  try {
    call();
  } catch (const InputError& e) {
    return e.what();
  }
  return "no error";
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace hyperoffload
