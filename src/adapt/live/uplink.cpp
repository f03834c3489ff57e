#include "adapt/live/uplink.hpp"

#include <fmt/format.h>
#include <httplib.h>

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "adapt/live/http_client.hpp"
#include "adapt/live/nats.hpp"
#include "base/text.hpp"

namespace weft::adapt::live {

// How a request ended.
struct UplinkAnswer {
  std::size_t acknowledged = 0;
  bool is_refused = false;           // the service will never take this
  std::uint64_t refused_count = 0;   // lines that it will never take, of those acknowledged
  std::vector<std::size_t> refused;  // some of them, by number from 1
  std::optional<std::chrono::milliseconds> pause;  // that it asks for
  std::string trouble;                             // "": none
  bool is_silent = false;                          // no connection, or no answer
};

// Where batches go. One thread posts; stop() may come from any.
class UplinkSender {
 public:
  virtual ~UplinkSender() = default;
  virtual UplinkAnswer post(const Spool::Batch& batch) = 0;
  // Breaks off what is under way.
  virtual void stop() = 0;
};

namespace {

using std::chrono::milliseconds;

constexpr std::size_t nats_batch_bytes = std::size_t{512} << 10;  // of 1 MiB, the server's default

// The service took the others: {"refused_count": n, "refused": [{"line": number from 1}, ...]}.
void read_refused(const nlohmann::json& body, std::size_t lines, UplinkAnswer& out) {
  const auto count = body.value("refused_count", std::uint64_t{0});
  if (count == 0 || out.acknowledged + count != lines) return;
  out.refused_count = count;
  out.acknowledged = lines;
  const auto list = body.find("refused");
  if (list == body.end() || !list->is_array()) return;
  for (const auto& row : *list)
    if (const auto at = row.find("line"); at != row.end() && at->is_number_unsigned())
      out.refused.push_back(at->get<std::size_t>());
}

UplinkAnswer read_answer(const httplib::Response& result, std::size_t lines) {
  const int status = result.status;
  if (status == 200) {
    const auto body = nlohmann::json::parse(result.body, nullptr, false);
    const auto at = body.is_object() ? body.find("acknowledged") : body.end();
    if (!body.is_object() || at == body.end() || !at->is_number_unsigned())
      return {.trouble = "the response acknowledges nothing"};
    const auto count = at->get<std::uint64_t>();
    if (count > lines) return {.trouble = "more lines acknowledged than were sent"};
    UplinkAnswer out{.acknowledged = count};
    read_refused(body, lines, out);
    if (out.acknowledged == 0) out.trouble = "nothing acknowledged";
    return out;
  }
  UplinkAnswer out{.trouble = fmt::format("status {}", status)};
  out.is_refused = status == 400 || status == 413 || status == 422;
  if (status != 429 && status != 503) return out;
  constexpr std::int64_t pause_s_max = 60;
  const std::string after = result.get_header_value("Retry-After");
  if (const auto seconds = parse_count({after, {}}))
    out.pause = std::chrono::seconds(std::clamp<std::int64_t>(*seconds, 0, pause_s_max));
  return out;
}

class HttpSender final : public UplinkSender {
 public:
  HttpSender(const UplinkOptions& options, HttpClient client)
      : path_(options.path), token_(options.token), client_(std::move(client)) {}

  UplinkAnswer post(const Spool::Batch& batch) override {
    try {
      const auto result = client_.use([&](httplib::ClientImpl& http) {
        http.set_keep_alive(true);
        if (!token_.empty()) http.set_bearer_token_auth(token_);
        return http.Post(path_, batch.body, "application/x-ndjson");
      });
      if (result) return read_answer(*result, batch.lines);
      return {.trouble = "no answer: " + client_.trouble(result.error()), .is_silent = true};
    } catch (const std::exception& error) {
      return {.trouble = error.what()};
    }
  }
  void stop() override { client_.stop(); }

 private:
  std::string path_, token_;
  HttpClient client_;
};

// A batch is a message, durable once the stream has acknowledged it.
class NatsSender final : public UplinkSender {
 public:
  NatsSender(const UplinkOptions& options, NatsUrl url)
      : url_(std::move(url)),
        access_{options.tls, options.token},
        subject_(url_.subject + "." + options.path.substr(options.path.rfind('/') + 1)),
        timeout_(options.timeout) {}
  ~NatsSender() override { nats_ReleaseThreadMemory(); }

