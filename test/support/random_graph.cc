#include "test/support/random_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace hyperoffload {
namespace {

constexpr double kComputeRate = 1e12;  // FLOP/s of the random machine
constexpr double kHbmRate = 8e9;       // bytes/s that kernels are sized for
constexpr double kLinkRate = 1e9;      // bytes/s: a typical tensor in a typical op's time
constexpr double kMicro = 1e-6;

class Draft {
 public:
  Draft(const RandomGraphOptions& options, Rng& rng) : options_(options), rng_(rng) {
    spec_.name = to_string(options.shape);
  }

  TensorId tensor(const std::string& name, TensorKind kind) {
    Tensor t;
    t.name = name;
    t.kind = kind;
    t.persistent = persistent_by_default(kind);
    t.bytes = size();
    spec_.tensors.push_back(t);
    return TensorId(spec_.tensors.size() - 1);
  }
  OpId op(const std::string& name, std::vector<TensorId> reads, std::vector<TensorId> writes) {
    Op o;
    o.name = name;
    o.reads = std::move(reads);
    o.writes = std::move(writes);
    o.engine = EngineId(0);
    give_cost(o);
    if (rng_.chance(0.15)) o.workspace = size();
    spec_.ops.push_back(o);
    return OpId(spec_.ops.size() - 1);
  }
  Op& at(OpId o) { return spec_.ops[o.index()]; }

  Graph build() {
    add_inputs();
    if (rng_.chance(0.15)) tensor("untouched", TensorKind::kKv);
    if (rng_.chance(0.1)) tensor("unread", TensorKind::kInput);
    if (rng_.chance(0.1)) tensor("unborn", TensorKind::kActivation);
    spread_over_engines();
    add_after();
    for (Tensor& t : spec_.tensors)
      if (t.persistent && rng_.chance(0.15)) t.initial = Tier::kPool;
    return build_graph(std::move(spec_));
  }

 private:
  Bytes size() {
    if (rng_.chance(0.04)) return Bytes(0);
    return Bytes(options_.tied ? 1000 * rng_.between(1, 8) : rng_.between(1, 8000));
  }
  double microseconds() {
    if (rng_.chance(0.06)) return 0;
    return options_.tied ? static_cast<double>(rng_.between(1, 10)) : rng_.real(0.01, 10);
  }

  void give_cost(Op& o) {
    const double us = microseconds();
    const double moved =
        std::floor(us * kMicro * kHbmRate * (options_.tied ? rng_.pick(1, 4) / 4.0 : rng_.real(0, 1.3)));
    switch (rng_.pick(0, 5)) {
      case 0:  // demand spread over a duration
        o.duration = Seconds(us * kMicro);
        o.hbm_bytes = Bytes(static_cast<std::int64_t>(moved));
        break;
      case 1:
        o.flops = Flops(us * kMicro * kComputeRate);
        break;
      case 2:
        o.hbm_bytes = Bytes(static_cast<std::int64_t>(moved));
        break;
      case 3:  // roofline
        o.flops = Flops(us * kMicro * kComputeRate);
        o.hbm_bytes = Bytes(static_cast<std::int64_t>(moved));
        break;
      default:
        o.duration = Seconds(us * kMicro);
    }
  }

  void add_inputs() {
    for (int i = rng_.pick(0, 2); i-- > 0;) {
      const TensorId t = tensor(fmt::format("in{}", i), TensorKind::kInput);
      if (rng_.chance(0.5)) spec_.tensors.back().bytes = Bytes(4 * spec_.tensors.back().bytes.value);
      const auto last = static_cast<std::int64_t>(spec_.ops.size()) - 1;
      for (int uses = rng_.pick(1, 3); uses-- > 0;) {
        // Often late, so that what is done with it reaches into the next iteration.
        Op& o = spec_.ops[static_cast<std::size_t>(rng_.between(rng_.chance(0.3) ? last : 0, last))];
        o.reads.push_back(t);
        if (rng_.chance(0.1)) o.writes.push_back(t);
      }
    }
  }

