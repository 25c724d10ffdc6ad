// The three ways a job can go wrong, and nothing else:
//   InputError       the input is wrong: exit 2, one sentence (file, line or path, found, expected)
//   InfeasibleError  the input is right but the job can't be done: exit 3 (step, tier, bytes short)
//   CheckFailure     (check.h) a fault of ours: exit 1
#pragma once

#include <stdexcept>
#include <string>

namespace hyperoffload {

// Wrong input. `where` is "file.yaml:12" or "file.json: ops[3].reads[0]"; the message is one
// sentence: "WHERE: found FOUND, expected EXPECTED".
class InputError : public std::runtime_error {
 public:
  explicit InputError(const std::string& message) : std::runtime_error(message) {}
  InputError(const std::string& where, const std::string& found, const std::string& expected)
      : std::runtime_error(where + ": found " + found + ", expected " + expected) {}
};

// The job can't be done with this capacity or this plan.
class InfeasibleError : public std::runtime_error {
 public:
  explicit InfeasibleError(const std::string& message) : std::runtime_error(message) {}
};

}  // namespace hyperoffload
