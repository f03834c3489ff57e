#include "serve/openapi.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/json_line.hpp"
#include "base/text.hpp"

namespace weft::serve {
namespace {

using Json = nlohmann::ordered_json;

// Documents of the store are open: they may have more members than these.
constexpr std::string_view schemas = R"json({
  "Problem": {"type": "object", "required": ["type", "title", "status", "detail"],
    "properties": {"type": {"type": "string"}, "title": {"type": "string"},
      "status": {"type": "integer"}, "detail": {"type": "string"}}},
  "Receipt": {"type": "object", "required": ["acknowledged", "known", "unknown_kinds",
      "unknown_entities", "refused", "refused_count"],
    "properties": {
      "acknowledged": {"type": "integer", "description": "lines that are durable now"},
      "known": {"type": "integer", "description": "of them: taken before"},
      "unknown_kinds": {"type": "integer", "description": "kept, and of no case"},
      "unknown_entities": {"type": "integer", "description": "the same"},
      "refused": {"type": "array", "description": "the first hundred", "items": {
        "type": "object", "required": ["line", "why"], "properties": {
          "line": {"type": "integer", "minimum": 1}, "why": {"type": "string"}}}},
      "refused_count": {"type": "integer"}}},
  "Document": {"type": "object", "required": ["id"], "properties": {"id": {"type": "string"},
      "state": {"type": "string"}}},
  "Documents": {"type": "object", "required": ["items", "next"], "properties": {
      "items": {"type": "array", "items": {"$ref": "#/components/schemas/Document"}},
      "next": {"type": ["string", "null"], "description": "give it as `before` for what follows"}}},
  "AuditEntry": {"type": "object", "required": ["seq", "t", "actor", "case", "action", "detail"],
    "properties": {"seq": {"type": "integer", "minimum": 1},
      "t": {"type": "string", "format": "date-time"}, "actor": {"type": "string"},
      "case": {"type": "string"}, "action": {"type": "string"}, "detail": {}}},
  "Audit": {"type": "object", "required": ["items", "next"], "properties": {
      "items": {"type": "array", "items": {"$ref": "#/components/schemas/AuditEntry"}},
      "next": {"type": "integer", "description": "give it as `since` for what follows"}}},
  "Done": {"type": "object", "required": ["command", "who"], "properties": {
      "command": {"type": "string"}, "case": {"type": "string"}, "who": {"type": "string"}}},
  "Record": {"type": "object", "required": ["id", "seq", "received", "feed", "line"],
    "properties": {"id": {"type": "string"}, "seq": {"type": "integer", "minimum": 1},
      "received": {"type": "string", "format": "date-time"}, "feed": {"type": "string"},
      "line": {"type": "string", "description": "as it came; of syslog behind @NS FROM"},
      "record": {"type": "object", "description": "what it was taken for"}}},
  "Records": {"type": "object", "required": ["items", "missing"], "properties": {
      "items": {"type": "array", "items": {"$ref": "#/components/schemas/Record"}},
      "missing": {"type": "array", "description": "not kept, or not found in 500,000 events",
        "items": {"type": "string"}}}},
  "Fabric": {"type": "object", "required": ["roles", "tiers"], "properties": {
      "roles": {"type": "object", "description": "number of nodes by role"},
      "tiers": {"type": "array", "items": {"type": "object", "required": ["rows", "columns",
        "row_names", "column_names", "racks", "cables", "left_out"], "properties": {
          "rows": {"type": "string"}, "columns": {"type": "string"},
          "row_names": {"type": "array", "items": {"type": "string"}},
          "column_names": {"type": "array", "items": {"type": "string"}},
          "racks": {"type": "array", "description": "of the rows; may be \"\"",
            "items": {"type": "string"}},
          "cables": {"type": "array", "description": "[row, column, parallel cables]",
            "items": {"type": "array", "items": {"type": "integer"}}},
          "left_out": {"type": "integer"}}}}}},
  "Capacity": {"type": "object", "required": ["kill_switch", "rack_share", "plane_share",
      "demand_share", "out_max", "out", "suspected", "frozen", "groups", "groups_whole"],
    "properties": {"kill_switch": {"type": "boolean"},
      "rack_share": {"type": "number"}, "plane_share": {"type": "number"},
      "demand_share": {"type": "number"}, "out_max": {"type": "integer"},
      "out": {"type": "array", "items": {"type": "string"}},
      "suspected": {"type": "array", "items": {"type": "string"}},
      "frozen": {"type": "array", "items": {"type": "object"}},
      "groups": {"type": "array", "description": "of uplinks, that lack some", "items": {
        "type": "object", "properties": {"name": {"type": "string"},
          "cables": {"type": "integer"}, "live": {"type": "integer"},
          "share": {"type": "number"}, "share_without_suspects": {"type": "number"}}}},
      "groups_whole": {"type": "integer"}}},
  "Probes": {"type": "object", "required": ["from", "to", "rows", "rows_without_path",
      "links_all", "links_probed", "racks", "pairs", "links"], "properties": {
      "from": {"type": "string", "format": "date-time"},
      "to": {"type": "string", "format": "date-time"},
      "rows": {"type": "integer"}, "rows_without_path": {"type": "integer"},
      "links_all": {"type": "integer"}, "links_probed": {"type": "integer"},
      "racks": {"type": "array", "items": {"type": "string"}},
      "pairs": {"type": "array", "items": {"type": "object",
        "description": "from, to: indexes in racks; sent, lost, p99_us (-1: not measured)"}},
      "links": {"type": "array", "items": {"type": "object",
        "description": "link, sent, lost, p99_us; most losses first, at most 20,000"}}}},
  "Feeds": {"type": "object", "required": ["speakers", "silent_switches", "unknown",
      "unknown_left_out"], "properties": {
      "speakers": {"type": "array", "items": {"type": "object",
        "description": "device, source, lines, last"}},
      "silent_switches": {"type": "array", "items": {"type": "string"}},
      "unknown": {"type": "array", "items": {"type": "object",
        "description": "device, text, lines, last; numbers aside, each text once"}},
      "unknown_left_out": {"type": "integer"}}},
  "Job": {"type": "object", "required": ["id", "name", "user", "since", "host_count", "hosts"],
    "properties": {"id": {"type": "string"}, "name": {"type": "string"},
      "user": {"type": "string"}, "since": {"type": ["string", "null"], "format": "date-time"},
      "host_count": {"type": "integer"}, "hosts": {"type": "string", "description": "host list"},
      "unknown_nodes": {"type": "string", "description": "that the fabric does not have"},
      "stalled": {"type": "boolean"}, "slowdown": {"type": "number"},
      "hosts_at_part": {"type": "array", "items": {"type": "string"}},
      "spares": {"type": "array", "items": {"type": "object",
        "properties": {"host": {"type": "string"}, "spare": {"type": "string"}}}}}},
  "Jobs": {"type": "object", "required": ["from", "read", "stale", "error", "items"],
    "properties": {"from": {"enum": ["slurm", "kubernetes", null],
        "description": "null: the service is not told which jobs run"},
      "read": {"type": ["string", "null"], "format": "date-time"},
      "stale": {"type": "boolean", "description": "too old to be relied on"},
      "error": {"type": ["string", "null"], "description": "of the last try"},
      "items": {"type": "array", "items": {"$ref": "#/components/schemas/Job"}}}},
  "JobEffects": {"type": "object", "required": ["from", "part", "method", "jobs", "unaffected",
      "stale"], "properties": {"from": {"enum": ["slurm", "kubernetes", null]},
      "part": {"type": "string"},
      "method": {"enum": ["simulated", "bounded"],
        "description": "bounded: jobs that do nothing but communicate across the network"},
      "jobs": {"type": "array", "items": {"$ref": "#/components/schemas/Job"}},
      "unaffected": {"type": "integer"}, "stale": {"type": "boolean"}}},
  "Traces": {"type": "object", "required": ["items"], "properties": {
      "items": {"type": "array", "items": {"type": "object",
        "required": ["job", "processes", "bytes", "oldest", "newest", "analysed", "hang",
          "verdicts", "suspects"],
        "properties": {"job": {"type": "string"}, "processes": {"type": "integer"},
          "bytes": {"type": "integer", "description": "as kept, compressed"},
          "oldest": {"type": "string", "format": "date-time"},
          "newest": {"type": "string", "format": "date-time"},
          "analysed": {"type": ["string", "null"], "format": "date-time"},
          "hang": {"type": "boolean"}, "verdicts": {"type": "integer"},
          "suspects": {"type": "array", "description": "of a probability of 0.5 or more",
            "items": {"type": "string"}}}}}}},
  "JobTrace": {"type": "object", "required": ["job", "analysed"], "properties": {
      "job": {"type": "string"},
      "analysed": {"type": ["string", "null"], "format": "date-time",
        "description": "null: not yet, and nothing follows"},
      "error": {"type": "string", "description": "why it could not be analysed"},
      "took_s": {"type": "number"},
      "ranks": {"type": "integer"}, "missing": {"type": "integer"},
      "operations": {"type": "integer"}, "waiting": {"type": "integer"},
      "hang": {"type": "boolean"},
      "verdicts": {"type": "array", "items": {"type": "object",
        "description": "finding, ranks, hosts, groups, seq or factor, operation, meaning"}},
      "network": {"type": "object",
        "description": "network, compute, load, nothing: probabilities; suspects, expected"}}},
  "Health": {"type": "object", "required": ["ok"], "properties": {"ok": {"type": "boolean"}}},
  "Any": {"type": "object"}
})json";

