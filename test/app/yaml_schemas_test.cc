// The JSON Schemas of the YAML files beside the readers: what is shipped keeps to them, both name the same keys
// and words, and both refuse the same damage. JSON is YAML, so one document serves both.
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "app/experiment.h"
#include "app/policy_spec.h"
#include "app/sweep_axes.h"
#include "sim/model/error.h"
#include "sim/workload/workload.h"
#include "test/support/catch.h"
#include "test/support/command.h"
#include "test/support/paths.h"
#include "test/support/schemas.h"

using namespace hyperoffload;
using nlohmann::json;
using Read = void (*)(const YamlNode&);
using Words = std::set<std::string>;

namespace {

// Every key that a machine may have.
const char* kMachine = R"({"name": "all", "description": "d", "source": "s",
 "npu": {"count": 4, "compute": "1TFLOPS", "hbm": {"capacity": "64GB", "bandwidth": "1.6TB/s", "reserved": "1GB"},
         "transfer_engines": 1, "launch_overhead": "1us", "efficiency": {"matmul": {"compute": 0.5, "bandwidth": 1}},
         "port": {"bandwidth": "1GB/s"}},
 "link": {"read": {"bandwidth": "1GB/s", "latency": "1us"}, "write": {"bandwidth": "1GB/s", "latency": "1us"},
          "far": {"read": {"bandwidth": "1GB/s"}, "write": {"bandwidth": "1GB/s"}},
          "priority": {"demand": 2, "prefetch": 1}},
 "pool": {"capacity": "1TB", "read_port": {"bandwidth": "1GB/s"}, "write_port": {"bandwidth": "8Gbps"},
          "socket": {"capacity": "1TB", "memory": {"bandwidth": "1GB/s"}, "port": {"bandwidth": "1GB/s"}},
          "placement": {"spread": "hash", "over": "node", "block": "2MiB"}, "granularity": "1kB", "rounding": "none"},
 "host": {"compute": "1TOPS", "bandwidth": "1GB/s"},
 "nodes": {"count": 2, "npus": 4, "sockets": 2, "package": {"npus": 2, "bandwidth": "1GB/s", "latency": "1us"},
           "first_level": {"bandwidth": "1GB/s"}, "second_level": {"oversubscription": 2}},
 "peer": {"near": {"read": {"bandwidth": "1GB/s"}, "write": {"bandwidth": "1GB/s"}},
          "far": {"read": {"bandwidth": "1GB/s"}, "write": {"bandwidth": "1GB/s"}}},
 "collectives": {"all-to-all": "ring", "all_reduce": "direct"}})";

// Every key but recompute_layers; no phase takes them all, which is for the generator to say.
const char* kWorkload = R"({"name": "all", "model": "m.json", "phase": "train", "batch": 2, "sequence": 8, "dtype": "bf16",
 "weight_dtype": "published", "kv_dtype": "fp8", "detail": "layer",
 "parallel": {"tp": 1, "pp": 1, "dp": 1, "ep": 1, "cp": 1, "etp": 1, "sp": true, "virtual_stages": 1, "rank": 0},
 "train": {"optimizer": "adamw", "optimizer_on": "host", "recompute": "selective", "recompute_kernels": ["norm"], "zero": 1,
           "microbatches": 2, "schedule": "1f1b", "gradient_dtype": "fp32", "bucket": "1MB"},
 "experts": {"routing": "random", "seed": 0}, "sparse": {"top_k": 1, "reuse": 0.5, "seed": 0},
 "prefill": {"batch": 1, "tokens": 1, "cached": 0}, "chunk": 1, "steps": 1, "kv_block": 1, "mtp": 0,
 "collectives": {"bandwidth": "1GB/s", "latency": "1us"}})";

