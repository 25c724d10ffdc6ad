#include "sim/replay/isolate.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "sim/model/check.h"
#include "sim/model/error.h"

namespace hyperoffload {
namespace {

void write_all(int fd, const std::string& bytes) {
  std::size_t sent = 0;
  while (sent < bytes.size()) {
    const ssize_t n = write(fd, bytes.data() + sent, bytes.size() - sent);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) _exit(1);
    sent += static_cast<std::size_t>(n);
  }
}

std::string read_all(int fd) {
  std::string bytes;
  char buffer[1 << 16];
  for (;;) {
    const ssize_t n = read(fd, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return bytes;
    bytes.append(buffer, static_cast<std::size_t>(n));
  }
}

// The first byte says what the rest is: a result, or the message of an error.
std::string outcome_of(const std::function<std::string()>& work) {
  try {
    return 'R' + work();
  } catch (const InputError& e) {
    return std::string("I") + e.what();
  } catch (const InfeasibleError& e) {
    return std::string("F") + e.what();
  } catch (const std::exception& e) {
    return std::string("C") + e.what();
  }
}

}  // namespace

std::string run_isolated(const std::function<std::string()>& work) {
  int ends[2];
  if (pipe(ends) != 0) throw CheckFailure(fmt::format("no pipe: {}", std::strerror(errno)));
  std::fflush(nullptr);  // or the child would print it again
  const pid_t child = fork();
  if (child < 0) {
    close(ends[0]);
    close(ends[1]);
    throw CheckFailure(fmt::format("no process for the simulation: {}", std::strerror(errno)));
  }
  if (child == 0) {
    close(ends[0]);
    write_all(ends[1], outcome_of(work));
    std::fflush(nullptr);
    _exit(0);  // without destructors: SimGrid's are not meant to run here
  }
  close(ends[1]);
  std::string bytes = read_all(ends[0]);
  close(ends[0]);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (bytes.empty() || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
    throw CheckFailure(WIFSIGNALED(status) ? fmt::format("the simulation was ended by signal {} ({})",
                                                         WTERMSIG(status), strsignal(WTERMSIG(status)))
                                           : std::string("the simulation ended without a result"));
  const char kind = bytes[0];
  bytes.erase(0, 1);
  if (kind == 'I') throw InputError(bytes);
  if (kind == 'F') throw InfeasibleError(bytes);
  if (kind == 'C') throw CheckFailure(bytes);
  return bytes;
}

}  // namespace hyperoffload
