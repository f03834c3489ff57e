#include "serve/http_server.hpp"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/serializer.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <ctime>
#include <exception>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/hash.hpp"
#include "base/text.hpp"

namespace weft::serve {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using boost::system::error_code;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

using Protocol = asio::generic::stream_protocol;  // TCP or a socket file
using Executor = asio::io_context::executor_type;
using Socket = asio::basic_stream_socket<Protocol, Executor>;
using Acceptor = asio::basic_socket_acceptor<Protocol, Executor>;
using Tls = asio::ssl::stream<Socket&>;

constexpr milliseconds accept_pause{50};  // when descriptors have run out
constexpr milliseconds close_patience{1000};
constexpr milliseconds close_patience_at_stop{100};
constexpr std::size_t read_bytes = 16'384;
constexpr std::uint64_t drained_bytes_max = 64 << 20;
constexpr unsigned vanished_ms = 30'000;  // with bytes that it did not acknowledge

std::string_view view(boost::beast::string_view text) { return {text.data(), text.size()}; }

std::unexpected<Problem> bad(std::string detail) {
  return refuse(400, "bad-request", std::move(detail));
}

// Why the parser refused a head; `rest` is what it did not take.
Problem problem_of(error_code error, std::string_view rest, std::size_t head_bytes) {
  using enum http::error;
  if (error == header_limit)
    return {431, "head-too-large", fmt::format("a head has at most {} bytes", head_bytes)};
  if (error == bad_transfer_encoding)
    return {411, "length-required", "send the body whole, with a Content-Length"};
  const std::string_view line = rest.substr(0, rest.find('\n'));
  if (error == bad_version && line.ends_with('\r') && split(line, ' ').size() == 3)
    return {505, "version", "use HTTP/1.1"};
  if (error == bad_method || error == bad_target || error == bad_version)
    return {400, "bad-request", "the first line is not METHOD TARGET HTTP/1.1"};
  return {400, "bad-request", fmt::format("the head is not HTTP/1.1: {}", error.message())};
}

// What Beast leaves open: the form of targets, fields that may not be repeated, and how much.
std::expected<void, Problem> take_request_line(const http::request_header<>& from, Head& head) {
  head.method = view(from.method_string());
  head.target = view(from.target());
  if (head.method.size() > 16 ||
      !std::ranges::all_of(head.method, [](char c) { return c >= 'A' && c <= 'Z'; }))
    return bad("the first line is not METHOD TARGET HTTP/1.1");
  if (head.target.size() > target_bytes_max)
    return refuse(414, "target-too-long",
                  fmt::format("a target has at most {} bytes", target_bytes_max));
  if (!head.target.starts_with('/') ||
      !std::ranges::all_of(head.target, [](char c) { return c > ' ' && c < 0x7f; }))
    return bad("the target must be a path of visible ASCII characters");
  return {};
}

std::expected<void, Problem> take_fields(const http::fields& from, Head& head) {
  constexpr std::array<std::string_view, 5> once{"authorization", "content-length", "host",
                                                 "content-type", "last-event-id"};
  std::size_t count = 0;
  for (const auto& field : from) {
    if (++count > field_count_max)
      return refuse(431, "too-many-fields", fmt::format("at most {} fields", field_count_max));
    const std::string name = lower_case(view(field.name_string()));
    const auto [at, is_new] = head.fields.emplace(name, view(field.value()));
    if (is_new) continue;
    if (std::ranges::find(once, name) != once.end())
      return bad(fmt::format("duplicate field {}", name));
    at->second += ", ";
    at->second += view(field.value());
  }
  return {};
}

template <class Parser>
std::expected<Head, Problem> head_of(const Parser& parser) {
  const auto& message = parser.get();
  Head head{.content_length = parser.content_length().value_or(0),
            .is_last = message.version() < 11 || !parser.keep_alive()};
  if (const auto done = take_request_line(message, head); !done)
    return std::unexpected(done.error());
  if (const auto done = take_fields(message, head); !done) return std::unexpected(done.error());
  if (message.version() == 11 && !head.fields.contains("host"))
    return bad("the field Host is missing");
  // Beast joins folded lines: "Host: a\r\n b".
  if (head.field("host").find_first_of(" \t") != std::string_view::npos)
    return bad("the field Host is not a host");
  if (head.fields.contains("transfer-encoding"))
    return refuse(411, "length-required", "send the body whole, with a Content-Length");
  if (const auto length = head.field("content-length");
      length.find_first_not_of("0123456789") != std::string_view::npos)
    return bad(fmt::format("{} is not a Content-Length", quote(length)));
  if (const std::string expected = lower_case(head.field("expect")); !expected.empty()) {
    if (expected != "100-continue") return refuse(417, "expectation", "only 100-continue");
    head.expects_continue = true;
  }
  return head;
}

}  // namespace

