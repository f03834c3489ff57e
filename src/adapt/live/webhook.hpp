// Notices as signed HTTP posts, in the form that the receiver wants.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "adapt/live/http_post.hpp"
#include "base/config.hpp"
#include "base/result.hpp"
#include "base/timestamp.hpp"
#include "port/clock.hpp"
#include "port/notifier.hpp"

namespace weft::adapt::live {

// "t=1700000000,v1=<64 hexadecimal digits>": HMAC-SHA256 of "1700000000.<body>".
std::string sign_body(std::string_view secret, Timestamp t, std::string_view body);
// Whether such a header is of this body, and no older or newer than the tolerance. For receivers
// and tests; takes equally long wherever signatures differ.
bool is_signed(std::string_view header, std::string_view secret, Timestamp now,
               std::int64_t tolerance_s, std::string_view body);

// What is sent for which events. In its texts stand {id} {event} {case} {time} {summary},
// {secret:NAME}, and {/cause/entity}: what that JSON pointer finds in the notice's body ("" where
// nothing). A text that is nothing but "{body}" or a pointer becomes that value itself.
struct WebhookMessage {
  std::vector<std::string> events;  // none: all
  Config body;
};

struct WebhookSettings {
  HttpSettings http;
  std::string signing_secret;  // "": not signed
  HttpHeaders headers;         // may hold {secret:NAME}
  std::map<std::string, std::string> secrets;
  std::vector<WebhookMessage> messages;  // the first that is for the event; none: the generic one
};

// YAML: url, ca_file, timeout, tries, backoff, patience; sign_with: FILE; secrets: {NAME: FILE};
// headers: {NAME: TEXT}; messages: [{events, body}]. Fails: every error found, also of secrets'
// files and placeholders.
Result<WebhookSettings> read_webhook_settings(const Config& config);

class WebhookNotifier : public port::Notifier {
 public:
  WebhookNotifier(WebhookSettings settings, std::shared_ptr<port::Clock> clock);
  // With headers X-Weft-Event, X-Weft-Delivery (the notice's id, the same for every try) and
  // X-Weft-Signature. Events that no message is for are no failure. Fails: as post_json().
  Status notify(const port::Notice& notice) override;

 private:
  WebhookSettings settings_;
  std::shared_ptr<port::Clock> clock_;  // shared by all notifiers of a service
};

// The body of a message for a notice: JSON. For tests.
Result<std::string> webhook_body(const WebhookSettings& settings, const WebhookMessage& message,
                                 const port::Notice& notice);

}  // namespace weft::adapt::live
