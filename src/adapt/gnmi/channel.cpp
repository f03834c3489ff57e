#include "adapt/gnmi/channel.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace weft::adapt::gnmi {

std::string readable(std::string text) {
  constexpr std::size_t bytes_max = 300;
  text.resize(std::min(text.size(), bytes_max));
  for (char& c : text)
    if (c < ' ' || c > '~') c = '?';
  return text;
}

std::string status_text(const grpc::Status& status) {
  constexpr std::array<std::string_view, 17> names{"OK",
                                                   "CANCELLED",
                                                   "UNKNOWN",
                                                   "INVALID_ARGUMENT",
                                                   "DEADLINE_EXCEEDED",
                                                   "NOT_FOUND",
                                                   "ALREADY_EXISTS",
                                                   "PERMISSION_DENIED",
                                                   "RESOURCE_EXHAUSTED",
                                                   "FAILED_PRECONDITION",
                                                   "ABORTED",
                                                   "OUT_OF_RANGE",
                                                   "UNIMPLEMENTED",
                                                   "INTERNAL",
                                                   "UNAVAILABLE",
                                                   "DATA_LOSS",
                                                   "UNAUTHENTICATED"};
  if (status.ok()) return "the target ended the subscription";
  const auto code = static_cast<std::size_t>(status.error_code());
  return fmt::format("{}: {}", code < names.size() ? names[code] : "UNKNOWN",
                     readable(status.error_message()));
}

std::shared_ptr<grpc::ChannelCredentials> credentials_of(const Target& target) {
  if (target.security == Security::plain) return grpc::InsecureChannelCredentials();
  grpc::SslCredentialsOptions options;
  options.pem_root_certs = target.ca;
  options.pem_private_key = target.key;
  options.pem_cert_chain = target.certificate;
  return grpc::SslCredentials(options);
}

grpc::ChannelArguments channel_arguments(const Target& target, std::size_t message_bytes_max,
                                         std::int64_t connect_ns) {
  grpc::ChannelArguments out;
  out.SetMaxReceiveMessageSize(static_cast<int>(message_bytes_max));
  // Our own times between attempts are the only ones: each session connects anew.
  out.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  const auto connect_ms = std::clamp<std::int64_t>(connect_ns / 1'000'000, 1000, 20'000);
  out.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, static_cast<int>(connect_ms));
  // What may wait in the kernel's and gRPC's hands is bounded, and does not grow.
  out.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  out.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, GnmiSubscriber::window_bytes);
  // The environment has no say in how devices are reached.
  out.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  if (!target.server_name.empty()) out.SetSslTargetNameOverride(target.server_name);
  return out;
}

void add_password(const Target& target, grpc::ClientContext& context) {
  if (target.username.empty()) return;
  context.AddMetadata("username", target.username);
  context.AddMetadata("password", target.password);
}

}  // namespace weft::adapt::gnmi
