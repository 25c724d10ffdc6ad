// Damaged files of every format: whatever the bytes, the reader returns or throws InputError with one
// line of printable text. Seeds are fixed; a failing case prints its text. FUZZ_FACTOR=100 in the
// environment makes that many times the cases.
#include <cstdlib>

#include "sim/model/atomic_file.h"
#include "sim/model/hardware.h"
#include "sim/model/read_file.h"
#include "sim/model/utf8.h"
#include "sim/model/yaml_reader.h"
#include "test/model/message.h"
#include "test/support/catch.h"
#include "test/support/paths.h"
#include "test/support/random_trace.h"

namespace hyperoffload {
namespace {

using Random = std::mt19937_64;

// One small damage; several are made in a row.
void damage(Random& random, std::string& text, const std::vector<std::string>& tokens) {
  if (text.empty()) return;
  const std::size_t at = random() % text.size();
  switch (random() % 7) {
    case 0:
      text.resize(at);
      break;
    case 1:
      text[at] = static_cast<char>(random() % 256);
      break;
    case 2:
      text[at] = static_cast<char>(text[at] ^ (1 << random() % 8));
      break;
    case 3:
      text.erase(at, 1 + random() % 8);
      break;
    case 4:
      text.insert(at, text.substr(random() % text.size(), random() % 60));
      break;
    default:
      text.replace(at, random() % 4, tokens[random() % tokens.size()]);
      break;
  }
}

template <class Read>
void fuzz(std::uint64_t seed, int cases, const std::vector<std::string>& originals,
          const std::vector<std::string>& tokens, Read read) {
  Random random(seed);
  if (const char* factor = std::getenv("FUZZ_FACTOR")) cases *= std::atoi(factor);
  int refused = 0;
  for (int i = 0; i < cases; ++i) {
    std::string text = originals[random() % originals.size()];
    for (std::size_t k = 1 + random() % 3; k > 0; --k) damage(random, text, tokens);
    std::string message;
    try {
      message = input_error([&] { read(text); });
    } catch (const std::exception& e) {
      INFO(text);
      FAIL("not an InputError: " << e.what());
    }
    if (message != "no error") ++refused;
    const bool one_line = printable(message) == message && message.size() < 1500;
    if (!one_line) {
      INFO(text);
      INFO(message);
      CHECK(one_line);
    }
  }
  CHECK(refused > cases / 3);  // the damage does reach the reader
}

const std::vector<std::string> kJsonTokens = {"{",
                                              "}",
                                              "[",
                                              "]",
                                              ",",
                                              ":",
                                              "\"",
                                              "null",
                                              "true",
                                              "-1",
                                              "1e999",
                                              "1.5",
                                              "9223372036854775808",
                                              "\\u0000",
                                              "\\ud800",
                                              "\xff",
                                              "\"name\"",
                                              "\"w\": ",
                                              "NaN",
                                              "\n",
                                              std::string(1, '\0'),
                                              "[[[["};
const std::vector<std::string> kYamlTokens = {
    "{",     "}",    "[",   "]",    ",",      ": ",     "\"",
    "'",     "null", "&a",  "*a",   "<<: ",   "- ",     "---\n",
    "...\n", "|\n",  ">\n", "?",    "!",      "!!int ", "%",
    "@",     "#",    "\t",  "\n",   "\r",     "\xff",   std::string(1, '\0'),
    "\x04",  "64",   "0B",  "-1GB", "1e99TB", "a: 1\n", "  "};

TEST_CASE("Damaged traces are read or refused in one sentence, never worse") {
  Random random(1);
  std::vector<std::string> originals;
  for (int i = 0; i < 10; ++i) originals.push_back(graph_to_json(build_graph(random_spec(random))));
  fuzz(2, 3000, originals, kJsonTokens,
       [](const std::string& text) { graph_to_json(parse_graph(text, "t.json")); });
}

TEST_CASE("Damaged plans are read or refused in one sentence, never worse") {
  Random random(3);
  std::vector<std::string> originals;
  GraphSpec spec = random_spec(random);
  while (spec.tensors.size() < 5 || spec.ops.size() < 10) spec = random_spec(random);
  const Graph graph = build_graph(spec);
  for (int i = 0; i < 10; ++i) originals.push_back(plan_to_json(random_plan(random, graph), graph));
  fuzz(4, 3000, originals, kJsonTokens,
       [&](const std::string& text) { plan_to_json(parse_plan(text, "p.json", graph), graph); });
}

TEST_CASE("Damaged machine files are read or refused in one sentence, never worse") {
  const std::string toy = read_file(source_dir() + "/configs/hardware/toy.yaml", "text");
  const std::string die = read_file(source_dir() + "/configs/hardware/cloudmatrix384-die.yaml", "text");
  const std::string merged =
      "base: &base {bandwidth: 1GB/s, latency: 1us}\nlink:\n  read: {<<: *base}\n  write:\n    <<: [*base, "
      "*base]\n    latency: '2us'\n";
  fuzz(5, 3000, {toy, die.substr(die.find("name:")), merged}, kYamlTokens, [](const std::string& text) {
    const YamlNode root = parse_yaml(text, "h.yaml");
    root.flow_text();
    apply_overrides(root, {"npu.hbm.capacity=1GB"}).flow_text();
    read_hardware(root);
  });
}

TEST_CASE("Damaged settings are taken or refused in one sentence, never worse") {
  const YamlNode root = parse_yaml("a: {b: 1}\nlist: [1, 2]\n", "a.yaml");
  fuzz(6, 2000, {"a.b=48GiB", "list.1={x: [1, 2]}", "new.key='text'", "a=[resident, graph]"}, kYamlTokens,
       [&](const std::string& text) { apply_overrides(root, {text}).flow_text(); });
}

TEST_CASE("Damaged packed files are read or refused in one sentence, never worse") {
  Random random(7);
  const std::string packed = gzip(graph_to_json(build_graph(random_spec(random))));
  fuzz(8, 1000, {packed}, kJsonTokens,
       [](const std::string& text) { parse_graph(gunzip_if_needed(text, "t.json.gz"), "t.json.gz"); });
}

}  // namespace
}  // namespace hyperoffload