  UplinkAnswer post(const Spool::Batch& batch) override {
    const auto connection = connected();
    if (!connection) return {.trouble = connection.error().text()};
    jsPubAck* acknowledged = nullptr;
    jsErrCode code{};
    const natsStatus status =
        js_Publish(&acknowledged, (*connection)->stream(), subject_.c_str(), batch.body.data(),
                   static_cast<int>(batch.body.size()), nullptr, &code);
    const NatsHandle<jsPubAck, jsPubAck_Destroy> ack(acknowledged);
    if (status == NATS_OK) return {.acknowledged = batch.lines};
    UplinkAnswer out{.trouble = nats_trouble(status)};
    out.is_refused = status == NATS_MAX_PAYLOAD || code == JSStreamMessageExceedsMaximumErr;
    out.is_silent = !out.is_refused && code == 0;
    if (status == NATS_NO_RESPONDERS)
      out.trouble = fmt::format(
          "no stream keeps {}: the service makes it when it starts with nats: in its configuration",
          subject_);
    return out;
  }
  void stop() override {
    const std::lock_guard guard(mutex_);
    is_over_ = true;
    if (connection_) connection_->close();
  }

 private:
  Result<std::shared_ptr<const NatsConnection>> connected() {
    {
      const std::lock_guard guard(mutex_);
      if (connection_) return connection_;
    }
    WEFT_TRY(NatsConnection made, NatsConnection::open(url_, access_, timeout_));
    const std::lock_guard guard(mutex_);
    if (is_over_) return fail(Errc::io, {}, "it is to end");
    return connection_ = std::make_shared<const NatsConnection>(std::move(made));
  }

