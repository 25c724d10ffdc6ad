#include "sim/replay/isolate.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <new>
#include <optional>

#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/model/check.h"
#include "sim/model/error.h"

namespace hyperoffload {
namespace {

struct Child {
  std::size_t work = 0;
  pid_t pid = -1;
  int fd = -1;
};

// What a child left: `bytes` opens with R (a result), I, F or C (the message of an error), M (out of memory).
struct Outcome {
  std::string bytes;
  int status = 0;
};

void write_all(int fd, const std::string& bytes) {
  std::size_t sent = 0;
  while (sent < bytes.size()) {
    const ssize_t n = write(fd, bytes.data() + sent, bytes.size() - sent);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) _exit(1);
    sent += static_cast<std::size_t>(n);
  }
}

std::string outcome_of(const IsolatedWork& work) {
  try {
    return 'R' + work();
  } catch (const InputError& e) {
    return std::string("I") + e.what();
  } catch (const InfeasibleError& e) {
    return std::string("F") + e.what();
  } catch (const std::bad_alloc&) {
    return "Mout of memory";
  } catch (const std::exception& e) {
    return std::string("C") + e.what();
  }
}

Child start(const IsolatedWork& work, std::size_t index) {
  int ends[2];
  if (pipe(ends) != 0) throw CheckFailure(fmt::format("no pipe: {}", std::strerror(errno)));
  std::fflush(nullptr);  // or the child would print it again
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) {
    close(ends[0]);
    close(ends[1]);
    throw CheckFailure(fmt::format("no process for the simulation: {}", std::strerror(errno)));
  }
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    close(ends[0]);
    write_all(ends[1], outcome_of(work));
    std::fflush(nullptr);
    _exit(0);  // without destructors: SimGrid's are not meant to run here
  }
  close(ends[1]);
  return {index, pid, ends[0]};
}

// Reads what is there. False once the child has closed its end.
bool read_some(const Child& child, std::string& bytes) {
  char buffer[1 << 16];
  const ssize_t n = read(child.fd, buffer, sizeof buffer);
  if (n > 0) bytes.append(buffer, static_cast<std::size_t>(n));
  return n > 0 || (n < 0 && errno == EINTR);
}

std::string result_of(Outcome outcome) {
  const int status = outcome.status;
  if (WIFSIGNALED(status))
    throw CheckFailure(fmt::format("the simulation was ended by signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status))));
  if (outcome.bytes.empty() || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
    throw CheckFailure("the simulation ended without a result");
  const char kind = outcome.bytes[0];
  outcome.bytes.erase(0, 1);
  if (kind == 'I') throw InputError(outcome.bytes);
  if (kind == 'F') throw InfeasibleError(outcome.bytes);
  if (kind == 'M') throw std::bad_alloc();
  if (kind == 'C') throw CheckFailure(outcome.bytes);
  return std::move(outcome.bytes);
}

bool tell(const WorkEnded& ended, std::size_t work, const Outcome& outcome) {
  const bool good = WIFEXITED(outcome.status) && WEXITSTATUS(outcome.status) == 0 &&
                    outcome.bytes.starts_with('R');
  const std::string bytes = good ? outcome.bytes.substr(1) : "";
  return ended(work, good ? &bytes : nullptr);
}

}  // namespace

std::vector<std::string> run_isolated_all(const std::vector<IsolatedWork>& works, int jobs,
                                          const WorkEnded& ended) {
  std::vector<Outcome> outcomes(works.size());
  std::vector<Child> running;
  std::size_t next = 0, last = works.size();
  while (next < last || !running.empty()) {
    while (next < last && static_cast<int>(running.size()) < std::max(1, jobs)) {
      running.push_back(start(works[next], next));
      ++next;
    }
    std::vector<pollfd> fds;
    for (const Child& child : running) fds.push_back({child.fd, POLLIN, 0});
    if (poll(fds.data(), fds.size(), -1) < 0 && errno != EINTR)
      throw CheckFailure(fmt::format("waiting for a simulation: {}", std::strerror(errno)));
    for (std::size_t i = running.size(); i-- > 0;) {
      if (!(fds[i].revents & (POLLIN | POLLHUP | POLLERR))) continue;
      const Child child = running[i];
      Outcome& outcome = outcomes[child.work];
      if (read_some(child, outcome.bytes)) continue;
      close(child.fd);
      while (waitpid(child.pid, &outcome.status, 0) < 0 && errno == EINTR) {
      }
      running.erase(running.begin() + static_cast<std::ptrdiff_t>(i));
      if (ended && !tell(ended, child.work, outcome)) last = next;
    }
  }
  std::vector<std::string> results;
  results.reserve(outcomes.size());
  for (std::size_t i = 0; i < next; ++i) results.push_back(result_of(std::move(outcomes[i])));
  results.resize(works.size());
  return results;
}

std::string run_isolated(const IsolatedWork& work) { return std::move(run_isolated_all({work}, 1).front()); }

}  // namespace hyperoffload
