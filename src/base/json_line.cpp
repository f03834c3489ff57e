#include "base/json_line.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

namespace weft {
inline namespace base {
namespace {

using Json = nlohmann::ordered_json;

constexpr int json_depth_max = 100;

const Json& json_of(const void* tree) {
  static const Json nothing;
  return tree == nullptr ? nothing : *static_cast<const Json*>(tree);
}

// Builds the tree, but stops at what JSON allows and we do not.
class Guard {
 public:
  bool operator()(int depth, Json::parse_event_t event, const Json& parsed) {
    if (depth > json_depth_max)
      problem_ = fmt::format("nested deeper than {} levels", json_depth_max);
    if (event == Json::parse_event_t::object_start) keys_.emplace_back();
    if (event == Json::parse_event_t::object_end && !keys_.empty()) keys_.pop_back();
    if (event == Json::parse_event_t::key && !keys_.back().insert(parsed.get<std::string>()).second)
      problem_ = fmt::format("duplicate key {}", quote(parsed.get<std::string>()));
    return depth <= json_depth_max;  // what is deeper is not kept
  }
  const std::string& problem() const { return problem_; }

 private:
  std::vector<std::set<std::string>> keys_;
  std::string problem_;
};

}  // namespace

struct JsonLine::Impl {
  Json json;

  const Json* find(std::string_view key) const {
    const auto it = json.find(std::string(key));
    return it == json.end() || it->is_null() ? nullptr : &*it;
  }
  // The value of a key; nullptr, with an error when it is needed and absent.
  const Json* find(std::string_view key, bool needed, const Where& where, Errors& errors) const {
    const Json* value = find(key);
    if (value == nullptr && needed)
      errors.push_back({Errc::parse,
                        where,
                        fmt::format("\"{}\" is missing", key),
                        fmt::format("add \"{}\" to the line", key),
                        {}});
    return value;
  }
};

namespace {

Error wrong(const Where& where, std::string_view key, const Json& value, std::string wanted) {
  return {Errc::value,
          where,
          fmt::format("\"{}\" is {}", key, JsonNode(&value).shown()),
          fmt::format("give {}", wanted),
          {}};
}

}  // namespace

JsonNode JsonNode::member(std::string_view key) const {
  if (!is_object()) return {};
  const auto it = json_of(tree_).find(std::string(key));
  return it == json_of(tree_).end() || it->is_null() ? JsonNode() : JsonNode(&*it);
}
JsonNode JsonNode::item(std::size_t i) const {
  const auto& list = json_of(tree_);
  return list.is_array() && i < list.size() ? JsonNode(&list[i]) : JsonNode();
}
std::size_t JsonNode::size() const {
  const auto& tree = json_of(tree_);
  return tree.is_structured() ? tree.size() : 0;
}
bool JsonNode::is_object() const { return json_of(tree_).is_object(); }
bool JsonNode::is_list() const { return json_of(tree_).is_array(); }
std::optional<std::string> JsonNode::text() const {
  if (!json_of(tree_).is_string()) return std::nullopt;
  return json_of(tree_).get<std::string>();
}
std::optional<bool> JsonNode::flag() const {
  if (!json_of(tree_).is_boolean()) return std::nullopt;
  return json_of(tree_).get<bool>();
}
std::optional<double> JsonNode::number() const {
  if (!json_of(tree_).is_number()) return std::nullopt;
  return json_of(tree_).get<double>();
}
std::optional<std::int64_t> JsonNode::whole() const {
  const Json& json = json_of(tree_);
  const bool fits = json.is_number_unsigned()
                        ? json.get<std::uint64_t>() <= static_cast<std::uint64_t>(INT64_MAX)
                        : json.is_number_integer();
  return fits ? std::optional(json.get<std::int64_t>()) : std::nullopt;
}
std::string JsonNode::shown() const {
  return json_of(tree_)
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)
      .substr(0, 40);
}

JsonNode JsonLine::node() const { return JsonNode(&impl_->json); }

JsonObject JsonLine::but(std::initializer_list<std::string_view> keys) const {
  JsonObject out;
  for (const auto& [key, value] : impl_->json.items())
    if (std::ranges::find(keys, key) == keys.end()) out.add(key, JsonText{value.dump()});
  return out;
}

std::string text_of(JsonNode object, std::string_view key) {
  return object.member(key).text().value_or("");
}

std::vector<std::string> texts_of(JsonNode list) {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < list.size(); ++i) out.push_back(list.item(i).text().value_or(""));
  return out;
}

JsonLine::JsonLine(std::unique_ptr<Impl> impl, Where where)
    : impl_(std::move(impl)), where_(std::move(where)) {}
JsonLine::JsonLine(JsonLine&&) noexcept = default;
JsonLine& JsonLine::operator=(JsonLine&&) noexcept = default;
JsonLine::~JsonLine() = default;