// A whole experiment but for its sweep.
json experiment() {
  return json::parse(R"({"name": "all", "description": "d", "hbm": "32GB", "iterations": 2, "bound": "window",
 "hardware": {"name": "m", "npu": {"compute": "1TFLOPS", "hbm": {"capacity": "64GB", "bandwidth": "1TB/s"}},
              "link": {"read": {"bandwidth": "1GB/s"}, "write": {"bandwidth": "1GB/s"}}, "pool": {"capacity": "1TB"}},
 "workload": {"model": "m.json", "phase": "prefill", "batch": 1, "sequence": 8, "dtype": "bf16"},
 "policies": ["resident", "on_demand:evict=oldest"], "output": {"timeline": true}})");
}

void machine(const YamlNode& node) { read_hardware(node); }
void workload(const YamlNode& node) { read_workload(node); }
void one_point(const YamlNode& node) {
  read_experiment(node);
  const YamlNode work = workload_of(node);
  if (!trace_file_of(work)) read_workload(work);
}
void sweep(const YamlNode& node) { one_point(SweepAxes(node).experiment(0)); }

YamlNode as_yaml(const json& document) { return parse_yaml(document.dump(1), "a.yaml"); }

// What the reader says; nothing if it takes it.
std::string refusal(Read read, const YamlNode& document) {
  try {
    read(document);
  } catch (const InputError& e) {
    return e.what();
  }
  return "";
}
std::string refusal(Read read, const json& document) { return refusal(read, as_yaml(document)); }

// An unquoted scalar is a number or a boolean where JSON has one of that spelling, else text.
json as_json(const YamlNode& node) {
  json value;
  if (node.is_map()) {
    value = json::object();
    for (const auto& [key, child] : node.map()) value[key] = as_json(child);
  } else if (node.is_list()) {
    value = json::array();
    for (const YamlNode& child : node.list()) value.push_back(as_json(child));
  } else if (node.is_scalar()) {
    value = json::parse(node.flow_text(), nullptr, false);
    if (!value.is_number() && !value.is_boolean() && !value.is_string()) value = node.string();
  }
  return value;
}

json schema_file(const std::string& name) { return json::parse(read_text(source_dir() + "/docs/schemas/" + name)); }

// Follows `$ref`s from `schema`, which stands in `file`.
json resolved(json schema, std::string& file) {
  while (schema.contains("$ref")) {
    const std::string ref = schema["$ref"], name = ref.substr(0, ref.find('#'));
    if (!name.empty()) file = name;
    schema = schema_file(file)[json::json_pointer(ref.substr(name.size() + 1))];
  }
  return schema;
}

Words keys_of(const json& object) {
  Words keys;
  for (const auto& [key, value] : object.items()) keys.insert(key);
  return keys;
}

// "... (one of a, b, c)"; empty if the message has no such list.
Words listed(const std::string& message) {
  Words words;
  const std::size_t start = message.rfind("one of ");
  if (start == std::string::npos) return words;
  std::string rest = message.substr(start + 7) + ", ";
  std::erase(rest, ')');
  for (std::size_t comma; (comma = rest.find(", ")) != std::string::npos; rest.erase(0, comma + 2))
    words.insert(rest.substr(0, comma));
  return words;
}

struct Compared {
  int objects = 0, words = 0;
};

// An unknown key in each object and an unknown word at each choice: the reader lists what the schema does.
void compare_words(json schema, std::string file, Read read, const json& good, const json::json_pointer& place, Compared& done) {
  schema = resolved(schema, file);
  const json& here = good[place];
  json damaged = good;
  INFO(file << " at " << place.to_string());
  if (here.is_object() && schema.contains("properties")) {
    damaged[place]["zzzz"] = 1;
    CHECK(listed(refusal(read, damaged)) == keys_of(schema["properties"]));
    ++done.objects;
    for (const auto& [key, value] : here.items())
      if (schema["properties"].contains(key))
        compare_words(schema["properties"][key], file, read, good, place / key, done);
  } else if (here.is_object() && schema.contains("additionalProperties")) {
    for (const auto& [key, value] : here.items())
      compare_words(schema["additionalProperties"], file, read, good, place / key, done);
  } else if (here.is_array()) {
    compare_words(schema["items"], file, read, good, place / 0, done);
  } else if (schema.contains("enum")) {
    damaged[place] = "zzzz";
    const Words words = listed(refusal(read, damaged));
    if (words.empty()) return;  // "adamw or none"
    CHECK(words == schema["enum"].get<Words>());
    ++done.words;
  }
}

