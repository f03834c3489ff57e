#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>

#include "observe/colltrace/flight.hpp"
#include "observe/colltrace/flight_sink.hpp"

namespace weft::observe::colltrace {
namespace {

namespace od = simdjson::ondemand;

// JSON text of sizes or types without spaces.
void copy_packed(od::value value, std::string& out) {
  const std::string_view raw = value.get_array().value().raw_json().value();
  out.clear();
  for (const char c : raw)
    if (c != ' ' && c != '\n') out += c;
  // What stands behind the list belongs to it in simdjson's eyes.
  while (!out.empty() && out.back() != ']') out.pop_back();
}

// 0 and null: not known.
std::int64_t time_of(od::value value) {
  if (value.is_null()) return 0;
  const std::uint64_t ns = value.get_uint64();
  return ns >> 63 != 0 ? 0 : static_cast<std::int64_t>(ns);
}

std::uint64_t number_of(od::value value) { return value.get_uint64(); }

constexpr std::size_t tag(std::string_view key) {
  return key.size() << 8 | static_cast<unsigned char>(key.empty() ? 0 : key.front());
}

// Keys that say nothing which verdicts need.
bool is_other(std::string_view key) {
  constexpr std::string_view known[] = {"pg_id",     "op_id",       "retired", "timeout_ms",
                                        "thread_id", "thread_name", "frames"};
  return std::ranges::find(known, key) != std::end(known);
}

void read_group_name(od::value value, FlightFields& f) {
  std::size_t i = 0;
  for (auto part : value.get_array()) {
    if (i == 0) f.group = part.get_string();
    if (i == 1) f.description = part.get_string();
    ++i;
  }
}

// False: the key is not one of these. Keys are told apart by length and first letter, then
// compared.
bool read_field(std::string_view key, od::value value, FlightFields& f) {
  const auto is = [&](std::string_view name) { return key == name; };
  switch (tag(key)) {
    case tag("process_group"):
      if (!is("process_group")) break;
      return read_group_name(value, f), true;
    case tag("record_id"):
      if (!is("record_id")) break;
      return f.record = number_of(value), f.has_record = true;
    case tag("collective_seq_id"):
      if (!is("collective_seq_id")) break;
      return f.seq = number_of(value), f.has_seq = true;
    case tag("p2p_seq_id"):
      if (!is("p2p_seq_id")) break;
      return f.p2p_seq = number_of(value), f.has_p2p_seq = true;
    case tag("profiling_name"):
      if (!is("profiling_name")) break;
      return f.name = value.get_string(), true;
    case tag("input_sizes"):
      if (!is("input_sizes")) break;
      return copy_packed(value, f.in_sizes), true;
    case tag("input_dtypes"):
      if (!is("input_dtypes")) break;
      return copy_packed(value, f.in_types), true;
    case tag("output_sizes"):
      if (!is("output_sizes")) break;
      return copy_packed(value, f.out_sizes), true;
    case tag("output_dtypes"):
      if (!is("output_dtypes")) break;
      return copy_packed(value, f.out_types), true;
    case tag("time_created_ns"):
      if (!is("time_created_ns")) break;
      return f.created_ns = time_of(value), true;
    case tag("time_discovered_started_ns"):
      if (!is("time_discovered_started_ns")) break;
      return f.started_ns = time_of(value), true;
    case tag("time_discovered_completed_ns"):
      if (!is("time_discovered_completed_ns")) break;
      return f.ended_ns = time_of(value), true;
    case tag("state"):
      if (!is("state")) break;
      return f.state = value.get_string(), true;
    case tag("is_p2p"):
      if (!is("is_p2p")) break;
      return f.is_p2p = value.get_bool(), true;
    case tag("duration_ms"):
      if (!is("duration_ms")) break;
      if (!value.is_null()) f.duration_ms = value.get_double();
      return true;
    default:
      break;
  }
  return false;
}

Status read_groups(od::value value, FlightSink& sink) {
  std::string name, description, ranks;
  for (auto group : value.get_object()) {
    name = std::string_view(group.unescaped_key());
    description.clear();
    ranks.clear();
    for (auto field : group.value().get_object()) {
      const std::string_view key = field.unescaped_key();
      od::value inner = field.value();
      if (key == "ranks" && inner.type() == od::json_type::array)
        copy_packed(inner, ranks);
      else if (key == "ranks")
        ranks = std::string_view(inner.get_string());
      else if (key == "desc")
        description = std::string_view(inner.get_string());
    }
    WEFT_TRY_STATUS(sink.group(name, description, ranks));
  }
  return {};
}

Status read_entries(od::value value, FlightSink& sink) {
  FlightFields f;
  for (auto one : value.get_array()) {
    f.clear();
    for (auto field : one.get_object()) {
      const std::string_view key = field.unescaped_key();
      if (!read_field(key, field.value(), f) && !is_other(key)) sink.unknown_key(key);
    }
    WEFT_TRY_STATUS(sink.entry(f));
  }
  return {};
}

Status read_top(od::document& document, FlightSink& sink) {
  for (auto field : document.get_object()) {
    const std::string_view key = field.unescaped_key();
    od::value value = field.value();
    if (key == "version") {
      WEFT_TRY_STATUS(sink.version(value.get_string()));
    } else if (key == "pg_config") {
      WEFT_TRY_STATUS(read_groups(value, sink));
    } else if (key == "entries") {
      WEFT_TRY_STATUS(read_entries(value, sink));
    }
  }
  return {};
}

}  // namespace

Status read_flight_json(std::string& content, const std::string& file, FlightSink& sink) {
  static_assert(json_padding >= simdjson::SIMDJSON_PADDING);
  content.reserve(content.size() + json_padding);
  od::parser parser;
  od::document document;
  bool is_open = false;
  try {
    document = parser.iterate(content.data(), content.size(), content.capacity());
    is_open = true;
    return read_top(document, sink);
  } catch (const simdjson::simdjson_error& error) {
    const char* at = nullptr;
    const bool is_known = is_open && document.current_location().get(at) == simdjson::SUCCESS;
    return fail(Errc::parse, {file, 0, 0},
                fmt::format("byte {}: {}", is_known ? at - content.data() : 0, error.what()),
                "give a dump of the flight recorder as JSON, whole");
  }
}

}  // namespace weft::observe::colltrace
