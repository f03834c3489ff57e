#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <iterator>

#include "observe/colltrace/flight.hpp"
#include "observe/colltrace/flight_sink.hpp"

namespace weft::observe::colltrace {
namespace {

namespace od = simdjson::ondemand;

// A list as it stands.
std::string_view list_of(od::value value) {
  std::string_view raw = value.get_array().value().raw_json().value();
  while (!raw.empty() && raw.back() != ']') raw.remove_suffix(1);  // what follows belongs to it
  return raw;
}

// Without a copy where nothing is escaped.
std::string_view text_of(od::value value) {
  const std::string_view token = value.raw_json_token();
  if (token.size() > 1 && token.front() == '"') {
    std::size_t end = 1;
    while (end < token.size() && token[end] != '"' && token[end] != '\\') ++end;
    if (end < token.size() && token[end] == '"') return token.substr(1, end - 1);
  }
  return value.get_string();
}

std::string_view key_of(simdjson::simdjson_result<od::field>& field) {
  const char* begin = field.key().value().raw();
  const char* end = begin;
  while (*end != '"' && *end != '\\') ++end;  // the text is well-formed as far as its strings go
  return *end == '"' ? std::string_view(begin, end) : std::string_view(field.unescaped_key());
}

// 0 and null: not known.
std::int64_t time_of(od::value value) {
  if (value.is_null()) return 0;
  const std::uint64_t ns = value.get_uint64();
  return ns >> 63 != 0 ? 0 : static_cast<std::int64_t>(ns);
}

void read_group_name(od::value value, FlightFields& f) {
  std::size_t i = 0;
  for (auto part : value.get_array()) {
    if (i == 0) f.group = text_of(part.value());
    if (i == 1) f.description = text_of(part.value());
    ++i;
  }
}

void read_field(Field field, od::value value, FlightFields& f) {
  switch (field) {
    case Field::process_group:
      return read_group_name(value, f);
    case Field::record_id:
      f.record = value.get_uint64();
      f.has_record = true;
      return;
    case Field::collective_seq_id:
      f.seq = value.get_uint64();
      f.has_seq = true;
      return;
    case Field::profiling_name:
      f.name = text_of(value);
      return;
    case Field::input_sizes:
      f.in_sizes = list_of(value);
      return;
    case Field::input_dtypes:
      f.in_types = list_of(value);
      return;
    case Field::output_sizes:
      f.out_sizes = list_of(value);
      return;
    case Field::output_dtypes:
      f.out_types = list_of(value);
      return;
    case Field::time_created_ns:
      f.created_ns = time_of(value);
      return;
    case Field::time_discovered_started_ns:
      f.started_ns = time_of(value);
      return;
    case Field::time_discovered_completed_ns:
      f.ended_ns = time_of(value);
      return;
    case Field::state:
      f.state = text_of(value);
      return;
    case Field::is_p2p:
      f.is_p2p = value.get_bool();
      return;
    case Field::duration_ms:
      if (!value.is_null()) f.duration_ms = value.get_double();
      return;
    case Field::other:
    case Field::unknown:
      return;
  }
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
        ranks = list_of(inner);
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
  for (auto one : value.get_array()) {
    FlightFields f;
    for (auto item : one.get_object()) {
      const std::string_view key = key_of(item);
      const Field field = field_of(key);
      if (field == Field::unknown)
        sink.unknown_key(key);
      else
        read_field(field, item.value(), f);
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

// What is wrong, and where as far as that is known: `document` is null where the text was refused
// before its values, for its strings.
std::string place_of(const simdjson::simdjson_error& error, const std::string& content,
                     od::document* document) {
  const char* at = nullptr;
  const bool is_cut = error.error() == simdjson::UNCLOSED_STRING ||
                      error.error() == simdjson::INCOMPLETE_ARRAY_OR_OBJECT;
  if (is_cut) return fmt::format("byte {}: the JSON text ends too early", content.size());
  if (document == nullptr || document->current_location().get(at) != simdjson::SUCCESS)
    return error.what();
  return fmt::format("byte {}: {}",
                     std::min<std::ptrdiff_t>(at - content.data(), std::ssize(content)),
                     error.what());
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
    return fail(Errc::parse, {file, 0, 0}, place_of(error, content, is_open ? &document : nullptr),
                "give a dump of the flight recorder as JSON, whole");
  }
}

}  // namespace weft::observe::colltrace
