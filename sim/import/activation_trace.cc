#include "sim/import/activation_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "sim/import/exact_time.h"
#include "sim/import/option_value.h"
#include "sim/import/trace_maker.h"
#include "sim/model/error.h"
#include "sim/model/json_reader.h"
#include "sim/model/nearest_name.h"
#include "sim/model/read_file.h"

namespace hyperoffload {
namespace {

const std::string kExpected = "hyper-parallel's ActivationTrace";
constexpr std::int64_t kMaxId = 1LL << 62;

class ActivationReader {
 public:
  explicit ActivationReader(const std::vector<std::string>& files)
      : source_(source_name(files[0])), maker_("activation-trace", files) {}

  ImportResult read(const std::string& text) {
    JsonHandlers handlers;
    handlers.streamed = {"ops"};
    handlers.member = [this](const std::string& key, const JsonValue& value) { member(key, value); };
    handlers.item = [this](const std::string& key, std::size_t index, const JsonValue& value) {
      op(JsonAt(source_, key, index, value));
    };
    read_json_object(text, source_, kExpected, handlers);
    add_tensors();
    return maker_.finish("ops");
  }

 private:
  struct Storage {
    bool sized = false, retained = false, accessed = false;
    Bytes bytes;
  };
  struct Accesses {
    std::vector<std::int64_t> reads, writes;
  };

  void member(const std::string& key, const JsonValue& value) {
    const JsonAt at(source_, key, value);
    if (key == "ops")
      at.require_array();
    else if (key == "storage_sizes")
      sizes(at);
    else if (key == "retained_sids")
      for_each(at, [this](const JsonAt& id) { storages_[whole(id)].retained = true; });
    else if (key == "memory_limit_bytes" || key == "d2h_bandwidth_gbps" || key == "h2d_bandwidth_gbps")
      machine_value(key, at);
    else
      maker_.remark("the key " + in_quotes(key) + " is not read");
  }

  // Python's JSON has an object with the ids as keys, or pairs.
  void sizes(const JsonAt& at) {
    if (at.value().type == JsonValue::Type::kArray)
      return for_each(at, [this](const JsonAt& pair) {
        if (pair.value().type != JsonValue::Type::kArray || pair.size() != 2)
          pair.fail("[storage id, bytes]");
        size(whole(pair.item(0)), pair.item(1));
      });
    at.require_object("storage ids and their bytes");
    for (std::size_t i = 0; i < at.size(); ++i)
      size(whole_number(at.key(i), source_ + ": " + at.member(i).path(), "a storage id", kMaxId),
           at.member(i));
  }

  void size(std::int64_t id, const JsonAt& at) {
    Storage& storage = storages_[id];
    if (storage.sized) at.fail(fmt::format("storage {} twice", id), "each once");
    storage.sized = true;
    storage.bytes = at.bytes();
  }

  void machine_value(const std::string& key, const JsonAt& at) {
    if (at.is_null()) return;
    at.number();
    maker_.note(key, at.value().text);
    if (key == "memory_limit_bytes")
      maker_.remark("memory_limit_bytes " + at.value().text +
                    " is kept in the trace's meta: give it as --hbm");
    else
      maker_.remark(fmt::format(
          "{} {} (GiB/s despite the name) is kept in the trace's meta: give it in the machine file", key,
          at.value().text));
  }

  void op(const JsonAt& at) {
    at.require_object("name, duration_ms and accesses");
    Op op;
    Accesses accesses;
    bool timed = false;
    for (std::size_t i = 0; i < at.size(); ++i) {
      const JsonAt value = at.member(i);
      if (at.key(i) == "name") {
        op.name = value.string();
      } else if (at.key(i) == "duration_ms") {
        value.number();
        const auto time = parse_picoseconds(value.value().text, kPicosPerMilli);
        if (!time) value.fail("milliseconds");
        op.duration = to_seconds(*time);
        timed = true;
      } else if (at.key(i) == "accesses") {
        for_each(value, [&](const JsonAt& each) { access(each, accesses); });
      } else if (!std::count(unknown_.begin(), unknown_.end(), at.key(i))) {
        unknown_.push_back(at.key(i));
        maker_.remark("the key " + in_quotes(at.key(i)) + " of ops is not read");
      }
    }
    if (!timed) op.duration = Seconds(0);
    untimed_ += op.duration == Seconds(0);
    maker_.add_op(std::move(op));
    accesses_.push_back(std::move(accesses));
  }