std::vector<std::string_view> pieces_of(std::string_view path) {
  return path == "/" ? std::vector<std::string_view>() : split(path.substr(1), '/');
}

bool fits(const Route& route, const std::vector<std::string>& path,
          std::vector<std::string>& pieces) {
  const auto wanted = pieces_of(route.path);
  if (wanted.size() != path.size()) return false;
  for (std::size_t i = 0; i < path.size(); ++i) {
    if (wanted[i].starts_with('{')) {
      pieces.push_back(path[i]);
    } else if (wanted[i] != path[i]) {
      return false;
    }
  }
  return true;
}

std::vector<std::string> names_of(const std::vector<Param>& params) {
  std::vector<std::string> out;
  for (const Param& param : params) out.emplace_back(param.name);
  return out;
}

Status check_needed(const std::vector<Param>& params, const Values& values) {
  for (const Param& param : params)
    if (param.need == Param::Need::needed && !values.has(param.name))
      return fail(Errc::value, {}, fmt::format("\"{}\" is missing", param.name),
                  fmt::format("give {}", param.meaning));
  return {};
}

Status set_known(const std::vector<Param>& params, std::string_view name, std::string_view text,
                 Values& values) {
  const auto at = std::ranges::find(params, name, &Param::name);
  if (at != params.end()) return values.set(*at, text);
  const auto names = names_of(params);
  return fail(Errc::value, {},
              fmt::format("unknown name {}{}", quote(name), did_you_mean(name, names)),
              names.empty() ? "remove it" : fmt::format("known: {}", fmt::join(names, ", ")));
}

