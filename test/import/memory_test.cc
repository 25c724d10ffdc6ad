// PyTorch's memory snapshots (pickles) and raw memory timelines.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "sim/import/pickle.h"
#include "sim/model/read_file.h"
#include "sim/report/trace_info.h"
#include "test/import/data.h"
#include "test/support/tiny.h"

namespace hyperoffload {
namespace {

// A literal with zeros in it.
template <std::size_t N>
std::string bytes(const char (&literal)[N]) {
  return std::string(literal, N - 1);
}

// Pickles by hand, protocol 2: texts by BINUNICODE, numbers by LONG1 (little endian, two's complement).
std::string text(const std::string& value) {
  std::string size(4, '\0');
  for (int i = 0; i < 4; ++i) size[static_cast<std::size_t>(i)] = static_cast<char>(value.size() >> (8 * i));
  return "X" + size + value;
}
std::string number(std::int64_t value) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(static_cast<std::uint64_t>(value) >> (8 * i));
  return std::string("\x8a\x08") + bytes;
}
std::string list(const std::vector<std::string>& items) {
  std::string all;
  for (const std::string& item : items) all += item;
  return "](" + all + "e";
}
std::string dict(const std::vector<std::pair<std::string, std::string>>& entries) {
  std::string all;
  for (const auto& [key, value] : entries) all += text(key) + value;
  return "}(" + all + "u";
}
std::string pickle(const std::string& value) { return std::string("\x80\x02") + value + "."; }

std::string event(const std::string& action, std::int64_t address, std::int64_t size,
                  std::int64_t time = -1) {
  std::vector<std::pair<std::string, std::string>> entries = {
      {"action", text(action)}, {"addr", number(address)}, {"size", number(size)}, {"stream", number(0)}};
  if (time >= 0) entries.emplace_back("time_us", number(time));
  return dict(entries);
}

ImportResult import_snapshot(const std::string& content, const ImportOptions& options = {}) {
  const TemporaryFiles files;
  return import_trace("memory-snapshot", {files.add("snapshot.pickle", content)}, options);
}

ImportResult import_rows(const std::string& rows) {
  const TemporaryFiles files;
  return import_trace("memory-timeline", {files.add("timeline.raw.json", rows)}, {});
}

}  // namespace

TEST_CASE("a memory snapshot has an op for each allocation, and its peak") {
  // 100 at address 1; 200 at 2; 1 is freed; 300 at 1 again; 9 was there before the ring; a block of 50 stays
  // all the time.
  const std::string segments = list({dict(
      {{"address", number(1000)},
       {"total_size", number(4096)},
       {"device", number(0)},
       {"blocks",
        list({dict({{"size", number(50)}, {"state", text("active_allocated")}, {"address", number(1000)}}),
              dict({{"size", number(200)}, {"state", text("active_allocated")}, {"address", number(2)}}),
              dict({{"size", number(3846)}, {"state", text("inactive")}})})}})});
  const auto result = import_snapshot(pickle(dict(
      {{"segments", segments},
       {"device_traces", list({list({event("alloc", 1, 100, 10), event("alloc", 2, 200, 15),
                                     event("free_requested", 1, 100), event("free_completed", 1, 100, 16),
                                     event("free_completed", 9, 7, 17), event("alloc", 1, 300, 20)}),
                               list({})})}})));
  const Graph& g = result.graph;
  REQUIRE(g.ops().size() == 3);
  CHECK(g.ops()[0].duration->value == 5e-6);
  CHECK(g.ops()[2].duration->value == 0);
  REQUIRE(g.tensors().size() == 5);
  CHECK(g.tensors()[2].name == "block before");
  CHECK(g.tensors()[2].kind == TensorKind::kInput);
  CHECK(g.tensors()[4].persistent);
  CHECK(g.tensors()[4].bytes == Bytes(50));
  // At the second op: 50 + 7 + 100 + 200; at the third 50 + 200 + 300.
  CHECK(trace_info(g).peak_live.value == 550);
  CHECK(g.accesses(TensorId(0)).back().op == OpId(1));
  CHECK(has_remark(result, "6 events (3 alloc, 2 free_completed, 1 free_requested)"));
  CHECK(has_remark(result, "1 block freed without an allocation"));
  CHECK(has_remark(result, "1 segment of 4096 bytes at the end, 250 of them in active blocks"));
  CHECK(has_remark(result, "2 blocks never freed"));
}

TEST_CASE("allocations whose times go backwards are counted") {
  const auto result = import_snapshot(pickle(dict(
      {{"segments", list({})},
       {"device_traces",
        list({list({event("alloc", 1, 100, 10), event("alloc", 2, 200, 7), event("alloc", 3, 300, 9)})})}})));
  CHECK(result.graph.ops()[0].duration->value == 0);
  CHECK(result.graph.ops()[1].duration->value == 2e-6);
  CHECK(has_remark(result, "1 allocation earlier than the one before: no time passes between them"));
}

TEST_CASE("a snapshot of several devices asks for one, and one without times says so") {
  const std::string content =
      pickle(dict({{"segments", list({})},
                   {"device_traces", list({list({event("alloc", 1, 5)}), list({event("alloc", 1, 6)})})}}));
  CHECK(contains(input_error([&] { import_snapshot(content); }),
                 "found events of 2 devices, expected --device N"));
  ImportOptions options;
  options.device = "1";
  const auto result = import_snapshot(content, options);
  CHECK(result.graph.tensors()[0].bytes == Bytes(6));
  CHECK(has_remark(result, "no durations"));
}

