#include "serve/api.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <nlohmann/json.hpp>
#include <set>

#include "base/test_folder.hpp"
#include "os/digest.hpp"
#include "plan/report/assets.hpp"
#include "serve/api_kit.hpp"
#include "serve/auth.hpp"

namespace weft::serve {
namespace {

using namespace testing;
using nlohmann::json;

constexpr Timestamp noon{1'772'366'400'000'000'000};  // 2026-03-01T12:00:00Z

port::Document document(std::string kind, std::string id, std::int64_t second, std::string body) {
  return {std::move(kind), std::move(id), {noon.ns + second * ns_per_s}, std::move(body)};
}

TEST_CASE("lines are acknowledged one by one") {
  Bed bed;
  const Answer answer = call(*bed.api, "POST", "/v1/records", "{\"a\":1}\r\nbad\n\n{\"b\":2}");
  CHECK(answer.status == 200);
  CHECK(json::parse(answer.body) ==
        json::parse(
            R"({"acknowledged":3,"known":0,"unknown_kinds":0,"unknown_entities":0,"refused_count":1,
                        "refused":[{"line":2,"why":"is \"bad\""}]})"));
  CHECK(bed.service.taken == std::vector<std::string>{"{\"a\":1}", "", "{\"b\":2}"});
  CHECK(bed.service.last_feed == "record");
  CHECK(bed.service.last_sender == "127.0.0.1");
  CHECK(call(*bed.api, "POST", "/v1/syslog", "<13>x\n").status == 200);
  CHECK(bed.service.last_feed == "syslog");
  CHECK(call(*bed.api, "POST", "/v1/evidence", "{}").status == 200);
  CHECK(bed.service.last_feed == "evidence");
}

TEST_CASE("compressed bodies count for what they hold") {
  Bed bed(ApiOptions{.limits = {.body_bytes = 1000}});
  const auto packed = gzip("{\"a\":1}\n{\"b\":2}\n");
  REQUIRE(packed.has_value());
  const std::string_view header = "Content-Encoding: gzip\r\nContent-Type: text/plain\r\n";
  CHECK(call(*bed.api, "POST", "/v1/records", *packed, header).status == 200);
  CHECK(bed.service.taken.size() == 2);
  CHECK(call(*bed.api, "POST", "/v1/records", packed->substr(0, 20), header).status == 400);
  const auto bomb = gzip(std::string(100'000, 'a'));
  CHECK(bomb->size() < 1000);
  CHECK(call(*bed.api, "POST", "/v1/records", *bomb, header).status == 400);
  CHECK(bed.service.taken.size() == 2);
  CHECK(call(*bed.api, "POST", "/v1/records", "x", "Content-Encoding: br\r\n").status == 415);
}

TEST_CASE("a busy or broken service takes nothing and says so") {
  Bed bed;
  bed.service.is_busy = true;
  Answer answer = call(*bed.api, "POST", "/v1/records", "{}");
  CHECK(answer.status == 503);
  CHECK(answer.headers["retry-after"] == "1");
  CHECK(answer.headers["content-type"] == "application/problem+json");
  CHECK(json::parse(answer.body)["type"] == "urn:weft:problem:busy");
  bed.service.is_busy = false;
  bed.service.is_broken = true;
  CHECK(call(*bed.api, "POST", "/v1/records", "{}").status == 503);
  CHECK(call(*bed.api, "GET", "/healthz").status == 200);
  answer = call(*bed.api, "GET", "/readyz");
  CHECK(answer.status == 503);
  CHECK(json::parse(answer.body)["detail"] == "the disk is full");
  bed.store.is_broken = true;
  CHECK(call(*bed.api, "GET", "/v1/cases").status == 503);
  CHECK(call(*bed.api, "GET", "/v1/events").headers["content-type"] == "text/event-stream");
}

TEST_CASE("too large is refused before it is read, too many lines after") {
  Bed bed(ApiOptions{.limits = {.body_bytes = 100, .bodies_bytes = 50, .lines = 3}});
  CHECK(call(*bed.api, "POST", "/v1/records", std::string(101, 'x')).status == 413);
  CHECK(call(*bed.api, "POST", "/v1/records", std::string(60, 'x')).status == 503);
  CHECK(call(*bed.api, "POST", "/v1/records", "a\nb\nc\nd").status == 413);
  CHECK(call(*bed.api, "POST", "/v1/records", "a\nb\nc\n").status == 200);
  CHECK(bed.service.taken.size() == 3);
}

TEST_CASE("the body may wait for leave to come") {
  Bed bed(ApiOptions{.limits = {.body_bytes = 100}});
  Client client(bed.api->port());
  client.send(
      "POST /v1/records HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n"
      "Expect: 100-continue\r\n\r\n");
  CHECK(client.receive_until("\r\n\r\n") == "HTTP/1.1 100 Continue\r\n\r\n");
  client.send("{}");
  CHECK(client.answer().status == 200);
  client.send(
      "POST /v1/records HTTP/1.1\r\nHost: localhost\r\nContent-Length: 200\r\n"
      "Expect: 100-continue\r\n\r\n");
  const Answer refused = client.answer();
  CHECK(refused.status == 413);
  CHECK(refused.headers.at("connection") == "close");
}

TEST_CASE("webhooks of Alertmanager go through their reader") {
  Bed plain;
  CHECK(call(*plain.api, "POST", "/v1/alertmanager", "{}").status == 501);
  Bed bed(ApiOptions{.alertmanager = [](std::string_view body) -> Result<std::vector<std::string>> {
    if (body == "{}") return fail(Errc::parse, {}, "no version");
    return std::vector<std::string>{"one", "two"};
  }});
  CHECK(call(*bed.api, "POST", "/v1/alertmanager", "{}").status == 400);
  const Answer answer = call(*bed.api, "POST", "/v1/alertmanager", "{\"version\":\"4\"}");
  CHECK(answer.status == 200);
  CHECK(json::parse(answer.body)["acknowledged"] == 2);
  CHECK(call(*bed.api, "POST", "/v1/alertmanager", "{ }", "Content-Type: text/plain\r\n").status ==
        415);
}

TEST_CASE("documents come in pages that lose none, whatever their times") {
  Bed bed;
  port::Commit commit;
  // Ten documents, in threes of one time.
  for (int i = 0; i < 10; ++i)
    commit.documents.push_back(document(
        "case", fmt::format("c{}", i), i / 3,
        fmt::format(R"({{"id":"c{}","standing":"{}"}})", i, i % 2 == 0 ? "open" : "closed")));
  REQUIRE(bed.store.commit(commit));
  std::set<std::string> seen;
  std::string target = "/v1/cases?limit=2";
  for (int pages = 0; !target.empty() && pages < 10; ++pages) {
    const json page = json::parse(call(*bed.api, "GET", target).body);
    for (const json& item : page["items"]) CHECK(seen.insert(item["id"]).second);
    target =
        page["next"].is_null() ? "" : "/v1/cases?limit=2&before=" + page["next"].get<std::string>();
  }
  CHECK(seen.size() == 10);
  CHECK(json::parse(call(*bed.api, "GET", "/v1/cases?state=open").body)["items"].size() == 5);
  CHECK(json::parse(call(*bed.api, "GET", "/v1/repairs").body)["items"].empty());
  CHECK(call(*bed.api, "GET", "/v1/repairs?state=soaking").status == 200);
  for (const auto& [path, choices] :
       {std::pair("/v1/cases?state=foo", "one of provisional, open, closed, superseded, withdrawn"),
        std::pair("/v1/repairs?state=open", "draining, ")}) {
    const Answer refused = call(*bed.api, "GET", path);
    CHECK(refused.status == 400);
    CHECK_MESSAGE(refused.body.find(choices) != std::string::npos, refused.body);
  }
}

TEST_CASE("one document, by any name") {
  Bed bed;
  const std::string body = R"({"id":"a/b c","state":"x"})";
  REQUIRE(bed.store.commit({.documents = {document("snapshot", "a/b c", 0, body),
                                          document("case", "torn", 0, "{\"id\":")}}));
  CHECK(call(*bed.api, "GET", "/v1/snapshots/a%2Fb%20c").body == body);
  CHECK(call(*bed.api, "GET", "/v1/snapshots/a").status == 404);
  CHECK(json::parse(call(*bed.api, "GET", "/v1/cases").body)["items"][0]["damaged"] == true);
  Answer answer = Client(bed.api->port()).call("HEAD", "/v1/snapshots/a%2Fb%20c");
  CHECK(answer.status == 200);
  CHECK(answer.headers["content-length"] == std::to_string(body.size()));
}

TEST_CASE("the audit log, as JSON and as lines") {
  Bed bed;
  port::Commit commit;
  for (int i = 0; i < 5; ++i)
    commit.audit.push_back({0, noon, "weft", i % 2 == 0 ? "c0" : "c1", "drain", "{\"n\": 1}"});
  REQUIRE(bed.store.commit(commit));
  json audit = json::parse(call(*bed.api, "GET", "/v1/audit?since=2&limit=2").body);
  CHECK(audit["items"].size() == 2);
  CHECK(audit["items"][0]["seq"] == 2);
  CHECK(audit["items"][0]["detail"]["n"] == 1);
  CHECK(audit["next"] == 4);
  CHECK(json::parse(call(*bed.api, "GET", "/v1/audit?case=c0").body)["items"].size() == 3);
  const Answer lines = call(*bed.api, "GET", "/v1/audit", "", "Accept: application/x-ndjson\r\n");
  CHECK(std::ranges::count(lines.body, '\n') == 5);
  CHECK(lines.headers.at("content-type") == "application/x-ndjson");
}

TEST_CASE("commands carry who wants them and why") {
  Bed bed;
  for (const char* name : {"approve", "reject", "repaired", "hold", "release"})
    CHECK(call(*bed.api, "POST", fmt::format("/v1/cases/c%3A1/{}", name), R"({"reason":"r"})")
              .status == 200);
  CHECK(call(*bed.api, "PUT", "/v1/kill-switch", R"({"reason":"stop"})").status == 200);
  CHECK(call(*bed.api, "DELETE", "/v1/kill-switch").status == 200);
  CHECK(call(*bed.api, "DELETE", "/v1/kill-switch", R"({"reason":"go"})").status == 200);
  CHECK(call(*bed.api, "POST", "/v1/freeze",
             R"({"until":"2026-03-01T12:00:00Z",
                 "reason":"launch"})")
            .status == 200);
  CHECK(call(*bed.api, "DELETE", "/v1/freeze", R"({"reason":"launched"})").status == 200);
  CHECK(call(*bed.api, "POST", "/v1/cases/c/own").status == 200);
  CHECK(call(*bed.api, "POST", "/v1/cases/c/own", R"({"owner":"bob","reason":"r"})").status == 200);
  CHECK(call(*bed.api, "POST", "/v1/cases/c/disown").status == 200);
  CHECK(call(*bed.api, "POST", "/v1/cases/c/comment", R"({"text":"words"})").status == 200);
  const auto& got = bed.service.commands;
  REQUIRE(got.size() == 14);
  using Kind = Command::Kind;
  constexpr std::array kinds{Kind::approve, Kind::reject,      Kind::repaired, Kind::hold,
                             Kind::release, Kind::kill_switch, Kind::revive,   Kind::revive,
                             Kind::freeze,  Kind::thaw,        Kind::own,      Kind::own,
                             Kind::disown,  Kind::comment};
  for (std::size_t i = 0; i < kinds.size(); ++i) CHECK(got[i].kind == kinds[i]);
  CHECK(got[0].case_id == "c:1");
  CHECK(got[0].who == "local");
  CHECK(got[5].reason == "stop");
  CHECK(got[6].reason.empty());
  CHECK(got[8].until == noon);
  CHECK(got[10].owner.empty());
  CHECK(got[11].owner == "bob");
  CHECK(got[11].reason == "r");
  CHECK(got[13].reason == "words");
  CHECK(call(*bed.api, "POST", "/v1/cases/none/hold", R"({"reason":"r"})").status == 404);
  CHECK(call(*bed.api, "POST", "/v1/cases/done/hold", R"({"reason":"r"})").status == 409);
  CHECK(got.size() == 14);
}

TEST_CASE("what a request must not say") {
  Bed bed;
  const auto status = [&](std::string_view method, std::string_view target,
                          std::string_view body = "", std::string_view headers = "") {
    return call(*bed.api, method, target, body, headers).status;
  };
  CHECK(status("GET", "/v1/cases?stat=open") == 400);
  CHECK(status("GET", "/v1/cases?limit=0") == 400);
  CHECK(status("GET", "/v1/cases?limit=5&limit=5") == 400);
  CHECK(status("GET", "/v1/cases?before=yesterday") == 400);
  CHECK(status("GET", "/v1/cases?state=%ff") == 400);
  CHECK(status("GET", "/healthz?x=1") == 400);
  CHECK(status("GET", "/v1/cases/") == 404);
  CHECK(status("GET", "/v1/sli?from=1") == 400);
  CHECK(status("GET", "/v1/sli?from=2&to=1") == 400);
  CHECK(status("GET", "/v1/sli?from=-9200000000000000000&to=9200000000000000000") == 400);
  CHECK(status("GET", "/v1/sli?from=0&to=60000000000") == 200);
  CHECK(status("GET", "/nowhere") == 404);
  CHECK(status("PATCH", "/v1/cases") == 405);
  CHECK(status("GET", "/v1/cases", "body") == 400);
  CHECK(status("POST", "/v1/cases/c/hold", "{}") == 400);
  CHECK(status("POST", "/v1/cases/c/comment", R"({"reason":"r"})") == 400);
  CHECK(status("POST", "/v1/cases/c/own", R"({"owner":""})") == 400);
  CHECK(status("POST", "/v1/cases/c/hold", R"({"reason":""})") == 400);
  CHECK(status("POST", "/v1/cases/c/hold", R"({"reason":7})") == 400);
  CHECK(status("POST", "/v1/cases/c/hold", R"({"reason":null})") == 400);
  CHECK(status("POST", "/v1/cases/c/hold", R"({"reason":"r","why":"x"})") == 400);
  CHECK(status("POST", "/v1/cases/c/hold", R"({"reason":"r"} x)") == 400);
  CHECK(status("POST", "/v1/cases/c/hold", R"({"reason":"r"})", "Content-Type: text/plain\r\n") ==
        415);
  CHECK(status("POST", "/v1/freeze", R"({"reason":"r","until":"soon"})") == 400);
  CHECK(status("DELETE", "/v1/freeze", "{}") == 400);
  CHECK(bed.service.commands.empty());
  Answer answer = call(*bed.api, "DELETE", "/v1/records");
  CHECK(answer.status == 405);
  CHECK(answer.headers["allow"] == "OPTIONS, POST");
  answer = call(*bed.api, "OPTIONS", "/v1/kill-switch");
  CHECK(answer.status == 204);
  CHECK(answer.headers["allow"] == "DELETE, OPTIONS, PUT");
  CHECK_FALSE(answer.headers.contains("access-control-allow-origin"));
  CHECK(call(*bed.api, "GET", "/v1/case?").headers["x-request-id"].size() == 16);
}

TEST_CASE("pages of other sites get nothing, and names that others point here neither") {
  Bed bed;
  const auto status = [&](std::string_view headers) {
    return call(*bed.api, "POST", "/v1/records", "x", headers).status;
  };
  CHECK(status("Origin: http://localhost\r\n") == 200);
  CHECK(status("Origin: https://evil.example\r\n") == 403);
  CHECK(status("Origin: http://notlocalhost\r\n") == 403);
  CHECK(status("Origin: null\r\n") == 403);
  Client client(bed.api->port());
  client.send("GET /v1/cases HTTP/1.1\r\nHost: rebound.example:80\r\n\r\n");
  CHECK(client.answer().status == 421);
}

TEST_CASE("a vendor's link gives one copy without a token, a wrong one nothing") {
  ApiOptions options;
  options.vendor.is_ours = [](std::string_view id, std::int64_t expires_s, std::string_view text) {
    return id == "c.1" && expires_s == 17 && text == "good";
  };
  options.vendor.copy = [](std::string_view document) -> Result<std::string> {
    return "copy of " + std::string(document);
  };
  Bed bed(std::move(options));
  REQUIRE(bed.store.commit({.documents = {{"snapshot", "c.1", {1}, "{}"}}}).has_value());
  const auto get = [&](std::string_view rest) {
    return call(*bed.api, "GET", fmt::format("/v1/vendor/snapshots/{}", rest));
  };
  const Answer answer = get("c.1?expires=17&signature=good");
  CHECK(answer.status == 200);
  CHECK(answer.body == "copy of {}");
  CHECK(answer.headers.at("content-type") == "application/gzip");
  CHECK(get("c.1?expires=17&signature=bad").status == 403);
  CHECK(get("c.1?expires=18&signature=good").status == 403);
  CHECK(get("c.2?expires=17&signature=good").status == 403);
  CHECK(get("c.1").status == 400);
  Bed plain;
  CHECK(call(*plain.api, "GET", "/v1/vendor/snapshots/c.1?expires=17&signature=good").status ==
        501);
}

TEST_CASE("metrics, of the service and of the API itself") {
  Bed bed;
  call(*bed.api, "GET", "/healthz");
  CHECK(eventually([&] {
    const std::string text = call(*bed.api, "GET", "/metrics").body;
    return text.find("weft_cases 2\n") != std::string::npos &&
           text.find("weft_http_requests_total{route=\"isAlive\",code=\"200\"} 1\n") !=
               std::string::npos &&
           text.find("weft_http_request_seconds_bucket{route=\"isAlive\",le=\"+Inf\"} 1\n") !=
               std::string::npos;
  }));
}

TEST_CASE("the status page shows open cases, and takes no text for HTML") {
  Bed bed;
  REQUIRE(bed.store.commit(
      {.documents = {document("case", "c1", 1,
                              R"({"id":"c1","standing":"open","opened":"2026-03-01T12:00:00Z",
                                  "cause":{"kind":"link","entity":"<b>&\"x"},"members":[1,2,3]})"),
                     document("case", "c2", 2, R"({"id":"c2","standing":"closed"})"),
                     document("case", "c3", 2, R"({"id":"c3","standing":"open","cause":7})"),
                     document("repair", "r", 3, R"({"stage":"drained","cases":[{"id":"c1"}]})"),
                     document("repair", "x", 4, R"({"stage":"drained","cases":["c3",7,{}]})")}}));
  Answer answer = call(*bed.api, "GET", "/status");
  CHECK(answer.status == 200);
  CHECK(answer.headers["content-security-policy"].find("default-src 'none'") == 0);
  CHECK(answer.body.find("&lt;b&gt;&amp;&quot;x") != std::string::npos);
  CHECK(answer.body.find("<td>drained<td>") != std::string::npos);
  CHECK(answer.body.find("<h2>2 open</h2>") != std::string::npos);
  CHECK(answer.body.find("c2") == std::string::npos);
}

TEST_CASE("the console is a page that may run its own script alone, or the table of cases") {
  Bed bed;
  Answer page = call(*bed.api, "GET", "/");
  CHECK(page.status == 200);
  const std::string policy = page.headers["content-security-policy"];
  CHECK(policy.find("default-src 'none'") == 0);
  if (plan::report::console_assets.script.empty()) {  // npm could not build it
    CHECK(page.body == call(*bed.api, "GET", "/status").body);
    return;
  }
  for (const char* element : {"script", "style"}) {
    const std::string open = fmt::format("<{}>", element), close = fmt::format("</{}>", element);
    const std::size_t begin = page.body.find(open) + open.size();
    const std::string text = page.body.substr(begin, page.body.find(close) - begin);
    CHECK(text.size() > 1000);
    CHECK(policy.find(fmt::format("{}-src 'sha256-{}'", element, sha256_base64(text))) !=
          std::string::npos);
  }
}

TEST_CASE("the status page says how many cases there are, not how many it shows") {
  Bed bed;
  port::Commit commit;
  for (int i = 0; i < 513; ++i)
    commit.documents.push_back(document("case", fmt::format("c{}", i), i,
                                        fmt::format(R"({{"id":"c{}","standing":"{}","members":[1],
                                "members_summarised":[{{"records":41}},7]}})",
                                                    i, i % 2 == 0 ? "open" : "provisional")));
  REQUIRE(bed.store.commit(commit));
  bed.service.cases_open = 513;
  const Answer answer = call(*bed.api, "GET", "/status");
  CHECK(answer.body.find("<h2>513 open, the 200 most recently changed are shown</h2>") !=
        std::string::npos);
  CHECK(answer.body.find("<td class=n>42<td>") != std::string::npos);
  CHECK(answer.body.find("<code>c512</code>") != std::string::npos);
  CHECK(answer.body.find("<code>c313</code>") != std::string::npos);
  CHECK(answer.body.find("<code>c312</code>") == std::string::npos);
}

