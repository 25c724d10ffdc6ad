// The layer trace: tensors, and ops in program order. Immutable once built.
//
// Glossary. *Step*: an op's index in program order, never a time. *Engine*: a queue of ops
// ("compute", "comm", "host", ...); ops of one engine run in program order, ops of different
// engines may overlap, bound by `after` and by data (read-after-write, write-after-read,
// write-after-write follow program order). *Access*: an op reading and/or writing a tensor.
// A write without a read (*pure write*) needs room, not the old bytes.
// Lifetimes: a persistent tensor exists before the first op and after the last; an `input` is
// present from each iteration's start; any other is born at its first write. Non-persistent
// tensors die after their last access, in each iteration. A non-persistent tensor without any
// access never exists.
//
// build_graph() is O(ops + accesses + dependencies).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/model/ids.h"
#include "sim/model/units.h"

namespace hyperoffload {

enum class TensorKind { kWeight, kGradient, kOptimizer, kActivation, kKv, kInput, kOther };
enum class Tier { kHbm, kPool };

inline constexpr TensorKind kAllTensorKinds[] = {
    TensorKind::kWeight, TensorKind::kGradient, TensorKind::kOptimizer, TensorKind::kActivation,
    TensorKind::kKv,     TensorKind::kInput,    TensorKind::kOther};
const char* to_string(TensorKind kind);
const char* to_string(Tier tier);
std::optional<TensorKind> tensor_kind_from(const std::string& name);
bool persistent_by_default(TensorKind kind);  // weight, optimizer, kv

struct Tensor {
  std::string name;  // unique
  Bytes bytes;       // 0 .. 2^63-1
  TensorKind kind = TensorKind::kOther;
  bool persistent = false;
  Tier initial = Tier::kHbm;  // persistent only; kPool is binding, kHbm a wish
};

// Which ranks exchange: a list, or `size` of them `stride` apart, rank r in the set of those that agree
// with it in everything else; size 0: all NPUs that take part. In ring order.
struct Group {
  int size = 0, stride = 1;
  std::vector<int> ranks;
};

// An op over the fabric: without `duration` the fabric gives it its time (collective.h).
struct Collective {
  std::string kind;  // all-reduce, all-gather, reduce-scatter, all-to-all, send, recv, broadcast
  Bytes bytes;
  std::string group;  // as written: a name, or the JSON of a number or a list
  Group members{};    // what it means; set by build_graph()
};

struct Op {
  std::string name;                 // unique
  std::optional<Seconds> duration;  // its time with nothing else using HBM
  std::optional<Flops> flops;       // informative when `duration` is given
  std::optional<Bytes> hbm_bytes;   // HBM traffic
  std::vector<TensorId> reads;      // sorted, unique
  std::vector<TensorId> writes;     // sorted, unique; also in `reads` = updated in place
  EngineId engine;
  std::vector<OpId> after;   // earlier ops
  Bytes workspace;           // taken in the op's tier from its start to its end
  Tier memory = Tier::kHbm;  // where its tensors must be
  std::optional<Collective> collective;
  std::optional<OpId> known_after;  // its reads are known to a policy only once this op is done
  int layer = -1;                   // -1: none given
  std::string phase;                // "forward", "backward", ...; empty: none given
  std::string kernel;               // "attention", "matmul", ...; empty: none given
};

struct Access {
  OpId op;
  bool reads = false;
  bool writes = false;
};

// Calls visit(tensor, reads, writes) once for each tensor the op accesses, by rising id.
template <class Visit>
void for_each_access(const Op& op, Visit visit) {
  auto r = op.reads.begin();
  auto w = op.writes.begin();
  while (r != op.reads.end() || w != op.writes.end()) {
    const bool read = r != op.reads.end() && (w == op.writes.end() || *r <= *w);
    const bool write = w != op.writes.end() && (r == op.reads.end() || *w <= *r);
    visit(read ? *r : *w, read, write);
    if (read) ++r;
    if (write) ++w;
  }
}

// Calls visit(earlier, later) for each two accesses of a tensor whose order its data fixes: read after write, write
// after read, write after write. `accesses`: all of the tensor's, in program order. O(accesses).
template <class Visit>
void for_each_data_dependency(std::span<const Access> accesses, Visit visit) {
  std::size_t since = 0;  // behind the last write
  for (std::size_t i = 0; i < accesses.size(); ++i) {
    if (since > 0) visit(accesses[since - 1], accesses[i]);
    if (!accesses[i].writes) continue;
    for (; since < i; ++since) visit(accesses[since], accesses[i]);
    since = i + 1;
  }
}

class Graph {
 public:
  const std::string& name() const { return name_; }
  // The trace's `meta` object as JSON text ("{}" when absent); free content.
  const std::string& meta_json() const { return meta_json_; }
  const std::vector<Tensor>& tensors() const { return tensors_; }
  const std::vector<Op>& ops() const { return ops_; }
  const std::vector<std::string>& engines() const { return engines_; }  // by first appearance
  const Tensor& tensor(TensorId t) const { return tensors_[t.index()]; }
  const Op& op(OpId o) const { return ops_[o.index()]; }

