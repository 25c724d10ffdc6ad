#include "sim/import/llmservingsim.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/import/exact_time.h"
#include "sim/import/option_value.h"
#include "sim/import/trace_maker.h"
#include "sim/model/error.h"
#include "sim/model/nearest_name.h"
#include "sim/model/read_file.h"

namespace hyperoffload {
namespace {

const std::string kExpected =
    "an LLMServingSim trace: a line, a number of rows, and a head that begins with Layername";
constexpr std::int64_t kMaxBytes = 1LL << 60;

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  while (true) {
    line.remove_prefix(std::min(line.size(), line.find_first_not_of(" \t\r")));
    if (line.empty()) return words;
    words.push_back(line.substr(0, line.find_first_of(" \t\r")));
    line.remove_prefix(words.back().size());
  }
}

// "ALLREDUCE" -> "all-reduce".
std::string collective_kind(std::string_view type, const std::string& where) {
  std::string kind;
  for (const char c : type)
    if (c != '_' && c != '-') kind += c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  for (const auto& [plain, name] : {std::pair{"allreduce", "all-reduce"},
                                    {"allgather", "all-gather"},
                                    {"reducescatter", "reduce-scatter"},
                                    {"alltoall", "all-to-all"},
                                    {"broadcast", "broadcast"}})
    if (kind == plain) return name;
  throw InputError(where, "the comm_type " + in_quotes(type),
                   "NONE, ALLREDUCE, ALLGATHER, REDUCESCATTER, ALLTOALL or BROADCAST");
}

class LayerReader {
 public:
  explicit LayerReader(const std::vector<std::string>& files)
      : source_(source_name(files[0])), maker_("llmservingsim", files) {}

  ImportResult read(std::string_view text) {
    std::size_t rows = 0;
    for (int line = 1; !text.empty(); ++line) {
      const std::string_view row = text.substr(0, text.find('\n'));
      text.remove_prefix(std::min(text.size(), row.size() + 1));
      const auto words = words_of(row);
      if (words.empty()) continue;
      where_ = fmt::format("{}:{}", source_, line);
      if (++seen_ == 1) continue;
      if (seen_ == 2)
        announced_ = static_cast<std::size_t>(number(words[0], "the number of rows"));
      else if (seen_ == 3 && words[0] != "Layername")
        throw InputError(where_, in_quotes(row), kExpected);
      else if (seen_ > 3)
        ++rows, take(words);
    }
    if (seen_ < 3) throw InputError(source_, "a file of less than three lines", kExpected);
    if (rows != announced_)
      throw InputError(source_, count_of(rows, "row"),
                       fmt::format("{}, as its second line says", announced_));
    remark();
    return maker_.finish("rows");
  }

 private:
  std::int64_t number(std::string_view text, const char* what) const {
    return whole_number(text, where_, what, kMaxBytes);
  }

  void take(const std::vector<std::string_view>& words) {
    if (words[0] == "EXPERT" || words[0] == "PIM" || words[0] == "ATTENTION") {
      ++markers_[words[0] == "EXPERT" ? 0 : words[0] == "PIM" ? 1 : 2];
      pim_ = words[0] == "PIM" && words.back() != "END" ? fmt::format("pim {}", words.back()) : "";
      return;
    }
    if (words.size() != 11)
      throw InputError(where_, fmt::format("{}", count_of(words.size(), "column")), "11 columns");
    layer(std::string(words[0]), words);
  }

  void layer(const std::string& name, const std::vector<std::string_view>& words) {
    const auto time = parse_picoseconds(words[1], kPicosPerNano);
    if (!time || *time < 0) throw InputError(where_, in_quotes(words[1]), "the computation's nanoseconds");
    const std::int64_t input = number(words[3], "the input's bytes"),
                       weight = number(words[5], "the weight's bytes"),
                       output = number(words[7], "the output's bytes"),
                       communicated = number(words[9], "the communication's bytes");
    Op op;
    op.name = name;
    op.duration = to_seconds(*time);
    if (!pim_.empty()) op.engine = maker_.engine(pim_);
    const bool kv = name.starts_with("kv_load") || name.starts_with("kv_evict");
    if (input > 0 && last_.is_none())
      op.reads.push_back(maker_.add_tensor(name + ".input", Bytes(input), TensorKind::kInput));
    if (input > 0 && !last_.is_none()) {
      op.reads.push_back(last_);
      other_sizes_ += maker_.tensor_at(last_).bytes != Bytes(input);
    }
    if (weight > 0) {
      const TensorId id = maker_.add_tensor(name + (kv ? ".kv" : ".weight"), Bytes(weight),
                                            kv ? TensorKind::kKv : TensorKind::kWeight);
      if (!words[4].starts_with("LOCAL") && !name.starts_with("kv_evict")) {
        maker_.tensor_at(id).initial = Tier::kPool;
        ++remote_;
      }
      op.reads.push_back(id);
    }
    if (output > 0) {
      last_ = maker_.add_tensor(name + ".output", Bytes(output), TensorKind::kActivation);
      op.writes.push_back(last_);
      remote_outputs_ += !words[6].starts_with("LOCAL");
    }
    maker_.add_op(std::move(op));
    if (words[8] == "NONE") return;
    Op communication;
    communication.name = name + "." + std::string(words[8]);
    communication.engine = maker_.engine("comm");
    communication.collective = Collective{collective_kind(words[8], where_), Bytes(communicated), ""};
    communication.hbm_bytes = Bytes(communicated);
    if (!last_.is_none()) {
      communication.reads.push_back(last_);
      communication.writes.push_back(last_);
    }
    maker_.add_op(std::move(communication));
    ++communications_;
  }

  void remark() {
    maker_.remark("tensors aren't named: a row's input is what the row before wrote" +
                  (other_sizes_ == 0
                       ? std::string()
                       : fmt::format(", though {} a size of its own",
                                     other_sizes_ == 1 ? "1 row gives it"
                                                       : fmt::format("{} rows give it", other_sizes_))));
    if (remote_ > 0)
      maker_.remark(count_of(remote_, "weight or KV tensor") + " outside of LOCAL: in the pool at the start");
    if (remote_outputs_ > 0)
      maker_.remark(count_of(remote_outputs_, "output") + " outside of LOCAL: left where it is made");
    if (communications_ > 0)
      maker_.remark(count_of(communications_, "communication") +
                    " without a duration: an op on engine comm, with its bytes as HBM traffic");
    if (markers_[0] > 0)
      maker_.remark("rows of different experts stand one behind the other: the trace is one device's");
    if (markers_[1] > 0) maker_.remark("rows of PIM channels are on engines of their own");
    if (markers_[2] > 0) maker_.remark("ATTENTION marks are not used");
  }

  std::string source_, where_, pim_;
  TraceMaker maker_;
  std::size_t seen_ = 0, announced_ = 0;
  TensorId last_;
  std::size_t markers_[3] = {}, other_sizes_ = 0, remote_ = 0, remote_outputs_ = 0, communications_ = 0;
};

}  // namespace

ImportResult import_llmservingsim(const std::vector<std::string>& files, const ImportOptions&) {
  return LayerReader(files).read(read_file(files[0], kExpected));
}

}  // namespace hyperoffload
