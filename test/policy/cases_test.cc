// Public reports of people who offload weights and activations, with the figures that follow from theirs. Each case
// names its thread. GB = 1e9 B.
#include <algorithm>

#include "app/evaluate.h"
#include "sim/report/table.h"
#include "sim/model/check_plan.h"
#include "test/support/catch.h"
#include "test/support/simulate.h"
#include "test/support/toy.h"

using namespace hyperoffload;

namespace {

constexpr double kGB = 1e9;

Result run(const Toy& toy, const std::string& policy, int iterations = 3) {
  const Graph graph = toy.graph();
  return evaluate({graph, toy.hardware, iterations}, parse_policy(policy, "")).result;
}

// `layers` layers, each with weights of so many bytes that one op of so many seconds reads.
Toy stream(int layers, double bytes, double seconds, Tier initial = Tier::kHbm) {
  Toy toy;
  for (int i = 0; i < layers; ++i) toy.weight(static_cast<std::int64_t>(bytes), initial);
  for (int i = 0; i < layers; ++i) {
    Op& op = toy.at(toy.op(seconds / Toy::kMicro, {TensorId(static_cast<std::size_t>(i))}, {}));
    op.layer = i;
  }
  toy.hardware.pool_capacity = Bytes(static_cast<std::int64_t>(10e12));
  return toy;
}

void set_link(Toy& toy, double bytes_per_s) {
  toy.hardware.link_read.bandwidth = toy.hardware.link_write.bandwidth = BytesPerSecond(bytes_per_s);
}

// A training step of one stack of layers: forward keeps `kept` bytes a layer for backward, in `parts` tensors.
Toy training(int layers, std::int64_t kept, int parts, double forward_us, double backward_us) {
  Toy toy;
  std::vector<std::vector<TensorId>> saved(static_cast<std::size_t>(layers));
  for (auto& list : saved)
    for (int p = 0; p < parts; ++p) list.push_back(toy.activation(kept / parts));
  for (int i = 0; i < 2 * layers; ++i) {
    const bool forward = i < layers;
    const int layer = forward ? i : 2 * layers - 1 - i;
    auto list = saved[static_cast<std::size_t>(layer)];
    const auto none = std::vector<TensorId>{};
    Op& op = toy.at(toy.op(forward ? forward_us : backward_us, forward ? none : list, forward ? list : none));
    op.layer = layer;
    op.phase = forward ? "forward" : "backward";
  }
  return toy;
}

// One stage of a pipeline under 1F1B, as PipeOffload counts it (arXiv 2503.01328): a transformer layer keeps 34sh bytes and
// takes 24sh^2 + 4s^2h FLOPs forward, twice that backward, at batch 1; an A100 at 50 % of its 312 TFLOPS, 25 GB/s each way.
// Slot t runs forward microbatch t, then backward microbatch t - depth. Where there is none yet, or none left, the stage waits
// for the others: a bubble as long as the work; `packed` leaves the bubbles out.
struct Stage {
  static constexpr int kLayers = 8, kMicrobatches = 16, kDepth = 5;
  Toy toy;
  std::int64_t layer_bytes;
  double slot_seconds;  // one microbatch forward and one backward
  double k;             // one way of a microbatch's bytes over slot_seconds