  // Accesses of a tensor, in program order, one entry an op.
  std::span<const Access> accesses(TensorId t) const { return slice(accesses_, access_begin_, t.index()); }
  // Direct dependencies of an op on earlier ops of other engines (data and `after`), sorted, unique.
  // Order on its own engine is implied and not listed.
  std::span<const OpId> cross_engine_deps(OpId o) const { return slice(deps_, deps_begin_, o.index()); }
  // Ops of one engine in program order, and an op's place among them.
  const std::vector<OpId>& engine_ops(EngineId e) const { return engine_ops_[e.index()]; }
  int place_on_engine(OpId o) const { return place_on_engine_[o.index()]; }
  // All ops directly before this one: those, and the one before it on its own engine.
  template <class Visit>
  void for_each_before(OpId o, Visit visit) const {
    for (OpId d : cross_engine_deps(o)) visit(d);
    if (place_on_engine(o) > 0) visit(engine_ops(op(o).engine)[static_cast<std::size_t>(place_on_engine(o)) - 1]);
  }

  bool is_input(TensorId t) const {  // present from each iteration's start, takes bytes then
    return !tensor(t).persistent && tensor(t).kind == TensorKind::kInput && !accesses(t).empty();
  }
  // The op a non-persistent tensor is born at: its first access (none for inputs, persistent
  // tensors and tensors without any access).
  OpId birth(TensorId t) const;

  friend Graph build_graph(struct GraphSpec spec);

 private:
  template <class T>
  static std::span<const T> slice(const std::vector<T>& data, const std::vector<std::uint32_t>& begin,
                                  std::size_t i) {
    return {data.data() + begin[i], data.data() + begin[i + 1]};
  }
  std::string name_, meta_json_;
  std::vector<Tensor> tensors_;
  std::vector<Op> ops_;
  std::vector<std::string> engines_;
  std::vector<Access> accesses_;
  std::vector<std::uint32_t> access_begin_;
  std::vector<OpId> deps_;
  std::vector<std::uint32_t> deps_begin_;
  std::vector<std::vector<OpId>> engine_ops_;
  std::vector<int> place_on_engine_;
};

// What a reader or generator fills in. `Op::engine` indexes `engines`.
struct GraphSpec {
  std::string name;
  std::string meta_json = "{}";
  std::vector<Tensor> tensors;
  std::vector<Op> ops;
  std::vector<std::string> engines{"compute"};
  std::string source;  // file name for messages; may be empty
};

// Checks every rule of the layer trace and derives the indices. Sorts reads, writes and after.
// InputError (one sentence with the path inside the file) for: no ops, duplicate names, an id out of
// range, negative bytes, an op without duration, flops, hbm_bytes or collective, a non-finite or negative number,
// `after`/`known_after` that is not an earlier op, a read before the first write of a tensor that is
// neither persistent nor an input, `initial: pool` on a tensor that is not persistent.
Graph build_graph(GraphSpec spec);

// JSON, `.json.gz` accepted (by content, not by name); "-" reads standard input. Strict: unknown keys and
// names, wrong types, bytes that are not whole or above 2^63-1 are InputErrors with the path inside the
// file. Engines come in the order of their first op. Fields: docs/formats.md.
Graph load_graph(const std::string& path);
// The same, or a file whose `ranks: [trace, ...]` give every NPU its own, in order; `format`, `version` and the
// file's `name` and `meta` stand for those that a rank leaves out. One element: an ordinary trace.
std::vector<Graph> load_rank_graphs(const std::string& path);
std::vector<Graph> parse_rank_graphs(const std::string& text, const std::string& source);
Graph parse_graph(const std::string& text, const std::string& source);
std::string graph_to_json(const Graph& graph);  // deterministic; ends with a newline

}  // namespace hyperoffload
