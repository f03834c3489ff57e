// What tests of the API stand on: a service and a store in memory, and a client that can misbehave.
#pragma once

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cctype>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/fd.hpp"
#include "base/json_text.hpp"
#include "base/test_folder.hpp"
#include "port/store.hpp"
#include "serve/api.hpp"

namespace weft::serve::testing {

using namespace std::chrono_literals;

// As a port::Store is, but for durability.
class MemoryStore final : public port::Store {
 public:
  Result<std::uint64_t> commit(const port::Commit& commit) override {
    const std::lock_guard lock(mutex_);
    for (const port::Document& row : commit.documents) documents_[{row.kind, row.id}] = row;
    for (port::AuditEntry row : commit.audit) {
      row.seq = audit_.size() + 1;
      audit_.push_back(std::move(row));
    }
    return 0;
  }
  Result<std::vector<port::StoredEvent>> events(std::uint64_t, std::size_t) override {
    return std::vector<port::StoredEvent>();
  }
  Result<port::Document> document(std::string_view kind, std::string_view id) override {
    const std::lock_guard lock(mutex_);
    const auto at = documents_.find({std::string(kind), std::string(id)});
    if (at == documents_.end()) return fail(Errc::unknown, {}, fmt::format("no {} {}", kind, id));
    return at->second;
  }
  Result<std::vector<port::Document>> documents(std::string_view kind, Timestamp before,
                                                std::size_t rows_max) override {
    if (is_broken) return fail(Errc::io, {}, "the disk is gone");
    const std::lock_guard lock(mutex_);
    std::vector<port::Document> out;
    for (const auto& [key, row] : documents_)
      if (key.first == kind && row.updated < before) out.push_back(row);
    std::ranges::stable_sort(out, std::greater<>(), &port::Document::updated);
    out.resize(std::min(out.size(), rows_max));
    return out;
  }
  Result<std::vector<port::AuditEntry>> audit(std::uint64_t seq, std::string_view subject,
                                              std::size_t rows_max) override {
    if (is_broken) return fail(Errc::io, {}, "the disk is gone");
    const std::lock_guard lock(mutex_);
    std::vector<port::AuditEntry> out;
    for (std::size_t i = seq > 0 ? seq - 1 : 0; i < audit_.size() && out.size() < rows_max; ++i)
      if (subject.empty() || audit_[i].subject == subject) out.push_back(audit_[i]);
    return out;
  }
  Result<std::uint64_t> forget_events(std::uint64_t) override { return 0; }
  Result<std::uint64_t> forget_documents(std::string_view, Timestamp) override { return 0; }

  std::atomic<bool> is_broken = false;

