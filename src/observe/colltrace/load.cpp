#include "observe/colltrace/load.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>

#include "base/file.hpp"
#include "base/file_stream.hpp"
#include "base/text.hpp"
#include "observe/colltrace/flight.hpp"
#include "observe/colltrace/others.hpp"
#include "observe/colltrace/ring.hpp"

namespace weft::observe::colltrace {
namespace {

enum class Format : std::uint8_t { none, flight, ring, inspector, kineto, ras };

Format format_of(std::string_view content) {
  if (is_ring(content)) return Format::ring;
  const std::string_view head = trim(content.substr(0, 4096));
  if (head.starts_with('\x80')) return Format::flight;
  const auto has = [&](std::string_view key) { return head.find(key) != std::string_view::npos; };
  if (head.starts_with('{') && has("\"schemaVersion\"")) return Format::kineto;
  if (head.starts_with('{') && (has("\"entries\"") || has("\"pg_config\""))) return Format::flight;
  if (has("\"coll_perf\"") && has("\"inspector_output_format_version\"")) return Format::inspector;
  if (head.starts_with('{') && has("\"nccl_version\"") && has("\"communicators\""))
    return Format::ras;
  return Format::none;
}

struct Input {
  std::string path;
  bool was_named = false;
};

Result<std::vector<Input>> inputs_in(const std::vector<std::string>& paths) {
  std::vector<Input> out;
  for (const std::string& path : paths) {
    std::error_code error;
    if (!std::filesystem::is_directory(path, error)) {
      out.push_back({path, true});
      continue;
    }
    for (auto entry = std::filesystem::directory_iterator(path, error);
         !error && entry != std::filesystem::directory_iterator(); entry.increment(error))
      if (entry->is_regular_file(error)) out.push_back({entry->path().string(), false});
    if (error)
      return fail(Errc::io, {path, 0, 0}, "cannot read the folder: " + error.message(),
                  "give a folder that you may read");
  }
  std::ranges::sort(out, {}, &Input::path);
  return out;
}

// With room behind it for the reader of JSON.
Status read_into(const std::string& path, std::string& content) {
  WEFT_TRY(const File file, open_trace_file(path));
  content.clear();
  content.reserve(file_size_hint(path) + json_padding);
  return read_rest(file.get(), path, file_bytes_max, content);
}

class Loader {
 public:
  explicit Loader(std::size_t files) : files_(files) {}

  // What is cut short, as where a rank was killed while it wrote, is left out with a note. Its rank
  // counts as one without a trace where the file's name ends with it.
  Status load(const Input& input) {
    is_whole_job_ = false;
    Status status = read(input);
    if (status || status.error().code != Errc::parse || is_whole_job_) return status;
    const Error& error = status.error();
    const std::string line =
        error.where.line > 0 ? fmt::format("line {}: ", error.where.line) : std::string();
    job_.job().notes.push_back(
        fmt::format("{}: {}{}: not read, left out", input.path, line, error.what));
    std::string name = input.path;
    if (name.ends_with(".gz")) name.resize(name.size() - 3);
    if (const auto rank = rank_of_file(name); rank && !name.ends_with(".ring"))
      job_.job().world = std::max(job_.job().world, *rank + 1);
    broken_.push_back(std::move(status).error());
    return {};
  }

  // Of the files that were left out.
  Errors& broken() { return broken_; }

  // `wanted`: of several jobs.
  Result<Job> finish(std::string_view wanted) {
    WEFT_TRY_STATUS(choose_job(wanted));
    leave_out_earlier();
    WEFT_TRY_STATUS(add_rings(rings_, ring_files_, job_));
    return job_.finish();
  }

 private:
  Status read(const Input& input) {
    if (input.path.ends_with(".ring")) {
      WEFT_TRY(const std::string ring, load_ring(input.path));
      return load_one_ring(ring, input.path);
    }
    WEFT_TRY_STATUS(read_into(input.path, content_));
    if (input.path.ends_with(".gz")) {
      WEFT_TRY(content_, gunzip(content_, input.path));
      content_.reserve(content_.size() + json_padding);
    }
    const Format format = format_of(content_);
    if (format == Format::flight) {
      WEFT_TRY_STATUS(read_flight(content_, input.path, job_));
      // So that the list of entries moves once: what one file has, all have.
      if (job_.job().ranks.size() == 1) job_.reserve(job_.job().entries.size() * files_ * 11 / 10);
    } else if (format == Format::ring) {
      return load_one_ring(content_, input.path);
    } else if (format == Format::inspector) {
      WEFT_TRY(RingTrace trace, read_inspector(content_, input.path));
      rings_.push_back(std::move(trace));
      ring_files_.push_back(input.path);
    } else if (format == Format::kineto) {
      return read_kineto(content_, input.path, job_);
    } else if (format == Format::ras) {
      is_whole_job_ = true;
      return read_ras(content_, input.path, job_);
    } else if (input.was_named) {
      const std::string_view text = trim(content_);  // the wrong file, or the head of a dump
      is_whole_job_ = !text.empty() && !text.starts_with('{');
      return fail(Errc::parse, {input.path, 0, 0},
                  "not a collective trace in a format that weft reads",
                  "see docs/commands/colltrace.md for the formats");
    } else {
      job_.job().notes.push_back(fmt::format("{}: no trace, left out", input.path));
    }
    return {};
  }

