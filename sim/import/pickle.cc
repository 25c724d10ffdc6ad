#include "sim/import/pickle.h"

#include <fmt/format.h>

#include <bit>
#include <charconv>
#include <cstring>
#include <unordered_map>

#include "sim/model/error.h"

namespace hyperoffload {

using Type = PickleValue::Type;

const PickleValue* PickleValue::find(std::string_view key) const {
  if (type != Type::kDict) return nullptr;
  for (std::size_t i = 0; i + 1 < items.size(); i += 2)
    if (items[i]->type == Type::kText && items[i]->text == key) return items[i + 1];
  return nullptr;
}

class PickleReader {
 public:
  PickleReader(std::string_view bytes, const std::string& source, std::deque<PickleValue>& values)
      : bytes_(bytes), source_(source), values_(values) {}

  const PickleValue* read() {
    while (true) {
      opcode_at_ = place_;
      const auto opcode = static_cast<unsigned char>(take(1)[0]);
      if (opcode == '.') break;
      if (!simple(opcode) && !text(opcode) && !container(opcode) && !memo(opcode)) refuse(opcode);
    }
    if (stack_.size() != 1 || !marks_.empty()) fail("a pickle that leaves more than one value");
    return stack_.back();
  }

 private:
  std::string_view take(std::size_t count) {
    if (count > bytes_.size() - place_) fail("the end of the file in the middle of a value");
    const std::string_view part = bytes_.substr(place_, count);
    place_ += count;
    return part;
  }
  std::string_view line() {
    const std::size_t end = bytes_.find('\n', place_);
    if (end == std::string_view::npos) fail("the end of the file in the middle of a value");
    const std::string_view part = bytes_.substr(place_, end - place_);
    place_ = end + 1;
    return part;
  }
  std::uint64_t little_endian(std::size_t count) {
    std::uint64_t value = 0;
    const std::string_view part = take(count);
    for (std::size_t i = count; i-- > 0;) value = value << 8 | static_cast<unsigned char>(part[i]);
    return value;
  }

  PickleValue& push(Type type) {
    values_.emplace_back();
    values_.back().type = type;
    stack_.push_back(&values_.back());
    return values_.back();
  }
  void push_integer(std::int64_t value) { push(Type::kInteger).integer = value; }
  void push_boolean(bool value) { push(Type::kBoolean).integer = value; }
  PickleValue* top() {
    if (stack_.empty()) fail("an operation on nothing");
    return stack_.back();
  }
  PickleValue* pop() {
    PickleValue* value = top();
    stack_.pop_back();
    return value;
  }
  std::vector<const PickleValue*> pop_to_mark() {
    if (marks_.empty() || marks_.back() > stack_.size()) fail("an operation without a mark");
    const auto begin = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
    std::vector<const PickleValue*> items(begin, stack_.end());
    stack_.erase(begin, stack_.end());
    marks_.pop_back();
    return items;
  }

  bool simple(unsigned char opcode) {
    switch (opcode) {
      case 0x80:  // PROTO
        take(1);
        return true;
      case 0x95:  // FRAME
        take(8);
        return true;
      case 'N':
        push(Type::kNone);
        return true;
      case 0x88:
        push_boolean(true);
        return true;
      case 0x89:
        push_boolean(false);
        return true;
      case 'K':
        push_integer(static_cast<std::int64_t>(little_endian(1)));
        return true;
      case 'M':
        push_integer(static_cast<std::int64_t>(little_endian(2)));
        return true;
      case 'J':
        push_integer(static_cast<std::int32_t>(little_endian(4)));
        return true;
      case 0x8A:
        push_integer(long_integer(little_endian(1)));
        return true;
      case 0x8B:
        push_integer(long_integer(little_endian(4)));
        return true;
      case 'I':
      case 'L':
        decimal(line());
        return true;
      case 'G': {  // big endian
        std::uint64_t bits = 0;
        for (const char c : take(8)) bits = bits << 8 | static_cast<unsigned char>(c);
        push(Type::kFraction).fraction = std::bit_cast<double>(bits);
        return true;
      }
      case 'F': {
        const std::string_view text = line();
        double value = 0;
        std::from_chars(text.data(), text.data() + text.size(), value);
        push(Type::kFraction).fraction = value;
        return true;
      }
      default:
        return false;
    }
  }

  // Two's complement of any length; what doesn't fit is an error.
  std::int64_t long_integer(std::uint64_t length) {
    if (length > 9) fail("an integer of more than 64 bits");
    const std::string_view part = take(length);
    std::uint64_t value = 0;
    const bool negative = length > 0 && (static_cast<unsigned char>(part[length - 1]) & 0x80) != 0;
    if (length == 9 && part[8] != 0) fail("an integer of more than 64 bits");
    for (std::size_t i = std::min<std::size_t>(length, 8); i-- > 0;)
      value = value << 8 | static_cast<unsigned char>(part[i]);
    if (negative && length < 8) value |= ~std::uint64_t{0} << (8 * length);
    return static_cast<std::int64_t>(value);  // addresses above 2^63 keep their bits
  }

