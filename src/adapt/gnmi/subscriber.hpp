// A gNMI client: subscribes to many targets and turns what they send into samples.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "adapt/gnmi/decoder.hpp"
#include "adapt/gnmi/misread.hpp"
#include "base/result.hpp"
#include "port/clock.hpp"
#include "port/sample.hpp"

namespace weft::adapt::gnmi {

enum class Security : std::uint8_t { tls, plain };

struct Target {
  std::string device;   // what its samples are said to be of
  std::string address;  // "host:port"
  Security security = Security::tls;
  std::string ca;                // certificates in PEM; "": the system's
  std::string certificate, key;  // ours in PEM: both or none
  std::string server_name;       // in the target's certificate, where it is not the host's
  std::string username, password;
  std::string database;  // Path.target, as SONiC wants it: "OC-YANG", "COUNTERS_DB"
};

enum class Mode : std::uint8_t { stream, once, poll };
enum class Encoding : std::uint8_t { automatic, json_ietf, json, proto };
enum class Trigger : std::uint8_t { sample, on_change };

struct Subscription {
  std::string path;
  Trigger trigger = Trigger::sample;
};
// Everything of mapping() that targets commonly have.
std::vector<Subscription> default_subscriptions();

struct SubscriberOptions {
  Mode mode = Mode::stream;
  Encoding encoding = Encoding::automatic;  // what the target says it can, PROTO first
  std::vector<Subscription> subscriptions = default_subscriptions();
  std::int64_t sample_ns = 10 * ns_per_s;     // between samples, and between polls
  std::int64_t heartbeat_ns = 60 * ns_per_s;  // values that do not change come again after it
  // A target that says nothing for so long is not reachable. More than twice sample_ns.
  std::int64_t silence_ns = 30 * ns_per_s;
  std::int64_t backoff_least_ns = ns_per_s / 2, backoff_most_ns = 60 * ns_per_s;
  std::size_t message_bytes_max = std::size_t{16} << 20;
  LeafSink sink;  // takes the leaves in place of samples, inside of take()
};
inline constexpr std::size_t targets_max = 10'000, subscriptions_max = 256;

struct TargetReport {
  std::string device;
  bool is_synced = false;            // it has sent all there is once, and is still there
  bool is_reachable = false;         // it has spoken within the limit
  std::uint64_t connects = 0;        // sessions in which it spoke
  std::uint64_t failures = 0;        // sessions that ended otherwise than we wanted
  std::string last_error;            // "" where there was none
  std::vector<std::string> refused;  // paths that it does not have
  DecodeCounts decoded;
};

// Works only inside of take(), and reads no further message of any target while it holds samples
// that nobody has taken: a slow caller slows the targets down, by the flow control of HTTP/2. Per
// target at most one message and `window_bytes` wait on this side. Samples of one target come in
// the order in which it sent them.
//
// `reachable` samples (1, 0) are made here: 1 with the first word of each session, 0 after each
// `silence_ns` without one. Sessions that end start again after a time that doubles from
// `backoff_least_ns` to `backoff_most_ns`, and is short again once the target has synced. A target
// that refuses a subscription is asked in its other encodings, and then for fewer paths, until it
// is known which of them it does not have; what it does not tell on change is sampled.
class GnmiSubscriber {
 public:
  static constexpr int window_bytes = 256 * 1024;

  // Does not connect yet. `clock` must outlive this. Fails: Errc::value, with every option and
  // target that cannot be; Errc::parse for paths.
  static Result<GnmiSubscriber> open(std::vector<Target> targets, const SubscriberOptions& options,
                                     port::Clock& clock);
  GnmiSubscriber(GnmiSubscriber&&) noexcept;
  GnmiSubscriber& operator=(GnmiSubscriber&&) noexcept;
  // Ends all sessions; takes a moment.
  ~GnmiSubscriber();

  // The next samples, at most `samples_max`; waits for some no longer than `until`.
  std::vector<port::Sample> take(std::size_t samples_max, port::Instant until);
  // With Mode::once: all targets have synced or were silent for too long, and all was taken.
  bool done() const;

  std::vector<TargetReport> targets() const;
  const MisreadTable& misread() const;

 private:
  struct Impl;
  explicit GnmiSubscriber(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace weft::adapt::gnmi