TEST_CASE("members of cases come in pages that lose none") {
  Bed bed;
  std::string members, left;
  for (int i = 0; i < 250; ++i) {
    members += fmt::format(R"({}{{"record":"r{}"}})", i == 0 ? "" : ",", i);
    if (i < 30) left += fmt::format(R"({}"u{}")", i == 0 ? "" : ",", i);
  }
  REQUIRE(bed.store.commit(
      {.documents = {document("case", "c", 0,
                              fmt::format(R"({{"id":"c","members":[{}],"unexplained":[{}],
                                              "members_summarised":[{{"records":1000}}]}})",
                                          members, left)),
                     document("repair", "r", 0, R"({"id":"r","members":[1,2]})")}}));
  const auto get = [&](const std::string& target) {
    const Answer answer = call(*bed.api, "GET", target);
    CHECK(answer.status == 200);
    return json::parse(answer.body);
  };
  const json listed = get("/v1/cases")["items"][0];
  CHECK(listed["members"].size() == 100);
  CHECK(listed["records"] == 1250);
  CHECK(listed["next_member"] == 100);
  CHECK(get("/v1/cases?members=0")["items"][0]["members"].empty());
  CHECK(get("/v1/cases/c")["next_member"].is_null());
  CHECK(get("/v1/cases/c")["members"].size() == 250);
  std::vector<std::string> seen, unexplained;
  for (json from = 0; !from.is_null();) {
    const json page = get(fmt::format("/v1/cases/c?members=33&from={}", from.get<int>()));
    CHECK(page["members"].size() <= 33);
    for (const json& member : page["members"]) seen.push_back(member["record"]);
    for (const json& record : page["unexplained"]) unexplained.push_back(record);
    from = page["next_member"];
  }
  REQUIRE(seen.size() == 250);
  for (std::size_t i = 0; i < seen.size(); ++i) CHECK(seen[i] == fmt::format("r{}", i));
  CHECK(unexplained.size() == 30);
  CHECK(get("/v1/cases/c?from=9999999")["members"].empty());
  CHECK(call(*bed.api, "GET", "/v1/cases?members=x").status == 400);
  CHECK(call(*bed.api, "GET", "/v1/repairs?members=1").status == 400);
  CHECK(get("/v1/repairs/r") == json::parse(R"({"id":"r","members":[1,2]})"));
}

