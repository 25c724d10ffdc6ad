#include <algorithm>

#include "sim/model/atomic_file.h"
#include "sim/model/graph.h"
#include "sim/model/read_file.h"
#include "test/model/message.h"
#include "test/support/catch.h"
#include "test/support/random_trace.h"

namespace hyperoffload {
namespace {

const std::string kExample =
    R"({"format": "hyperoffload-trace", "version": 1, "name": "tiny", "meta": {"by": "hand"},
 "tensors": [{"name": "w0", "bytes": 1000, "kind": "weight"},
             {"name": "x1", "bytes": 5, "kind": "activation"}, {"name": "x2", "bytes": 7, "kind": "activation"}],
 "ops": [{"name": "op0", "duration_us": 10, "reads": ["w0"], "writes": ["x1"]},
         {"name": "op1", "flops": 1e12, "hbm_bytes": 2e9, "reads": ["x1"], "writes": ["x2"], "engine": "comm",
          "layer": 0, "phase": "forward", "after": ["op0"], "workspace_bytes": 3}]})";

Graph parse(const std::string& text) { return parse_graph(text, "t.json"); }

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

void check_same_op(const Op& a, const Op& b) {
  CHECK(a.name == b.name);
  CHECK(a.duration == b.duration);
  CHECK(a.flops == b.flops);
  CHECK(a.hbm_bytes == b.hbm_bytes);
  CHECK(a.reads == b.reads);
  CHECK(a.writes == b.writes);
  CHECK(a.engine == b.engine);
  CHECK(a.after == b.after);
  CHECK(a.workspace == b.workspace);
  CHECK(a.memory == b.memory);
  CHECK(a.known_after == b.known_after);
  CHECK(a.layer == b.layer);
  CHECK(a.phase == b.phase);
  CHECK(a.kernel == b.kernel);
  REQUIRE(a.collective.has_value() == b.collective.has_value());
  if (!a.collective) return;
  CHECK(a.collective->kind == b.collective->kind);
  CHECK(a.collective->bytes == b.collective->bytes);
  CHECK(a.collective->group == b.collective->group);
}

TEST_CASE("A layer trace is read as written, with the format's defaults") {
  const Graph g = parse(kExample);
  CHECK(g.name() == "tiny");
  CHECK(g.meta_json() == R"({"by": "hand"})");
  REQUIRE(g.tensors().size() == 3);
  CHECK(g.tensors()[0].persistent);
  CHECK_FALSE(g.tensors()[1].persistent);
  CHECK(g.tensors()[0].bytes.value == 1000);
  CHECK(g.engines() == std::vector<std::string>{"compute", "comm"});
  const Op& op0 = g.ops()[0];
  CHECK(op0.duration->value == 10e-6);
  CHECK_FALSE(op0.flops);
  CHECK(op0.layer == -1);
  CHECK(op0.reads == std::vector<TensorId>{TensorId(0)});
  const Op& op1 = g.ops()[1];
  CHECK(op1.flops->value == 1e12);
  CHECK(op1.hbm_bytes->value == 2'000'000'000);
  CHECK(op1.layer == 0);
  CHECK(op1.phase == "forward");
  CHECK(op1.after == std::vector<OpId>{OpId(0)});
  CHECK(op1.workspace.value == 3);
}

TEST_CASE("The keys of a trace may stand in any order, ops before tensors too") {
  const std::string text =
      R"({"ops": [{"name": "a", "duration_us": 1, "writes": ["x"]}, {"writes": ["x"], "after": ["a"], "duration_us": 2, "name": "b"}],
          "tensors": [{"kind": "other", "bytes": 1, "name": "x"}], "version": 1, "format": "hyperoffload-trace"})";
  const Graph g = parse(text);
  CHECK(g.ops().size() == 2);
  CHECK(g.accesses(TensorId(0)).size() == 2);
  CHECK(g.ops()[1].after == std::vector<OpId>{OpId(0)});
  CHECK(contains(input_error([&] { parse(replaced(text, "\"x\"]", "\"y\"]")); }),
                 "t.json: ops[0].writes[0]: found \"y\""));
}

