#include "app/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

namespace hyperoffload {
namespace {

std::string duration(double seconds) {
  const auto s = static_cast<long long>(seconds + 0.5);
  if (s < 60) return fmt::format("{} s", s);
  if (s < 3600) return fmt::format("{} min {} s", s / 60, s % 60);
  return fmt::format("{} h {} min", s / 3600, s % 3600 / 60);
}

}  // namespace

std::string progress_line(std::size_t done, std::size_t all, double elapsed_s) {
  constexpr std::size_t kWidth = 30;
  const std::size_t filled = all == 0 ? kWidth : done * kWidth / all;
  std::string line = fmt::format("[{}{}] {}/{}", std::string(filled, '#'), std::string(kWidth - filled, '.'),
                                 done, all);
  if (done > 0 && done < all)
    line += fmt::format(", {} left",
                        duration(elapsed_s / static_cast<double>(done) * static_cast<double>(all - done)));
  return line;
}

Progress::Progress(std::size_t all) : terminal_(isatty(STDERR_FILENO) == 1), all_(all) { show(); }

Progress::~Progress() {
  if (terminal_) std::fputs("\r\033[K", stderr);
}

void Progress::advance() {
  ++done_;
  show();
}

void Progress::show() const {
  if (!terminal_) return;
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start_;
  std::fputs(("\r" + progress_line(done_, all_, elapsed.count()) + "\033[K").c_str(), stderr);
}

}  // namespace hyperoffload
