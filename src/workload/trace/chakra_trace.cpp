#include "workload/trace/chakra_trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "workload/trace/protobuf_reader.hpp"

namespace weft::workload {
namespace {

constexpr const char* broken_hint =
    "check that the file was copied completely and is a Chakra trace";

constexpr std::size_t dependencies_max = 1'000'000'000;

// Fields of Node.
constexpr std::uint32_t node_id = 1, node_name = 2, node_type = 3, node_ctrl = 4, node_data = 5;
constexpr std::uint32_t node_start = 6, node_duration = 7, node_inputs = 8, node_outputs = 9;
constexpr std::uint32_t node_attribute = 10;

// The value of an AttributeProto: fields 3-32 are pairs (scalar, list) of fifteen kinds.
struct Attribute {
  std::string_view name;
  std::optional<std::int64_t> integer;
  std::string_view text;              // string, bytes
  std::optional<ProtobufField> list;  // of any kind
};

constexpr std::uint32_t first_value = 3, last_value = 32;
constexpr std::uint32_t attr_double = 3, attr_float = 5, attr_sint32 = 15, attr_sint64 = 17;
constexpr std::uint32_t attr_sfixed32 = 23, attr_string = 29, attr_bytes = 31;

constexpr bool is_list(std::uint32_t number) { return number % 2 == 0; }

Wire wire_of(std::uint32_t number) {
  switch (number) {
    case attr_double:
    case 21:
    case 25:
      return Wire::fixed64;
    case attr_float:
    case 19:
    case attr_sfixed32:
      return Wire::fixed32;
    default:
      return number >= attr_string || is_list(number) ? Wire::bytes : Wire::varint;
  }
}

std::optional<std::int64_t> whole(double value) {
  if (std::abs(value) > 9e18 || std::trunc(value) != value) return std::nullopt;
  return static_cast<std::int64_t>(value);
}

std::optional<std::int64_t> integer_of(std::uint32_t number, std::uint64_t raw) {
  switch (number) {
    case attr_double:
      return whole(std::bit_cast<double>(raw));
    case attr_float:
      return whole(double{std::bit_cast<float>(static_cast<std::uint32_t>(raw))});
    case attr_sint32:
    case attr_sint64:
      return static_cast<std::int64_t>(raw >> 1 ^ (~(raw & 1) + 1));
    case attr_sfixed32:
      return static_cast<std::int32_t>(static_cast<std::uint32_t>(raw));
    default:
      return static_cast<std::int64_t>(raw);
  }
}

bool expect(ProtobufReader& reader, const ProtobufField& field, Wire wire) {
  if (field.wire == wire) return true;
  return reader.stop("a field has the wrong type", field.at);
}

// Takes one attribute apart; false with a fault in `in`.
bool read_attribute(ProtobufReader& in, Attribute& out) {
  ProtobufField field;
  while (in.next(field)) {
    if (field.number == 1) {
      if (!expect(in, field, Wire::bytes)) return false;
      out.name = field.bytes;
    } else if (field.number >= first_value && field.number <= last_value) {
      if (!expect(in, field, wire_of(field.number))) return false;
      if (is_list(field.number))
        out.list = field;
      else if (field.number == attr_string || field.number == attr_bytes)
        out.text = field.bytes;
      else
        out.integer = integer_of(field.number, field.value);
    }
  }
  return in.fault() == nullptr;
}

// Sets `all` to whether every element of a list attribute, packed or not, is other than 0.
bool read_all_true(ProtobufReader& outer, const Attribute& attribute, bool& all) {
  all = attribute.integer.value_or(1) != 0;
  if (!attribute.list) return true;
  ProtobufReader list(*attribute.list, outer);
  ProtobufField field;
  while (list.next(field)) {
    if (field.wire != Wire::bytes) {
      all = all && field.value != 0;
      continue;
    }
    ProtobufReader packed(field, list);
    for (std::uint64_t value = 0; !packed.done() && packed.varint(value);) all = all && value != 0;
    if (packed.fault() != nullptr) return outer.stop(packed.fault(), packed.at());
  }
  return list.fault() == nullptr || outer.stop(list.fault(), list.at());
}

class StreamReader {
 public:
  StreamReader(std::string_view stream, const std::string& file)
      : in_(stream, 0), stream_(stream), file_(file) {}

