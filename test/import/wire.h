// Protobuf's wire format, written by hand.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hyperoffload::wire {

inline std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 128; value >>= 7) bytes += static_cast<char>((value & 127) | 128);
  return bytes + static_cast<char>(value);
}
inline std::string number(int field, std::uint64_t value) {
  return varint(static_cast<std::uint64_t>(field) << 3) + varint(value);
}
inline std::string text(int field, const std::string& value) {
  return varint(static_cast<std::uint64_t>(field) << 3 | 2) + varint(value.size()) + value;
}
inline std::string packed(int field, const std::vector<std::uint64_t>& values) {
  std::string bytes;
  for (const std::uint64_t value : values) bytes += varint(value);
  return text(field, bytes);
}
// A message behind its length.
inline std::string message(const std::string& content) { return varint(content.size()) + content; }

}  // namespace hyperoffload::wire
