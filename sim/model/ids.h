// Ids: a 32-bit index with a tag, so that an op's index can't be used as a tensor's.
// An Id is an index into the vector that owns the thing (Graph::ops(), Graph::tensors(), ...).
// Id::none() (-1) stands for "no such thing": a plan's `after_op: null`, for one.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>

namespace hyperoffload {

template <class Tag>
struct Id {
  std::int32_t value = -1;

  constexpr Id() = default;
  constexpr explicit Id(std::int32_t v) : value(v) {}
  constexpr explicit Id(std::size_t v) : value(static_cast<std::int32_t>(v)) {}
  static constexpr Id none() { return Id(); }
  constexpr bool is_none() const { return value < 0; }
  constexpr std::size_t index() const { return static_cast<std::size_t>(value); }
  constexpr auto operator<=>(const Id&) const = default;
};

using OpId = Id<struct OpTag>;          // index into Graph::ops(): the op's step
using TensorId = Id<struct TensorTag>;  // index into Graph::tensors()
using EngineId = Id<struct EngineTag>;  // index into Graph::engines()

}  // namespace hyperoffload
