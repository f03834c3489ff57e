#include "operate/jobs/traces.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "base/file.hpp"
#include "base/markup.hpp"
#include "base/text.hpp"
#include "observe/colltrace/load.hpp"
#include "observe/colltrace/network.hpp"
#include "observe/colltrace/trace_json.hpp"
#include "observe/colltrace/verdict.hpp"

namespace weft::operate::jobs {
namespace {

namespace colltrace = observe::colltrace;
namespace fs = std::filesystem;

constexpr std::size_t name_bytes_max = 200;
constexpr std::string_view incoming = ".incoming", packed_end = ".gz";

// As a file's name, which never begins with a dot.
std::string file_name(std::string_view text) {
  std::string out = percent_encoded(text);
  if (out.starts_with('.')) out.replace(0, 1, "%2E");
  return out;
}

std::string text_of_file_name(std::string_view name) {
  std::string out;
  for (std::size_t i = 0; i < name.size(); ++i) {
    unsigned byte = 0;
    const char* const digits = name.data() + i + 1;
    if (name[i] == '%' && i + 2 < name.size() &&
        std::from_chars(digits, digits + 2, byte, 16).ptr == digits + 2) {
      out += static_cast<char>(byte);
      i += 2;
    } else {
      out += name[i];
    }
  }
  return out;
}

Status check_name(std::string_view what, std::string_view name) {
  const bool is_good =
      !name.empty() && name.size() <= name_bytes_max &&
      std::ranges::none_of(name, [](unsigned char c) { return c < ' ' || c > '~'; });
  if (is_good) return {};
  return fail(Errc::value, {}, fmt::format("{} is not the name of a {}", quote(name), what),
              fmt::format("use 1 to {} printable ASCII characters", name_bytes_max));
}

Status io_failure(const std::string& path, const std::error_code& error) {
  return fail(Errc::io, {path, 0, 0}, "cannot keep traces: " + error.message(),
              "check the folder of --traces");
}

Timestamp time_of_file(const fs::path& path) {
  std::error_code error;
  const auto written = fs::last_write_time(path, error);
  if (error) return {};
  const auto system = std::chrono::file_clock::to_sys(written);
  return {std::chrono::duration_cast<std::chrono::nanoseconds>(system.time_since_epoch()).count()};
}

}  // namespace

Result<std::unique_ptr<TraceFolder>> TraceFolder::open(std::string path,
                                                       const TraceLimits& limits) {
  auto out = std::make_unique<TraceFolder>(std::move(path), limits);
  std::error_code error;
  fs::remove_all(fs::path(out->path_) / incoming, error);
  fs::create_directories(fs::path(out->path_) / incoming, error);
  if (error) return std::unexpected(io_failure(out->path_, error).error());
  for (const auto& folder : fs::directory_iterator(out->path_, error)) {
    if (!folder.is_directory() || folder.path().filename() == incoming) continue;
    Files& job = out->jobs_[text_of_file_name(folder.path().filename().native())];
    job.change = ++out->changes_;
    for (const auto& file : fs::directory_iterator(folder.path(), error)) {
      const File kept{file.file_size(error), time_of_file(file.path())};
      if (error) break;
      job.files[file.path().filename()] = kept;
      out->bytes_ += kept.bytes;
      ++out->files_;
    }
  }
  if (error) return std::unexpected(io_failure(out->path_, error).error());
  return out;
}

// So that what is analysed is bounded by the fabric, not by what a file says.
Status TraceFolder::check_ranks(const observe::colltrace::RingTrace& trace) const {
  std::int64_t most = trace.rank + std::int64_t{1};
  for (const colltrace::RingCommunicator& c : trace.communicators)
    most = std::max<std::int64_t>(most, c.rank_count);
  if (most <= static_cast<std::int64_t>(limits_.ranks_max)) return {};
  return fail(Errc::value, {},
              fmt::format("a job of {} ranks; there are {} GPUs", most, limits_.ranks_max),
              "send what libweft-nccl.so has written");
}

std::string TraceFolder::folder(std::string_view job) const {
  return fmt::format("{}/{}", path_, file_name(job));
}

std::string TraceFolder::host_of(std::string_view file) {
  const std::string_view name = file.substr(file.rfind('/') + 1);
  return text_of_file_name(name.substr(0, name.find('+')));
}

Status TraceFolder::put(std::string_view job, std::string_view host, std::string_view name,
                        std::string_view packed, Timestamp now) {
  WEFT_TRY_STATUS(check_name("job", job));
  WEFT_TRY_STATUS(check_name("host", host));
  WEFT_TRY_STATUS(check_name("trace", name));
  if (!name.ends_with(".ring"))
    return fail(Errc::value, {}, fmt::format("{} is not a ring", quote(name)),
                "send files of libweft-nccl.so, which end with .ring");
  if (packed.size() > limits_.packed_max)
    return fail(Errc::value, {}, fmt::format("a trace of {} bytes", packed.size()),
                fmt::format("cut it to its latest entries: at most {}", limits_.packed_max));
  {
    const std::scoped_lock one(unpacking_);
    WEFT_TRY(const std::string ring, gunzip(packed, std::string(name), limits_.unpacked_max));
    WEFT_TRY(const colltrace::RingTrace trace, colltrace::read_ring(ring, std::string(name)));
    WEFT_TRY_STATUS(check_ranks(trace));
  }
  const std::string file = fmt::format("{}+{}{}", file_name(host), file_name(name), packed_end);
  const std::scoped_lock lock(mutex_);
  const auto of_job = jobs_.find(job);
  const File* before = nullptr;
  if (of_job != jobs_.end())
    if (const auto at = of_job->second.files.find(file); at != of_job->second.files.end())
      before = &at->second;
  const std::uint64_t freed = before != nullptr ? before->bytes : 0;
  if (bytes_ - freed + packed.size() > limits_.bytes_max ||
      (before == nullptr && files_ >= limits_.files_max))
    return fail(Errc::io, {},
                fmt::format("no room for traces: {} of {} bytes in {} of {} files", bytes_,
                            limits_.bytes_max, files_, limits_.files_max),
                "send it again later, or allow more by traces: {bytes}");
  // Whole at once: whoever reads the job's folder sees this file or the one before.
  const std::string arriving = fmt::format("{}/{}/{}", path_, incoming, ++written_);
  WEFT_TRY_STATUS(write_file(arriving, packed));
  std::error_code error;
  fs::create_directories(folder(job), error);
  if (!error) fs::rename(arriving, fs::path(folder(job)) / file, error);
  if (error) return io_failure(folder(job), error);
  files_ += before == nullptr ? 1 : 0;
  bytes_ += packed.size() - freed;
  Files& files = jobs_[std::string(job)];
  files.files[file] = {packed.size(), now};
  files.change = ++changes_;
  return {};
}

void TraceFolder::forget(Timestamp now) {
  const std::scoped_lock lock(mutex_);
  std::error_code error;  // what cannot be deleted now is found again at the next start
  for (auto job = jobs_.begin(); job != jobs_.end();) {
    const std::size_t gone = std::erase_if(job->second.files, [&](const auto& entry) {
      const auto& [name, file] = entry;
      if (file.sent.ns > now.ns - limits_.keep_ns) return false;
      fs::remove(fs::path(folder(job->first)) / name, error);
      bytes_ -= file.bytes;
      --files_;
      return true;
    });
    if (gone > 0) job->second.change = ++changes_;
    if (!job->second.files.empty()) {
      ++job;
      continue;
    }
    fs::remove(folder(job->first), error);
    job = jobs_.erase(job);
  }
}

std::vector<TraceFolder::JobTraces> TraceFolder::jobs() const {
  const std::scoped_lock lock(mutex_);
  std::vector<JobTraces> out;
  for (const auto& [job, files] : jobs_) {
    JobTraces one{.job = job, .processes = files.files.size(), .change = files.change};
    for (const auto& [name, file] : files.files) {
      one.bytes += file.bytes;
      one.newest = std::max(one.newest, file.sent);
      one.oldest = one.oldest.ns == 0 ? file.sent : std::min(one.oldest, file.sent);
    }
    out.push_back(std::move(one));
  }
  return out;
}

Result<TraceFindings> judge_traces(const model::Fabric& fabric, const NodeNames& names,
                                   const TraceFolder& folder, std::string_view job,
                                   const model::EvidenceSet& probes, Timestamp now) {
  const auto begin = std::chrono::steady_clock::now();
  WEFT_TRY(colltrace::Job traced, colltrace::load_job({folder.folder(job)}));
  std::vector<std::optional<std::uint32_t>> hosts(traced.world);
  for (colltrace::RankTrace& rank : traced.ranks) {
    rank.host = TraceFolder::host_of(rank.file);  // a container has a name of its own
    hosts[rank.rank] = names.find(rank.host);
  }
  const colltrace::Report report = colltrace::analyse(traced, {});
  const auto gpus = colltrace::place_ranks(fabric, traced, hosts);
  WEFT_TRY(const colltrace::NetworkReport network,
           colltrace::judge_network(traced, report,
                                    {.fabric = fabric, .gpus = gpus, .probes = &probes}));
  TraceFindings out{.is_hang = report.is_hang, .verdicts = report.verdicts.size()};
  out.last_ns = out.first_ns = colltrace::latest_ns(traced);
  for (const colltrace::Entry& e : traced.entries)
    if (e.created_ns > 0) out.first_ns = std::min(out.first_ns, e.created_ns);
  out.records = to_records(fabric, traced, job, network, now);
  const colltrace::JudgedNetwork judged{fabric, network};
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  out.json = JsonObject()
                 .add("job", job)
                 .add("analysed", now)
                 .add("took_s", took.count(), decimals(3))
                 .add_all(to_json(traced, report, &judged))
                 .text();
  return out;
}

}  // namespace weft::operate::jobs
