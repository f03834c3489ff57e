// Real servers on loopback, good and bad ones.
#include "adapt/live/scrape.hpp"

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <httplib.h>
#include <sys/socket.h>

#include <atomic>
#include <string>
#include <thread>

#include "base/fd.hpp"

namespace weft::adapt::live {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

class PageServer {
 public:
  PageServer() {
    server_.Get("/metrics", [](const httplib::Request& request, httplib::Response& response) {
      response.set_content("a 1\n" + request.get_header_value("Authorization"), "text/plain");
    });
    server_.Get("/gone", [](const httplib::Request&, httplib::Response& response) {
      response.status = 404;
    });
    server_.Get("/away", [](const httplib::Request&, httplib::Response& response) {
      response.set_redirect("/metrics");
    });
    server_.Get("/endless", [](const httplib::Request&, httplib::Response& response) {
      response.set_chunked_content_provider("text/plain", [](std::size_t, httplib::DataSink& sink) {
        const std::string block(10'000, 'x');
        return sink.write(block.data(), block.size());
      });
    });
    server_.Get("/trickle", [](const httplib::Request&, httplib::Response& response) {
      response.set_chunked_content_provider("text/plain", [](std::size_t, httplib::DataSink& sink) {
        std::this_thread::sleep_for(milliseconds(20));
        return sink.write("x", 1);
      });
    });
    port_ = server_.bind_to_any_port("127.0.0.1");
    thread_ = std::thread([this] { server_.listen_after_bind(); });
    while (!server_.is_running()) std::this_thread::sleep_for(milliseconds(1));
  }
  ~PageServer() {
    server_.stop();
    thread_.join();
  }
  std::string url(const std::string& path) const {
    return "http://127.0.0.1:" + std::to_string(port_) + path;
  }

 private:
  httplib::Server server_;
  int port_ = 0;
  std::thread thread_;
};

// Whether it fails with these words, in less than two seconds.
bool fails_with(const std::string& url, const ScrapeOptions& options, std::string_view words) {
  const auto begin = Clock::now();
  const auto got = scrape(url, options);
  CHECK(Clock::now() - begin < milliseconds(2'000));
  if (got) return false;
  INFO(got.error().text());
  CHECK(got.error().text().find(words) != std::string::npos);
  return true;
}

TEST_CASE("a page, and all that is none") {
  const PageServer server;
  const auto page = scrape(server.url("/metrics"), {});
  REQUIRE_MESSAGE(page.has_value(), (page ? "" : page.error().text()));
  CHECK(*page == "a 1\n");
  CHECK(scrape(server.url("/metrics"), {.bearer_token = "t"}).value() == "a 1\nBearer t");
  CHECK(scrape(server.url(""), {}).value() == "a 1\n");
  CHECK(fails_with(server.url("/gone"), {}, "404"));
  CHECK(fails_with(server.url("/away"), {}, "302"));
  CHECK(fails_with(server.url("/endless"), {.bytes_max = 100'000}, "100000 bytes"));
  CHECK(fails_with(server.url("/trickle"), {.timeout = milliseconds(300)}, "too slow"));
  CHECK(fails_with("https://127.0.0.1" + server.url("").substr(16),
                   {.timeout = milliseconds(1'500)}, "no answer"));
}

TEST_CASE("a server that hangs, one that talks rubbish, none at all") {
  const Fd listener(::socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof at;
  REQUIRE(::bind(listener.get(), reinterpret_cast<sockaddr*>(&at), size) == 0);
  REQUIRE(::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&at), &size) == 0);
  const std::string url = "http://127.0.0.1:" + std::to_string(ntohs(at.sin_port));
  CHECK(fails_with(url, {.timeout = milliseconds(500)}, "no answer"));  // nobody listens
  REQUIRE(::listen(listener.get(), 4) == 0);
  CHECK(fails_with(url, {.timeout = milliseconds(300)}, "too slow"));  // nobody accepts
  std::atomic<bool> is_done = false;
  // Later: a header line that never ends, byte by byte.
  std::atomic<bool> is_trickle = false;
  std::thread rubbish([&] {
    while (!is_done) {
      const Fd peer(::accept(listener.get(), nullptr, nullptr));
      if (!peer.valid()) continue;
      const std::string_view text =
          is_trickle ? "HTTP/1.1 200 OK\r\nX: " : "\x80rubbish\r\n\xff\r\n\r\n";
      bool is_open = ::send(peer.get(), text.data(), text.size(), MSG_NOSIGNAL) > 0;
      for (int i = 0; i < 500 && is_trickle && is_open; ++i) {
        std::this_thread::sleep_for(milliseconds(10));
        is_open = ::send(peer.get(), "x", 1, MSG_NOSIGNAL) > 0;
      }
    }
  });
  CHECK(fails_with(url, {.timeout = milliseconds(500)}, "no answer"));
  is_trickle = true;
  CHECK(fails_with(url, {.timeout = milliseconds(500)}, "too slow"));
  is_done = true;
  ::shutdown(listener.get(), SHUT_RDWR);
  rubbish.join();
}

TEST_CASE("URLs") {
  for (const char* url :
       {"", "10.0.0.1:9100", "ftp://h/", "http://", "http://h:0/", "http://h:70000/",
        "http://u:p@h/", "http://h/\r\nX: y", "http://[::1/", "file:///etc/passwd"})
    CHECK_MESSAGE(!scrape(url, {}).has_value(), url);
  CHECK(host_of("http://10.0.0.1:9100/metrics") == "10.0.0.1");
  CHECK(host_of("https://[2001:db8::1]/x") == "2001:db8::1");
  CHECK(host_of("nothing").empty());
}

}  // namespace
}  // namespace weft::adapt::live
