#include "operate/jobs/traces.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <system_error>
#include <utility>

#include "base/file.hpp"
#include "base/markup.hpp"
#include "base/text.hpp"
#include "observe/colltrace/job.hpp"
#include "observe/colltrace/network.hpp"
#include "observe/colltrace/picture.hpp"
#include "observe/colltrace/records.hpp"
#include "observe/colltrace/ring.hpp"
#include "observe/colltrace/trace_json.hpp"
#include "observe/colltrace/verdict.hpp"

namespace weft::operate::jobs {
namespace {

namespace colltrace = observe::colltrace;
namespace fs = std::filesystem;

constexpr std::size_t name_bytes_max = 200;
constexpr std::string_view incoming = ".incoming", packed_end = ".gz", ring_packed_end = ".ring.gz";

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

// "host0+weft-nccl-7-0.ring.gz", as put() makes them; what file_name() would write otherwise is
// not.
bool is_own_file(std::string_view name) {
  const std::size_t plus = name.find('+');
  if (plus == std::string_view::npos || !name.ends_with(ring_packed_end)) return false;
  const std::string_view host = name.substr(0, plus);
  const std::string_view trace = name.substr(plus + 1, name.size() - plus - 1 - packed_end.size());
  return !host.empty() && file_name(text_of_file_name(host)) == host &&
         file_name(text_of_file_name(trace)) == trace;
}

// "12", and "12.tmp.4711" as write_file() has it.
bool is_own_temporary(std::string_view name) {
  const std::string_view number = name.substr(0, name.find_first_not_of("0123456789"));
  const std::string_view rest = name.substr(number.size());
  return !number.empty() && (rest.empty() || rest.starts_with(".tmp."));
}

Status stranger(const std::string& folder, std::string_view what) {
  return fail(Errc::value, {folder, 0, 0},
              fmt::format("not a folder of traces: it holds {}", quote(what)),
              "give --traces a folder of its own");
}

// Each entry of a folder, in turn. Fails: Errc::io, or as `use` does.
template <class Use>
Status each_entry(const std::string& folder, Use&& use) {
  std::error_code error;
  for (auto entry = fs::directory_iterator(folder, error);
       !error && entry != fs::directory_iterator(); entry.increment(error))
    WEFT_TRY_STATUS(use(*entry));
  return error ? io_failure(folder, error) : Status();
}

}  // namespace

Result<std::unique_ptr<TraceFolder>> TraceFolder::open(std::string path,
                                                       const TraceLimits& limits) {
  auto out = std::make_unique<TraceFolder>(std::move(path), limits);
  std::error_code error;
  fs::create_directories(out->path_, error);
  if (error) return std::unexpected(io_failure(out->path_, error).error());
  std::vector<fs::path> left;  // of a put() that a crash ended
  WEFT_TRY_STATUS(each_entry(out->path_, [&](const fs::directory_entry& folder) -> Status {
    const std::string name = folder.path().filename().native();
    if (name == "lost+found") return {};  // of a file system of its own
    const bool is_folder = folder.symlink_status().type() == fs::file_type::directory;
    const std::string job = text_of_file_name(name);
    if (!is_folder || (name != incoming && (job.empty() || file_name(job) != name)))
      return stranger(out->path_, name);
    if (name != incoming) return out->adopt(job);
    return each_entry(folder.path().native(), [&](const fs::directory_entry& file) -> Status {
      const std::string own = file.path().filename().native();
      if (file.symlink_status().type() != fs::file_type::regular || !is_own_temporary(own))
        return stranger(folder.path().native(), own);
      left.push_back(file.path());
      return {};
    });
  }));
  for (const fs::path& file : left) fs::remove(file, error);
  fs::create_directories(fs::path(out->path_) / incoming, error);
  if (error) return std::unexpected(io_failure(out->path_, error).error());
  return out;
}

Status TraceFolder::adopt(const std::string& job) {
  Files found{.files = {}, .change = ++changes_};
  const std::string path = folder(job);
  WEFT_TRY_STATUS(each_entry(path, [&](const fs::directory_entry& file) -> Status {
    const std::string name = file.path().filename().native();
    if (file.symlink_status().type() != fs::file_type::regular || !is_own_file(name))
      return stranger(path, name);
    std::error_code error;
    const std::uint64_t bytes = file.file_size(error);
    if (error) return io_failure(file.path().native(), error);
    found.files[name] = {bytes, time_of_file(file.path())};
    bytes_ += bytes;
    ++files_;
    return {};
  }));
  if (!found.files.empty()) jobs_[job] = std::move(found);  // an empty folder may be anybody's
  return {};
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
  const std::string file = fmt::format("{}+{}{}", file_name(host), file_name(name), packed_end);
  constexpr std::size_t file_name_max = 255;  // of file systems
  if (file.size() > file_name_max || file_name(job).size() > file_name_max)
    return fail(
        Errc::value, {},
        fmt::format("the names of {} and job {} are too long for a file", quote(name), quote(job)),
        fmt::format("use letters and digits: others count as three of {}", file_name_max));
  File kept{.bytes = packed.size(), .sent = now};
  {
    const std::unique_lock one(unpacking_, std::try_to_lock);
    if (!one)
      return fail(Errc::io, {}, "another trace is just being taken", "send it again in a second");
    WEFT_TRY(const std::string ring, gunzip(packed, std::string(name), limits_.unpacked_max));
    WEFT_TRY(const colltrace::RingTrace trace, colltrace::read_ring(ring, std::string(name)));
    WEFT_TRY_STATUS(check_ranks(trace));
    kept.rank = std::max(trace.rank, -1);
    kept.opened_ns = trace.opened_ns;
  }
  const std::scoped_lock lock(mutex_);
  std::vector<std::string> replaced;
  std::uint64_t freed = 0;
  std::size_t files_of_job = 0;
  if (const auto at = jobs_.find(job); at != jobs_.end()) {
    files_of_job = at->second.files.size();
    for (const auto& [other, before] : at->second.files) {
      const bool is_same = kept.rank >= 0 && before.rank == kept.rank && host_of(other) == host;
      if (other != file && is_same && before.opened_ns > kept.opened_ns) return {};
      if (other != file && !(is_same && before.opened_ns < kept.opened_ns)) continue;
      replaced.push_back(other);
      freed += before.bytes;
    }
  }
  WEFT_TRY_STATUS(check_room(job, bytes_ - freed + packed.size(), files_ - replaced.size() + 1,
                             files_of_job - replaced.size() + 1));
  WEFT_TRY_STATUS(write(folder(job) + "/" + file, packed));
  Files& files = jobs_[std::string(job)];
  for (const std::string& other : replaced)
    if (other != file) erase(std::string(job), files, other);
  const auto [place, is_new] = files.files.try_emplace(file);
  bytes_ += kept.bytes - place->second.bytes;
  files_ += is_new ? 1 : 0;
  place->second = kept;
  files.change = ++changes_;
  return {};
}

Status TraceFolder::check_room(std::string_view job, std::uint64_t bytes, std::size_t files,
                               std::size_t files_of_job) const {
  const auto full = [](std::string what, std::string_view hint) {
    return fail(Errc::io, {}, "no room for traces: " + std::move(what), std::string(hint));
  };
  if (files_of_job > limits_.files_of_job_max())
    return full(fmt::format("job {} has {} processes; at most {} are kept, two for each of {} GPUs",
                            job, files_of_job - 1, limits_.files_of_job_max(), limits_.ranks_max),
                "send it again once those of earlier processes are forgotten (traces: {keep})");
  if (files > limits_.files_max())
    return full(fmt::format("{} processes; at most {} are kept, four for each of {} GPUs",
                            files - 1, limits_.files_max(), limits_.ranks_max),
                "send it again once those of earlier processes are forgotten (traces: {keep})");
  if (bytes > limits_.bytes_max)
    return full(fmt::format("with this one {} of {} bytes", bytes, limits_.bytes_max),
                "send it again later, or allow more by traces: {bytes}");
  return {};
}

// Whole at once: whoever reads the job's folder sees this file or the one before.
Status TraceFolder::write(const std::string& path, std::string_view packed) {
  const std::string arriving = fmt::format("{}/{}/{}", path_, incoming, ++written_);
  WEFT_TRY_STATUS(write_file(arriving, packed));
  std::error_code error, ignored;
  fs::create_directories(fs::path(path).parent_path(), error);
  if (!error) fs::rename(arriving, path, error);
  if (!error) return {};
  fs::remove(arriving, ignored);
  return io_failure(path, error);
}

void TraceFolder::erase(const std::string& job, Files& files, const std::string& name) {
  std::error_code ignored;  // what cannot be deleted now is found again at the next start
  fs::remove(fs::path(folder(job)) / name, ignored);
  bytes_ -= files.files.at(name).bytes;
  --files_;
  files.files.erase(name);
  files.change = ++changes_;
}

void TraceFolder::forget(Timestamp now) {
  const std::scoped_lock lock(mutex_);
  for (auto job = jobs_.begin(); job != jobs_.end();) {
    std::vector<std::string> old;
    for (const auto& [name, file] : job->second.files)
      if (file.sent.ns <= now.ns - limits_.keep_ns) old.push_back(name);
    for (const std::string& name : old) erase(job->first, job->second, name);
    if (!job->second.files.empty()) {
      ++job;
      continue;
    }
    std::error_code ignored;
    fs::remove(folder(job->first), ignored);
    job = jobs_.erase(job);
  }
}

std::vector<std::string> TraceFolder::files(std::string_view job) const {
  const std::scoped_lock lock(mutex_);
  std::vector<std::string> out;
  if (const auto at = jobs_.find(job); at != jobs_.end())
    for (const auto& [name, file] : at->second.files) out.push_back(folder(job) + "/" + name);
  return out;
}

Timestamp TraceFolder::half_sent(std::string_view job) const {
  const std::scoped_lock lock(mutex_);
  const auto at = jobs_.find(job);
  if (at == jobs_.end()) return {};
  std::vector<Timestamp> sent;
  for (const auto& [name, file] : at->second.files) sent.push_back(file.sent);
  const auto middle = sent.begin() + std::ssize(sent) / 2;
  std::ranges::nth_element(sent, middle);
  return *middle;
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

namespace {

// The rings of a job, until there is more of anything than its limits have.
class JobLoader {
 public:
  explicit JobLoader(const TraceLimits& limits) : limits_(limits) {}

  Result<colltrace::Job> load(std::string_view name, const std::vector<std::string>& paths) {
    for (const std::string& path : paths) {
      if (const Status done = take(path); !done) note(path, done.error().what);
      WEFT_TRY_STATUS(check(name));
    }
    std::vector<colltrace::RingLife> lives;
    for (std::size_t i = 0; i < rings_.size(); ++i)
      lives.push_back(colltrace::life_of(rings_[i], TraceFolder::host_of(files_[i])));
    const std::vector<bool> are_current = colltrace::are_current(lives);
    std::vector<colltrace::RingTrace> rings;
    std::vector<std::string> files;
    for (std::size_t i = 0; i < rings_.size(); ++i) {
      if (!are_current[i]) {
        note(files_[i], "of a process that another has replaced");
        continue;
      }
      rings.push_back(std::move(rings_[i]));
      files.push_back(std::move(files_[i]));
    }
    WEFT_TRY_STATUS(colltrace::add_rings(rings, files, job_));
    colltrace::Job out = job_.finish();
    if (out.ranks.empty())
      return fail(Errc::value, {}, fmt::format("no trace of job {} can be read", name),
                  out.notes.empty() ? "wait for its agents" : out.notes.front());
    return out;
  }

 private:
  Status take(const std::string& path) {
    WEFT_TRY(const std::string packed, read_file(path, limits_.packed_max));
    WEFT_TRY(const std::string ring, gunzip(packed, path, limits_.unpacked_max));
    WEFT_TRY(colltrace::RingTrace trace, colltrace::read_ring(ring, path));
    records_ += trace.operations.size() + trace.proxies.size();
    for (const colltrace::RingCommunicator& c : trace.communicators) {
      const std::size_t count = static_cast<std::size_t>(std::max(c.rank_count, 0));
      std::size_t& most = members_of_[c.id];
      members_ += std::max(most, count) - most;
      most = std::max(most, count);
    }
    rings_.push_back(std::move(trace));
    files_.push_back(path);
    return {};
  }
  Status check(std::string_view name) const {
    const auto refuse = [&](std::string_view what, std::size_t most) {
      return fail(Errc::value, {},
                  fmt::format("job {} has more than {} {}: too many to analyse", name, most, what),
                  "send what libweft-nccl.so has written, as weft agent cuts it");
    };
    if (members_ > limits_.members_max())
      return refuse("members of communicators", limits_.members_max());
    if (records_ > limits_.records_max()) return refuse("records", limits_.records_max());
    return {};
  }
  void note(const std::string& path, std::string_view why) {
    job_.job().notes.push_back(fmt::format("{}: {}, left out", path, why));
  }

  const TraceLimits& limits_;
  colltrace::JobBuilder job_;
  std::vector<colltrace::RingTrace> rings_;
  std::vector<std::string> files_;
  std::map<std::uint64_t, std::size_t> members_of_;  // by communicator
  std::size_t members_ = 0, records_ = 0;
};

// When the latest third began, of the calls of an edge or else of a rank: the middle of them, so
// that neither a thread that calls once an hour nor a broken clock holds it back.
std::int64_t begin_of_latest(const colltrace::Job& job) {
  std::vector<std::int64_t> begins;
  for (const colltrace::EdgeWait& edge : job.edges) begins.push_back(edge.from_ns);
  if (begins.empty())
    for (const colltrace::RankTrace& rank : job.ranks)
      if (const auto entries = rank.in(job.entries); !entries.empty())
        begins.push_back(entries[entries.size() * 2 / 3].created_ns);
  if (begins.empty()) return 0;
  const auto middle = begins.begin() + std::ssize(begins) / 2;
  std::ranges::nth_element(begins, middle);
  return *middle;
}

std::uint32_t gpus_per_host(const model::Fabric& fabric) {
  std::size_t out = 1;
  for (const model::NodeId host : fabric.hosts()) out = std::max(out, fabric.gpus_of(host).size());
  return static_cast<std::uint32_t>(out);
}

}  // namespace

Result<TraceFindings> judge_traces(const model::Fabric& fabric, const NodeNames& names,
                                   const TraceFolder& folder, std::string_view job,
                                   const model::EvidenceSet& probes, Timestamp now,
                                   std::int64_t hang_ns) {
  const auto begin = std::chrono::steady_clock::now();
  WEFT_TRY(colltrace::Job traced, JobLoader(folder.limits()).load(job, folder.files(job)));
  std::vector<std::optional<std::uint32_t>> hosts(traced.world);
  for (colltrace::RankTrace& rank : traced.ranks) {
    rank.host = TraceFolder::host_of(rank.file);  // a container has a name of its own
    hosts[rank.rank] = names.find(rank.host);
  }
  const colltrace::Report report =
      colltrace::analyse(traced, {.ranks_per_host = gpus_per_host(fabric), .has_all_dumps = false});
  const auto gpus = colltrace::place_ranks(fabric, traced, hosts);
  WEFT_TRY(const colltrace::NetworkReport network,
           colltrace::judge_network(traced, report,
                                    {.fabric = fabric, .gpus = gpus, .probes = &probes}));
  TraceFindings out{.is_hang = report.is_hang, .verdicts = report.verdicts.size()};
  out.last_ns = colltrace::latest_ns(traced, now.ns);
  out.first_ns = std::min(begin_of_latest(traced), out.last_ns);
  out.records = to_records(fabric, traced, job, network, now);
  if (folder.half_sent(job).ns - out.last_ns >= hang_ns)
    add_hang_records(fabric, traced, report, gpus, job, now, out.records);
  out.picture = to_json(make_picture(traced, report), traced, report);
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