 private:
  std::mutex mutex_;
  std::map<std::pair<std::string, std::string>, port::Document> documents_;
  std::vector<port::AuditEntry> audit_;
};

class FakeService final : public Service {
 public:
  Result<Receipt> accept(std::string_view feed, std::vector<std::string> lines,
                         std::string_view sender) override {
    std::this_thread::sleep_for(delay.load());
    if (is_broken) return fail(Errc::io, {}, "the disk is full");
    Receipt out;
    if (is_busy) {
      out.state = Receipt::State::busy;
      return out;
    }
    const std::lock_guard lock(mutex_);
    last_feed = feed;
    last_sender = sender;
    for (std::size_t i = 0; i < lines.size(); ++i) {
      if (lines[i] == "bad") {
        out.refused.push_back({i + 1, "is \"bad\""});
        ++out.refused_count;
        continue;
      }
      ++out.acknowledged;
      taken.push_back(std::move(lines[i]));
    }
    return out;
  }
  Status command(const Command& command) override {
    if (command.case_id == "none") return fail(Errc::unknown, {}, "no such case");
    if (command.case_id == "done") return fail(Errc::infeasible, {}, "it is over");
    const std::lock_guard lock(mutex_);
    commands.push_back(command);
    return {};
  }
  Result<std::string> sli(Timestamp from, Timestamp to) override {
    return JsonObject().add("minutes", (to.ns - from.ns) / ns_per_minute).text();
  }
  Result<std::string> ledger() override { return std::string(R"({"repairs":[]})"); }
  Result<std::string> view(View view) override {
    return JsonObject().add("view", static_cast<int>(view)).text();
  }
  Result<std::string> records(const RecordWish& wish) override {
    JsonList items;
    for (const std::string& id : wish.ids)
      if (id != "none") items.add(JsonObject().add("id", id).add("line", "said"));
    return JsonObject().add("items", items).add("missing", JsonList()).text();
  }
  Result<std::shared_ptr<const Past>> past(Timestamp at, const IsCancelled&) override {
    if (at > past_end) return fail(Errc::value, {"at", 0, 0}, "it is not over");
    WEFT_TRY(auto documents, past_documents(past_store, at, {}));
    return std::make_shared<const Past>(Past{std::move(documents), R"({"then":1})", "{}"});
  }
  MemoryStore past_store;
  Timestamp past_end{1'000};

  std::string metrics() override { return "# TYPE weft_cases gauge\nweft_cases 2\n"; }
  Health health() override {
    return {true, !is_broken, is_broken ? "the disk is full" : "", cases_open};
  }

  std::size_t taken_count() {
    const std::lock_guard lock(mutex_);
    return taken.size();
  }

  std::atomic<bool> is_busy = false, is_broken = false;
  std::atomic<std::size_t> cases_open = 0;
  std::atomic<std::chrono::milliseconds> delay{0ms};
  std::vector<std::string> taken;
  std::vector<Command> commands;
  std::string last_feed, last_sender;

 private:
  std::mutex mutex_;
};

struct Bed {
  FakeService service;
  MemoryStore store;
  Bus bus;
  std::unique_ptr<Api> api;

