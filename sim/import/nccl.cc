#include "sim/import/nccl.h"

#include <algorithm>
#include <charconv>
#include <cstdint>

#include "sim/import/torch_types.h"
#include "sim/model/collective.h"
#include "sim/model/error.h"

namespace hyperoffload {
namespace {

std::optional<std::int64_t> count_in(const std::string& text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

std::optional<std::string> kind_of(const std::string& name) {
  const std::string word = bare_name(name);
  const auto has = [&](const char* part) { return word.find(part) != std::string::npos; };
  if (has("allreduce")) return "all-reduce";
  if (has("allgather")) return "all-gather";
  if (has("reducescatter")) return "reduce-scatter";
  if (has("alltoall")) return "all-to-all";
  if (has("broadcast")) return "broadcast";
  if (word == "send" || word == "recv") return word;
  return std::nullopt;
}

// "[0, 1]" as it stands; PyTorch cuts long lists short with "...".
bool is_list_of_ranks(const std::string& text) {
  try {
    return text.starts_with('[') && !group_named(text, "{}", "").ranks.empty();
  } catch (const InputError&) {
    return false;
  }
}

}  // namespace

std::optional<Collective> nccl_collective(const NcclArgs& args) {
  const auto kind = kind_of(args.name);
  const auto type = bytes_of_torch_type(args.type), in = count_in(args.elements_in),
             out = count_in(args.elements_out);
  if (!kind || !type || (!in && !out)) return std::nullopt;
  const std::int64_t elements = std::max(in.value_or(0), out.value_or(0));
  if (elements == 0 || elements > INT64_MAX / *type) return std::nullopt;
  Collective collective{*kind, Bytes(elements * *type), ""};
  if (is_list_of_ranks(args.ranks))
    collective.group = args.ranks;
  else if (const auto size = count_in(args.group_size); size && *size > 0 && *size < 1'000'000)
    collective.group = args.group_size;
  return collective;
}

bool is_communication(const std::string& kernel) {
  return kernel.starts_with("nccl") || kernel.starts_with("rccl") || kernel.starts_with("hcom_") ||
         kernel.starts_with("void nccl");
}

}  // namespace hyperoffload
