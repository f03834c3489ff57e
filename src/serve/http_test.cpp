#include "serve/http.hpp"

#include <doctest/doctest.h>

#include <array>
#include <string>

namespace weft::serve {
namespace {

int status_of(const std::string& text) {
  const auto head = parse_head(text);
  return head ? 200 : head.error().status;
}
std::string get(std::string_view fields) {
  return "GET / HTTP/1.1\r\nHost: x\r\n" + std::string(fields) + "\r\n";
}

TEST_CASE("a head is taken apart") {
  const auto head = parse_head(
      "POST /v1/records?x=1 HTTP/1.1\r\nHost: a:1\r\ncontent-LENGTH:  12 \r\nAccept: a\r\n"
      "Accept: b\r\nConnection: foo, Close\r\nExpect: 100-Continue\r\nX-Empty:\r\n\r\n");
  REQUIRE(head.has_value());
  CHECK(head->method == "POST");
  CHECK(head->target == "/v1/records?x=1");
  CHECK(head->content_length == 12);
  CHECK(head->field("accept") == "a, b");
  CHECK(head->field("x-empty").empty());
  CHECK(head->is_last);
  CHECK(head->expects_continue);
  CHECK_FALSE(parse_head(get(""))->is_last);
  CHECK(parse_head("GET / HTTP/1.0\r\n\r\n")->is_last);
  CHECK(parse_head(get("Accept: a\r\n b\r\n"))->field("accept") == "a b");
}

TEST_CASE("what could be read in two ways is refused") {
  CHECK(status_of(get("")) == 200);
  for (const char* fields :
       {"Content-Length: 1\r\nContent-Length: 1\r\n", "Content-Length: +1\r\n",
        "Content-Length: -1\r\n", "Content-Length: 0x1\r\n", "Content-Length: 1, 1\r\n",
        "Content-Length: 99999999999999999999\r\n", "Content-Length : 1\r\n", " folded\r\n",
        "Host: y\r\n", "No colon\r\n", ": x\r\n", "A: b\nC: d\r\n", "A: b\rc\r\n", "A: \x01\r\n"})
    CHECK_MESSAGE(status_of(get(fields)) == 400, fields);
  CHECK(status_of(get(std::string_view("A: \0\r\n", 6))) == 400);
  for (const char* line : {"GET /", "GET  / HTTP/1.1", "get / HTTP/1.1", "GET / HTTP/1.1 ",
                           "GET x HTTP/1.1", "GET http://x/ HTTP/1.1", "GET /\x80 HTTP/1.1", ""})
    CHECK_MESSAGE(status_of(std::string(line) + "\r\nHost: x\r\n\r\n") == 400, line);
  CHECK(status_of("GET / HTTP/1.1\r\n\r\n") == 400);  // no Host
  CHECK(status_of("GET / HTTP/2\r\nHost: x\r\n\r\n") == 505);
  CHECK(status_of(get("Transfer-Encoding: chunked\r\n")) == 411);
  CHECK(status_of(get("Transfer-Encoding: gzip\r\n")) == 411);
  CHECK(status_of(get("Content-Length: 1\r\nTransfer-Encoding: chunked\r\n")) == 411);
  CHECK(status_of(get("Transfer-Encoding: chunked\r\nContent-Length: 1\r\n")) == 400);
  CHECK(status_of(get("Expect: miracles\r\n")) == 417);
  CHECK(status_of("GET /" + std::string(target_bytes_max, 'x') + " HTTP/1.1\r\nHost: x\r\n\r\n") ==
        414);
  std::string many;
  for (int i = 0; i < 101; ++i) many += "A: b\r\n";
  CHECK(status_of(get(many)) == 431);
  // Cut anywhere, it is no head.
  const std::string whole = get("A: b\r\n");
  for (std::size_t size = 0; size < whole.size(); ++size)
    CHECK(status_of(whole.substr(0, size)) == 400);
}

TEST_CASE("a target is taken apart after it is split") {
  const auto target = parse_target("/v1/a%2Fb/?x=1%262&y=a+b&z&w=a=b");
  REQUIRE(target.has_value());
  CHECK(target->path == std::vector<std::string>{"v1", "a/b", ""});
  using Pair = std::pair<std::string, std::string>;
  CHECK(target->query == std::vector<Pair>{{"x", "1&2"}, {"y", "a b"}, {"z", ""}, {"w", "a=b"}});
  CHECK(parse_target("/")->path.empty());
  CHECK(parse_target("/?")->query.empty());
  for (const char* wrong :
       {"/%", "/%4", "/%g0", "/%00", "/%0a", "/%ff", "/%+1", "/a?x=1&x=2", "/?a=%"})
    CHECK_MESSAGE(!parse_target(wrong).has_value(), wrong);
}

TEST_CASE("lines keep their numbers") {
  using Lines = std::vector<std::string>;
  CHECK(lines_of("", 10) == Lines{});
  CHECK(lines_of("a", 10) == Lines{"a"});
  CHECK(lines_of("a\n", 10) == Lines{"a"});
  CHECK(lines_of("a\r\n\nb", 10) == Lines{"a", "", "b"});
  CHECK(lines_of("\n\n", 2) == Lines{"", ""});
  CHECK_FALSE(lines_of("\n\n\n", 2).has_value());
}

TEST_CASE("problems by RFC 9457") {
  const Reply reply = reply_of({409, "conflict", "it is \"over\""});
  CHECK(reply.status == 409);
  CHECK(reply.type == "application/problem+json");
  CHECK(reply.body == R"({"type":"urn:weft:problem:conflict","title":"Conflict","status":409,)"
                      R"("detail":"it is \"over\""})");
  constexpr std::array codes{Errc::parse,      Errc::value,       Errc::unknown,
                             Errc::infeasible, Errc::unsupported, Errc::io};
  constexpr std::array statuses{400, 400, 404, 409, 501, 503};
  for (std::size_t i = 0; i < codes.size(); ++i) {
    const Problem problem = problem_of({codes[i], {}, "what", "", {}});
    CHECK(problem.status == statuses[i]);
    CHECK_FALSE(phrase_of(problem.status).empty());
  }
}

}  // namespace
}  // namespace weft::serve
