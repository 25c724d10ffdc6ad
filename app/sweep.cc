#include "app/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <set>

#include "app/evaluate.h"
#include "app/evaluate_ranks.h"
#include "app/experiment.h"
#include "app/output.h"
#include "app/progress.h"
#include "app/sweep_axes.h"
#include "app/sweep_effects.h"
#include "app/sweep_key.h"
#include "app/sweep_prune.h"
#include "sim/model/count_of.h"
#include "sim/model/error.h"
#include "sim/model/nearest_name.h"
#include "sim/model/read_file.h"
#include "sim/replay/isolate.h"
#include "sim/report/result_csv.h"
#include "sim/report/result_json.h"
#include "sim/workload/workload.h"

namespace hyperoffload {
namespace {

namespace fs = std::filesystem;

// What a child sends back when its result can't be written: all others would fail, too.
constexpr char kWriteFailed = 'W';

struct Point {
  std::size_t number = 0;
  fs::path folder;
  std::vector<PolicySpec> policies;
  bool timeline = false;
};

struct Task {
  const Point* point;
  const PolicySpec* policy;

  fs::path folder() const { return point->folder / policy_file_stem(policy->text()); }
  fs::path result() const { return folder() / kResultFile; }
  fs::path timeline() const { return folder() / kTimelineFile; }
  fs::path checksums() const { return folder() / kChecksumFile; }
};

// As `xxh128sum` writes it.
std::string checksum_line(const fs::path& file) {
  return digest(read_file(file.string(), "a file of a sweep")) + "  " + file.filename().string() + "\n";
}

// The result that is there already, as it was written; none where a file is missing or another.
std::optional<Result> finished(const Task& task) {
  std::error_code error;
  if (!fs::is_regular_file(task.checksums(), error)) return std::nullopt;
  try {
    const std::string path = task.result().string();
    std::vector<Result> results = parse_results(read_file(path, "a result"), path);
    if (results.size() != 1 || results[0].policy != task.policy->text()) return std::nullopt;
    std::string expected = checksum_line(task.result());
    if (task.point->timeline && results[0].has_figures()) expected += checksum_line(task.timeline());
    if (read_file(task.checksums().string(), "checksums").starts_with(expected)) return std::move(results[0]);
  } catch (const InputError&) {  // taken away, cut short by a crash of the machine, or edited
  }
  return std::nullopt;
}

// Letters, digits and a few signs of the axes' last names and values, for people who look into the folder.
std::string readable(const SweepAxes& axes, std::size_t point) {
  constexpr std::size_t kMostCharacters = 80;
  const std::vector<std::string> keys = axes.columns(), values = axes.values(point);
  std::string name;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const std::string& key = keys[i];
    // Of "hardware.link.read.bandwidth" what tells it from its neighbours: the last two names.
    const std::size_t last = key.rfind('.');
    const std::size_t from = last == std::string::npos || last == 0 ? std::string::npos : key.rfind('.', last - 1);
    const std::string shown = from == std::string::npos ? key : key.substr(from + 1);
    name += (name.empty() ? "" : ",") + shown + "=" + values[i];
  }
  std::replace_if(
      name.begin(), name.end(),
      [](unsigned char c) { return !std::isalnum(c) && std::string(".,=+-_").find(static_cast<char>(c)) == std::string::npos; },
      '_');
  name.resize(std::min(name.size(), kMostCharacters));
  if (name[0] == '.' || name[0] == '-') name[0] = '_';
  return name;
}

class Sweep {
 public:
  Sweep(const SweepOptions& options, const SweepAxes& axes)
      : options_(options), axes_(axes), folder_(fs::path(options.directory) / "points") {}

  // InputError where the experiment is wrong at that point.
  Point prepare(std::size_t number) {
    const YamlNode document = with_files_in_place(axes_.experiment(number));
    const Experiment experiment = read_experiment(document);
    check(workload_of(document));
    const std::string name = readable(axes_, number) + "-" + keys_.key(document).substr(0, kKeyInName);
    return {number, folder_ / name, experiment.policies, experiment.timeline};
  }

  // Does what is missing, throws the first error.
  void run(const std::vector<Point>& points);
  // The results of all points in order; none if one is missing.
  std::optional<std::vector<SweepResult>> collect(const std::vector<Point>& points) const;

 private:
  void check(const YamlNode& workload);
  std::string run_task(const Task& task) const;
  std::string run_and_write(const Task& task) const;