std::string_view phrase_of(int status) {
  return view(http::obsolete_reason(http::int_to_status(static_cast<unsigned>(status))));
}

std::expected<Head, Problem> parse_head(std::string_view text) {
  http::request_parser<http::string_body> parser;
  parser.body_limit(boost::none);
  error_code error;
  const std::size_t taken = parser.put(asio::buffer(text), error);
  if (error) return std::unexpected(problem_of(error, text.substr(taken), text.size()));
  return head_of(parser);
}

// The bytes of a connection, plain or through TLS: what Asio calls an asynchronous stream.
class Wire {
 public:
  using executor_type = Executor;

  explicit Wire(Socket open) : socket(std::move(open)) {}
  executor_type get_executor() { return socket.get_executor(); }
  template <class Buffers, class Handler>
  void async_read_some(const Buffers& buffers, Handler&& handler) {
    if (tls) return tls->async_read_some(buffers, std::forward<Handler>(handler));
    socket.async_read_some(buffers, std::forward<Handler>(handler));
  }
  template <class Buffers, class Handler>
  void async_write_some(const Buffers& buffers, Handler&& handler) {
    if (tls) return tls->async_write_some(buffers, std::forward<Handler>(handler));
    socket.async_write_some(buffers, std::forward<Handler>(handler));
  }

  Socket socket;
  std::optional<Tls> tls;
};

class Session;

// Everything in it belongs to the thread of `io`, but what a session hands to a worker.
struct HttpServer::Impl {
  Impl(const Needs& given, Listener open)
      : needs(given),
        limits(given.options.limits),
        listener(std::move(open)),
        acceptor(io),
        pause(io),
        farewell(io),
        id_seed(mix64(static_cast<std::uint64_t>(
            std::chrono::system_clock::now().time_since_epoch().count()))) {
    // A descriptor of its own: the listener closes the other.
    acceptor.assign(Protocol(listener->address().is_file() ? AF_UNIX : AF_INET, 0),
                    ::fcntl(listener->get(), F_DUPFD_CLOEXEC, 0));
    await_connection();
    thread = std::thread([this] { run(); });
  }

  void run() {
    for (;;) {
      try {
        io.run();
        return;
      } catch (const std::exception& e) {  // memory; the session at fault is gone
        if (needs.options.log)
          needs.options.log(LogLevel::info, fmt::format("a connection broke: {}", e.what()));
      }
    }
  }

  void await_connection() {
    acceptor.async_wait(Acceptor::wait_read, [this](error_code error) {
      if (!error) accept();
    });
  }
  // Runs `job` on a worker, a new one where all are busy and it may be.
  template <class Job>
  void hand_out(Job job) {
    if (jobs_under_way >= workers.size() && workers.size() < limits.workers + limits.event_clients)
      workers.emplace_back([this] { jobs.run(); });
    ++jobs_under_way;
    asio::post(jobs, std::move(job));
  }
  void accept();
  bool crowd_out();
  void begin_stop();

  Needs needs;
  const ApiLimits& limits;
  std::optional<Listener> listener;
  std::set<Session*> sessions;  // before `io`: handlers that never ran own sessions, and go with it
  std::shared_ptr<const TlsContext> tls;
  asio::io_context io{1};
  Acceptor acceptor;
  asio::steady_timer pause, farewell;
  asio::io_context jobs;
  asio::executor_work_guard<Executor> jobs_may_come{jobs.get_executor()};
  std::vector<std::thread> workers;
  std::size_t jobs_under_way = 0;
  const std::uint64_t id_seed;
  std::uint64_t request_count = 0;
  std::thread thread;
};

// One connection. Shared by the handlers of what it waits for; it ends when it waits for nothing.
class Session : public std::enable_shared_from_this<Session> {
  template <class Step>
  auto then(Step step) {
    return [self = shared_from_this(), step](error_code error, std::size_t bytes = 0) {
      (self.get()->*step)(error, bytes);
    };
  }

