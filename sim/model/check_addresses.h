// Whether a plan's addresses hold in a replay of it: every byte that comes into HBM has an address inside
// the arena and the capacity, no two overlap at any instant, and pieces of one tensor that are there at once
// lie as they do in the tensor (so that whoever reads it finds it in one stretch).
//
// A listener of a Residency, so it judges the program order in `check` and simulated time in a replay with
// the same words. Shares nothing with the packer. The first fault is kept, as a sentence; what follows it
// is not judged. O(log residents + pieces of the tensor) a piece taken.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/model/address_space.h"
#include "sim/model/residency.h"

namespace hyperoffload {

class AddressCheck final : public ResidencyListener {
 public:
  AddressCheck(const Graph& graph, const Plan& plan, Bytes capacity);

  Residency& residency() { return residency_; }  // to be told what happens
  const std::optional<std::string>& fault() const { return fault_; }

  void taken(const Resident& resident, std::int64_t event) override;
  void given(const Resident& resident, std::int64_t event) override;

 private:
  std::optional<std::int64_t> base_of(const Resident& resident) const;
  std::string words(int piece) const;
  void judge_neighbours(const Resident& resident, std::int64_t base);

  const Graph& graph_;
  const Plan& plan_;
  const std::int64_t capacity_;
  Residency residency_;
  std::map<std::pair<std::int32_t, std::int32_t>, std::int64_t> offsets_;  // of (tensor or none, op or none)
  std::vector<std::int64_t> base_;   // by piece, while it is there: where its tensor's byte 0 would lie
  std::vector<Resident> residents_;  // by piece
  AddressSpace space_;
  std::optional<std::string> fault_;
};

}  // namespace hyperoffload