TEST_CASE("an instant that is over has its own answers, and what is not kept is refused") {
  Bed bed;
  bed.service.past_end = {noon.ns + 10 * ns_per_s};
  REQUIRE(bed.service.past_store.commit(
      {.events = {},
       .documents = {document("case", "c1", 1, R"({"id":"c1","standing":"open","members":[]})"),
                     document("case", "c2", 5, R"({"id":"c2","standing":"open","members":[]})"),
                     document("handling", "c1", 2, R"({"id":"c1","owner":"ann"})")},
       .audit = {}}));
  const auto get = [&](const std::string& path, std::int64_t second) {
    return call(*bed.api, "GET",
                fmt::format("{}{}at={}", path, path.find('?') == std::string::npos ? '?' : '&',
                            noon.ns + second * ns_per_s));
  };
  const auto count = [](const Answer& answer) {
    CHECK(answer.status == 200);
    return json::parse(answer.body)["items"].size();
  };
  CHECK(count(get("/v1/cases", 0)) == 0);
  CHECK(count(get("/v1/cases", 1)) == 1);
  CHECK(count(get("/v1/cases?state=open&limit=1000", 9)) == 2);
  CHECK(count(get("/v1/handling", 9)) == 1);
  CHECK(get("/v1/cases/c2", 4).status == 404);
  CHECK(json::parse(get("/v1/cases/c2", 5).body)["id"] == "c2");
  CHECK(get("/v1/cases/c1/records", 5).status == 200);
  CHECK(get("/v1/network", 5).body == R"({"then":1})");
  CHECK(get("/v1/probes", 5).body == "{}");
  // Now there is nothing.
  CHECK(json::parse(call(*bed.api, "GET", "/v1/cases").body)["items"].empty());
  CHECK(get("/v1/cases", 11).status == 400);
  for (const char* path : {"/v1/repairs", "/v1/capacity", "/v1/feeds", "/v1/jobs", "/v1/fabric"}) {
    const Answer refused = get(path, 5);
    CHECK(refused.status == 400);
    CHECK(refused.body.find("unknown name") != std::string::npos);
  }
}