  const SweepOptions& options_;
  const SweepAxes& axes_;
  fs::path folder_;
  PointKeys keys_;
  std::set<std::string> workloads_;  // checked
  std::vector<Graph> graphs_;        // where they are the same at all points
};

void Sweep::check(const YamlNode& workload) {
  if (!workloads_.insert(workload.flow_text()).second) return;
  const std::optional<std::string> trace = trace_file_of(workload);
  if (!trace)
    check_workload(read_workload(workload));
  else if (*trace == "-")
    workload.fail("a trace on standard input", "a file: a sweep reads it more than once");
}

std::string Sweep::run_and_write(const Task& task) const {
  const YamlNode document = axes_.experiment(task.point->number);
  Experiment experiment = read_experiment(document);
  const YamlNode workload = workload_of(document);
  if (graphs_.empty()) experiment.graphs = read_workload_graphs(workload);
  const std::vector<Graph>& graphs = graphs_.empty() ? experiment.graphs : graphs_;
  const auto write = [&](const auto& job, const Evaluation& evaluation) -> std::string {
    try {
      make_directory(task.folder().string());
      if (evaluation.record) write_timeline(task.timeline().string(), job, evaluation);
      write_output(task.result().string(), result_to_json(evaluation.result));
      write_output(task.checksums().string(),
                   checksum_line(task.result()) + (evaluation.record ? checksum_line(task.timeline()) : ""));
    } catch (const InputError& e) {
      return kWriteFailed + std::string(e.what());
    }
    return "";
  };
  if (graphs.size() > 1) {
    check_rank_count(graphs, experiment.hardware, workload.where() + ": ranks");
    const RankJob job{graphs, experiment.hardware, experiment.iterations, experiment.timeline, false, experiment.bound};
    return write(job, evaluate_ranks(job, *task.policy));
  }
  const Job job{graphs[0], experiment.hardware, experiment.iterations, experiment.timeline, false, false,
                experiment.bound};
  return write(job, evaluate(job, *task.policy));
}

// What killed processes left more than an hour ago.
void remove_old_temporaries(const fs::path& folder) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const auto age = fs::file_time_type::clock::now() - entry.last_write_time(error);
    if (!error && entry.path().extension() == ".tmp" && age > std::chrono::hours(1))
      fs::remove(entry.path(), error);
  }
}

std::string Sweep::run_task(const Task& task) const {
  if (finished(task)) return "";  // by another sweep, meanwhile
  remove_old_temporaries(task.folder());
  const auto at_point = [&](const std::exception& e) {
    return fmt::format("{} (policy {} at {})", e.what(), task.policy->text(), axes_.label(task.point->number));
  };
  try {
    return run_and_write(task);
  } catch (const InputError& e) {
    throw InputError(at_point(e));
  } catch (const InfeasibleError& e) {
    throw InfeasibleError(at_point(e));
  }
}

void Sweep::run(const std::vector<Point>& points) {
  std::vector<Task> tasks;
  std::size_t found = 0;
  for (const Point& point : points)
    for (const PolicySpec& policy : point.policies) {
      const Task task{&point, &policy};
      if (finished(task))
        ++found;
      else
        tasks.push_back(task);
    }
  std::error_code none;  // a sweep that is stopped must leave no table of another one
  if (!tasks.empty()) fs::remove(fs::path(options_.directory) / "results.csv", none);
  if (!tasks.empty() && workloads_.size() == 1)
    graphs_ = read_workload_graphs(workload_of(axes_.experiment(points[0].number)));

  std::string write_error;
  std::vector<IsolatedWork> works;
  for (const Task& task : tasks) works.push_back([this, &task] { return run_task(task); });
  {
    Progress progress(tasks.size());
    run_isolated_all(works, options_.jobs, [&](std::size_t work, const std::string* bytes) {
      progress.advance();
      if (!bytes)
        std::fputs(fmt::format("hyperoffload: policy {} failed at {}\n", tasks[work].policy->text(),
                               axes_.label(tasks[work].point->number))
                       .c_str(),
                   stderr);
      else if (!bytes->empty() && bytes->front() == kWriteFailed)
        write_error = bytes->substr(1);
      return write_error.empty();
    });
  }
  if (!write_error.empty()) throw InputError(write_error);
  std::fputs(fmt::format("{} results: {} run now, {} were there\n", tasks.size() + found, tasks.size(), found).c_str(),
             stderr);
}

std::optional<std::vector<SweepResult>> Sweep::collect(const std::vector<Point>& points) const {
  std::vector<SweepResult> results;
  for (const Point& point : points)
    for (const PolicySpec& policy : point.policies) {
      std::optional<Result> result = finished({&point, &policy});
      if (!result) return std::nullopt;
      results.push_back({point.number, std::move(*result)});
    }
  return results;
}

// `--set hbm=...` beside an axis `hbm` would do nothing.
void check_settings(const SweepOptions& options, const SweepAxes& axes) {
  for (const std::string& setting : options.settings) {
    const std::string path = setting.substr(0, setting.find('='));
    for (const std::string& key : axes.columns())
      if (path == key || path.starts_with(key + "."))
        throw InputError("--set " + shortened(setting), fmt::format("the axis {}", in_quotes(key)),
                         fmt::format("--set 'sweep.{}=[value, ...]'", key));
  }
}