  NatsUrl url_;
  NatsAccess access_;
  std::string subject_;
  milliseconds timeout_;
  std::mutex mutex_;  // of both
  std::shared_ptr<const NatsConnection> connection_;
  bool is_over_ = false;
};

Result<std::unique_ptr<UplinkSender>> open_sender(const UplinkOptions& options) {
  const ServiceUrl service{options.url, "--to"};
  if (is_nats(options.url)) {
    WEFT_TRY(NatsUrl url, parse_nats_url(service));
    return std::make_unique<NatsSender>(options, std::move(url));
  }
  WEFT_TRY(HttpClient client, open_service(service, options.tls, options.timeout));
  return std::make_unique<HttpSender>(options, std::move(client));
}

}  // namespace

struct Uplink::Impl {
  Impl(UplinkOptions all_options, Spool a_spool, std::unique_ptr<UplinkSender> a_sender)
      : options(std::move(all_options)),
        spool(std::move(a_spool)),
        sender(std::move(a_sender)),
        lines_max(options.batch_lines),
        pause(options.retry_first) {
    worker = std::thread([this] { work(); });
  }
  ~Impl() {
    {
      const std::lock_guard guard(mutex);
      is_over = true;
      sender->stop();
    }
    changed.notify_all();
    worker.join();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void work() {
    std::unique_lock lock(mutex);
    while (!is_over) {
      auto batch = spool.next(lines_max, options.batch_bytes);
      if (!batch) {
        fall_back(lock, {.trouble = batch.error().text()});
        continue;
      }
      if (batch->lines == 0) {
        is_idle = true;
        changed.notify_all();
        changed.wait(lock);
        continue;
      }
      counts.sent += batch->lines;
      lock.unlock();
      const UplinkAnswer answer = sender->post(*batch);
      lock.lock();
      settle(lock, *batch, answer);
    }
  }

  // Certificates are files that others renew: after a failure they are read again.
  void renew_sender() {
    if (auto fresh = open_sender(options))
      sender = *std::move(fresh);
    else
      trouble = fresh.error().text();
  }

  Status put_aside(const Spool::Batch& batch, const UplinkAnswer& answer) {
    counts.refused += answer.refused_count;
    const auto lines = split(batch.body, '\n');
    for (const std::size_t number : answer.refused)
      if (number >= 1 && number <= lines.size())
        WEFT_TRY_STATUS(spool.put_aside(std::string(lines[number - 1]) + "\n"));
    return {};
  }

  void settle(std::unique_lock<std::mutex>& lock, const Spool::Batch& batch,
              const UplinkAnswer& answer) {
    if (answer.is_refused) {
      ++counts.failures;
      trouble = answer.trouble;
      // Which line is it? Fewer at a time will tell.
      if (batch.lines > 1) {
        lines_max = std::max<std::size_t>(1, batch.lines / 2);
        return;
      }
      if (const Status aside = spool.put_aside(batch.body); !aside)
        return fall_back(lock, {.trouble = aside.error().text()});
      ++counts.refused;
      acknowledge(lock, 1);
      return;
    }
    if (answer.acknowledged > 0) {
      if (const Status aside = put_aside(batch, answer); !aside)
        return fall_back(lock, {.trouble = aside.error().text()});
      counts.acknowledged += answer.acknowledged - answer.refused_count;
      acknowledge(lock, answer.acknowledged);
    }
    if (!answer.trouble.empty()) return fall_back(lock, answer);
    trouble.clear();
    pause = options.retry_first;
    lines_max = std::min(2 * lines_max, options.batch_lines);
  }

  void acknowledge(std::unique_lock<std::mutex>& lock, std::size_t lines) {
    if (const Status done = spool.acknowledge(lines); !done)
      fall_back(lock, {.trouble = done.error().text()});
  }

  void fall_back(std::unique_lock<std::mutex>& lock, const UplinkAnswer& answer) {
    ++counts.failures;
    trouble = answer.trouble;
    if (answer.is_silent && !is_over) renew_sender();
    const milliseconds span = answer.pause.value_or(pause);
    pause = std::min(2 * pause, options.retry_max);
    changed.wait_for(lock, span, [this] { return is_over; });
  }

  UplinkOptions options;
  std::mutex mutex;  // of all below; the worker uses the sender without, and replaces it with it
  std::condition_variable changed;
  Spool spool;
  std::unique_ptr<UplinkSender> sender;
  std::size_t lines_max;
  milliseconds pause;
  Counts counts;
  std::string trouble;
  bool is_idle = false, is_over = false;
  std::thread worker;
};

Uplink::Uplink(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Uplink::Uplink(Uplink&&) noexcept = default;
Uplink& Uplink::operator=(Uplink&&) noexcept = default;
Uplink::~Uplink() = default;

Result<Uplink> Uplink::open(UplinkOptions options) {
  // A message of a bus has less room than a request.
  if (is_nats(options.url)) options.batch_bytes = std::min(options.batch_bytes, nats_batch_bytes);
  WEFT_TRY(std::unique_ptr<UplinkSender> sender, open_sender(options));
  WEFT_TRY(Spool spool, Spool::open(options.spool));
  try {
    return Uplink(std::make_unique<Impl>(std::move(options), std::move(spool), std::move(sender)));
  } catch (const std::exception& error) {
    return fail(Errc::io, {"--to", 0, 0}, error.what(), "check the address and the certificates");
  }
}

Status Uplink::send(std::span<const std::string> lines, std::string_view mark) {
  const std::lock_guard guard(impl_->mutex);
  WEFT_TRY_STATUS(impl_->spool.append(lines, mark));
  if (lines.empty()) return {};
  impl_->is_idle = false;
  impl_->changed.notify_all();
  return {};
}

std::string Uplink::mark() const {
  const std::lock_guard guard(impl_->mutex);
  return impl_->spool.mark();
}

Uplink::Counts Uplink::counts() const {
  const std::lock_guard guard(impl_->mutex);
  Counts out = impl_->counts;
  out.waiting_bytes = impl_->spool.waiting_bytes();
  return out;
}

std::string Uplink::trouble() const {
  const std::lock_guard guard(impl_->mutex);
  return impl_->trouble;
}

bool Uplink::flush(milliseconds most) {
  std::unique_lock lock(impl_->mutex);
  return impl_->changed.wait_for(lock, most, [this] { return impl_->is_idle; });
}

}  // namespace weft::adapt::live