TEST_CASE("roles: every route lets in whom it should, and nobody else") {
  const TestFolder folder;
  std::string tokens;
  for (const char* role : {"read", "ingest", "operate"})
    tokens += fmt::format("{0}er {0} {1}\n", role, sha256_hex(fmt::format("{}-token", role)));
  Bed bed(ApiOptions{.tokens = folder.write("tokens", tokens)});
  for (const Route& route : bed.api->routes()) {
    if (route.id == "watchEvents") continue;  // does not end; see the tests of events
    std::string target(route.path);
    if (const std::size_t at = target.find("{id}"); at != std::string::npos)
      target.replace(at, 4, "x");
    INFO(route.method, " ", target);
    const auto status = [&](std::string_view headers) {
      return call(*bed.api, route.method, target, "", headers).status;
    };
    const auto is_let_in = [](int code) { return code != 401 && code != 403; };
    // A vendor's link is asked for what the link has.
    CHECK(status("") == (route.role ? 401 : route.id == "readVendorCopy" ? 400 : 200));
    CHECK((status("Authorization: Bearer wrong\r\n") == 401) == route.role.has_value());
    for (const Role role : {Role::read, Role::ingest, Role::operate}) {
      const std::string header = fmt::format("Authorization: Bearer {}-token\r\n", to_text(role));
      CHECK(is_let_in(status(header)) == (!route.role || *route.role == role));
    }
  }
  // Browsers know another way, and commands know who wanted them.
  CHECK(call(*bed.api, "GET", "/status", "", "Authorization: Basic OnJlYWQtdG9rZW4=\r\n").status ==
        200);
  CHECK(call(*bed.api, "PUT", "/v1/kill-switch", R"({"reason":"r"})",
             "Authorization: Bearer operate-token\r\n")
            .status == 200);
  REQUIRE_FALSE(bed.service.commands.empty());
  CHECK(bed.service.commands.back().who == "operateer");
}

