#include "adapt/live/syslog_listener.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "adapt/live/syslog_datagrams.hpp"
#include "adapt/live/syslog_queue.hpp"
#include "adapt/live/syslog_streams.hpp"
#include "adapt/live/syslog_tls.hpp"
#include "adapt/live/system_clock.hpp"
#include "base/check.hpp"
#include "base/fd.hpp"
#include "os/error.hpp"

namespace weft::adapt::live {
namespace {

using std::chrono::milliseconds;

std::int64_t ns_of(milliseconds span) { return std::chrono::nanoseconds(span).count(); }

Status check_limits(const SyslogOptions& options) {
  struct Limit {
    std::string_view name;
    std::uint64_t value, least, most;
  };
  // Negative times become huge numbers.
  const auto ms = [](milliseconds span) { return static_cast<std::uint64_t>(span.count()); };
  constexpr std::uint64_t year_ms = 366ull * 86'400'000;
  const std::array<Limit, 9> limits{{
      {"connections_max", options.connections_max, 1, 100'000},
      {"idle", ms(options.idle), 1, year_ms},
      {"unfinished", ms(options.unfinished), 1, year_ms},
      {"queue_bytes", options.queue_bytes, 1, 1ull << 40},
      {"receive_bytes", options.receive_bytes, 1, 1ull << 30},
      {"batch_max", options.batch_max, 1, 100'000},
      {"batch_age", ms(options.batch_age), 0, 60'000},
      {"retry", ms(options.retry), 1, 60'000},
      {"stop_grace", ms(options.stop_grace), 0, 3'600'000},
  }};
  for (const Limit& limit : limits)
    if (limit.value < limit.least || limit.value > limit.most)
      return fail(Errc::value, {},
                  fmt::format("syslog: {} of {} is out of bounds", limit.name,
                              static_cast<std::int64_t>(limit.value)),
                  fmt::format("use {} to {}", limit.least, limit.most));
  return {};
}

Status check_files(const SyslogOptions& options, bool any_tls) {
  const bool has_both = !options.certificate.empty() && !options.key.empty();
  if (any_tls && !has_both)
    return fail(Errc::value, {}, "syslog: tls:// needs a certificate and its key",
                "give both files, or listen on tcp:// only");
  const bool has_any =
      !options.certificate.empty() || !options.key.empty() || !options.client_ca.empty();
  if (!any_tls && has_any)
    return fail(Errc::value, {}, "syslog: a certificate is given, but no tls:// address uses it",
                "also listen on tls://, or omit the files");
  return {};
}

}  // namespace

class SyslogListener::Impl {
 public:
  Impl(const SyslogOptions& options, Sink sink)
      : options_(options),
        queue_(options_, std::move(sink), counts_),
        datagrams_(queue_, counts_),
        streams_(options_, queue_, counts_) {}

  Status open();
  void stop();
  Counts counts() const;
  const std::vector<Port>& ports() const { return ports_; }

 private:
  Status open_address(const SyslogAddress& address);
  Status start();
  void run();
  // What there is to do. Returns false when it is time to stop.
  bool turn();
  int wait_ms(port::Instant now) const;
  void tidy();
  void wind_up();
  void read_rest(port::Instant until);
  void pause() const;
  void publish();

  const SyslogOptions options_;
  SystemClock clock_;
  Counts counts_;  // the thread's own
  SyslogQueue queue_;
  SyslogDatagrams datagrams_;
  SyslogStreams streams_;
  Fd stop_;
  std::vector<Port> ports_;
  port::Instant tidy_at_;
  mutable std::mutex published_lock_;
  Counts published_;
  std::thread thread_;
};

Status SyslogListener::Impl::open() {
  WEFT_TRY_STATUS(check_limits(options_));
  if (options_.listen.empty())
    return fail(Errc::value, {}, "syslog: no listen address",
                "give at least one, e.g. \"udp://0.0.0.0:514\"");
  std::vector<SyslogAddress> addresses;
  for (const std::string& text : options_.listen) {
    WEFT_TRY(SyslogAddress address, parse_syslog_address({text, {}}));
    addresses.push_back(std::move(address));
  }
  const bool any_tls = std::ranges::any_of(addresses, [](const SyslogAddress& address) {
    return address.transport == SyslogTransport::tls;
  });
  WEFT_TRY_STATUS(check_files(options_, any_tls));
  std::optional<TlsServer> tls;
  if (any_tls) {
    WEFT_TRY(tls, TlsServer::open(options_.certificate, options_.key, options_.client_ca));
  }
  WEFT_TRY_STATUS(datagrams_.open());
  WEFT_TRY_STATUS(streams_.open(std::move(tls)));
  for (const SyslogAddress& address : addresses) WEFT_TRY_STATUS(open_address(address));
  return start();
}

Status SyslogListener::Impl::open_address(const SyslogAddress& address) {
  WEFT_TRY(Fd socket, open_socket(address, options_.receive_bytes));
  WEFT_TRY(SyslogAddress bound, bound_address(socket, address.transport));
  Port port{.address = std::move(bound), .receive_bytes = 0};
  if (address.transport == SyslogTransport::udp) {
    WEFT_TRY_STATUS(datagrams_.add(std::move(socket)));
    port.receive_bytes = datagrams_.receive_bytes();
  } else {
    WEFT_TRY_STATUS(streams_.add(std::move(socket), address.transport));
  }
  ports_.push_back(std::move(port));
  return {};
}

Status SyslogListener::Impl::start() {
  stop_ = Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!stop_.valid()) return system_failure("cannot create an event", errno);
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error& error) {
    return system_failure("cannot start a thread", error.code().value());
  }
  return {};
}

void SyslogListener::Impl::stop() {
  if (!thread_.joinable()) return;
  WEFT_CHECK(thread_.get_id() != std::this_thread::get_id());
  ::eventfd_write(stop_.get(), 1);
  thread_.join();
}

SyslogListener::Counts SyslogListener::Impl::counts() const {
  const std::scoped_lock lock(published_lock_);
  return published_;
}

void SyslogListener::Impl::publish() {
  const std::scoped_lock lock(published_lock_);
  published_ = counts_;
}

void SyslogListener::Impl::run() {
  // Signals are the main thread's; and OpenSSL's writes raise one when the peer is gone.
  sigset_t all;
  sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
  while (turn()) {
    queue_.offer(clock_, SyslogQueue::Which::due);
    if (clock_.now() >= tidy_at_) tidy();
    publish();
  }
  wind_up();
  publish();
}

int SyslogListener::Impl::wait_ms(port::Instant now) const {
  port::Instant until = tidy_at_;
  if (const auto due = queue_.due()) until = std::min(until, *due);
  if (streams_.doors_open_at() > now) until = std::min(until, streams_.doors_open_at());
  constexpr std::int64_t ns_per_ms = 1'000'000;
  const std::int64_t left = std::max<std::int64_t>(0, until - now);
  return static_cast<int>((left + ns_per_ms - 1) / ns_per_ms);
}

bool SyslogListener::Impl::turn() {
  const port::Instant now = clock_.now();
  const auto when = [](bool wanted, int fd) {
    return pollfd{.fd = wanted ? fd : -1, .events = POLLIN, .revents = 0};
  };
  const bool doors_open = !queue_.busy() && now >= streams_.doors_open_at();
  std::array<pollfd, 4> watched{when(true, stop_.get()), when(!queue_.full(), datagrams_.fd()),
                                when(!queue_.busy(), streams_.fd()),
                                when(doors_open, streams_.doors_fd())};
  if (::poll(watched.data(), watched.size(), wait_ms(now)) <= 0) return true;
  if (watched[0].revents != 0) return false;
  if (watched[1].revents != 0) datagrams_.receive(clock_, SyslogDatagrams::Room::kept);
  if (watched[2].revents != 0) streams_.read(clock_, SyslogStreams::As::sink_takes);
  if (watched[3].revents != 0) streams_.accept(clock_);
  return true;
}

void SyslogListener::Impl::tidy() {
  const port::Instant now = clock_.now();
  datagrams_.count_drops();
  streams_.expire(now);
  // Often enough that limits are kept within a quarter.
  const std::int64_t shortest = ns_of(std::min(options_.idle, options_.unfinished));
  tidy_at_ = now + std::clamp<std::int64_t>(shortest / 4, 10'000'000, ns_per_s);
}

void SyslogListener::Impl::wind_up() {
  const std::int64_t grace = ns_of(options_.stop_grace);
  streams_.accept(clock_);
  read_rest(clock_.now() + grace);
  streams_.close_all(clock_);
  const port::Instant until = clock_.now() + grace;
  while (datagrams_.receive(clock_, SyslogDatagrams::Room::given_up) > 0 && clock_.now() < until) {
  }
  datagrams_.count_drops();
  queue_.offer(clock_, SyslogQueue::Which::all);
  while (!queue_.empty() && clock_.now() < until) {
    pause();
    queue_.offer(clock_, SyslogQueue::Which::all);
  }
  counts_.abandoned += std::exchange(counts_.held, 0);
}

// What was sent before the stop, as its senders take it for delivered. Ends when there is nothing
// more, or no room for it until then.
void SyslogListener::Impl::read_rest(port::Instant until) {
  do {
    const bool bytes = streams_.read(clock_, SyslogStreams::As::queue_holds) > 0;
    const bool datagrams = datagrams_.receive(clock_, SyslogDatagrams::Room::kept) > 0;
    queue_.offer(clock_, SyslogQueue::Which::due);
    if (queue_.full())
      pause();
    else if (!bytes && !datagrams)
      return;
  } while (clock_.now() < until);
}

// Until it is worth asking a busy sink again.
void SyslogListener::Impl::pause() const {
  std::this_thread::sleep_for(std::min(options_.retry, milliseconds(10)));
}

SyslogListener::SyslogListener(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
SyslogListener::~SyslogListener() { stop(); }

Result<std::unique_ptr<SyslogListener>> SyslogListener::open(const SyslogOptions& options,
                                                             Sink sink) {
  WEFT_CHECK(sink != nullptr);
  auto impl = std::make_unique<Impl>(options, std::move(sink));
  WEFT_TRY_STATUS(impl->open());
  return std::make_unique<SyslogListener>(std::move(impl));
}

void SyslogListener::stop() { impl_->stop(); }
SyslogListener::Counts SyslogListener::counts() const { return impl_->counts(); }
const std::vector<SyslogListener::Port>& SyslogListener::ports() const { return impl_->ports(); }

}  // namespace weft::adapt::live
