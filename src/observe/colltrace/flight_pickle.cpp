#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

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

struct Box {
  std::vector<Item> items;  // of a dict: key, value, key, value, ...
  bool is_taken = false;    // an entry that was used as soon as it was whole
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

class Unpickler {
 public:
  Unpickler(std::string_view content, const std::string& file, FlightSink& sink)
      : content_(content), file_(file), sink_(sink) {}

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
    std::uint64_t out = 0;
    std::memcpy(&out, bytes(count).data(), count);
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

  void push_tuple(std::size_t from) {
    if (from > stack_.size()) refuse("nothing on the stack");
    Box box;
    box.items.assign(stack_.begin() + static_cast<std::ptrdiff_t>(from), stack_.end());
    stack_.resize(from);
    boxes_.push_back(std::move(box));
    push(Is::list, boxes_.size() - 1);
  }
  void append_from(std::size_t from, Is is) {
    if (from == 0) refuse("items of nothing");
    Box& box = box_of(stack_[from - 1], is);
    if (box.is_taken) refuse("an entry in pieces");
    box.items.insert(box.items.end(), stack_.begin() + static_cast<std::ptrdiff_t>(from),
                     stack_.end());
    stack_.resize(from);
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
    if (box.items.size() != 1 || box.items[0].is != Is::list)
      refuse("a list made of something else");
    stack_.push_back(box.items[0]);
  }

  // False at the end.
  bool step() {
    const auto code = static_cast<unsigned char>(bytes(1)[0]);
    switch (code) {
      case op_proto: {
        const std::uint64_t version = number(1);
        if (version < 2 || version > 4) refuse(fmt::format("pickle protocol {}", version));
        break;
      }
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
      case op_long1: {
        const std::size_t length = number(1);
        if (length > 8) refuse("a number of more than 64 bits");
        push(Is::integer, static_cast<std::uint64_t>(signed_number(length)));
        break;
      }
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
    if (box.items.empty() && !box.is_taken && take_entry(items)) {
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
        for (const Item& inner : boxes_[item.value].items) {
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
    const auto& parts = box_of(item, Is::list).items;
    if (!parts.empty()) fields_.group = text(parts[0]);
    if (parts.size() > 1) fields_.description = text(parts[1]);
  }

  bool take_field(std::string_view key, const Item& v) {
    FlightFields& f = fields_;
    if (key == "process_group") return take_group_name(v), true;
    if (key == "record_id") return f.record = integer(v), f.has_record = true;
    if (key == "collective_seq_id") return f.seq = integer(v), f.has_seq = true;
    if (key == "p2p_seq_id") return f.p2p_seq = integer(v), f.has_p2p_seq = true;
    if (key == "profiling_name") return f.name = text(v), true;
    if (key == "input_sizes") return write(v, f.in_sizes), true;
    if (key == "input_dtypes") return write(v, f.in_types), true;
    if (key == "output_sizes") return write(v, f.out_sizes), true;
    if (key == "output_dtypes") return write(v, f.out_types), true;
    if (key == "time_created_ns") return f.created_ns = time(v), true;
    if (key == "time_discovered_started_ns") return f.started_ns = time(v), true;
    if (key == "time_discovered_completed_ns") return f.ended_ns = time(v), true;
    if (key == "state") return f.state = text(v), true;
    if (key == "is_p2p") return f.is_p2p = v.value != 0, true;
    if (key == "duration_ms") {
      if (v.is == Is::real) f.duration_ms = std::bit_cast<double>(v.value);
      return true;
    }
    return key == "pg_id" || key == "op_id" || key == "retired" || key == "timeout_ms" ||
           key == "thread_id" || key == "thread_name" || key == "frames";
  }

  // An entry, if these are the items of one.
  bool take_entry(std::span<const Item> items) {
    int found = 0;
    for (std::size_t i = 0; i < items.size(); i += 2) {
      if (items[i].is != Is::text) return false;
      const std::string_view key = text(items[i]);
      found += key == "profiling_name" || key == "collective_seq_id" || key == "state" ||
               key == "process_group";
    }
    if (found != 4) return false;
    fields_.clear();
    for (std::size_t i = 0; i < items.size(); i += 2)
      if (!take_field(text(items[i]), items[i + 1])) sink_.unknown_key(text(items[i]));
    if (const Status status = sink_.entry(fields_); !status) refuse(status.error().what);
    return true;
  }

  void take_groups(const Item& item) {
    const Box& groups = box_of(item, Is::dict);
    std::string ranks;
    for (std::size_t i = 0; i + 1 < groups.items.size(); i += 2) {
      std::string_view description;
      ranks.clear();
      const Box& group = box_of(groups.items[i + 1], Is::dict);
      for (std::size_t k = 0; k + 1 < group.items.size(); k += 2) {
        const std::string_view key = text(group.items[k]);
        const Item& value = group.items[k + 1];
        if (key == "desc") description = text(value);
        if (key == "ranks" && value.is == Is::text) ranks = text(value);
        if (key == "ranks" && value.is == Is::list) write(value, ranks);
      }
      if (const Status status = sink_.group(text(groups.items[i]), description, ranks); !status)
        refuse(status.error().what);
    }
  }

  Status take_top() {
    const auto items = box_of(top(), Is::dict).items;
    for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
      const std::string_view key = text(items[i]);
      if (key == "version") {
        WEFT_TRY_STATUS(sink_.version(text(items[i + 1])));
      } else if (key == "pg_config") {
        take_groups(items[i + 1]);
      } else if (key == "entries") {
        for (const Item& one : box_of(items[i + 1], Is::list).items) {
          const Box& entry = box_of(one, Is::dict);
          if (!entry.is_taken && !take_entry(entry.items)) refuse("an entry lacks a field");
        }
      }
    }
    return {};
  }

  std::string_view content_;
  const std::string& file_;
  FlightSink& sink_;
  std::size_t at_ = 0;
  std::vector<Item> stack_, memo_;
  std::size_t memo_count_ = 0;
  std::vector<std::size_t> marks_;
  std::vector<Box> boxes_;
  FlightFields fields_;
};

}  // namespace

Status read_flight_pickle(std::string_view content, const std::string& file, FlightSink& sink) {
  return Unpickler(content, file, sink).read();
}

}  // namespace weft::observe::colltrace
