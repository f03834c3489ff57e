#include "adapt/devices/session.hpp"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "adapt/devices/rpc.hpp"
#include "adapt/gnmi/set.hpp"
#include "adapt/gnmi/subscriber.hpp"
#include "adapt/live/command_template.hpp"
#include "adapt/live/http_client.hpp"
#include "adapt/live/system_clock.hpp"
#include "base/file.hpp"
#include "os/run_program.hpp"

namespace weft::adapt::devices {
namespace {

constexpr std::size_t answer_bytes_max = std::size_t{1} << 20;
constexpr int ssh_failed = 255;  // of ssh itself; anything else is the command's

class SshSession final : public Session {
 public:
  SshSession(const Device& device, const Settings& settings)
      : device_(device), settings_(settings) {}

  Result<std::vector<std::string>> run(const Commands& commands) override {
    std::vector<std::string> out;
    for (const std::string& command : commands) {
      ProgramSpec spec{.argv = ssh_arguments(device_, settings_),
                       .environment = {},
                       .patience = settings_.timeout,
                       .output_bytes_max = answer_bytes_max};
      spec.argv.push_back(command);
      WEFT_TRY(ProgramOutcome outcome, run_program(spec));
      const bool is_lost = outcome.timed_out || outcome.signal != 0 || outcome.is_cut ||
                           outcome.exit_code == ssh_failed;
      if (is_lost)
        return fail(Errc::io, {},
                    fmt::format("{}: {}", device_.name,
                                outcome.is_cut ? "the answer is too long"
                                               : live::how_it_ended(spec, outcome)));
      if (outcome.exit_code != 0)
        return fail(Errc::unsupported, {},
                    fmt::format("{} refuses \"{}\" (exit code {}): {}", device_.name, command,
                                outcome.exit_code, live::last_words(outcome)));
      out.push_back(std::move(outcome.output));
    }
    return out;
  }

 private:
  const Device& device_;
  const Settings& settings_;
};

class GnmiSession final : public Session {
 public:
  GnmiSession(const Device& device, const Settings& settings)
      : device_(device), timeout_(settings.timeout) {}

  Result<std::vector<std::string>> run(const Commands& commands) override {
    WEFT_TRY(const gnmi::Target target, make_target());
    std::vector<std::string> out;
    for (const std::string& command : commands) {
      const std::vector<std::string_view> words = split(command, ' ');
      if (words[0] == "get") {
        WEFT_TRY(std::string value, get(target, std::string(words[1])));
        out.push_back(std::move(value));
      } else {
        WEFT_TRY_STATUS(gnmi::set_flag(target, words[1], words[2] == "true", timeout_));
        out.emplace_back();
      }
    }
    return out;
  }

 private:
  Result<gnmi::Target> make_target() const {
    gnmi::Target out{.device = device_.name,
                     .address = device_.address,
                     .security = device_.is_plain ? gnmi::Security::plain : gnmi::Security::tls,
                     .server_name = device_.server_name,
                     .username = device_.username,
                     .password = device_.password,
                     .database = device_.database};
    for (const auto& [path, text] : {std::pair{&device_.ca, &out.ca},
                                     {&device_.certificate, &out.certificate},
                                     {&device_.key, &out.key}})
      if (!path->empty()) {
        WEFT_TRY(*text, read_file(*path, answer_bytes_max));
      }
    return out;
  }

  // "up" or "down": admin-status and oper-status are the only ones asked for.
  Result<std::string> get(const gnmi::Target& target, const std::string& path) const {
    live::SystemClock clock;
    const std::int64_t patience_ns = std::chrono::nanoseconds(timeout_).count();
    WEFT_TRY(gnmi::GnmiSubscriber subscriber,
             gnmi::GnmiSubscriber::open({target},
                                        {.mode = gnmi::Mode::once,
                                         .subscriptions = {{.path = path}},
                                         .silence_ns = patience_ns},
                                        clock));
    const auto wanted =
        path.ends_with("admin-status") ? port::Metric::admin_up : port::Metric::oper_up;
    std::optional<std::string> found;
    const port::Instant until = clock.now() + patience_ns;
    while (!subscriber.done() && clock.now() < until)
      for (const port::Sample& sample : subscriber.take(64, until))
        if (sample.metric == wanted && path.contains("[name=" + sample.component + "]"))
          found = sample.value > 0 ? "up" : "down";
    if (found) return *std::move(found);
    const std::string error = subscriber.targets().front().last_error;
    return fail(Errc::io, {},
                fmt::format("{} gives no value for {}{}{}", device_.name, path,
                            error.empty() ? "" : ": ", error));
  }

  const Device& device_;
  std::chrono::milliseconds timeout_;
};

}  // namespace

std::vector<std::string> ssh_arguments(const Device& device, const Settings& settings) {
  // Read twice: what has no port gets the scheme's, and these differ.
  const auto at = live::parse_origin("http://" + device.address).value_or(live::HttpOrigin{});
  const auto again = live::parse_origin("https://" + device.address).value_or(live::HttpOrigin{});
  constexpr int ssh_port = 22;
  std::vector<std::string> out{settings.ssh, "-T", "-p",
                               std::to_string(at.port == again.port ? at.port : ssh_port)};
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(settings.timeout).count();
  for (const std::string& option :
       {std::string("BatchMode=yes"), std::string("StrictHostKeyChecking=yes"),
        std::string("ClearAllForwardings=yes"), std::string("ForwardAgent=no"),
        std::string("PermitLocalCommand=no"), fmt::format("ConnectTimeout={}", seconds)})
    out.insert(out.end(), {"-o", option});
  if (!device.known_hosts.empty())
    out.insert(out.end(), {"-o", "UserKnownHostsFile=" + device.known_hosts});
  if (!device.key.empty()) out.insert(out.end(), {"-o", "IdentitiesOnly=yes", "-i", device.key});
  if (!device.username.empty()) out.insert(out.end(), {"-l", device.username});
  out.insert(out.end(), {"--", at.host});
  return out;
}

std::unique_ptr<Session> open_session(const Device& device, const Settings& settings) {
  switch (device.dialect->transport) {
    case Transport::ssh:
      return std::make_unique<SshSession>(device, settings);
    case Transport::gnmi:
      return std::make_unique<GnmiSession>(device, settings);
    case Transport::eapi:
    case Transport::nxapi:
      break;
  }
  return open_rpc_session(device, settings);
}

}  // namespace weft::adapt::devices
