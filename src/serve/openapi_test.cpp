#include "serve/openapi.hpp"

#include <doctest/doctest.h>

#include <cctype>
#include <nlohmann/json.hpp>
#include <set>

#include "serve/api_kit.hpp"

namespace weft::serve {
namespace {

using namespace testing;
using nlohmann::json;

json document(const Api& api) { return json::parse(call(api, "GET", "/openapi.json").body); }

// All values of "$ref" below.
void collect_references(const json& node, std::set<std::string>& out) {
  if (node.is_object())
    if (const auto at = node.find("$ref"); at != node.end()) out.insert(at->get<std::string>());
  if (node.is_structured())
    for (const json& child : node) collect_references(child, out);
}

std::string with_example(std::string path) {
  for (std::size_t at = 0; (at = path.find('{')) != std::string::npos;)
    path.replace(at, path.find('}', at) + 1 - at, "x");
  return path;
}

std::string header_for(const json& operation) {
  const bool is_packed = operation.contains("requestBody") &&
                         operation["requestBody"]["content"].contains("application/gzip");
  return is_packed ? "Content-Type: application/gzip\r\n" : "";
}

// A body that the operation's schema allows.
std::string body_for(const json& operation) {
  if (!operation.contains("requestBody")) return "";
  const json& content = operation["requestBody"]["content"];
  if (!content.contains("application/json")) return "line";
  json body = json::object();
  const json& schema = content["application/json"]["schema"];
  if (!schema.contains("properties")) return R"({"version":"4"})";
  for (const auto& [name, field] : schema["properties"].items())
    body[name] = field.contains("enum")                     ? field["enum"][0].get<std::string>()
                 : field.value("format", "") == "date-time" ? "2026-03-01T12:00:00Z"
                                                            : "because";
  return body.dump();
}

std::string query_for(const json& operation) {
  std::string out;
  std::int64_t time = 1;
  for (const json& parameter : operation.value("parameters", json::array()))
    if (parameter["in"] == "query" && parameter["required"] == true)
      out += fmt::format("{}{}={}", out.empty() ? "?" : "&", parameter["name"].get<std::string>(),
                         time++);
  return out;
}

TEST_CASE("the document is an OpenAPI document") {
  const Bed bed;
  const json api = document(*bed.api);
  CHECK(api["openapi"] == "3.1.0");
  for (const char* field : {"title", "version"}) CHECK(api["info"][field].is_string());
  std::set<std::string> ids;
  for (const auto& [path, item] : api["paths"].items())
    for (const auto& [method, operation] : item.items()) {
      INFO(method, " ", path);
      CHECK(ids.insert(operation["operationId"]).second);
      CHECK(operation["summary"].is_string());
      CHECK(operation["responses"].contains("200"));
      for (const auto& [status, response] : operation["responses"].items()) {
        CHECK(status.size() == 3);
        CHECK_FALSE(response["description"].get<std::string>().empty());
      }
      std::set<std::string> in_path;
      for (const json& parameter : operation.value("parameters", json::array())) {
        CHECK(parameter["schema"].contains("type"));
        if (parameter["in"] == "path")
          in_path.insert("{" + parameter["name"].get<std::string>() + "}");
      }
      CHECK(in_path.contains("{id}") == (path.find("{id}") != std::string::npos));
      for (const json& wanted : operation["security"])
        CHECK(api["components"]["securitySchemes"].contains(wanted.items().begin().key()));
    }
  std::set<std::string> references;
  collect_references(api, references);
  CHECK(references.size() >= 6);
  for (const std::string& reference : references) {
    REQUIRE(reference.starts_with("#/"));
    CHECK_MESSAGE(api.contains(json::json_pointer(reference.substr(1))), reference);
  }
  // And every schema is there for something.
  for (const auto& [name, schema] : api["components"]["schemas"].items())
    CHECK_MESSAGE(references.contains("#/components/schemas/" + name), name);
}

TEST_CASE("what is registered is documented, and what is documented answers as documented") {
  Bed bed(ApiOptions{.alertmanager = [](std::string_view) -> Result<std::vector<std::string>> {
                       return std::vector<std::string>{"line"};
                     },
                     .traces = {.keep = [](auto, auto, auto, auto) { return Status(); },
                                .list = [] { return std::string(R"({"items":[]})"); },
                                .of_job = [](auto) -> Result<std::string> { return "{}"; },
                                .picture = [](auto) -> Result<std::string> { return "{}"; }},
                     .te = {[](auto, auto, auto, const auto& answer) { answer(std::string("{}")); },
                            [] { return std::string("{}"); }},
                     .path_health = []() -> Result<std::string> { return "table"; },
                     .vendor = {[](auto, auto, auto) { return true; },
                                [](auto) -> Result<std::string> { return "copy"; }}});
  REQUIRE(bed.store.commit({.documents = {{"case", "x", {1}, R"({"id":"x"})"},
                                          {"repair", "x", {1}, R"({"id":"x"})"},
                                          {"snapshot", "x", {1}, R"({"id":"x"})"},
                                          {"handling", "x", {1}, R"({"id":"x"})"}}}));
  const json api = document(*bed.api);
  std::size_t count = 0;
  for (const auto& [path, item] : api["paths"].items())
    for (const auto& [method, operation] : item.items()) {
      ++count;
      std::string upper = method;
      for (char& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
      INFO(upper, " ", path);
      Client client(bed.api->port());
      client.send(Client::request(upper, with_example(path) + query_for(operation),
                                  body_for(operation), header_for(operation)));
      const Answer answer = parse_answer(client.receive_until("\r\n\r\n"));
      CHECK(answer.status == 200);
      const std::string type = answer.headers.at("content-type");
      CHECK(operation["responses"]["200"]["content"].contains(type.substr(0, type.find(';'))));
    }
  CHECK(count == bed.api->routes().size());
  for (const Route& route : bed.api->routes()) {
    std::string method(route.method);
    for (char& c : method) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    CHECK(api["paths"][std::string(route.path)][method]["operationId"] == route.id);
  }
}

TEST_CASE("statuses that are answered are documented") {
  Bed bed;
  bed.service.is_broken = true;
  bed.store.is_broken = true;
  const json api = document(*bed.api);
  for (const Route& route : bed.api->routes()) {
    if (route.id == "watchEvents") continue;
    std::string method(route.method);
    for (char& c : method) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    const json& responses = api["paths"][std::string(route.path)][method]["responses"];
    for (const char* body : {"", "{", "x"}) {
      const int status =
          call(*bed.api, route.method, with_example(std::string(route.path)), body).status;
      INFO(method, " ", route.path, " ", body, " ", status);
      CHECK(responses.contains(std::to_string(status)));
    }
  }
}

TEST_CASE("parameters are read by their table") {
  const Param limit{.name = "limit", .type = Param::Type::count, .least = 1, .most = 9};
  const Param state{.name = "state", .most = 5, .choices = {"open", "shut"}};
  Values values;
  CHECK(values.set(limit, "9"));
  CHECK(values.count("limit", 3) == 9);
  CHECK(values.count("other", 3) == 3);
  for (const char* wrong : {"0", "10", "", "x", "1.5"}) CHECK_FALSE(values.set(limit, wrong));
  CHECK(values.set(state, "open"));
  CHECK(values.text("state") == "open");
  for (const char* wrong : {"", "opens", "toolong"}) CHECK_FALSE(values.set(state, wrong));
  const Route route{.method = "GET", .path = "/x", .id = "x", .query = {limit, state}};
  const auto error = read_query(route, {{}, {{"limt", "1"}}});
  REQUIRE_FALSE(error.has_value());
  CHECK(error.error().text().find("did you mean \"limit\"") != std::string::npos);
}

}  // namespace
}  // namespace weft::serve
