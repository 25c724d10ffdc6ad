// NCCL kernels of Kineto traces as collectives: kind, bytes and group where the trace says them.
#include <map>

#include "sim/import/nccl.h"
#include "test/import/data.h"

namespace hyperoffload {
namespace {

std::string kernel(const std::string& name, int stream, const std::string& more) {
  return R"({"ph": "X", "cat": "kernel", "name": ")" + name +
         R"(", "pid": 0, "tid": 7, "ts": 1, "dur": 2, "args": {)" + R"("device": 0, "stream": )" +
         std::to_string(stream) + more + "}}";
}

ImportResult import_kernels(const std::string& events, const ImportOptions& options = {}) {
  const TemporaryFiles files;
  return import_trace("kineto", {files.add("trace.json", R"({"traceEvents": [)" + events + "]}")}, options);
}

const std::string kGather =
    R"(, "Collective name": "_allgather_base", "In msg nelems": 100, "Out msg nelems": 800, "Group size": 8,
       "dtype": "BFloat16", "Process Group Ranks": "[0, 1, 2, 3, 4, 5, 6, 7]")";

struct Counted {
  std::size_t ops = 0;
  std::int64_t bytes = 0;
  bool operator==(const Counted&) const = default;
};

std::map<std::string, Counted> collectives_of(const Graph& graph, const std::string& group) {
  std::map<std::string, Counted> counted;
  for (const Op& op : graph.ops())
    if (op.collective) {
      CHECK(op.collective->group == group);
      ++counted[op.collective->kind].ops;
      counted[op.collective->kind].bytes += op.collective->bytes.value;
    }
  return counted;
}

}  // namespace

TEST_CASE("an NCCL kernel becomes a collective with the larger side of one rank as its bytes") {
  const auto result =
      import_kernels(kernel("gemm", 7, "") + "," + kernel("ncclDevKernel_AllGather_RING_LL", 20, kGather));
  const Op& op = result.graph.ops()[1];
  REQUIRE(op.collective);
  CHECK(op.collective->kind == "all-gather");
  CHECK(op.collective->bytes == Bytes(800 * 2));
  CHECK(op.collective->group == "[0, 1, 2, 3, 4, 5, 6, 7]");
  CHECK(op.collective->members.ranks == std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7});
  CHECK(op.duration->value == 2e-6);
  CHECK(result.graph.engines() == std::vector<std::string>{"stream 7", "comm stream 20"});
  CHECK(has_remark(result, "1 collective with kind, bytes and group; they keep their measured time"));
}

TEST_CASE("import --collectives fabric leaves a collective's time to the machine") {
  ImportOptions options;
  options.collectives = "fabric";
  const auto result =
      import_kernels(kernel("ncclKernel_AllGather", 20, kGather) + "," + kernel("gemm", 7, ""), options);
  CHECK_FALSE(result.graph.ops()[0].duration);
  CHECK(result.graph.ops()[1].duration);
  options.collectives = "none";
  CHECK(contains(input_error([&] { import_kernels(kernel("gemm", 7, ""), options); }), "--collectives"));
}

TEST_CASE("an NCCL kernel of which the trace doesn't say enough stays a timed op") {
  const auto result = import_kernels(kernel("ncclDevKernel_Generic", 20, "") + "," + kernel("gemm", 7, ""));
  CHECK_FALSE(result.graph.ops()[0].collective);
  CHECK(result.graph.ops()[0].duration->value == 2e-6);
  CHECK(has_remark(result, "1 kernel of NCCL of which the trace doesn't say what it carries: timed ops"));
}

TEST_CASE("kinds, types and groups by PyTorch's words") {
  const NcclArgs args{"allreduce", "10", "10", "Float", "[0, 2]", "2"};
  const auto with = [&](auto change) {
    NcclArgs changed = args;
    change(changed);
    return nccl_collective(changed);
  };
  CHECK(nccl_collective(args)->bytes == Bytes(40));
  CHECK(with([](NcclArgs& a) { a.name = "reduce_scatter_tensor_coalesced"; })->kind == "reduce-scatter");
  CHECK(with([](NcclArgs& a) { a.name = "all_to_allv"; })->kind == "all-to-all");
  CHECK(with([](NcclArgs& a) { a.name = "_broadcast_oop"; })->kind == "broadcast");
  CHECK(with([](NcclArgs& a) { a.type = "Float8_e4m3fn"; })->bytes == Bytes(10));
  // A list of ranks that was cut short leaves the group's size.
  CHECK(with([](NcclArgs& a) { a.ranks = "[0, 1, ...]"; })->group == "2");
  CHECK_FALSE(with([](NcclArgs& a) { a.name = "barrier"; }));
  CHECK_FALSE(with([](NcclArgs& a) { a.name = ""; }));
  CHECK_FALSE(with([](NcclArgs& a) { a.type = "ComplexDouble?"; }));
  CHECK_FALSE(with([](NcclArgs& a) { a.elements_in = a.elements_out = "-1"; }));
  CHECK_FALSE(with([](NcclArgs& a) { a.elements_in = "9223372036854775807"; }));
}

// Elements as an independent reading of the files' JSON has them.
TEST_CASE("the collectives of real traces have the files' bytes") {
  const auto nccl = real_file("kineto_hta/nccl_parser_config__nccl_data.json.gz");
  if (!nccl) return;
  // 76,671,096 elements of 4 B in 15 all-reduces; broadcasts of float (3) and long (3), 159,519 elements in
  // all.
  const auto data = import_trace("kineto", {*nccl}, {});
  auto counted = collectives_of(data.graph, "[0, 1]");
  CHECK(counted["all-reduce"] == Counted{15, 76'671'096LL * 4});
  CHECK(counted["broadcast"].ops == 6);
  CHECK(counted.size() == 2);

  const auto b200 =
      import_trace("kineto", {*real_file("kineto_tracelens/traces__b200__eager_trace.json.gz")}, {});
  CHECK(collectives_of(b200.graph, "[0, 1, 2, 3, 4, 5, 6, 7]") ==
        std::map<std::string, Counted>{{"all-gather", {1, 201'088 * 2}}});

  // 17 RCCL kernels, 5 of them without arguments.
  const auto mi300 = import_trace(
      "kineto", {*real_file("kineto_tracelens/traces__mi300__resnet_act_checkpoint.json.gz")}, {});
  counted = collectives_of(mi300.graph, "[0, 1, 2, 3, 4, 5, 6, 7]");
  CHECK(counted["all-reduce"] == Counted{6, 35'068'536LL * 2});
  CHECK(counted["broadcast"].ops == 6);
  CHECK(has_remark(mi300, "5 kernels of NCCL of which the trace doesn't say what they carry: timed ops"));
}

}  // namespace hyperoffload
