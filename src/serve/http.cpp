#include "serve/http.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

#include "base/json_line.hpp"
#include "base/text.hpp"

namespace weft::serve {
namespace {

struct Phrase {
  int status;
  std::string_view text;
};
constexpr std::array<Phrase, 20> phrases{{{200, "OK"},
                                          {204, "No Content"},
                                          {400, "Bad Request"},
                                          {401, "Unauthorized"},
                                          {403, "Forbidden"},
                                          {404, "Not Found"},
                                          {405, "Method Not Allowed"},
                                          {408, "Request Timeout"},
                                          {409, "Conflict"},
                                          {411, "Length Required"},
                                          {413, "Payload Too Large"},
                                          {414, "URI Too Long"},
                                          {415, "Unsupported Media Type"},
                                          {417, "Expectation Failed"},
                                          {421, "Misdirected Request"},
                                          {431, "Request Header Fields Too Large"},
                                          {500, "Internal Server Error"},
                                          {501, "Not Implemented"},
                                          {503, "Service Unavailable"},
                                          {505, "HTTP Version Not Supported"}}};

std::unexpected<Problem> refuse(int status, std::string type, std::string detail) {
  return std::unexpected(Problem{status, std::move(type), std::move(detail)});
}
std::unexpected<Problem> bad(std::string detail) {
  return refuse(400, "bad-request", std::move(detail));
}

bool is_token(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
  });
}

bool is_method(std::string_view text) {
  return !text.empty() && text.size() <= 16 &&
         std::ranges::all_of(text, [](char c) { return c >= 'A' && c <= 'Z'; });
}

bool is_visible(char c) { return c > ' ' && c < 0x7f; }

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

// The next line without its "\r\n"; nothing where it ends otherwise.
std::optional<std::string_view> take_line(std::string_view& rest) {
  const std::size_t end = rest.find('\n');
  if (end == std::string_view::npos || end == 0 || rest[end - 1] != '\r') return std::nullopt;
  const std::string_view line = rest.substr(0, end - 1);
  rest.remove_prefix(end + 1);
  return line;
}

std::expected<void, Problem> parse_request_line(std::string_view line, Head& head) {
  const auto words = split(line, ' ');
  if (words.size() != 3 || !is_method(words[0]))
    return bad("the first line is not METHOD TARGET HTTP/1.1");
  if (words[2] != "HTTP/1.1" && words[2] != "HTTP/1.0")
    return refuse(505, "version", "speak HTTP/1.1");
  if (words[1].size() > target_bytes_max)
    return refuse(414, "target-too-long",
                  fmt::format("a target has at most {} bytes", target_bytes_max));
  if (!words[1].starts_with('/') || !std::ranges::all_of(words[1], is_visible))
    return bad("the target must be a path of visible ASCII characters");
  head.method = words[0];
  head.target = words[1];
  head.is_last = words[2] == "HTTP/1.0";
  return {};
}

std::expected<void, Problem> parse_field(std::string_view line, Head& head) {
  constexpr std::array<std::string_view, 5> once{"authorization", "content-length", "host",
                                                 "content-type", "last-event-id"};
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos || !is_token(line.substr(0, colon)))
    return bad(fmt::format("{} is no header field", quoted(line)));
  const std::string name = lower(line.substr(0, colon));
  const std::string_view value = trim(line.substr(colon + 1));
  const auto is_allowed = [](unsigned char c) { return c == '\t' || (c >= ' ' && c != 0x7f); };
  if (!std::ranges::all_of(value, is_allowed))
    return bad(fmt::format("the field {} holds control characters", name));
  const auto [at, is_new] = head.fields.emplace(name, value);
  if (is_new) return {};
  if (std::ranges::find(once, name) != once.end())
    return bad(fmt::format("the field {} stands twice", name));
  at->second += ", ";
  at->second += value;
  return {};
}

// What fields mean for the connection and the body.
std::expected<void, Problem> understand(Head& head) {
  if (!head.is_last && !head.fields.contains("host")) return bad("the field Host is missing");
  if (head.fields.contains("transfer-encoding"))
    return refuse(411, "length-required", "send the body whole, with a Content-Length");
  if (const auto at = head.fields.find("content-length"); at != head.fields.end()) {
    const std::string& text = at->second;
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, head.content_length);
    if (error != std::errc() || stop != end || text.starts_with('-'))
      return bad(fmt::format("{} is no Content-Length", quoted(text)));
  }
  if (const std::string expected = lower(head.field("expect")); !expected.empty()) {
    if (expected != "100-continue") return refuse(417, "expectation", "only 100-continue");
    head.expects_continue = true;
  }
  for (const std::string_view word : split(head.field("connection"), ','))
    if (lower(trim(word)) == "close") head.is_last = true;
  return {};
}