  Result<ChakraTrace> read() {
    if (stream_.empty()) return broken(0, "the trace is empty");
    std::string_view message;
    for (bool first = true; !in_.done(); first = false) {
      const std::size_t start = in_.at();
      if (!in_.bytes(message)) break;
      ProtobufReader inner(message, start_of(message));
      if (first ? !read_metadata(inner) : !read_node(inner, start))
        return broken(inner.at(), inner.fault());
    }
    if (in_.fault() != nullptr) return broken(in_.at(), in_.fault());
    if (trace_.nodes.empty()) return broken(stream_.size(), "the trace has no nodes");
    WEFT_TRY_STATUS(index_nodes(trace_, file_));
    return std::move(trace_);
  }

 private:
  std::size_t start_of(std::string_view part) const {
    return static_cast<std::size_t>(part.data() - stream_.data());
  }

  std::unexpected<Error> broken(std::size_t at, std::string_view what) const {
    return fail(Errc::parse, {file_}, fmt::format("byte {} of the stream: {}", at, what),
                broken_hint);
  }

  bool read_metadata(ProtobufReader& in) {
    ProtobufField field;
    while (in.next(field)) {
      if (field.number > 2 || field.wire != Wire::bytes)
        return in.stop("the first message is not the trace metadata", field.at);
      if (field.number == 1) continue;
      ProtobufReader inner(field, in);
      Attribute attribute;
      if (!read_attribute(inner, attribute)) return in.stop(inner.fault(), inner.at());
      if (attribute.name == "schema") trace_.from_pytorch = true;
    }
    return in.fault() == nullptr;
  }

  bool read_node(ProtobufReader& in, std::size_t at) {
    ChakraNode node{.at = at};
    node.ctrl_first = static_cast<std::uint32_t>(trace_.ctrl.size());
    node.data_first = static_cast<std::uint32_t>(trace_.data.size());
    ProtobufField field;
    while (in.next(field))
      if (!read_field(in, field, node)) return false;
    if (in.fault() != nullptr) return false;
    node.ctrl_count = static_cast<std::uint32_t>(trace_.ctrl.size()) - node.ctrl_first;
    node.data_count = static_cast<std::uint32_t>(trace_.data.size()) - node.data_first;
    if (trace_.nodes.size() >= chakra_nodes_max) return in.stop("more than 16 million nodes", at);
    if (trace_.data.size() + trace_.ctrl.size() > dependencies_max)
      return in.stop("more than a billion dependencies", at);
    // Found at once, lest a file of zeros takes memory for every byte; index_nodes() finds others.
    if (!trace_.nodes.empty() && trace_.nodes.back().id == node.id)
      return in.stop("a node has the same number as the previous one", at);
    trace_.nodes.push_back(node);
    return true;
  }

  bool read_field(ProtobufReader& in, const ProtobufField& field, ChakraNode& node) {
    switch (field.number) {
      case node_id:
        node.id = field.value;
        return expect(in, field, Wire::varint);
      case node_name:
        node.name = field.bytes;
        return expect(in, field, Wire::bytes);
      case node_type:
        if (!expect(in, field, Wire::varint)) return false;
        if (field.value > static_cast<std::uint64_t>(ChakraType::collective))
          return in.stop("a node has a type that is not in the format", field.at);
        node.type = static_cast<ChakraType>(field.value);
        return true;
      case node_ctrl:
        return read_ids(in, field, trace_.ctrl);
      case node_data:
        return read_ids(in, field, trace_.data);
      case node_start:
        return expect(in, field, Wire::varint);
      case node_duration:
        node.time_us = field.value;
        return expect(in, field, Wire::varint);
      case node_inputs:
        return read_values(in, field, node.inputs);
      case node_outputs:
        return read_values(in, field, node.outputs);
      case node_attribute:
        return read_node_attribute(in, field, node);
      default:
        return true;  // of a later schema
    }
  }

  static bool read_ids(ProtobufReader& in, const ProtobufField& field,
                       std::vector<std::uint64_t>& out) {
    if (field.wire == Wire::varint) {
      out.push_back(field.value);
      return true;
    }
    if (!expect(in, field, Wire::bytes)) return false;
    ProtobufReader packed(field, in);
    for (std::uint64_t id = 0; !packed.done() && packed.varint(id);) out.push_back(id);
    return packed.fault() == nullptr || in.stop(packed.fault(), packed.at());
  }

