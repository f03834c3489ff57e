#include "adapt/gnmi/subscriber.hpp"

#include <fmt/format.h>
#include <gnmi.grpc.pb.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <deque>
#include <limits>
#include <optional>
#include <utility>

#include "adapt/gnmi/channel.hpp"
#include "adapt/gnmi/path_search.hpp"
#include "adapt/gnmi/request.hpp"
#include "base/hash.hpp"

namespace weft::adapt::gnmi {
namespace {

using ::gnmi::SubscribeRequest;
using ::gnmi::SubscribeResponse;
using port::Instant;

constexpr Instant never{std::numeric_limits<std::int64_t>::max()};
constexpr std::int64_t ns_per_ms = 1'000'000;

}  // namespace

enum class Step : std::uint8_t { asked, started, wrote, read, finished };
struct Line;

// What gRPC gives back when an operation is over.
struct Tag {
  Line* line = nullptr;
  Step step = Step::asked;
};

// One attempt at a target. It must live until every operation that was begun is over.
struct Session {
  explicit Session(Line& line)
      : asked{&line, Step::asked},
        started{&line, Step::started},
        wrote{&line, Step::wrote},
        read{&line, Step::read},
        finished{&line, Step::finished} {}

  std::unique_ptr<::gnmi::gNMI::Stub> caller;
  grpc::ClientContext asking, streaming;
  ::gnmi::CapabilityResponse capabilities;
  std::unique_ptr<grpc::ClientAsyncResponseReader<::gnmi::CapabilityResponse>> ask;
  std::unique_ptr<grpc::ClientAsyncReaderWriter<SubscribeRequest, SubscribeResponse>> stream;
  SubscribeRequest request;
  SubscribeResponse response;
  grpc::Status status;
  Tag asked, started, wrote, read, finished;
  std::uint32_t open = 0;  // operations that were begun and are not over
  bool is_writing = false, is_finishing = false, has_spoken = false;
  bool is_short = false;  // it was only to see whether the target takes these paths

  void cancel() {
    asking.TryCancel();
    streaming.TryCancel();
  }
};

// A target and all that is known of it.
struct Line {
  Line(Target its, PathSearch its_search, MisreadTable& misread, const LeafSink& sink)
      : target(std::move(its)),
        decoder(target.device, misread, sink),
        search(std::move(its_search)) {
    report.device = target.device;
  }

