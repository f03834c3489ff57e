#include "adapt/gnmi/request.hpp"

#include <fmt/format.h>
#include <gnmi.pb.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <set>

#include "adapt/gnmi/path.hpp"

namespace weft::adapt::gnmi {
namespace {

::gnmi::Encoding wire_encoding(Encoding encoding) {
  if (encoding == Encoding::json) return ::gnmi::JSON;
  if (encoding == Encoding::proto) return ::gnmi::PROTO;
  return ::gnmi::JSON_IETF;
}

::gnmi::SubscriptionList::Mode wire_mode(Mode mode) {
  if (mode == Mode::once) return ::gnmi::SubscriptionList::ONCE;
  if (mode == Mode::poll) return ::gnmi::SubscriptionList::POLL;
  return ::gnmi::SubscriptionList::STREAM;
}

bool is_address(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0 || text.size() > 300) return false;
  const std::string_view port = text.substr(colon + 1), host = text.substr(0, colon);
  std::uint16_t number = 0;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), number);
  const bool is_bracketed = host.front() == '[' && host.back() == ']';
  const bool is_host = std::ranges::all_of(host, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           std::string_view("-._:[]").find(c) != std::string_view::npos;
  });
  return error == std::errc{} && end == port.data() + port.size() && number != 0 && is_host &&
         (is_bracketed || host.find(':') == std::string_view::npos);
}

void check_target(const Target& target, Errors& errors) {
  const auto refuse = [&](std::string what, std::string hint) {
    errors.push_back({Errc::value,
                      {},
                      fmt::format("target {}: {}", quote(target.device), what),
                      std::move(hint),
                      {}});
  };
  if (target.device.empty()) refuse("it has no name", "give each device a name");
  if (!is_address(target.address))
    refuse(fmt::format("{} is not an address", quote(target.address)), "write e.g. 10.0.0.1:9339");
  if (target.certificate.empty() != target.key.empty())
    refuse("a certificate needs a key, and a key a certificate", "set both or neither");
  const bool has_tls_parts =
      !target.ca.empty() || !target.certificate.empty() || !target.server_name.empty();
  if (target.security == Security::plain && has_tls_parts)
    refuse("it has certificates, but security is set to plain", "choose one");
  // HTTP/2 would refuse such a header only later, and not say why.
  if (find_not_text(target.username + target.password) != std::string::npos ||
      (target.username + target.password).find_first_of("\r\n\t") != std::string::npos)
    refuse("user name and password must be plain text on one line", "");
}

void check_options(const SubscriberOptions& options, Errors& errors) {
  const auto need = [&](bool is_so, const char* what, const char* hint) {
    if (!is_so) errors.push_back({Errc::value, {}, what, hint, {}});
  };
  constexpr std::int64_t span_most = 86'400 * ns_per_s, span_least = ns_per_s / 100;
  const auto is_span = [&](std::int64_t ns) { return ns >= span_least && ns <= span_most; };
  need(is_span(options.sample_ns) && is_span(options.heartbeat_ns) && is_span(options.silence_ns),
       "an interval is out of range", "use 10 ms to 1 day");
  need(options.mode == Mode::once || options.silence_ns > 2 * options.sample_ns,
       "the silence limit is too short for the sample interval",
       "set the silence limit to more than twice the sample interval");
  need(options.backoff_least_ns >= ns_per_s / 1000 &&
           options.backoff_most_ns >= options.backoff_least_ns &&
           options.backoff_most_ns <= span_most,
       "the retry intervals are out of range", "use 1 ms to 1 day, the smaller first");
  need(options.message_bytes_max >= 1024 && options.message_bytes_max <= std::size_t{1} << 30,
       "the message size is out of range", "use 1 KiB to 1 GiB");
  need(!options.subscriptions.empty() && options.subscriptions.size() <= subscriptions_max,
       "the number of paths is out of range", "use 1 to 256");
}

}  // namespace

void fill_path(const TreePath& from, ::gnmi::Path& out) {
  out.set_origin(from.origin);
  for (const PathElement& element : from.elements) {
    auto& made = *out.add_elem();
    made.set_name(element.name);
    for (const auto& [name, value] : element.keys) (*made.mutable_key())[name] = value;
  }
}

