// A gNMI target on loopback that does what a test tells it to.
#pragma once

#include <gnmi.grpc.pb.h>
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "adapt/gnmi/test_certificates.hpp"

namespace weft::adapt::gnmi {

using TestStream = grpc::ServerReaderWriter<::gnmi::SubscribeResponse, ::gnmi::SubscribeRequest>;

// What a target does with a subscription, after it has read the request. `session` counts from 0.
using TestScript =
    std::function<grpc::Status(TestStream&, const ::gnmi::SubscribeRequest&, int session)>;

// What it does with a change.
using TestSet = std::function<grpc::Status(const ::gnmi::SetRequest&)>;

struct TestTargetOptions {
  std::vector<::gnmi::Encoding> encodings{::gnmi::JSON_IETF, ::gnmi::PROTO};
  bool has_capabilities = true;
  std::string username, password;  // that it wants
  TestKey key;                     // none: no TLS
  std::string client_ca;           // clients need a certificate of it
  int port = 0;                    // 0: any
  TestSet set;                     // none: no such call
};

// One leaf: "interfaces/interface[name=e1]/state/mtu" without escapes.
inline void set_path(::gnmi::Path& path, std::string_view text) {
  while (!text.empty()) {
    auto& element = *path.add_elem();
    const std::size_t end = std::min(text.find_first_of("/["), text.size());
    element.set_name(std::string(text.substr(0, end)));
    text.remove_prefix(end);
    while (text.starts_with('[')) {
      const std::size_t equals = text.find('='), close = text.find(']');
      (*element.mutable_key())[std::string(text.substr(1, equals - 1))] =
          text.substr(equals + 1, close - equals - 1);
      text.remove_prefix(close + 1);
    }
    if (text.starts_with('/')) text.remove_prefix(1);
  }
}

inline ::gnmi::SubscribeResponse number_message(std::string_view path, std::uint64_t value,
                                                std::int64_t t = 0) {
  ::gnmi::SubscribeResponse out;
  out.mutable_update()->set_timestamp(t);
  auto& update = *out.mutable_update()->add_update();
  set_path(*update.mutable_path(), path);
  update.mutable_val()->set_uint_val(value);
  return out;
}
inline ::gnmi::SubscribeResponse json_message(std::string_view path, const std::string& json,
                                              std::int64_t t = 0) {
  ::gnmi::SubscribeResponse out;
  out.mutable_update()->set_timestamp(t);
  auto& update = *out.mutable_update()->add_update();
  set_path(*update.mutable_path(), path);
  update.mutable_val()->set_json_ietf_val(json);
  return out;
}
inline ::gnmi::SubscribeResponse sync_message() {
  ::gnmi::SubscribeResponse out;
  out.set_sync_response(true);
  return out;
}
// Until the client goes away.
inline grpc::Status hang(TestStream& stream) {
  ::gnmi::SubscribeRequest request;
  while (stream.Read(&request)) {
  }
  return grpc::Status::OK;
}

class TestTarget final : private ::gnmi::gNMI::Service {
 public:
  explicit TestTarget(TestScript script, TestTargetOptions options = {})
      : script_(std::move(script)), options_(std::move(options)), port_(options_.port) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:" + std::to_string(options_.port), credentials(), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~TestTarget() override {
    if (!server_) return;
    server_->Shutdown(std::chrono::system_clock::now());
    server_->Wait();
  }
  TestTarget(const TestTarget&) = delete;
  TestTarget& operator=(const TestTarget&) = delete;

  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  int port() const { return port_; }
  int sessions() const { return sessions_; }
  int refused() const { return refused_; }

 private:
  std::shared_ptr<grpc::ServerCredentials> credentials() const {
    if (options_.key.key.empty()) return grpc::InsecureServerCredentials();
    grpc::SslServerCredentialsOptions out;
    if (!options_.client_ca.empty())
      out.client_certificate_request = GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY;
    out.pem_root_certs = options_.client_ca;
    out.pem_key_cert_pairs.push_back({options_.key.key, options_.key.certificate});
    return grpc::SslServerCredentials(out);
  }
  bool knows(const grpc::ServerContext& context) {
    const auto has = [&](const char* name, const std::string& value) {
      const auto at = context.client_metadata().find(name);
      return at != context.client_metadata().end() &&
             std::string_view(at->second.data(), at->second.size()) == value;
    };
    if (options_.username.empty()) return true;
    if (has("username", options_.username) && has("password", options_.password)) return true;
    ++refused_;
    return false;
  }
  static grpc::Status not_known() {
    return {grpc::StatusCode::UNAUTHENTICATED, "user name or password is wrong"};
  }

  grpc::Status Capabilities(  // NOLINT(readability-identifier-naming): gRPC's name
      grpc::ServerContext* context, const ::gnmi::CapabilityRequest*,
      ::gnmi::CapabilityResponse* response) override {
    if (!knows(*context)) return not_known();
    if (!options_.has_capabilities) return {grpc::StatusCode::UNIMPLEMENTED, "no such call"};
    for (const auto encoding : options_.encodings) response->add_supported_encodings(encoding);
    response->set_gnmi_version("0.10.0");
    return grpc::Status::OK;
  }
  grpc::Status Set(  // NOLINT(readability-identifier-naming): gRPC's name
      grpc::ServerContext* context, const ::gnmi::SetRequest* request,
      ::gnmi::SetResponse*) override {
    if (!knows(*context)) return not_known();
    if (!options_.set) return {grpc::StatusCode::UNIMPLEMENTED, "no such call"};
    return options_.set(*request);
  }
  grpc::Status Subscribe(  // NOLINT(readability-identifier-naming): gRPC's name
      grpc::ServerContext* context, TestStream* stream) override {
    if (!knows(*context)) return not_known();
    const int session = sessions_++;
    ::gnmi::SubscribeRequest request;
    if (!stream->Read(&request)) return grpc::Status::OK;
    return script_(*stream, request, session);
  }

  TestScript script_;
  TestTargetOptions options_;
  int port_;
  std::atomic<int> sessions_ = 0, refused_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace weft::adapt::gnmi
