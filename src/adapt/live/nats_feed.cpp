#include "adapt/live/nats_feed.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <optional>
#include <span>
#include <utility>

#include "adapt/live/http_post.hpp"
#include "base/plural.hpp"
#include "base/text.hpp"

namespace weft::adapt::live {
namespace {

using std::chrono::milliseconds;

constexpr const char* consumer_name = "weft-serve";
constexpr int fetch_most = 256;          // messages at a time
constexpr milliseconds fetch_wait{200};  // for the first of them
constexpr milliseconds retry{500};
constexpr milliseconds flush_wait{1'000};              // for acknowledgements to leave
constexpr std::int64_t redelivery_ns = 5'000'000'000;  // of what was not acknowledged
constexpr std::int64_t unacknowledged_most = std::int64_t{4} * fetch_most;
constexpr std::size_t accept_bytes = std::size_t{4} << 20;  // more goes in several calls
constexpr milliseconds look_every{5'000};
constexpr std::size_t replicas_most = 5;  // the server's own limit

struct FeedName {
  std::string_view subject, feed;
};
constexpr std::array<FeedName, 3> feeds{
    {{"records", "record"}, {"syslog", "syslog"}, {"evidence", "evidence"}}};

std::string stream_name(const NatsUrl& url) {
  std::string out = url.subject;
  for (char& c : out)
    c = c == '.' ? '-' : static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  return out;
}

std::unexpected<Error> failed(std::string what, natsStatus status, std::string hint = {}) {
  return fail(Errc::io, {}, fmt::format("NATS: {}: {}", what, nats_trouble(status)),
              std::move(hint));
}

std::string_view body_of(const natsMsg* message) {
  return {natsMsg_GetData(message), static_cast<std::size_t>(natsMsg_GetDataLength(message))};
}

// "" where its subject is that of no feed.
std::string_view feed_of(const natsMsg* message) {
  const std::string_view subject = natsMsg_GetSubject(message);
  const std::string_view last = subject.substr(subject.rfind('.') + 1);
  const auto* const at = std::ranges::find(feeds, last, &FeedName::subject);
  return at == feeds.end() ? std::string_view() : at->feed;
}

// Messages that were fetched, and are given back where nobody acknowledged them.
class Messages {
 public:
  Messages() = default;
  ~Messages() {
    for (natsMsg* const message : all().subspan(done_)) natsMsg_Nak(message, nullptr);
    natsMsgList_Destroy(&list_);
  }
  Messages(const Messages&) = delete;
  Messages& operator=(const Messages&) = delete;

  natsStatus fetch(natsSubscription* from) {
    return natsSubscription_Fetch(&list_, from, fetch_most, fetch_wait.count(), nullptr);
  }
  std::span<natsMsg* const> all() const {
    return {list_.Msgs, static_cast<std::size_t>(list_.Count)};
  }
  // The next so many need not be given back.
  void settle(std::size_t count) { done_ += count; }

 private:
  natsMsgList list_{};
  std::size_t done_ = 0;
};

}  // namespace

Result<NatsFeedSettings> read_nats_feed(const Config& config) {
  Errors errors;
  Reader reader(config, "nats", errors);
  NatsFeedSettings out;
  if (auto url = parse_nats_url({reader.text("url", std::nullopt), "nats.url"}))
    out.url = *std::move(url);
  else if (reader.has("url"))
    reader.error(Errc::value, reader.where("url"), url.error().what, url.error().hint);
  out.access.tls = {.ca = reader.text("ca", ""),
                    .certificate = reader.text("certificate", ""),
                    .key = reader.text("key", "")};
  if (const std::string file = reader.text("token_file", ""); !file.empty()) {
    if (auto token = read_secret(file))
      out.access.token = *std::move(token);
    else
      reader.error(std::move(token).error());
  }
  out.replicas = reader.count("replicas", out.replicas, 1, replicas_most);
  const Bytes size = reader.bytes("size", Bytes{static_cast<std::int64_t>(out.bytes_max)});
  if (size < 1_MiB) reader.error(Errc::value, reader.where("size"), "size must be 1 MiB or more");
  out.bytes_max = static_cast<std::uint64_t>(size.count);
  reader.finish();
  if (!errors.empty()) return std::unexpected(combine(std::move(errors)));
  return out;
}

// One connection, until it breaks.
class NatsFeed::Session {
 public:
  Session(NatsFeed& feed, NatsConnection connection)
      : feed_(feed),
        connection_(std::move(connection)),
        stream_(stream_name(feed.settings_.url)),
        subjects_(feed.settings_.url.subject + ".*") {}

  ~Session() { natsConnection_FlushTimeout(connection_.get(), flush_wait.count()); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  Status begin() {
    WEFT_TRY_STATUS(find_stream());
    jsSubOptions options;
    jsSubOptions_Init(&options);
    options.Stream = stream_.c_str();
    options.ManualAck = true;
    options.Config.AckPolicy = js_AckExplicit;
    options.Config.AckWait = redelivery_ns;
    options.Config.MaxAckPending = unacknowledged_most;
    natsSubscription* made = nullptr;
    const natsStatus status = js_PullSubscribe(&made, connection_.stream(), subjects_.c_str(),
                                               consumer_name, nullptr, &options, nullptr);
    if (status != NATS_OK)
      return failed(
          fmt::format("stream {} cannot be read", stream_), status,
          fmt::format("a consumer {} with other settings is in the way: remove it", consumer_name));
    subscription_.reset(made);
    return {};
  }

  // What is there, or nothing after a moment.
  Status take(const std::stop_token& stop) {
    Messages messages;
    const natsStatus status = messages.fetch(subscription_.get());
    if (status != NATS_OK && status != NATS_TIMEOUT)
      return failed(fmt::format("stream {} cannot be read", stream_), status);
    for (auto rest = messages.all(); !rest.empty();) {
      WEFT_TRY(const std::size_t count, take_some(rest, stop));
      if (count == 0) return {};  // it is to stop
      messages.settle(count);
      rest = rest.subspan(count);
    }
    return check_consumer();
  }

 private:
  Status find_stream() {
    jsStreamInfo* found = nullptr;
    natsStatus status =
        js_GetStreamInfo(&found, connection_.stream(), stream_.c_str(), nullptr, nullptr);
    const NatsHandle<jsStreamInfo, jsStreamInfo_Destroy> info(found);
    if (status == NATS_NOT_FOUND) return make_stream();
    if (status != NATS_OK)
      return failed(fmt::format("stream {} cannot be found", stream_), status,
                    "JetStream must be enabled: nats-server --jetstream");
    const jsStreamConfig& config = *found->Config;
    if (config.Discard == js_DiscardOld &&
        (config.MaxBytes > 0 || config.MaxMsgs > 0 || config.MaxAge > 0))
      feed_.log_(fmt::format(
          "NATS: stream {} drops its oldest messages when full, read or not: set its discard "
          "policy to new and no maximum age",
          stream_));
    return {};
  }

  Status make_stream() {
    std::array<const char*, 1> subjects{subjects_.c_str()};
    jsStreamConfig config;
    jsStreamConfig_Init(&config);
    config.Name = stream_.c_str();
    config.Subjects = subjects.data();
    config.SubjectsLen = static_cast<int>(subjects.size());
    config.Retention = js_WorkQueuePolicy;
    config.Discard = js_DiscardNew;
    config.Storage = js_FileStorage;
    config.Replicas = feed_.settings_.replicas;
    config.MaxBytes = static_cast<std::int64_t>(feed_.settings_.bytes_max);
    const natsStatus status =
        js_AddStream(nullptr, connection_.stream(), &config, nullptr, nullptr);
    if (status != NATS_OK)
      return failed(fmt::format("stream {} cannot be made", stream_), status,
                    "it needs as many servers as replicas, and room for size: on each");
    feed_.log_(fmt::format("NATS: stream {} made for {}, {}", stream_, subjects_,
                           counted(feed_.settings_.replicas, "replica")));
    return {};
  }

  // The first messages of one feed: how many, once they are durable; 0 where it is to stop before.
  Result<std::size_t> take_some(std::span<natsMsg* const> messages, const std::stop_token& stop) {
    const std::string_view feed = feed_of(messages[0]);
    if (feed.empty()) {
      feed_.log_(
          fmt::format("NATS: a message of subject {} was dropped: the subject does not end with "
                      "the name of a feed",
                      natsMsg_GetSubject(messages[0])));
      natsMsg_Term(messages[0], nullptr);
      const std::scoped_lock lock(feed_.mutex_);
      ++feed_.counts_.dropped;
      return 1;
    }
    std::vector<std::string> lines;
    std::size_t count = 0, bytes = 0;
    for (; count < messages.size() && feed_of(messages[count]) == feed; ++count) {
      const std::string_view body = body_of(messages[count]);
      bytes += body.size();
      if (count > 0 && bytes > accept_bytes) break;
      for (const std::string_view line : split(body, '\n'))
        if (!line.empty()) lines.emplace_back(line);
    }
    if (!hand_on(feed, lines, messages, stop)) return 0;
    for (natsMsg* const message : messages.first(count))
      if (const natsStatus status = natsMsg_Ack(message, nullptr); status != NATS_OK)
        return failed("an acknowledgement cannot be sent", status);
    const std::scoped_lock lock(feed_.mutex_);
    feed_.counts_.messages += count;
    feed_.counts_.lines += lines.size();
    return count;
  }

  // Until they are taken, while the bus waits; false where it is to stop before that.
  bool hand_on(std::string_view feed, const std::vector<std::string>& lines,
               std::span<natsMsg* const> held, const std::stop_token& stop) const {
    for (;;) {
      const Status taken = feed_.accept_(feed, lines);
      feed_.note(taken, true);
      if (taken) return true;
      std::mutex mutex;
      std::condition_variable_any changed;
      std::unique_lock lock(mutex);
      changed.wait_for(lock, stop, retry, [] { return false; });
      if (stop.stop_requested()) return false;
      for (natsMsg* const message : held) natsMsg_InProgress(message, nullptr);
    }
  }

  // Now and then: how much waits, and whether what comes will be delivered.
  Status check_consumer() {
    const auto now = std::chrono::steady_clock::now();
    if (looked_ && now - *looked_ < look_every) return {};
    looked_ = now;
    jsConsumerInfo* found = nullptr;
    natsStatus status = js_GetConsumerInfo(&found, connection_.stream(), stream_.c_str(),
                                           consumer_name, nullptr, nullptr);
    const NatsHandle<jsConsumerInfo, jsConsumerInfo_Destroy> consumer(found);
    if (status != NATS_OK) return {};  // the next fetch tells
    {
      const std::scoped_lock lock(feed_.mutex_);
      feed_.counts_.waiting = found->NumPending + static_cast<std::uint64_t>(std::max<std::int64_t>(
                                                      found->NumAckPending, 0));
    }
    jsStreamInfo* read = nullptr;  // after the consumer, whom it is never behind
    status = js_GetStreamInfo(&read, connection_.stream(), stream_.c_str(), nullptr, nullptr);
    const NatsHandle<jsStreamInfo, jsStreamInfo_Destroy> stream(read);
    if (status != NATS_OK || read->State.LastSeq >= found->Delivered.Stream) return {};
    // A server (seen with 2.9.10) that is killed while the stream is empty numbers it from 1 again,
    // and the consumer would pass over as many messages as it ever had.
    js_DeleteConsumer(connection_.stream(), stream_.c_str(), consumer_name, nullptr, nullptr);
    return fail(
        Errc::io, {},
        fmt::format("NATS: stream {} starts again at message {}, and {} were read of it: the "
                    "server lost its count; reading from the start",
                    stream_, read->State.FirstSeq, found->Delivered.Stream));
  }

  NatsFeed& feed_;
  NatsConnection connection_;
  std::string stream_, subjects_;
  NatsHandle<natsSubscription, natsSubscription_Destroy> subscription_;
  std::optional<std::chrono::steady_clock::time_point> looked_;
};

NatsFeed::NatsFeed(NatsFeedSettings settings, Accept accept, Log log)
    : settings_(std::move(settings)),
      accept_(std::move(accept)),
      log_(std::move(log)),
      thread_([this](const std::stop_token& stop) { run(stop); }) {}

NatsFeed::~NatsFeed() {
  thread_.request_stop();
  thread_.join();
}

NatsFeed::Counts NatsFeed::counts() const {
  const std::scoped_lock lock(mutex_);
  return counts_;
}

void NatsFeed::note(const Status& status, bool is_connected) {
  const std::string trouble = status ? "" : status.error().text();
  if (trouble != trouble_) log_(trouble.empty() ? "NATS: lines are taken again" : trouble);
  trouble_ = trouble;
  const std::scoped_lock lock(mutex_);
  counts_.is_connected = is_connected;
  counts_.failures += status ? 0 : 1;
}

void NatsFeed::run(const std::stop_token& stop) {
  const auto session = [&]() -> Status {
    WEFT_TRY(NatsConnection connection,
             NatsConnection::open(settings_.url, settings_.access, settings_.timeout));
    Session one(*this, std::move(connection));
    WEFT_TRY_STATUS(one.begin());
    note({}, true);
    while (!stop.stop_requested()) WEFT_TRY_STATUS(one.take(stop));
    return {};
  };
  std::mutex mutex;
  std::condition_variable_any changed;
  while (!stop.stop_requested()) {
    if (const Status ended = session(); !ended) note(ended, false);
    std::unique_lock lock(mutex);
    changed.wait_for(lock, stop, retry, [] { return false; });
  }
  nats_ReleaseThreadMemory();
}

}  // namespace weft::adapt::live
