#include "serve/api.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <exception>
#include <list>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "base/fd.hpp"
#include "base/hash.hpp"
#include "serve/auth.hpp"
#include "serve/front.hpp"
#include "serve/listener.hpp"
#include "serve/meters.hpp"
#include "serve/routes.hpp"
#include "serve/tls.hpp"
#include "serve/wire.hpp"

namespace weft::serve {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds accept_pause{50};  // when descriptors have run out
constexpr milliseconds reap_pause{1000};
constexpr milliseconds close_patience{1000};

struct Secrets {
  std::shared_ptr<const Tokens> tokens;
  std::shared_ptr<const TlsContext> tls;
};

Result<Secrets> read_secrets(const ApiOptions& options) {
  Secrets out;
  if (!options.tokens.empty()) {
    WEFT_TRY(Tokens tokens, Tokens::load(options.tokens));
    if (!tokens.has_tokens() && options.client_ca.empty())
      return fail(Errc::value, {options.tokens}, "names certificates only",
                  "add tokens, or give the authority of clients' certificates");
    out.tokens = std::make_shared<const Tokens>(std::move(tokens));
  }
  if (options.certificate.empty() != options.key.empty())
    return fail(Errc::value, {}, "a certificate and its key come together", "give both or none");
  if (options.certificate.empty() && !options.client_ca.empty())
    return fail(Errc::value, {}, "clients' certificates need TLS", "give a certificate and key");
  if (!options.certificate.empty()) {
    WEFT_TRY(TlsContext tls,
             TlsContext::load({options.certificate, options.key, options.client_ca}));
    out.tls = std::make_shared<const TlsContext>(std::move(tls));
  }
  return out;
}

Status check_exposure(const ListenAddress& address, const ApiOptions& options) {
  const bool has_guard = !options.tokens.empty() || !options.client_ca.empty();
  if (address.is_local() || (has_guard && !options.certificate.empty())) return {};
  return fail(Errc::infeasible, {},
              fmt::format("{} can be reached from other machines", address.text()),
              "give TLS (certificate, key) and tokens or the authority of clients' certificates; "
              "or listen at 127.0.0.1, [::1] or unix:/path");
}

Front::Access access_of(const ListenAddress& address, const ApiOptions& options) {
  if (!options.tokens.empty() || !options.client_ca.empty()) return Front::Access::guarded;
  return address.is_file() ? Front::Access::open_file : Front::Access::open_host;
}

}  // namespace

struct Api::Impl {
  // A connection and its thread.
  struct Slot {
    std::thread thread;
    int socket = -1;         // -1 once its owner is about to close it; by mutex
    bool is_done = false;    // by mutex
    bool is_waiting = true;  // no request is under way: it may have to make room; by mutex
    steady_clock::time_point since = steady_clock::now();  // by mutex
  };

