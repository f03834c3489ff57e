#include "serve/external_metrics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "base/json_text.hpp"
#include "base/text.hpp"

namespace weft::serve {
namespace {

constexpr std::string_view metric_group = "external.metrics.k8s.io", metric_version = "v1beta1";
constexpr std::string_view metric_group_version = "external.metrics.k8s.io/v1beta1";

// What clients of Kubernetes add to any request; only the selector means anything here.
std::vector<Param> kubernetes_params() {
  std::vector<Param> out{{"labelSelector", "labels that values have", Param::Type::text}};
  for (const char* name : {"fieldSelector", "limit", "continue", "pretty", "resourceVersion",
                           "resourceVersionMatch", "timeout", "timeoutSeconds"})
    out.push_back({name, "as Kubernetes has it; without effect here", Param::Type::text});
  return out;
}

Reply json_of(std::string body) {
  Reply out;
  out.body = std::move(body);
  return out;
}

// Kubernetes' metav1.Status.
Reply status_reply(int code, std::string_view reason, const std::string& message) {
  Reply out = json_of(JsonObject()
                          .add("kind", "Status")
                          .add("apiVersion", "v1")
                          .add("metadata", JsonObject())
                          .add("status", "Failure")
                          .add("message", message)
                          .add("reason", reason)
                          .add("code", code)
                          .text());
  out.status = code;
  return out;
}

Reply status_of(const Error& error) {
  const std::string text = error.text();
  switch (error.code) {
    case Errc::unknown:
      return status_reply(404, "NotFound", text);
    case Errc::infeasible:
      return status_reply(503, "ServiceUnavailable", text);
    default:
      return status_reply(400, "BadRequest", text);
  }
}

JsonObject version_object() {
  return std::move(
      JsonObject().add("groupVersion", metric_group_version).add("version", metric_version));
}

JsonObject group_object() {
  return std::move(JsonObject()
                       .add("name", metric_group)
                       .add("versions", JsonList().add(version_object()))
                       .add("preferredVersion", version_object()));
}

std::string resource_list(const std::vector<std::string>& names) {
  JsonList resources;
  for (const std::string& name : names)
    resources.add(JsonObject()
                      .add("name", name)
                      .add("singularName", "")
                      .add("namespaced", true)
                      .add("kind", "ExternalMetricValueList")
                      .add("verbs", JsonList().add("get")));
  return JsonObject()
      .add("kind", "APIResourceList")
      .add("apiVersion", "v1")
      .add("groupVersion", metric_group_version)
      .add("resources", resources)
      .text();
}

Reply values_reply(const ExternalMetricSource& source, const Call& call) {
  const auto selector = LabelSelector::parse(call.query.text("labelSelector"));
  if (!selector) return status_of(selector.error());
  const auto values = source.read(call.pieces[0], call.pieces[1]);
  if (!values) return status_of(values.error());
  JsonList items;
  for (const ExternalMetric& value : *values) {
    if (!selector->fits(value.labels)) continue;
    JsonObject labels;
    for (const auto& [key, text] : value.labels) labels.add(key, text);
    items.add(JsonObject()
                  .add("metricName", value.name)
                  .add("metricLabels", labels)
                  // Of whole seconds: that is how metav1.Time is written.
                  .add("timestamp", Timestamp{value.t.ns / ns_per_s * ns_per_s})
                  .add("value", std::to_string(value.value)));
  }
  return json_of(JsonObject()
                     .add("kind", "ExternalMetricValueList")
                     .add("apiVersion", metric_group_version)
                     .add("metadata", JsonObject())
                     .add("items", items)
                     .text());
}

bool is_label_text(std::string_view text) {
  return text.size() <= 316 && std::ranges::all_of(text, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  std::string_view("._-/").find(c) != std::string_view::npos;
         });
}

Route text_route(std::string_view path, std::string_view id, std::string_view summary,
                 std::function<Result<Reply>(const Call&)> handler) {
  return {.method = "GET",
          .path = path,
          .id = id,
          .summary = summary,
          .role = std::nullopt,
          .query = kubernetes_params(),
          .handler = std::move(handler)};
}

}  // namespace