Compared compare_all_words(const std::string& name, Read read, const json& good) {
  Compared done;
  const std::string file = name + ".schema.json";
  compare_words(schema_file(file), file, read, good, json::json_pointer(), done);
  return done;
}

void compare_all_damage(const std::string& name, Read read, const json& good) {
  CHECK(refusal(read, good) == "");
  compare_damage(name, good, [read](const std::string& text) { read(as_yaml(json::parse(text))); });
}

// Both take each document, or both refuse it.
void compare_verdicts(const std::string& name, Read read, const std::vector<YamlNode>& documents) {
  TemporaryFolder folder;
  std::vector<std::string> files;
  for (const YamlNode& document : documents) {
    files.push_back(folder / std::to_string(files.size()));
    write_text(files.back(), as_json(document).dump());
  }
  const std::vector<std::string> verdicts = validate(name, files);
  int refused = 0;
  for (std::size_t i = 0; i < documents.size(); ++i) {
    const std::string error = refusal(read, documents[i]);
    INFO(documents[i].flow_text() << "\nschema: " << verdicts[i] << "\nreader: " << error);
    CHECK((verdicts[i] == "ok") == error.empty());
    refused += !error.empty();
  }
  CHECK(refused > 0);
  CHECK(refused < static_cast<int>(documents.size()));
}

}  // namespace

TEST_CASE("schemas: shipped machines, workloads and experiments keep to them") {
  for (const std::string name : {"hardware", "workload", "experiment"}) {
    TemporaryFolder folder;
    std::vector<std::string> files;
    const std::string shipped = source_dir() + "/configs/" + name + (name == "hardware" ? "" : "s");
    for (const auto& entry : std::filesystem::directory_iterator(shipped)) {
      files.push_back(folder / entry.path().stem().string());
      write_text(files.back(), as_json(load_yaml(entry.path().string())).dump());
    }
    CHECK(files.size() >= 5);
    check_valid(name, files);
  }
}

TEST_CASE("schemas: readers and schemas of YAML files name the same keys and words") {
  const Compared of_machine = compare_all_words("hardware", machine, json::parse(kMachine));
  const Compared of_workload = compare_all_words("workload", workload, json::parse(kWorkload));
  // Each `{` of the document, but `efficiency`, whose keys are free.
  CHECK(of_machine.objects == std::ranges::count(std::string(kMachine), '{') - 1);
  CHECK(of_machine.words == 4);  // spread, over, rounding, algorithm
  CHECK(of_workload.objects == std::ranges::count(std::string(kWorkload), '{'));
  CHECK(of_workload.words == 9);  // phase, three of four types, detail, recompute and its kernels, schedule, routing
  CHECK(compare_all_words("experiment", one_point, experiment()).objects == 2);  // itself, output
}

TEST_CASE("schemas: the machine's reader and its schema refuse the same damage") {
  compare_all_damage("hardware", machine, json::parse(kMachine));
}

TEST_CASE("schemas: the workload's reader and its schema refuse the same damage") {
  compare_all_damage("workload", workload, json::parse(kWorkload));
  std::vector<YamlNode> documents;
  for (const char* train : {R"({"recompute": "layers", "recompute_layers": 0})", R"({"recompute": "layers"})",
                            R"({"recompute_layers": 1})", R"({"recompute": "full", "recompute_kernels": ["norm"]})"}) {
    json document = json::parse(kWorkload);
    document["train"] = json::parse(train);
    documents.push_back(as_yaml(document));
  }
  compare_verdicts("workload", workload, documents);
}

TEST_CASE("schemas: the experiment's reader and its schema refuse the same damage") {
  compare_all_damage("experiment", one_point, experiment());
}