void list_points(const SweepOptions& options, const Shard& shard, std::size_t points) {
  std::string command = shell_word(options.program) + " sweep " + shell_word(options.experiment) + " -o " +
                        shell_word(options.directory);
  for (const std::string& setting : options.settings) command += " --set " + shell_word(setting);
  std::string text;
  for (std::size_t i = shard.index; i < points; i += shard.count)
    text += fmt::format("{} --shard {}/{}\n", command, i + 1, points);
  write_output("-", text);
}

void write_csv(const SweepOptions& options, const SweepAxes& axes, const std::vector<SweepResult>& results) {
  std::string csv = csv_header(axes.columns());
  for (const SweepResult& result : results) csv += csv_row(result.result, axes.values(result.point));
  write_output((fs::path(options.directory) / "results.csv").string(), csv);
}

// A share of the points is done; whoever finishes last writes the table of all.
void finish_shard(const SweepOptions& options, const SweepAxes& axes, Sweep& sweep) {
  std::vector<Point> points(axes.points());
  for (std::size_t i = points.size(); i-- > 0;) {
    try {
      points[i] = sweep.prepare(i);
    } catch (const InputError&) {
      return;  // that of another share, which says so
    }
    for (const PolicySpec& policy : points[i].policies)
      if (!fs::exists(Task{&points[i], &policy}.checksums())) return;
  }
  if (const auto results = sweep.collect(points)) write_csv(options, axes, *results);
}

void clear_away(const SweepOptions& options, const StaleFolders& stale) {
  if (options.prune) remove_folders(stale.ours);
  const auto say = [&](std::size_t folders, const std::string& what) {
    if (folders > 0)
      std::fputs(fmt::format("{} further folder{} in {}/points {}\n", folders, folders == 1 ? "" : "s", options.directory, what).c_str(), stderr);
  };
  say(stale.ours.size(), options.prune ? "of other inputs or another build of this program: removed"
                                       : "of other inputs or another build of this program (--prune removes such)");
  say(stale.others, "not of a sweep: left alone");
}

void finish_all(const SweepOptions& options, const SweepAxes& axes, Sweep& sweep, const std::vector<Point>& points) {
  const std::optional<std::vector<SweepResult>> results = sweep.collect(points);
  if (!results) throw InputError(options.directory, "results that were taken away meanwhile", "a folder of its own");
  write_csv(options, axes, *results);
  std::set<fs::path> ours;
  for (const Point& point : points) ours.insert(point.folder);
  clear_away(options, stale_folders(fs::path(options.directory) / "points", ours));
  write_output("-", fmt::format("{}, {}: {}\n", count_of(points.size(), "point"), count_of(results->size(), "result"),
                                (fs::path(options.directory) / "results.csv").string()) +
                        sweep_table(*results) + sweep_effects(axes, *results));
}

}  // namespace

Shard parse_shard(const std::string& text) {
  Shard shard;
  if (text.empty()) return shard;
  const char* end = text.data() + text.size();
  std::size_t index = 0;
  const auto first = std::from_chars(text.data(), end, index);
  if (first.ec == std::errc() && first.ptr != end && *first.ptr == '/') {
    const auto second = std::from_chars(first.ptr + 1, end, shard.count);
    if (second.ec == std::errc() && second.ptr == end && index >= 1 && index <= shard.count) {
      shard.index = index - 1;
      return shard;
    }
  }
  throw InputError("--shard", in_quotes(text), "I/N with I from 1 to N, like 2/8");
}

std::string shell_word(const std::string& text) {
  const std::string plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-=:,+@%";
  if (!text.empty() && text.find_first_not_of(plain) == std::string::npos) return text;
  std::string word = "'";
  for (char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

int sweep_command(const SweepOptions& options) {
  const Shard shard = parse_shard(options.shard);
  if (options.directory.empty() || options.directory == "-")
    throw InputError("-o", in_quotes(options.directory), "a folder: several files are written");
  const SweepAxes axes(load_experiment_file(options.experiment, options.settings));
  check_settings(options, axes);
  Sweep sweep(options, axes);
  std::vector<Point> points;
  for (std::size_t i = shard.index; i < axes.points(); i += shard.count) points.push_back(sweep.prepare(i));
  if (options.list) {
    list_points(options, shard, axes.points());
    return 0;
  }
  make_directory((fs::path(options.directory) / "points").string());
  if (!points.empty()) sweep.run(points);
  if (options.shard.empty())
    finish_all(options, axes, sweep, points);
  else
    finish_shard(options, axes, sweep);
  return 0;
}

}  // namespace hyperoffload