TEST_CASE("a pickle that would run something is refused at the byte that would") {
  // "cos\nsystem\n(S'echo'\ntR." would call os.system.
  CHECK(contains(input_error([] { import_snapshot("cos\nsystem\n(S'echo'\ntR."); }),
                 "byte 0: found a pickle that would look up or call something (opcode 0x63), expected a "
                 "pickle of dicts, lists, numbers and texts alone"));
  CHECK(contains(input_error([] { import_snapshot(pickle(text("os") + text("system") + "\x93")); }),
                 "opcode 0x93"));
  CHECK(contains(input_error([] {
                   import_snapshot(pickle(dict({{"device_traces",
                                                 "](K\x01"
                                                 "R"}})));
                 }),
                 "opcode 0x52"));
  CHECK(contains(input_error([] { import_snapshot(pickle(list({}))); }), "found a pickle of no dict"));
  CHECK(contains(input_error([] { import_snapshot(""); }), "the end of the file"));
  CHECK(contains(input_error([] { import_snapshot(bytes("\x80\x02X\xff\xff\xff\x7f")); }),
                 "the end of the file in the middle of a value"));
  CHECK(contains(input_error([] { import_snapshot(pickle("e")); }), "an operation without a mark"));
  CHECK(contains(input_error([] { import_snapshot(pickle("h\x05")); }), "a reference to nothing"));
}

TEST_CASE("pickles of each protocol give the same values") {
  const auto value_of = [](const std::string& bytes) {
    const Pickle pickle(bytes, "test");
    const PickleValue* a = pickle.top().find("a");
    return a && a->items.size() == 2 ? a->items[0]->integer * 1000 + a->items[1]->integer : -1;
  };
  // {"a": [-5, 300]} in protocols 0, 2 and 4 (with a frame and the memo).
  CHECK(value_of("(dp0\nVa\np1\n(lp2\nI-5\naI300\nas.") == -4700);
  CHECK(value_of(bytes("\x80\x02}q\x00X\x01\x00\x00\x00"
                       "aq\x01]q\x02(J\xfb\xff\xff\xffM,\x01"
                       "es.")) == -4700);
  CHECK(value_of(bytes("\x80\x04\x95\x14\x00\x00\x00\x00\x00\x00\x00}\x94\x8c\x01"
                       "a\x94]\x94(J\xfb\xff\xff\xffM,\x01"
                       "es.")) == -4700);
}

TEST_CASE("rows of a memory timeline keep the live bytes of each instant") {
  // 10 before (parameter); at 1000 ns create 5 and 7; at 3000 the 7 becomes a gradient; at 4000 destroy 5,
  // create 2; at 9000 destroy 10.
  const auto result = import_rows(
      "[[-1, 1, 10, 6], [1000, 2, 5, 3], [1000, 2, 7, 2], [3000, 3, -7, 2], [3000, 3, 7, 4], [4000, 4, -5, "
      "3], [4000, 2, 2, 0], [9000, 4, -10, 6]]");
  const Graph& g = result.graph;
  REQUIRE(g.ops().size() == 4);
  CHECK(g.ops()[0].duration->value == 2e-6);
  CHECK(g.ops()[2].duration->value == 5e-6);
  CHECK(g.ops()[3].duration->value == 0);
  std::vector<std::int64_t> live(4);
  for (std::size_t t = 0; t < g.tensors().size(); ++t) {
    const auto accesses = g.accesses(TensorId(t));
    const std::size_t first = g.is_input(TensorId(t)) ? 0 : accesses.front().op.index();
    for (std::size_t i = first; i <= accesses.back().op.index(); ++i) live[i] += g.tensors()[t].bytes.value;
  }
  CHECK(live == std::vector<std::int64_t>{22, 22, 19, 9});
  CHECK(g.tensors()[2].kind == TensorKind::kGradient);
  CHECK(contains(input_error([] { import_rows("[[5, 9, 1, 1]]"); }),
                 "[0][1]: found 9, expected an action, 1 to 4"));
  CHECK(contains(input_error([] { import_rows("[[5, 2, 1, 1], [4, 2, 1, 1]]"); }),
                 "[1][0]: found 4, expected times that don't go back"));
  CHECK(contains(input_error([] { import_rows("[[5, 2, 1]]"); }), "[0][3]: found no whole number"));
}

TEST_CASE("the real memory timeline peaks where its rows add up to most") {
  const auto file = real_file("kineto_hta/memory_analysis__memory_timeline.raw.gz");
  if (!file) return;
  const auto rows = nlohmann::json::parse(read_file(*file, "rows"));
  std::int64_t bytes = 0, peak = 0;
  std::size_t instants = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    bytes += rows[i][2].get<std::int64_t>();
    const bool last = i + 1 == rows.size() || rows[i + 1][0] != rows[i][0];
    if (rows[i][0] == -1 || !last) continue;
    ++instants;
    peak = std::max(peak, bytes);
  }
  const auto result = import_trace("memory-timeline", {*file}, {});
  CHECK(result.graph.ops().size() == instants);
  CHECK(trace_info(result.graph).peak_live.value == peak);
}

}  // namespace hyperoffload
