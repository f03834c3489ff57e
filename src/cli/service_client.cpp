#include "cli/service_client.hpp"

#include <CLI/CLI.hpp>
#include <chrono>

#include "adapt/live/http_post.hpp"
#include "cli/cli.hpp"

namespace weft::cli {
namespace {
constexpr std::chrono::milliseconds service_patience{30'000};
}

void add_service_options(CLI::App& command, ServiceArgs& args) {
  command
      .add_option("--from", args.from, "https://HOST[:PORT], http:// on this machine, or unix:PATH")
      ->required();
  command.add_option("--token", args.token, "File with the token for the service");
  command.add_option("--ca", args.ca, "Certificates to trust, PEM");
  command.add_option("--cert", args.certificate, "Client certificate, if the service requires one");
  command.add_option("--key", args.key, "Key of --cert");
}

Result<ServiceClient> ServiceClient::open(const ServiceArgs& args) {
  WEFT_TRY(auto client, adapt::live::open_service(
                            {args.from, "--from"},
                            {.ca = args.ca, .certificate = args.certificate, .key = args.key},
                            service_patience));
  std::string token;
  if (!args.token.empty()) {
    WEFT_TRY(token, adapt::live::read_secret(args.token));
  }
  return ServiceClient(std::move(client), args.from, std::move(token));
}

Result<std::string> ServiceClient::get(const std::string& path) {
  auto text = adapt::live::get_text(client_, path, token_, service_patience);
  if (!text) text.error().where.file = from_;
  return text;
}

Result<std::string> ServiceClient::send(std::string_view method, const std::string& path,
                                        const std::string& json) {
  auto text = adapt::live::send_json(client_, method, path, json, token_, service_patience);
  if (!text) text.error().where.file = from_;
  return text;
}

int service_status(const Status& status, const ServiceArgs& args) {
  if (status) return done;
  const int out = report(status.error());
  const bool is_silent = status.error().code == Errc::io && status.error().where.file == args.from;
  return is_silent ? work_failed : out;
}

}  // namespace weft::cli
