#include "sim/import/protobuf_stream.h"

#include <fmt/format.h>

#include "sim/model/error.h"

namespace hyperoffload {

bool ProtobufInput::at_end() {
  if (rest_.empty()) rest_ = stream_.next_piece();
  return rest_.empty();
}

bool ProtobufInput::Next(const void** data, int* size) {
  if (at_end()) return false;
  *data = rest_.data();
  *size = static_cast<int>(rest_.size());
  given_ += *size;
  rest_ = rest_.substr(rest_.size());
  return true;
}

void ProtobufInput::BackUp(int count) {
  rest_ = {rest_.data() - count, static_cast<std::size_t>(count)};
  given_ -= count;
}

bool ProtobufInput::Skip(int count) {
  while (count > 0) {
    if (at_end()) return false;
    const int step = std::min(count, static_cast<int>(rest_.size()));
    rest_.remove_prefix(static_cast<std::size_t>(step));
    given_ += step;
    count -= step;
  }
  return true;
}

void ProtobufMessage::fail(const std::string& found) const {
  throw InputError(where_, found, "a whole protobuf message");
}

int ProtobufMessage::next() {
  const std::uint32_t tag = stream_.ReadTag();
  if (tag == 0) {
    if (stream_.ConsumedEntireMessage()) return field_ = 0;
    fail("a broken field");
  }
  field_ = static_cast<int>(tag >> 3);
  wire_ = static_cast<Wire>(tag & 7);
  if (field_ == 0 || (wire_ != kVarint && wire_ != kFixed64 && wire_ != kBytes && wire_ != kFixed32))
    fail("a broken field");
  return field_;
}

void ProtobufMessage::expect(Wire wire) {
  if (wire_ != wire) fail(fmt::format("field {} of wire type {}", field_, static_cast<int>(wire_)));
}

std::uint64_t ProtobufMessage::varint() {
  expect(kVarint);
  std::uint64_t value = 0;
  if (!stream_.ReadVarint64(&value)) fail("the end of the file in a number");
  return value;
}

std::uint64_t ProtobufMessage::fixed64() {
  expect(kFixed64);
  std::uint64_t value = 0;
  if (!stream_.ReadLittleEndian64(&value)) fail("the end of the file in a number");
  return value;
}

std::uint32_t ProtobufMessage::fixed32() {
  expect(kFixed32);
  std::uint32_t value = 0;
  if (!stream_.ReadLittleEndian32(&value)) fail("the end of the file in a number");
  return value;
}

std::string ProtobufMessage::bytes() {
  expect(kBytes);
  int size = 0;
  std::string text;
  if (!stream_.ReadVarintSizeAsInt(&size) || !stream_.ReadString(&text, size))
    fail("the end of the file in a text");
  return text;
}

std::string ProtobufMessage::bytes_up_to(std::size_t most) {
  expect(kBytes);
  int size = 0;
  std::string text;
  if (!stream_.ReadVarintSizeAsInt(&size)) fail("the end of the file in a field");
  const bool fits = static_cast<std::size_t>(size) <= most;
  if (!(fits ? stream_.ReadString(&text, size) : stream_.Skip(size))) fail("the end of the file in a field");
  return text;
}

std::vector<std::uint64_t> ProtobufMessage::varints() {
  if (wire_ == kVarint) return {varint()};
  expect(kBytes);
  int size = 0;
  std::vector<std::uint64_t> values;
  if (!stream_.ReadVarintSizeAsInt(&size)) fail("the end of the file in a list");
  const auto limit = stream_.PushLimit(size);
  while (stream_.BytesUntilLimit() > 0) {
    std::uint64_t value = 0;
    if (!stream_.ReadVarint64(&value)) fail("the end of the file in a list");
    values.push_back(value);
  }
  stream_.PopLimit(limit);
  return values;
}

void ProtobufMessage::skip() {
  int size = 0;
  switch (wire_) {
    case kVarint:
      varint();
      return;
    case kFixed64:
      fixed64();
      return;
    case kFixed32:
      fixed32();
      return;
    case kBytes:
      if (!stream_.ReadVarintSizeAsInt(&size) || !stream_.Skip(size)) fail("the end of the file in a field");
  }
}

void ProtobufMessage::message(const std::function<void(ProtobufMessage&)>& read) {
  expect(kBytes);
  int size = 0;
  if (!stream_.ReadVarintSizeAsInt(&size)) fail("the end of the file in a message");
  const auto limit = stream_.PushLimit(size);
  ProtobufMessage inner(stream_, where_);
  read(inner);
  if (!stream_.ConsumedEntireMessage() || stream_.BytesUntilLimit() > 0)
    fail("a message that ends too early");
  stream_.PopLimit(limit);
}

}  // namespace hyperoffload