  void spread_over_engines() {
    if (!options_.engines) return;
    spec_.engines = {"compute", "comm", "host"};
    for (Op& o : spec_.ops) {
      const double dice = rng_.real(0, 1);
      o.engine = EngineId(dice < 0.6 ? 0 : dice < 0.8 ? 1 : 2);
      if (options_.pool_ops && o.engine == EngineId(2) && rng_.chance(0.7)) o.memory = Tier::kPool;
    }
  }

  void add_after() {
    for (std::size_t i = 1; i < spec_.ops.size(); ++i)
      if (rng_.chance(0.06))
        spec_.ops[i].after.push_back(
            OpId(static_cast<std::int32_t>(rng_.between(0, static_cast<std::int64_t>(i) - 1))));
  }

  const RandomGraphOptions& options_;
  Rng& rng_;
  GraphSpec spec_;
};

// Weights used round and round, activations handed on.
void weight_stream(Draft& d, int size, Rng& rng) {
  const int count = rng.pick(2, std::max(2, size));
  std::vector<TensorId> weights;
  for (int i = 0; i < count; ++i) weights.push_back(d.tensor(fmt::format("w{}", i), TensorKind::kWeight));
  TensorId last;
  for (int i = 0; i < size; ++i) {
    std::vector<TensorId> reads{weights[static_cast<std::size_t>(i % count)]};
    if (!last.is_none()) reads.push_back(last);
    last = d.tensor(fmt::format("x{}", i), TensorKind::kActivation);
    d.op(fmt::format("layer{}", i), reads, {last});
  }
}

// Forward, backward reading the activations in reverse, then optimizer states updated in place.
void training(Draft& d, int size, Rng& rng) {
  const int layers = std::max(1, size / 3);
  std::vector<TensorId> w, x, dw;
  for (int i = 0; i < layers; ++i) w.push_back(d.tensor(fmt::format("w{}", i), TensorKind::kWeight));
  for (int i = 0; i < layers; ++i) {
    x.push_back(d.tensor(fmt::format("x{}", i), TensorKind::kActivation));
    std::vector<TensorId> reads{w[static_cast<std::size_t>(i)]};
    if (i > 0) reads.push_back(x[static_cast<std::size_t>(i - 1)]);
    d.op(fmt::format("forward{}", i), reads, {x.back()});
  }
  TensorId g = x.back();
  dw.resize(w.size());
  for (int i = layers - 1; i >= 0; --i) {
    const auto l = static_cast<std::size_t>(i);
    const TensorId next = d.tensor(fmt::format("g{}", i), TensorKind::kGradient);
    dw[l] = d.tensor(fmt::format("dw{}", i), TensorKind::kGradient);
    std::vector<TensorId> reads{w[l], g};
    if (i > 0) reads.push_back(x[l - 1]);
    d.op(fmt::format("backward{}", i), reads, {next, dw[l]});
    g = next;
  }
  for (int i = 0; i < layers; ++i) {
    const auto l = static_cast<std::size_t>(i);
    const TensorId state = d.tensor(fmt::format("m{}", i), TensorKind::kOptimizer);
    d.op(fmt::format("step{}", i), {w[l], dw[l], state}, {w[l], state});
  }
  if (rng.chance(0.3)) d.op("last", {g}, {});
}

// A chain in which outputs are read again much later.
void skips(Draft& d, int size, Rng& rng) {
  std::vector<TensorId> x;
  for (int i = 0; i < size; ++i) {
    std::vector<TensorId> reads;
    if (!x.empty()) reads.push_back(x.back());
    for (int more = rng.pick(0, 2); more-- > 0 && !x.empty();) reads.push_back(rng.one_of(x));
    x.push_back(d.tensor(fmt::format("x{}", i), TensorKind::kActivation));
    std::vector<TensorId> writes{x.back()};
    if (x.size() > 2 && rng.chance(0.15))
      writes.push_back(x[static_cast<std::size_t>(rng.pick(0, static_cast<int>(x.size()) - 2))]);
    d.op(fmt::format("op{}", i), reads, writes);
  }
}

// A router, then some of the layer's experts, whose reads are known once the router is done.
void experts(Draft& d, int size, Rng& rng) {
  const int each = rng.pick(2, 5);
  TensorId x = d.tensor("x", TensorKind::kActivation);
  d.op("embed", {}, {x});
  for (int layer = 0; layer < std::max(1, size / 4); ++layer) {
    std::vector<TensorId> weights;
    for (int e = 0; e < each; ++e)
      weights.push_back(d.tensor(fmt::format("expert{}.{}", layer, e), TensorKind::kWeight));
    const TensorId route = d.tensor(fmt::format("route{}", layer), TensorKind::kActivation);
    const OpId router = d.op(fmt::format("router{}", layer), {x}, {route});
    const TensorId sum = d.tensor(fmt::format("y{}", layer), TensorKind::kActivation);
    bool first = true;
    for (int e = 0; e < each; ++e) {
      if (!rng.chance(0.5)) continue;
      std::vector<TensorId> reads{x, route, weights[static_cast<std::size_t>(e)]};
      if (!first) reads.push_back(sum);
      first = false;
      d.at(d.op(fmt::format("run{}.{}", layer, e), reads, {sum})).known_after = router;
    }
    if (first) d.op(fmt::format("pass{}", layer), {x, route}, {sum});
    x = sum;
  }
}

// Long-lived state read, overwritten without a read, or updated in place, at random.
void states(Draft& d, int size, Rng& rng) {
  std::vector<TensorId> all;
  for (int i = rng.pick(2, 5); i-- > 0;)
    all.push_back(
        d.tensor(fmt::format("s{}", i), rng.chance(0.5) ? TensorKind::kKv : TensorKind::kOptimizer));
  for (int i = 0; i < size; ++i) {
    std::vector<TensorId> reads, writes;
    for (int n = rng.pick(0, 2); n-- > 0;) reads.push_back(rng.one_of(all));
    for (int n = rng.pick(0, 2); n-- > 0;) writes.push_back(rng.one_of(all));
    if (rng.chance(0.4))
      writes.push_back(all.emplace_back(d.tensor(fmt::format("t{}", i), TensorKind::kOther)));
    d.op(fmt::format("op{}", i), reads, writes);
  }
}

}  // namespace

