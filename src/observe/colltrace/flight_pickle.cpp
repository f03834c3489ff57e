#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "observe/colltrace/flight_sink.hpp"

namespace weft::observe::colltrace {
namespace {

enum class Is : std::uint8_t { none, integer, real, flag, text, list, dict, maker };

// A text: where it begins and its length; a list or dict: index of its items.
struct Item {
  Is is = Is::none;
  std::uint32_t size = 0;
  std::uint64_t value = 0;
};

// The items of a list, or of a dict: key, value, key, value, ... Where they are in the arena.
struct Box {
  std::size_t begin = 0, size = 0, room = 0;
  bool is_taken = false;  // an entry that was used as soon as it was whole
};

// The opcodes of protocols 2 to 4 that plain data needs. An opcode that makes objects is refused,
// but for PyTorch's own makers of typed lists, which stand for the list.
enum Opcode : unsigned char {
  op_proto = 0x80,
  op_frame = 0x95,
  op_empty_dict = '}',
  op_empty_list = ']',
  op_empty_tuple = ')',
  op_mark = '(',
  op_unicode = 'X',
  op_short_unicode = 0x8c,
  op_put = 'q',
  op_long_put = 'r',
  op_memoize = 0x94,
  op_get = 'h',
  op_long_get = 'j',
  op_int1 = 'K',
  op_int2 = 'M',
  op_int = 'J',
  op_long1 = 0x8a,
  op_none = 'N',
  op_true = 0x88,
  op_false = 0x89,
  op_float = 'G',
  op_set_items = 'u',
  op_set_item = 's',
  op_appends = 'e',
  op_append = 'a',
  op_tuple = 't',
  op_tuple1 = 0x85,
  op_tuple2 = 0x86,
  op_tuple3 = 0x87,
  op_global = 'c',
  op_reduce = 'R',
  op_stop = '.',
};

struct Refused {
  std::string what;
};

// Lives from one file to the next.
struct Memory {
  std::vector<Item> stack, memo, arena;
  std::vector<std::size_t> marks;
  std::vector<Box> boxes;
};

class Unpickler {
 public:
  Unpickler(std::string_view content, const std::string& file, FlightSink& sink, Memory& memory)
      : content_(content),
        file_(file),
        sink_(sink),
        stack_(memory.stack),
        memo_(memory.memo),
        arena_(memory.arena),
        marks_(memory.marks),
        boxes_(memory.boxes) {
    stack_.clear();
    memo_.clear();
    arena_.clear();
    marks_.clear();
    boxes_.clear();
  }

  Status read() {
    try {
      while (step()) {
      }
      return take_top();
    } catch (const Refused& refused) {
      return fail(Errc::parse, {file_, 0, 0}, fmt::format("byte {}: {}", at_, refused.what),
                  "give a dump of the flight recorder as pickle, whole");
    }
  }

 private:
  [[noreturn]] static void refuse(std::string what) { throw Refused{std::move(what)}; }

  std::string_view bytes(std::size_t count) {
    if (content_.size() - at_ < count) refuse("the pickle is cut off");
    at_ += count;
    return content_.substr(at_ - count, count);
  }
  std::uint64_t number(std::size_t count) {
    const char* from = bytes(count).data();
    std::uint64_t out = 0;
    switch (count) {
      case 1:
        return static_cast<unsigned char>(*from);
      case 2:
        std::memcpy(&out, from, 2);
        break;
      case 4:
        std::memcpy(&out, from, 4);
        break;
      case 8:
        std::memcpy(&out, from, 8);
        break;
      default:
        std::memcpy(&out, from, count);
    }
    return out;
  }
  std::int64_t signed_number(std::size_t count) {
    if (count == 0) return 0;
    const unsigned shift = 8 * (8 - static_cast<unsigned>(count));
    return static_cast<std::int64_t>(number(count) << shift) >> shift;
  }

