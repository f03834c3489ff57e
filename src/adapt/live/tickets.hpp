// Cases as tickets of Jira, ServiceNow or GitHub: made once, commented, raised, closed.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "adapt/live/http_post.hpp"
#include "base/config.hpp"
#include "base/names.hpp"
#include "base/result.hpp"
#include "port/notifier.hpp"

namespace weft::adapt::live {

enum class TicketSystem : std::uint8_t { github, jira, servicenow };
inline constexpr auto ticket_system_names =
    std::to_array<std::string_view>({"github", "jira", "servicenow"});
constexpr std::string_view to_text(TicketSystem system) {
  return ticket_system_names[static_cast<std::size_t>(system)];
}

struct TicketSettings {
  TicketSystem system = TicketSystem::github;
  // GitHub: https://api.github.com/repos/OWNER/NAME; Jira and ServiceNow: https://HOST.
  HttpSettings http;
  std::string token, basic;            // one of them: "Bearer TOKEN", "Basic BASE64"
  std::string project, type = "Task";  // of Jira
  // Of Jira Cloud, which no longer has that of Jira Data Center, "/rest/api/2/search".
  std::string search = "/rest/api/3/search/jql";
  std::string table = "incident";         // of ServiceNow
  std::string closing;                    // Jira: the transition's id; ServiceNow: the state
  std::string close_code;                 // ServiceNow
  std::string priority, raised_priority;  // names of Jira; 1 to 3 of ServiceNow; labels of GitHub
  std::string external_url;               // of the console; "": none
  std::vector<std::string> labels{"weft"};
};

// YAML: system, url and the other settings of http, token_file or basic_file, project, type,
// search, table, closing, close_code, priority, raised_priority, external_url, labels. Fails: every
// error found.
Result<TicketSettings> read_ticket_settings(const Config& config);

// What is asked of the system's API, and what came back.
struct TicketRequest {
  std::string method, path, body;  // behind the URL's origin; JSON, "": none
  friend bool operator==(const TicketRequest&, const TicketRequest&) = default;
};
using TicketAnswer = HttpAnswer;

// One ticket for a case: it is looked up by the case's id before it is made, so that neither a
// restart nor a second service makes another. Notices become comments; a change of the cause
// changes the title; repair_failed and repair_replace raise the priority. It is closed by
// case_closed, and where the part is out of service or under watch then, by the end of its repair.
class TicketNotifier : public port::Notifier {
 public:
  using Send = std::function<Result<TicketAnswer>(const TicketRequest&)>;
  static constexpr std::size_t cases_max = 10'000;  // whose tickets are remembered

  explicit TicketNotifier(TicketSettings settings);
  // `send` instead of HTTP, for tests.
  TicketNotifier(TicketSettings settings, Send send);
  TicketNotifier(const TicketNotifier&) = delete;
  TicketNotifier& operator=(const TicketNotifier&) = delete;
  // Fails: Errc::io where it may be tried again, Errc::value where the system refuses.
  Status notify(const port::Notice& notice) override;

 private:
  static constexpr std::size_t steps_max = 100;
  struct Known {
    std::string ticket;             // its number, key or sys_id
    std::deque<std::string> steps;  // that notices led to, the last ones
    bool is_closed = false;
  };
  Result<std::string> call(const TicketRequest& request);
  // "" where there is none and the case is over.
  Result<std::string> find_or_make(const port::Notice& notice);

  TicketSettings settings_;
  Send send_;
  std::map<std::string, Known> tickets_;  // by case
};

// Title and text of a ticket, from the notice alone.
std::string ticket_title(const port::Notice& notice);
std::string ticket_text(const TicketSettings& settings, const port::Notice& notice);

}  // namespace weft::adapt::live
