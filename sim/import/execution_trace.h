// PyTorch execution traces (ET JSON, schema 1.0.1 to 1.1.1): the operators of a run, and the tensors they
// touch.
//
// A tensor is written as [tensor id, storage id, offset, elements, element bytes, device]; offset in
// elements. What an operator changes in place stands in its schema ("Tensor(a!) self"). Fields that differ
// between versions: parent or ctrl_deps; inputs as one array or as {values, shapes, types}; rf_id and tid in
// the node or among its attrs.
//
// The nodes must be a forest. A node whose parent isn't in the file is a root, and so is one that is its own
// parent (the process node writes itself so); of parents in a cycle, that of the smallest id is left out. All but
// the process node are counted. O(nodes log nodes).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sim/import/name_table.h"
#include "sim/import/text_stream.h"

namespace hyperoffload {

struct TensorUse {
  std::int64_t storage = 0;
  std::int64_t bytes = 0;      // of its elements
  std::int64_t end_bytes = 0;  // of its last element, from the storage's begin
  bool on_device = false;
  bool changed = false;  // an input that the operator changes in place
};

struct ExecutionNode {
  std::int64_t id = 0, parent = -1, record_id = 0, thread = 0;  // parent -1: none
  std::uint32_t name = 0;
  bool leaf = true;          // no node has it as its parent
  bool is_operator = false;  // it has a schema
  std::vector<TensorUse> inputs, outputs;
};

struct ExecutionTrace {
  std::string schema;
  std::vector<ExecutionNode> nodes;  // by id, which is the order they began in
  NameTable names;
  std::vector<std::string> remarks;  // on parents that had to be left out
  const std::string& name(const ExecutionNode& node) const { return names.name(node.name); }
};

ExecutionTrace read_execution_trace(TextStream& stream);

// Storages have lives: their ids are reused, and a new life begins where an operator returns a storage that
// it did not get. Lives are numbered as they begin.
struct StorageLife {
  std::int64_t storage = 0;
  std::int64_t bytes = 0;     // the farthest end of any use
  bool there_before = false;  // used before anything in the trace made it
};

struct NodeAccess {
  std::vector<int> reads, writes;  // lives on the device
};

// Which lives each node reads and writes. Only the nodes that `acts` counts: those that do something on the
// device. Other leaves may make a storage (aten::empty), which is no write. A life's first write in place by
// something that made none of it is a pure write.
class StorageLives {
 public:
  // Walks the nodes first .. last. May be called again (another iteration of the same nodes): storages that
  // were there before keep their lives, all others begin new ones.
  void walk(const ExecutionTrace& trace, const std::function<bool(std::size_t)>& acts,
            const std::function<void(std::size_t, NodeAccess)>& visit);
  const std::vector<StorageLife>& lives() const { return lives_; }

 private:
  struct Open;
  int life_of(const TensorUse& use);
  void finish(const ExecutionTrace& trace, const Open& open, bool acts,
              const std::function<void(std::size_t, NodeAccess)>& visit);

  std::vector<StorageLife> lives_;
  std::vector<bool> written_;
  std::unordered_map<std::int64_t, int> before_;   // storages that were there before
  std::unordered_map<std::int64_t, int> current_;  // of this walk
  std::unordered_map<std::int64_t, std::int64_t>
      made_by_;  // of this walk: id of the node that made the current life
};

}  // namespace hyperoffload
