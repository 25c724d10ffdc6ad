#include "sim/model/hardware.h"
#include "sim/model/yaml_reader.h"
#include "test/model/message.h"
#include "test/support/catch.h"
#include "test/support/paths.h"

namespace hyperoffload {
namespace {

const std::string kToy =
    "name: toy\n"
    "npu: {count: 1, compute: 1TFLOPS, hbm: {capacity: 64GB, bandwidth: 1.6TB/s}}\n"
    "link: {read: {bandwidth: 100GB/s, latency: 1us}, write: {bandwidth: 80GB/s, latency: 1us}}\n"
    "pool: {capacity: 1TB}\n";

// The toy file with one setting, as `--set` would have it.
Hardware toy_with(const std::vector<std::string>& settings) {
  return read_hardware(apply_overrides(parse_yaml(kToy, "toy.yaml"), settings));
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  return text.replace(text.find(from), from.size(), to);
}

TEST_CASE("The smallest machine file gives exactly what it declares, and the stated defaults") {
  const Hardware toy = load_hardware(source_dir() + "/configs/hardware/toy.yaml");
  CHECK(toy.name == "toy");
  CHECK(toy.npu_count == 1);
  CHECK(toy.compute.value == 1e12);
  CHECK(toy.hbm_capacity.value == 64'000'000'000);
  CHECK(toy.hbm_reserved.value == 0);
  CHECK(toy.hbm_usable() == toy.hbm_capacity);
  CHECK(toy.hbm_bandwidth.value == 1.6e12);
  CHECK(toy.link_read.bandwidth.value == 100e9);
  CHECK(toy.link_read.latency.value == 1e-6);
  CHECK(toy.link_write.bandwidth.value == 80e9);
  CHECK(toy.pool_capacity.value == 1'000'000'000'000);
  CHECK_FALSE(toy.pool_read_port);
  CHECK_FALSE(toy.pool_write_port);
  CHECK_FALSE(toy.host);
}

TEST_CASE("Every key of a machine file arrives") {
  const Hardware h =
      toy_with({"npu.count=8", "npu.hbm.reserved=1GiB", "link.write.latency=1.1us",
                "pool.read_port={bandwidth: 160GB/s}", "pool.write_port={bandwidth: 150GB/s}",
                "host={compute: 2TFLOPS, bandwidth: 400GB/s}", "description=words", "source=a paper"});
  CHECK(h.npu_count == 8);
  CHECK(h.hbm_usable().value == 64'000'000'000 - (std::int64_t{1} << 30));
  CHECK(h.link_write.latency.value == 1.1e-6);
  CHECK(h.pool_read_port->value == 160e9);
  CHECK(h.pool_write_port->value == 150e9);
  CHECK(h.host->compute.value == 2e12);
  CHECK(h.host->bandwidth.value == 400e9);
  const std::string no_count = replaced(kToy, "count: 1, ", "");
  const std::string no_latency = replaced(no_count, "100GB/s, latency: 1us", "100GB/s");
  const Hardware defaults = read_hardware(parse_yaml(no_latency, "toy.yaml"));
  CHECK(defaults.npu_count == 1);
  CHECK(defaults.link_read.latency.value == 0);
}

TEST_CASE("The HBM capacity can be replaced up and down, but not to what is reserved") {
  Hardware h = toy_with({"npu.hbm.reserved=4GB"});
  replace_hbm_capacity(h, Bytes(128'000'000'000), "--hbm");
  CHECK(h.hbm_usable().value == 128'000'000'000 - 4'000'000'000);
  replace_hbm_capacity(h, Bytes(4'000'000'001), "--hbm");
  CHECK(h.hbm_usable().value == 1);
  CHECK(input_error([&] { replace_hbm_capacity(h, Bytes(4'000'000'000), "--hbm"); }) ==
        "--hbm: found 4000000000 bytes of HBM, expected more than the 4000000000 bytes that machine \"toy\" "
        "reserves");
  h.hbm_reserved = Bytes(0);
  CHECK(contains(input_error([&] { replace_hbm_capacity(h, Bytes(0), "--hbm"); }), "found 0 bytes of HBM"));
}

TEST_CASE("The CloudMatrix384 die has the published figures") {
  const Hardware die = load_hardware(source_dir() + "/configs/hardware/cloudmatrix384-die.yaml");
  CHECK(die.compute.value == 376e12);
  CHECK(die.hbm_usable().value == 64'000'000'000);
  CHECK(die.hbm_bandwidth.value == 1.6e12);
  CHECK(die.link_read.bandwidth.value == 151e9);
  CHECK(die.link_read.latency.value == 1.0e-6);
  CHECK(die.link_write.bandwidth.value == 110e9);
  CHECK(die.link_write.latency.value == 1.1e-6);
}

// A bandwidth of 64e9 is an error with its line, never a text taken for something else: the misreadings of
// YAML 1.1 numbers in https://github.com/hiyouga/LLaMA-Factory/issues/4014 and others.
TEST_CASE("A wrong machine file is refused with file, line and path") {
  struct Row {
    const char* from;
    const char* to;
    const char* message;
  };
  const Row rows[] = {
      {"64GB", "64",
       "toy.yaml:2: npu.hbm.capacity: found a number without a unit, \"64\", expected bytes with a unit (B, "
       "kB"},
      {"64GB", "0B", "toy.yaml:2: npu.hbm.capacity: found \"0B\", expected a capacity above 0"},
      {"1.6TB/s", "0B/s", "toy.yaml:2: npu.hbm.bandwidth: found \"0B/s\", expected a bandwidth above 0"},
      {"1.6TB/s", "1.6TB", "whose unit \"TB\" is not known here"},
      {"100GB/s", "64e9", "toy.yaml:3: link.read.bandwidth: found a number without a unit"},
      {"latency: 1us", "latency: 0", "toy.yaml:3: link.read.latency: found a number without a unit"},
      {"latency: 1us", "latency: -1us", "link.read.latency: found a negative value"},
      {"latency", "latncy", "toy.yaml:3: link.read: found the unknown key \"latncy\", expected \"latency\""},
      {"1TFLOPS", "0TFLOPS", "toy.yaml:2: npu.compute: found \"0TFLOPS\", expected compute above 0"},
      {"count: 1", "count: 0", "toy.yaml:2: npu.count: found \"0\", expected a whole number, 1 to 1000000"},
      {"count: 1", "count: 1.5", "npu.count: found \"1.5\""},
      {"count: 1", "count: 1000001", "npu.count"},
      {"count: 1", "count: 1, count: 2", "found the key \"count\" a second time (first in line 2)"},
      {"64GB", "64GB, reserved: 64GB", "npu.hbm.reserved: found \"64GB\", expected less than the capacity"},
      {"name: toy\n", "", "toy.yaml:1: found no key \"name\", expected that key"},
      {"pool: {capacity: 1TB}", "pool: {}", "toy.yaml:4: pool: found no key \"capacity\""},
      {"pool: {capacity: 1TB}", "pool: 1TB",
       "toy.yaml:4: pool: found \"1TB\", expected a map with the keys capacity, read_port, write_port"},
      {"pool: {capacity: 1TB}", "pool: {capacity: 1TB, read_port: 160GB/s}",
       "pool.read_port: found \"160GB/s\", expected a map with the keys bandwidth"},
      {"pool: {capacity: 1TB}", "poll: {capacity: 1TB}",
       "toy.yaml:4: found the unknown key \"poll\", expected \"pool\""},
      {"pool: {capacity: 1TB}", "pool: {capacity: 1TB}\nhost: {compute: 1TFLOPS}",
       "toy.yaml:5: host: found no key \"bandwidth\""},
  };
  for (const Row& row : rows) {
    INFO(row.to);
    const std::string text = replaced(kToy, row.from, row.to);
    const std::string message = input_error([&] { read_hardware(parse_yaml(text, "toy.yaml")); });
    INFO(message);
    CHECK(contains(message, row.message));
  }
}

}  // namespace
}  // namespace hyperoffload
