#include "app/agent/trace_copy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <utility>

#include "adapt/live/system_clock.hpp"
#include "base/file.hpp"
#include "base/hash.hpp"
#include "base/markup.hpp"
#include "base/text.hpp"
#include "observe/colltrace/ring.hpp"
#include "os/log.hpp"

namespace weft::app {
namespace {

namespace colltrace = observe::colltrace;
namespace fs = std::filesystem;
namespace live = adapt::live;

// Of the threads that call, as many collectives; of the network's threads, what they did for some
// dozens. The service compares the latest third of these.
constexpr std::uint32_t records_a_thread = 1024;
constexpr std::size_t processes_max = 256;  // on one host, with those that have ended
constexpr std::int64_t again_ns = 5 * ns_per_minute;
constexpr std::chrono::milliseconds send_patience{10'000};

std::int64_t now_ns() { return live::SystemClock().wall().ns; }

}  // namespace

Result<std::unique_ptr<TraceCopy>> TraceCopy::open(TraceCopySettings settings) {
  std::error_code error;
  if (fs::directory_iterator(settings.folder, error); error)
    return fail(Errc::io, {"--traces", 0, 0},
                fmt::format("cannot read the folder {}: {}", settings.folder, error.message()),
                "name the folder of the job's rings, e.g. /dev/shm");
  return std::make_unique<TraceCopy>(std::move(settings));
}

TraceCopy::TraceCopy(TraceCopySettings settings)
    : settings_(std::move(settings)), thread_([this](const std::stop_token& stop) { run(stop); }) {}

bool TraceCopy::rest(const std::stop_token& stop, std::int64_t until_ns) {
  std::unique_lock lock(mutex_);
  const std::int64_t rest_ns = std::min(until_ns - now_ns(), settings_.every_ns);  // time may step
  wake_.wait_for(lock, stop, std::chrono::nanoseconds(rest_ns), [] { return false; });
  return !stop.stop_requested();
}

void TraceCopy::run(const std::stop_token& stop) {
  const auto spread_ns = static_cast<std::int64_t>(
      mix64(hash_text(settings_.host)) % static_cast<std::uint64_t>(settings_.every_ns / 2));
  while (rest(stop, (now_ns() / settings_.every_ns + 1) * settings_.every_ns)) {
    const std::int64_t began_ns = now_ns();
    std::string trouble;
    const std::vector<Trace> traces = copy(stop, began_ns, trouble);
    if (!traces.empty() && !rest(stop, began_ns + spread_ns)) return;
    for (const Trace& trace : traces) {
      const Status sent = send_patiently(stop, trace, began_ns + settings_.every_ns);
      if (stop.stop_requested()) return;
      if (sent) {
        Sent& last = sent_[trace.name];
        const bool is_new = last.first_ns == 0 || last.digest != trace.digest;
        last = {trace.digest, is_new ? began_ns : last.first_ns, began_ns};
        continue;
      }
      trouble = sent.error().text();
      if (sent.error().code == Errc::io) break;  // for as long as this copy is of now
    }
    if (!traces.empty() || !trouble.empty()) report(std::move(trouble));
  }
}

// A service that does not answer, or is busy with another trace, is asked again until `until_ns`,
// after 1 s, 2 s, 4 s..., each host at its own time.
Status TraceCopy::send_patiently(const std::stop_token& stop, const Trace& trace,
                                 std::int64_t until_ns) {
  const auto own_ns = static_cast<std::int64_t>(mix64(hash_text(settings_.host)) % ns_per_s);
  for (std::int64_t wait_ns = ns_per_s;; wait_ns *= 2) {
    Status sent = send(stop, trace);
    if (sent || sent.error().code != Errc::io) return sent;
    client_.reset();
    const std::int64_t next_ns = now_ns() + wait_ns + own_ns;
    if (next_ns >= until_ns || !rest(stop, next_ns)) return sent;
  }
}

std::vector<TraceCopy::Trace> TraceCopy::copy(const std::stop_token& stop, std::int64_t now_ns,
                                              std::string& trouble) {
  using When = fs::file_time_type;
  std::vector<std::pair<When, std::string>> files;  // the newest first
  std::error_code error;
  for (auto entry = fs::directory_iterator(settings_.folder, error);
       !error && entry != fs::directory_iterator(); entry.increment(error)) {
    std::error_code gone;
    if (entry->path().extension() == ".ring" &&
        entry->symlink_status(gone).type() == fs::file_type::regular)
      files.emplace_back(entry->last_write_time(gone), entry->path().string());
  }
  if (error)
    trouble = fmt::format("cannot read the folder {}: {}", settings_.folder, error.message());
  std::ranges::sort(files, std::ranges::greater());
  const bool are_too_many = files.size() > processes_max;
  if (are_too_many && !were_too_many_)
    log(LogLevel::warning, "weft agent",
        fmt::format("{} holds {} rings: only the newest {} are read", settings_.folder,
                    files.size(), processes_max));
  were_too_many_ = are_too_many;
  if (are_too_many) files.resize(processes_max);
  std::vector<Trace> all;
  for (const auto& [when, path] : files) {
    if (stop.stop_requested()) return {};
    auto trace = copy_one(path, now_ns);
    if (trace) {
      if (*trace) all.push_back(**std::move(trace));
    } else if (fs::exists(path, error)) {  // else it has ended meanwhile
      trouble = trace.error().text();
    }
  }
  std::vector<colltrace::RingLife> lives;
  for (const Trace& trace : all) lives.push_back(trace.life);
  const std::vector<bool> are_current = colltrace::are_current(lives);
  std::vector<Trace> out;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (are_current[i] && !all[i].packed.empty()) out.push_back(std::move(all[i]));
  std::erase_if(sent_, [&](const auto& sent) {
    return std::ranges::none_of(files, [&](const auto& file) {
      return file.second.substr(file.second.rfind('/') + 1) == sent.first;
    });
  });
  return out;
}

// None: of a process that has ended in order, or of another machine's. Without `packed`: it was
// sent not long ago, and nothing has changed.
Result<std::optional<TraceCopy::Trace>> TraceCopy::copy_one(const std::string& path,
                                                            std::int64_t now_ns) const {
  Trace out{.name = path.substr(path.rfind('/') + 1), .packed = {}};
  WEFT_TRY(std::string ring, colltrace::load_ring(path, colltrace::Links::refuse));
  WEFT_TRY(colltrace::RingTrace trace, colltrace::read_ring(ring, path));
  if (trace.is_finished || !colltrace::is_of_this_machine(trace)) return std::nullopt;
  trace.is_gone = colltrace::is_process_gone(trace);
  out.life = colltrace::life_of(trace, settings_.host);
  colltrace::cut_ring(ring, records_a_thread);
  out.digest = mix64(hash_text(ring) + (trace.is_gone ? 1 : 0));
  const auto last = sent_.find(out.name);
  if (last != sent_.end() && last->second.digest == out.digest) {
    const std::int64_t age_ns = last->second.at_ns - last->second.first_ns;
    if (now_ns - last->second.at_ns < std::min(std::max(age_ns, ns_per_s), again_ns)) return out;
  }
  colltrace::stamp_ring(ring, colltrace::clock_of(trace.boot_id, trace.clock),
                        trace.is_gone ? now_ns : 0);
  WEFT_TRY(out.packed, gzip(ring));
  return out;
}

Status TraceCopy::send(const std::stop_token& stop, const Trace& trace) {
  if (!client_) {
    WEFT_TRY(client_, live::open_service(settings_.service, settings_.tls, send_patience));
  }
  std::string path =
      fmt::format("/v1/traces/{}/{}", percent_encoded(settings_.host), percent_encoded(trace.name));
  const std::string& job = settings_.job.empty() ? trace.life.job : settings_.job;
  if (!job.empty()) path += "?job=" + percent_encoded(job);
  const std::stop_callback end_at_once(stop, [this] { client_->stop(); });
  return live::put_bytes(*client_, path, trace.packed, "application/gzip", settings_.token,
                         send_patience);
}

void TraceCopy::report(std::string trouble) {
  if (trouble.empty() != trouble_.empty())
    log(trouble.empty() ? LogLevel::info : LogLevel::warning, "weft agent",
        "traces: " + (trouble.empty() ? "all are sent again" : trouble));
  trouble_ = std::move(trouble);
}

}  // namespace weft::app
