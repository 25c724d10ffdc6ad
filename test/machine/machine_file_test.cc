// The further keys of a machine file: what arrives, what is refused, and what the presets say.
#include <filesystem>
#include <fstream>

#include "sim/model/error.h"
#include "sim/model/yaml_reader.h"
#include "test/machine/copies.h"

using namespace hyperoffload;
using namespace hyperoffload::copies;

namespace {

const std::string kFile =
    "name: all\n"
    "npu:\n"
    "  count: 6\n"
    "  compute: 1TFLOPS\n"
    "  hbm: {capacity: 64GB, bandwidth: 1.6TB/s}\n"
    "  transfer_engines: 1\n"
    "  launch_overhead: 3us\n"
    "  efficiency: {attention: {compute: 0.65, bandwidth: 0.84}, matmul: {compute: 0.8}}\n"
    "  port: {bandwidth: 196GB/s}\n"
    "nodes:\n"
    "  count: 2\n"
    "  npus: 4\n"
    "  sockets: 2\n"
    "  package: {npus: 2, bandwidth: 270GB/s, latency: 1us}\n"
    "  first_level: {bandwidth: 2TB/s}\n"
    "  second_level: {oversubscription: 2}\n"
    "link:\n"
    "  read: {bandwidth: 151GB/s, latency: 1us}\n"
    "  write: {bandwidth: 110GB/s, latency: 1.1us}\n"
    "  far: {read: {bandwidth: 147GB/s, latency: 1.7us}, write: {bandwidth: 107GB/s, latency: 1.9us}}\n"
    "  priority: {demand: 4, prefetch: 1}\n"
    "peer: {near: {read: {bandwidth: 167GB/s}, write: {bandwidth: 137GB/s, latency: 1.3us}}}\n"
    "collectives: {all-reduce: direct, all_to_all: ring}\n"
    "pool:\n"
    "  socket: {capacity: 512GB, memory: {bandwidth: 200GB/s}, port: {bandwidth: 160GB/s}}\n"
    "  placement: {spread: hash, over: supernode, block: 1MiB}\n"
    "  granularity: 4KiB\n"
    "  rounding: power_of_two\n";

Hardware read(const std::string& text) { return read_hardware(parse_yaml(text, "all.yaml")); }

std::string with(const std::string& from, const std::string& to) {
  std::string text = kFile;
  REQUIRE(text.find(from) != std::string::npos);
  return text.replace(text.find(from), from.size(), to);
}

std::string refused(const std::string& text) {
  try {
    read(text);
  } catch (const InputError& e) {
    return e.what();
  }
  return "";
}

}  // namespace