  void push(Is is, std::uint64_t value, std::uint32_t size = 0) {
    stack_.push_back({is, size, value});
  }
  void push_text(std::size_t length) {
    push(Is::text, at_, static_cast<std::uint32_t>(length));
    bytes(length);
  }
  Item pop() {
    if (stack_.size() <= (marks_.empty() ? 0 : marks_.back())) refuse("nothing on the stack");
    const Item out = stack_.back();
    stack_.pop_back();
    return out;
  }
  Item& top() {
    if (stack_.empty()) refuse("nothing on the stack");
    return stack_.back();
  }
  std::size_t pop_mark() {
    if (marks_.empty()) refuse("no mark");
    const std::size_t out = marks_.back();
    marks_.pop_back();
    if (out > stack_.size()) refuse("a mark above the stack");
    return out;
  }
  Box& box_of(const Item& item, Is is) {
    if (item.is != is) refuse("an item goes into something else");
    return boxes_[item.value];
  }
  void push_box(Is is) {
    boxes_.emplace_back();
    push(is, boxes_.size() - 1);
  }
  void remember(std::size_t index) {
    if (index > content_.size()) refuse("a memo beyond the file");
    if (index >= memo_.size()) memo_.resize(index + 1 + index / 2);
    memo_[index] = top();
    memo_count_ = std::max(memo_count_, index + 1);
  }
  void recall(std::size_t index) {
    if (index >= memo_count_) refuse("an unknown memo");
    stack_.push_back(memo_[index]);
  }

  std::span<const Item> items_of(const Box& box) const {
    return std::span(arena_).subspan(box.begin, box.size);
  }
  // Takes what is on the stack from there on. A list that is full moves to the end of the arena.
  void fill(Box& box, std::size_t from) {
    const std::size_t count = stack_.size() - from;
    if (box.size == 0) {
      box = {arena_.size(), count, count, false};
      arena_.insert(arena_.end(), stack_.begin() + static_cast<std::ptrdiff_t>(from), stack_.end());
      stack_.resize(from);
      return;
    }
    if (box.size + count > box.room) {
      const std::size_t begin = arena_.size();
      box.room = 2 * (box.size + count);
      arena_.resize(begin + box.room);
      std::copy_n(arena_.begin() + static_cast<std::ptrdiff_t>(box.begin), box.size,
                  arena_.begin() + static_cast<std::ptrdiff_t>(begin));
      box.begin = begin;
    }
    std::copy(stack_.begin() + static_cast<std::ptrdiff_t>(from), stack_.end(),
              arena_.begin() + static_cast<std::ptrdiff_t>(box.begin + box.size));
    box.size += count;
    stack_.resize(from);
  }
  void push_tuple(std::size_t from) {
    if (from > stack_.size()) refuse("nothing on the stack");
    Box box;
    fill(box, from);
    boxes_.push_back(box);
    push(Is::list, boxes_.size() - 1);
  }
  void append_from(std::size_t from, Is is) {
    if (from == 0) refuse("items of nothing");
    Box& box = box_of(stack_[from - 1], is);
    if (box.is_taken) refuse("an entry in pieces");
    fill(box, from);
  }

  void read_global() {
    const std::size_t end = content_.find('\n', at_);
    const std::size_t end2 = end == std::string_view::npos ? end : content_.find('\n', end + 1);
    if (end2 == std::string_view::npos) refuse("the pickle is cut off");
    const std::string_view module = content_.substr(at_, end - at_);
    const std::string_view name = content_.substr(end + 1, end2 - end - 1);
    const bool is_list =
        name == "build_intlist" || name == "build_boollist" || name == "build_doublelist";
    if (module != "torch.jit._pickle" || !is_list)
      refuse(fmt::format("it would construct {}.{}; weft reads plain data only", module, name));
    at_ = end2 + 1;
    push(Is::maker, 0);
  }
  void reduce() {
    const Item arguments = pop();
    if (pop().is != Is::maker) refuse("it would call something");
    const Box& box = box_of(arguments, Is::list);
    const auto items = items_of(box);
    if (items.size() != 1 || items[0].is != Is::list) refuse("a list made of something else");
    stack_.push_back(items[0]);
  }

  static void check_protocol(std::uint64_t version) {
    if (version < 2 || version > 4) refuse(fmt::format("pickle protocol {}", version));
  }
  void push_long(std::size_t length) {
    if (length > 8) refuse("a number of more than 64 bits");
    push(Is::integer, static_cast<std::uint64_t>(signed_number(length)));
  }