std::vector<Subscription> default_subscriptions() {
  using enum Trigger;
  const std::string component = "/components/component[name=*]", system = "/system",
                    interface = "/interfaces/interface[name=*]";
  // First what other values need to be understood: types of components, optics of interfaces.
  return {
      {component + "/state/type", on_change},
      {interface + "/state/transceiver", on_change},
      {interface + "/state/admin-status", on_change},
      {interface + "/state/oper-status", on_change},
      {component + "/state/oper-status", on_change},
      {"/network-instances/network-instance[name=*]/protocols/protocol[identifier=BGP][name=*]/bgp/"
       "neighbors/neighbor[neighbor-address=*]/state/session-state",
       on_change},
      {"/bfd/interfaces/interface[id=*]/peers/peer[local-discriminator=*]/state/session-state",
       on_change},
      {interface + "/state/counters"},
      {interface + "/ethernet/state/counters"},
      {interface + "/ethernet/state/pre-fec-ber"},
      {component + "/state/temperature"},
      {component + "/state/memory"},
      {component + "/cpu/utilization/state"},
      {component + "/transceiver/physical-channels/channel[index=*]/state"},
      {component + "/transceiver/state/pre-fec-ber"},
      {"/qos/interfaces/interface[interface-id=*]/output/queues/queue[name=*]/state"},
      {"/qos/interfaces/interface[interface-id=*]/pfc/pfc-priorities/pfc-priority[dot1p=*]/state/"
       "statistics"},
      {system + "/state/up-time"},
      {system + "/state/boot-time"},
      {system + "/cpus/cpu[index=ALL]/state/total"},
      {system + "/memory/state"},
      {system + "/mount-points/mount-point[name=*]/state"},
  };
}

Errors check(const std::vector<Target>& targets, const SubscriberOptions& options) {
  Errors errors;
  if (targets.empty() || targets.size() > targets_max)
    errors.push_back({Errc::value,
                      {},
                      "the number of targets is out of range",
                      fmt::format("use 1 to {}", targets_max),
                      {}});
  std::set<std::string_view> names;
  for (const Target& target : targets) {
    check_target(target, errors);
    if (!names.insert(target.device).second)
      errors.push_back({Errc::value,
                        {},
                        fmt::format("duplicate target {}", quote(target.device)),
                        "list each device once",
                        {}});
  }
  check_options(options, errors);
  for (const Subscription& one : options.subscriptions)
    if (auto path = parse_path({one.path, {}}); !path) errors.push_back(std::move(path).error());
  return errors;
}

void fill_request(const SubscriberOptions& options, const Target& target, Encoding encoding,
                  std::span<const std::size_t> paths, ::gnmi::SubscribeRequest& out) {
  auto& list = *out.mutable_subscribe();
  list.set_mode(wire_mode(options.mode));
  list.set_encoding(wire_encoding(encoding));
  if (!target.database.empty()) list.mutable_prefix()->set_target(target.database);
  for (const std::size_t number : paths) {
    const bool is_as_asked = number < options.subscriptions.size();
    const Subscription& one = options.subscriptions[number % options.subscriptions.size()];
    const auto path = parse_path({one.path, {}});
    if (!path) continue;  // options were checked
    auto& made = *list.add_subscription();
    fill_path(*path, *made.mutable_path());
    if (options.mode != Mode::stream) continue;
    if (one.trigger == Trigger::sample || !is_as_asked) {
      made.set_mode(::gnmi::SAMPLE);
      made.set_sample_interval(static_cast<std::uint64_t>(options.sample_ns));
    } else {
      made.set_mode(::gnmi::ON_CHANGE);
      made.set_heartbeat_interval(static_cast<std::uint64_t>(options.heartbeat_ns));
    }
  }
}

std::vector<Encoding> usable_encodings(const ::gnmi::CapabilityResponse& response) {
  std::vector<Encoding> out;
  for (const Encoding ours : {Encoding::proto, Encoding::json_ietf, Encoding::json})
    if (std::ranges::find(response.supported_encodings(), wire_encoding(ours)) !=
        response.supported_encodings().end())
      out.push_back(ours);
  if (out.empty()) out.push_back(Encoding::json_ietf);
  return out;
}

}  // namespace weft::adapt::gnmi
