#include "sim/model/yaml_reader.h"

#include <chrono>

#include "sim/model/nearest_name.h"
#include "test/model/message.h"
#include "test/support/catch.h"

namespace hyperoffload {
namespace {

std::string parse_error(const std::string& text) {
  return input_error([&] { parse_yaml(text, "a.yaml"); });
}

YamlNode value_of(const std::string& text) {
  return YamlMap(parse_yaml("v: " + text, "a.yaml"), {"v"}).get("v");
}

TEST_CASE("A file that is no single YAML map is refused with its line") {
  struct Row {
    const char* text;
    const char* message;
  };
  const Row rows[] = {
      {"", "a.yaml:1: found an empty file, expected a YAML map"},
      {"\n# only a comment\n", "found an empty file"},
      {"---\n", "found nothing, expected a YAML map"},
      {"[1, 2]\n", "a.yaml:1: found a list, expected a YAML map at the top level"},
      {"# c\nhello\n", "a.yaml:2: found \"hello\", expected a YAML map"},
      {"a: 1\n---\nb: 2\n", "a.yaml:3: found a second document"},
      {"a: {b: 1\n", "found a YAML syntax error"},
      {"a: 1\nb: [1, 2\nc: 3\n", "a.yaml:3: found a YAML syntax error"},
      {"a: 'x\n", "a.yaml:1: found a YAML syntax error (illegal EOF in scalar"},
      {"a: \"x\nb: 2\n", "a.yaml:2: found a YAML syntax error (illegal EOF in scalar"},
      {"a: [[[1\nb: 2\n", "found a YAML syntax error"},
      {"- 1\na: 1\n", "a.yaml:2: found a second document, or a value that does not continue the first"},
      {"a: *nowhere\n", "a.yaml:1: found a YAML syntax error (the referenced anchor is not defined"},
      {"a:\n\tb: 1\n", "a.yaml:2: found a tab in the indentation, expected spaces"},
      {"a: 1\nb: \xff\n", "a.yaml:2: found bytes that are not UTF-8"},
      {"a: 1\nb: \x04\nc: 2\n", "a.yaml:2: found the control character 0x04"},
      {"a: &x [*x]\n", "a.yaml:1: found an alias to the value it stands in"},
      {"a: !!int 3\n", "a.yaml:1: found the tag \"tag:yaml.org,2002:int\""},
      {"? [a, b]\n: 1\n", "found a list or map as a key"},
      {"{a: 1}: 2\n", "found a list or map as a key"},
      {"~: 1\n", "a.yaml:1: found an empty key"},
  };
  for (const Row& row : rows) {
    INFO(row.text);
    const std::string message = parse_error(row.text);
    INFO(message);
    CHECK(contains(message, row.message));
  }
}

// Other readers keep the last silently: https://github.com/yaml/pyyaml/issues/165
TEST_CASE("A duplicate key is an error that names both lines, at any depth") {
  CHECK(parse_error("name: a\nb: 1\nname: c\n") ==
        "a.yaml:3: found the key \"name\" a second time (first in line 1), expected each key once");
  CHECK(contains(parse_error("a:\n  b:\n    - c: 1\n      d: 2\n      c: 3\n"),
                 "a.yaml:5: found the key \"c\" a second time (first in line 3)"));
  CHECK(contains(parse_error("a: {b: 1, b: 2}\n"), "first in line 1"));
  CHECK(contains(parse_error("a: 1\n\"a\": 2\n"), "a.yaml:2"));
  CHECK(contains(parse_error("x: &x {a: 1}\ny:\n  <<: *x\n  <<: *x\n"),
                 "a.yaml:4: found the key \"<<\" a second time (first in line 3)"));
}

TEST_CASE("Merge keys are shallow, the map's own keys win, then the earlier map of a list") {
  const YamlNode root = parse_yaml(
      "base: &base {a: 1, b: {x: 1, y: 2}}\n"
      "more: &more {a: 10, c: 3}\n"
      "one: {<<: *base, b: {x: 9}}\n"
      "two:\n  a: 0\n  <<: [*base, *more]\n"
      "three: {\"<<\": 5}\n",
      "a.yaml");
  const YamlMap top(root, {"base", "more", "one", "two", "three"});
  CHECK(top.get("one").flow_text() == "{b: {x: 9}, a: 1}");
  CHECK(top.get("two").flow_text() == "{a: 0, b: {x: 1, y: 2}, c: 3}");
  CHECK(top.get("three").map().front().first == "<<");
  CHECK(contains(parse_error("a: {<<: 5}\n"), "a.yaml:1: found \"<<\" with something that is no map"));
}

TEST_CASE("Aliases of aliases cost nothing until someone walks them, and then it is an error") {
  std::string text = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 40; ++i) {
    const std::string alias = "*a" + std::to_string(i - 1);
    text += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int k = 0; k < 9; ++k) text += (k ? ", " : "") + alias;
    text += "]\n";
  }
  const YamlNode root = parse_yaml(text, "a.yaml");
  CHECK(root.map().size() == 40);
  CHECK(contains(input_error([&] { root.flow_text(); }), "longer than 1 MiB"));
  const std::string deep(5000, '[');
  CHECK(contains(parse_error("a: " + deep), "a.yaml:1: found nesting that is too deep"));
}