  // False at the end.
  bool step() {
    const auto code = static_cast<unsigned char>(bytes(1)[0]);
    switch (code) {
      case op_proto:
        check_protocol(number(1));
        break;
      case op_frame:
        number(8);
        break;
      case op_empty_dict:
        push_box(Is::dict);
        break;
      case op_empty_list:
      case op_empty_tuple:
        push_box(Is::list);
        break;
      case op_mark:
        marks_.push_back(stack_.size());
        break;
      case op_unicode:
        push_text(number(4));
        break;
      case op_short_unicode:
        push_text(number(1));
        break;
      case op_put:
        remember(number(1));
        break;
      case op_long_put:
        remember(number(4));
        break;
      case op_memoize:
        remember(memo_count_);
        break;
      case op_get:
        recall(number(1));
        break;
      case op_long_get:
        recall(number(4));
        break;
      case op_int1:
        push(Is::integer, number(1));
        break;
      case op_int2:
        push(Is::integer, number(2));
        break;
      case op_int:
        push(Is::integer, static_cast<std::uint64_t>(signed_number(4)));
        break;
      case op_long1:
        push_long(number(1));
        break;
      case op_none:
        push(Is::none, 0);
        break;
      case op_true:
        push(Is::flag, 1);
        break;
      case op_false:
        push(Is::flag, 0);
        break;
      case op_float:
        push(Is::real, std::byteswap(number(8)));
        break;
      default:
        return step_on_items(code);
    }
    return true;
  }

  bool step_on_items(unsigned char code) {
    switch (code) {
      case op_set_items:
        set_items(pop_mark());
        break;
      case op_set_item:
        if (stack_.size() < 3) refuse("nothing on the stack");
        append_from(stack_.size() - 2, Is::dict);
        break;
      case op_appends:
        append_from(pop_mark(), Is::list);
        break;
      case op_append:
        if (stack_.size() < 2) refuse("nothing on the stack");
        append_from(stack_.size() - 1, Is::list);
        break;
      case op_tuple:
        push_tuple(pop_mark());
        break;
      case op_tuple1:
      case op_tuple2:
      case op_tuple3: {
        const std::size_t count = code - op_tuple1 + 1u;
        if (stack_.size() < count) refuse("nothing on the stack");
        push_tuple(stack_.size() - count);
        break;
      }
      case op_global:
        read_global();
        break;
      case op_reduce:
        reduce();
        break;
      case op_stop:
        return false;
      default:
        refuse(fmt::format("opcode 0x{:02x}; weft reads plain data only", code));
    }
    return true;
  }

  void set_items(std::size_t from) {
    if ((stack_.size() - from) % 2 != 0) refuse("a key without a value");
    if (from == 0) refuse("items of nothing");
    const std::span items(stack_.begin() + static_cast<std::ptrdiff_t>(from), stack_.end());
    Box& box = box_of(stack_[from - 1], Is::dict);
    if (box.size == 0 && !box.is_taken && take_entry(items)) {
      box.is_taken = true;
      stack_.resize(from);
    } else {
      append_from(from, Is::dict);
    }
  }

  std::string_view text(const Item& item) const {
    if (item.is != Is::text) refuse("a text is something else");
    return content_.substr(item.value, item.size);
  }
  static std::uint64_t integer(const Item& item) {
    if (item.is == Is::none) return 0;
    if (item.is != Is::integer) refuse("a number is something else");
    return item.value;
  }
  static std::int64_t time(const Item& item) {
    const auto ns = static_cast<std::int64_t>(integer(item));
    return ns < 0 ? 0 : ns;
  }

