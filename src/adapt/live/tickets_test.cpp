#include "adapt/live/tickets.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <httplib.h>
#include <sys/stat.h>

#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "base/file.hpp"
#include "base/test_folder.hpp"
#include "base/text.hpp"

namespace weft::adapt::live {
namespace {

using nlohmann::json;

port::Notice notice(const std::string& id, const std::string& event) {
  return {
      .id = id,
      .t = {1'700'000'000'000'000'000},
      .event = event,
      .case_id = "79fb656b217f",
      .summary = "rtsw:3--ctsw:1 is lossy",
      .body =
          R"({"case":"79fb656b217f","cause":{"kind":"optic","entity":"rtsw:3--ctsw:1"},)"
          R"("confidence":0.912,"opened":"2026-11-26T10:00:00Z",)"
          R"("repair":{"part":"rtsw:3--ctsw:1","stage":"drained","reason":"19 of 2,000 lost"}})"};
}

// A tracker that follows the published request shapes of the three systems, over HTTP on this
// machine: paths, methods and the fields of bodies that they define. What it does not know is 404,
// and a body without the fields that the system demands is 400, as with the real ones.
class Tracker {
 public:
  struct Issue {
    std::string title, text, state = "open", priority;
    std::vector<std::string> labels, comments;
  };
  std::map<int, Issue> issues;
  std::vector<std::string> calls;  // "POST /repos/o/n/issues"
  int busy = 0;                    // answers of 503 before the next good one