  void access(const JsonAt& at, Accesses& accesses) {
    std::int64_t storage = -1;
    std::string kind;
    if (at.value().type == JsonValue::Type::kArray) {  // [op id, storage id, kind]
      if (at.size() != 3) at.fail("[op id, storage id, \"READ\" or \"WRITE\"]");
      check_op_id(at.item(0));
      storage = whole(at.item(1));
      kind = access_kind(at.item(2));
    } else {
      at.require_object("op_id, storage_id and kind");
      for (std::size_t i = 0; i < at.size(); ++i) {
        const JsonAt value = at.member(i);
        if (at.key(i) == "op_id")
          check_op_id(value);
        else if (at.key(i) == "storage_id")
          storage = whole(value);
        else if (at.key(i) == "kind")
          kind = access_kind(value);
        else
          at.fail_unknown_key(i, {"kind", "op_id", "storage_id"});
      }
      if (storage < 0) at.fail_missing("storage_id");
      if (kind.empty()) at.fail_missing("kind");
    }
    storages_[storage].accessed = true;
    (kind == "READ" ? accesses.reads : accesses.writes).push_back(storage);
  }

  void check_op_id(const JsonAt& at) {
    const auto place = static_cast<std::int64_t>(accesses_.size());
    if (whole(at) != place) at.fail(fmt::format("{}, the op's place in `ops`", place));
  }

  // "READ", "AccessKind.READ", or the number that Python's auto() gives it.
  static std::string access_kind(const JsonAt& at) {
    std::string text = at.value().text;
    const std::string prefix = "AccessKind.";
    if (text.starts_with(prefix)) text = text.substr(prefix.size());
    std::transform(text.begin(), text.end(), text.begin(),
                   [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
    if (text == "READ" || text == "1") return "READ";
    if (text == "WRITE" || text == "2") return "WRITE";
    at.fail("\"READ\" or \"WRITE\"");
  }

  static std::int64_t whole(const JsonAt& at) {
    const Bytes value = at.bytes();  // the same range
    if (value.value > kMaxId) at.fail("an id");
    return value.value;
  }

  template <class Visit>
  static void for_each(const JsonAt& at, Visit visit) {
    at.require_array();
    for (std::size_t i = 0; i < at.size(); ++i) visit(at.item(i));
  }

  void add_tensors() {
    std::map<std::int64_t, TensorId> ids;
    std::size_t unsized_count = 0, unused = 0;
    for (const auto& [id, storage] : storages_) {
      unsized_count += storage.accessed && !storage.sized;
      unused += !storage.accessed;
      if (!storage.accessed && !storage.retained) continue;  // a tensor that nothing accesses never exists
      ids[id] = maker_.add_tensor(fmt::format("storage{}", id), storage.bytes, TensorKind::kActivation,
                                  storage.retained);
    }
    if (unsized_count > 0)
      maker_.remark(count_of(unsized_count, "storage") + " without an entry in storage_sizes: 0 bytes taken");
    if (unused > 0) maker_.remark(count_of(unused, "storage") + " that no op accesses");
    if (untimed_ > 0) maker_.remark(count_of(untimed_, "op") + " with zero time");
    for (std::size_t i = 0; i < accesses_.size(); ++i) {
      Op& op = maker_.op_at(OpId(i));
      for (std::int64_t id : accesses_[i].reads) op.reads.push_back(ids.at(id));
      for (std::int64_t id : accesses_[i].writes) op.writes.push_back(ids.at(id));
    }
  }

  std::string source_;
  TraceMaker maker_;
  std::map<std::int64_t, Storage> storages_;
  std::vector<Accesses> accesses_;  // of each op
  std::vector<std::string> unknown_;
  std::size_t untimed_ = 0;
};

}  // namespace

ImportResult import_activation_trace(const std::vector<std::string>& files, const ImportOptions&) {
  return ActivationReader(files).read(read_file(files[0], kExpected));
}

}  // namespace hyperoffload