TEST_CASE("tokens are read again when told, and kept when they cannot be") {
  const TestFolder folder;
  const auto line = [](std::string_view token) {
    return fmt::format("ann read {}\n", sha256_hex(token));
  };
  Bed bed(ApiOptions{.tokens = folder.write("tokens", line("old"))});
  const auto status = [&](std::string_view token) {
    return call(*bed.api, "GET", "/v1/cases", "",
                fmt::format("Authorization: Bearer {}\r\n", token))
        .status;
  };
  CHECK(status("old") == 200);
  folder.write("tokens", "nonsense\n");
  CHECK_FALSE(bed.api->reload());
  CHECK(status("old") == 200);
  folder.write("tokens", line("new"));
  CHECK(bed.api->reload());
  CHECK(status("old") == 401);
  CHECK(status("new") == 200);
}

TEST_CASE("it does not listen where it should not") {
  FakeService service;
  MemoryStore store;
  Bus bus;
  const TestFolder folder;
  const auto error = [&](ApiOptions options) {
    const auto api = Api::listen(std::move(options), service, store, bus);
    return api ? std::string() : api.error().text();
  };
  const std::string tokens = folder.write("tokens", fmt::format("a read {}\n", sha256_hex("t")));
  CHECK(error({.listen = "0.0.0.0:0"}).find("can be reached from other machines") !=
        std::string::npos);
  CHECK(error({.listen = "[::]:0", .tokens = tokens}).find("can be reached") != std::string::npos);
  for (const char* wrong :
       {"", "localhost", "host:80", "127.0.0.1:99999", "::1:80", "unix:", "[::1]"})
    CHECK(error({.listen = wrong}).find("cannot listen at") == 0);
  CHECK(error({.certificate = "x"}).find("come together") != std::string::npos);
  CHECK(error({.client_ca = "x"}).find("need TLS") != std::string::npos);
  CHECK(error({.tokens = folder.write("c", "gw read certificate\n")}).find("certificates only") !=
        std::string::npos);
  ::chmod(tokens.c_str(), 0644);
  CHECK(error({.tokens = tokens}).find("chmod 600") != std::string::npos);
  const Bed bed;
  CHECK(error({.listen = bed.api->address()}).find("in use") != std::string::npos);
}