TEST_CASE("every further key of a machine file arrives") {
  const Hardware h = read(kFile);
  CHECK(h.transfer_engines == 1);
  CHECK(h.launch_overhead.value == 3e-6);
  CHECK(h.efficiency.at("attention").compute == 0.65);
  CHECK(h.efficiency.at("attention").bandwidth == 0.84);
  CHECK(h.efficiency.at("matmul").bandwidth == 1);
  CHECK(h.npu_port->value == 196e9);
  CHECK(h.nodes->count == 2);
  CHECK(h.nodes->package_npus == 2);
  CHECK(h.nodes->package_link->latency.value == 1e-6);
  CHECK(h.nodes->first_level->value == 2e12);
  CHECK(h.nodes->second_level->value == Approx((4 * 196e9 + 2 * 160e9) / 2));
  CHECK(h.link_far->write.latency.value == 1.9e-6);
  CHECK(h.priority.demand == 4);
  CHECK(h.peer->far.write.bandwidth.value == 137e9);  // as near, where nothing else is said
  CHECK(h.algorithms.at("all-reduce") == CollectiveAlgorithm::kDirect);
  CHECK(h.algorithms.at("all_to_all") == CollectiveAlgorithm::kRing);
  CHECK(h.socket_memory->value == 200e9);
  CHECK(h.placement.spread == Spread::kHash);
  CHECK(h.placement.supernode);
  CHECK(h.placement.block == Bytes(1 << 20));
  CHECK(h.allocation.granularity == Bytes(4096));
  CHECK(h.allocation.power_of_two);
  CHECK(h.pool_capacity == Bytes(4 * 512'000'000'000));
}

TEST_CASE("the pool's capacity is that of the sockets its placement reaches, or less if the file says so") {
  CHECK(read(with("over: supernode", "over: node")).pool_capacity ==
        Bytes(4 * 512'000'000'000));  // 6 NPUs: 2 nodes
  std::string four = with("count: 6", "count: 4");
  CHECK(read(four).pool_capacity == Bytes(4 * 512'000'000'000));
  four.replace(four.find("over: supernode"), 15, "over: node");
  CHECK(read(four).pool_capacity == Bytes(2 * 512'000'000'000));
  CHECK(read(with("pool:\n", "pool:\n  capacity: 1TB\n")).pool_capacity == Bytes(1'000'000'000'000));
  CHECK(read(with("pool:\n", "pool:\n  capacity: 9TB\n")).pool_capacity == Bytes(4 * 512'000'000'000));
  CHECK(read(with("{spread: hash, over: supernode, block: 1MiB}", "load")).placement.block == Bytes(0));
}

TEST_CASE("a wrong key of a topology is refused with file, line and path") {
  const auto has = [](const std::string& text, const std::string& part) {
    INFO(text);
    CHECK(text.find(part) != std::string::npos);
  };
  has(refused(with("count: 6", "count: 9")),
      "all.yaml:11: nodes: found 2 nodes of 4 NPUs, expected room for npu.count = 9");
  has(refused(with("npus: 2, bandwidth", "npus: 3, bandwidth")),
      "nodes.package.npus: found \"3\", expected a divisor of the node's 4 NPUs");
  has(refused(with("oversubscription: 2", "oversubscription: 0.5")), "nodes.second_level.oversubscription");
  has(refused(with("{oversubscription: 2}", "{}")),
      "nodes.second_level: found a map, expected either `bandwidth` or `oversubscription`");
  has(refused(with("compute: 0.65", "compute: 1.1")), "npu.efficiency.attention.compute");
  has(refused(with("bandwidth: 0.84", "bandwidth: 0")),
      "npu.efficiency.attention.bandwidth: found \"0\", expected a share above 0");
  has(refused(with("transfer_engines: 1", "transfer_engines: 3")), "npu.transfer_engines: found \"3\"");
  has(refused(with("spread: hash", "spread: hsh")),
      "pool.placement.spread: found \"hsh\", expected \"hash\"");
  has(refused(with("over: supernode", "over: all")), "pool.placement.over");
  has(refused(with("rounding: power_of_two", "rounding: up")), "pool.rounding");
  has(refused(with("all-reduce: direct", "all-reduce: tree")), "collectives.all-reduce: found \"tree\"");
  has(refused(with("all-reduce: direct", "all-red: direct")), "collectives: found \"all-red\", expected");
  has(refused(with("demand: 4", "demand: 0")), "link.priority.demand");
  has(refused(with("  sockets: 2\n", "")), "nodes: found no key \"sockets\"");
  has(refused(with("capacity: 512GB, ", "")), "pool: found no key \"capacity\"");
  const std::string bare =
      "name: b\nnpu: {compute: 1TFLOPS, hbm: {capacity: 1GB, bandwidth: 1TB/s}}\n"
      "link: {read: {bandwidth: 1GB/s}, write: {bandwidth: 1GB/s}}\n";
  has(refused(bare + "pool: {capacity: 1GB, placement: hash}\n"),
      "all.yaml:4: pool.placement: found \"hash\", expected no `placement` without `nodes`");
  has(refused(bare + "pool: {capacity: 1GB}\ncollectives: {all-reduce: ring}\n"),
      "collectives: found a map, expected no `collectives` without `peer`");
}

TEST_CASE("the CloudMatrix384 preset has every figure of the paper's table") {
  const Hardware h = preset("cloudmatrix384");
  CHECK(h.npu_count == 768);
  CHECK(h.nodes->count * h.nodes->npus == 768);
  CHECK(h.nodes->count * h.nodes->sockets == 192);
  CHECK(h.compute.value == 376e12);
  CHECK(h.hbm_usable().value == 64'000'000'000);
  CHECK(h.hbm_bandwidth.value == 1.6e12);
  CHECK(h.npu_port->value == 196e9);
  CHECK(h.socket_port->value == 160e9);
  CHECK(h.nodes->package_link->bandwidth.value == 270e9);
  CHECK_FALSE(h.nodes->second_level);  // non-blocking
  const auto path = [](const Path& p) {
    return std::vector<double>{p.read.bandwidth.value, p.write.bandwidth.value, p.read.latency.value,
                               p.write.latency.value};
  };
  CHECK(path({h.link_read, h.link_write}) == std::vector<double>{151e9, 110e9, 1.0e-6, 1.1e-6});
  CHECK(path(*h.link_far) == std::vector<double>{147e9, 107e9, 1.7e-6, 1.9e-6});
  CHECK(path(h.peer->near) == std::vector<double>{167e9, 137e9, 1.2e-6, 1.3e-6});
  CHECK(path(h.peer->far) == std::vector<double>{164e9, 135e9, 1.9e-6, 2.1e-6});
  CHECK(alone_link(h, true).bandwidth.value == 151e9);
  CHECK(fair_link(h, true).bandwidth.value == 40e9);
}

TEST_CASE("what an NPU of each preset gets alone, and when all of them copy") {
  struct Row {
    const char* name;
    int npus;
    double alone, fair;  // reading
  };
  const Row rows[] = {
      {"atlas950", 8, 1e12, 4 * 460e9 / 8},                                 // the DRAM of four sockets
      {"gb200-nvl72", 72, 225e9, 225e9},                                    // 2 x 225 < 512
      {"gh200", 1, 360e9, 360e9},           {"h200-pcie5", 8, 55e9, 55e9},  // 4 x 55 < 307 a socket
      {"pcie4-server", 8, 26e9, 13e9},                                      // two GPUs on a switch's uplink
      {"cxl-pool", 8, 64e9, 64e9},          {"rtx2080ti-pcie3", 1, 10.53 * (1 << 30), 10.53 * (1 << 30)},
  };
  for (const Row& row : rows) {
    INFO(row.name);
    Hardware h = preset(row.name);
    const int preset_count = h.npu_count;
    h.npu_count = row.npus;
    CHECK(h.name == row.name);
    CHECK(preset_count <= row.npus);
    CHECK(alone_link(h, true).bandwidth.value == Approx(row.alone).epsilon(1e-9));
    CHECK(fair_link(h, true).bandwidth.value == Approx(row.fair).epsilon(1e-9));
    const Trace trace = reads({1'000'000'000});
    CHECK(transfer_end(run(trace, h)) ==
          exactly(fair_link(h, true).latency.value + 1e9 / fair_link(h, true).bandwidth.value));
  }
}

TEST_CASE("on a GB200 superchip two GPUs that read and write at once share their Grace's memory") {
  Hardware h = preset("gb200-nvl72");
  h.npu_count = 2;
  // Four streams on 512 GB/s: 128 each instead of 225.
  CHECK(transfer_end(run(both_ways(10'000'000'000, 1), h)) == exactly(1e-6 + 10e9 / 128e9));
}

TEST_CASE("each figure of each preset has its source beside it, or says that it is assumed") {
  int presets = 0, figures = 0;
  for (const auto& file : std::filesystem::directory_iterator(source_dir() + "/configs/hardware")) {
    if (file.path().extension() != ".yaml" || file.path().stem() == "toy") continue;  // toy is no real machine
    ++presets;
    std::ifstream in(file.path());
    std::string line, sources;
    for (int number = 1; std::getline(in, line); ++number) {
      const auto hash = line.find('#');
      const std::string value = line.substr(0, hash);
      const std::string comment = hash == std::string::npos ? "" : line.substr(hash);
      if (value.find_first_not_of(' ') == std::string::npos) {
        sources += comment + "\n";
        continue;
      }
      const auto colon = value.find(':');
      if (value.compare(0, 4, "name") == 0 || value.compare(0, 6, "source") == 0 ||
          value.compare(0, 11, "description") == 0 ||
          value.find_first_of("0123456789", colon) == std::string::npos)
        continue;
      ++figures;
      INFO(file.path().filename().string() << ":" << number << ": " << line);
      const auto mark = comment.find('[');
      const bool sourced = mark != std::string::npos && comment[mark + 2] == ']';
      CHECK((sourced || comment.find("assumed: ") != std::string::npos));
      if (sourced) CHECK(sources.find("# " + comment.substr(mark, 3) + " ") != std::string::npos);
    }
  }
  CHECK(presets >= 10);
  CHECK(figures > 100);
}
