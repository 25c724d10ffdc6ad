// Protobuf's wire format read from a file piece by piece, so that no message stands in memory as a whole.
#pragma once

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sim/import/text_stream.h"

namespace hyperoffload {

// A TextStream as the library takes it.
class ProtobufInput : public google::protobuf::io::ZeroCopyInputStream {
 public:
  explicit ProtobufInput(TextStream& stream) : stream_(stream) {}
  bool Next(const void** data, int* size) override;
  void BackUp(int count) override;
  bool Skip(int count) override;
  int64_t ByteCount() const override { return given_; }
  bool at_end();  // looks ahead

 private:
  TextStream& stream_;
  std::string_view rest_;
  std::int64_t given_ = 0;
};

// The fields of one message, in the order of the file. Each must be read or skipped before the next.
// InputError for what isn't protobuf.
class ProtobufMessage {
 public:
  using Stream = google::protobuf::io::CodedInputStream;
  enum Wire { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

  // `where` opens messages about the file.
  ProtobufMessage(Stream& stream, const std::string& where) : stream_(stream), where_(where) {}

  // The next field, or 0 at the message's end.
  int next();
  int field() const { return field_; }
  Wire wire() const { return wire_; }

  void skip();
  std::uint64_t varint();
  std::uint64_t fixed64();
  std::uint32_t fixed32();
  std::string bytes();
  std::string bytes_up_to(std::size_t most);  // empty, and skipped, when longer
  std::vector<std::uint64_t> varints();       // one, or several packed
  // Runs `read` on the message that the field holds.
  void message(const std::function<void(ProtobufMessage&)>& read);

  [[noreturn]] void fail(const std::string& found) const;

 private:
  void expect(Wire wire);
  Stream& stream_;
  const std::string& where_;
  int field_ = 0;
  Wire wire_ = kVarint;
};

}  // namespace hyperoffload
