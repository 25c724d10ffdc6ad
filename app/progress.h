// "12/36, 1 min 5 s left" on standard error, one line that is written over; only where that is a terminal.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

namespace hyperoffload {

std::string progress_line(std::size_t done, std::size_t all, double elapsed_s);

class Progress {
 public:
  explicit Progress(std::size_t all);
  ~Progress();
  Progress(const Progress&) = delete;
  void advance();

 private:
  void show() const;

  bool terminal_;
  std::size_t all_, done_ = 0;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace hyperoffload
