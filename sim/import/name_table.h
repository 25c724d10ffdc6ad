// Texts that repeat, each kept once: text <-> number.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>

namespace hyperoffload {

class NameTable {
 public:
  std::uint32_t number(std::string_view name) {
    const auto known = numbers_.find(name);
    if (known != numbers_.end()) return known->second;
    names_.emplace_back(name);
    const auto number = static_cast<std::uint32_t>(names_.size() - 1);
    numbers_.emplace(names_.back(), number);
    return number;
  }
  const std::string& name(std::uint32_t number) const { return names_[number]; }

 private:
  std::deque<std::string> names_;  // a deque: the views below stay valid as it grows
  std::unordered_map<std::string_view, std::uint32_t> numbers_;
};

}  // namespace hyperoffload