// In YAML 1.1 `no` and `off` are booleans: https://github.com/r-lib/yaml/issues/65
TEST_CASE("Scalars keep their spelling: no, off and y are text, and only true and false are booleans") {
  for (const char* text : {"no", "off", "y", "NO", "yes", "8", "1e9", "true", "2026-01-01", "~x"})
    CHECK(value_of(text).string() == text);
  CHECK(value_of("'null'").string() == "null");
  CHECK(value_of("true").boolean());
  CHECK_FALSE(value_of("false").boolean());
  for (const char* text : {"yes", "no", "on", "True", "1"})
    CHECK(contains(input_error([&] { value_of(text).boolean(); }), "expected true or false, without quotes"));
  CHECK(contains(input_error([&] { value_of("'true'").boolean(); }), "a.yaml:1: v: found the text \"true\""));
  CHECK(contains(input_error([&] { value_of("").string(); }), "a.yaml:1: v: found nothing, expected text"));
  CHECK(contains(input_error([&] { value_of("''").string(); }), "found empty text"));
  CHECK(contains(input_error([&] { value_of("[a]").string(); }), "found a list, expected text"));
}

TEST_CASE("Numbers are checked against their range") {
  CHECK(value_of("4096").integer(1, 10'000) == 4096);
  CHECK(value_of("1e6").integer(1, 1'000'000) == 1'000'000);
  CHECK(value_of("-3").integer(-5, 5) == -3);
  CHECK(value_of("0.25").number(0, 1) == 0.25);
  for (const char* text : {"0", "-1", "1.5", "10001", "abc", "", "[1]", "1e99", "0x10", "nan"})
    CHECK(contains(input_error([&] { value_of(text).integer(1, 10'000); }),
                   "expected a whole number, 1 to 10000"));
  for (const char* text : {"1.01", "-0.1", ".nan", ".inf", "x"})
    CHECK(contains(input_error([&] { value_of(text).number(0, 1); }), "expected a number, 0 to 1"));
}

TEST_CASE("Values with a dimension carry the place in their message") {
  CHECK(value_of("64GiB").bytes().value == std::int64_t{64} << 30);
  CHECK(value_of("'64 GB'").bytes().value == 64'000'000'000);
  CHECK(value_of("1.6TB/s").rate().value == 1.6e12);
  CHECK(value_of("1us").seconds().value == 1e-6);
  CHECK(contains(input_error([] { value_of("64").bytes(); }),
                 "a.yaml:1: v: found a number without a unit, \"64\", expected bytes with a unit (B, "));
  CHECK(contains(input_error([] { value_of("{a: 1}").rate(); }),
                 "a.yaml:1: v: found a map, expected bytes per second"));
}

TEST_CASE("Unknown keys name the nearest valid one, missing keys are said") {
  const YamlNode root = parse_yaml("npu:\n  count: 1\n  hmb: 3\n", "a.yaml");
  const YamlNode npu = YamlMap(root, {"npu"}).get("npu");
  CHECK(input_error([&] {
          YamlMap(npu, {"count", "compute", "hbm"});
        }) == "a.yaml:3: npu: found the unknown key \"hmb\", expected \"hbm\" (one of count, compute, hbm)");
  CHECK(contains(input_error([&] {
                   YamlMap(npu, {"count", "hmb", "hbm"}).get("hbm");
                 }),
                 "a.yaml:2: npu: found no key \"hbm\""));
  CHECK(contains(input_error([&] {
                   YamlMap(YamlMap(npu, {"count", "hmb"}).get("count"), {"a"});
                 }),
                 "a.yaml:2: npu.count: found \"1\", expected a map with the keys a"));
}

TEST_CASE("Lists and maps give their elements with path and line") {
  const YamlNode root = parse_yaml("p:\n  - a\n  - name: b\n    step: x\n", "a.yaml");
  const std::vector<YamlNode> list = YamlMap(root, {"p"}).get("p").list();
  REQUIRE(list.size() == 2);
  CHECK(list[0].string() == "a");
  CHECK(list[1].map()[1].second.where() == "a.yaml:4: p[1].step");
}

TEST_CASE("File names are relative to the file that names them") {
  const auto name = [](const std::string& source, const std::string& value) {
    return YamlMap(parse_yaml("f: " + value, source), {"f"}).get("f").file_name();
  };
  CHECK(name("configs/x.yaml", "../a.json") == "configs/../a.json");
  CHECK(name("x.yaml", "a.json") == "a.json");
  CHECK(name("/x.yaml", "a.json") == "//a.json");
  CHECK(name("d/x.yaml", "/abs/a.json") == "/abs/a.json");
  CHECK(name("d/x.yaml", "'-'") == "-");
  const YamlNode set = apply_overrides(parse_yaml("f: a", "d/x.yaml"), {"f=b.json"});
  CHECK(YamlMap(set, {"f"}).get("f").file_name() == "b.json");
}

TEST_CASE("Overrides replace and add values at dotted paths, in order") {
  const YamlNode root =
      parse_yaml("a: {b: {c: 1, d: 2}}\nlist: [x, {y: 1}]\nnothing:\nsweep: {parallel.tp: [1]}\n", "a.yaml");
  const auto after = [&](const std::vector<std::string>& settings) {
    return apply_overrides(root, settings).flow_text();
  };
  CHECK(after({}) == "{a: {b: {c: 1, d: 2}}, list: [x, {y: 1}], nothing: null, sweep: {parallel.tp: [1]}}");
  CHECK(contains(after({"a.b.c=48GiB"}), "a: {b: {c: 48GiB, d: 2}}"));
  CHECK(contains(after({"a.b.c=1", "a.b.c=2"}), "c: 2, d: 2"));
  CHECK(contains(after({"a.b=[resident, graph]"}), "a: {b: [resident, graph]}"));
  CHECK(contains(after({"a.new.deep={tp: 2}"}), "a: {b: {c: 1, d: 2}, new: {deep: {tp: 2}}}"));
  CHECK(contains(after({"nothing.x=1"}), "nothing: {x: 1}"));
  CHECK(contains(after({"list.1.y=5"}), "list: [x, {y: 5}]"));
  CHECK(contains(after({"sweep.parallel.tp=[2]"}), "sweep: {parallel.tp: [2]}"));
  CHECK(contains(after({"nothing=\"no\""}), "nothing: \"no\""));
  CHECK(contains(after({"a="}), "a: null"));
  CHECK(root.flow_text() == after({}));  // the document itself is untouched
}

TEST_CASE("An override of an aliased map changes only the place it names") {
  const YamlNode root = parse_yaml("x: &x {a: 1}\ny: *x\n", "a.yaml");
  CHECK(apply_overrides(root, {"y.a=2"}).flow_text() == "{x: {a: 1}, y: {a: 2}}");
}

TEST_CASE("Overrides that can't be applied say so, and bad values are blamed on the setting") {
  const YamlNode root = parse_yaml("hbm: 64GiB\nlist: [1]\n", "a.yaml");
  const auto error = [&](const std::string& setting) {
    return input_error([&] { apply_overrides(root, {setting}); });
  };
  CHECK(error("hbm.x=1") ==
        "--set hbm.x=1: found \"hbm.x\", which runs through \"hbm\" (a.yaml:1: \"64GiB\"), expected a path "
        "through maps");
  CHECK(contains(error("list.3=1"), "expected an index from 0 to 0"));
  CHECK(contains(error("list.x=1"), "at a list of 1"));
  CHECK(contains(error("hbm"), "--set hbm: found no \"=\""));
  CHECK(contains(error("=1"), "the path \"\""));
  CHECK(contains(error("a..b=1"), "the path \"a..b\""));
  CHECK(contains(error("hbm=[1"), "--set hbm=[1: found a YAML syntax error"));
  const YamlNode changed = apply_overrides(root, {"hbm=64"});
  CHECK(contains(input_error([&] {
                   YamlMap(changed, {"hbm", "list"}).get("hbm").bytes();
                 }),
                 "--set hbm=64: hbm: found a number without a unit"));
}

TEST_CASE("A missing file and a directory are one clear sentence") {
  CHECK(input_error([] { load_yaml("/nowhere/a.yaml"); }) ==
        "/nowhere/a.yaml: found no such file, expected a YAML file");
  CHECK(input_error([] { load_yaml("/"); }) == "/: found a directory, expected a YAML file");
  CHECK(contains(input_error([] { load_yaml(""); }), "an empty name"));
}

TEST_CASE("The nearest name forgives typing errors, not different words") {
  const std::vector<std::string> valid = {"capacity", "bandwidth", "reserved"};
  CHECK(nearest_name("capcity", valid) == "capacity");
  CHECK(nearest_name("Bandwidth", valid) == "bandwidth");
  CHECK(nearest_name("bandwitdh", valid) == "bandwidth");
  CHECK(nearest_name("latency", valid) == "");
  CHECK(nearest_name("hmb", {"hbm"}) == "hbm");
  CHECK(nearest_name("x", {"y"}) == "y");
  CHECK(nearest_name("", valid) == "");
  CHECK(in_quotes("a\nb") == "\"a?b\"");
  CHECK(in_quotes(std::string(100, 'x')) == "\"" + std::string(57, 'x') + "...\"");
}

}  // namespace
}  // namespace hyperoffload
