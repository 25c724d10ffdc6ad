// What the programs that measure gaps share.
#pragma once

#include <sys/resource.h>

#include <algorithm>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace hyperoffload {

inline double percentile(std::vector<double> values, double share) {  // nearest rank
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const auto rank = static_cast<std::size_t>(share * static_cast<double>(values.size()) + 0.999999);
  return values[std::min(values.size(), std::max<std::size_t>(rank, 1)) - 1];
}

// Whether "a,b" names it.
inline bool lists(const std::string& names, const std::string& name) {
  return ("," + names + ",").find("," + name + ",") != std::string::npos;
}

// Of the calling thread.
inline double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec) + 1e-6 * static_cast<double>(usage.ru_utime.tv_usec);
}

// measure(case) of all, in their order, on all cores: a case takes one. `done` is told each result in that order, too, as
// soon as it and those before it are there.
template <typename Case, typename Measure, typename Done>
auto measure_all(const std::vector<Case>& cases, Measure measure, Done done) {
  using Result = decltype(measure(cases.front()));
  std::vector<std::optional<Result>> results(cases.size());
  std::mutex mutex;
  std::size_t next = 0, told = 0;
  std::exception_ptr failed;
  const auto work = [&] {
    for (std::unique_lock lock(mutex); next < cases.size() && !failed;) {
      const std::size_t i = next++;
      lock.unlock();
      std::optional<Result> result;
      std::exception_ptr error;
      try {
        result = measure(cases[i]);
      } catch (...) {
        error = std::current_exception();
      }
      lock.lock();
      if (error) failed = error;
      results[i] = std::move(result);
      for (; told < results.size() && results[told]; ++told) done(*results[told]);
    }
  };
  {
    std::vector<std::jthread> threads;
    for (unsigned k = 0; k < std::max(1U, std::thread::hardware_concurrency()); ++k) threads.emplace_back(work);
  }
  if (failed) std::rethrow_exception(failed);
  std::vector<Result> all;
  for (auto& result : results) all.push_back(std::move(*result));
  return all;
}

}  // namespace hyperoffload
