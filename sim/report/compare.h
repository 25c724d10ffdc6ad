// Two results beside each other: which of their fields differ, by how much.
//
// Fields are those of the result JSON, nested ones joined by dots as in the CSV; lists are left out. Numbers
// differ when their doubles do: the same input gives the same bytes, so there is no tolerance to choose.
// `percent` is 100 (b - a) / |a|, absent where a is 0 or either is missing.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "sim/report/result.h"

namespace hyperoffload {

struct FieldDifference {
  std::string field;
  std::string a, b;                        // as JSON text
  std::optional<double> a_value, b_value;  // where they are numbers
  std::optional<double> percent;
};

struct Comparison {
  std::string name;  // of the pair: the policy, or the policy and where it was found
  std::vector<FieldDifference> differences;
  std::size_t equal = 0;  // fields that are the same
};

Comparison compare_results(const std::string& name, const Result& a, const Result& b);

struct ComparisonSet {
  std::string a, b;  // where they come from
  std::vector<Comparison> pairs;
  std::vector<std::string> only_a, only_b;
};

// For a person: what was simulated, time, stall by cause, peaks, bytes moved and bound, where they differ
// (`all`: every field that does).
std::string comparison_table(const ComparisonSet& set, bool all);
std::string comparison_json(const ComparisonSet& set);  // every field that differs; ends with a newline

}  // namespace hyperoffload
