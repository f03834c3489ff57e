#include "adapt/live/webhook.hpp"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/text.hpp"

namespace weft::adapt::live {
namespace {

using nlohmann::json;

constexpr std::string_view secret_mark = "secret:";
constexpr std::array<std::string_view, 6> names{"id", "event", "case", "time", "summary", "body"};

json body_of(const port::Notice& notice) {
  json out = json::parse(notice.body, nullptr, false);
  return out.is_discarded() ? json(notice.body) : out;
}

// What a notice has to say.
class Words {
 public:
  Words(const WebhookSettings& settings, const port::Notice& notice)
      : settings_(settings), notice_(notice), body_(body_of(notice)) {}

  json find(std::string_view name) const {
    if (name.starts_with('/')) return at(name);
    if (name.starts_with(secret_mark)) {
      const auto it = settings_.secrets.find(std::string(name.substr(secret_mark.size())));
      return it == settings_.secrets.end() ? json("") : json(it->second);
    }
    if (name == "id") return notice_.id;
    if (name == "event") return notice_.event;
    if (name == "case") return notice_.case_id;
    if (name == "time") return to_text(notice_.t);
    if (name == "summary") return notice_.summary;
    return body_;
  }

 private:
  json at(std::string_view pointer) const {
    const json::json_pointer where{std::string(pointer)};
    return body_.contains(where) ? body_.at(where) : json("");
  }

  const WebhookSettings& settings_;
  const port::Notice& notice_;
  json body_;
};

// The end of the placeholder that begins at `at`: of names we know alone, for texts may hold
// braces.
std::size_t placeholder_end(std::string_view text, std::size_t at) {
  const std::size_t close = text.find('}', at);
  if (text[at] != '{' || close == std::string_view::npos) return std::string_view::npos;
  const std::string_view name = text.substr(at + 1, close - at - 1);
  const bool known = name.starts_with('/') || name.starts_with(secret_mark) ||
                     std::ranges::find(names, name) != names.end();
  return known ? close : std::string_view::npos;
}

std::string text_of(const json& value) {
  return value.is_string() ? value.get<std::string>()
                           : value.dump(-1, ' ', false, json::error_handler_t::replace);
}

json fill(std::string_view text, const Words& words) {
  if (!text.empty() && placeholder_end(text, 0) == text.size() - 1)
    return words.find(text.substr(1, text.size() - 2));
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = placeholder_end(text, at);
    if (end == std::string_view::npos) {
      out += text[at++];
    } else {
      out += text_of(words.find(text.substr(at + 1, end - at - 1)));
      at = end + 1;
    }
  }
  return out;
}

json fill(const Config& config, const Words& words) {
  switch (config.kind) {
    case Config::Kind::null:
      return nullptr;
    case Config::Kind::scalar:
      return fill(config.text, words);
    case Config::Kind::list: {
      json out = json::array();
      for (const Config& item : config.items) out.push_back(fill(item, words));
      return out;
    }
    case Config::Kind::map: {
      json out = json::object();
      for (const Config::Field& field : config.fields) out[field.key] = fill(field.value, words);
      return out;
    }
  }
  return nullptr;
}

void check_text(const WebhookSettings& settings, std::string_view text, const Where& where,
                Errors& errors) {
  for (std::size_t at = 0; at < text.size(); ++at) {
    const std::size_t end = placeholder_end(text, at);
    if (end == std::string_view::npos) continue;
    const std::string_view name = text.substr(at + 1, end - at - 1);
    if (name.starts_with(secret_mark) &&
        !settings.secrets.contains(std::string(name.substr(secret_mark.size()))))
      errors.push_back({Errc::unknown,
                        where,
                        fmt::format("{} is not defined", name),
                        "give its file under secrets",
                        {}});
    if (name.starts_with('/')) {
      try {
        static_cast<void>(json::json_pointer{std::string(name)});
      } catch (const json::exception&) {
        errors.push_back(
            {Errc::parse, where, fmt::format("{} is not a JSON pointer", name), {}, {}});
      }
    }
  }
}

void check_tree(const WebhookSettings& settings, const Config& config, Errors& errors) {
  check_text(settings, config.text, config.where, errors);
  for (const Config& item : config.items) check_tree(settings, item, errors);
  for (const Config::Field& field : config.fields) check_tree(settings, field.value, errors);
}

void read_headers(Reader& reader, WebhookSettings& out, Errors& errors) {
  const Config* headers = reader.child("headers");
  if (headers == nullptr) return;
  for (const Config::Field& field : headers->fields) {
    check_tree(out, field.value, errors);
    const bool fine = std::ranges::all_of(field.key, [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
    });
    if (!fine || field.key.empty() || find_not_text(field.value.text) != std::string::npos ||
        field.value.text.find('\n') != std::string::npos)
      reader.error(Errc::value, field.where, fmt::format("{} is not a header", quote(field.key)));
    out.headers.emplace_back(field.key, field.value.text);
  }
}

void read_messages(Reader& reader, WebhookSettings& out, Errors& errors) {
  const Config* messages = reader.child("messages");
  if (messages == nullptr) return;
  if (messages->kind != Config::Kind::list)
    reader.error(Errc::value, messages->where, "messages must be a list of {events, body}");
  for (const Config& item : messages->items) {
    Reader message(item, "message", errors);
    WebhookMessage row;
    for (const Token& event : message.texts("events")) row.events.emplace_back(event.text);
    const Config* body = message.child("body");
    if (body == nullptr) {
      message.error(Errc::value, item.where, "a message needs a body");
    } else {
      row.body = *body;
      check_tree(out, row.body, errors);
    }
    message.finish();
    out.messages.push_back(std::move(row));
  }
}

std::string read_secret_of(Reader& reader, const std::string& path, const Where& where) {
  auto secret = read_secret(path);
  if (secret) return *std::move(secret);
  reader.error(secret.error().code, where, secret.error().text(), secret.error().hint);
  return {};
}

Config generic_body() {
  Config out = Config::map();
  for (const std::string_view name : names)
    out.at_or_add(name) = Config::scalar(fmt::format("{{{}}}", name));
  return out;
}

// A line end would begin a header of its own.
std::string header_text(std::string text) {
  std::ranges::replace_if(
      text, [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; }, ' ');
  return text;
}

bool is_for(const WebhookMessage& message, const std::string& event) {
  return message.events.empty() || std::ranges::find(message.events, event) != message.events.end();
}

}  // namespace