Result<LabelSelector::Term> LabelSelector::parse_term(std::string_view text) {
  const auto wrong = [&] {
    return fail(Errc::parse, {}, fmt::format("{} is not a term of a label selector", quote(text)),
                "write key=value, key!=value, key in (a,b), key notin (a,b), key or !key");
  };
  Term out{.key = {}, .kind = Kind::exists, .values = {}};
  const std::size_t open = text.find('(');
  if (open != std::string_view::npos) {
    if (!text.ends_with(')')) return wrong();
    const std::string_view head = trim(text.substr(0, open));
    const bool is_not = head.ends_with(" notin");
    if (!is_not && !head.ends_with(" in")) return wrong();
    out.kind = is_not ? Kind::not_in : Kind::in;
    out.key = trim(head.substr(0, head.size() - (is_not ? 6 : 3)));
    for (const auto value : split(text.substr(open + 1, text.size() - open - 2), ','))
      out.values.emplace_back(trim(value));
  } else if (const std::size_t at = text.find('='); at != std::string_view::npos) {
    const bool is_not = at > 0 && text[at - 1] == '!';
    out.kind = is_not ? Kind::not_in : Kind::in;
    out.key = trim(text.substr(0, is_not ? at - 1 : at));
    const std::size_t value = at + (text.substr(at).starts_with("==") ? 2 : 1);
    out.values.emplace_back(trim(text.substr(value)));
  } else {
    out.kind = text.starts_with('!') ? Kind::missing : Kind::exists;
    out.key = trim(text.substr(text.starts_with('!') ? 1 : 0));
  }
  if (out.key.empty() || !is_label_text(out.key) || !std::ranges::all_of(out.values, is_label_text))
    return wrong();
  return out;
}

Result<LabelSelector> LabelSelector::parse(std::string_view text) {
  LabelSelector out;
  text = trim(text);
  while (!text.empty()) {
    std::size_t end = 0;
    for (int depth = 0; end < text.size() && (text[end] != ',' || depth > 0); ++end)
      depth += text[end] == '(' ? 1 : text[end] == ')' ? -1 : 0;
    WEFT_TRY(Term term, parse_term(trim(text.substr(0, end))));
    out.terms_.push_back(std::move(term));
    text = end < text.size() ? trim(text.substr(end + 1)) : std::string_view();
  }
  return out;
}

bool LabelSelector::fits(const std::map<std::string, std::string, std::less<>>& labels) const {
  return std::ranges::all_of(terms_, [&](const Term& term) {
    const auto at = labels.find(term.key);
    const bool has = at != labels.end();
    const bool is_one = has && std::ranges::find(term.values, at->second) != term.values.end();
    switch (term.kind) {
      case Kind::in:
        return is_one;
      case Kind::not_in:
        return !is_one;
      case Kind::exists:
        return has;
      case Kind::missing:
        return !has;
    }
    std::unreachable();
  });
}

std::vector<Route> external_metric_routes(ExternalMetricSource given, Meters& meters) {
  const auto source = std::make_shared<const ExternalMetricSource>(std::move(given));
  std::vector<Route> out;
  for (const std::string_view path : {"/healthz", "/livez", "/readyz"})
    out.push_back(text_route(path, path.substr(1), "Whether the server is there",
                             [](const Call&) -> Result<Reply> {
                               Reply ok = json_of("ok");
                               ok.type = "text/plain";
                               return ok;
                             }));
  out.push_back(text_route("/apis", "listGroups", "APIGroupList", [](const Call&) -> Result<Reply> {
    return json_of(JsonObject()
                       .add("kind", "APIGroupList")
                       .add("apiVersion", "v1")
                       .add("groups", JsonList().add(group_object()))
                       .text());
  }));
  out.push_back(text_route("/apis/external.metrics.k8s.io", "readGroup", "APIGroup",
                           [](const Call&) -> Result<Reply> {
                             return json_of(JsonObject()
                                                .add("kind", "APIGroup")
                                                .add("apiVersion", "v1")
                                                .add_all(group_object())
                                                .text());
                           }));
  out.push_back(text_route(
      "/apis/external.metrics.k8s.io/v1beta1", "listResources", "APIResourceList",
      [source](const Call&) -> Result<Reply> { return json_of(resource_list(source->names)); }));
  out.push_back({.method = "GET",
                 .path = "/apis/external.metrics.k8s.io/v1beta1/namespaces/{namespace}/{metric}",
                 .id = "readValues",
                 .summary = "ExternalMetricValueList",
                 .role = Role::read,
                 .tenant_piece = 0,
                 .query = kubernetes_params(),
                 .handler = [source](const Call& call) -> Result<Reply> {
                   return values_reply(*source, call);
                 }});
  out.push_back({.method = "POST",
                 .path = "/v1/series/{tenant}/{service}",
                 .id = "pushSamples",
                 .summary = "Samples of a service's demand: CSV with time and value",
                 .role = Role::ingest,
                 .tenant_piece = 0,
                 .body = Route::Body::lines,
                 .handler = [source](const Call& call) -> Result<Reply> {
                   WEFT_TRY(const std::size_t taken,
                            source->push(call.pieces[0], call.pieces[1], call.body));
                   return json_of(JsonObject().add("taken", taken).text());
                 }});
  out.push_back({.method = "GET",
                 .path = "/metrics",
                 .id = "readMetrics",
                 .summary = "Prometheus text",
                 .role = Role::read,
                 .reply_type = "text/plain",
                 .handler = [source, &meters](const Call&) -> Result<Reply> {
                   Reply text = json_of(source->metrics() + meters.text());
                   text.type = "text/plain; version=0.0.4; charset=utf-8";
                   return text;
                 }});
  return out;
}

}  // namespace weft::serve
