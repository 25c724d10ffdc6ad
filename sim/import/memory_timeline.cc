#include "sim/import/memory_timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "sim/import/exact_time.h"
#include "sim/import/json_records.h"
#include "sim/import/trace_maker.h"
#include "sim/model/error.h"
#include "sim/model/nearest_name.h"

namespace hyperoffload {
namespace {

enum Action : std::int64_t { kThereBefore = 1, kCreate = 2, kNewVersion = 3, kDestroy = 4 };

// In the order of their numbers: none, input, temporary, activation, gradient, autograd detail, parameter,
// optimizer.
constexpr TensorKind kKinds[] = {TensorKind::kOther,      TensorKind::kOther,    TensorKind::kActivation,
                                 TensorKind::kActivation, TensorKind::kGradient, TensorKind::kActivation,
                                 TensorKind::kWeight,     TensorKind::kOptimizer};
const char* kCategories[] = {"none",     "input",    "temporary", "activation",
                             "gradient", "autograd", "parameter", "optimizer"};

class TimelineReader {
 public:
  explicit TimelineReader(const std::vector<std::string>& files)
      : stream_(files[0], "a raw PyTorch memory timeline: rows of [ns, action, bytes, category]"),
        maker_("memory-timeline", files) {}

  ImportResult run() {
    JsonRecordReader reader;
    reader.arrays = {""};
    reader.fields = {{{"0"}}, {{"1"}}, {{"2"}}, {{"3"}}};
    reader.record = [this](const std::string&, std::size_t index, const JsonRecord& record) {
      row(index, record);
    };
    read_json_records(stream_, reader);
    end_instant();
    if (maker_.op_count() > 0) maker_.op_at(OpId(maker_.op_count() - 1)).duration = Seconds(0);
    for (auto& [_, stack] : live_)
      for (const Live& live : stack) stay(live);
    remark();
    return maker_.finish("rows with a time");
  }

 private:
  struct Live {
    TensorId id;
    bool before = false;
  };
  using Key = std::pair<std::int64_t, std::int64_t>;  // bytes, category

  void row(std::size_t index, const JsonRecord& r) {
    std::int64_t values[4] = {};
    for (std::size_t f = 0; f < 4; ++f) {
      const std::string& text = r.text(f);
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), values[f]);
      if (!r.is_number(f) || error != std::errc() || end != text.data() + text.size())
        throw InputError(fmt::format("{}: [{}][{}]", stream_.source(), index, f),
                         text.empty() ? "no whole number" : in_quotes(text), "a whole number");
    }
    const auto [time, action, bytes, category] = values;
    if (action < kThereBefore || action > kDestroy)
      throw InputError(fmt::format("{}: [{}][1]", stream_.source(), index), std::to_string(action),
                       "an action, 1 to 4");
    if (category < 0 || category > 7)
      throw InputError(fmt::format("{}: [{}][3]", stream_.source(), index), std::to_string(category),
                       "a category, 0 to 7");
    ++rows_;
    if (action == kThereBefore) {
      born(bytes, category, true);
      return;
    }
    if (!started_ || time != now_) next_instant(index, time);
    if (action == kCreate) born(bytes, category, false);
    if (action == kDestroy) destroyed(-bytes, category);
    if (action == kNewVersion) bytes < 0 ? version_ends(-bytes, category) : version_begins(bytes, category);
  }

  void next_instant(std::size_t index, std::int64_t time) {
    if (started_ && time < now_)
      throw InputError(fmt::format("{}: [{}][0]", stream_.source(), index), std::to_string(time),
                       "times that don't go back");
    end_instant();
    if (started_)
      maker_.op_at(OpId(maker_.op_count() - 1)).duration =
          to_seconds(static_cast<Picoseconds>(time - now_) * 1000);
    if (!started_) maker_.note("origin_ns", std::to_string(time));
    started_ = true;
    now_ = time;
    Op op;
    op.name = fmt::format("instant{}", maker_.op_count());
    op.duration = Seconds(0);
    maker_.add_op(std::move(op));
  }

