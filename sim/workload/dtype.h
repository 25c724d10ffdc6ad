// Element types of weights, activations and caches, and the bytes they take.
//
// Bytes are exact: elements * bits / 8, rounded up to a whole byte (4-bit types pack two a byte).
// Quantisation scales are not part of a type: see QuantSpec in model_config.h.
#pragma once

#include <optional>
#include <string>

#include "sim/model/error.h"
#include "sim/model/units.h"

namespace hyperoffload {

enum class DataType { kFp32, kBf16, kFp16, kFp8, kInt8, kFp4, kInt4 };

inline constexpr DataType kAllDataTypes[] = {DataType::kFp32, DataType::kBf16, DataType::kFp16,
                                             DataType::kFp8,  DataType::kInt8, DataType::kFp4,
                                             DataType::kInt4};

constexpr int bits_of(DataType type) {
  switch (type) {
    case DataType::kFp32:
      return 32;
    case DataType::kBf16:
    case DataType::kFp16:
      return 16;
    case DataType::kFp8:
    case DataType::kInt8:
      return 8;
    case DataType::kFp4:
    case DataType::kInt4:
      return 4;
  }
  return 0;
}

constexpr const char* to_string(DataType type) {
  switch (type) {
    case DataType::kFp32:
      return "fp32";
    case DataType::kBf16:
      return "bf16";
    case DataType::kFp16:
      return "fp16";
    case DataType::kFp8:
      return "fp8";
    case DataType::kInt8:
      return "int8";
    case DataType::kFp4:
      return "fp4";
    case DataType::kInt4:
      return "int4";
  }
  return "";
}

inline constexpr std::int64_t kMostElements = std::int64_t{1} << 50;  // of one tensor

constexpr Bytes bytes_of(std::int64_t elements, DataType type) {
  if (elements < 0 || elements > kMostElements)
    throw InputError("the workload", std::to_string(elements) + " elements in one tensor",
                     "at most " + std::to_string(kMostElements));
  return Bytes((elements * bits_of(type) + 7) / 8);
}

}  // namespace hyperoffload