  Stage(double h, double s, bool packed) : layer_bytes(static_cast<std::int64_t>(34 * s * h)) {
    toy.hardware.compute = FlopsPerSecond(156e12);
    toy.hardware.pool_capacity = Bytes(static_cast<std::int64_t>(10e12));
    toy.hardware.link_read.bandwidth = toy.hardware.link_write.bandwidth = BytesPerSecond(25e9);
    const double flops = 24 * s * h * h + 4 * s * s * h;
    slot_seconds = kLayers * 3 * flops / 156e12;
    k = (34 / 25e9) / ((72 * h + 12 * s) / 156e12);
    std::vector<TensorId> kept;
    for (int i = 0; i < kMicrobatches * kLayers; ++i) kept.push_back(toy.activation(layer_bytes));
    for (int slot = 0; slot < kMicrobatches + kDepth; ++slot)
      for (bool backward : {false, true}) {
        const int microbatch = backward ? slot - kDepth : slot;
        const bool bubble = microbatch < 0 || microbatch >= kMicrobatches;
        if (bubble && packed) continue;
        for (int i = 0; i < kLayers; ++i) {
          const int layer = backward ? kLayers - 1 - i : i;
          std::vector<TensorId> own;
          if (!bubble) own.push_back(kept[static_cast<std::size_t>(microbatch * kLayers + layer)]);
          const auto none = std::vector<TensorId>{};
          Op& op = toy.at(toy.op(0, backward ? own : none, backward ? none : own));
          op.duration.reset();
          op.flops = Flops((backward ? 2 : 1) * flops);
        }
      }
  }
  // HBM in layers of one microbatch: what is not offloaded of all microbatches in flight, and of what is, the microbatch that
  // is on its way (two thirds of one out as its forward ends, one third of another in), with a layer at work each way.
  double layers_left(double offloaded) const {
    return (1 - offloaded) * kLayers * (kDepth + 1) + offloaded * kLayers + 2;
  }
  NpuFigures run(double hbm_layers) {
    toy.hardware.hbm_capacity = Bytes(static_cast<std::int64_t>(hbm_layers * static_cast<double>(layer_bytes)));
    const Result result = ::run(toy, "graph", 1);
    REQUIRE(result.fits);
    return result.figures();
  }
};

// Not sliding_window, which keeps a buffer free, nor zero_offload, which always moves the optimizer.
const std::vector<std::string> kMoveWhenShort = {"graph",       "on_demand",          "greedy_gap", "fixed_distance",
                                                 "layer_ahead", "activation_offload", "recompute"};

}  // namespace

TEST_CASE("case 5: overlap can't save more than the smaller of loading and computing") {
  // vllm-project/vllm pull 6317: loading takes 176.3 s, computing 0.9 s. One after another: 177.2 s. With overlap at
  // best 176.3 s and the last layer: 0.5 % less.
  const int layers = 20;
  Toy toy = stream(layers, 176.3 / layers * kGB, 0.9 / layers, Tier::kPool);
  set_link(toy, kGB);
  toy.hardware.hbm_capacity = Bytes(static_cast<std::int64_t>(3 * 176.3 / layers * kGB));
  const Result serial = run(toy, "on_demand", 1), best = run(toy, "graph", 1);
  CHECK(serial.figures().iteration.value == Approx(177.2).epsilon(1e-6));
  CHECK(best.figures().iteration.value >= 176.3);
  CHECK(best.figures().iteration.value == Approx(176.3 + 0.9 / layers).epsilon(1e-6));
  CHECK(best.binding.resource == "pool_to_hbm_bandwidth");
}

TEST_CASE("case 5: what HBM does not hold crosses the link for every token") {
  // The same thread: 141.1 GB of weights, 90.4 GB of HBM, 450 GB/s: at least 50.7 GB a token, 0.1127 s, 8.9 tokens/s.
  const int layers = 80;
  Toy toy = stream(layers, 141.1 * kGB / layers, 0.03 / layers);
  set_link(toy, 450 * kGB);
  toy.hardware.hbm_capacity = Bytes(static_cast<std::int64_t>(90.4 * kGB));
  const Result best = run(toy, "graph", 3);
  CHECK(static_cast<double>(best.figures().pool_to_hbm.bytes.value) >= 50.7e9);
  CHECK(best.figures().iteration.value >= 50.7 / 450);
  CHECK(best.figures().iteration.value <= 1.1 * 50.7 / 450);
  CHECK(best.bound->stall.value == Approx(50.7 / 450 - 0.03).epsilon(0.02));
  CHECK(best.binding.resource == "pool_to_hbm_bandwidth");
}