  explicit Tracker(TicketSystem system) : system_(system) {
    const auto handle = [this](const httplib::Request& request, httplib::Response& response) {
      calls.push_back(request.method + " " + request.path);
      response.status = 404;
      if (request.get_header_value("Authorization") != "Bearer s3cret") {
        response.status = 401;
      } else if (busy > 0) {
        --busy;
        response.status = 503;
      } else {
        answer(request, json::parse(request.body, nullptr, false), response);
      }
    };
    server_.Get(".*", handle).Post(".*", handle).Put(".*", handle).Patch(".*", handle);
    port_ = server_.bind_to_any_port("127.0.0.1");
    thread_ = std::jthread([this] { server_.listen_after_bind(); });
    while (!server_.is_running()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    REQUIRE(write_file(folder_.file("token"), "s3cret\n"));
    REQUIRE(::chmod(folder_.file("token").c_str(), 0600) == 0);
  }
  ~Tracker() { server_.stop(); }

  TicketSettings settings() const {
    std::string yaml =
        fmt::format("system: {}\ntoken_file: {}\nexternal_url: https://weft.example\n",
                    to_text(system_), folder_.file("token"));
    const std::string origin = fmt::format("url: http://127.0.0.1:{}", port_);
    if (system_ == TicketSystem::github) yaml += origin + "/repos/o/n\nraised_priority: urgent\n";
    if (system_ == TicketSystem::jira)
      yaml +=
          origin + "\nproject: NET\nclosing: '31'\npriority: Medium\nraised_priority: Highest\n";
    if (system_ == TicketSystem::servicenow)
      yaml +=
          origin +
          "\nclosing: '6'\nclose_code: Solution provided\npriority: '3'\nraised_priority: '1'\n";
    const auto config = parse_yaml(yaml, "tickets.yaml");
    REQUIRE(config.has_value());
    const auto read = read_ticket_settings(*config);
    REQUIRE_MESSAGE(read.has_value(), (read ? "" : read.error().text()));
    return *read;
  }

 private:
  void answer(const httplib::Request& request, const json& body, httplib::Response& response) {
    if (system_ == TicketSystem::github) github(request, body, response);
    if (system_ == TicketSystem::jira) jira(request, body, response);
    if (system_ == TicketSystem::servicenow) servicenow(request, body, response);
  }
  static void reply(httplib::Response& response, int status, const json& body) {
    response.status = status;
    if (status != 204) response.set_content(body.dump(), "application/json");
  }
  int find(const std::string& label) const {
    for (const auto& [number, issue] : issues)
      for (const std::string& one : issue.labels)
        if (one == label) return number;
    return 0;
  }

  // "17" of "17/comments"; 0 where there is none.
  static int number_in(std::string_view text) {
    const auto number = parse_count({text.substr(0, text.find('/')), {}});
    return number ? static_cast<int>(*number) : 0;
  }

  // docs.github.com/en/rest/issues: list, create, update an issue; comments; labels.
  void github(const httplib::Request& request, const json& body, httplib::Response& response) {
    const std::string base = "/repos/o/n/issues", &path = request.path;
    if (request.get_header_value("User-Agent").empty()) return reply(response, 403, {});
    if (request.method == "GET" && path == base) {
      const int found = find(request.get_param_value("labels"));
      CHECK(request.get_param_value("state") == "all");
      return reply(response, 200, found == 0 ? json::array() : json::array({{{"number", found}}}));
    }
    if (request.method == "POST" && path == base) {
      if (!body.contains("title")) return reply(response, 422, {});
      Issue& issue = issues[++last_];
      issue.title = body["title"];
      issue.text = body.value("body", "");
      issue.labels = body.value("labels", std::vector<std::string>());
      return reply(response, 201, {{"number", last_}});
    }
    const int number = number_in(path.substr(base.size() + 1));
    if (!issues.contains(number)) return;
    Issue& issue = issues[number];
    if (request.method == "POST" && path.ends_with("/comments")) {
      issue.comments.push_back(body.at("body"));
      return reply(response, 201, json::object());
    }
    if (request.method == "POST" && path.ends_with("/labels")) {
      issue.priority = body.at("labels").at(0);
      return reply(response, 200, json::array());
    }
    if (request.method != "PATCH") return;
    issue.title = body.value("title", issue.title);
    issue.state = body.value("state", issue.state);
    reply(response, 200, json::object());
  }

  // developer.atlassian.com/cloud/jira/platform/rest: search by JQL, issues, comments, transitions.
  void jira(const httplib::Request& request, const json& body, httplib::Response& response) {
    const std::string &path = request.path, issue_path = "/rest/api/2/issue";
    if (request.method == "GET" && path == "/rest/api/3/search/jql") {
      const std::string jql = request.get_param_value("jql");
      const std::string before = "project = \"NET\" AND labels = \"";
      REQUIRE(jql.starts_with(before));
      const int found = find(jql.substr(before.size(), jql.size() - before.size() - 1));
      json list = json::array();
      if (found != 0) list.push_back({{"key", fmt::format("NET-{}", found)}});
      return reply(response, 200, {{"issues", list}, {"isLast", true}});
    }
    if (request.method == "POST" && path == issue_path) {
      const json fields = body.value("fields", json::object());
      if (!fields.contains("project") || !fields.contains("issuetype") ||
          !fields.contains("summary"))
        return reply(response, 400, {});
      Issue& issue = issues[++last_];
      issue.title = fields["summary"];
      issue.text = fields.value("description", "");
      issue.labels = fields.value("labels", std::vector<std::string>());
      issue.priority = fields["priority"]["name"];
      return reply(response, 201, {{"id", "1"}, {"key", fmt::format("NET-{}", last_)}});
    }
    const std::string before = issue_path + "/NET-";
    if (!path.starts_with(before)) return;
    const int number = number_in(path.substr(before.size()));
    if (!issues.contains(number)) return;
    Issue& issue = issues[number];
    if (request.method == "POST" && path.ends_with("/comment")) {
      issue.comments.push_back(body.at("body"));
      return reply(response, 201, json::object());
    }
    if (request.method == "POST" && path.ends_with("/transitions")) {
      CHECK(body["transition"]["id"] == "31");
      issue.state = "closed";
      return reply(response, 204, {});
    }
    if (request.method != "PUT") return;
    const json& fields = body.at("fields");
    issue.title = fields.value("summary", issue.title);
    if (fields.contains("priority")) issue.priority = fields["priority"]["name"];
    reply(response, 204, {});
  }

  // docs.servicenow.com: Table API.
  void servicenow(const httplib::Request& request, const json& body, httplib::Response& response) {
    const std::string base = "/api/now/table/incident", &path = request.path;
    if (request.method == "GET" && path == base) {
      const std::string query = request.get_param_value("sysparm_query");
      REQUIRE(query.starts_with("correlation_id="));
      const int found = find(query.substr(15));
      json list = json::array();
      if (found != 0) list.push_back({{"sys_id", fmt::format("s{}", found)}});
      return reply(response, 200, {{"result", list}});
    }
    if (request.method == "POST" && path == base) {
      Issue& issue = issues[++last_];
      issue.title = body.at("short_description");
      issue.text = body.at("description");
      issue.labels = {body.at("correlation_id")};
      issue.priority = body.at("urgency");
      return reply(response, 201, {{"result", {{"sys_id", fmt::format("s{}", last_)}}}});
    }
    if (request.method != "PATCH" || !path.starts_with(base + "/s")) return;
    Issue& issue = issues[number_in(path.substr(base.size() + 2))];
    issue.title = body.value("short_description", issue.title);
    issue.priority = body.value("urgency", issue.priority);
    if (body.contains("work_notes")) issue.comments.push_back(body["work_notes"]);
    if (body.contains("state")) {
      CHECK(body["state"] == "6");
      CHECK(body["close_code"] == "Solution provided");
      issue.state = "closed";
    }
    reply(response, 200, {{"result", json::object()}});
  }

  TicketSystem system_;
  TestFolder folder_;
  httplib::Server server_;
  int port_ = 0, last_ = 0;
  std::jthread thread_;
};

TEST_CASE("a case is one ticket: made once, commented, raised, renamed, closed") {
  for (const TicketSystem system :
       {TicketSystem::github, TicketSystem::jira, TicketSystem::servicenow}) {
    CAPTURE(to_text(system));
    Tracker tracker(system);
    {
      TicketNotifier notifier(tracker.settings());
      tracker.busy = 1;
      const Status busy = notifier.notify(notice("C/1", "case_opened"));
      REQUIRE_FALSE(busy.has_value());
      CHECK(busy.error().code == Errc::io);  // to be tried again
      CHECK(notifier.notify(notice("C/1", "case_opened")).has_value());
      CHECK(notifier.notify(notice("C/1", "case_opened")).has_value());
      CHECK(notifier.notify(notice("C/2", "repair_drained")).has_value());
      CHECK(notifier.notify(notice("C/2", "repair_drained")).has_value());  // said again
    }
    REQUIRE(tracker.issues.size() == 1);
    Tracker::Issue& issue = tracker.issues.begin()->second;
    CHECK(issue.title == "optic at rtsw:3--ctsw:1");
    for (const char* part : {"Case: 79fb656b217f", "Repair: drained", "Reason: 19 of 2,000 lost",
                             "https://weft.example/#/case/79fb656b217f"})
      CHECK_MESSAGE(issue.text.find(part) != std::string::npos, issue.text);
    REQUIRE(issue.comments.size() == 1);
    CHECK(issue.comments[0] == "repair_drained: rtsw:3--ctsw:1 is lossy (2023-11-14T22:13:20Z)");

    // A restart, or another instance: the ticket is found again.
    TicketNotifier notifier(tracker.settings());
    CHECK(notifier.notify(notice("C/3", "repair_failed")).has_value());
    CHECK(issue.priority == (system == TicketSystem::github ? "urgent"
                             : system == TicketSystem::jira ? "Highest"
                                                            : "1"));
    port::Notice other = notice("C/4", "case_updated");
    other.body = R"({"cause":{"kind":"line_card","entity":"ctsw:1/0"}})";
    CHECK(notifier.notify(other).has_value());
    CHECK(issue.title == "line_card at ctsw:1/0");
    CHECK(issue.state == "open");
    // The case is closed while its part is under watch: the end of the watch closes the ticket.
    port::Notice end = notice("C/5", "case_closed");
    end.body = R"({"open":false,"repair":{"was_drained":true,"stage":"soaking",)"
               R"("cases":[{"id":"older"},{"id":"79fb656b217f"}]}})";
    CHECK(notifier.notify(end).has_value());
    CHECK(issue.state == "open");
    end.id = "C/6", end.event = "repair_closed";
    end.body.insert(end.body.size() - 2, R"(,"ended":"2026-11-26T11:00:00Z")");
    CHECK(notifier.notify(end).has_value());
    CHECK(issue.state == "closed");
    CHECK(issue.comments.back().starts_with("repair_closed"));
    const std::size_t calls = tracker.calls.size();
    end.id = "C/7";
    CHECK(notifier.notify(end).has_value());
    CHECK(tracker.calls.size() == calls + 1);  // a comment
    CHECK(tracker.issues.size() == 1);
  }
}

TEST_CASE("a case that ended unseen makes no ticket, and a refusal is final") {
  Tracker tracker(TicketSystem::github);
  TicketNotifier notifier(tracker.settings());
  CHECK(notifier.notify(notice("C/1", "case_closed")).has_value());
  CHECK(tracker.issues.empty());
  TicketSettings wrong = tracker.settings();
  wrong.token = "other";
  const Status refused = TicketNotifier(wrong).notify(notice("C/2", "case_opened"));
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code == Errc::value);
  CHECK(refused.error().text().find("status 401") != std::string::npos);
}

TEST_CASE("settings of tickets: everything that is missing is named") {
  const auto config = parse_yaml("{system: jira, url: 'https://x.atlassian.net'}", "t.yaml");
  const auto read = read_ticket_settings(*config);
  REQUIRE_FALSE(read.has_value());
  for (const char* part : {"token_file", "closing: the id of the transition"})
    CHECK_MESSAGE(read.error().text().find(part) != std::string::npos, read.error().text());
}

}  // namespace
}  // namespace weft::adapt::live