TEST_CASE("schemas: a quantity's reader and its pattern take the same numbers and units") {
  std::vector<std::string> texts = {"", "1", "B", "64 GB", "  64GB ", "6 4GB", "1e3MB", "1E+3MB", "1e-1kB", "1eMB", ".5TB", "1.TB",
                                    ".GB", "1.5.5GB", "-1GB", "+1GB", "0B", "0.0e5GB", "0GB/s", "0FLOPS", "0us", "1gb", "1Gb"};
  for (const std::string unit : {"B", "kB", "KB", "MB", "GB", "TB", "PB", "kiB", "KiB", "MiB", "GiB", "TiB", "PiB"}) {
    texts.push_back("1" + unit);
    texts.push_back("1" + unit + "/s");
  }
  for (const char* unit : {"bps", "kbps", "Mbps", "Gbps", "Tbps", "FLOPS", "MFLOPS", "GFLOPS", "TFLOPS", "PFLOPS", "OPS", "GOPS",
                           "TOPS", "POPS", "ns", "us", "ms", "s", "min"})
    texts.push_back(std::string("1") + unit);
  std::vector<YamlNode> documents;
  for (const char* place : {"/npu/hbm/capacity", "/pool/capacity", "/npu/hbm/bandwidth", "/npu/compute", "/npu/launch_overhead"})
    for (const std::string& text : texts) {
      json document = experiment()["hardware"];
      document[json::json_pointer(place)] = text;
      documents.push_back(as_yaml(document));
    }
  compare_verdicts("hardware", machine, documents);
}

TEST_CASE("schemas: an experiment's schema knows every policy and its options") {
  const json policy = schema_file("experiment.schema.json")["$defs"]["policy"];
  Words names, options = {"name"};
  std::vector<YamlNode> documents;
  const auto add = [&](const json& item) {
    json document = experiment();
    document["policies"] = {item};
    documents.push_back(as_yaml(document));
  };
  for (const PolicyInfo& info : known_policies()) {
    names.insert(info.name);
    json map = {{"name", info.name}};
    std::string text = info.name;
    for (const PolicyOption& option : info.options) {
      options.insert(option.name);
      map[option.name] = option.fallback;
      text += (text == info.name ? ":" : ",") + option.name + "=" + option.fallback;
    }
    for (const json& item : {json(info.name), json(text), map}) add(item);
  }
  for (const char* wrong : {"residents", "graph:", "graph:slack", "graph:slack=", "graph:=1", "graph:slack=1,"}) add(wrong);
  for (const json& wrong : {json{{"evict", "lru"}}, json{{"name", "graph"}, {"slak", 1}}, json{{"name", "grap"}}}) add(wrong);
  CHECK(schema_file("experiment.schema.json")["$defs"]["policy_name"]["enum"].get<Words>() == names);
  CHECK(keys_of(policy["properties"]) == options);
  compare_verdicts("experiment", one_point, documents);
}

TEST_CASE("schemas: a sweep's reader and its schema take the same axes") {
  std::vector<YamlNode> documents;
  for (const std::string axes :
       {"{hbm: [8GB, 16GB..32GB x 3]}", "{hbm: 8GB..24GB x 3}", "{hbm: 8GB..24GB x 3 log}",
        "{hardware.link.read.bandwidth: [1GB/s], workload.batch: 1..2 x 2}", "{policies: [[resident], [graph]]}",
        "{zip: {workload.batch: [1, 2], workload.sequence: [8, 4]}}",
        "{zip: [{workload.batch: [1, 2], workload.sequence: [8, 4]}, {hbm: [1GB], iterations: [1]}]}",
        "{}", "[]", "{hbm: []}", "{hbm: 8GB}", "{hbm: {}}", "{hbm: 8GB..24GB}", "{hbm: 8GB..24GB x 3 lin}", "{name: [a]}",
        "{hardwares.name: [a]}", "{zip: {hbm: [1GB]}}", "{zip: {hbm: [1GB], bound: [lp]}}", "{zip: 1..2 x 2}"})
    documents.push_back(apply_overrides(as_yaml(experiment()), {"sweep=" + axes}));
  json document = experiment();  // a machine that only the sweep names
  document["sweep"] = {{"hardware", {document["hardware"]}}};
  document.erase("hardware");
  documents.push_back(as_yaml(document));
  compare_verdicts("experiment", sweep, documents);
}