  Impl(ApiOptions given, Service& service, port::Store& store, Bus& bus, Listener open,
       const Secrets& secrets)
      : options(std::move(given)),
        bus(bus),
        stop_signal(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        listener(std::move(open)),
        address(listener->address()),
        routes(make_routes({options, service, store, bus, meters, is_stopping})),
        front(access_of(address, options), options.limits, routes, meters),
        tls(secrets.tls),
        id_seed(mix64(static_cast<std::uint64_t>(
            std::chrono::system_clock::now().time_since_epoch().count()))) {
    front.set_tokens(secrets.tokens);
    log(fmt::format("listening at {}{}", address.text(), tls == nullptr ? "" : " with TLS"));
    if (access_of(address, options) != Front::Access::guarded)
      log("no tokens were given: whoever can connect may do everything");
    acceptor = std::thread([this] { accept_all(); });
  }

  void log(std::string_view line) const {
    if (options.log) options.log(line);
  }

  void stop() {
    std::call_once(stopped, [this] {
      is_stopping = true;
      const std::uint64_t one = 1;
      static_cast<void>(!::write(stop_signal.get(), &one, sizeof one));
      bus.wake();
      acceptor.join();
      listener.reset();
      end_all();
    });
  }

  // Waits for all connections, at last with less patience.
  void end_all() {
    std::unique_lock lock(mutex);
    const auto all_done = [&] { return std::ranges::all_of(slots, &Slot::is_done); };
    if (!ended.wait_for(lock, options.limits.farewell, all_done))
      for (const Slot& slot : slots)
        if (slot.socket >= 0) ::shutdown(slot.socket, SHUT_RDWR);
    ended.wait(lock, all_done);
    for (Slot& slot : slots) slot.thread.join();
    slots.clear();
  }

  void accept_all() {
    while (!is_stopping) {
      std::array<pollfd, 2> on{{{listener->get(), POLLIN, 0}, {stop_signal.get(), POLLIN, 0}}};
      ::poll(on.data(), on.size(), static_cast<int>(reap_pause.count()));
      reap();
      if (is_stopping || (on[0].revents & POLLIN) == 0) continue;
      Fd socket = listener->accept();
      if (socket.valid()) {
        admit(std::move(socket));
      } else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM) {
        ::poll(&on[1], 1, static_cast<int>(accept_pause.count()));
      }
    }
  }

  void reap() {
    std::list<Slot> done;
    {
      const std::lock_guard lock(mutex);
      for (auto at = slots.begin(); at != slots.end();) {
        const auto here = at++;
        if (here->is_done) done.splice(done.end(), slots, here);
      }
    }
    for (Slot& slot : done) slot.thread.join();
  }

  void admit(Fd socket) {
    ++meters.accepted;
    const std::lock_guard lock(mutex);
    if (slots.size() >= options.limits.connections && !crowd_out()) return;
    Slot& slot = slots.emplace_back();
    slot.socket = socket.get();
    try {
      slot.thread = std::thread(
          [this, &slot, socket = std::move(socket)]() mutable { run(slot, std::move(socket)); });
    } catch (const std::system_error&) {  // no thread to be had: the connection closes
      slots.pop_back();
    }
  }

  // Ends the connection that has waited longest for a request. False where none waits. By mutex.
  bool crowd_out() {
    Slot* oldest = nullptr;
    for (Slot& slot : slots)
      if (slot.is_waiting && slot.socket >= 0 && (oldest == nullptr || slot.since < oldest->since))
        oldest = &slot;
    if (oldest == nullptr) return false;
    ::shutdown(oldest->socket, SHUT_RDWR);
    oldest->is_waiting = false;
    ++meters.crowded_out;
    return true;
  }

  // The thread of a connection.
  void run(Slot& slot, Fd socket) {
    ++meters.connections;
    {
      Wire wire(std::move(socket), stop_signal.get());
      try {
        converse(slot, wire);
      } catch (const std::exception& e) {  // memory
        log(fmt::format("a connection broke: {}", e.what()));
      }
      const std::lock_guard lock(mutex);
      slot.socket = -1;
    }
    --meters.connections;
    const std::lock_guard lock(mutex);
    slot.is_done = true;
    ended.notify_all();
  }

  void set_waiting(Slot& slot, bool is_waiting) {
    const std::lock_guard lock(mutex);
    slot.is_waiting = is_waiting;
    slot.since = steady_clock::now();
  }

  bool shake_hands(Wire& wire) {
    std::shared_ptr<const TlsContext> context;
    {
      const std::lock_guard lock(mutex);
      context = tls;
    }
    if (context == nullptr) return true;
    const auto end = wire.handshake(context->get(), steady_clock::now() + options.limits.head);
    // A certificate that names nobody could act, and the log would not say who it was.
    const bool is_named = options.client_ca.empty() || wire.common_name().has_value();
    if (end == Wire::End::none && is_named) return true;
    ++meters.handshakes_failed;
    return false;
  }