const char* to_string(Shape shape) {
  switch (shape) {
    case Shape::kWeightStream:
      return "weight stream";
    case Shape::kTraining:
      return "training";
    case Shape::kSkips:
      return "skips";
    case Shape::kExperts:
      return "experts";
    case Shape::kStates:
      return "states";
  }
  return "";
}

Graph random_graph(const RandomGraphOptions& options, Rng& rng) {
  Draft draft(options, rng);
  switch (options.shape) {
    case Shape::kWeightStream:
      weight_stream(draft, options.size, rng);
      break;
    case Shape::kTraining:
      training(draft, options.size, rng);
      break;
    case Shape::kSkips:
      skips(draft, options.size, rng);
      break;
    case Shape::kExperts:
      experts(draft, options.size, rng);
      break;
    case Shape::kStates:
      states(draft, options.size, rng);
      break;
  }
  return draft.build();
}

Hardware random_hardware(const Graph& graph, bool tied, Rng& rng) {
  Hardware h;
  h.name = "random";
  h.compute = FlopsPerSecond(kComputeRate);
  const double ease = rng.one_of(std::vector<double>{0.25, 1, 1, 4});
  const auto link = [&] {
    LinkDirection l;
    l.bandwidth = BytesPerSecond(kLinkRate * ease *
                                 (tied ? rng.one_of(std::vector<double>{0.5, 1, 2}) : rng.real(0.4, 2)));
    l.latency = rng.chance(0.4) ? Seconds(0) : Seconds(kMicro * (tied ? rng.pick(1, 2) : rng.real(0, 3)));
    return l;
  };
  h.link_read = link();
  h.link_write = link();
  const double scarce = rng.one_of(std::vector<double>{1000, 1, 1, 0.5, 0.2});
  h.hbm_bandwidth = BytesPerSecond(kHbmRate * scarce * (tied ? 1 : rng.real(0.6, 1.5)));
  if (rng.chance(0.2))
    h.pool_read_port = BytesPerSecond(h.link_read.bandwidth.value * (tied ? 0.5 : rng.real(0.5, 1.5)));
  if (rng.chance(0.2))
    h.pool_write_port = BytesPerSecond(h.link_write.bandwidth.value * (tied ? 0.5 : rng.real(0.5, 1.5)));
  h.host = HostCompute{FlopsPerSecond(kComputeRate / 2), BytesPerSecond(kLinkRate * 4)};
  Bytes all;
  for (const Tensor& t : graph.tensors()) all += t.bytes;
  for (const Op& o : graph.ops()) all += o.workspace;
  h.hbm_reserved = rng.chance(0.2) ? Bytes(rng.between(1, 5000)) : Bytes(0);
  h.hbm_capacity = all + h.hbm_reserved;
  h.pool_capacity = all;
  return h;
}

