#include "app/compare_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "app/output.h"
#include "sim/model/error.h"
#include "sim/model/read_file.h"
#include "sim/report/compare.h"
#include "sim/report/result_json.h"

namespace hyperoffload {
namespace {

namespace fs = std::filesystem;

struct Named {
  std::string name;  // unique within its side
  Result result;
};

// A name tells a policy's results apart by where they lie, and, in one file, by their place.
void add_results(const std::string& path, const std::string& place, std::vector<Named>& all) {
  for (Result& result : parse_results(read_file(path, "a result"), source_name(path))) {
    std::string name = place.empty() ? result.policy : place + ": " + result.policy;
    const auto same = std::count_if(all.begin(), all.end(), [&](const Named& other) {
      return other.name == name || other.name.rfind(name + " #", 0) == 0;
    });
    if (same > 0) name += fmt::format(" #{}", same + 1);
    all.push_back({std::move(name), std::move(result)});
  }
}

// A sweep's point by its axes alone: points/AXES-KEY/POLICY, KEY being a hash of all its inputs, which differ
// between the two that are compared.
std::string point_name(const std::string& place) {
  const std::string points = "points/";
  if (place.rfind(points, 0) != 0) return place;
  const std::string name = place.substr(points.size(), place.find('/', points.size()) - points.size());
  const std::size_t dash = name.rfind('-');
  const bool keyed = dash != std::string::npos && dash + 1 < name.size() &&
                     name.find_first_not_of("0123456789abcdef", dash + 1) == std::string::npos;
  return keyed ? name.substr(0, dash) : name;
}

std::vector<Named> read_side(const std::string& path) {
  std::vector<Named> all;
  std::error_code none;  // what can't be looked into has no results
  if (!fs::is_directory(path, none)) {
    add_results(path, "", all);
  } else {
    std::vector<fs::path> files;
    for (const auto& entry :
         fs::recursive_directory_iterator(path, fs::directory_options::skip_permission_denied, none))
      if (entry.is_regular_file(none) &&
          (entry.path().filename() == "results.json" || entry.path().filename() == "result.json"))
        files.push_back(entry.path());
    std::vector<std::pair<std::string, std::string>> places;  // "" is the folder itself
    for (const fs::path& file : files) {
      const std::string place = file.parent_path().lexically_relative(path).string();
      places.emplace_back(place == "." ? "" : place, file.string());
    }
    std::sort(places.begin(), places.end());
    for (const auto& [place, file] : places) add_results(file, point_name(place), all);
  }
  if (all.empty()) throw InputError(path, "no results", "result.json or results.json with at least one run");
  return all;
}

}  // namespace

int compare_command(const CompareCommand& command) {
  if (command.a == "-" && command.b == "-") throw InputError("compare", "- twice", "standard input once");
  const std::vector<Named> a = read_side(command.a), b = read_side(command.b);
  ComparisonSet set{command.a, command.b, {}, {}, {}};
  if (a.size() == 1 && b.size() == 1) {  // whatever their policies: that is what is compared
    const std::string both = a[0].name == b[0].name ? a[0].name : a[0].name + " and " + b[0].name;
    set.pairs.push_back(compare_results(both, a[0].result, b[0].result));
  } else {
    const auto named = [](const std::vector<Named>& side, const std::string& name) {
      return std::find_if(side.begin(), side.end(), [&](const Named& n) { return n.name == name; });
    };
    for (const Named& left : a) {
      const auto right = named(b, left.name);
      if (right == b.end())
        set.only_a.push_back(left.name);
      else
        set.pairs.push_back(compare_results(left.name, left.result, right->result));
    }
    for (const Named& right : b)
      if (named(a, right.name) == a.end()) set.only_b.push_back(right.name);
  }
  write_output("-", command.json ? comparison_json(set) : comparison_table(set, command.all));
  return 0;
}

}  // namespace hyperoffload