TEST_CASE("Sizes are exact up to 2^63-1") {
  const Graph g = parse(replaced(kExample, "1000", "9223372036854775807"));
  CHECK(g.tensors()[0].bytes == Bytes::max());
  CHECK(parse(replaced(kExample, "1000", "1e18")).tensors()[0].bytes.value == 1'000'000'000'000'000'000);
  CHECK(parse(replaced(kExample, "1000", "0")).tensors()[0].bytes.value == 0);
}

TEST_CASE("A collective keeps its group, whatever its form") {
  const auto group = [](const std::string& json) {
    return parse(
               replaced(kExample, "\"layer\": 0",
                        "\"collective\": {\"kind\": \"all-reduce\", \"bytes\": 4, \"group\": " + json + "}"))
        .ops()[1]
        .collective->group;
  };
  CHECK(group("\"tp\"") == "tp");
  CHECK(group("8") == "8");
  CHECK(group("[0, 1]") == "[0, 1]");
}

TEST_CASE("A wrong trace is refused with the path inside the file") {
  struct Row {
    const char* from;
    const char* to;
    const char* message;
  };
  const Row rows[] = {
      {"hyperoffload-trace", "hyperoffload-plan",
       "t.json: format: found \"hyperoffload-plan\", expected \"hyperoffload-trace\""},
      {"\"format\": \"hyperoffload-trace\", ", "",
       "t.json: found no \"format\", expected \"format\": \"hyperoffload-trace\""},
      {"\"version\": 1, ", "", "t.json: found no \"version\""},
      {"\"version\": 1", "\"version\": 2", "t.json: version: found 2, expected 1"},
      {"\"version\": 1", "\"version\": \"1\"", "t.json: version: found \"1\", expected a whole number"},
      {"\"meta\": {\"by\": \"hand\"}", "\"meta\": 3", "t.json: meta: found 3, expected an object"},
      {"\"meta\": {\"by\": \"hand\"}", "\"meta\": {\"by\": {\"a\": 1, \"a\": 2}}",
       "t.json: meta.by: found the key \"a\" twice"},
      {"\"name\": \"tiny\"", "\"nmae\": \"tiny\"",
       "t.json: found the unknown key \"nmae\", expected \"name\" (one of format, version"},
      {"\"name\": \"tiny\"", "\"version\": 1",
       "t.json: found the key \"version\" twice, expected each key once"},
      {"\"name\": \"tiny\"", "\"ranks\": []", "t.json: ranks: found a trace of several ranks"},
      {"\"bytes\": 1000", "\"bytes\": -1",
       "t.json: tensors[0].bytes: found -1, expected whole bytes, 0 to 9223372036854775807"},
      {"\"bytes\": 1000", "\"bytes\": 1.5", "t.json: tensors[0].bytes: found 1.5, expected whole bytes"},
      {"\"bytes\": 1000", "\"bytes\": 9223372036854775808",
       "tensors[0].bytes: found 9223372036854775808, expected whole bytes"},
      {"\"bytes\": 1000", "\"bytes\": 18446744073709551617", "tensors[0].bytes: found 18446744073709551617"},
      {"\"bytes\": 1000", "\"bytes\": 1e300", "tensors[0].bytes: found 1e300"},
      {"\"bytes\": 1000", "\"bytes\": \"1000\"", "tensors[0].bytes: found \"1000\", expected whole bytes"},
      {"\"bytes\": 1000", "\"bytes\": null", "tensors[0].bytes: found null"},
      {"\"bytes\": 1000, ", "", "t.json: tensors[0]: found no key \"bytes\", expected that key"},
      {", \"kind\": \"weight\"", "", "t.json: tensors[0]: found no key \"kind\""},
      {"\"name\": \"w0\", ", "", "t.json: tensors[0]: found no key \"name\""},
      {"\"name\": \"w0\"", "\"name\": \"\"", "t.json: tensors[0].name: found \"\", expected a name"},
      {"\"name\": \"w0\"", "\"name\": 7", "t.json: tensors[0].name: found 7, expected a name (a string)"},
      {"\"name\": \"x2\"", "\"name\": \"x1\"",
       "t.json: tensors[2]: found \"x1\", already the name of tensors[1], expected a unique name"},
      {"\"weight\"", "\"weights\"",
       "tensors[0].kind: found \"weights\", expected \"weight\" (one of weight, gradient"},
      {"\"weight\"", "\"weight\", \"persistent\": 1",
       "tensors[0].persistent: found 1, expected true or false"},
      {"\"weight\"", "\"weight\", \"initial\": \"disk\"",
       "tensors[0].initial: found \"disk\", expected one of hbm, pool"},
      {"\"activation\"", "\"activation\", \"initial\": \"pool\"",
       "tensors[1].initial: found \"pool\" on \"x1\""},
      {"\"weight\"", "\"weight\", \"size\": 1", "t.json: tensors[0]: found the unknown key \"size\""},
      {"\"weight\"", "\"weight\", \"bytes\": 1", "t.json: tensors[0]: found the key \"bytes\" twice"},
      {"[\"w0\"]", "[\"w00\"]",
       "t.json: ops[0].reads[0]: found \"w00\", which is no tensor of the trace, expected \"w0\""},
      {"[\"w0\"]", "[\"w0\", 3]", "t.json: ops[0].reads[1]: found 3, expected a string"},
      {"[\"w0\"]", "\"w0\"", "t.json: ops[0].reads: found \"w0\", expected an array"},
      {"[\"w0\"]", "[\"x2\"]",
       "t.json: ops[0].reads: found \"x2\" (activation) read by \"op0\" before anything wrote it"},
      {"[\"op0\"]", "[\"op1\"]",
       "t.json: ops[1].after[0]: found \"op1\", which is no earlier op, expected \"op0\""},
      {"\"name\": \"op1\"", "\"name\": \"op0\"", "t.json: ops[1]: found \"op0\", already the name of ops[0]"},
      {"\"name\": \"op1\", ", "", "t.json: ops[1]: found no key \"name\""},
      {"\"duration_us\": 10, ", "",
       "t.json: ops[0]: found op \"op0\" without a time, expected duration_us, or flops"},
      {"\"duration_us\": 10", "\"duration_us\": -10",
       "t.json: ops[0].duration_us: found -10, expected a finite number, 0 or more"},
      {"\"duration_us\": 10", "\"duration\": 10",
       "t.json: ops[0]: found the unknown key \"duration\", expected"},
      {"\"duration_us\": 10", "\"duration_us\": 1e999",
       "t.json:4:45: found a JSON syntax error (number overflow"},
      {"\"duration_us\": 10", "\"duration_us\": NaN", "t.json:4:"},
      {"\"duration_us\": 10", "\"duration_us\": Infinity", "t.json:4:"},
      {"\"hbm_bytes\": 2e9", "\"hbm_bytes\": 0.5",
       "t.json: ops[1].hbm_bytes: found 0.5, expected whole bytes"},
      {"\"layer\": 0", "\"layer\": -1", "t.json: ops[1].layer: found -1, expected a whole number"},
      {"\"layer\": 0", "\"memory\": \"ram\"", "ops[1].memory: found \"ram\", expected one of hbm, pool"},
      {"\"layer\": 0", "\"known_after\": \"op9\"",
       "ops[1].known_after: found \"op9\", which is no earlier op, expected \"op0\""},
      {"\"layer\": 0", "\"collective\": {\"kind\": \"all-reduce\"}",
       "ops[1].collective: found no key \"bytes\""},
      {"\"layer\": 0", "\"collective\": {\"kind\": \"all-reduce\", \"bytes\": 1, \"grp\": \"\"}",
       "ops[1].collective: found the unknown key \"grp\", expected one of kind, bytes, group"},
      {"\"engine\": \"comm\"", "\"engine\": \"\"", "ops[1].engine: found \"\", expected a name"},
      {"\"by\": \"hand\"", "\"by\": \"\xff\"", "t.json:1:"},
      {"\"by\": \"hand\"", "\"by\": \"a\nb\"",
       "t.json:1:81: found a JSON syntax error (while parsing value - invalid string"},
      {"\"version\": 1,", "\"version\": 1", "t.json:1:"},
      {"\"workspace_bytes\": 3}]}", "\"workspace_bytes\": 3}]} x", "t.json:6:"},
      {"\"workspace_bytes\": 3}]}", "\"workspace_bytes\": 3}", "t.json:6:"},
  };
  for (const Row& row : rows) {
    INFO(row.to);
    const std::string text = replaced(kExample, row.from, row.to);
    const std::string message = input_error([&] { parse(text); });
    INFO(message);
    CHECK(contains(message, row.message));
    CHECK(std::count(message.begin(), message.end(), '\n') == 0);
  }
}