std::string describe(const Graph& graph) {
  std::string text = fmt::format("graph \"{}\":\n", graph.name());
  for (const Tensor& t : graph.tensors())
    text += fmt::format("  tensor {}: {} B, {}{}{}\n", t.name, t.bytes.value, to_string(t.kind),
                        t.persistent ? ", persistent" : "", t.initial == Tier::kPool ? ", initial pool" : "");
  const auto names = [&](const std::vector<TensorId>& list) {
    std::string joined;
    for (TensorId t : list) joined += " " + graph.tensor(t).name;
    return joined;
  };
  for (std::size_t i = 0; i < graph.ops().size(); ++i) {
    const Op& o = graph.ops()[i];
    text += fmt::format("  op {} {} on {}{}:", i, o.name, graph.engines()[o.engine.index()],
                        o.memory == Tier::kPool ? " in the pool" : "");
    if (o.duration) text += fmt::format(" {:.17g} s", o.duration->value);
    if (o.flops) text += fmt::format(" {:.17g} flop", o.flops->value);
    if (o.hbm_bytes) text += fmt::format(" {} B of HBM", o.hbm_bytes->value);
    if (o.workspace > Bytes(0)) text += fmt::format(" workspace {}", o.workspace.value);
    text += fmt::format("; reads{}; writes{}", names(o.reads), names(o.writes));
    for (OpId a : o.after) text += fmt::format("; after {}", a.value);
    text += "\n";
  }
  return text;
}

std::string describe(const Hardware& h) {
  std::string text = fmt::format(
      "hardware: HBM {} B (reserved {}) at {:.17g} B/s, pool {} B, read {:.17g} B/s + {:.17g} s, write "
      "{:.17g} B/s + {:.17g} s",
      h.hbm_capacity.value, h.hbm_reserved.value, h.hbm_bandwidth.value, h.pool_capacity.value,
      h.link_read.bandwidth.value, h.link_read.latency.value, h.link_write.bandwidth.value,
      h.link_write.latency.value);
  if (h.pool_read_port) text += fmt::format(", read port {:.17g} B/s", h.pool_read_port->value);
  if (h.pool_write_port) text += fmt::format(", write port {:.17g} B/s", h.pool_write_port->value);
  return text + fmt::format(", {:.17g} FLOP/s\n", h.compute.value);
}

}  // namespace hyperoffload