  void end_instant() {
    if (carried_) ++odd_versions_;
    carried_.reset();
  }

  OpId current() const { return OpId(maker_.op_count() - 1); }

  void born(std::int64_t bytes, std::int64_t category, bool before) {
    if (bytes < 0) {
      ++unmatched_;
      return;
    }
    const auto c = static_cast<std::size_t>(category);
    const TensorId id = maker_.add_tensor(kCategories[c], Bytes(bytes), kKinds[c], false);
    live_[{bytes, category}].push_back({id, before});
    if (!before) maker_.op_at(current()).writes.push_back(id);
  }

  // Its last op is the one before this instant's.
  void destroyed(std::int64_t bytes, std::int64_t category) {
    const auto stack = live_.find({bytes, category});
    if (stack == live_.end() || stack->second.empty()) {
      ++unmatched_;
      return;
    }
    const Live live = stack->second.back();
    stack->second.pop_back();
    std::vector<TensorId>& writes = maker_.op_at(current()).writes;
    const auto born_now = std::find(writes.begin(), writes.end(), live.id);
    if (born_now != writes.end()) {
      writes.erase(born_now);
      ++instant_;
    } else if (maker_.op_count() > 1) {  // else it was gone before the first op
      maker_.keep_to(OpId(maker_.op_count() - 2), live.id);
    }
  }

  // A write in place, which may come with another category.
  void version_ends(std::int64_t bytes, std::int64_t category) {
    if (carried_) ++odd_versions_;
    const auto stack = live_.find({bytes, category});
    if (stack == live_.end() || stack->second.empty()) {
      ++unmatched_;
      carried_.reset();
      return;
    }
    carried_ = stack->second.back();
    stack->second.pop_back();
  }

  void version_begins(std::int64_t bytes, std::int64_t category) {
    if (!carried_) return born(bytes, category, false);
    Tensor& tensor = maker_.tensor_at(carried_->id);
    tensor.kind = kKinds[static_cast<std::size_t>(category)];
    tensor.bytes = std::max(tensor.bytes, Bytes(bytes));
    live_[{bytes, category}].push_back(*carried_);
    Op& op = maker_.op_at(current());
    op.reads.push_back(carried_->id);
    op.writes.push_back(carried_->id);
    carried_.reset();
  }

  // What is never destroyed: persistent if it was there before, else it lives to the last op.
  void stay(const Live& live) {
    ++staying_;
    if (live.before)
      maker_.tensor_at(live.id).persistent = true;
    else
      maker_.keep_to(current(), live.id);
  }

  void remark() {
    maker_.remark(fmt::format("{} from {}; {} stay to the end", count_of(maker_.tensor_count(), "tensor"),
                              count_of(rows_, "row"), staying_));
    maker_.remark(
        "rows don't say which tensor they are about: they are matched by bytes and category, the youngest "
        "first, so live bytes are exact and lifetimes a guess");
    if (instant_ > 0)
      maker_.remark(count_of(instant_, "tensor") + " created and destroyed at one instant: left out");
    if (unmatched_ + odd_versions_ > 0)
      maker_.remark(count_of(unmatched_ + odd_versions_, "row") +
                    " without a tensor of these bytes and category");
  }

  TextStream stream_;
  TraceMaker maker_;
  bool started_ = false;
  std::int64_t now_ = 0;
  std::map<Key, std::vector<Live>> live_;
  std::optional<Live> carried_;
  std::size_t rows_ = 0, unmatched_ = 0, odd_versions_ = 0, instant_ = 0, staying_ = 0;
};

}  // namespace

ImportResult import_memory_timeline(const std::vector<std::string>& files, const ImportOptions&) {
  return TimelineReader(files).run();
}

}  // namespace hyperoffload