Json schema_of(const Param& param) {
  Json out = Json::object();
  switch (param.type) {
    case Param::Type::text:
      out["type"] = "string";
      if (param.least > 0) out["minLength"] = param.least;
      if (param.most != INT64_MAX) out["maxLength"] = param.most;
      for (const std::string_view choice : param.choices) out["enum"].push_back(choice);
      break;
    case Param::Type::count:
      out["type"] = "integer";
      out["minimum"] = param.least;
      if (param.most != INT64_MAX) out["maximum"] = param.most;
      break;
    case Param::Type::time:
      out["type"] = "string";
      out["format"] = "date-time";
      break;
  }
  return out;
}

Json parameters_of(const Route& route) {
  Json out = Json::array();
  for (const std::string_view piece : pieces_of(route.path))
    if (piece.starts_with('{'))
      out.push_back({{"name", piece.substr(1, piece.size() - 2)},
                     {"in", "path"},
                     {"required", true},
                     {"schema", {{"type", "string"}}}});
  for (const Param& param : route.query)
    out.push_back({{"name", param.name},
                   {"in", "query"},
                   {"required", param.need == Param::Need::needed},
                   {"description", param.meaning},
                   {"schema", schema_of(param)}});
  return out;
}

Json fields_schema(const Route& route) {
  Json out{{"type", "object"}, {"additionalProperties", false}, {"properties", Json::object()}};
  for (const Param& param : route.fields) {
    out["properties"][std::string(param.name)] = schema_of(param);
    out["properties"][std::string(param.name)]["description"] = param.meaning;
    if (param.need == Param::Need::needed) out["required"].push_back(param.name);
  }
  return out;
}

