#include "serve/http.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/json_text.hpp"
#include "base/text.hpp"

namespace weft::serve {
namespace {

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
  return fail(Errc::parse, {}, fmt::format("{} is not percent-encoded UTF-8 text", quote(what)),
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

Reply reply_of(const Problem& problem) {
  Reply out;
  out.status = problem.status;
  out.type = "application/problem+json";
  out.body = JsonObject()
                 .add("type", "urn:weft:problem:" + problem.type)
                 .add("title", phrase_of(problem.status))
                 .add("status", problem.status)
                 .add("detail", problem.detail)
                 .text();
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
      return fail(Errc::parse, {}, fmt::format("duplicate parameter {}", quote(*name)));
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
