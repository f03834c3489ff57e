#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <functional>
#include <map>
#include <optional>

#include "base/json_line.hpp"
#include "base/markup.hpp"
#include "base/plural.hpp"
#include "base/text.hpp"
#include "cli/cli.hpp"
#include "cli/commands.hpp"
#include "cli/service_client.hpp"

namespace weft::cli {
namespace {

struct CaseArgs {
  std::string id, action, reason, owner;
  std::string step, number;  // of rma
  ServiceArgs service;
  std::size_t records = 100;
};

// "optic at rtsw:3--ctsw:7".
std::string cause_text(JsonNode of) {
  const JsonNode cause = of.member("cause");
  return text_of(cause, "kind") + " at " + text_of(cause, "entity");
}

// The words of the device where there are any, else what the record says.
std::string said_text(JsonNode item) {
  const JsonNode record = item.member("record");
  if (text_of(item, "feed") == "syslog") {
    const std::string line = text_of(item, "line");  // "@NS FROM MESSAGE"
    const std::size_t from = line.find(' ');
    return from == std::string::npos ? line : line.substr(line.find(' ', from + 1) + 1);
  }
  const std::string message = text_of(record.member("attrs"), "message");
  if (!message.empty()) return message;
  const auto value = record.member("value").number();
  return value ? fmt::format("{} {:g}", text_of(record, "kind"), *value) : text_of(record, "kind");
}

std::string table_of(JsonNode of, JsonNode said) {
  using Align = Table::Align;
  Table table({{"time", Align::left},
               {"source", Align::left},
               {"part", Align::left},
               {"why", Align::left},
               {"said", Align::left}});
  const JsonNode members = of.member("members"), items = said.member("items");
  for (std::size_t i = 0, next = 0; i < members.size(); ++i) {
    const JsonNode member = members.item(i), item = items.item(next);
    const bool is_kept = text_of(item, "id") == text_of(member, "record");
    const JsonNode record = is_kept ? item.member("record") : JsonNode();
    if (is_kept) ++next;
    table.add({text_of(record, "t"), text_of(record, "source"), text_of(record, "entity"),
               text_of(member, "relation"),
               is_kept ? said_text(item) : text_of(member, "record") + ", no longer kept"});
  }
  return table.text();
}

// Of the repairs that follow the case, the one that changed last; absent where there is none.
JsonNode repair_of(JsonNode repairs, std::string_view id) {
  const JsonNode items = repairs.member("items");
  for (std::size_t i = 0; i < items.size(); ++i) {
    const JsonNode cases = items.item(i).member("cases");
    for (std::size_t k = 0; k < cases.size(); ++k)
      if (text_of(cases.item(k), "id") == id) return items.item(i);
  }
  return {};
}

std::string job_text(JsonNode job, bool is_simulated) {
  const double slowdown = job.member("slowdown").number().value_or(1);
  std::string out = fmt::format("job {} {} ({}, {})", text_of(job, "id"), text_of(job, "name"),
                                text_of(job, "user"),
                                counted(job.member("host_count").whole().value_or(0), "host"));
  if (job.member("stalled").flag().value_or(false))
    out += " is stalled";
  else
    out += fmt::format(" takes {}{:.3f} times as long", is_simulated ? "" : "at most ", slowdown);
  const JsonNode spares = job.member("spares"), at = job.member("hosts_at_part");
  for (std::size_t i = 0; i < spares.size(); ++i)
    out += fmt::format("{} {} by {}", i == 0 ? "; replace" : ",", text_of(spares.item(i), "host"),
                       text_of(spares.item(i), "spare"));
  if (spares.size() == 0 && at.size() > 0) out += fmt::format("; {} of its hosts there", at.size());
  return out;
}

// Nothing where the service is not told which jobs run.
void print_jobs(JsonNode jobs) {
  if (!jobs) return;
  const bool is_stale = jobs.member("stale").flag().value_or(false);
  const JsonNode hit = jobs.member("jobs");
  fmt::print("jobs without {}{}:\n", text_of(jobs, "part"),
             is_stale ? " (the scheduler has not answered for long)" : "");
  for (std::size_t i = 0; i < hit.size(); ++i)
    fmt::print("  {}\n", job_text(hit.item(i), text_of(jobs, "method") == "simulated"));
  fmt::print("  {} not affected\n", jobs.member("unaffected").whole().value_or(0));
}

// Who takes care of the case, and what people said about it.
struct People {
  std::optional<JsonLine> handling, audit;  // none where nobody ever did or said anything
};

Result<People> people_of(ServiceClient& service, const std::string& id) {
  People out;
  const auto text = service.get("/v1/handling/" + percent_encoded(id));
  if (!text && text.error().code != Errc::unknown) return std::unexpected(text.error());
  if (!text) return out;
  WEFT_TRY(out.handling, JsonLine::parse(*text, {"who takes care of it"}));
  WEFT_TRY(const std::string audit,
           service.get(fmt::format("/v1/audit?case={}&limit=10000", percent_encoded(id))));
  WEFT_TRY(out.audit, JsonLine::parse(audit, {"the audit log"}));
  return out;
}

void print_owner(const People& people) {
  if (!people.handling) return;
  const JsonNode handling = people.handling->node();
  const std::string owner = text_of(handling, "owner"), by = text_of(handling, "by");
  if (owner.empty()) return;
  fmt::print("owner: {} since {}{}\n", owner, text_of(handling, "since"),
             by == owner ? "" : ", by " + by);
}

void print_comments(const People& people) {
  if (!people.audit) return;
  const JsonNode items = people.audit->node().member("items");
  for (std::size_t i = 0; i < items.size(); ++i)
    if (const JsonNode item = items.item(i); text_of(item, "action") == "comment")
      fmt::print("{} {}: {}\n", text_of(item, "t"), text_of(item, "actor"),
                 text_of(item.member("detail"), "text"));
}

// Nothing where its part did not go back to a vendor.
void print_rma(JsonNode rma) {
  if (!rma) return;
  fmt::print("vendor's RMA {}:", text_of(rma, "number"));
  for (const char* step : {"ordered", "shipped", "received"})
    if (rma.member(step)) fmt::print(" {} {}", step, text_of(rma, step));
  fmt::print("\n");
}

void print_case(JsonNode of, JsonNode said, JsonNode repair, JsonNode jobs, const People& people) {
  fmt::print("case {}: {}, {:.0f} % sure\n", text_of(of, "id"), cause_text(of),
             100 * of.member("confidence").number().value_or(0));
  const bool is_open = text_of(of, "standing") == "open";  // more may join
  fmt::print("{} since {}{}{}{}{}\n", text_of(of, "standing"), text_of(of, "opened"),
             !of.member("closed") ? ""
             : is_open            ? ", recovery seen, last heard "
                                  : ", closed ",
             text_of(of, "closed"), of.member("into") ? ", part of " : "", text_of(of, "into"));
  if (!repair) {
    fmt::print("repair: none\n");
  } else {
    const std::string part = text_of(repair, "part"), reason = text_of(repair, "reason");
    fmt::print("repair: {}{}{}{}{} since {}\n", text_of(repair, "stage"),
               repair.member("is_held").flag().value_or(false) ? " (on hold)" : "",
               part.empty() ? "" : " " + part, reason.empty() ? "" : ": ", reason,
               text_of(repair, "since"));
  }
  print_rma(repair.member("rma"));
  print_owner(people);
  print_jobs(jobs);
  print_comments(people);
  const std::int64_t records = of.member("records").whole().value_or(0);
  const auto listed = static_cast<std::int64_t>(of.member("members").size());
  fmt::print("{}{}\n\n{}", counted(records, "record"),
             listed < records ? fmt::format(", {} of them below", listed) : "", table_of(of, said));
}

Status show_case(const Common& common, const CaseArgs& args, ServiceClient& service) {
  const std::string path = "/v1/cases/" + percent_encoded(args.id);
  WEFT_TRY(const std::string of_text,
           service.get(fmt::format("{}?members={}", path, args.records)));
  WEFT_TRY(const std::string said_text,
           service.get(fmt::format("{}/records?limit={}", path, args.records)));
  WEFT_TRY(const JsonLine of, JsonLine::parse(of_text, {"the case"}));
  WEFT_TRY(const JsonLine said, JsonLine::parse(said_text, {"the records"}));
  // Repairs are listed by their last change: those of open cases are among the first.
  WEFT_TRY(const std::string repairs_text, service.get("/v1/repairs?limit=1000"));
  WEFT_TRY(const JsonLine repairs, JsonLine::parse(repairs_text, {"the repairs"}));
  const JsonNode repair = repair_of(repairs.node(), args.id);
  WEFT_TRY(const std::string jobs_text, service.get(path + "/jobs"));
  WEFT_TRY(const JsonLine jobs, JsonLine::parse(jobs_text, {"the jobs"}));
  const bool has_jobs = jobs.has("from");  // the service is told which jobs run
  WEFT_TRY(const People people, people_of(service, args.id));
  if (!common.json) {
    print_case(of.node(), said.node(), repair, has_jobs ? jobs.node() : JsonNode(), people);
    return {};
  }
  JsonObject out;
  out.add("case", JsonText{of_text}).add("records", JsonText{said_text});
  if (people.handling) out.add("handling", people.handling->but({}));
  if (has_jobs) out.add("jobs", JsonText{jobs_text});
  if (repair) {
    WEFT_TRY(const std::string text,
             service.get("/v1/repairs/" + percent_encoded(text_of(repair, "id"))));
    out.add("repair", JsonText{text});
  }
  fmt::print("{}\n", std::move(out).text());
  return {};
}

// By case.
using Owners = std::map<std::string, std::string, std::less<>>;

Result<Owners> owners_of(ServiceClient& service) {
  Owners out;
  std::string before;
  do {
    WEFT_TRY(const std::string text,
             service.get(fmt::format("/v1/handling?limit=1000{}",
                                     before.empty() ? "" : "&before=" + percent_encoded(before))));
    WEFT_TRY(const JsonLine page, JsonLine::parse(text, {"who takes care of cases"}));
    const JsonNode items = page.node().member("items");
    for (std::size_t i = 0; i < items.size(); ++i)
      out[text_of(items.item(i), "id")] = text_of(items.item(i), "owner");
    before = text_of(page.node(), "next");
  } while (!before.empty());
  return out;
}

std::vector<std::string> cells_of(JsonNode of, JsonNode repair, const Owners& owners) {
  const bool is_held = repair.member("is_held").flag().value_or(false);
  return {text_of(of, "id"),
          cause_text(of),
          fmt::format("{:.0f} %", 100 * of.member("confidence").number().value_or(0)),
          text_of(of, "standing"),
          text_of(of, "opened"),
          repair ? text_of(repair, "stage") + (is_held ? " (on hold)" : "") : "none",
          owners.contains(text_of(of, "id")) ? owners.at(text_of(of, "id")) : ""};
}

// All that are open or may yet be; with --json a line a page of the service.
Status list_cases(const Common& common, ServiceClient& service) {
  using Align = Table::Align;
  WEFT_TRY(const std::string repairs_text, service.get("/v1/repairs?limit=1000"));
  WEFT_TRY(const JsonLine repairs, JsonLine::parse(repairs_text, {"the repairs"}));
  WEFT_TRY(const Owners owners, owners_of(service));
  Table table({{"case", Align::left},
               {"cause", Align::left},
               {"sure"},
               {"standing", Align::left},
               {"since", Align::left},
               {"repair", Align::left},
               {"owner", Align::left}});
  std::size_t listed = 0;
  for (const std::string_view state : {"open", "provisional"}) {
    std::string before;
    do {
      WEFT_TRY(
          const std::string text,
          service.get(fmt::format("/v1/cases?state={}&members=1&limit=1000{}", state,
                                  before.empty() ? "" : "&before=" + percent_encoded(before))));
      WEFT_TRY(const JsonLine page, JsonLine::parse(text, {"the cases"}));
      if (common.json) fmt::print("{}\n", text);
      const JsonNode items = page.node().member("items");
      listed += items.size();
      for (std::size_t i = 0; i < items.size(); ++i)
        table.add(cells_of(items.item(i), repair_of(repairs.node(), text_of(items.item(i), "id")),
                           owners));
      before = text_of(page.node(), "next");
    } while (!before.empty());
  }
  if (!common.json) fmt::print("{}", listed == 0 ? "no case is open\n" : table.text());
  return {};
}

// What it does in the network needs a reason; who takes care of it does not.
bool needs_words(std::string_view action) { return action != "own" && action != "disown"; }

Status command_case(const Common& common, const CaseArgs& args, ServiceClient& service) {
  WEFT_TRY(
      const std::string answer,
      service.send("POST", fmt::format("/v1/cases/{}/{}", percent_encoded(args.id), args.action),
                   JsonObject()
                       .add_if(args.action == "comment" ? "text" : "reason", args.reason)
                       .add_if("owner", args.owner)
                       .add_if("step", args.step)
                       .add_if("number", args.number)
                       .text()));
  if (common.json) {
    fmt::print("{}\n", answer);
    return {};
  }
  WEFT_TRY(const JsonLine what, JsonLine::parse(answer, {"the answer"}));
  fmt::print("{} of case {}, in the audit log as of {}\n", args.action, args.id,
             text_of(what.node(), "who"));
  return {};
}

Status run_case(const Common& common, const CaseArgs& args) {
  if (args.action.empty() ? !args.reason.empty() : needs_words(args.action) && args.reason.empty())
    return fail(Errc::value, {"--do"}, "--do and --reason belong together",
                "give the reason for the audit log");
  if (!args.owner.empty() && args.action != "own")
    return fail(Errc::value, {"--owner"}, "only --do own gives a case to somebody",
                "weft case ID --do own --owner NAME ...");
  if ((args.action == "rma") == args.step.empty())
    return fail(Errc::value, {"--step"}, "--do rma and --step belong together",
                "weft case ID --do rma --step ordered --number NUMBER --reason ...");
  if (!args.number.empty() && args.step != "ordered")
    return fail(Errc::value, {"--number"}, "it belongs to --step ordered");
  if (!args.action.empty() && args.id.empty())
    return fail(Errc::value, {"--do"}, "of which case?", "weft case ID --do ...");
  WEFT_TRY(ServiceClient service, ServiceClient::open(args.service));
  if (args.id.empty()) return list_cases(common, service);
  if (!args.action.empty()) return command_case(common, args, service);
  return show_case(common, args, service);
}

int case_command(const Common& common, const CaseArgs& args) {
  return service_status(run_case(common, args), args.service);
}

}  // namespace

void add_case(Commands& commands) {
  const auto [command, args] = commands.add<CaseArgs>(
      "case", "Cases of a service: list them, show one with its records and repair, act on it",
      case_command);
  command.add_option("id", args.id, "The case; without one all open cases are listed");
  add_service_options(command, args.service);
  command.add_option("--records", args.records, "How many records to show")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command
      .add_option(
          "--do", args.action,
          "approve or reject the proposed drain, hold: no action until release, repaired: "
          "verify it and return it to service, rma: it goes back to its vendor, own: you take "
          "care of it, until disown, comment")
      ->check(CLI::IsMember(
          {"approve", "reject", "hold", "release", "repaired", "rma", "own", "disown", "comment"}));
  command.add_option("--step", args.step, "Of --do rma")
      ->check(CLI::IsMember({"ordered", "shipped", "received"}));
  command.add_option("--number", args.number, "The vendor's number, with --step ordered");
  command.add_option("--owner", args.owner, "With --do own: who takes care of it, if not you");
  command.add_option("--reason", args.reason, "Why, for the audit log; the text of a comment");
}

}  // namespace weft::cli
