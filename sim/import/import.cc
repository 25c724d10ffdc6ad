#include "sim/import/import.h"

#include <fmt/format.h>

#include "sim/import/activation_trace.h"
#include "sim/import/ascend.h"
#include "sim/import/chakra.h"
#include "sim/import/g10.h"
#include "sim/import/kineto.h"
#include "sim/import/llmservingsim.h"
#include "sim/import/memory_snapshot.h"
#include "sim/import/memory_timeline.h"
#include "sim/import/onnx.h"
#include "sim/import/pytorch_et.h"
#include "sim/model/error.h"
#include "sim/model/nearest_name.h"

namespace hyperoffload {
namespace {

using Importer = ImportResult (*)(const std::vector<std::string>&, const ImportOptions&);

struct KnownFormat {
  ImportFormat format;
  std::size_t least_files, most_files;
  Importer import;
};

const std::vector<KnownFormat>& known_formats() {
  static const std::vector<KnownFormat> kFormats = {
      {{"g10", "NET TIMES [WORKSPACES], or kernels.config",
        "nets of G10 with its kernel times, or its expanded form"},
       1,
       3,
       import_g10},
      {{"activation-trace", "TRACE.json", "hyper-parallel's ActivationTrace"}, 1, 1, import_activation_trace},
      {{"kineto", "TRACE.json [EXECUTION_TRACE.json]",
        "PyTorch profiler traces; the execution trace gives tensors"},
       1,
       2,
       import_kineto},
      {{"chakra", "TRACE.et", "Chakra execution traces of one rank, protobuf or JSON"}, 1, 1, import_chakra},
      {{"pytorch-et", "TRACE.json", "PyTorch execution traces alone"}, 1, 1, import_pytorch_et},
      {{"memory-snapshot", "SNAPSHOT.pickle", "PyTorch memory snapshots"}, 1, 1, import_memory_snapshot},
      {{"memory-timeline", "TIMELINE.raw.json", "PyTorch's raw memory timelines"},
       1,
       1,
       import_memory_timeline},
      {{"ascend", "TIMELINE.json", "timelines of Ascend devices: msprof, torch_npu"}, 1, 1, import_ascend},
      {{"mindspore", "TIMELINE", "timelines of MindSpore, JSON or text"}, 1, 1, import_ascend},
      {{"llmservingsim", "TRACE.txt", "LLMServingSim's layer traces"}, 1, 1, import_llmservingsim},
      {{"onnx", "MODEL.onnx", "ONNX models, with shapes inferred for the usual operators"},
       1,
       1,
       import_onnx},
  };
  return kFormats;
}

const KnownFormat& find_format(const std::string& name) {
  std::vector<std::string> names;
  for (const KnownFormat& known : known_formats()) {
    if (known.format.name == name) return known;
    names.push_back(known.format.name);
  }
  throw InputError("--format", in_quotes(name), one_of(name, names));
}

void check_options(const std::string& format, const ImportOptions& options) {
  for (const ImportOption& option : import_options()) {
    if (!(options.*option.value)) continue;
    bool has = false;
    std::string list;
    for (const std::string& name : option.formats) {
      has |= name == format;
      list += (list.empty() ? "" : ", ") + name;
    }
    if (!has)
      throw InputError("--" + option.name, "the format " + format, "a format that has this option: " + list);
  }
}

}  // namespace

const std::vector<ImportFormat>& import_formats() {
  static const std::vector<ImportFormat> kFormats = [] {
    std::vector<ImportFormat> formats;
    for (const KnownFormat& known : known_formats()) formats.push_back(known.format);
    return formats;
  }();
  return kFormats;
}

const std::vector<ImportOption>& import_options() {
  static const std::vector<std::string> timelines = {"kineto", "ascend", "mindspore"};
  static const std::vector<ImportOption> kOptions = {
      {"batch", "batch size, where the files leave it open", &ImportOptions::batch, {"g10", "onnx"}},
      {"global",
       "what a \"global\" tensor is: other (persistent, default), weight or activation",
       &ImportOptions::global,
       {"g10"}},
      {"border",
       "id below which the tensors of a net of operators are global",
       &ImportOptions::border,
       {"g10"}},
      {"pixels", "height and width of a net's images", &ImportOptions::pixels, {"g10"}},
      {"dependencies",
       "observed: an op waits for the last op of each other stream that had ended when it started",
       &ImportOptions::dependencies, timelines},
      {"gaps", "keep: idle ops stand for the time in which a stream was idle", &ImportOptions::gaps,
       timelines},
      {"overlaps", "clip: an op ends where the next one of its stream starts", &ImportOptions::overlaps,
       timelines},
      {"category",
       "further categories of events that become ops, with commas between",
       &ImportOptions::category,
       {"kineto"}},
      {"device",
       "the one device whose events are wanted",
       &ImportOptions::device,
       {"kineto", "memory-snapshot"}},
      {"tensors",
       "memory: tensors from memory events, placed by launches",
       &ImportOptions::tensors,
       {"kineto"}},
      {"costs",
       "shapes: HBM bytes (and FLOPs) from the tensors, where the format has no times",
       &ImportOptions::costs,
       {"pytorch-et", "onnx"}},
      {"fold",
       "constants: what is computed from constants alone is a weight",
       &ImportOptions::fold,
       {"onnx"}},
      {"collectives",
       "fabric: collectives of which kind and bytes are known get their time from the machine",
       &ImportOptions::collectives,
       {"kineto", "chakra"}},
      {"link",
       "bandwidth of the host link: copies that are faster are told (default 64GB/s)",
       &ImportOptions::link,
       {"kineto"}},
  };
  return kOptions;
}

ImportResult import_trace(const std::string& format, const std::vector<std::string>& files,
                          const ImportOptions& options) {
  const KnownFormat& known = find_format(format);
  check_options(format, options);
  if (files.size() < known.least_files || files.size() > known.most_files)
    throw InputError("--format " + format,
                     fmt::format("{} {}", files.size(), files.size() == 1 ? "file" : "files"),
                     known.format.files);
  return known.import(files, options);
}

}  // namespace hyperoffload