 public:
  Session(HttpServer::Impl& server, Socket socket)
      : server_(server), wire_(std::move(socket)), timer_(server.io) {
    server_.sessions.insert(this);
    ++server_.needs.meters.connections;
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session() {
    --server_.needs.meters.connections;
    server_.sessions.erase(this);
    if (server_.needs.is_stopping && server_.sessions.empty()) server_.farewell.cancel();
  }

  void start() {
    if (server_.tls == nullptr) {
      peer_ = {sender_of(wire_.socket.native_handle()), user_of(wire_.socket.native_handle()),
               std::nullopt, std::nullopt};
      return await_request();
    }
    SSL* const tls = SSL_new(server_.tls->get());
    if (tls == nullptr) return;
    wire_.tls.emplace(wire_.socket, tls);
    set_deadline(server_.limits.head);
    wire_.tls->async_handshake(Tls::server, then(&Session::on_handshake));
  }
  void end() {
    error_code ignored;
    ignored = wire_.socket.close(ignored);
  }
  // Nothing is lost when it ends.
  bool is_idle() const { return is_closing_ || (is_waiting() && !parser_ && buffer_.size() == 0); }
  // No request is under way: it may have to make room.
  bool is_waiting() const { return !visit_ && !is_closing_; }
  steady_clock::time_point since() const { return since_; }

 private:
  // Runs `ask` on a worker and `use` with what it returned back here.
  template <class Ask, class Use>
  void on_worker(Ask ask, Use use) {
    timer_.cancel();
    server_.hand_out([self = shared_from_this(), ask = std::move(ask), use,
                      busy = asio::make_work_guard(server_.io)]() mutable {
      auto result = ask();
      // Moved, for a worker must not be the one that destroys the session.
      asio::post(busy.get_executor(),
                 [self = std::move(self), use, result = std::move(result)]() mutable {
                   --self->server_.jobs_under_way;
                   use(std::move(result));
                 });
    });
  }

  void set_deadline(milliseconds patience) {
    is_late_ = false;
    timer_.expires_after(patience);
    timer_.async_wait([weak = weak_from_this()](error_code error) {
      const auto self = weak.lock();
      // One that was set anew after this was queued is another deadline.
      if (error || !self || self->timer_.expiry() > steady_clock::now()) return;
      self->is_late_ = true;
      error_code ignored;
      ignored = self->wire_.socket.cancel(ignored);
    });
  }

  void on_handshake(error_code error, std::size_t) {
    peer_ = {sender_of(wire_.socket.native_handle()), user_of(wire_.socket.native_handle()),
             error ? std::nullopt : common_name(wire_.tls->native_handle()),
             error ? std::nullopt : spiffe_id_of(wire_.tls->native_handle())};
    // A certificate that names nobody could act, and the log would not say who it was.
    const bool is_named =
        server_.needs.options.client_ca.empty() || peer_.certificate || peer_.svid;
    if (!error && is_named) return await_request();
    ++server_.needs.meters.handshakes_failed;
    end();
  }

  void await_request() {
    since_ = steady_clock::now();
    skip_blank_lines();
    if (buffer_.size() > 0) return read_head();
    if (server_.needs.is_stopping) return close_gently();
    set_deadline(server_.limits.idle);
    wire_.async_read_some(buffer_.prepare(read_bytes), then(&Session::on_first_bytes));
  }

  void on_first_bytes(error_code error, std::size_t bytes) {
    if (error) return end();
    buffer_.commit(bytes);
    skip_blank_lines();
    read_head();
  }

  // Some clients send one behind a body.
  void skip_blank_lines() {
    const auto is_blank = [](const auto& bytes) {
      return bytes.size() >= 2 && std::memcmp(bytes.data(), "\r\n", 2) == 0;
    };
    while (is_blank(buffer_.cdata())) buffer_.consume(2);
  }

  void read_head() {
    parser_.emplace();
    parser_->header_limit(static_cast<std::uint32_t>(server_.limits.head_bytes));
    parser_->body_limit(boost::none);  // the route's, once it is known
    set_deadline(server_.limits.head);
    http::async_read_header(wire_, buffer_, *parser_, then(&Session::on_head));
  }

  void on_head(error_code error, std::size_t) {
    const std::string_view rest{static_cast<const char*>(buffer_.cdata().data()), buffer_.size()};
    if (!error) return begin_visit(head_of(*parser_));
    if (is_late_) return begin_visit(refuse(408, "too-slow", "the head did not come whole"));
    const bool is_cut =
        error == http::error::end_of_stream || error == http::error::partial_message;
    if (is_cut || error.category() != http::make_error_code(http::error::bad_value).category())
      return end();
    begin_visit(std::unexpected(problem_of(error, rest, server_.limits.head_bytes)));
  }

  void begin_visit(const std::expected<Head, Problem>& head) {
    const bool is_head = parser_->get().method() == http::verb::head;
    head_ = head.value_or(Head{.method = is_head ? "HEAD" : "GET", .is_last = true});
    is_last_ = head_.is_last || ++request_count_ >= server_.limits.requests;
    std::string id = fmt::format("{:016x}", mix64(server_.id_seed + ++server_.request_count));
    if (head)
      visit_.emplace(server_.needs.front, head_, peer_, std::move(id));
    else
      visit_.emplace(server_.needs.front, head.error(), head_, peer_, std::move(id));
    if (auto early = visit_->before_body()) {
      is_last_ = is_last_ || head_.content_length > 0;  // which was not read
      return write(*std::move(early));
    }
    if (head_.content_length == 0) return answer();
    if (!head_.expects_continue) return read_body({}, 0);
    set_deadline(server_.limits.patience.write);
    asio::async_write(wire_, asio::buffer(std::string_view("HTTP/1.1 100 Continue\r\n\r\n")),
                      then(&Session::read_body));
  }

  void read_body(error_code error, std::size_t) {
    if (error) return end();
    set_deadline(server_.limits.patience.body);
    http::async_read(wire_, buffer_, *parser_, then(&Session::on_body));
  }

  void on_body(error_code error, std::size_t) {
    if (!error) return answer();
    is_last_ = true;
    const Problem problem{is_late_ ? 408 : 400, is_late_ ? "too-slow" : "bad-request",
                          "the body did not come whole"};
    write(reply_of(problem));
  }

  void answer() {
    on_worker(
        [this, body = std::move(parser_->get().body())]() mutable {
          return visit_->answer(std::move(body));
        },
        [this](Reply reply) { reply.later ? hold(reply) : write(std::move(reply)); });
  }

  // Whoever gives the answer may keep what he was called with: it holds nothing any more.
  void hold(const Reply& reply) {
    struct Ticket {
      std::shared_ptr<Session> self;
      asio::executor_work_guard<Executor> busy;
    };
    auto held = std::make_shared<std::optional<Ticket>>(
        Ticket{shared_from_this(), asio::make_work_guard(server_.io)});
    reply.later([held](Reply late) {
      Ticket ticket = std::move(held->value());
      held->reset();
      asio::post(ticket.busy.get_executor(),
                 [self = std::move(ticket.self), late = std::move(late)]() mutable {
                   self->write(std::move(late));
                 });
    });
  }

  void write(Reply reply) {
    stream_ = std::move(reply.stream);
    is_last_ = is_last_ || stream_ != nullptr || server_.needs.is_stopping;
    response_ = {http::int_to_status(static_cast<unsigned>(reply.status)), 11};
    for (const auto& [name, value] : reply.headers) response_.insert(name, value);
    response_.set(http::field::date,
                  fmt::format("{:%a, %d %b %Y %H:%M:%S} GMT", fmt::gmtime(std::time(nullptr))));
    if (!reply.type.empty()) response_.set(http::field::content_type, reply.type);
    if (is_last_) response_.set(http::field::connection, "close");
    if (stream_ == nullptr) response_.content_length(reply.body.size());
    response_.body() = std::move(reply.body);
    serializer_.emplace(response_);
    serializer_->split(head_.method == "HEAD" || stream_ != nullptr);
    write_some();
  }

  // Not async_write: it is some bytes that have a deadline, not the answer.
  void write_some() {
    set_deadline(server_.limits.patience.write);
    http::async_write_some(wire_, *serializer_, then(&Session::on_written));
  }

  void on_written(error_code error, std::size_t) {
    if (error) {
      is_last_ = true;
      return finish_request();
    }
    const bool is_head_only = serializer_->split();
    if (!(is_head_only ? serializer_->is_header_done() : serializer_->is_done()))
      return write_some();
    if (stream_ == nullptr || head_.method == "HEAD") return finish_request();
    watch({}, 0);
    await_events();
  }

  void await_events() {
    on_worker([this] { return stream_->next(); },
              [this](std::optional<std::string> bytes) {
                if (!bytes || !wire_.socket.is_open()) return finish_request();
                events_ = *std::move(bytes);
                events_at_ = 0;
                write_events({}, 0);
              });
  }

  void write_events(error_code error, std::size_t bytes) {
    if (error) return finish_request();
    events_at_ += bytes;
    if (events_at_ == events_.size()) return await_events();
    set_deadline(server_.limits.patience.write);
    wire_.async_write_some(asio::buffer(events_) + events_at_, then(&Session::write_events));
  }

  // Notices that the client of an event stream has gone; nothing it may send matters any more.
  void watch(error_code error, std::size_t) {
    if (error && !is_closing_) return end();
    if (!error) wire_.async_read_some(asio::buffer(dropped_), then(&Session::watch));
  }

  void finish_request() {
    visit_->finish(static_cast<int>(response_.result_int()));
    visit_.reset();
    stream_.reset();
    parser_.reset();
    if (is_last_) return close_gently();
    await_request();
  }

  // So that what was written still arrives: a close with unread bytes would reset the connection,
  // and the answer with it.
  void close_gently() {
    is_closing_ = true;
    error_code ignored;
    ignored = wire_.socket.cancel(ignored);  // the watch
    set_deadline(server_.needs.is_stopping ? close_patience_at_stop : close_patience);
    if (!wire_.tls) return drain({}, 0);
    wire_.tls->async_shutdown([self = shared_from_this()](error_code) { self->drain({}, 0); });
  }

  void drain(error_code error, std::size_t bytes) {
    error_code ignored;
    if (drained_ == 0 && bytes == 0)
      ignored = wire_.socket.shutdown(Socket::shutdown_send, ignored);
    drained_ += bytes;
    if (error || is_late_ || drained_ > drained_bytes_max) return end();
    wire_.socket.async_read_some(asio::buffer(dropped_), then(&Session::drain));
  }

  HttpServer::Impl& server_;
  Wire wire_;
  asio::steady_timer timer_;
  bool is_late_ = false;     // the deadline of what it waits for has passed
  bool is_closing_ = false;  // all is said; what still comes is dropped
  steady_clock::time_point since_ = steady_clock::now();
  Peer peer_;
  std::size_t request_count_ = 0;
  boost::beast::flat_buffer buffer_;
  // Of the request under way.
  std::optional<http::request_parser<http::string_body>> parser_;
  Head head_;
  std::optional<Visit> visit_;
  http::response<http::string_body> response_;
  std::optional<http::response_serializer<http::string_body>> serializer_;
  bool is_last_ = false;
  std::unique_ptr<ByteStream> stream_;
  std::string events_;
  std::size_t events_at_ = 0;
  std::array<char, read_bytes> dropped_;
  std::uint64_t drained_ = 0;
};

void HttpServer::Impl::accept() {
  Fd fd = listener->accept();
  if (!fd.valid() && (errno == EMFILE || errno == ENFILE || errno == ENOMEM)) {
    pause.expires_after(accept_pause);
    return pause.async_wait([this](error_code error) {
      if (!error) await_connection();
    });
  }
  await_connection();
  if (!fd.valid()) return;
  ++needs.meters.accepted;
  if (sessions.size() >= limits.connections && !crowd_out()) return;
  // Both fail on a socket file, where there is nothing to delay and nobody can vanish.
  const int on = 1;
  ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::setsockopt(fd.get(), IPPROTO_TCP, TCP_USER_TIMEOUT, &vanished_ms, sizeof vanished_ms);
  Socket socket(io);
  socket.assign(acceptor.local_endpoint().protocol(), fd.release());
  std::make_shared<Session>(*this, std::move(socket))->start();
}

// Ends the connection that has waited longest for a request. False where none waits.
bool HttpServer::Impl::crowd_out() {
  Session* oldest = nullptr;
  for (Session* session : sessions)
    if (session->is_waiting() && (oldest == nullptr || session->since() < oldest->since()))
      oldest = session;
  if (oldest == nullptr) return false;
  oldest->end();
  ++needs.meters.crowded_out;
  return true;
}

void HttpServer::Impl::begin_stop() {
  error_code ignored;
  ignored = acceptor.close(ignored);
  listener.reset();
  pause.cancel();
  if (sessions.empty()) return;
  farewell.expires_after(limits.farewell);
  farewell.async_wait([this](error_code error) {
    if (error) return;
    for (Session* session : sessions) session->end();
  });
  for (Session* session : sessions)
    if (session->is_idle()) session->end();
}

Result<std::unique_ptr<HttpServer>> HttpServer::start(const Needs& needs, Listener listener) {
  std::signal(SIGPIPE, SIG_IGN);  // what writes to those who have gone learns it from errno
  try {
    return std::make_unique<HttpServer>(std::make_unique<Impl>(needs, std::move(listener)));
  } catch (const std::exception& e) {
    return fail(Errc::io, {}, fmt::format("cannot serve HTTP: {}", e.what()));
  }
}

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpServer::~HttpServer() { stop(); }

void HttpServer::set_tls(std::shared_ptr<const TlsContext> tls) {
  asio::post(impl_->io, [impl = impl_.get(), tls = std::move(tls)] { impl->tls = tls; });
}

void HttpServer::stop() {
  if (!impl_->thread.joinable()) return;
  asio::post(impl_->io, [impl = impl_.get()] { impl->begin_stop(); });
  impl_->thread.join();
  impl_->jobs_may_come.reset();
  for (std::thread& worker : impl_->workers) worker.join();
}

}  // namespace weft::serve
