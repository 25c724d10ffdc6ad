// How long packing takes, and how high it gets: one line a file of `id,lower,upper,size`.
// Usage: bench_pack FILE.csv... (scripts/bench_pack.sh builds and runs it)
#include <fmt/format.h>

#include <chrono>

#include "test/planner/packing.h"

using namespace hyperoffload;

int main(int count, char** files) {
  fmt::print("{:28} {:>6} {:>10} {:>10} {:>14} {:>8} {:>8}  {}\n", "file", "items", "peak", "height",
             "first fit", "nodes", "seconds", "by");
  for (int f = 1; f < count; ++f) {
    const std::vector<PackItem> items = read_minimalloc(files[f]);
    const auto start = std::chrono::steady_clock::now();
    const Packing packing = pack(items);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    if (const std::string fault = packing_fault(items, packing.offsets, packing.height); !fault.empty()) {
      fmt::print(stderr, "{}: {}\n", files[f], fault);
      return 1;
    }
    const std::string path = files[f];
    fmt::print("{:28} {:>6} {:>10} {:>10} {:>14} {:>8} {:>8.2f}  {}\n", path.substr(path.rfind('/') + 1),
               items.size(), packing.peak, packing.height, packing.first_fit_by_size, packing.nodes,
               took.count(), packing.method);
  }
}
