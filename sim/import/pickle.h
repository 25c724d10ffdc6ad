// Python pickles of plain data: dicts, lists, tuples, texts, bytes, numbers, True, False and None.
//
// Only the opcodes that make these are understood (protocols 0 to 5); whatever would look up or call
// something is refused, so reading runs nothing. Values that the file shares are shared here, too: memory is
// that of the file's distinct values. The file stands in memory as a whole.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace hyperoffload {

struct PickleValue {
  enum class Type { kNone, kBoolean, kInteger, kFraction, kText, kList, kDict };
  Type type = Type::kNone;
  std::int64_t integer = 0;  // also of a boolean
  double fraction = 0;
  std::string text;                       // also of bytes
  std::vector<const PickleValue*> items;  // of a list or tuple; of a dict keys and values in turn

  // The value of a dict's text key, or nullptr.
  const PickleValue* find(std::string_view key) const;
};

class Pickle {
 public:
  // InputError with the place of the first byte that isn't understood.
  Pickle(std::string_view bytes, const std::string& source);
  const PickleValue& top() const { return *top_; }

 private:
  friend class PickleReader;
  std::deque<PickleValue> values_;
  const PickleValue* top_ = nullptr;
};

}  // namespace hyperoffload