TEST_CASE("case 7: HBM is filled first, only the rest streams") {
  // deepspeedai/DeepSpeed issue 3054: OPT-30B, 60 GB of weights, 36 GB of HBM: 24 GB a token, not 60; 2.5 times faster
  // than streaming everything, and the peak just under the limit, not at 5 GB.
  const int layers = 48;
  const double layer = 60 * kGB / layers;  // 1.25 GB
  Toy toy = stream(layers, layer, 1e-3);
  set_link(toy, 25 * kGB);
  toy.hardware.hbm_capacity = Bytes(static_cast<std::int64_t>(36 * kGB));
  const Result everything = run(toy, "layer_ahead:group=1,offload=1,step=2");
  CHECK(everything.figures().pool_to_hbm.bytes.value == Approx(60 * kGB).epsilon(1e-6));
  for (const char* policy : {"graph", "layer_ahead:group=48"}) {
    INFO(policy);
    const Result filled = run(toy, policy);
    REQUIRE(filled.fits);
    // One or two layers' room is for those on their way.
    CHECK(static_cast<double>(filled.figures().pool_to_hbm.bytes.value) >= 24 * kGB);
    CHECK(static_cast<double>(filled.figures().pool_to_hbm.bytes.value) <= 24 * kGB + 2 * layer);
    CHECK(filled.hbm_peak.value >= static_cast<std::int64_t>(36 * kGB - 2 * layer));
    CHECK(everything.figures().iteration.value >= 2.2 * filled.figures().iteration.value);
  }
}