Result<JsonLine> JsonLine::parse(std::string_view line, const Where& where) {
  const auto refuse = [&](std::string what) {
    return fail(Errc::parse, where, std::move(what), "write one JSON object per line");
  };
  auto impl = std::make_unique<Impl>();
  Guard guard;
  try {
    impl->json = Json::parse(line, [&guard](int at, Json::parse_event_t event, Json& parsed) {
      return guard(at, event, parsed);
    });
  } catch (const nlohmann::json::exception& e) {
    // "[json.exception.parse_error.101] parse error at line 1, column 5: ..."
    const std::string_view text = e.what();
    const std::size_t colon = text.find(": ");
    return refuse(
        fmt::format("not valid JSON: {}", text.substr(colon == text.npos ? 0 : colon + 2)));
  }
  if (!guard.problem().empty()) return refuse(guard.problem());
  if (!impl->json.is_object()) return refuse("not a JSON object");
  return JsonLine(std::move(impl), where);
}

bool JsonLine::has(std::string_view key) const { return impl_->find(key) != nullptr; }

std::string JsonLine::text(std::string_view key, const std::optional<std::string>& fallback,
                           Errors& errors) const {
  const Json* value = impl_->find(key, !fallback, where_, errors);
  if (value == nullptr) return fallback.value_or("");
  if (value->is_string()) return value->get<std::string>();
  errors.push_back(wrong(where_, key, *value, "a string"));
  return fallback.value_or("");
}

double JsonLine::number(std::string_view key, std::optional<double> fallback, double least,
                        double most, Errors& errors) const {
  const Json* value = impl_->find(key, !fallback, where_, errors);
  if (value == nullptr) return fallback.value_or(least);
  if (value->is_number()) {
    const auto number = value->get<double>();
    if (std::isfinite(number) && number >= least && number <= most) return number;
  }
  errors.push_back(wrong(where_, key, *value, fmt::format("a number from {} to {}", least, most)));
  return fallback.value_or(least);
}

std::int64_t JsonLine::count(std::string_view key, std::optional<std::int64_t> fallback,
                             std::int64_t least, std::int64_t most, Errors& errors) const {
  const Json* value = impl_->find(key, !fallback, where_, errors);
  if (value == nullptr) return fallback.value_or(least);
  const auto number = JsonNode(value).whole();
  if (number && *number >= least && *number <= most) return *number;
  errors.push_back(
      wrong(where_, key, *value, fmt::format("a whole number from {} to {}", least, most)));
  return fallback.value_or(least);
}

Timestamp JsonLine::time(std::string_view key, std::optional<Timestamp> fallback,
                         Errors& errors) const {
  const Json* value = impl_->find(key, !fallback, where_, errors);
  const Timestamp none = fallback.value_or(Timestamp{});
  if (value == nullptr) return none;
  if (value->is_string() || value->is_number_integer()) {
    const std::string text = value->is_string() ? value->get<std::string>() : value->dump();
    auto t = parse_timestamp({text, where_});
    if (t) return *t;
    errors.push_back(std::move(t).error());
    return none;
  }
  errors.push_back(wrong(where_, key, *value, "RFC 3339 text or whole nanoseconds"));
  return none;
}

std::vector<std::string> JsonLine::texts(std::string_view key, Errors& errors) const {
  std::vector<std::string> out;
  const Json* value = impl_->find(key);
  if (value == nullptr) return out;
  const bool all = value->is_array() && std::all_of(value->begin(), value->end(),
                                                    [](const Json& v) { return v.is_string(); });
  if (!all) {
    errors.push_back(wrong(where_, key, *value, "a list of strings"));
    return out;
  }
  for (const Json& item : *value) out.push_back(item.get<std::string>());
  return out;
}

std::optional<JsonLine> JsonLine::object(std::string_view key, Errors& errors) const {
  const Json* value = impl_->find(key);
  if (value == nullptr) return std::nullopt;
  if (value->is_object()) return JsonLine(std::make_unique<Impl>(Impl{*value}), where_);
  errors.push_back(wrong(where_, key, *value, "an object"));
  return std::nullopt;
}

std::vector<std::pair<std::string, std::string>> JsonLine::members() const {
  std::vector<std::pair<std::string, std::string>> out;
  for (const auto& [key, value] : impl_->json.items())
    out.emplace_back(key, value.is_string() ? value.get<std::string>() : value.dump());
  return out;
}

std::optional<JsonLine> next_json_line(LineReader& lines, Errors& errors) {
  while (errors.size() < errors_max && lines.next()) {
    if (trim(lines.line()).empty()) continue;
    auto line = JsonLine::parse(lines.line(), lines.where(0));
    if (line) return *std::move(line);
    errors.push_back(std::move(line).error());
  }
  if (const Error* error = lines.error()) errors.push_back(*error);
  return std::nullopt;
}

}  // namespace base
}  // namespace weft
