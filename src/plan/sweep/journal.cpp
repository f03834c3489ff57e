#include "plan/sweep/journal.hpp"

#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/fields.hpp"
#include "base/file.hpp"
#include "base/hash.hpp"
#include "base/plural.hpp"

namespace weft::plan {
namespace {

struct JournalPoint {
  std::uint64_t point = 0;
  std::vector<SweepRow> rows;
};
template <class Archive, Of<JournalPoint> T>
void fields(Archive& ar, T& p) {
  ar("point", p.point);
  ar("rows", p.rows);
}

std::string line_of(std::size_t point, const std::vector<SweepRow>& rows) {
  return write_fields(JournalPoint{point, rows});
}

Status take_point(const JournalPoint& read, const Where& where, JournalLines& lines) {
  if (read.point >= lines.rows.size())
    return fail(Errc::value, where, fmt::format("point {} of {}", read.point, lines.rows.size()),
                "points are numbered from 0");
  for (const SweepRow& row : read.rows)
    if (row.values.size() != lines.head.keys.size())
      return fail(Errc::value, where,
                  fmt::format("a row with {} values for {} keys", row.values.size(),
                              lines.head.keys.size()));
  std::optional<std::vector<SweepRow>>& rows = lines.rows[read.point];
  if (rows && line_of(read.point, *rows) != line_of(read.point, read.rows))
    return fail(Errc::value, where,
                fmt::format("point {} appears twice with different rows", read.point));
  rows = read.rows;
  return {};
}

Result<JournalLines> read_lines(const std::string& path) {
  WEFT_TRY(const std::string text, read_file(path));
  return read_journal(text, path);
}

// Empty: they are of one sweep.
std::string difference(const SweepHead& a, const SweepHead& b) {
  if (a.version != b.version)
    return fmt::format("weft {} made it, this is {}", a.version, b.version);
  if (a.points != b.points || a.keys != b.keys)
    return fmt::format("it has {} points over {}, not {} over {}", a.points,
                       fmt::join(a.keys, ", "), b.points, fmt::join(b.keys, ", "));
  if (a.digest != b.digest || a.currency != b.currency)
    return "the scenario, its seed or the price table was another one";
  return "";
}

std::string journal_name(const SweepHead& head) {
  return head.shards == 1 ? "points.jsonl"
                          : fmt::format("points-{}-of-{}.jsonl", head.shard, head.shards);
}

Result<std::vector<std::string>> journals_in(const std::string& directory) {
  std::vector<std::string> found;
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator(directory, failed)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("points") && name.ends_with(".jsonl")) found.push_back(entry.path());
  }
  if (failed) return fail(Errc::io, {directory, 0, 0}, "cannot be read: " + failed.message());
  if (found.empty())
    return fail(Errc::value, {directory, 0, 0}, "has no points*.jsonl of a sweep",
                "weft sweep SCENARIO --out DIRECTORY writes them");
  std::ranges::sort(found);
  return found;
}

}  // namespace

Result<JournalLines> read_journal(std::string_view text, const std::string& path) {
  JournalLines lines;
  std::uint32_t number = 0;
  for (std::size_t from = 0; from < text.size();) {
    const std::size_t end = text.find('\n', from);
    if (end == std::string::npos) break;
    const std::string_view line = text.substr(from, end - from);
    const Where where{path, ++number, 1};
    from = end + 1;
    if (number == 1) {
      WEFT_TRY(lines.head, read_fields<SweepHead>(line, where));
      if (lines.head.format != 1 || lines.head.points > sweep_points_max || lines.head.shards < 1 ||
          lines.head.shard < 1 || lines.head.shard > lines.head.shards)
        return fail(Errc::value, where, "is not the head of a sweep that this weft can read");
      lines.rows.resize(lines.head.points);
    } else {
      WEFT_TRY(const JournalPoint read, read_fields<JournalPoint>(line, where));
      WEFT_TRY_STATUS(take_point(read, where, lines));
    }
    lines.bytes = from;
  }
  return lines;
}

SweepHead sweep_head(const std::vector<SweepPoint>& points, std::string_view prices,
                     std::string version) {
  SweepHead head{.version = std::move(version), .points = points.size()};
  Digest digest;
  digest.add(prices);
  for (const SweepPoint& point : points)
    for (const model::Scenario& variant : point.scenario.variants) {
      digest.add(variant.name);
      digest.add(variant.seed);
      digest.add(to_yaml(variant.root));
    }
  head.digest = digest.hex();
  if (points.empty()) return head;
  for (const auto& [key, value] : points.front().values) head.keys.push_back(key);
  head.scenario = points.front().scenario.variants.front().root.where.file;
  return head;
}

