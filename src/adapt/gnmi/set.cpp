#include "adapt/gnmi/set.hpp"

#include <fmt/format.h>
#include <gnmi.grpc.pb.h>
#include <grpcpp/grpcpp.h>

#include <utility>

#include "adapt/gnmi/channel.hpp"
#include "adapt/gnmi/request.hpp"

namespace weft::adapt::gnmi {
namespace {

constexpr std::size_t answer_bytes_max = std::size_t{1} << 20;

// After these the target may yet have done it.
bool is_in_doubt(grpc::StatusCode code) {
  using enum grpc::StatusCode;
  return code == UNAVAILABLE || code == DEADLINE_EXCEEDED || code == CANCELLED || code == UNKNOWN ||
         code == INTERNAL || code == DATA_LOSS;
}

}  // namespace

Status set_flag(const Target& target, std::string_view path, bool value,
                std::chrono::milliseconds patience) {
  if (Errors errors = check({target}, {}); !errors.empty())
    return std::unexpected(combine(std::move(errors)));
  WEFT_TRY(const TreePath tree, parse_path({path, {}}));
  gpr_set_log_function([](gpr_log_func_args*) {});  // it comes back as the status, too
  ::gnmi::SetRequest request;
  if (!target.database.empty()) request.mutable_prefix()->set_target(target.database);
  auto& update = *request.add_update();
  fill_path(tree, *update.mutable_path());
  update.mutable_val()->set_json_ietf_val(value ? "true" : "false");
  const auto caller = ::gnmi::gNMI::NewStub(grpc::CreateCustomChannel(
      target.address, credentials_of(target),
      channel_arguments(target, answer_bytes_max, std::chrono::nanoseconds(patience).count())));
  grpc::ClientContext context;
  add_password(target, context);
  context.set_deadline(std::chrono::system_clock::now() + patience);
  ::gnmi::SetResponse response;
  const grpc::Status status = caller->Set(&context, request, &response);
  if (status.ok()) return {};
  return fail(
      is_in_doubt(status.error_code()) ? Errc::io : Errc::unsupported, {},
      fmt::format("{} answers Set of {} with {}", target.device, path, status_text(status)));
}

}  // namespace weft::adapt::gnmi
