// The nodes of a Chakra trace as the file has them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/import/text_stream.h"

namespace hyperoffload {

enum class ChakraType {
  kInvalid,
  kMetadata,
  kMemoryLoad,
  kMemoryStore,
  kCompute,
  kSend,
  kReceive,
  kCollective
};

struct ChakraTensor {
  std::string name;
  std::int64_t bytes = 0;
};

struct ChakraNode {
  std::int64_t id = 0;  // absent on the wire: 0
  std::string name;
  ChakraType type = ChakraType::kInvalid;
  std::vector<std::int64_t> control, data;  // ids of nodes that come before
  std::uint64_t start_us = 0, duration_us = 0;
  std::optional<bool> is_cpu_op;
  std::optional<double> num_ops;
  std::optional<std::int64_t> tensor_size, comm_type, comm_size;
  std::string group;  // pg_name
  std::vector<ChakraTensor> inputs, outputs;
};

struct ChakraTrace {
  std::vector<ChakraNode> nodes;
  std::map<std::string, std::size_t> unread;  // attributes that no import needs, with their counts
};

ChakraTrace read_chakra(TextStream& stream);

}  // namespace hyperoffload
