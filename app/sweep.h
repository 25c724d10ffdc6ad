// `sweep`: an experiment at every point of its axes.
//
// DIR/points/NAME-KEY/POLICY/result.json, one a point and policy, written by a temporary name and a rename,
// a checksum behind it: what was damaged or edited since counts as missing;
// DIR/results.csv over all of them, the axes' columns first, written once all are there. KEY stands for all
// that the figures depend on (sweep_key.h), so that running again does what is missing or changed and
// nothing else; what two sweeps do twice is the same bytes. Each point and policy runs in a process of its
// own, `jobs` at once.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace hyperoffload {

struct SweepOptions {
  std::string program;  // how this one was called, for --list
  std::string experiment, directory;
  std::vector<std::string> settings;
  int jobs = 1;
  std::string shard;  // "2/8": the second of eight shares of the points; empty: all
  bool list = false;  // print one command a point, run none
  bool prune = false;  // remove folders of points that are none any more
};

int sweep_command(const SweepOptions& options);

struct Shard {
  std::size_t index = 0, count = 1;  // points with number % count == index
};
Shard parse_shard(const std::string& text);

// One word of a POSIX shell.
std::string shell_word(const std::string& text);

}  // namespace hyperoffload