bool is_body_needed(const Route& route) {
  return route.body != Route::Body::fields || std::ranges::any_of(route.fields, [](const Param& p) {
           return p.need == Param::Need::needed;
         });
}

Json body_of(const Route& route) {
  Json content = Json::object();
  switch (route.body) {
    case Route::Body::none:
      break;
    case Route::Body::lines:
      content["application/x-ndjson"]["schema"] = {{"type", "string"}};
      content["text/plain"]["schema"] = {{"type", "string"}};
      break;
    case Route::Body::fields:
      content["application/json"]["schema"] = fields_schema(route);
      break;
    case Route::Body::json:
      content["application/json"]["schema"] = {{"type", "object"}};
      break;
    case Route::Body::packed:
      content["application/gzip"]["schema"] = {{"type", "string"}, {"format", "binary"}};
      break;
  }
  return {{"required", is_body_needed(route)}, {"content", content}};
}

Json reference(std::string_view schema) {
  return {{"$ref", fmt::format("#/components/schemas/{}", schema)}};
}

Json responses_of(const Route& route) {
  Json out = Json::object();
  Json content = Json::object();
  content[std::string(route.reply_type)]["schema"] =
      route.reply_schema.empty() ? Json{{"type", "string"}} : reference(route.reply_schema);
  out["200"] = {{"description", "Done."}, {"content", content}};
  for (const int status : problems_of(route)) {
    Json problem = Json::object();
    problem["application/problem+json"]["schema"] = reference("Problem");
    out[std::to_string(status)] = {{"description", phrase_of(status)}, {"content", problem}};
  }
  return out;
}

Json operation_of(const Route& route) {
  Json out{{"operationId", route.id}, {"summary", route.summary}};
  if (Json parameters = parameters_of(route); !parameters.empty()) out["parameters"] = parameters;
  if (route.body != Route::Body::none) out["requestBody"] = body_of(route);
  out["responses"] = responses_of(route);
  out["security"] = Json::array();
  if (route.role) {
    for (const char* scheme : {"token", "password", "certificate"})
      out["security"].push_back(Json{{scheme, Json::array()}});
    out["x-role"] = to_text(*route.role);
  }
  return out;
}

}  // namespace

std::string Values::text(std::string_view name) const {
  const auto at = values_.find(name);
  return at == values_.end() ? "" : at->second.text;
}

std::int64_t Values::count(std::string_view name, std::int64_t fallback) const {
  const auto at = values_.find(name);
  return at == values_.end() ? fallback : at->second.count;
}

Timestamp Values::time(std::string_view name, Timestamp fallback) const {
  const auto at = values_.find(name);
  return at == values_.end() ? fallback : at->second.time;
}

