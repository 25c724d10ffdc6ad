// On a supernode a rank's copies may all come from sockets near by: its bound counts on the near path.
#include <nlohmann/json.hpp>

#include "test/support/catch.h"
#include "test/support/command.h"

using namespace hyperoffload;
using nlohmann::json;

TEST_CASE("no rank on a supernode, whose far path is slow, beats its bound") {
  // Each of two ranks streams 3 weights of 400 MB through 1 GB in ops of 1 ms: at least 200 MB must pass, at 4 GB/s
  // from the near socket or at 1 GB/s from the far one. Whole tensors are hashed to sockets.
  TemporaryFolder folder;
  const std::string trace = folder / "ranks.json", machine = folder / "nodes.yaml";
  json file = {{"format", "hyperoffload-trace"}, {"version", 1}, {"name", "pair"}};
  for (const std::string rank : {"a", "b"}) {
    json tensors, ops;
    for (const std::string k : {"0", "1", "2"}) {
      tensors.push_back({{"name", rank + k}, {"bytes", 400'000'000}, {"kind", "weight"}});
      ops.push_back({{"name", "op" + k}, {"duration_us", 1000}, {"reads", {rank + k}}});
    }
    file["ranks"].push_back({{"tensors", tensors}, {"ops", ops}});
  }
  write_text(trace, file.dump());
  write_text(machine,
             "name: nodes\nnpu: {count: 2, compute: 1TFLOPS, hbm: {capacity: 1GB, bandwidth: 1.6TB/s}}\n"
             "nodes: {count: 2, npus: 1, sockets: 1}\n"
             "link: {read: {bandwidth: 4GB/s, latency: 1us}, write: {bandwidth: 4GB/s, latency: 1us},\n"
             "       far: {read: {bandwidth: 1GB/s, latency: 1us}, write: {bandwidth: 1GB/s, latency: 1us}}}\n"
             "pool: {capacity: 1TB, placement: {spread: hash, over: supernode, block: 1GiB}}\n");
  const CommandResult run =
      run_hyperoffload("simulate " + trace + " --hardware " + machine + " --iterations 3 --policy graph -o -");
  INFO(run.err);
  REQUIRE(run.status == 0);
  const json result = json::parse(run.out);
  const double bound = result.at("bound").at("stall_s"), stall = result.at("stall_s");
  CHECK(stall >= bound);
  // Not all can be near: the slower of the two ranks would stall twice as long if all were far.
  CHECK(bound >= 2e8 / 4e9 - 3e-3);
  CHECK(stall < 2e8 / 1e9 - 3e-3);
}