  // IOInfo: of values, shapes and types only the values.
  static bool read_values(ProtobufReader& in, const ProtobufField& field, std::string_view& out) {
    if (!expect(in, field, Wire::bytes)) return false;
    ProtobufReader inner(field, in);
    ProtobufField part;
    while (inner.next(part))
      if (part.number == 1 && expect(inner, part, Wire::bytes)) out = part.bytes;
    return inner.fault() == nullptr || in.stop(inner.fault(), inner.at());
  }

  bool read_node_attribute(ProtobufReader& in, const ProtobufField& field, ChakraNode& node) {
    if (!expect(in, field, Wire::bytes)) return false;
    ProtobufReader inner(field, in);
    Attribute attribute;
    if (!read_attribute(inner, attribute)) return in.stop(inner.fault(), inner.at());
    if (attribute.name == "rf_id") trace_.from_pytorch = true;
    if (attribute.name == "involved_dim") return read_all_true(in, attribute, node.all_dims);
    if (attribute.name == "pg_name") return read_group(attribute, node);
    std::optional<std::int64_t>* target = integer_slot(node, attribute.name);
    if (target == nullptr && attribute.name != "is_cpu_op") return true;
    if (!attribute.integer) return in.stop("an attribute should be an integer", field.at);
    if (target != nullptr)
      *target = attribute.integer;
    else
      node.cpu_op = *attribute.integer != 0;
    return true;
  }

  // A name, which some tools write as a number.
  bool read_group(const Attribute& attribute, ChakraNode& node) {
    node.group = attribute.text;
    if (attribute.integer)
      node.group = trace_.made_texts.emplace_back(std::to_string(*attribute.integer));
    return true;
  }

  static std::optional<std::int64_t>* integer_slot(ChakraNode& node, std::string_view name) {
    if (name == "comm_type") return &node.comm_type;
    if (name == "comm_size") return &node.comm_size;
    if (name == "comm_src") return &node.comm_src;
    if (name == "comm_dst") return &node.comm_dst;
    if (name == "comm_tag") return &node.comm_tag;
    if (name == "num_ops") return &node.num_ops;
    if (name == "tensor_size") return &node.tensor_size;
    return nullptr;
  }

  ProtobufReader in_;
  std::string_view stream_;
  const std::string& file_;
  ChakraTrace trace_;
};

}  // namespace

std::optional<std::uint32_t> ChakraTrace::find(std::uint64_t id) const {
  const auto found =
      std::ranges::lower_bound(by_id, id, {}, [&](std::uint32_t i) { return nodes[i].id; });
  if (found == by_id.end() || nodes[*found].id != id) return std::nullopt;
  return *found;
}

Status index_nodes(ChakraTrace& trace, const std::string& file) {
  const auto id = [&](std::uint32_t i) { return trace.nodes[i].id; };
  trace.by_id.resize(trace.nodes.size());
  std::iota(trace.by_id.begin(), trace.by_id.end(), 0u);
  std::ranges::stable_sort(trace.by_id, {}, id);
  const auto twice = std::ranges::adjacent_find(trace.by_id, {}, id);
  if (twice == trace.by_id.end()) return {};
  return fail(Errc::parse, {file},
              fmt::format("byte {} of the stream: node number {} is used again (first at byte {})",
                          trace.nodes[*(twice + 1)].at, id(*twice), trace.nodes[*twice].at),
              broken_hint);
}

Result<ChakraTrace> parse_chakra(std::string_view stream, const std::string& file) {
  return StreamReader(stream, file).read();
}

bool looks_like_chakra(std::string_view stream) {
  ProtobufReader in(stream.substr(0, std::min<std::size_t>(stream.size(), 1 << 16)), 0);
  std::string_view metadata;
  if (!in.bytes(metadata)) return false;
  ProtobufReader inner(metadata, 0);
  ProtobufField field;
  bool some = false;
  while (inner.next(field)) {
    if (field.number > 2 || field.wire != Wire::bytes) return false;
    some = true;
  }
  return some && inner.fault() == nullptr;
}

}  // namespace weft::workload