std::optional<std::string> decode(std::string_view text, std::string_view space) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (space.find(text[i]) != std::string_view::npos) {
      out += ' ';
    } else if (text[i] != '%') {
      out += text[i];
    } else {
      unsigned value = 0;
      const char* from = text.data() + i + 1;
      if (i + 2 >= text.size()) return std::nullopt;
      const auto [stop, error] = std::from_chars(from, from + 2, value, 16);
      if (error != std::errc() || stop != from + 2) return std::nullopt;
      out += static_cast<char>(value);
      i += 2;
    }
  }
  if (find_not_text(out) != std::string::npos || out.find_first_of("\t\r\n") != std::string::npos)
    return std::nullopt;
  return out;
}

std::unexpected<Error> bad_target(std::string_view what) {
  return fail(Errc::parse, {}, fmt::format("{} is no percent-encoded UTF-8 text", quoted(what)),
              "write other characters than letters, digits and -._~ as %XX");
}

}  // namespace

Problem problem_of(const Error& error) {
  switch (error.code) {
    case Errc::parse:
    case Errc::value:
      return {400, "bad-request", error.text()};
    case Errc::unknown:
      return {404, "not-found", error.text()};
    case Errc::infeasible:
      return {409, "conflict", error.text()};
    case Errc::unsupported:
      return {501, "unsupported", error.text()};
    case Errc::io:
      return {503, "unavailable", error.text()};
  }
  return {500, "internal", error.text()};
}

std::string_view phrase_of(int status) {
  const auto at = std::ranges::find(phrases, status, &Phrase::status);
  return at == phrases.end() ? "" : at->text;
}

Reply reply_of(const Problem& problem) {
  Reply out;
  out.status = problem.status;
  out.type = "application/problem+json";
  out.body = fmt::format(R"({{"type":"urn:weft:problem:{}","title":{},"status":{},"detail":{}}})",
                         problem.type, json_string(phrase_of(problem.status)), problem.status,
                         json_string(problem.detail));
  if (problem.status == 503) out.headers.emplace_back("Retry-After", "1");
  if (problem.status == 401) {
    out.headers.emplace_back("WWW-Authenticate", R"(Bearer realm="weft")");
    out.headers.emplace_back("WWW-Authenticate", R"(Basic realm="weft", charset="UTF-8")");
  }
  return out;
}

std::string_view Head::field(std::string_view name) const {
  const auto at = fields.find(name);
  return at == fields.end() ? std::string_view() : at->second;
}

std::expected<Head, Problem> parse_head(std::string_view text) {
  Head head;
  for (std::size_t count = 0;; ++count) {
    const auto line = take_line(text);
    if (!line) return bad("a line of the head does not end with CR LF");
    if (count > 0 && line->empty()) break;
    if (count > field_count_max)
      return refuse(431, "too-many-fields", fmt::format("at most {} fields", field_count_max));
    const auto done = count == 0 ? parse_request_line(*line, head) : parse_field(*line, head);
    if (!done) return std::unexpected(done.error());
  }
  if (const auto done = understand(head); !done) return std::unexpected(done.error());
  return head;
}

Result<Target> parse_target(std::string_view target) {
  Target out;
  const std::size_t mark = std::min(target.find('?'), target.size());
  const std::string_view path = target.substr(0, mark);
  if (!path.starts_with('/')) return bad_target(path);
  if (path != "/")
    for (const std::string_view piece : split(path.substr(1), '/')) {
      auto text = decode(piece, "");
      if (!text) return bad_target(piece);
      out.path.push_back(*std::move(text));
    }
  if (mark + 1 >= target.size()) return out;
  for (const std::string_view pair : split(target.substr(mark + 1), '&')) {
    const std::size_t equals = std::min(pair.find('='), pair.size());
    auto name = decode(pair.substr(0, equals), "+");
    auto value = decode(pair.substr(std::min(equals + 1, pair.size())), "+");
    if (!name || !value) return bad_target(pair);
    if (std::ranges::find(out.query, *name, &std::pair<std::string, std::string>::first) !=
        out.query.end())
      return fail(Errc::parse, {}, fmt::format("the parameter {} stands twice", quoted(*name)));
    out.query.emplace_back(*std::move(name), *std::move(value));
  }
  return out;
}

std::optional<std::vector<std::string>> lines_of(std::string_view body, std::size_t count_max) {
  std::vector<std::string> out;
  while (!body.empty()) {
    if (out.size() == count_max) return std::nullopt;
    const std::size_t end = std::min(body.find('\n'), body.size());
    std::string_view line = body.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    out.emplace_back(line);
    body.remove_prefix(std::min(end + 1, body.size()));
  }
  return out;
}

}  // namespace weft::serve
