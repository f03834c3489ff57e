#include "serve/front.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <exception>
#include <utility>

#include "base/file.hpp"
#include "base/text.hpp"

namespace weft::serve {
namespace {

using Checked = std::expected<void, Problem>;

// "localhost" of "localhost:8080", "::1" of "[::1]:8080".
std::string_view host_of(std::string_view authority) {
  if (authority.starts_with('[')) return authority.substr(1, authority.find(']') - 1);
  return authority.substr(0, authority.find(':'));
}

bool names_this_machine(std::string_view host) {
  return host == "localhost" || host == "::1" ||
         (host.starts_with("127.") && host.find_first_not_of("0123456789.") == host.npos);
}

// "text/plain" of "text/plain; charset=utf-8".
std::string_view media_type(std::string_view field) {
  return trim(field.substr(0, field.find(';')));
}

bool takes(Route::Body body, std::string_view type) {
  // What curl says unless told.
  if (type.empty() || type == "application/x-www-form-urlencoded")
    return body == Route::Body::lines;
  if (body == Route::Body::packed)
    return type == "application/gzip" || type == "application/octet-stream";
  if (body != Route::Body::lines) return type == "application/json";
  constexpr std::array<std::string_view, 5> known{"application/x-ndjson", "application/jsonl",
                                                  "application/json", "text/plain",
                                                  "application/octet-stream"};
  return std::ranges::find(known, type) != known.end();
}

}  // namespace

void Front::set_tokens(std::shared_ptr<const Tokens> tokens) {
  const std::lock_guard lock(mutex_);
  tokens_ = std::move(tokens);
}

std::expected<Principal, Problem> Front::principal(const Head& head, const Peer& peer) const {
  if (access_ == Access::open_host) return Principal{"local", Roles::all(), {}};
  if (access_ == Access::open_file)
    return Principal{peer.user ? fmt::format("uid:{}", *peer.user) : "local", Roles::all(), {}};
  std::shared_ptr<const Tokens> tokens;
  {
    const std::lock_guard lock(mutex_);
    tokens = tokens_;
  }
  if (const auto header = head.field("authorization"); !header.empty() && tokens != nullptr) {
    const auto token = token_of_header(header);
    const auto found = token ? tokens->of_token(*token) : std::nullopt;
    if (found) return *found;
    if (!token || !looks_like_jwt(*token))
      return refuse(401, "unknown-token", "this token is not known");
    auto bearer = tokens->of_jwt(*token, {std::int64_t{std::time(nullptr)} * ns_per_s});
    if (!bearer) return refuse(401, "bad-jwt", bearer.error().what);
    return *std::move(bearer);
  }
  const auto& shown = peer.svid ? peer.svid : peer.certificate;
  if (!shown) return refuse(401, "no-token", "send Authorization: Bearer TOKEN");
  if (tokens == nullptr) return Principal{*shown, Roles::all(), {}};
  auto found = peer.svid ? tokens->of_svid(*peer.svid) : std::nullopt;
  if (!found && peer.certificate) found = tokens->of_certificate(*peer.certificate);
  return found.value_or(Principal{*shown, Roles(), {}});
}

void Front::log_refusal(std::string_view text) {
  constexpr std::size_t lines_a_second = 10;
  if (!log_) return;
  std::size_t unsaid = 0;
  {
    const std::lock_guard lock(mutex_);
    const auto now = std::chrono::steady_clock::now();
    if (now - second_ >= std::chrono::seconds(1)) {
      second_ = now;
      said_ = 0;
    }
    if (++said_ > lines_a_second) {
      ++unsaid_;
      return;
    }
    unsaid = std::exchange(unsaid_, 0);
  }
  log_(LogLevel::warning,
       unsaid == 0 ? std::string(text) : fmt::format("{} ({} more were left out)", text, unsaid));
}

Visit::Visit(Front& front, const Head& head, const Peer& peer, std::string id)
    : front_(front), head_(head), peer_(peer), id_(std::move(id)) {}

Visit::Visit(Front& front, const Problem& problem, const Head& head, const Peer& peer,
             std::string id)
    : Visit(front, head, peer, std::move(id)) {
  problem_ = problem;
}

// Pages of other sites may send requests with whatever lets their reader in.
Checked Visit::check_origin() const {
  const std::string_view host = head_.field("host");
  if (front_.access_ == Front::Access::open_host && !host.empty() &&
      !names_this_machine(host_of(host)))
    return refuse(421, "wrong-host", "ask for localhost, or give the service tokens");
  const std::string_view origin = head_.field("origin");
  if (origin.empty() || (!host.empty() && origin.ends_with(fmt::format("://{}", host)))) return {};
  return refuse(403, "wrong-origin", "pages of other sites have no business here");
}

Checked Visit::check_rights(const Route& route) {
  if (!route.role) return {};
  const auto principal = front_.principal(head_, peer_);
  if (!principal) return std::unexpected(principal.error());
  call_.who = principal->name;
  call_.tenant = principal->tenant;
  if (!principal->roles.has(*route.role))
    return refuse(403, "no-role",
                  fmt::format("{} lacks the role {}", principal->name, to_text(*route.role)));
  if (call_.tenant.empty() ||
      (route.tenant_piece && call_.pieces.at(*route.tenant_piece) == call_.tenant))
    return {};
  return refuse(403, "other-tenant",
                fmt::format("{} is of the tenant {}: this is not", call_.who, call_.tenant));
}

Checked Visit::check_body(const Route& route) {
  const std::uint64_t size = head_.content_length;
  if (route.body == Route::Body::none) {
    if (size == 0) return {};
    return refuse(400, "unwanted-body", "this takes no body");
  }
  const bool has_length = head_.fields.contains("content-length");
  if (!has_length && head_.method != "DELETE")
    return refuse(411, "length-required", "send a Content-Length");
  if (size > front_.limits_.body_bytes)
    return refuse(
        413, "body-too-large",
        fmt::format("a body has at most {} bytes; send several", front_.limits_.body_bytes));
  if (size > 0 && !takes(route.body, media_type(head_.field("content-type"))))
    return refuse(415, "media-type",
                  route.body == Route::Body::lines    ? "send text/plain or application/x-ndjson"
                  : route.body == Route::Body::packed ? "send application/gzip"
                                                      : "send application/json");
  const std::string_view encoding = head_.field("content-encoding");
  if (!encoding.empty() && encoding != "identity" && encoding != "gzip")
    return refuse(415, "encoding", "send it plain or as gzip");
  if (!Share::take(front_.meters_.body_bytes, size, front_.limits_.bodies_bytes, body_share_))
    return refuse(503, "busy", "too many large requests at a time; send it again later");
  return {};
}

Checked Visit::admit() {
  const auto target = parse_target(head_.target);
  if (!target) return std::unexpected(problem_of(target.error()));
  if (auto done = check_origin(); !done) return done;
  auto matched = match(front_.routes_, head_.method, target->path, allow_);
  if (!matched) return std::unexpected(matched.error());
  route_ = matched->route;
  call_.pieces = std::move(matched->pieces);
  if (auto done = check_rights(*route_); !done) return done;
  if (auto done = check_body(*route_); !done) return done;
  auto query = read_query(*route_, *target);
  if (!query) return std::unexpected(problem_of(query.error()));
  call_.query = *std::move(query);
  call_.sender = peer_.sender;
  call_.accept = head_.field("accept");
  call_.last_event_id = head_.field("last-event-id");
  return {};
}

std::optional<Reply> Visit::before_body() {
  if (!problem_) {
    if (auto done = admit(); !done) problem_ = std::move(done).error();
  }
  if (problem_ && problem_->status == 405 && head_.method == "OPTIONS") {
    Reply out;
    out.status = 204;
    return finished(std::move(out));
  }
  if (!problem_) return std::nullopt;
  if (problem_->status == 401 || problem_->status == 403)
    refused_ = fmt::format("{}: {}", problem_->type, problem_->detail);
  return finished(reply_of(*problem_));
}

// A short gzip can hold much: while its size is not known it counts as the largest.
Checked Visit::unpack(std::string& body) {
  if (head_.field("content-encoding") != "gzip" || body.empty()) return {};
  const ApiLimits& limits = front_.limits_;
  Share room;
  if (!Share::take(front_.meters_.body_bytes, limits.body_bytes, limits.bodies_bytes, room))
    return refuse(503, "busy", "too many large requests at a time; send it again later");
  auto plain = gunzip(body, "body", limits.body_bytes);
  if (!plain)
    return refuse(
        400, "bad-gzip",
        fmt::format("{}, or more than {} bytes", plain.error().text(), limits.body_bytes));
  body = *std::move(plain);
  return {};
}

Reply Visit::ask(std::string body) {
  if (const auto done = unpack(body); !done) return reply_of(done.error());
  if (route_->body == Route::Body::fields) {
    auto fields = read_fields(*route_, body);
    if (!fields) return reply_of(problem_of(fields.error()));
    call_.fields = *std::move(fields);
  } else {
    call_.body = std::move(body);
  }
  auto reply = route_->handler(call_);
  return reply ? *std::move(reply) : reply_of(problem_of(reply.error()));
}

Reply Visit::answer(std::string body) {
  try {
    Reply reply = ask(std::move(body));
    is_stream_ = reply.stream != nullptr || reply.later != nullptr;
    if (reply.later) {
      Reply held;
      held.later = [this, wait = std::move(reply.later)](std::function<void(Reply)> done) {
        wait([this, done = std::move(done)](Reply late) { done(finished(std::move(late))); });
      };
      return held;
    }
    return finished(std::move(reply));
  } catch (const std::exception& e) {  // of the libraries below; memory above all
    return finished(reply_of({500, "internal", e.what()}));
  }
}

Reply Visit::finished(Reply reply) const {
  reply.headers.emplace_back("X-Request-Id", id_);
  reply.headers.emplace_back("Cache-Control", "no-store");
  reply.headers.emplace_back("X-Content-Type-Options", "nosniff");
  if (!allow_.empty()) reply.headers.emplace_back("Allow", allow_);
  return reply;
}

void Visit::finish(int status) const {
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began_;
  // How long somebody listened to events, or an answer was held, is no latency.
  if (!refused_.empty())
    front_.log_refusal(fmt::format(
        "refused with {}: {} {} from {}, {}", status, quote(head_.method), quote(head_.target),
        peer_.sender.empty() ? "a socket file" : peer_.sender, refused_));
  front_.meters_.count(route_ == nullptr ? "none" : route_->id, status,
                       is_stream_ ? 0 : took.count());
}

}  // namespace weft::serve
