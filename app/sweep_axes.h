// The `sweep:` of an experiment: axes over dotted keys, and the points of their grid.
//
//   sweep:
//     hardware.link.read.bandwidth: 40GB/s..200GB/s x 9     # a range, linear; `x 9 log` for equal ratios
//     hbm: [24GiB, 32GiB..48GiB x 3]                         # a list; ranges may stand in it
//     zip: {workload.batch: [1, 2], workload.sequence: [8192, 4096]}   # these step together
//
// Points are numbered from 0 in file order, the first axis outermost. A range keeps its ends as they are
// written; what lies between has 15 significant digits, and whole bytes where the unit is B.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "sim/model/yaml_reader.h"

namespace hyperoffload {

struct SweepAxis {
  std::vector<std::string> keys;             // several: a zip
  std::vector<std::vector<YamlNode>> steps;  // [step][key]

  std::string name() const;  // the keys, joined by " + "
};

class SweepAxes {
 public:
  explicit SweepAxes(const YamlNode& experiment);

  const std::vector<SweepAxis>& axes() const { return axes_; }
  std::size_t points() const { return points_; }
  std::vector<std::string> columns() const;                 // all keys
  std::vector<std::size_t> steps(std::size_t point) const;  // the step of each axis
  std::vector<std::string> values(std::size_t point) const;  // by column, as written
  YamlNode experiment(std::size_t point) const;
  std::string label(std::size_t point) const;  // "hbm=24GiB, workload.batch=1"

 private:
  void add(SweepAxis axis, const YamlNode& place);
  void check_capacity_counts(const std::vector<std::string>& keys, const YamlNode& place) const;

  YamlNode base_;
  std::vector<SweepAxis> axes_;
  std::size_t points_ = 1;
};

}  // namespace hyperoffload