TEST_CASE("What is no layer trace at all is said in a sentence") {
  CHECK(input_error([] { parse(""); }) == "t.json: found an empty file, expected a layer trace");
  CHECK(contains(input_error([] { parse("[]"); }),
                 "t.json: found an array, expected a layer trace (a JSON object)"));
  CHECK(contains(input_error([] { parse("3"); }), "t.json: found 3, expected a layer trace"));
  CHECK(contains(input_error([] { parse("{}"); }), "t.json: found no \"format\""));
  CHECK(contains(input_error([] { parse(R"({"schemaVersion": 1, "traceEvents": []})"); }),
                 "is this a layer trace?"));
  CHECK(contains(input_error([] {
                   parse(R"({"format": "hyperoffload-trace", "version": 1, "ops": [], "tensors": []})");
                 }),
                 "t.json: ops: found no ops, expected at least one op"));
  CHECK(contains(input_error([] { parse(R"({"format": "hyperoffload-trace", "version": 1})"); }),
                 "found no ops"));
  const std::string deep = R"({"meta": )" + std::string(100'000, '[');
  CHECK(contains(input_error([&] { parse(deep); }), "found nesting deeper than 64"));
}

TEST_CASE("Writing and reading a trace gives the same trace, and the same bytes again") {
  std::mt19937_64 random(7);
  for (int round = 0; round < 300; ++round) {
    const Graph graph = build_graph(random_spec(random));
    const std::string text = graph_to_json(graph);
    const Graph again = parse(text);
    REQUIRE(again.name() == graph.name());
    REQUIRE(again.engines() == graph.engines());
    REQUIRE(again.tensors().size() == graph.tensors().size());
    REQUIRE(again.ops().size() == graph.ops().size());
    for (std::size_t t = 0; t < graph.tensors().size(); ++t) {
      const Tensor &a = graph.tensors()[t], &b = again.tensors()[t];
      CHECK((a.name == b.name && a.bytes == b.bytes && a.kind == b.kind && a.persistent == b.persistent &&
             a.initial == b.initial));
    }
    for (std::size_t i = 0; i < graph.ops().size(); ++i) check_same_op(graph.ops()[i], again.ops()[i]);
    REQUIRE(graph_to_json(again) == text);
  }
}

TEST_CASE("A trace has one tensor or op a line and leaves defaults out") {
  const std::string text = graph_to_json(parse(kExample));
  CHECK(contains(text, "\n  {\"name\": \"w0\", \"bytes\": 1000, \"kind\": \"weight\"},\n"));
  CHECK(contains(
      text, "\n  {\"name\": \"op0\", \"duration_us\": 10, \"reads\": [\"w0\"], \"writes\": [\"x1\"]},\n"));
  CHECK(text.back() == '\n');
}

TEST_CASE("A packed trace is recognised by its content, and a damaged one is refused") {
  const std::string packed = gzip(kExample);
  CHECK(graph_to_json(parse(gunzip_if_needed(packed, "t"))) == graph_to_json(parse(kExample)));
  CHECK(gunzip_if_needed(packed + gzip("x"), "t") == kExample + "x");
  CHECK(contains(input_error([&] { gunzip_if_needed(packed.substr(0, packed.size() / 2), "t.gz"); }),
                 "t.gz: found a gzip file that ends too early"));
  CHECK(contains(input_error([&] { gunzip_if_needed(packed.substr(0, 5), "t.gz"); }), "ends too early"));
  CHECK(contains(input_error([&] { gunzip_if_needed(packed + "x", "t.gz"); }), "other bytes behind it"));
  std::string damaged = packed;
  damaged[packed.size() / 2] = static_cast<char>(damaged[packed.size() / 2] ^ 0x55);
  CHECK(contains(input_error([&] { gunzip_if_needed(damaged, "t.gz"); }), "t.gz: found a"));
  CHECK(gzip(std::string(1'000'000, 'x')).size() < 10'000);
  CHECK(gunzip_if_needed(gzip(""), "t").empty());
}

}  // namespace
}  // namespace hyperoffload