TEST_CASE("case 8: nothing is offloaded where all fits, and something as soon as it does not") {
  // sgl-project/sglang pull 21248: offloading on although the model fits costs 60 to 80 %; the switch must flip where the
  // peak meets the capacity.
  for (Toy toy : {stream(8, 1e6, 1e-6), training(6, 60'000, 2, 10, 20)}) {
    toy.hardware.hbm_capacity = Bytes(1'000'000'000);
    const Bytes peak = run(toy, "resident").hbm_peak;
    for (const std::string& name : kMoveWhenShort) {
      INFO(name);
      toy.hardware.hbm_capacity = peak;
      const Result fits = run(toy, name);
      if (!fits.has_figures()) continue;  // not for this kind of program: it says why
      CHECK(fits.figures().stall.value == Approx(0).margin(1e-15));
      CHECK(fits.figures().pool_to_hbm.bytes + fits.figures().hbm_to_pool.bytes == Bytes(0));
      if (name == "recompute") continue;  // it never moves anything
      toy.hardware.hbm_capacity = peak - Bytes(1);
      const Result short_of_one = run(toy, name);
      CHECK((!short_of_one.fits || short_of_one.pool_peak > Bytes(0)));
    }
  }
}

TEST_CASE("case 11: experts move one by one, not their whole layer") {
  // lvyufeng/PocketLLM pull 253: by layer it moved 14.6 times what the block needs. 73 experts of which 5 are used: 14.6.
  const auto moved = [](bool by_expert) {
    Toy toy;
    std::vector<TensorId> experts, used;
    if (by_expert) {
      for (int e = 0; e < 73; ++e) experts.push_back(toy.weight(1'000, Tier::kPool));
      for (std::size_t e = 0; e < 5; ++e) used.push_back(experts[14 * e]);
    } else {
      used.push_back(toy.weight(73'000, Tier::kPool));
    }
    toy.op(10, {}, {});
    toy.op(10, used, {});
    toy.hardware.hbm_capacity = Bytes(73'000);
    std::vector<std::int64_t> bytes;
    for (const char* policy : {"graph", "on_demand", "sliding_window", "greedy_gap"})
      bytes.push_back(run(toy, policy, 1).figures().pool_to_hbm.bytes.value);
    return bytes;
  };
  CHECK(moved(true) == std::vector<std::int64_t>(4, 5'000));
  CHECK(moved(false) == std::vector<std::int64_t>(4, 73'000));
}

TEST_CASE("case 12: what only the router knows is not loaded before it") {
  // ggml-org/llama.cpp pull 21067: loading experts before the router means loading all of them. Here a trace names those
  // that were used, and `known_after` the op that decides: no baseline loads for it earlier.
  Toy toy;
  std::vector<TensorId> experts;
  for (int e = 0; e < 8; ++e) experts.push_back(toy.weight(1'000));
  const OpId router = toy.op(50, {}, {});
  toy.op(50, {}, {});
  for (std::size_t e : {1U, 6U}) {
    Op& op = toy.at(toy.op(50, {experts[e]}, {}));
    op.known_after = router;
    op.layer = 0;
  }
  toy.hardware.hbm_capacity = Bytes(1'500);
  const Graph graph = toy.graph();
  for (const char* name : {"on_demand", "greedy_gap", "fixed_distance:distance=0", "sliding_window"}) {
    INFO(name);
    const Evaluation evaluation = evaluate({graph, toy.hardware, 2, true}, parse_policy(name, ""));
    REQUIRE(evaluation.record);
    for (const NpuRecord& npu : evaluation.record->npus)
      for (const TransferRecord& t : npu.transfers) {
        if (t.direction != Direction::kPoolToHbm) continue;
        const bool in_a_window = std::any_of(npu.ops.begin(), npu.ops.end(), [&](const OpRecord& op) {
          return op.op == router && op.end <= t.start &&
                 t.start < npu.iteration_end[static_cast<std::size_t>(op.iteration)];
        });
        CHECK(in_a_window);
      }
  }
}

TEST_CASE("case 12: loading all experts before the router pays only where its window hides the rest") {
  // The same thread: 28 layers on the host, 28,128 MiB of experts of which the router takes 13,668. All of them may be loaded
  // ahead, through the window w of a layer (attention, router); those that were chosen only once the router is done. So
  // a layer takes max(w, full / B) one way and w + chosen / B the other, and the first is refused where it is slower.
  const int layers = 28;
  const double full = 28'128.0 * 1'048'576 / layers, chosen = 13'668.0 * 1'048'576 / layers, rate = 25 * kGB;
  const double break_even = (full - chosen) / rate;
  const auto seconds = [&](double window, bool ahead) {
    Toy toy;
    set_link(toy, rate);
    toy.hardware.hbm_capacity = Bytes(static_cast<std::int64_t>(3 * full));
    toy.hardware.pool_capacity = Bytes(static_cast<std::int64_t>(layers * full + 1));
    for (int i = 0; i < layers; ++i) {
      const TensorId used = toy.weight(static_cast<std::int64_t>(chosen), Tier::kPool);
      const TensorId rest = toy.weight(static_cast<std::int64_t>(full) - static_cast<std::int64_t>(chosen), Tier::kPool);
      const OpId router = toy.op(window / Toy::kMicro, {}, {});
      Op& experts = toy.at(toy.op(0, {used}, {}));
      if (ahead)
        experts.reads.push_back(rest);
      else
        experts.known_after = router;
    }
    const NpuFigures figures = run(toy, "graph", 1).figures();
    CHECK(static_cast<double>(figures.pool_to_hbm.bytes.value) == Approx(layers * (ahead ? full : chosen)).margin(layers));
    return figures.iteration.value;
  };
  for (double share : {0.01, 0.5, 0.9, 1.1, 2.5}) {
    const double window = share * break_even;
    INFO("window " << share << " of the break-even");
    const double ahead = seconds(window, true), after = seconds(window, false);
    CHECK(after == Approx(layers * (window + chosen / rate)).epsilon(1e-6));
    CHECK(ahead == Approx(layers * std::max(window, full / rate) + std::max(0.0, full / rate - window)).epsilon(0.04));
    CHECK((ahead > after) == (share < 1));
  }
  // A short prompt has next to no window: 28,128 / 13,668 MiB = 2.06 times as slow; the thread saw +48 %.
  CHECK(seconds(0.01 * break_even, true) / seconds(0.01 * break_even, false) == Approx(28'128.0 / 13'668).epsilon(0.02));
}

TEST_CASE("case 38: the same bytes without overlap are slower, and overlap costs at most one tensor of peak") {
  // pytorch/pytorch pulls 167880 and 168316: -1,626 MB for +2.2 % with a stream of its own and reloads just in time.
  Toy toy = training(12, 20'000, 1, 30'000, 60'000);
  toy.hardware.hbm_capacity = Bytes(120'000);  // of 240,000
  const Result sync = run(toy, "fixed_distance:distance=0", 1), async = run(toy, "fixed_distance:distance=1", 1);
  REQUIRE(sync.fits);
  REQUIRE(async.fits);
  CHECK(async.figures().pool_to_hbm.bytes == sync.figures().pool_to_hbm.bytes);
  CHECK(async.figures().iteration < sync.figures().iteration);
  CHECK(async.hbm_peak <= sync.hbm_peak + Bytes(20'000));
}

TEST_CASE("case 39: HBM is released at the later of the copy's end and the last use") {
  // pytorch/torchtitan pull 467: nothing is saved before the copy out has been waited for. 100 B, 0.5 B/us: 200 us out.
  // The next 100 B are born at 60 us: with the copy still under way both are there.
  const auto peak = [](double bytes_per_us) {
    Toy toy;
    const TensorId kept = toy.activation(100), next = toy.activation(100);
    toy.op(10, {}, {kept});
    toy.op(50, {}, {});
    toy.op(10, {}, {next});
    toy.op(1'000, {}, {});
    toy.op(10, {kept}, {});
    toy.store(kept, OpId(0));
    toy.detach(kept, OpId(0));
    toy.prefetch(kept, OpId(2));
    toy.hardware.link_write.bandwidth = BytesPerSecond(bytes_per_us / Toy::kMicro);
    return simulate_plan(toy.graph(), toy.plan, toy.hardware).npus[0].hbm_peak;
  };
  CHECK(peak(0.5) == Bytes(200));    // out until 210 us
  CHECK(peak(2) == Bytes(100));      // out at 60 us, the instant at which the next is born: frees come first
  CHECK(peak(1.99) == Bytes(200));
  // And not before the last use, however early the copy is done.
  Toy toy;
  const TensorId kept = toy.activation(100), next = toy.activation(100);
  toy.op(10, {}, {kept});
  toy.op(500, {kept}, {next});
  toy.op(1'000, {}, {});
  toy.op(10, {kept}, {});
  toy.store(kept, OpId(0));
  toy.detach(kept, OpId(1));
  toy.prefetch(kept, OpId(2));
  toy.hardware.link_write.bandwidth = BytesPerSecond(1e9);
  CHECK(simulate_plan(toy.graph(), toy.plan, toy.hardware).npus[0].hbm_peak == Bytes(200));
}

TEST_CASE("case 41: the peak keeps to its budget and uses it, and more memory never makes a step slower") {
  // pytorch/torchtitan pull 4636: budgets of 69 to 72 GiB end at 68.86 to 71.80; offloading everything is 4 times slower.
  // Here 24 layers keep 1,000 B each in 10 tensors (24,000 B in all); 1 B/us in, 0.5 B/us out.
  Toy toy = training(24, 1'000, 10, 1'000, 2'000);
  double before = 1e300;
  for (int budget = 10'000; budget <= 24'000; budget += 1'000) {
    toy.hardware.hbm_capacity = Bytes(budget);
    const Result result = run(toy, "graph", 2);
    INFO("budget " << budget);
    REQUIRE(result.fits);
    CHECK(result.hbm_peak <= Bytes(budget));
    CHECK(result.hbm_peak >= Bytes(budget - 1'000));
    CHECK(result.figures().iteration.value <= before);
    before = result.figures().iteration.value;
  }
  toy.hardware.hbm_capacity = Bytes(20'000);
  const Result all = run(toy, "activation_offload:layers=24,smallest=1B", 2);
  const Result few = run(toy, "activation_offload:smallest=1B", 2);
  REQUIRE(all.fits);
  REQUIRE(few.fits);
  CHECK(all.figures().pool_to_hbm.bytes > few.figures().pool_to_hbm.bytes);
  CHECK(all.figures().iteration >= few.figures().iteration);
  CHECK(run(toy, "graph", 2).figures().iteration <= few.figures().iteration);
  toy.hardware.hbm_capacity = all.hbm_peak;
  const std::string text = results_answer({run(toy, "graph", 2), all});
  CHECK(text.find(all.policy + " takes ") != std::string::npos);
  CHECK(text.find(" its time and no less HBM (dominated)") != std::string::npos);
}

TEST_CASE("case 44: as much of the activations leaves for free as the link carries in a slot") {
  // PipeOffload: min(1, 1/k). The link is full duplex: each slot sends one microbatch's bytes and brings another's.
  const std::tuple<double, double, double, double> published[] = {
      {4096, 4096, 0.62, 1}, {2048, 4096, 1.08, 0.93}, {2048, 1024, 1.33, 0.75}};
  for (const auto& [h, s, k, fraction] : published) {
    INFO("h " << h << ", s " << s);
    Stage stage(h, s, false);
    CHECK(stage.k == Approx(k).margin(0.005));
    const double free = std::min(1.0, 1 / stage.k);
    CHECK(free == Approx(fraction).margin(0.005));
    const NpuFigures at = stage.run(stage.layers_left(free));
    CHECK(at.ideal.value == Approx((Stage::kMicrobatches + Stage::kDepth) * stage.slot_seconds));
    CHECK(at.stall.value == Approx(0).margin(1e-9 * at.ideal.value));
    if (free == 1) continue;
    // All of it: each slot between warm-up and cool-down takes k of its time, give or take what those two can help.
    const double stall = stage.run(stage.layers_left(1)).stall.value / (Stage::kMicrobatches * stage.slot_seconds);
    CHECK(stall > 0.5 * (stage.k - 1));
    CHECK(stall < 1.5 * (stage.k - 1));
  }
}

TEST_CASE("case 44: forwards in a row outrun the link, whatever k") {
  // Without the bubbles of the warm-up its depth + 1 forwards take a third of a slot each. What HBM can't hold of them must be
  // out by then: k = 0.62 slots each, though in the slots that follow the link has time to spare.
  Stage stage(4096, 4096, true);
  const double hbm = stage.layers_left(1);
  const double warm_up = Stage::kDepth + 1;
  const double late = ((warm_up - hbm / Stage::kLayers) * stage.k - warm_up / 3) * stage.slot_seconds;
  const NpuFigures figures = stage.run(hbm);
  CHECK(figures.stall.value >= late);
  CHECK(figures.stall.value <= 1.2 * late);
}

TEST_CASE("case 43: a tensor that is idle for less than its way out and back stays") {
  // sail-sg/zero-bubble-pipeline-parallelism issue 70. 100 B take 200 us out and 100 us back. t1 is idle from 10 to 320
  // us, t0 from 20 to 310: too short. Room for `big` is wanted from 210 to 215.
  Toy toy;
  const TensorId t0 = toy.activation(100), t1 = toy.activation(100), big = toy.activation(100);
  toy.op(10, {}, {t1});
  toy.op(10, {}, {t0});
  toy.op(190, {}, {});
  toy.op(5, {}, {big});
  toy.op(95, {}, {});
  toy.op(10, {t0}, {});
  toy.op(10, {t1}, {});
  toy.hardware.hbm_capacity = Bytes(200);
  const Graph graph = toy.graph();
  const Evaluation planned = evaluate({graph, toy.hardware, 1}, parse_policy("graph", ""));
  CHECK(planned.result.figures().stall.value == Approx(0).margin(1e-15));
  CHECK_FALSE(planned.plan->actions.empty());
  for (const Action& action : planned.plan->actions) CHECK(action.tensor == t1);
  // 20 us less between: no choice is free.
  toy.at(OpId(4)).duration = Seconds(75e-6);
  CHECK(run(toy, "graph", 1).figures().stall.value > 0);
}