std::string sign_body(std::string_view secret, Timestamp t, std::string_view body) {
  const std::string seconds = std::to_string(t.ns / ns_per_s);
  const std::string text = fmt::format("{}.{}", seconds, body);
  std::array<unsigned char, EVP_MAX_MD_SIZE> code{};
  unsigned size = 0;
  HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
       reinterpret_cast<const unsigned char*>(text.data()), text.size(), code.data(), &size);
  std::string out = fmt::format("t={},v1=", seconds);
  for (unsigned i = 0; i < size; ++i) out += fmt::format("{:02x}", code[i]);
  return out;
}

bool is_signed(std::string_view header, std::string_view secret, Timestamp now,
               std::int64_t tolerance_s, std::string_view body) {
  if (!header.starts_with("t=")) return false;
  const auto seconds = parse_count({header.substr(2, header.find(',') - 2), {}});
  const std::int64_t here = now.ns / ns_per_s;
  if (!seconds || *seconds < here - tolerance_s || *seconds > here + tolerance_s) return false;
  const std::string wanted = sign_body(secret, {*seconds * ns_per_s}, body);
  return header.size() == wanted.size() &&
         CRYPTO_memcmp(header.data(), wanted.data(), wanted.size()) == 0;
}

Result<WebhookSettings> read_webhook_settings(const Config& config) {
  Errors errors;
  Reader reader(config, "webhook", errors);
  WebhookSettings out;
  out.http = read_http_settings(reader);
  if (const std::string path = reader.text("sign_with", ""); !path.empty())
    out.signing_secret = read_secret_of(reader, path, reader.where("sign_with"));
  if (const Config* secrets = reader.child("secrets"))
    for (const Config::Field& field : secrets->fields)
      out.secrets[field.key] = read_secret_of(reader, field.value.text, field.where);
  read_headers(reader, out, errors);
  read_messages(reader, out, errors);
  reader.finish();
  if (!errors.empty()) return std::unexpected(combine(std::move(errors)));
  if (out.messages.empty()) out.messages.push_back({.events = {}, .body = generic_body()});
  return out;
}

Result<std::string> webhook_body(const WebhookSettings& settings, const WebhookMessage& message,
                                 const port::Notice& notice) {
  try {
    return fill(message.body, Words(settings, notice))
        .dump(-1, ' ', false, json::error_handler_t::replace);
  } catch (const json::exception& error) {
    return fail(Errc::value, {}, std::string("cannot build a message: ") + error.what());
  }
}

WebhookNotifier::WebhookNotifier(WebhookSettings settings, std::shared_ptr<port::Clock> clock)
    : settings_(std::move(settings)), clock_(std::move(clock)) {}

Status WebhookNotifier::notify(const port::Notice& notice) {
  const auto message = std::ranges::find_if(
      settings_.messages, [&](const WebhookMessage& one) { return is_for(one, notice.event); });
  if (message == settings_.messages.end()) return {};
  WEFT_TRY(const std::string body, webhook_body(settings_, *message, notice));
  const Words words(settings_, notice);
  return post_json(settings_.http.target, settings_.http.retry, body, [&] {
    HttpHeaders out{{"X-Weft-Event", header_text(notice.event)},
                    {"X-Weft-Delivery", header_text(notice.id)}};
    for (const auto& [name, text] : settings_.headers)
      out.emplace_back(name, header_text(text_of(fill(text, words))));
    if (!settings_.signing_secret.empty())
      out.emplace_back("X-Weft-Signature",
                       sign_body(settings_.signing_secret, clock_->wall(), body));
    return out;
  });
}

}  // namespace weft::adapt::live