Result<Journal> Journal::open(const std::string& directory, const SweepHead& head, bool resume,
                              PointRows& rows) {
  std::error_code failed;
  std::filesystem::create_directories(directory, failed);
  if (failed)
    return fail(Errc::io, {directory, 0, 0}, "cannot create the directory: " + failed.message(),
                "specify a writable directory");
  const std::string path = (std::filesystem::path(directory) / journal_name(head)).string();
  const bool is_there = std::filesystem::exists(path, failed);
  if (is_there && !resume)
    return fail(Errc::value, {path, 0, 0}, "has points of an earlier sweep",
                "go on with --resume, choose another --out, or remove it");
  File file(std::fopen(path.c_str(), "a"));
  if (!file) return io_error(path, "write");
  if (flock(fileno(file.get()), LOCK_EX | LOCK_NB) != 0)
    return fail(Errc::io, {path, 0, 0}, "is being written by another weft sweep");
  Journal journal(std::move(file), path);
  JournalLines lines;
  if (is_there) {
    WEFT_TRY(lines, read_lines(path));
  }
  if (lines.bytes > 0) {
    if (const std::string why = difference(lines.head, head); !why.empty())
      return fail(Errc::value, {path, 1, 1}, "is of another sweep: " + why,
                  "choose another --out, or remove it");
    rows = std::move(lines.rows);
  }
  if (ftruncate(fileno(journal.file_.get()), static_cast<off_t>(lines.bytes)) != 0)
    return io_error(path, "write");
  if (lines.bytes == 0) journal.write(write_fields(head));
  if (!journal.status_) return std::unexpected(journal.status_.error());
  return journal;
}

void Journal::write(std::string line) {
  line += '\n';
  if (!status_) return;
  if (std::fwrite(line.data(), 1, line.size(), file_.get()) != line.size() ||
      std::fflush(file_.get()) != 0)
    status_ = io_error(path_, "write");
}

void Journal::add(std::size_t point, const std::vector<SweepRow>& rows) {
  write(line_of(point, rows));
}

Result<Merged> read_journals(const std::vector<std::string>& directories) {
  Merged out;
  JournalLines all;
  for (const std::string& directory : directories) {
    WEFT_TRY(const std::vector<std::string> paths, journals_in(directory));
    for (const std::string& path : paths) {
      WEFT_TRY(JournalLines lines, read_lines(path));
      if (lines.bytes == 0) continue;  // killed before its head was written
      if (all.bytes == 0) {
        all = std::move(lines);
        continue;
      }
      if (const std::string why = difference(lines.head, all.head); !why.empty())
        return fail(Errc::value, {path, 1, 1}, "is of another sweep than the others: " + why);
      for (std::size_t i = 0; i < lines.rows.size(); ++i)
        if (lines.rows[i]) {
          WEFT_TRY_STATUS(take_point({i, *lines.rows[i]}, {path, 0, 0}, all));
        }
    }
  }
  if (all.bytes == 0)
    return fail(Errc::value, {directories.front(), 0, 0}, "its sweep has not begun",
                "wait until one of its points has ended");
  return Merged{std::move(all.head), std::move(all.rows)};
}

std::string describe_points(const std::vector<std::size_t>& points, std::uint64_t of) {
  std::string out;
  std::size_t ranges = 0;
  for (std::size_t i = 0; i < points.size();) {
    std::size_t last = i;
    while (last + 1 < points.size() && points[last + 1] == points[last] + 1) ++last;
    if (++ranges > 8) {
      out += ", ...";
      break;
    }
    out += i == 0 ? "" : ", ";
    out += last == i ? fmt::format("{}", points[i]) : fmt::format("{}-{}", points[i], points[last]);
    i = last + 1;
  }
  return fmt::format("{} {} ({} of {})", plural(points.size(), "point"), out, points.size(), of);
}

CsvStream::CsvStream(File file, const SweepHead& head)
    : file_(std::move(file)), shard_{head.shard, head.shards}, priced_(!head.currency.empty()) {}

Result<CsvStream> CsvStream::open(const std::string& path, const SweepHead& head) {
  CsvStream stream(File(std::fopen(path.c_str(), "w")), head);
  if (!stream.file_) return io_error(path, "write");
  fmt::print(stream.file_.get(), "{}", csv_head(head.keys, stream.priced_));
  std::fflush(stream.file_.get());
  return stream;
}

void CsvStream::write_ready(const PointRows& rows) {
  for (; next_ < rows.size() && (rows[next_] || !shard_.has(next_)); ++next_) {
    if (!rows[next_]) continue;
    for (const SweepRow& row : *rows[next_]) fmt::print(file_.get(), "{}", csv_row(row, priced_));
  }
  std::fflush(file_.get());
}

}  // namespace weft::plan