  void decimal(std::string_view text) {
    if (text == "00" || text == "01") return push_boolean(text == "01");
    if (text.ends_with('L')) text.remove_suffix(1);
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) fail("a broken integer");
    push_integer(value);
  }

  bool text(unsigned char opcode) {
    std::size_t length = 0;
    switch (opcode) {
      case 0x8C:
      case 'U':
      case 'C':
        length = little_endian(1);
        break;
      case 'X':
      case 'T':
      case 'B':
        length = little_endian(4);
        break;
      case 0x8D:
      case 0x8E:
      case 0x96:
        length = little_endian(8);
        break;
      case 'V':
        push(Type::kText).text = line();
        return true;
      case 'S': {
        std::string_view quoted = line();
        if (quoted.size() < 2 || quoted.front() != quoted.back()) fail("a broken text");
        push(Type::kText).text = quoted.substr(1, quoted.size() - 2);
        return true;
      }
      default:
        return false;
    }
    const std::string_view part = take(length);
    push(Type::kText).text = part;
    return true;
  }

  bool container(unsigned char opcode) {
    switch (opcode) {
      case '(':
        marks_.push_back(stack_.size());
        return true;
      case '}':
        push(Type::kDict);
        return true;
      case ']':
      case ')':
        push(Type::kList);
        return true;
      case 'd':
      case 'l':
      case 't': {
        auto items = pop_to_mark();
        if (opcode == 'd' && items.size() % 2 != 0) fail("a dict with a key but no value");
        push(opcode == 'd' ? Type::kDict : Type::kList).items = std::move(items);
        return true;
      }
      case 0x85:
      case 0x86:
      case 0x87: {
        const std::size_t count = opcode - 0x84u;
        if (stack_.size() < count) fail("an operation on nothing");
        std::vector<const PickleValue*> items(stack_.end() - static_cast<std::ptrdiff_t>(count),
                                              stack_.end());
        stack_.resize(stack_.size() - count);
        push(Type::kList).items = std::move(items);
        return true;
      }
      case 'a':
        add({pop()}, Type::kList);
        return true;
      case 'e':
        add(pop_to_mark(), Type::kList);
        return true;
      case 's': {
        const PickleValue* value = pop();
        const PickleValue* key = pop();
        add({key, value}, Type::kDict);
        return true;
      }
      case 'u':
        add(pop_to_mark(), Type::kDict);
        return true;
      case '0':
        pop();
        return true;
      case '1':
        pop_to_mark();
        return true;
      case '2':
        stack_.push_back(top());
        return true;
      default:
        return false;
    }
  }

  void add(const std::vector<const PickleValue*>& items, Type type) {
    PickleValue* to = top();
    if (to->type != type || (type == Type::kDict && items.size() % 2 != 0))
      fail("an operation on a value of another type");
    to->items.insert(to->items.end(), items.begin(), items.end());
  }

  bool memo(unsigned char opcode) {
    switch (opcode) {
      case 0x94:
        memo_.emplace(memo_.size(), top());
        return true;
      case 'q':
        memo_[little_endian(1)] = top();
        return true;
      case 'r':
        memo_[little_endian(4)] = top();
        return true;
      case 'p':
        memo_[number(line())] = top();
        return true;
      case 'h':
        return get(little_endian(1));
      case 'j':
        return get(little_endian(4));
      case 'g':
        return get(number(line()));
      default:
        return false;
    }
  }

  std::uint64_t number(std::string_view text) {
    std::uint64_t value = 0;
    if (std::from_chars(text.data(), text.data() + text.size(), value).ec != std::errc())
      fail("a broken memo");
    return value;
  }

  bool get(std::uint64_t place) {
    const auto found = memo_.find(place);
    if (found == memo_.end()) fail("a reference to nothing");
    stack_.push_back(found->second);
    return true;
  }

  [[noreturn]] void fail(const std::string& found) const {
    throw InputError(fmt::format("{}: byte {}", source_, opcode_at_), found, "a whole pickle of plain data");
  }
  [[noreturn]] void refuse(unsigned char opcode) const {
    const bool calls = std::strchr("cioRbQP", opcode) != nullptr || (opcode >= 0x81 && opcode <= 0x84) ||
                       (opcode >= 0x92 && opcode <= 0x93);
    throw InputError(
        fmt::format("{}: byte {}", source_, opcode_at_),
        calls ? fmt::format("a pickle that would look up or call something (opcode 0x{:02x})", opcode)
              : fmt::format("the byte 0x{:02x}", opcode),
        "a pickle of dicts, lists, numbers and texts alone");
  }

  std::string_view bytes_;
  const std::string& source_;
  std::deque<PickleValue>& values_;
  std::size_t place_ = 0, opcode_at_ = 0;
  std::vector<PickleValue*> stack_;
  std::vector<std::size_t> marks_;
  std::unordered_map<std::uint64_t, PickleValue*> memo_;
};

Pickle::Pickle(std::string_view bytes, const std::string& source) {
  top_ = PickleReader(bytes, source, values_).read();
}

}  // namespace hyperoffload
