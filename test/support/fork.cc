#include "test/support/fork.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <type_traits>

#include "sim/model/check.h"
#include "sim/model/error.h"

namespace hyperoffload {
namespace {

struct Child {
  pid_t pid = -1;
  int pipe = -1;
};

void write_all(int file, const std::string& text) {
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t n = write(file, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) _exit(2);
    done += static_cast<std::size_t>(n);
  }
}

// One letter says what follows: a result, or an exception of that kind.
std::string outcome(const std::function<std::string()>& work) {
  try {
    return "R" + work();
  } catch (const InputError& e) {
    return std::string("I") + e.what();
  } catch (const InfeasibleError& e) {
    return std::string("F") + e.what();
  } catch (const CheckFailure& e) {
    return std::string("C") + e.what();
  } catch (const std::exception& e) {
    return std::string("E") + e.what();
  } catch (...) {
    return "Ean unknown exception";
  }
}

Child start_child(const std::function<std::string()>& work) {
  int ends[2];
  if (pipe(ends) != 0) throw std::runtime_error(std::string("pipe: ") + std::strerror(errno));
  const pid_t pid = fork();
  if (pid < 0) throw std::runtime_error(std::string("fork: ") + std::strerror(errno));
  if (pid == 0) {
    close(ends[0]);
    write_all(ends[1], outcome(work));
    _exit(0);
  }
  close(ends[1]);
  return {pid, ends[0]};
}

std::string read_all(int file) {
  std::string text;
  char buffer[1 << 16];
  for (;;) {
    const ssize_t n = read(file, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    text.append(buffer, static_cast<std::size_t>(n));
  }
  close(file);
  return text;
}

std::string finish_child(const Child& child) {
  const std::string text = read_all(child.pipe);
  int status = 0;
  while (waitpid(child.pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status))
    throw std::runtime_error(std::string("the child died: ") + strsignal(WTERMSIG(status)));
  if (text.empty())
    throw std::runtime_error("the child left with status " + std::to_string(WEXITSTATUS(status)) +
                             " and no result");
  const std::string rest = text.substr(1);
  switch (text[0]) {
    case 'R':
      return rest;
    case 'I':
      throw InputError(rest);
    case 'F':
      throw InfeasibleError(rest);
    case 'C':
      throw CheckFailure(rest);
    default:
      throw std::runtime_error(rest);
  }
}

// --- records as bytes: plain structs one after another, vectors with their length in front ---
void put(std::string& out, const void* data, std::size_t size) {
  out.append(static_cast<const char*>(data), size);
}

template <class T>
void put(std::string& out, const T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  put(out, &value, sizeof value);
}
template <class T>
void put(std::string& out, const std::vector<T>& list) {
  put(out, list.size());
  for (const T& value : list) put(out, value);
}

struct Reader {
  const std::string& bytes;
  std::size_t at = 0;

  template <class T>
  void get(T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    HYPER_CHECK(sizeof value <= bytes.size() - at, "a record is cut short");
    std::memcpy(static_cast<void*>(&value), bytes.data() + at, sizeof value);
    at += sizeof value;
  }
  template <class T>
  void get(std::vector<T>& list) {
    std::size_t size = 0;
    get(size);
    HYPER_CHECK(size <= (bytes.size() - at) / sizeof(T), "a record is cut short");
    list.resize(size);
    for (T& value : list) get(value);
  }
};

}  // namespace

std::string run_in_child(const std::function<std::string()>& work) { return finish_child(start_child(work)); }

RunRecord record_from_child(const std::function<RunRecord()>& work) {
  return decode_record(run_in_child([&] { return encode_record(work()); }));
}

std::vector<std::string> run_in_children(int jobs, const std::function<std::string(int)>& work) {
  std::vector<Child> children;
  for (int i = 0; i < jobs; ++i) children.push_back(start_child([&, i] { return work(i); }));
  std::vector<std::string> results;
  std::exception_ptr first_failure;
  for (const Child& child : children) {  // every child is waited for, whatever fails
    try {
      results.push_back(finish_child(child));
    } catch (...) {
      if (!first_failure) first_failure = std::current_exception();
    }
  }
  if (first_failure) std::rethrow_exception(first_failure);
  return results;
}

std::string encode_record(const RunRecord& record) {
  std::string out;
  put(out, record.iterations);
  put(out, record.full);
  put(out, record.pool_peak);
  put(out, record.npus.size());
  for (const NpuRecord& npu : record.npus) {
    put(out, npu.ops);
    put(out, npu.transfers);
    put(out, npu.memory);
    put(out, npu.iteration_start);
    put(out, npu.iteration_end);
    put(out, npu.hbm_peak);
  }
  return out;
}

RunRecord decode_record(const std::string& bytes) {
  RunRecord record;
  Reader in{bytes};
  std::size_t npus = 0;
  in.get(record.iterations);
  in.get(record.full);
  in.get(record.pool_peak);
  in.get(npus);
  for (std::size_t i = 0; i < npus; ++i) {
    NpuRecord& npu = record.npus.emplace_back();
    in.get(npu.ops);
    in.get(npu.transfers);
    in.get(npu.memory);
    in.get(npu.iteration_start);
    in.get(npu.iteration_end);
    in.get(npu.hbm_peak);
  }
  HYPER_CHECK(in.at == bytes.size(), "a record has bytes left over");
  return record;
}

}  // namespace hyperoffload
