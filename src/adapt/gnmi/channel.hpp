// How targets are reached by gRPC: for the sources of this room that call them.
#pragma once

#include <grpcpp/grpcpp.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "adapt/gnmi/subscriber.hpp"

namespace weft::adapt::gnmi {

std::shared_ptr<grpc::ChannelCredentials> credentials_of(const Target& target);
grpc::ChannelArguments channel_arguments(const Target& target, std::size_t message_bytes_max,
                                         std::int64_t connect_ns);
void add_password(const Target& target, grpc::ClientContext& context);

// Text that the other side chose, for a message.
std::string readable(std::string text);
// "UNAVAILABLE: connection refused".
std::string status_text(const grpc::Status& status);

}  // namespace weft::adapt::gnmi
