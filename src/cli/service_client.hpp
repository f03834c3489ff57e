// For commands that ask a running service: where it is, who asks, and its answers.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "adapt/live/http_client.hpp"
#include "base/json_line.hpp"
#include "base/result.hpp"

namespace CLI {
class App;
}

namespace weft::cli {

struct ServiceArgs {
  std::string from, token, ca, certificate, key;
};
// --from, --token, --ca, --cert, --key.
void add_service_options(CLI::App& command, ServiceArgs& args);

class ServiceClient {
 public:
  // Fails: Errc::parse and Errc::value, also for files that do not hold what they should.
  static Result<ServiceClient> open(const ServiceArgs& args);

  // Fail: as adapt::live::get_text, with the service as the place.
  Result<std::string> get(const std::string& path);
  Result<std::string> send(std::string_view method, const std::string& path,
                           const std::string& json);

 private:
  ServiceClient(adapt::live::HttpClient client, std::string from, std::string token)
      : client_(std::move(client)), from_(std::move(from)), token_(std::move(token)) {}
  adapt::live::HttpClient client_;
  std::string from_, token_;
};

// Exit status of a command that asked it: work_failed where it did not answer, else as report().
int service_status(const Status& status, const ServiceArgs& args);

}  // namespace weft::cli
