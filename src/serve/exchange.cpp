#include "serve/exchange.hpp"

// As the library itself was built: its types depend on it.
#define CPPHTTPLIB_OPENSSL_SUPPORT
#define CPPHTTPLIB_ZLIB_SUPPORT
#define CPPHTTPLIB_BROTLI_SUPPORT
#include <fmt/format.h>
#include <httplib.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <utility>

namespace weft::serve {
namespace {

constexpr std::size_t write_bytes_max = 64 << 10;  // per patience

// The library's view of the wire: our short head, then the body, and not a byte more.
class Pipe : public httplib::Stream {
 public:
  Pipe(Wire& wire, const Exchange::Patience& patience) : wire_(wire), patience_(patience) {}

  void begin(std::string head, std::uint64_t body_bytes) {
    head_ = std::move(head);
    at_ = 0;
    body_left_ = body_bytes;
    deadline_ = std::chrono::steady_clock::now() + patience_.body;
    end_ = Wire::End::none;
  }
  std::uint64_t body_left() const { return body_left_; }
  Wire::End end() const { return end_; }

  bool is_readable() const override { return true; }
  bool is_writable() const override { return end_ == Wire::End::none; }
  ssize_t read(char* out, std::size_t size) override {
    if (at_ < head_.size()) {
      const std::size_t count = std::min(size, head_.size() - at_);
      head_.copy(out, count, at_);
      at_ += count;
      return static_cast<ssize_t>(count);
    }
    if (body_left_ == 0) return 0;
    const auto [end, count] = wire_.read(
        {out, static_cast<std::size_t>(std::min<std::uint64_t>(size, body_left_))}, deadline_);
    end_ = end;
    if (end != Wire::End::none) return -1;
    body_left_ -= count;
    return static_cast<ssize_t>(count);
  }
  ssize_t write(const char* bytes, std::size_t size) override {
    const auto [end, count] = wire_.write({bytes, std::min(size, write_bytes_max)},
                                          std::chrono::steady_clock::now() + patience_.write);
    end_ = end;
    return end == Wire::End::none ? static_cast<ssize_t>(count) : -1;
  }
  void get_remote_ip_and_port(std::string& ip, int& port) const override {
    ip.clear();
    port = 0;
  }
  void get_local_ip_and_port(std::string& ip, int& port) const override {
    ip.clear();
    port = 0;
  }
  socket_t socket() const override { return 0; }  // only compared with FD_SETSIZE: we poll

 private:
  Wire& wire_;
  Exchange::Patience patience_;
  std::string head_;
  std::size_t at_ = 0;
  std::uint64_t body_left_ = 0;
  SteadyTime deadline_;
  Wire::End end_ = Wire::End::none;
};

std::string now_as_http_date() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  std::array<char, 32> text{};
  const std::size_t size =
      std::strftime(text.data(), text.size(), "%a, %d %b %Y %H:%M:%S GMT", &parts);
  return {text.data(), size};
}

// The library must know of the method only whether a body comes or goes.
std::string short_head(const Head& head) {
  const bool has_body = head.content_length > 0;
  const std::string_view method = has_body ? "POST" : head.method == "HEAD" ? "HEAD" : "GET";
  return fmt::format("{} / HTTP/1.1\r\nContent-Length: {}\r\n{}{}\r\n", method, head.content_length,
                     head.is_last ? "Connection: close\r\n" : "",
                     head.expects_continue && has_body ? "Expect: 100-continue\r\n" : "");
}

}  // namespace

