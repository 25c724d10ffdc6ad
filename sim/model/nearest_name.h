// The valid name a person most likely meant, for error messages.
//
// Distance: insertions, deletions, substitutions and swaps of neighbours count 1 each, upper and
// lower case are the same. A name further off than a third of its length (at least 1) is no hint.
// Ties go to the candidate offered first. O(length^2) a candidate of similar length.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hyperoffload {

class NearestName {
 public:
  explicit NearestName(std::string_view wanted);
  void offer(std::string_view candidate);
  const std::string& best() const { return best_; }  // empty: nothing is near

 private:
  std::string wanted_;  // lower case
  std::size_t limit_;   // a candidate must be nearer than this
  std::string best_;
};

std::string nearest_name(std::string_view wanted, const std::vector<std::string>& valid);

// What a message expects in the place of an unknown name: `"hbm" (one of compute, count, hbm)`, or
// `one of compute, count, hbm` when nothing is near.
std::string one_of(std::string_view wanted, const std::vector<std::string>& valid);

// Text from a file or the command line, for use inside a one-line message: at most 60 characters, control
// characters and broken UTF-8 shown as '?'; the second form in double quotes.
std::string shortened(std::string_view text);
std::string in_quotes(std::string_view text);

}  // namespace hyperoffload