  Target target;
  Decoder decoder;
  TargetReport report;
  std::unique_ptr<Session> session;
  std::vector<Encoding> encodings;  // that it may be asked for; none: not known yet
  std::size_t encoding = 0;         // which of them
  PathSearch search;
  std::uint32_t attempts = 0;  // since it last synced
  Instant next_try, last_heard, next_poll = never;
  std::string reason;        // why we ended the session; "": we did not
  bool is_complete = false;  // of Mode::once: nothing more is wanted
};

namespace {

// What cannot be told on change may be sampled.
PathSearch path_search(const SubscriberOptions& options) {
  std::vector<bool> is_on_change;
  for (const Subscription& one : options.subscriptions)
    is_on_change.push_back(options.mode == Mode::stream && one.trigger == Trigger::on_change);
  return PathSearch(options.subscriptions.size(), std::move(is_on_change));
}

}  // namespace

struct GnmiSubscriber::Impl {
  Impl(std::vector<Target> targets, SubscriberOptions its_options, port::Clock& its_clock)
      : options(std::move(its_options)), clock(its_clock) {
    const Instant now = clock.now();
    last_seen = next_check = now;
    for (Target& target : targets) {
      Line& line =
          lines.emplace_back(std::move(target), path_search(options), misread, options.sink);
      line.last_heard = now;
      line.next_try = now + static_cast<std::int64_t>(lines.size() - 1) * ns_per_ms;
    }
  }
  ~Impl() {
    for (Line& line : lines)
      if (line.session) line.session->cancel();
    queue.Shutdown();
    void* tag = nullptr;
    bool ok = false;
    while (queue.Next(&tag, &ok)) {
    }
    for (Line& line : lines) line.session.reset();  // before the queue that they are of
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  // Sessions.
  void begin(Line& line);
  void begin_stream(Line& line);
  void finish(Session& session);
  void end(Line& line, Instant now);
  void on(const Tag& tag, bool ok, Instant now);
  void on_asked(Line& line);
  void on_message(Line& line, Instant now);
  void poll(Line& line);
  void complete(Line& line);
  bool on_refused(Line& line);

  // Time.
  void forgive_absence(Instant now);
  void check_times(Instant now);
  void check_silence(Line& line, Instant now);
  void say_reachable(const Line& line, double value);
  void wake_at(Instant when) { next_check = std::min(next_check, when); }
  std::int64_t backoff_ns(const Line& line) const;

  // True where nothing more was there.
  bool pump(std::size_t samples_max);
  void wait(Instant until);
  bool all_complete() const { return std::ranges::all_of(lines, &Line::is_complete); }

  SubscriberOptions options;
  port::Clock& clock;
  MisreadTable misread;
  std::deque<Line> lines;  // tags point to them
  grpc::CompletionQueue queue;
  std::vector<port::Sample> samples;  // that nobody has taken
  Instant last_seen, next_check;
  std::size_t handled = 0;  // events since the times were checked
};

void GnmiSubscriber::Impl::begin(Line& line) {
  line.reason.clear();
  line.decoder.reset();
  line.session = std::make_unique<Session>(line);
  Session& session = *line.session;
  session.caller = ::gnmi::gNMI::NewStub(grpc::CreateCustomChannel(
      line.target.address, credentials_of(line.target),
      channel_arguments(line.target, options.message_bytes_max, options.silence_ns)));
  if (options.encoding != Encoding::automatic) line.encodings = {options.encoding};
  if (!line.encodings.empty()) return begin_stream(line);
  add_password(line.target, session.asking);
  session.ask = session.caller->AsyncCapabilities(&session.asking, {}, &queue);
  session.ask->Finish(&session.capabilities, &session.status, &session.asked);
  ++session.open;
}

void GnmiSubscriber::Impl::begin_stream(Line& line) {
  Session& session = *line.session;
  fill_request(options, line.target, line.encodings[line.encoding], line.search.paths(),
               session.request);
  add_password(line.target, session.streaming);
  session.stream = session.caller->PrepareAsyncSubscribe(&session.streaming, &queue);
  session.stream->StartCall(&session.started);
  ++session.open;
}

void GnmiSubscriber::Impl::on_asked(Line& line) {
  Session& session = *line.session;
  if (session.status.ok())
    line.encodings = usable_encodings(session.capabilities);
  else if (session.status.error_code() == grpc::StatusCode::UNIMPLEMENTED)
    line.encodings = {Encoding::json_ietf, Encoding::proto, Encoding::json};
  line.encoding = 0;
  if (!line.encodings.empty() && line.reason.empty()) begin_stream(line);
}

void GnmiSubscriber::Impl::finish(Session& session) {
  if (std::exchange(session.is_finishing, true)) return;
  session.stream->Finish(&session.status, &session.finished);
  ++session.open;
}

void GnmiSubscriber::Impl::on(const Tag& tag, bool ok, Instant now) {
  Line& line = *tag.line;
  Session& session = *line.session;
  ++handled;
  --session.open;
  switch (tag.step) {
    case Step::asked:
      on_asked(line);
      break;
    case Step::started:
      if (!ok) {
        finish(session);
        break;
      }
      session.is_writing = true;
      session.stream->Write(session.request, &session.wrote);
      session.stream->Read(&session.response, &session.read);
      session.open += 2;
      break;
    case Step::wrote:
      session.is_writing = false;  // the read that is open says why, where it failed
      break;
    case Step::read:
      if (!ok) {
        finish(session);
        break;
      }
      on_message(line, now);
      session.stream->Read(&session.response, &session.read);
      ++session.open;
      break;
    case Step::finished:
      break;
  }
  if (session.open == 0) end(line, now);
}

void GnmiSubscriber::Impl::on_message(Line& line, Instant now) {
  line.last_heard = now;
  line.report.is_reachable = true;
  Session& session = *line.session;
  if (!std::exchange(session.has_spoken, true)) {
    ++line.report.connects;
    say_reachable(line, 1);
    session.is_short = line.search.taken();
    if (session.is_short) session.cancel();
  }
  if (session.is_short) return;
  switch (line.decoder.take(session.response, clock.wall(), samples)) {
    case Decoder::Said::sync:
      line.report.is_synced = true;
      line.attempts = 0;
      line.next_poll = now + options.sample_ns;
      wake_at(line.next_poll);
      if (options.mode == Mode::once) complete(line);
      break;
    case Decoder::Said::error:
      line.report.last_error = readable(session.response.error().message());
      break;
    case Decoder::Said::update:
    case Decoder::Said::nothing:
      break;
  }
}

void GnmiSubscriber::Impl::complete(Line& line) {
  line.is_complete = true;
  if (line.session) line.session->cancel();
}

void GnmiSubscriber::Impl::poll(Line& line) {
  Session& session = *line.session;
  session.request.Clear();
  session.request.mutable_poll();
  session.is_writing = true;
  session.stream->Write(session.request, &session.wrote);
  ++session.open;
}

// Returns whether there is something else to be asked for at once.
bool GnmiSubscriber::Impl::on_refused(Line& line) {
  if (line.encodings.empty()) return false;
  line.encoding = (line.encoding + 1) % line.encodings.size();
  if (line.encoding != 0) return true;
  const bool is_hopeful = line.search.refused();
  line.report.refused.clear();
  for (const std::size_t path : line.search.dropped())
    line.report.refused.push_back(options.subscriptions[path].path);
  return is_hopeful;
}

void GnmiSubscriber::Impl::end(Line& line, Instant now) {
  const Session& session = *line.session;
  const auto code = session.status.error_code();
  const bool is_refused = !session.has_spoken && (code == grpc::StatusCode::INVALID_ARGUMENT ||
                                                  code == grpc::StatusCode::UNIMPLEMENTED ||
                                                  code == grpc::StatusCode::NOT_FOUND);
  const bool is_hopeful = session.is_short || (is_refused && on_refused(line));
  if (!line.is_complete) {
    line.report.is_synced = false;
    if (!session.is_short) {
      ++line.report.failures;
      line.report.last_error = line.reason.empty() ? status_text(session.status) : line.reason;
    }
    line.next_try = now + (is_hopeful ? options.backoff_least_ns : backoff_ns(line));
    line.next_poll = never;
    if (!is_hopeful) ++line.attempts;
    wake_at(line.next_try);
  }
  line.session.reset();
}

// Doubles with each attempt; three quarters to five quarters of it, so that targets which failed
// together do not come back together.
std::int64_t GnmiSubscriber::Impl::backoff_ns(const Line& line) const {
  std::int64_t out = options.backoff_least_ns;
  for (std::uint32_t i = 0; i < line.attempts && out < options.backoff_most_ns; ++i) out *= 2;
  out = std::min(out, options.backoff_most_ns);
  const std::uint64_t draw = mix64(hash_text(line.target.device) + line.attempts) % 1024;
  return out / 4 * 3 + out / 2 * static_cast<std::int64_t>(draw) / 1024;
}

void GnmiSubscriber::Impl::say_reachable(const Line& line, double value) {
  samples.push_back({clock.wall(), line.target.device, "", port::Metric::reachable, 0, value});
}

// While nobody called take(), no target could be heard: that is no silence of theirs.
void GnmiSubscriber::Impl::forgive_absence(Instant now) {
  const std::int64_t gap = now - last_seen;
  if (gap < 10 * ns_per_ms) return;
  for (Line& line : lines) line.last_heard = line.last_heard + gap;
  wake_at(now);
}

void GnmiSubscriber::Impl::check_silence(Line& line, Instant now) {
  if (now - line.last_heard < options.silence_ns) return;
  line.last_heard = now;
  line.report.is_reachable = false;
  say_reachable(line, 0);
  const std::string silence =
      fmt::format("it sent nothing for {:.3g} s", static_cast<double>(options.silence_ns) * 1e-9);
  if (line.session) {
    line.reason = silence;
    line.session->cancel();
  }
  if (options.mode != Mode::once) return;
  if (line.report.last_error.empty()) line.report.last_error = silence;
  complete(line);
}

void GnmiSubscriber::Impl::check_times(Instant now) {
  next_check = never;
  handled = 0;
  for (Line& line : lines) {
    if (line.is_complete) continue;
    check_silence(line, now);
    wake_at(line.last_heard + options.silence_ns);
    if (!line.session && !line.is_complete) {
      if (now >= line.next_try)
        begin(line);
      else
        wake_at(line.next_try);
      continue;
    }
    if (options.mode != Mode::poll || line.next_poll == never) continue;
    const Session& session = *line.session;
    const bool is_busy = session.is_writing || session.is_finishing || !line.reason.empty();
    if (now >= line.next_poll && !is_busy) {
      line.next_poll = never;  // until it has synced again
      poll(line);
    } else {
      wake_at(std::max(line.next_poll, now + 10 * ns_per_ms));
    }
  }
}

bool GnmiSubscriber::Impl::pump(std::size_t samples_max) {
  void* tag = nullptr;
  bool ok = false;
  while (samples.size() < samples_max) {
    const auto got = queue.AsyncNext(&tag, &ok, gpr_time_0(GPR_CLOCK_MONOTONIC));
    if (got != grpc::CompletionQueue::GOT_EVENT) return true;
    on(*static_cast<const Tag*>(tag), ok, clock.now());
  }
  return false;
}

void GnmiSubscriber::Impl::wait(Instant until) {
  const std::int64_t span = std::max<std::int64_t>(0, until - clock.now());
  void* tag = nullptr;
  bool ok = false;
  const auto got = queue.AsyncNext(
      &tag, &ok,
      gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_nanos(span, GPR_TIMESPAN)));
  if (got == grpc::CompletionQueue::GOT_EVENT) on(*static_cast<const Tag*>(tag), ok, clock.now());
}

GnmiSubscriber::GnmiSubscriber(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
GnmiSubscriber::GnmiSubscriber(GnmiSubscriber&&) noexcept = default;
GnmiSubscriber& GnmiSubscriber::operator=(GnmiSubscriber&&) noexcept = default;
GnmiSubscriber::~GnmiSubscriber() = default;

Result<GnmiSubscriber> GnmiSubscriber::open(std::vector<Target> targets,
                                            const SubscriberOptions& options, port::Clock& clock) {
  if (Errors errors = check(targets, options); !errors.empty())
    return std::unexpected(combine(std::move(errors)));
  // What gRPC writes to standard error also comes back as the status of a call.
  gpr_set_log_function([](gpr_log_func_args*) {});
  return GnmiSubscriber(std::make_unique<Impl>(std::move(targets), options, clock));
}

std::vector<port::Sample> GnmiSubscriber::take(std::size_t samples_max, Instant until) {
  Impl& at = *impl_;
  at.forgive_absence(at.clock.now());
  while (samples_max > 0) {
    const bool is_drained = at.pump(samples_max);
    const Instant now = at.clock.now();
    // Under a flood the queue is never empty; but each target has at most two events in it.
    const bool has_heard_all = is_drained || at.handled >= 2 * at.lines.size();
    if (has_heard_all && now >= at.next_check) at.check_times(now);
    if (!at.samples.empty() || now >= until || at.all_complete()) break;
    at.wait(std::min(until, at.next_check));
  }
  at.last_seen = at.clock.now();
  if (at.samples.size() <= samples_max) return std::exchange(at.samples, {});
  const auto end = at.samples.begin() + static_cast<std::ptrdiff_t>(samples_max);
  std::vector<port::Sample> out(std::make_move_iterator(at.samples.begin()),
                                std::make_move_iterator(end));
  at.samples.erase(at.samples.begin(), end);
  return out;
}

bool GnmiSubscriber::done() const { return impl_->samples.empty() && impl_->all_complete(); }

std::vector<TargetReport> GnmiSubscriber::targets() const {
  std::vector<TargetReport> out;
  for (const Line& line : impl_->lines) {
    out.push_back(line.report);
    out.back().decoded = line.decoder.counts();
  }
  return out;
}

const MisreadTable& GnmiSubscriber::misread() const { return impl_->misread; }

}  // namespace weft::adapt::gnmi