struct Exchange::Impl : httplib::Server {
  Impl(Wire& wire, const Patience& patience) : wire(wire), pipe(wire, patience) {
    svr_sock_ = wire.socket();  // not -1: it does not shut down
    const auto refuse = [this](const httplib::Request&, httplib::Response& response) {
      if (!early) return false;
      put(*std::move(early), response);
      return true;
    };
    set_pre_routing_handler([=](const httplib::Request& request, httplib::Response& response) {
      return refuse(request, response) ? HandlerResponse::Handled : HandlerResponse::Unhandled;
    });
    set_expect_100_continue_handler(
        [=](const httplib::Request& request, httplib::Response& response) {
          return refuse(request, response) ? response.status : 100;
        });
    Get("/", [this](const httplib::Request&, httplib::Response& response) {
      put(handling->answer({}), response);
    });
    Post("/", [this](const httplib::Request&, httplib::Response& response,
                     const httplib::ContentReader& reader) { take_body(response, reader); });
    // Our answers are complete: it has to measure them, not to change them.
    set_error_handler(HandlerWithResponse(
        [](const httplib::Request&, httplib::Response&) { return HandlerResponse::Handled; }));
    set_exception_handler(
        [this](const httplib::Request&, httplib::Response& response, const std::exception_ptr&) {
          put(reply_of({500, "internal", "the request failed in a way that nobody thought of"}),
              response);
        });
    set_post_routing_handler(
        [this](const httplib::Request&, httplib::Response& response) { finish(response); });
  }

  void take_body(httplib::Response& response, const httplib::ContentReader& reader) {
    std::string body;
    body.reserve(head->content_length);
    const bool is_whole = reader([&](const char* bytes, std::size_t size) {
      body.append(bytes, size);
      return true;
    });
    if (is_whole && pipe.body_left() == 0) return put(handling->answer(std::move(body)), response);
    const bool is_late = pipe.end() == Wire::End::late;
    put(reply_of({is_late ? 408 : 400, is_late ? "too-slow" : "bad-request",
                  "the body did not come whole"}),
        response);
  }

  void put(Reply reply, httplib::Response& response) {
    response.status = reply.status;
    for (const auto& [name, value] : reply.headers) response.headers.emplace(name, value);
    if (reply.stream == nullptr) {
      response.set_content(reply.body, reply.type);
      return;
    }
    is_stream = true;
    // Shared, for the library copies its callbacks.
    const std::shared_ptr<ByteStream> stream = std::move(reply.stream);
    response.set_content_provider(reply.type, [this, stream](std::size_t, httplib::DataSink& sink) {
      const auto bytes = stream->next();
      if (!bytes) {
        sink.done();
        return true;
      }
      return bytes->empty() ? !wire.is_gone() : sink.write(bytes->data(), bytes->size());
    });
  }

  void finish(httplib::Response& response) {
    is_last = head->is_last || is_stream || pipe.body_left() > 0;
    response.headers.erase("Keep-Alive");
    response.headers.erase("Accept-Ranges");
    response.headers.erase("Connection");
    if (is_last) response.headers.emplace("Connection", "close");
    if (is_stream) response.headers.erase("Content-Length");
    response.headers.emplace("Date", now_as_http_date());
    status = response.status;
  }

  Outcome serve(const Head& request, Handling& with) {
    head = &request;
    handling = &with;
    is_stream = false;
    is_last = true;
    status = 0;
    early = with.before_body();
    pipe.begin(short_head(request), request.content_length);
    bool is_closed = false;
    // It takes care of exceptions of ours, but not of its own.
    const bool is_sent = process_request(pipe, request.is_last, is_closed, nullptr);
    return {status, is_sent && !is_last && !is_closed};
  }

  Wire& wire;
  Pipe pipe;
  const Head* head = nullptr;
  Handling* handling = nullptr;
  std::optional<Reply> early;
  bool is_stream = false, is_last = true;
  int status = 0;
};

Exchange::Exchange(Wire& wire, const Patience& patience)
    : impl_(std::make_unique<Impl>(wire, patience)) {}
Exchange::~Exchange() = default;

Exchange::Outcome Exchange::serve(const Head& head, Handling& handling) {
  return impl_->serve(head, handling);
}

}  // namespace weft::serve
