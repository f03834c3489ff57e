#include "app/agent/trace_copy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "adapt/live/system_clock.hpp"
#include "base/file.hpp"
#include "base/hash.hpp"
#include "base/markup.hpp"
#include "base/text.hpp"
#include "observe/colltrace/ring.hpp"

namespace weft::app {
namespace {

namespace colltrace = observe::colltrace;
namespace fs = std::filesystem;
namespace live = adapt::live;

// Of the threads that call, as many collectives; of the network's threads, what they did for some
// dozens. The service compares the latest third of these.
constexpr std::uint32_t records_a_thread = 1024;
constexpr std::size_t processes_max = 256;  // on one host; beyond, the first by name
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
    const std::vector<Trace> traces = copy(began_ns, trouble);
    if (!traces.empty() && !rest(stop, began_ns + spread_ns)) return;
    for (const Trace& trace : traces) {
      if (const Status sent = send(trace); !sent) {
        trouble = sent.error().text();
        client_.reset();
        if (sent.error().code == Errc::io) break;  // it does not answer, or has no room
        continue;
      }
      sent_[trace.name] = {trace.digest, began_ns};
    }
    report(std::move(trouble));
  }
}

std::vector<TraceCopy::Trace> TraceCopy::copy(std::int64_t now_ns, std::string& trouble) {
  std::vector<std::string> paths;
  std::error_code error;
  for (auto entry = fs::directory_iterator(settings_.folder, error);
       !error && entry != fs::directory_iterator(); entry.increment(error))
    if (entry->path().extension() == ".ring") paths.push_back(entry->path().string());
  std::ranges::sort(paths);
  if (error) trouble = fmt::format("{}: {}", settings_.folder, error.message());
  if (paths.size() > processes_max) {
    trouble = fmt::format("only {} of {} processes are sent", processes_max, paths.size());
    paths.resize(processes_max);
  }
  std::vector<Trace> out;
  for (const std::string& path : paths) {
    auto trace = copy_one(path, now_ns);
    if (!trace) {
      if (fs::exists(path, error)) trouble = trace.error().text();  // else it has ended meanwhile
      continue;
    }
    const Sent& last = sent_[trace->name];
    if (last.digest != trace->digest || now_ns >= last.at_ns + again_ns)
      out.push_back(*std::move(trace));
  }
  std::erase_if(sent_, [&](const auto& sent) {
    return std::ranges::none_of(paths,
                                [&](const std::string& p) { return p.ends_with(sent.first); });
  });
  return out;
}

Result<TraceCopy::Trace> TraceCopy::copy_one(const std::string& path, std::int64_t now_ns) const {
  Trace out{.name = path.substr(path.rfind('/') + 1), .packed = {}};
  WEFT_TRY(std::string ring, colltrace::load_ring(path));
  WEFT_TRY_STATUS(colltrace::cut_ring(ring, path, records_a_thread));
  WEFT_TRY(const colltrace::RingTrace trace, colltrace::read_ring(ring, path));
  const bool is_gone = colltrace::is_process_gone(trace);
  out.digest = mix64(hash_text(ring) + (is_gone ? 1 : 0));
  colltrace::stamp_ring(ring, colltrace::clock_of(trace.boot_id, trace.clock),
                        is_gone ? now_ns : 0);
  WEFT_TRY(out.packed, gzip(ring));
  return out;
}

Status TraceCopy::send(const Trace& trace) {
  if (!client_) {
    WEFT_TRY(client_, live::open_service(settings_.service, settings_.tls, send_patience));
  }
  std::string path =
      fmt::format("/v1/traces/{}/{}", percent_encoded(settings_.host), percent_encoded(trace.name));
  if (!settings_.job.empty()) path += "?job=" + percent_encoded(settings_.job);
  return live::put_bytes(*client_, path, trace.packed, "application/gzip", settings_.token,
                         send_patience);
}

void TraceCopy::report(std::string trouble) {
  if (trouble.empty() != trouble_.empty())
    fmt::print(stderr, "weft agent: traces: {}\n",
               trouble.empty() ? "all are sent again" : trouble);
  trouble_ = std::move(trouble);
}

}  // namespace weft::app