  Status load_one_ring(const std::string& content, const std::string& path) {
    WEFT_TRY(RingTrace trace, read_ring(content, path));
    const auto now = clock_of(trace.boot_id, trace.clock);
    if (now) {
      WEFT_TRY(trace, read_ring(content, path, now));
      trace.is_gone |= is_process_gone(trace);
    }
    rings_.push_back(std::move(trace));
    ring_files_.push_back(path);
    return {};
  }

  // Where a job was started again its earlier processes may have left their files. Two that were at
  // work at one time are no restart: each has a path of its own, so neither replaces the other.
  void leave_out_earlier() {
    std::vector<RingLife> lives;
    for (std::size_t i = 0; i < rings_.size(); ++i)
      lives.push_back(life_of(rings_[i], ring_files_[i]));
    const std::vector<bool> are_of_now = are_current(lives);
    keep_rings([&](std::size_t i) {
      if (!are_of_now[i])
        job_.job().notes.push_back(fmt::format("{}: of an earlier process of rank {}, left out",
                                               ring_files_[i], rings_[i].rank));
      return are_of_now[i];
    });
  }

  // A host's folder may hold the rings of several jobs.
  Status choose_job(std::string_view wanted) {
    std::map<std::string, std::size_t> jobs;  // -> rings
    for (const RingTrace& ring : rings_)
      if (!ring.job.empty()) ++jobs[ring.job];
    if (jobs.size() < 2) return {};
    const auto at = jobs.find(std::string(wanted));
    if (at == jobs.end()) {
      std::string names;
      for (const auto& [job, rings] : jobs) names += (names.empty() ? "" : ", ") + quote(job);
      return fail(Errc::value, {"--job", 0, 0}, "the rings are of several jobs: " + names,
                  "choose one with --job");
    }
    const std::string& chosen = at->first;
    keep_rings([&](std::size_t i) {
      const bool is_kept = rings_[i].job == chosen;
      if (!is_kept)
        job_.job().notes.push_back(fmt::format(
            "{}: of {}, left out", ring_files_[i],
            rings_[i].job.empty() ? "a job without a name" : "job " + quote(rings_[i].job)));
      return is_kept;
    });
    return {};
  }

  template <class IsKept>
  void keep_rings(IsKept&& is_kept) {
    std::vector<RingTrace> rings;
    std::vector<std::string> files;
    for (std::size_t i = 0; i < rings_.size(); ++i) {
      if (!is_kept(i)) continue;
      rings.push_back(std::move(rings_[i]));
      files.push_back(std::move(ring_files_[i]));
    }
    rings_ = std::move(rings);
    ring_files_ = std::move(files);
  }

  std::size_t files_;
  JobBuilder job_;
  std::string content_;
  std::vector<RingTrace> rings_;
  std::vector<std::string> ring_files_;
  Errors broken_;
  bool is_whole_job_ = false;  // of the file that is read: there is no job without it
};

}  // namespace

Result<Job> load_job(const std::vector<std::string>& paths, std::string_view wanted) {
  WEFT_TRY(const std::vector<Input> inputs, inputs_in(paths));
  Loader loader(inputs.size());
  Errors errors;
  for (const Input& input : inputs) {
    if (Status status = loader.load(input); !status) errors.push_back(std::move(status).error());
    if (errors.size() == errors_max) break;
  }
  if (!errors.empty()) return std::unexpected(combine(std::move(errors)));
  WEFT_TRY(Job job, loader.finish(wanted));
  if (job.ranks.empty() && !loader.broken().empty()) {
    Errors& broken = loader.broken();
    if (broken.size() > errors_max) broken.erase(broken.begin() + errors_max, broken.end());
    return std::unexpected(combine(std::move(broken)));
  }
  if (job.ranks.empty())
    return fail(Errc::value, {paths.empty() ? "" : paths.front(), 0, 0}, "no traces of collectives",
                "give a folder with dumps, see docs/commands/colltrace.md");
  return job;
}

}  // namespace weft::observe::colltrace
