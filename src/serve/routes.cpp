#include "serve/routes.hpp"

#include <fmt/format.h>

#include <charconv>
#include <memory>
#include <mutex>
#include <span>
#include <utility>

#include "base/json_line.hpp"
#include "base/json_text.hpp"
#include "base/text.hpp"
#include "operate/repair/ticket.hpp"
#include "serve/case_publisher.hpp"
#include "serve/event_feed.hpp"
#include "serve/handling.hpp"
#include "serve/listing.hpp"
#include "serve/page.hpp"

namespace weft::serve {
namespace {

using enum Param::Type;
using enum Param::Need;
using Body = Route::Body;

constexpr std::int64_t reason_bytes_max = 1000, owner_bytes_max = 200, comment_bytes_max = 10'000;
constexpr std::int64_t rma_number_bytes = 128;
constexpr std::int64_t page_rows_max = 1000;
constexpr std::int64_t members_max = 10'000;
constexpr std::int64_t list_members = 100, one_members = 1000;  // unless told
constexpr std::int64_t te_wait_ms_max = 5'000;
constexpr std::int64_t sli_ns_max = std::int64_t{400} * 24 * 60 * ns_per_minute;

Reply json_reply(std::string body) {
  Reply out;
  out.body = std::move(body);
  return out;
}

Reply busy(std::string detail) { return reply_of({503, "busy", std::move(detail)}); }

std::string receipt_json(const Receipt& receipt) {
  JsonList refused;
  for (const Receipt::Refused& row : receipt.refused)
    refused.add(JsonObject().add("line", row.line).add("why", row.why));
  return JsonObject()
      .add("acknowledged", receipt.acknowledged)
      .add("known", receipt.known)
      .add("unknown_kinds", receipt.unknown_kinds)
      .add("unknown_entities", receipt.unknown_entities)
      .add("refused", refused)
      .add("refused_count", receipt.refused_count)
      .text();
}

Result<Reply> accept(const RouteContext& context, std::string_view feed,
                     std::vector<std::string> lines, const Call& call) {
  WEFT_TRY(const Receipt receipt, context.service.accept(feed, std::move(lines), call.sender));
  if (receipt.state == Receipt::State::busy)
    return busy("too much is queued already, nothing was accepted; send the same again later");
  return json_reply(receipt_json(receipt));
}

Route feed_route(const RouteContext& context, std::string_view path, std::string_view id,
                 std::string_view feed, std::string_view summary) {
  return {.method = "POST",
          .path = path,
          .id = id,
          .summary = summary,
          .role = Role::ingest,
          .body = Body::lines,
          .reply_schema = "Receipt",
          .problems = {503},
          .handler = [context, feed](const Call& call) -> Result<Reply> {
            auto lines = lines_of(call.body, context.options.limits.lines);
            if (!lines)
              return reply_of({413, "too-many-lines",
                               fmt::format("a body may have at most {} lines; send several bodies",
                                           context.options.limits.lines)});
            return accept(context, feed, *std::move(lines), call);
          }};
}

Route alertmanager_route(const RouteContext& context) {
  return {.method = "POST",
          .path = "/v1/alertmanager",
          .id = "sendAlerts",
          .summary = "Alertmanager webhook, version 4, as records",
          .role = Role::ingest,
          .body = Body::json,
          .reply_schema = "Receipt",
          .problems = {501, 503},
          .handler = [context](const Call& call) -> Result<Reply> {
            if (!context.options.alertmanager)
              return fail(Errc::unsupported, {},
                          "this service does not accept Alertmanager webhooks");
            WEFT_TRY(auto lines, context.options.alertmanager(call.body));
            return accept(context, "record", std::move(lines), call);
          }};
}

void add_feeds(const RouteContext& context, std::vector<Route>& out) {
  out.push_back(feed_route(context, "/v1/records", "sendRecords", "record",
                           "Records as JSON lines; acknowledged when they are durable"));
  out.push_back(feed_route(context, "/v1/evidence", "sendEvidence", "evidence",
                           "Probe results, as JSON lines"));
  out.push_back(feed_route(context, "/v1/syslog", "sendSyslog", "syslog",
                           "Raw syslog, one message per line"));
  out.push_back(alertmanager_route(context));
}

// `states`: those that there are; none: any text.
std::vector<Param> page_params(std::span<const std::string_view> states) {
  return {{.name = "state",
           .meaning = "only those in this state",
           .least = 1,
           .most = 40,
           .choices = {states.begin(), states.end()}},
          {.name = "limit",
           .meaning = "approximately how many; default 100",
           .type = count,
           .least = 1,
           .most = page_rows_max},
          {.name = "before", .meaning = "only those last updated before this", .type = time}};
}

Param members_param(std::string_view meaning) {
  return {.name = "members", .meaning = meaning, .type = count, .least = 0, .most = members_max};
}

// Of cases; none of other documents.
std::optional<MemberWish> member_wish(std::string_view kind, const Call& call,
                                      std::int64_t fallback) {
  if (kind != case_kind) return std::nullopt;
  return MemberWish{static_cast<std::size_t>(call.query.count("from", 0)),
                    static_cast<std::size_t>(call.query.count("members", fallback))};
}

Param at_param() {
  return {.name = "at", .meaning = "as it stood then; default: now", .type = time};
}

// Of an instant that is over.
Result<std::shared_ptr<const Past>> past_of(const RouteContext& context, const Call& call) {
  return context.service.past(call.query.time("at", {}),
                              [&context] { return context.is_stopping.load(); });
}

// Documents of now, or as they stood at `at`.
struct Standing {
  std::shared_ptr<const Past> past;  // that `store` belongs to
  port::Store& store;
};
Result<Standing> standing_of(const RouteContext& context, const Call& call) {
  if (!call.query.has("at")) return Standing{nullptr, context.store};
  WEFT_TRY(auto past, past_of(context, call));
  port::Store& store = *past->documents;
  return Standing{std::move(past), store};
}

struct Kind {
  std::string_view kind, path, one_path, list_id, one_id, plural, schema, list_schema;
  std::span<const std::string_view> states{};
};

void add_documents(const RouteContext& context, const Kind& of, std::vector<Route>& out) {
  std::vector<Param> list_params = page_params(of.states), one_params;
  if (of.kind == case_kind) {
    list_params.push_back(members_param("how many members of each case; default 100"));
    one_params = {members_param("how many members; default 1000"),
                  {.name = "from",
                   .meaning = "start at this member: the `next_member` of the previous page",
                   .type = count}};
  }
  if (of.kind == case_kind || of.kind == handling_kind) {
    list_params.push_back(at_param());
    one_params.push_back(at_param());
  }
  out.push_back({.method = "GET",
                 .path = of.path,
                 .id = of.list_id,
                 .summary = of.plural,
                 .role = Role::read,
                 .query = std::move(list_params),
                 .reply_schema = of.list_schema,
                 .problems = {503},
                 .handler = [context, kind = of.kind](const Call& call) -> Result<Reply> {
                   const std::string state = call.query.text("state");
                   const auto limit = static_cast<std::size_t>(call.query.count("limit", 100));
                   const Timestamp before = call.query.time("before", end_of_time);
                   WEFT_TRY(const Standing standing, standing_of(context, call));
                   WEFT_TRY(const Page page,
                            read_page(standing.store, {kind, state, before, limit}));
                   return json_reply(page_json(page, member_wish(kind, call, list_members)));
                 }});
  out.push_back({.method = "GET",
                 .path = of.one_path,
                 .id = of.one_id,
                 .summary = "One of them, with full details",
                 .role = Role::read,
                 .query = std::move(one_params),
                 .reply_schema = of.schema,
                 .problems = {503},
                 .handler = [context, kind = of.kind](const Call& call) -> Result<Reply> {
                   WEFT_TRY(const Standing standing, standing_of(context, call));
                   WEFT_TRY(port::Document document,
                            standing.store.document(kind, call.pieces.at(0)));
                   const auto members = member_wish(kind, call, one_members);
                   return json_reply(members ? with_member_page(std::move(document.body), *members)
                                             : std::move(document.body));
                 }});
}

Result<Reply> audit(const RouteContext& context, const Call& call) {
  const auto since = static_cast<std::uint64_t>(call.query.count("since", 1));
  const auto limit = static_cast<std::size_t>(call.query.count("limit", page_rows_max));
  WEFT_TRY(const auto rows, context.store.audit(since, call.query.text("case"), limit));
  const bool as_lines = call.accept.find("application/x-ndjson") != std::string::npos;
  if (as_lines) {
    Reply out;
    for (const port::AuditEntry& row : rows) (out.body += audit_json(row)) += '\n';
    out.type = "application/x-ndjson";
    return out;
  }
  JsonList items;
  for (const port::AuditEntry& row : rows) items.add(JsonText{audit_json(row)});
  const std::uint64_t next = rows.empty() ? since : rows.back().seq + 1;
  return json_reply(JsonObject().add("items", items).add("next", next).text());
}

Result<Reply> sli(const RouteContext& context, const Call& call) {
  const Timestamp from = call.query.time("from", {});
  const Timestamp to = call.query.time("to", {});
  if (to <= from || from.ns < to.ns - sli_ns_max)
    return fail(Errc::value, {}, "from must be before to, and at most 400 days earlier");
  WEFT_TRY(std::string body, context.service.sli(from, to));
  return json_reply(std::move(body));
}

void add_reading(const RouteContext& context, std::vector<Route>& out) {
  add_documents(context,
                {case_kind, "/v1/cases", "/v1/cases/{id}", "listCases", "readCase",
                 "Cases, last updated first", "Case", "Cases", standing_names},
                out);
  add_documents(context,
                {"repair", "/v1/repairs", "/v1/repairs/{id}", "listRepairs", "readRepair",
                 "Repairs, last updated first", "Repair", "Repairs", operate::repair::stage_names},
                out);
  add_documents(context,
                {"snapshot", "/v1/snapshots", "/v1/snapshots/{id}", "listSnapshots", "readSnapshot",
                 "Manifests of snapshots, last updated first", "Snapshot", "Snapshots"},
                out);
  add_documents(context,
                {handling_kind, "/v1/handling", "/v1/handling/{id}", "listHandling", "readHandling",
                 "Who takes care of cases, last updated first", "Handling", "Handlings"},
                out);
  out.push_back(
      {.method = "GET",
       .path = "/v1/audit",
       .id = "readAudit",
       .summary = "The audit log, oldest first; JSON lines where these are accepted",
       .role = Role::read,
       .query = {{.name = "since", .meaning = "start at this number", .type = count},
                 {.name = "case", .meaning = "only for this case", .least = 1, .most = 400},
                 {.name = "limit",
                  .meaning = "how many; default 1000",
                  .type = count,
                  .least = 1,
                  .most = 10 * page_rows_max}},
       .reply_schema = "Audit",
       .problems = {503},
       .handler = [context](const Call& call) { return audit(context, call); }});
  out.push_back({.method = "GET",
                 .path = "/v1/sli",
                 .id = "readSli",
                 .summary = "Good and bad minutes of a time range, with their causes",
                 .role = Role::read,
                 .query = {{.name = "from", .meaning = "start", .type = time, .need = needed},
                           {.name = "to", .meaning = "end", .type = time, .need = needed}},
                 .reply_schema = "Any",
                 .problems = {501, 503},
                 .handler = [context](const Call& call) { return sli(context, call); }});
  out.push_back({.method = "GET",
                 .path = "/v1/ledger",
                 .id = "readLedger",
                 .summary = "Times to repair, repeat offenders, no fault found",
                 .role = Role::read,
                 .reply_schema = "Any",
                 .problems = {503},
                 .handler = [context](const Call&) -> Result<Reply> {
                   WEFT_TRY(std::string body, context.service.ledger());
                   return json_reply(std::move(body));
                 }});
}

// How long before a case's first evidence its records may have come, and after its last change.
constexpr std::int64_t case_slack_ns = 10 * ns_per_minute;

Result<Reply> case_records(const RouteContext& context, const Call& call) {
  WEFT_TRY(const Standing standing, standing_of(context, call));
  WEFT_TRY(const port::Document document, standing.store.document(case_kind, call.pieces.at(0)));
  WEFT_TRY(const JsonLine line, JsonLine::parse(document.body, {"case " + document.id}));
  const auto from = static_cast<std::size_t>(call.query.count("from", 0));
  const auto most = static_cast<std::size_t>(call.query.count("limit", 100));
  Errors errors;
  RecordWish wish;
  wish.since = {line.time("opened", document.updated, errors).ns - case_slack_ns};
  wish.until = document.updated;
  const JsonNode members = line.node().member("members");
  for (std::size_t i = from; i < members.size() && wish.ids.size() < most; ++i)
    wish.ids.push_back(members.item(i).member("record").text().value_or(""));
  WEFT_TRY(std::string body, context.service.records(wish));
  return json_reply(std::move(body));
}

Result<Reply> record(const RouteContext& context, const Call& call) {
  RecordWish wish{.ids = {call.pieces.at(0)}, .since = {}, .until = end_of_time};
  wish.since = call.query.time("since", {});
  WEFT_TRY(const std::string body, context.service.records(wish));
  WEFT_TRY(const JsonLine line, JsonLine::parse(body, {}));
  const auto found = line.node().member("items");
  if (found.size() == 0)
    return fail(Errc::unknown, {}, fmt::format("no record {} is kept", quote(call.pieces.at(0))),
                "give `since`, a time shortly before it was received: 500,000 events are read");
  // The one item of the list, as it was written.
  const std::size_t begin = body.find('['), end = body.rfind(",\"missing\"");
  return json_reply(body.substr(begin + 1, end - begin - 2));
}

void add_console(const RouteContext& context, std::vector<Route>& out) {
  out.push_back({.method = "GET",
                 .path = "/v1/records/{id}",
                 .id = "readRecord",
                 .summary = "A record with the line that was said",
                 .role = Role::read,
                 .query = {{.name = "since",
                            .meaning = "received after this; events are read from here",
                            .type = time}},
                 .reply_schema = "Record",
                 .problems = {503},
                 .handler = [context](const Call& call) { return record(context, call); }});
  out.push_back({.method = "GET",
                 .path = "/v1/cases/{id}/records",
                 .id = "readCaseRecords",
                 .summary = "Listed members of a case with the lines that were said",
                 .role = Role::read,
                 .query = {{.name = "from", .meaning = "start at this member", .type = count},
                           {.name = "limit",
                            .meaning = "how many; default 100",
                            .type = count,
                            .least = 1,
                            .most = page_rows_max},
                           at_param()},
                 .reply_schema = "Records",
                 .problems = {503},
                 .handler = [context](const Call& call) { return case_records(context, call); }});
  // `past`: which text of an instant that is over; none: it is not kept.
  const auto add_view = [&](std::string_view path, std::string_view id, View view,
                            std::string_view schema, std::string_view summary,
                            std::string Past::* past = nullptr) {
    out.push_back({.method = "GET",
                   .path = path,
                   .id = id,
                   .summary = summary,
                   .role = Role::read,
                   .query = past == nullptr ? std::vector<Param>{} : std::vector{at_param()},
                   .reply_schema = schema,
                   .problems = past == nullptr ? std::vector<int>{} : std::vector{503},
                   .handler = [context, view, past](const Call& call) -> Result<Reply> {
                     if (call.query.has("at")) {
                       WEFT_TRY(const auto then, past_of(context, call));
                       return json_reply((*then).*past);
                     }
                     WEFT_TRY(std::string body, context.service.view(view));
                     return json_reply(std::move(body));
                   }});
  };
  add_view("/v1/fabric", "readFabric", View::fabric, "Fabric", "Switches and the cables between");
  add_view("/v1/capacity", "readCapacity", View::capacity, "Capacity",
           "Parts out of service, kill switch, freezes and the uplink capacity that is left");
  add_view("/v1/probes", "readProbes", View::probes, "Probes",
           "Recent probes by pair of racks and by link", &Past::probes);
  add_view("/v1/network", "readNetwork", View::network, "Network",
           "What the log says: parts ordered out, open cases, links that are not well",
           &Past::network);
  add_view("/v1/feeds", "readFeeds", View::feeds, "Feeds",
           "When each device was last heard, and messages that were not understood");
}

void add_path_health(const RouteContext& context, std::vector<Route>& out) {
  out.push_back({.method = "GET",
                 .path = "/v1/path-health",
                 .id = "readPathHealth",
                 .summary = "The table of path health, as bytes",
                 .role = Role::read,
                 .reply_type = "application/octet-stream",
                 .problems = {503},
                 .handler = [context](const Call&) -> Result<Reply> {
                   if (!context.options.path_health)
                     return fail(Errc::io, {}, "no table of path health is written here", "");
                   WEFT_TRY(std::string table, context.options.path_health());
                   Reply out = json_reply(std::move(table));
                   out.type = "application/octet-stream";
                   return out;
                 }});
}

// The link is the right to this one copy, until it expires; so nothing else is told without it.
// One copy is made at a time: it costs a core and some 100 MB for a moment.
Result<Reply> vendor_copy(const RouteContext& context, std::mutex& making, const Call& call) {
  const ApiOptions::VendorCopies& vendor = context.options.vendor;
  if (!vendor.is_ours) return fail(Errc::unsupported, {}, "this service gives no links to vendors");
  const std::string& id = call.pieces.at(0);
  if (!vendor.is_ours(id, call.query.count("expires", 0), call.query.text("signature")))
    return reply_of({403, "link", "this link is wrong, or has expired; ask for a new one"});
  const std::unique_lock turn(making, std::try_to_lock);
  if (!turn.owns_lock()) return busy("another copy is being made; try again in a moment");
  const auto document = context.store.document("snapshot", id);
  auto copy = document ? vendor.copy(document->body) : std::unexpected(document.error());
  const auto log = [&](LogLevel level, std::string_view what) {
    if (context.options.log)
      context.options.log(level, fmt::format("a vendor's link to snapshot {}: {}", id, what));
  };
  if (!copy) {  // whose text has names that are redacted in copies
    log(LogLevel::warning, copy.error().text());
    return reply_of({404, "gone", "this snapshot is no longer kept"});
  }
  log(LogLevel::info, "copied");
  Reply out;
  out.body = *std::move(copy);
  out.type = "application/gzip";
  out.headers.emplace_back("Content-Disposition", "attachment; filename=\"snapshot.tar.gz\"");
  return out;
}

void add_vendor(const RouteContext& context, std::vector<Route>& out) {
  out.push_back(
      {.method = "GET",
       .path = "/v1/vendor/snapshots/{id}",
       .id = "readVendorCopy",
       .summary = "A redacted copy of a snapshot, for a vendor who was given a signed link",
       .role = {},
       .query =
           {{.name = "expires", .meaning = "seconds since 1970", .type = count, .need = needed},
            {.name = "signature", .meaning = "of the link", .need = needed, .most = 64}},
       .reply_type = "application/gzip",
       .problems = {403, 501, 503},
       .handler = [context, making = std::make_shared<std::mutex>()](const Call& call) {
         return vendor_copy(context, *making, call);
       }});
}

constexpr std::optional<std::string_view> unknown;  // of jobs, where no scheduler is asked

void add_jobs(const RouteContext& context, std::vector<Route>& out) {
  out.push_back({.method = "GET",
                 .path = "/v1/jobs",
                 .id = "listJobs",
                 .summary = "Running jobs and their hosts, as the scheduler lists them",
                 .role = Role::read,
                 .reply_schema = "Jobs",
                 .handler = [context](const Call&) -> Result<Reply> {
                   if (!context.options.jobs)
                     return json_reply(JsonObject()
                                           .add("from", unknown)
                                           .add("read", unknown)
                                           .add("stale", true)
                                           .add("error", unknown)
                                           .add("items", JsonList())
                                           .text());
                   WEFT_TRY(std::string body, context.options.jobs());
                   return json_reply(std::move(body));
                 }});
  out.push_back({.method = "GET",
                 .path = "/v1/cases/{id}/jobs",
                 .id = "readCaseJobs",
                 .summary = "What taking the cause out of service costs each running job",
                 .role = Role::read,
                 .reply_schema = "JobEffects",
                 .problems = {503},
                 .handler = [context](const Call& call) -> Result<Reply> {
                   WEFT_TRY(const port::Document document,
                            context.store.document(case_kind, call.pieces.at(0)));
                   if (!context.options.jobs_of_case)
                     return json_reply(JsonObject()
                                           .add("from", unknown)
                                           .add("part", "")
                                           .add("method", "bounded")
                                           .add("jobs", JsonList())
                                           .add("unaffected", 0)
                                           .add("stale", true)
                                           .text());
                   WEFT_TRY(std::string body, context.options.jobs_of_case(document.body));
                   return json_reply(std::move(body));
                 }});
}

std::unexpected<Error> no_traces() {
  return fail(Errc::unsupported, {}, "this service keeps no traces of jobs",
              "start it with --traces FOLDER");
}

void add_traces(const RouteContext& context, std::vector<Route>& out) {
  out.push_back({.method = "PUT",
                 .path = "/v1/traces/{host}/{name}",
                 .id = "sendTrace",
                 .summary = "The latest trace of a process of a job: a ring of libweft-nccl.so",
                 .role = Role::ingest,
                 .query = {{.name = "job",
                            .meaning = "whose process it is; default: the one job on the host",
                            .least = 1,
                            .most = 200}},
                 .body = Body::packed,
                 .reply_schema = "Health",
                 .problems = {404, 409, 501, 503},
                 .handler = [context](const Call& call) -> Result<Reply> {
                   if (!context.options.traces.keep) return no_traces();
                   WEFT_TRY_STATUS(context.options.traces.keep(call.pieces.at(0), call.pieces.at(1),
                                                               call.query.text("job"), call.body));
                   return json_reply(JsonObject().add("ok", true).text());
                 }});
  out.push_back({.method = "GET",
                 .path = "/v1/traces",
                 .id = "listTraces",
                 .summary = "Jobs whose processes are traced, and what was found last",
                 .role = Role::read,
                 .reply_schema = "Traces",
                 .handler = [context](const Call&) -> Result<Reply> {
                   if (!context.options.traces.list)
                     return json_reply(JsonObject().add("items", JsonList()).text());
                   return json_reply(context.options.traces.list());
                 }});
  out.push_back({.method = "GET",
                 .path = "/v1/jobs/{job}/trace",
                 .id = "readJobTrace",
                 .summary = "Who keeps a job waiting: verdicts, and parts of the network",
                 .role = Role::read,
                 .reply_schema = "JobTrace",
                 .problems = {501, 503},
                 .handler = [context](const Call& call) -> Result<Reply> {
                   if (!context.options.traces.of_job) return no_traces();
                   WEFT_TRY(std::string body, context.options.traces.of_job(call.pieces.at(0)));
                   return json_reply(std::move(body));
                 }});
  out.push_back({.method = "GET",
                 .path = "/v1/jobs/{job}/trace/picture",
                 .id = "readJobTracePicture",
                 .summary = "Waits by rank and group, who waits for whom, and a time line, folded",
                 .role = Role::read,
                 .reply_schema = "Any",
                 .problems = {501, 503},
                 .handler = [context](const Call& call) -> Result<Reply> {
                   if (!context.options.traces.picture) return no_traces();
                   WEFT_TRY(std::string body, context.options.traces.picture(call.pieces.at(0)));
                   return json_reply(std::move(body));
                 }});
}

std::unexpected<Error> no_te() {
  return fail(Errc::unsupported, {}, "this service places no flows",
              "add te: {flows: FILE} to the file of --config");
}

void add_te(const RouteContext& context, std::vector<Route>& out) {
  out.push_back({.method = "POST",
                 .path = "/v1/te/switches/{switch}",
                 .id = "reportSwitch",
                 .summary = "Ports of a switch, by its agent; answered by changes of its marks",
                 .role = Role::ingest,
                 .query = {{.name = "wait_ms",
                            .meaning = "how long the answer may be held until there is a change",
                            .type = count,
                            .least = 0,
                            .most = te_wait_ms_max}},
                 .body = Body::json,
                 .reply_schema = "SwitchOrders",
                 .problems = {404, 501},
                 .handler = [context](const Call& call) -> Result<Reply> {
                   if (!context.options.te.report) return no_te();
                   Reply out;
                   out.later = [&report = context.options.te.report, name = call.pieces.at(0),
                                body = call.body, wait_ms = call.query.count("wait_ms", 0)](
                                   std::function<void(Reply)> done) {
                     report(name, body, wait_ms * 1'000'000,
                            [done = std::move(done)](Result<std::string> orders) {
                              done(orders ? json_reply(*std::move(orders))
                                          : reply_of(serve::problem_of(orders.error())));
                            });
                   };
                   return out;
                 }});
  out.push_back({.method = "GET",
                 .path = "/v1/te",
                 .id = "readTe",
                 .summary = "Traffic engineering: switches, their marks, and the last decisions",
                 .role = Role::read,
                 .reply_schema = "Te",
                 .problems = {501},
                 .handler = [context](const Call&) -> Result<Reply> {
                   if (!context.options.te.state) return no_te();
                   return json_reply(context.options.te.state());
                 }});
}

Result<Reply> run(const RouteContext& context, const Command& command, std::string_view name) {
  WEFT_TRY_STATUS(context.service.command(command));
  return json_reply(JsonObject()
                        .add("command", name)
                        .add_if("case", command.case_id)
                        .add("who", command.who)
                        .text());
}

Param reason(Param::Need need) {
  return {.name = "reason",
          .meaning = "reason, for the audit log",
          .need = need,
          .least = 1,
          .most = reason_bytes_max};
}

// `fields`: those of its body, of which the first is the reason.
Route case_command(const RouteContext& context, std::string_view path, std::string_view id,
                   Command::Kind kind, std::string_view name, std::string_view summary,
                   std::vector<Param> fields = {reason(needed)}) {
  const std::string_view words = fields.front().name;
  return {.method = "POST",
          .path = path,
          .id = id,
          .summary = summary,
          .role = Role::operate,
          .body = Body::fields,
          .fields = std::move(fields),
          .reply_schema = "Done",
          .problems = {409, 503},
          .handler = [context, kind, name, words](const Call& call) {
            return run(context,
                       {.kind = kind,
                        .case_id = call.pieces.at(0),
                        .who = call.who,
                        .reason = call.fields.text(words),
                        .owner = call.fields.text("owner")},
                       name);
          }};
}

Route rma_route(const RouteContext& context) {
  return {.method = "POST",
          .path = "/v1/cases/{id}/rma",
          .id = "returnToVendor",
          .summary = "The part goes back to its vendor: its repair waits from ordered to received",
          .role = Role::operate,
          .body = Body::fields,
          .fields = {{.name = "step",
                      .meaning = "what happened",
                      .need = needed,
                      .choices = {"ordered", "shipped", "received"}},
                     {.name = "number",
                      .meaning = "the vendor's number of the return; needed with ordered",
                      .most = rma_number_bytes},
                     reason(needed)},
          .reply_schema = "Done",
          .problems = {409, 503},
          .handler = [context](const Call& call) {
            return run(context,
                       {.kind = Command::Kind::rma,
                        .case_id = call.pieces.at(0),
                        .who = call.who,
                        .reason = call.fields.text("reason"),
                        .step = call.fields.text("step"),
                        .number = call.fields.text("number")},
                       "rma");
          }};
}

Route wide_command(const RouteContext& context, std::string_view method, std::string_view id,
                   Command::Kind kind, Param::Need need, std::string_view summary) {
  return {.method = method,
          .path = "/v1/kill-switch",
          .id = id,
          .summary = summary,
          .role = Role::operate,
          .body = Body::fields,
          .fields = {reason(need)},
          .reply_schema = "Done",
          .problems = {409, 503},
          .handler = [context, kind](const Call& call) {
            const bool is_on = kind == Command::Kind::kill_switch;
            return run(context,
                       {.kind = kind, .who = call.who, .reason = call.fields.text("reason")},
                       is_on ? "kill_switch" : "revive");
          }};
}

Route freeze_route(const RouteContext& context) {
  return {.method = "POST",
          .path = "/v1/freeze",
          .id = "freeze",
          .summary = "No new drains until a time",
          .role = Role::operate,
          .body = Body::fields,
          .fields = {{.name = "until", .meaning = "the end", .type = time, .need = needed},
                     reason(needed)},
          .reply_schema = "Done",
          .problems = {409, 503},
          .handler = [context](const Call& call) {
            return run(context,
                       {.kind = Command::Kind::freeze,
                        .who = call.who,
                        .reason = call.fields.text("reason"),
                        .until = call.fields.time("until", {})},
                       "freeze");
          }};
}

Route thaw_route(const RouteContext& context) {
  return {
      .method = "DELETE",
      .path = "/v1/freeze",
      .id = "thaw",
      .summary = "End all freezes set by POST; those of the policy stay",
      .role = Role::operate,
      .body = Body::fields,
      .fields = {reason(needed)},
      .reply_schema = "Done",
      .problems = {409, 503},
      .handler = [context](const Call& call) {
        return run(
            context,
            {.kind = Command::Kind::thaw, .who = call.who, .reason = call.fields.text("reason")},
            "thaw");
      }};
}

void add_commands(const RouteContext& context, std::vector<Route>& out) {
  using enum Command::Kind;
  out.push_back(case_command(context, "/v1/cases/{id}/approve", "approveCase", approve, "approve",
                             "Approve the proposed drain"));
  out.push_back(case_command(context, "/v1/cases/{id}/reject", "rejectCase", reject, "reject",
                             "Reject the proposed drain"));
  out.push_back(case_command(context, "/v1/cases/{id}/repaired", "repairedCase", repaired,
                             "repaired", "Report the entity as repaired: verify it"));
  out.push_back(rma_route(context));
  out.push_back(case_command(context, "/v1/cases/{id}/hold", "holdCase", hold, "hold",
                             "Take no further action on this case"));
  out.push_back(case_command(context, "/v1/cases/{id}/release", "releaseCase", release, "release",
                             "Resume a case on hold"));
  out.push_back(case_command(context, "/v1/cases/{id}/own", "ownCase", own, "own",
                             "Take care of this case from now on, or give it to somebody",
                             {reason(Param::Need::optional),
                              {.name = "owner",
                               .meaning = "who takes care of it; default: who asks",
                               .least = 1,
                               .most = owner_bytes_max}}));
  out.push_back(case_command(context, "/v1/cases/{id}/disown", "disownCase", disown, "disown",
                             "Nobody takes care of this case any more",
                             {reason(Param::Need::optional)}));
  out.push_back(case_command(context, "/v1/cases/{id}/comment", "commentCase", comment, "comment",
                             "Words about this case, kept in the audit log",
                             {{.name = "text",
                               .meaning = "the words",
                               .need = needed,
                               .least = 1,
                               .most = comment_bytes_max}}));
  out.push_back(wide_command(context, "PUT", "throwKillSwitch", kill_switch, needed,
                             "Stop all actions (kill switch on)"));
  out.push_back(wide_command(context, "DELETE", "liftKillSwitch", revive, Param::Need::optional,
                             "Allow actions again (kill switch off)"));
  out.push_back(freeze_route(context));
  out.push_back(thaw_route(context));
}

Result<Reply> events(const RouteContext& context, const Call& call) {
  std::optional<std::uint64_t> after;
  if (call.query.has("since")) after = static_cast<std::uint64_t>(call.query.count("since", 0));
  if (const std::string& id = call.last_event_id; !id.empty()) {  // the later word
    std::uint64_t seq = 0;
    const auto [stop, error] = std::from_chars(id.data(), id.data() + id.size(), seq);
    if (error != std::errc() || stop != id.data() + id.size())
      return fail(Errc::value, {}, "Last-Event-ID is not the number of an audit entry");
    after = seq;
  }
  Share seat;
  if (!Share::take(context.meters.event_clients, 1, context.options.limits.event_clients, seat))
    return busy("too many event clients already");
  Reply out;
  out.type = "text/event-stream";
  out.stream = std::make_unique<EventFeed>(
      EventFeed::Needs{context.store, context.bus, context.is_stopping, context.meters,
                       context.options.limits.heartbeat},
      after, std::move(seat));
  return out;
}

Reply health_reply(bool is_well, const std::string& why) {
  if (!is_well) return reply_of({503, "unwell", why.empty() ? "not ready" : why});
  return json_reply(JsonObject().add("ok", true).text());
}

void add_watching(const RouteContext& context, std::vector<Route>& out) {
  out.push_back(
      {.method = "GET",
       .path = "/v1/events",
       .id = "watchEvents",
       .summary = "Server-sent events: case, repair, handling, audit; ids number audit entries",
       .role = Role::read,
       .query = {{.name = "since",
                  .meaning = "the last number seen, as Last-Event-ID",
                  .type = count}},
       .reply_type = "text/event-stream",
       .problems = {503},
       .handler = [context](const Call& call) { return events(context, call); }});
  out.push_back({.method = "GET",
                 .path = "/metrics",
                 .id = "readMetrics",
                 .summary = "Prometheus text",
                 .role = Role::read,
                 .reply_type = "text/plain",
                 .handler = [context](const Call&) -> Result<Reply> {
                   Reply out = json_reply(context.service.metrics() + context.meters.text());
                   if (context.options.metrics) out.body += context.options.metrics();
                   out.type = "text/plain; version=0.0.4; charset=utf-8";
                   return out;
                 }});
  out.push_back({.method = "GET",
                 .path = "/healthz",
                 .id = "isAlive",
                 .summary = "Whether the service is alive",
                 .role = {},
                 .reply_schema = "Health",
                 .problems = {503},
                 .handler = [context](const Call&) -> Result<Reply> {
                   const Health health = context.service.health();
                   return health_reply(health.is_alive, health.why);
                 }});
  out.push_back({.method = "GET",
                 .path = "/readyz",
                 .id = "isReady",
                 .summary = "Whether it accepts lines",
                 .role = {},
                 .reply_schema = "Health",
                 .problems = {503},
                 .handler = [context](const Call&) -> Result<Reply> {
                   const Health health = context.service.health();
                   return health_reply(health.is_alive && health.is_ready, health.why);
                 }});
  out.push_back({.method = "GET",
                 .path = "/",
                 .id = "console",
                 .summary = "The console, for human readers; where it was not built, as /status",
                 .role = Role::read,
                 .reply_type = "text/html",
                 .problems = {503},
                 .handler = [context](const Call&) {
                   return console_page(context.store, context.service.health());
                 }});
  out.push_back({.method = "GET",
                 .path = "/status",
                 .id = "statusPage",
                 .summary = "Open cases as one table, for human readers",
                 .role = Role::read,
                 .reply_type = "text/html",
                 .problems = {503},
                 .handler = [context](const Call&) {
                   return status_page(context.store, context.service.health());
                 }});
}

}  // namespace

std::vector<Route> make_routes(const RouteContext& context) {
  std::vector<Route> out;
  add_feeds(context, out);
  add_reading(context, out);
  add_console(context, out);
  add_path_health(context, out);
  add_vendor(context, out);
  add_jobs(context, out);
  add_traces(context, out);
  add_te(context, out);
  add_commands(context, out);
  add_watching(context, out);
  out.push_back({.method = "GET",
                 .path = "/openapi.json",
                 .id = "readOpenApi",
                 .summary = "This document",
                 .role = {},
                 .reply_schema = "Any",
                 .handler = {}});
  // Of all routes, itself among them.
  out.back().handler = [document = openapi_document(out)](const Call&) -> Result<Reply> {
    return json_reply(document);
  };
  return out;
}

}  // namespace weft::serve
