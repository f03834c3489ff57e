#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <chrono>
#include <filesystem>
#include <vector>

#include "adapt/live/uplink.hpp"
#include "base/file.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "cli/cli.hpp"
#include "cli/commands.hpp"

namespace weft::cli {
namespace {

struct SendArgs {
  std::string to, feed = "records", token, ca, certificate, key;
  std::string spool;  // directory; empty: one of its own, removed when all went well
  std::string linger = "5 s";
};

using adapt::live::Uplink;
using std::chrono::milliseconds;

constexpr std::size_t lines_max = 1000;
constexpr int batch_age_ms = 50;

// A directory of its own that goes away with it, unless something is left in it.
class Spool {
 public:
  static Result<Spool> open(const std::string& wanted) {
    if (!wanted.empty()) return Spool(wanted, false);
    std::string name = std::filesystem::temp_directory_path() / "weft-send-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr)
      return fail(Errc::io, {name, 0, 0}, "cannot create a directory here", "set --spool");
    return Spool(name, true);
  }
  void remove() const {
    std::error_code ignored;
    if (is_own_) std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  Spool(std::string path, bool is_own) : path_(std::move(path)), is_own_(is_own) {}
  std::string path_;
  bool is_own_;
};

// Lines of standard input, in batches: as many as are there, or a little later.
class InputLines {
 public:
  // Nothing at the end.
  std::vector<std::string> next() {
    std::vector<std::string> out;
    pollfd ready{STDIN_FILENO, POLLIN, 0};
    while (!is_over_ && out.size() < lines_max) {
      if (!out.empty() && ::poll(&ready, 1, batch_age_ms) == 0) break;
      const ssize_t got = ::read(STDIN_FILENO, block_.data(), block_.size());
      is_over_ = got <= 0;
      if (got > 0) split(std::string_view(block_.data(), static_cast<std::size_t>(got)), out);
      if (is_over_ && !rest_.empty()) out.push_back(std::exchange(rest_, ""));
    }
    return out;
  }

 private:
  void split(std::string_view bytes, std::vector<std::string>& out) {
    for (std::size_t end = bytes.find('\n'); end != std::string_view::npos;
         end = bytes.find('\n')) {
      rest_ += bytes.substr(0, end);
      bytes.remove_prefix(end + 1);
      if (!rest_.empty()) out.push_back(std::move(rest_));
      rest_.clear();
    }
    rest_ += bytes;
  }

  std::array<char, 1 << 16> block_{};
  std::string rest_;
  bool is_over_ = false;
};

Status run_send(const Common& common, const SendArgs& args) {
  WEFT_TRY(const Duration linger, parse_duration({args.linger, {"--linger", 0, 0}}));
  WEFT_TRY(const Spool spool, Spool::open(args.spool));
  adapt::live::UplinkOptions options{
      .url = args.to,
      .path = "/v1/" + args.feed,
      .tls = {.ca = args.ca, .certificate = args.certificate, .key = args.key}};
  if (!args.token.empty()) {
    WEFT_TRY(const std::string token, read_file(args.token));
    options.token = base::trim(token);
  }
  options.spool.directory = spool.path();
  WEFT_TRY(Uplink uplink, Uplink::open(options));
  InputLines input;
  for (auto lines = input.next(); !lines.empty(); lines = input.next())
    WEFT_TRY_STATUS(uplink.send(lines));
  const bool is_done = uplink.flush(milliseconds(linger.ps / ps_per_ms));
  const Uplink::Counts counts = uplink.counts();
  if (!common.quiet && (counts.refused > 0 || !is_done))
    fmt::print(stderr, "weft send: {} lines acknowledged, {} rejected, kept in {}\n",
               counts.acknowledged, counts.refused, spool.path());
  if (!is_done)
    return fail(Errc::io, {}, "not all lines were acknowledged: " + uplink.trouble(),
                fmt::format("run it again with --spool {}", spool.path()));
  if (counts.refused > 0)
    return fail(Errc::value, {},
                fmt::format("the service rejects {} of the lines permanently", counts.refused),
                fmt::format("they are in {}/refused.jsonl; correct them and send them again",
                            spool.path()));
  spool.remove();
  return {};
}

}  // namespace

void add_send(Commands& commands) {
  const auto [command, args] = commands.add<SendArgs>(
      "send", "Send lines from standard input to a service until they are acknowledged", run_send);
  command
      .add_option("--to", args.to,
                  "https://HOST[:PORT], http:// on this machine, unix:PATH, or "
                  "tls://HOST,.../SUBJECT of NATS")
      ->required();
  command.add_option("--feed", args.feed, "Type of the lines")
      ->check(CLI::IsMember({"records", "syslog", "evidence"}))
      ->capture_default_str();
  command.add_option("--token", args.token, "File with the token for the service");
  command.add_option("--ca", args.ca, "Certificates to trust, PEM");
  command.add_option("--cert", args.certificate, "Client certificate, if the service requires one");
  command.add_option("--key", args.key, "Key of --cert");
  command.add_option("--spool", args.spool, "Directory where lines are kept until acknowledged");
  command.add_option("--linger", args.linger, "Time to wait at the end for outstanding lines")
      ->capture_default_str();
}

}  // namespace weft::cli