  Bed() : Bed(ApiOptions{}) {}
  explicit Bed(ApiOptions options) {
    auto made = Api::listen(std::move(options), service, store, bus);
    if (!made) FAIL(made.error().text());
    api = *std::move(made);
  }
};

struct Answer {
  int status = 0;                              // 0: there was none
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;
};

inline Answer parse_answer(std::string_view text) {
  Answer out;
  const std::size_t blank = text.find("\r\n\r\n");
  if (!text.starts_with("HTTP/1.1 ") || blank == std::string_view::npos) return out;
  out.status = std::stoi(std::string(text.substr(9, 3)));
  std::string_view rest = text.substr(0, blank + 2);
  rest.remove_prefix(rest.find('\n') + 1);
  while (!rest.empty()) {
    const std::size_t end = rest.find("\r\n");
    const std::size_t colon = rest.find(": ");
    std::string name(rest.substr(0, colon));
    std::ranges::transform(name, name.begin(),
                           [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    out.headers[name] = rest.substr(colon + 2, end - colon - 2);
    rest.remove_prefix(end + 2);
  }
  out.body = text.substr(blank + 4);
  return out;
}

// One connection. Everything that it waits for ends after ten seconds.
class Client {
 public:
  explicit Client(std::uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connect(reinterpret_cast<const sockaddr*>(&to), sizeof to);
  }
  explicit Client(const std::string& path)
      : socket_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un to{};
    to.sun_family = AF_UNIX;
    path.copy(to.sun_path, sizeof to.sun_path - 1);
    connect(reinterpret_cast<const sockaddr*>(&to), sizeof to);
  }
  bool is_connected() const { return is_connected_; }
  int socket() const { return socket_.get(); }

  // False where the handshake fails.
  bool start_tls(SSL_CTX* context) {
    tls_.reset(SSL_new(context));
    SSL_set_fd(tls_.get(), socket_.get());
    return SSL_connect(tls_.get()) == 1;
  }
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const auto count =
          tls_ ? SSL_write(tls_.get(), bytes.data(), static_cast<int>(bytes.size()))
               : static_cast<int>(::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL));
      if (count <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(count));
    }
    return true;
  }
  // What comes next, "" at the end or after that time.
  std::string receive(std::chrono::milliseconds patience = 10s) {
    return ahead_.empty() ? receive_more(patience) : std::exchange(ahead_, {});
  }
  // Receives until `wanted` stands in all that came; "" where it never does.
  std::string receive_until(std::string_view wanted) {
    const auto deadline = std::chrono::steady_clock::now() + 60s;
    while (ahead_.find(wanted) == std::string::npos) {
      const std::string more = receive_more(10s);
      if (more.empty() || std::chrono::steady_clock::now() > deadline) return "";
      ahead_ += more;
    }
    const std::size_t end = ahead_.find(wanted) + wanted.size();
    std::string out = ahead_.substr(0, end);
    ahead_.erase(0, end);
    return out;
  }
  // All to the end of the connection.
  std::string receive_all() {
    std::string out;
    for (std::string more = receive(); !more.empty(); more = receive()) out += more;
    return out;
  }
  Answer answer(std::string_view method = "GET") {
    Answer out = parse_answer(receive_until("\r\n\r\n"));
    const auto at = out.headers.find("content-length");
    const std::size_t size =
        at == out.headers.end() || method == "HEAD" ? 0 : std::stoul(at->second);
    while (ahead_.size() < size) {
      const std::string more = receive_more(10s);
      if (more.empty()) break;
      ahead_ += more;
    }
    out.body = ahead_.substr(0, size);
    ahead_.erase(0, size);
    return out;
  }
  Answer call(std::string_view method, std::string_view target, std::string_view body = "",
              std::string_view headers = "") {
    send(request(method, target, body, headers));
    return answer(method);
  }
  static std::string request(std::string_view method, std::string_view target,
                             std::string_view body = "", std::string_view headers = "") {
    const bool has_type = headers.find("Content-Type") != std::string_view::npos;
    const bool has_body = !body.empty() || method == "POST" || method == "PUT";
    const std::string length =
        has_body ? fmt::format("Content-Length: {}\r\n", body.size()) : std::string();
    const char* type = has_body && !has_type
                           ? (body.starts_with("{") ? "Content-Type: application/json\r\n"
                                                    : "Content-Type: text/plain\r\n")
                           : "";
    return fmt::format("{} {} HTTP/1.1\r\nHost: localhost\r\n{}{}{}\r\n{}", method, target, headers,
                       length, type, body);
  }

 private:
  struct FreeTls {
    void operator()(SSL* tls) const { SSL_free(tls); }
  };

  std::string receive_more(std::chrono::milliseconds patience) {
    std::array<char, 16384> block{};
    pollfd on{socket_.get(), POLLIN, 0};
    if ((!tls_ || SSL_pending(tls_.get()) == 0) &&
        ::poll(&on, 1, static_cast<int>(patience.count())) <= 0)
      return "";
    const auto count = tls_
                           ? SSL_read(tls_.get(), block.data(), static_cast<int>(block.size()))
                           : static_cast<int>(::recv(socket_.get(), block.data(), block.size(), 0));
    return count > 0 ? std::string(block.data(), static_cast<std::size_t>(count)) : "";
  }

  void connect(const sockaddr* to, socklen_t size) {
    is_connected_ = ::connect(socket_.get(), to, size) == 0;
    const timeval patience{10, 0};
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  }

  Fd socket_;
  std::unique_ptr<SSL, FreeTls> tls_;
  bool is_connected_ = false;
  std::string ahead_;
};

// One request over a connection of its own.
inline Answer call(const Api& api, std::string_view method, std::string_view target,
                   std::string_view body = "", std::string_view headers = "") {
  return Client(api.port()).call(method, target, body, headers);
}

// `check` becomes true within ten seconds.
template <class Check>
bool eventually(Check check) {
  for (int i = 0; i < 2000; ++i) {
    if (check()) return true;
    std::this_thread::sleep_for(5ms);
  }
  return check();
}

}  // namespace weft::serve::testing
