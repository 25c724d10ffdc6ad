#include "test/planner/families.h"

#include <algorithm>
#include <utility>

#include "planner/analysis/liveness.h"
#include "test/planner/toy.h"

namespace hyperoffload {
namespace {

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15ULL + 1) {}
  double real(double from, double to) {  // splitmix64
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return from + (to - from) * static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53;
  }
  int pick(int from, int to) { return from + static_cast<int>(real(0, 1) * (to - from + 1)); }

 private:
  std::uint64_t state_;
};

using Ids = std::vector<TensorId>;

std::string name(const char* what, int i) { return what + std::to_string(i); }

// Forward, then backward with weight gradients and an update, as deep as `size` ops allow.
void chain(toy::Toy& t, Dice& dice, int size, bool even, int skip) {
  const int depth = std::max(2, size / 3), base = static_cast<int>(t.spec.ops.size());
  Ids x{t.tensor(name("in", base), 1000, TensorKind::kInput)}, w;
  const auto bytes = [&] { return even ? 1000 : dice.pick(100, 3000); };
  const auto seconds = [&] { return even ? 1.0 : dice.real(0.2, 3); };
  for (int i = 0; i < depth; ++i) {
    w.push_back(t.weight(name("w", base + i), bytes()));
    x.push_back(t.activation(name("x", base + i), bytes()));
    Ids reads{x[i], w[i]};
    if (skip > 0 && i >= skip && dice.real(0, 1) < 0.4)
      reads.push_back(x[dice.pick(std::max(1, i - 3 * skip), i - 1)]);
    t.op(seconds(), reads, {x[i + 1]});
  }
  TensorId g = t.activation(name("g", base + depth), bytes());
  t.op(seconds(), {x[depth]}, {g});
  for (int i = depth; i-- > 0;) {
    const TensorId next = t.activation(name("g", base + i), bytes());
    const TensorId dw =
        t.tensor(name("dw", base + i), t.spec.tensors[w[i].index()].bytes.value, TensorKind::kGradient);
    t.op(2 * seconds(), {g, x[i], w[i]}, {next, dw});
    t.op(0.2 * seconds(), {dw, w[i]}, {w[i]});
    g = next;
  }
}

// Weights read one after another, iteration after iteration; some a few times, some with a cache to update.
void stream(toy::Toy& t, Dice& dice, int size) {
  const int base = static_cast<int>(t.spec.ops.size());
  const bool even = dice.real(0, 1) < 0.5;
  TensorId x = t.tensor(name("in", base), 50, TensorKind::kInput);
  for (int i = 0; i < size; ++i) {
    Ids reads{x, t.weight(name("w", base + i), even ? 1000 : dice.pick(200, 3000))}, writes;
    if (dice.real(0, 1) < 0.2) {
      reads.push_back(t.tensor(name("kv", base + i), dice.pick(100, 600), TensorKind::kKv));
      writes.push_back(reads.back());
    }
    writes.push_back(x = t.activation(name("x", base + i), 50));
    t.op(even ? 1.0 : dice.real(0.2, 2), reads, writes);
  }
}

// Layers of a router and a few of many experts; which ones is known.
void experts(toy::Toy& t, Dice& dice, int size) {
  const int base = static_cast<int>(t.spec.ops.size()), pool = std::max(4, size / 3);
  Ids w;
  for (int e = 0; e < pool; ++e) w.push_back(t.weight(name("e", base + e), dice.pick(500, 2500)));
  TensorId x = t.tensor(name("in", base), 200, TensorKind::kInput);
  for (int i = 0; i < size; ++i) {
    Ids reads{x, w[dice.pick(0, pool - 1)]};
    if (dice.real(0, 1) < 0.5) reads.push_back(w[dice.pick(0, pool - 1)]);
    const TensorId y = t.activation(name("x", base + i), dice.pick(50, 400));
    t.op(dice.real(0.3, 2), reads, {y});
    x = y;
  }
}

}  // namespace

const char* to_string(Family family) {
  constexpr const char* kNames[] = {"even-chain", "uneven-chain", "weight-stream",
                                    "skips",      "experts",      "mixture"};
  return kNames[static_cast<int>(family)];
}

FamilyCase family_case(Family family, std::uint64_t seed, int size, double load) {
  toy::Toy t;
  Dice dice(seed * 8 + static_cast<std::uint64_t>(family));
  switch (family) {
    case Family::kEvenChain:
      chain(t, dice, size, true, 0);
      break;
    case Family::kUnevenChain:
      chain(t, dice, size, false, 0);
      break;
    case Family::kWeightStream:
      stream(t, dice, size);
      break;
    case Family::kSkips:
      chain(t, dice, size, false, 2);
      break;
    case Family::kExperts:
      experts(t, dice, size);
      break;
    case Family::kMixture:
      stream(t, dice, size / 3);
      experts(t, dice, size / 3);
      chain(t, dice, size / 3, false, 1);
      break;
  }
  FamilyCase result{build_graph(std::move(t.spec)), toy::machine(1LL << 50), 0, family == Family::kWeightStream || seed % 3 == 0};
  const FlatGraph flat(result.graph, result.hardware);
  const Liveness liveness(flat, {result.repeats, 0});
  result.peak = *std::max_element(liveness.resident.begin(), liveness.resident.end());
  double seconds = 0;
  for (const OpCost& cost : flat.cost) seconds += cost.alone.value;
  const BytesPerSecond rate(static_cast<double>(result.peak) / (load * seconds));
  result.hardware.link_read.bandwidth = result.hardware.link_write.bandwidth = rate;
  result.hardware.hbm_bandwidth = BytesPerSecond(1e6 * rate.value);
  return result;
}

}  // namespace hyperoffload
