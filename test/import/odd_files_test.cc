// Files as editors, shells and archives leave them: byte order marks, Windows line ends, UTF-16, a gzip file
// within another, bytes behind the end.
#include <zlib.h>

#include "sim/model/graph.h"
#include "test/import/data.h"

namespace hyperoffload {
namespace {

std::string gzipped(const std::string& text) {
  std::string out(compressBound(static_cast<uLong>(text.size())) + 64, '\0');
  z_stream stream{};
  REQUIRE(deflateInit2(&stream, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  REQUIRE(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::string with_windows_lines(const std::string& text) {
  std::string out;
  for (const char c : text) out += c == '\n' ? "\r\n" : std::string(1, c);
  return out;
}

std::string in_utf16(const std::string& text) {
  std::string out = "\xff\xfe";
  for (const char c : text) out += std::string{c, '\0'};
  return out;
}

struct Sample {
  std::string format, text;
};

// One of each way to read a file: streamed JSON, streamed text, a whole text.
std::vector<Sample> samples() {
  return {
      {"kineto",
       "{\"traceEvents\": [\n{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"a\", \"ts\": 1, \"dur\": 2, "
       "\"args\": "
       "{\"device\": 0, \"stream\": 7}}\n]}\n"},
      {"mindspore", "op_name, stream_id, start_time(ms), duration(ms)\nDefault/MatMul-op1, 3, 1.5, 0.25\n"},
      {"g10",
       "Kernel ID: 0, Name: A_Forward\nParent OP ID: 0\nExecution Time: 1200\nInput Tensors:\nOutput "
       "Tensors:\n"
       "tensor0 Is weight (global)?: 0, Size in byte: 4096, Range:0--4096\n" +
           std::string(80, '_') + "\n"}};
}

Graph graph_of(const Sample& sample, const std::string& text) {
  const TemporaryFiles files;
  return import_trace(sample.format, {files.add("trace", text)}, {}).graph;
}

std::string refusal_of(const Sample& sample, const std::string& text) {
  const TemporaryFiles files;
  return input_error([&] { import_trace(sample.format, {files.add("trace", text)}, {}); });
}

}  // namespace

TEST_CASE("a byte order mark and Windows line ends change nothing") {
  for (const Sample& sample : samples()) {
    INFO(sample.format);
    const std::string plain = graph_to_json(graph_of(sample, sample.text));
    CHECK(graph_to_json(graph_of(sample, "\xef\xbb\xbf" + sample.text)) == plain);
    CHECK(graph_to_json(graph_of(sample, with_windows_lines(sample.text))) == plain);
    CHECK(graph_to_json(graph_of(sample, gzipped("\xef\xbb\xbf" + sample.text))) == plain);
  }
}

TEST_CASE("text in UTF-16 and a gzip file within a gzip file are refused for what they are") {
  for (const Sample& sample : samples()) {
    INFO(sample.format);
    CHECK(contains(refusal_of(sample, in_utf16(sample.text)), "found text in UTF-16, expected UTF-8"));
    CHECK(
        contains(refusal_of(sample, gzipped(gzipped(sample.text))), "found a gzip file within a gzip file"));
  }
}

TEST_CASE("a byte 0 ends no JSON") {
  const Sample kineto = samples()[0];
  CHECK(contains(refusal_of(kineto, kineto.text + std::string("\0{", 2)), "found a byte 0 in the text"));
  const std::string trace =
      R"({"format": "hyperoffload-trace", "version": 1, "name": "t", "tensors": [], "ops": [{"name": "a", "duration_us": 1}]})";
  CHECK_NOTHROW(parse_graph(trace, "t"));
  CHECK(contains(input_error([&] { parse_graph(trace + std::string("\0x", 2), "t"); }), "found a byte 0"));
}

TEST_CASE("a number beyond any double is named with its place in the file") {
  const std::string before = R"({"traceEvents": [{"dur": )";
  const std::string found = refusal_of(samples()[0], before + "1e400}]}");
  // The last byte of the number.
  CHECK(contains(found, ": byte " + std::to_string(before.size() + 5) + ": found a JSON syntax error (number overflow parsing '1e400')"));
}

}  // namespace hyperoffload
