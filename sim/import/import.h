// Traces of other tools as layer traces: `trace import`.
//
// Each format has one importer, in a file of its name; it returns the layer trace and remarks: what the
// format lacks (sizes, dependencies, times), and counts of what is odd in the files. Nothing lacking is
// made up unless an option asks for it. Times are kept as integers of picoseconds until they become an
// op's duration (exact_time.h), so an epoch with nanoseconds loses nothing. Files are streamed where the
// format allows (text_stream.h), and any may be gzipped.
// A trace of no ops, or of ops that take no time and move no bytes, is refused.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/model/graph.h"

namespace hyperoffload {

// What fills in for a format, as text; an option that the format doesn't have is refused.
struct ImportOptions {
  std::optional<std::string> batch;   // the batch size, where the file leaves it open
  std::optional<std::string> global;  // what a "global" tensor is: other (default), weight, activation
  std::optional<std::string> border;  // the id below which a net's tensors are global
  std::optional<std::string> pixels;  // height and width of a net's images
  // Of timelines (timeline.h): "observed", "keep", "clip".
  std::optional<std::string> dependencies, gaps, overlaps;
  std::optional<std::string> category;  // further categories of events that become ops, with commas between
  std::optional<std::string> device;    // the one device whose events are wanted
  std::optional<std::string> tensors;   // "memory": tensors from memory events
  std::optional<std::string> costs;  // "shapes": FLOPs and HBM bytes from tensors, where there are no times
  std::optional<std::string> fold;   // "constants": what is computed from constants alone is one
  std::optional<std::string> collectives;  // "fabric": those with kind and bytes lose their measured time
  std::optional<std::string> link;   // bandwidth of the host link: copies that are faster are told
};

struct ImportOption {
  std::string name, help;
  std::optional<std::string> ImportOptions::*value;
  std::vector<std::string> formats;  // those that have it
};
const std::vector<ImportOption>& import_options();

struct ImportResult {
  Graph graph;
  std::vector<std::string> remarks;
};

struct ImportFormat {
  std::string name, files, summary;
};
const std::vector<ImportFormat>& import_formats();

// InputError for wrong files, formats and options. The result depends on the content of the files and on
// their names without folders.
ImportResult import_trace(const std::string& format, const std::vector<std::string>& files,
                          const ImportOptions& options);

}  // namespace hyperoffload