  void converse(Slot& slot, Wire& wire) {
    Exchange exchange(wire, options.limits.patience);
    if (!shake_hands(wire)) return;
    const Peer peer{wire.sender(), wire.user(), wire.common_name()};
    for (std::size_t left = options.limits.requests; left > 0 && !is_stopping; --left) {
      const auto bytes =
          wire.take_head(options.limits.head_bytes, steady_clock::now() + options.limits.idle,
                         options.limits.head);
      const bool is_odd =
          bytes.end == Wire::End::too_long || (bytes.end == Wire::End::late && !bytes.text.empty());
      if (bytes.end != Wire::End::none && !is_odd) return;
      set_waiting(slot, false);
      if (!visit(exchange, peer, bytes, left == 1)) break;
      set_waiting(slot, true);
    }
    wire.close_gently(close_patience);
  }

  // One request. False where it was the last.
  bool visit(Exchange& exchange, const Peer& peer, const Wire::HeadBytes& bytes, bool is_last) {
    auto head = parsed(bytes);
    std::string id = fmt::format("{:016x}", mix64(id_seed + ++request_count));
    if (!head) {
      const Head none{.method = bytes.text.starts_with("HEAD ") ? "HEAD" : "GET", .is_last = true};
      Visit visit(front, head.error(), none, peer, std::move(id));
      visit.finish(exchange.serve(none, visit).status);
      return false;
    }
    head->is_last = head->is_last || is_last || is_stopping;
    Visit visit(front, *head, peer, std::move(id));
    const auto outcome = exchange.serve(*head, visit);
    visit.finish(outcome.status);
    return outcome.may_go_on;
  }

  std::expected<Head, Problem> parsed(const Wire::HeadBytes& bytes) const {
    if (bytes.end == Wire::End::too_long)
      return std::unexpected(
          Problem{431, "head-too-large",
                  fmt::format("a head has at most {} bytes", options.limits.head_bytes)});
    if (bytes.end == Wire::End::late)
      return std::unexpected(Problem{408, "too-slow", "the head did not come whole"});
    return parse_head(bytes.text);
  }

  const ApiOptions options;
  Bus& bus;
  Meters meters;
  std::atomic<bool> is_stopping = false;
  std::once_flag stopped;
  Fd stop_signal;
  std::optional<Listener> listener;
  const ListenAddress address;
  const std::vector<Route> routes;
  Front front;
  std::mutex mutex;
  std::condition_variable ended;
  std::list<Slot> slots;
  // Shared: connections under way keep the context that they began with.
  std::shared_ptr<const TlsContext> tls;
  const std::uint64_t id_seed;
  std::atomic<std::uint64_t> request_count = 0;
  std::thread acceptor;
};

Api::Api(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Api::~Api() { stop(); }

Result<std::unique_ptr<Api>> Api::listen(ApiOptions options, Service& service, port::Store& store,
                                         Bus& bus) {
  WEFT_TRY(const ListenAddress address, parse_listen_address(options.listen));
  WEFT_TRY_STATUS(check_exposure(address, options));
  WEFT_TRY(const Secrets secrets, read_secrets(options));
  WEFT_TRY(Listener listener, Listener::open(address));
  return std::make_unique<Api>(std::make_unique<Impl>(std::move(options), service, store, bus,
                                                      std::move(listener), secrets));
}

std::uint16_t Api::port() const { return impl_->address.port; }
std::string Api::address() const { return impl_->address.text(); }
void Api::stop() { impl_->stop(); }
const std::vector<Route>& Api::routes() const { return impl_->routes; }

Status Api::reload() {
  WEFT_TRY(const Secrets secrets, read_secrets(impl_->options));
  impl_->front.set_tokens(secrets.tokens);
  const std::lock_guard lock(impl_->mutex);
  impl_->tls = secrets.tls;
  return {};
}

}  // namespace weft::serve
