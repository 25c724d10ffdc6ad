// A trace file with a trace for each NPU.
#include "sim/model/error.h"
#include "test/machine/copies.h"

using namespace hyperoffload;

namespace {

const std::string kHead = R"({"format": "hyperoffload-trace", "version": 1, "name": "pair", )";
const std::string kFirst =
    R"({"tensors": [{"name": "w", "bytes": 1, "kind": "weight"}], "ops": [{"name": "a", "duration_us": 1, "reads": ["w"]}]})";
const std::string kSecond =
    R"({"ops": [{"name": "b", "duration_us": 2, "writes": ["x"]}], "tensors": [{"name": "x", "bytes": 7, "kind": "activation"}]})";

std::string refused(const std::string& text) {
  try {
    parse_rank_graphs(text, "t.json");
  } catch (const InputError& e) {
    return e.what();
  }
  return "";
}

}  // namespace

TEST_CASE("ranks give each NPU a trace of its own, in order, under the file's name") {
  const auto graphs = parse_rank_graphs(kHead + "\"ranks\": [" + kFirst + ", " + kSecond + "]}", "t.json");
  REQUIRE(graphs.size() == 2);
  CHECK(graphs[0].name() == "pair");
  CHECK(graphs[0].op(OpId(0)).name == "a");
  CHECK(graphs[1].op(OpId(0)).name == "b");
  CHECK(graphs[1].tensor(TensorId(0)).bytes == Bytes(7));
}

TEST_CASE("a trace without ranks is one trace, and ranks of one too") {
  CHECK(parse_rank_graphs(kHead + "\"ranks\": [" + kFirst + "]}", "t.json").size() == 1);
  const auto one = parse_rank_graphs(kHead + kFirst.substr(1), "t.json");
  REQUIRE(one.size() == 1);
  CHECK(one[0].op(OpId(0)).name == "a");
  // The word alone, as a name, makes no file of ranks.
  const auto named =
      parse_rank_graphs(kHead + R"("tensors": [], "ops": [{"name": "ranks", "duration_us": 1}]})", "t.json");
  CHECK(named[0].op(OpId(0)).name == "ranks");
}

TEST_CASE("the parallelism beside the ranks names their groups") {
  const std::string op = R"({"name": "c", "collective": {"kind": "all-reduce", "bytes": 8, "group": "tp"}})";
  const std::string rank = R"({"tensors": [], "ops": [)" + op + "]}";
  const auto graphs = parse_rank_graphs(
      kHead + R"("meta": {"parallel": {"tp": 2, "dp": 4}}, "ranks": [)" + rank + "," + rank + "]}", "t.json");
  CHECK(graphs[1].op(OpId(0)).collective->members.size == 2);
}

TEST_CASE("wrong ranks are refused with the place inside the file") {
  CHECK(refused(kHead + "\"ranks\": []}")
            .find("t.json: ranks: found no ranks, expected a trace for each NPU") == 0);
  CHECK(refused(kHead + "\"ranks\": 3}").find("t.json: ranks: found 3") == 0);
  CHECK(refused(kHead + "\"ranks\": [" + kFirst + ", 3]}").find("t.json: ranks[1]: found 3") == 0);
  CHECK(refused(kHead + "\"ops\": [], \"ranks\": [" + kFirst + "]}")
            .find("t.json: ops: found both `ranks` and `ops`") == 0);
  const std::string broken = R"({"tensors": [], "ops": [{"name": "a", "duration_us": 1, "reads": ["w"]}]})";
  CHECK(refused(kHead + "\"ranks\": [" + kFirst + ", " + broken + "]}")
            .find("t.json: ranks[1]: ops[0].reads[0]: found \"w\"") == 0);
  CHECK(refused("{\"ranks\": [" + kFirst + "]}").find("t.json: found no \"format\"") == 0);
  try {
    parse_graph(kHead + "\"ranks\": [" + kFirst + "]}", "t.json");
    CHECK(false);
  } catch (const InputError& e) {
    CHECK(std::string(e.what()).find("t.json: ranks: found a trace of several ranks") == 0);
  }
}
