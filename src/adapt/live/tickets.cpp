#include "adapt/live/tickets.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "adapt/live/http_client.hpp"
#include "base/markup.hpp"

namespace weft::adapt::live {
namespace {

using nlohmann::json;

constexpr std::array<std::string_view, 3> raising{"repair_overdue", "repair_failed",
                                                  "repair_replace"};

bool raises(std::string_view event) { return std::ranges::find(raising, event) != raising.end(); }

json ticket_json(const std::string& text) {
  json out = json::parse(text, nullptr, false);
  return out.is_discarded() ? json::object() : out;
}

std::string ticket_word(const json& of, const char* pointer) {
  const json::json_pointer at{pointer};
  if (!of.contains(at)) return {};
  const json& value = of.at(at);
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string dumped(const json& body) {
  return body.dump(-1, ' ', false, json::error_handler_t::replace);
}

// Nothing is left to do about the case: it is closed, and the part that was drained for it is back
// for good. Of a repair with several cases the end is told of the last one.
bool is_done(const port::Notice& notice) {
  const json body = ticket_json(notice.body);
  if (notice.event != "case_closed" && body.value("open", true)) return false;
  const json repair = body.value("repair", json::object());
  const json cases = repair.value("cases", json::array());
  const bool is_last = cases.empty() || cases.back().value("id", "") == notice.case_id;
  return !is_last || !repair.value("was_drained", false) || repair.contains("ended");
}

// By which the ticket of a case is found again; labels of Jira must not contain blanks.
std::string mark_of(const std::string& case_id) {
  std::string out = "weft-" + case_id;
  std::ranges::replace(out, ' ', '-');
  return out;
}

json labels_of(const TicketSettings& settings, const std::string& case_id) {
  json out = settings.labels;
  out.push_back(mark_of(case_id));
  return out;
}

// Each system's requests: what its published API calls an issue, a comment, a closed one.
struct TicketApi {
  const TicketSettings& s;
  std::string base;  // path of the URL, without "/" at the end

  explicit TicketApi(const TicketSettings& settings)
      : s(settings), base(settings.http.target.path) {
    while (base.ends_with('/')) base.pop_back();
  }
  std::string jira(const std::string& rest) const { return base + "/rest/api/2" + rest; }
  std::string table(const std::string& rest) const {
    return fmt::format("{}/api/now/table/{}{}", base, s.table, rest);
  }

  TicketRequest search(const std::string& case_id) const {
    const std::string mark = mark_of(case_id);
    switch (s.system) {
      case TicketSystem::github:
        return {
            "GET",
            fmt::format("{}/issues?state=all&per_page=1&labels={}", base, percent_encoded(mark)),
            {}};
      case TicketSystem::jira:
        return {"GET",
                fmt::format("{}{}?maxResults=1&fields=summary&jql={}", base, s.search,
                            percent_encoded(fmt::format("project = \"{}\" AND labels = \"{}\"",
                                                        s.project, mark))),
                {}};
      case TicketSystem::servicenow:
        return {"GET",
                table(fmt::format("?sysparm_limit=1&sysparm_fields=sys_id&sysparm_query={}",
                                  percent_encoded("correlation_id=" + mark))),
                {}};
    }
    return {};
  }
  std::string found(const std::string& body) const {
    const json answer = ticket_json(body);
    if (s.system == TicketSystem::github) return ticket_word(answer, "/0/number");
    if (s.system == TicketSystem::jira) return ticket_word(answer, "/issues/0/key");
    return ticket_word(answer, "/result/0/sys_id");
  }

  TicketRequest make(const port::Notice& notice) const {
    const std::string title = ticket_title(notice), text = ticket_text(s, notice);
    json labels = labels_of(s, notice.case_id);
    switch (s.system) {
      case TicketSystem::github:
        if (!s.priority.empty()) labels.push_back(s.priority);
        return {"POST", base + "/issues",
                dumped({{"title", title}, {"body", text}, {"labels", labels}})};
      case TicketSystem::jira: {
        json fields{{"project", {{"key", s.project}}},
                    {"issuetype", {{"name", s.type}}},
                    {"summary", title},
                    {"description", text},
                    {"labels", labels}};
        if (!s.priority.empty()) fields["priority"] = {{"name", s.priority}};
        return {"POST", jira("/issue"), dumped({{"fields", fields}})};
      }
      case TicketSystem::servicenow: {
        json fields{{"short_description", title},
                    {"description", text},
                    {"correlation_id", mark_of(notice.case_id)},
                    {"correlation_display", "weft"}};
        if (!s.priority.empty()) fields["urgency"] = fields["impact"] = s.priority;
        return {"POST", table(""), dumped(fields)};
      }
    }
    return {};
  }
  std::string made(const std::string& body) const {
    const json answer = ticket_json(body);
    if (s.system == TicketSystem::github) return ticket_word(answer, "/number");
    if (s.system == TicketSystem::jira) return ticket_word(answer, "/key");
    return ticket_word(answer, "/result/sys_id");
  }

  TicketRequest comment(const std::string& ticket, const port::Notice& notice) const {
    const std::string text =
        fmt::format("{}: {} ({})", notice.event, notice.summary, to_text(notice.t));
    if (s.system == TicketSystem::github)
      return {"POST", fmt::format("{}/issues/{}/comments", base, ticket), dumped({{"body", text}})};
    if (s.system == TicketSystem::jira)
      return {"POST", jira(fmt::format("/issue/{}/comment", ticket)), dumped({{"body", text}})};
    return {"PATCH", table("/" + ticket), dumped({{"work_notes", text}})};
  }
  TicketRequest retitle(const std::string& ticket, const port::Notice& notice) const {
    const std::string title = ticket_title(notice), text = ticket_text(s, notice);
    if (s.system == TicketSystem::github)
      return {"PATCH", fmt::format("{}/issues/{}", base, ticket),
              dumped({{"title", title}, {"body", text}})};
    if (s.system == TicketSystem::jira)
      return {"PUT", jira("/issue/" + ticket),
              dumped({{"fields", {{"summary", title}, {"description", text}}}})};
    return {"PATCH", table("/" + ticket),
            dumped({{"short_description", title}, {"description", text}})};
  }
  TicketRequest raise(const std::string& ticket) const {
    if (s.system == TicketSystem::github)
      return {"POST", fmt::format("{}/issues/{}/labels", base, ticket),
              dumped({{"labels", {s.raised_priority}}})};
    if (s.system == TicketSystem::jira)
      return {"PUT", jira("/issue/" + ticket),
              dumped({{"fields", {{"priority", {{"name", s.raised_priority}}}}}})};
    return {"PATCH", table("/" + ticket),
            dumped({{"urgency", s.raised_priority}, {"impact", s.raised_priority}})};
  }
  TicketRequest close(const std::string& ticket, const port::Notice& notice) const {
    if (s.system == TicketSystem::github)
      return {"PATCH", fmt::format("{}/issues/{}", base, ticket),
              dumped({{"state", "closed"}, {"state_reason", "completed"}})};
    if (s.system == TicketSystem::jira)
      return {"POST", jira(fmt::format("/issue/{}/transitions", ticket)),
              dumped({{"transition", {{"id", s.closing}}}})};
    json fields{{"state", s.closing}, {"close_notes", notice.summary}};
    if (!s.close_code.empty()) fields["close_code"] = s.close_code;
    return {"PATCH", table("/" + ticket), dumped(fields)};
  }
};

std::string secret_in(Reader& reader, const char* key) {
  const std::string path = reader.text(key, "");
  if (path.empty()) return {};
  auto secret = read_secret(path);
  if (secret) return *std::move(secret);
  reader.error(secret.error().code, reader.where(key), secret.error().text(), secret.error().hint);
  return {};
}

void check(Reader& reader, const TicketSettings& s) {
  if (s.token.empty() == s.basic.empty())
    reader.error(Errc::value, reader.where("token_file"), "give one of token_file and basic_file",
                 "basic_file holds base64 of user:password");
  if (s.system == TicketSystem::jira && (s.project.empty() || s.closing.empty()))
    reader.error(Errc::value, reader.where("project"),
                 "Jira needs project, and closing: the id of the transition that closes an issue",
                 "GET /rest/api/2/issue/KEY/transitions lists them");
  if (s.system == TicketSystem::servicenow && s.closing.empty())
    reader.error(Errc::value, reader.where("closing"),
                 "ServiceNow needs closing: the value of state that closes a record",
                 "for incidents of a plain instance 7 is Closed, 6 Resolved");
}

}  // namespace

Result<TicketSettings> read_ticket_settings(const Config& config) {
  Errors errors;
  Reader reader(config, "tickets", errors);
  TicketSettings out;
  const std::vector<std::string> systems(ticket_system_names.begin(), ticket_system_names.end());
  out.system = static_cast<TicketSystem>(reader.choice("system", systems, std::nullopt));
  out.http = read_http_settings(reader);
  out.token = secret_in(reader, "token_file");
  out.basic = secret_in(reader, "basic_file");
  out.project = reader.text("project", "");
  out.type = reader.text("type", out.type);
  out.search = reader.text("search", out.search);
  out.table = reader.text("table", out.table);
  out.closing = reader.text("closing", "");
  out.close_code = reader.text("close_code", "");
  out.priority = reader.text("priority", "");
  out.raised_priority = reader.text("raised_priority", "");
  out.external_url = reader.text("external_url", "");
  if (reader.has("labels")) {
    out.labels.clear();
    for (const Token& label : reader.texts("labels")) out.labels.emplace_back(label.text);
  }
  check(reader, out);
  reader.finish();
  if (!errors.empty()) return std::unexpected(combine(std::move(errors)));
  return out;
}

std::string ticket_title(const port::Notice& notice) {
  const json body = ticket_json(notice.body);
  return fmt::format("{} at {}", ticket_word(body, "/cause/kind"),
                     ticket_word(body, "/cause/entity"));
}

std::string ticket_text(const TicketSettings& settings, const port::Notice& notice) {
  const json body = ticket_json(notice.body);
  const auto line = [](std::string_view name, const std::string& text) {
    return text.empty() ? std::string() : fmt::format("{}: {}\n", name, text);
  };
  std::string out = line("Case", notice.case_id) + line("Cause", ticket_title(notice)) +
                    line("Confidence", ticket_word(body, "/confidence")) +
                    line("First evidence", ticket_word(body, "/opened")) +
                    line("Part", ticket_word(body, "/repair/part")) +
                    line("Repair", ticket_word(body, "/repair/stage")) +
                    line("Reason", ticket_word(body, "/repair/reason"));
  if (!settings.external_url.empty())
    out += fmt::format("Case, time line and snapshot: {}/#/case/{}\n", settings.external_url,
                       percent_encoded(notice.case_id));
  return out;
}

TicketNotifier::TicketNotifier(TicketSettings settings)
    : settings_(std::move(settings)), send_([this](const TicketRequest& request) {
        HttpHeaders headers{
            {"Authorization",
             settings_.token.empty() ? "Basic " + settings_.basic : "Bearer " + settings_.token},
            {"Accept", "application/json"},
            {"User-Agent", "weft"}};  // GitHub refuses requests without one
        return send_json(settings_.http, request.method, request.path, request.body, headers);
      }) {}

TicketNotifier::TicketNotifier(TicketSettings settings, Send send)
    : settings_(std::move(settings)), send_(std::move(send)) {}

Result<std::string> TicketNotifier::call(const TicketRequest& request) {
  WEFT_TRY(const TicketAnswer answer, send_(request));
  if (answer.status >= 200 && answer.status < 300) return answer.body;
  return fail(answer.status >= 500 || answer.status == 429 ? Errc::io : Errc::value, {},
              fmt::format("{} answers {} {} with status {}: {}", to_text(settings_.system),
                          request.method, request.path, answer.status, quote(answer.body)));
}

Result<std::string> TicketNotifier::find_or_make(const port::Notice& notice) {
  const TicketApi api(settings_);
  WEFT_TRY(const std::string list, call(api.search(notice.case_id)));
  if (std::string ticket = api.found(list); !ticket.empty()) return ticket;
  if (notice.event == "case_closed") return std::string();  // it was never worth one
  WEFT_TRY(const std::string answer, call(api.make(notice)));
  std::string ticket = api.made(answer);
  if (ticket.empty())
    return fail(Errc::io, {},
                fmt::format("{} does not name the ticket it made: {}", to_text(settings_.system),
                            quote(answer)));
  return ticket;
}

Status TicketNotifier::notify(const port::Notice& notice) {
  const TicketApi api(settings_);
  auto known = tickets_.find(notice.case_id);
  if (known == tickets_.end()) {
    WEFT_TRY(std::string ticket, find_or_make(notice));
    if (ticket.empty()) return {};
    if (tickets_.size() >= cases_max) tickets_.erase(tickets_.begin());
    known = tickets_.emplace(notice.case_id, Known{.ticket = std::move(ticket), .steps = {}}).first;
  }
  Known& here = known->second;
  // A notice may come again after a part of it was done: what was done is not repeated.
  const auto once = [&](const char* step, const TicketRequest& request) -> Status {
    const std::string name = notice.id + step;
    if (std::ranges::find(here.steps, name) != here.steps.end()) return {};
    WEFT_TRY_STATUS(call(request));
    here.steps.push_back(name);
    if (here.steps.size() > steps_max) here.steps.pop_front();
    return {};
  };
  if (notice.event == "case_updated")
    WEFT_TRY_STATUS(once("title", api.retitle(here.ticket, notice)));
  if (notice.event != "case_opened")
    WEFT_TRY_STATUS(once("comment", api.comment(here.ticket, notice)));
  if (raises(notice.event) && !settings_.raised_priority.empty())
    WEFT_TRY_STATUS(once("raise", api.raise(here.ticket)));
  if (is_done(notice) && !here.is_closed) {
    WEFT_TRY_STATUS(once("close", api.close(here.ticket, notice)));
    here.is_closed = true;
  }
  if (notice.event == "case_opened") here.is_closed = false;
  return {};
}

}  // namespace weft::adapt::live
