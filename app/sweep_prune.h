// The folders of a sweep's points that no point of it has any more: of other axes, inputs, or another build of
// this program. Only what this program wrote is taken away: a folder whose name ends in a key and that
// holds nothing but results, timelines and their checksums, one level down. O(files).
#pragma once

#include <cstddef>
#include <filesystem>
#include <set>
#include <vector>

namespace hyperoffload {

// What a sweep writes for a point and policy.
inline constexpr const char *kResultFile = "result.json", *kTimelineFile = "timeline.trace.json",
                            *kChecksumFile = "checksums.xxh128";

struct StaleFolders {
  std::vector<std::filesystem::path> ours;
  std::size_t others = 0;  // what somebody else put there
};

StaleFolders stale_folders(const std::filesystem::path& points, const std::set<std::filesystem::path>& current);

// InputError where one can't be removed.
void remove_folders(const std::vector<std::filesystem::path>& folders);

}  // namespace hyperoffload