TEST_CASE("a socket file: its owner's alone, replaced when stale, gone at the end") {
  const TestFolder folder;
  const std::string path = folder.file("api.sock");
  {
    // Left behind: bound, and nobody listens.
    const Fd stale(::socket(AF_UNIX, SOCK_STREAM, 0));
    sockaddr_un to{};
    to.sun_family = AF_UNIX;
    path.copy(to.sun_path, sizeof to.sun_path - 1);
    REQUIRE(::bind(stale.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0);
  }
  {
    Bed bed(ApiOptions{.listen = "unix:" + path});
    struct stat info{};
    REQUIRE(::stat(path.c_str(), &info) == 0);
    CHECK((info.st_mode & 0777) == 0600);
    Client client(path);
    CHECK(client.call("POST", "/v1/records", "x").status == 200);
    CHECK(bed.service.last_sender.empty());
    CHECK(client.call("PUT", "/v1/kill-switch", R"({"reason":"r"})").status == 200);
    CHECK(bed.service.commands[0].who == fmt::format("uid:{}", ::getuid()));
    FakeService other;
    const auto second = Api::listen({.listen = "unix:" + path}, other, bed.store, bed.bus);
    REQUIRE_FALSE(second.has_value());
    CHECK(second.error().text().find("is in use by another process") != std::string::npos);
  }
  CHECK_FALSE(std::filesystem::exists(path));
  folder.write("api.sock", "precious");
  FakeService service;
  MemoryStore store;
  Bus bus;
  CHECK_FALSE(Api::listen({.listen = "unix:" + path}, service, store, bus).has_value());
  CHECK(std::filesystem::exists(path));
}

}  // namespace
}  // namespace weft::serve
