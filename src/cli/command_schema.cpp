#include "cli/command_schema.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/check.hpp"
#include "serve/api_schemas.hpp"

namespace weft::cli {
namespace {

using Json = nlohmann::ordered_json;

Json file_of(std::string_view name) {
  if (name.empty()) return {{"components", {{"schemas", Json::parse(serve::api_schemas())}}}};
  const auto file = std::ranges::find(schemas(), name, &Embedded::name);
  WEFT_CHECK(file != schemas().end());
  return Json::parse(file->text);
}

Json complete(const Json& node);

Json referred(const std::string& reference) {
  const std::size_t at = std::min(reference.find('#'), reference.size());
  const Json file = file_of(std::string_view(reference).substr(0, at));
  Json out =
      complete(file.at(Json::json_pointer(reference.substr(std::min(at + 1, reference.size())))));
  out.erase("$schema");
  return out;
}

// One object with the members of all.
Json merged(const Json& parts) {
  Json out{{"type", "object"}, {"properties", Json::object()}, {"required", Json::array()}};
  for (const Json& part : parts) {
    const Json one = complete(part);
    out["properties"].update(one.at("properties"));
    for (const Json& key : one.at("required")) out["required"].push_back(key);
  }
  return out;
}

Json complete(const Json& node) {
  if (!node.is_structured()) return node;
  if (node.is_array()) {
    Json out = Json::array();
    for (const Json& item : node) out.push_back(complete(item));
    return out;
  }
  Json out = Json::object();
  if (node.contains("$ref")) out = referred(node["$ref"].get<std::string>());
  if (node.contains("allOf")) out = merged(node["allOf"]);
  for (const auto& [key, value] : node.items())
    if (key != "$ref" && key != "allOf") out[key] = complete(value);
  if (out.contains("properties") && out["properties"].is_object() &&
      !out.contains("additionalProperties"))
    out["additionalProperties"] = false;
  return out;
}

}  // namespace

std::string command_schema(const Embedded& file) {
  if (file.text.find("\"$ref\"") == std::string_view::npos) return std::string(file.text);
  const Json schema = Json::parse(file.text);
  Json out{{"$schema", schema.at("$schema")}, {"title", schema.at("title")}};
  out.update(complete(schema));
  return out.dump(1) + "\n";
}

}  // namespace weft::cli