  // As the same list would stand in JSON, without spaces.
  void write(const Item& item, std::string& out, int depth = 0) const {
    if (depth > 4 || out.size() > 65'536) refuse("a list that is too deep or long");
    switch (item.is) {
      case Is::text:
        ((out += '"') += text(item)) += '"';
        break;
      case Is::integer:
        out += fmt::format_int(static_cast<std::int64_t>(item.value)).c_str();
        break;
      case Is::list: {
        out += '[';
        for (const Item& inner : items_of(boxes_[item.value])) {
          if (out.back() != '[') out += ',';
          write(inner, out, depth + 1);
        }
        out += ']';
        break;
      }
      case Is::none:
        out += "null";
        break;
      default:
        refuse("a list of something else");
    }
  }

  void take_group_name(const Item& item) {
    if (item.is == Is::text) {  // older dumps: the name alone
      fields_.group = text(item);
      return;
    }
    const auto parts = items_of(box_of(item, Is::list));
    if (!parts.empty()) fields_.group = text(parts[0]);
    if (parts.size() > 1) fields_.description = text(parts[1]);
  }

  // As the list would stand in JSON; the text lives as long as the entry.
  std::string_view list(const Item& item, std::string& room) const {
    room.clear();
    write(item, room);
    return room;
  }

  void take_field(Field field, const Item& v) {
    FlightFields& f = fields_;
    switch (field) {
      case Field::process_group:
        return take_group_name(v);
      case Field::record_id:
        f.record = integer(v);
        f.has_record = true;
        return;
      case Field::collective_seq_id:
        f.seq = integer(v);
        f.has_seq = true;
        return;
      case Field::profiling_name:
        f.name = text(v);
        return;
      case Field::input_sizes:
        f.in_sizes = list(v, lists_[0]);
        return;
      case Field::output_sizes:
        f.out_sizes = list(v, lists_[1]);
        return;
      case Field::input_dtypes:
        f.in_types = list(v, lists_[2]);
        return;
      case Field::output_dtypes:
        f.out_types = list(v, lists_[3]);
        return;
      case Field::time_created_ns:
        f.created_ns = time(v);
        return;
      case Field::time_discovered_started_ns:
        f.started_ns = time(v);
        return;
      case Field::time_discovered_completed_ns:
        f.ended_ns = time(v);
        return;
      case Field::state:
        f.state = text(v);
        return;
      case Field::is_p2p:
        f.is_p2p = v.value != 0;
        return;
      case Field::duration_ms:
        if (v.is == Is::real) f.duration_ms = std::bit_cast<double>(v.value);
        return;
      case Field::other:
      case Field::unknown:
        return;
    }
  }

  Field field_at(const Item& key) {
    Key& known = keys_[key.value % keys_.size()];
    if (known.at != key.value) known = {key.value, field_of(text(key))};
    return known.field;
  }

  // An entry, if these are the items of one.
  bool take_entry(std::span<const Item> items) {
    constexpr unsigned needed = 1u << static_cast<unsigned>(Field::profiling_name) |
                                1u << static_cast<unsigned>(Field::collective_seq_id) |
                                1u << static_cast<unsigned>(Field::state) |
                                1u << static_cast<unsigned>(Field::process_group);
    unsigned found = 0;
    for (std::size_t i = 0; i < items.size(); i += 2) {
      if (items[i].is != Is::text) return false;
      found |= 1u << static_cast<unsigned>(field_at(items[i]));
    }
    if ((found & needed) != needed) return false;
    fields_ = {};
    for (std::size_t i = 0; i < items.size(); i += 2) {
      const Field field = field_at(items[i]);
      take_field(field, items[i + 1]);
      if (field == Field::unknown) sink_.unknown_key(text(items[i]));
    }
    if (const Status status = sink_.entry(fields_); !status) refuse(status.error().what);
    return true;
  }

  void take_groups(const Item& item) {
    const auto groups = items_of(box_of(item, Is::dict));
    std::string ranks;
    for (std::size_t i = 0; i + 1 < groups.size(); i += 2) {
      std::string_view description;
      ranks.clear();
      const auto group = items_of(box_of(groups[i + 1], Is::dict));
      for (std::size_t k = 0; k + 1 < group.size(); k += 2) {
        const std::string_view key = text(group[k]);
        const Item& value = group[k + 1];
        if (key == "desc") description = text(value);
        if (key == "ranks" && value.is == Is::text) ranks = text(value);
        if (key == "ranks" && value.is == Is::list) write(value, ranks);
      }
      if (const Status status = sink_.group(text(groups[i]), description, ranks); !status)
        refuse(status.error().what);
    }
  }

  Status take_top() {
    const auto items = items_of(box_of(top(), Is::dict));
    for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
      const std::string_view key = text(items[i]);
      if (key == "version") {
        WEFT_TRY_STATUS(sink_.version(text(items[i + 1])));
      } else if (key == "pg_config") {
        take_groups(items[i + 1]);
      } else if (key == "entries") {
        for (const Item& one : items_of(box_of(items[i + 1], Is::list))) {
          const Box& entry = box_of(one, Is::dict);
          if (!entry.is_taken && !take_entry(items_of(entry))) refuse("an entry lacks a field");
        }
      }
    }
    return {};
  }

  std::string_view content_;
  const std::string& file_;
  FlightSink& sink_;
  std::size_t at_ = 0;
  std::vector<Item>&stack_, &memo_, &arena_;
  std::size_t memo_count_ = 0;
  std::vector<std::size_t>& marks_;
  std::vector<Box>& boxes_;
  // Fields by where their key stands: a key is written once and referred to from then on.
  struct Key {
    std::uint64_t at = ~std::uint64_t{0};
    Field field = Field::unknown;
  };
  std::array<Key, 256> keys_;
  FlightFields fields_;
  std::string lists_[4];
};

}  // namespace

Status read_flight_pickle(std::string_view content, const std::string& file, FlightSink& sink) {
  if (!sink.scratch()) sink.scratch() = std::make_shared<Memory>();
  return Unpickler(content, file, sink, *static_cast<Memory*>(sink.scratch().get())).read();
}

}  // namespace weft::observe::colltrace