Status Values::set(const Param& param, std::string_view text) {
  Value value{.text = std::string(text)};
  const std::string shown = fmt::format("{} {}", param.name, quote(text));
  switch (param.type) {
    case Param::Type::text:
      if (std::cmp_less(text.size(), param.least) || std::cmp_greater(text.size(), param.most))
        return fail(Errc::value, {}, fmt::format("{} has {} bytes", shown, text.size()),
                    fmt::format("use {} to {}", param.least, param.most));
      if (!param.choices.empty() && std::ranges::find(param.choices, text) == param.choices.end())
        return fail(Errc::value, {}, fmt::format("unknown {}", shown),
                    fmt::format("one of {}", fmt::join(param.choices, ", ")));
      break;
    case Param::Type::count: {
      WEFT_TRY(value.count, parse_count({text, {}}));
      if (value.count < param.least || value.count > param.most)
        return fail(Errc::value, {}, fmt::format("{} is out of range", shown),
                    fmt::format("use {} to {}", param.least, param.most));
      break;
    }
    case Param::Type::time: {
      WEFT_TRY(value.time, parse_timestamp({text, {}}));
      break;
    }
  }
  values_.insert_or_assign(std::string(param.name), std::move(value));
  return {};
}

std::expected<Matched, Problem> match(std::span<const Route> routes, std::string_view method,
                                      const std::vector<std::string>& path, std::string& allow) {
  std::set<std::string_view> methods;
  for (const Route& route : routes) {
    Matched out{&route, {}};
    if (!fits(route, path, out.pieces)) continue;
    if (route.method == method || (route.method == "GET" && method == "HEAD")) return out;
    methods.insert(route.method);
    if (route.method == "GET") methods.insert("HEAD");
  }
  if (methods.empty())
    return std::unexpected(Problem{404, "not-found", "no such path; see /openapi.json"});
  methods.insert("OPTIONS");
  allow = fmt::format("{}", fmt::join(methods, ", "));
  return std::unexpected(Problem{405, "method", fmt::format("this path accepts {}", allow)});
}

Result<Values> read_query(const Route& route, const Target& target) {
  Values out;
  for (const auto& [name, text] : target.query)
    WEFT_TRY_STATUS(set_known(route.query, name, text, out));
  WEFT_TRY_STATUS(check_needed(route.query, out));
  return out;
}

Result<Values> read_fields(const Route& route, std::string_view body) {
  Values out;
  if (trim(body).empty() && !is_body_needed(route)) return out;
  WEFT_TRY(const JsonLine json, JsonLine::parse(body, {"body"}));
  for (const auto& [name, text] : json.members()) {
    const bool is_known = std::ranges::find(route.fields, name, &Param::name) != route.fields.end();
    if (is_known && !json.has(name)) continue;  // null is as good as absent
    WEFT_TRY_STATUS(set_known(route.fields, name, text, out));
  }
  Errors errors;
  for (const Param& param : route.fields)  // members() gives numbers as texts too
    if (param.type == Param::Type::text && json.has(param.name)) json.text(param.name, {}, errors);
  if (!errors.empty()) return std::unexpected(combine(std::move(errors)));
  WEFT_TRY_STATUS(check_needed(route.fields, out));
  return out;
}

std::vector<int> problems_of(const Route& route) {
  std::set<int> out{400};
  out.insert(route.problems.begin(), route.problems.end());
  if (route.role) out.insert({401, 403});
  if (route.path.find('{') != std::string_view::npos) out.insert(404);
  if (route.body != Route::Body::none) out.insert({408, 411, 413, 415});
  return {out.begin(), out.end()};
}

std::string openapi_document(std::span<const Route> routes) {
  Json paths = Json::object();
  for (const Route& route : routes) {
    std::string method(route.method);
    for (char& c : method) c = static_cast<char>(c - 'A' + 'a');
    paths[std::string(route.path)][method] = operation_of(route);
  }
  Json out{{"openapi", "3.1.0"},
           {"info",
            {{"title", "weft"},
             {"version", "1"},
             {"description", "Ingest feeds; read cases, repairs and their history."}}}};
  out["paths"] = std::move(paths);
  out["components"] = {{"schemas", Json::parse(schemas)},
                       {"securitySchemes",
                        {{"token", {{"type", "http"}, {"scheme", "bearer"}}},
                         {"password", {{"type", "http"}, {"scheme", "basic"}}},
                         {"certificate", {{"type", "mutualTLS"}}}}}};
  return out.dump(1);
}

}  // namespace weft::serve
