#include "observe/colltrace/hashes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <limits>
#include <unordered_map>

#include "base/csv.hpp"
#include "base/file.hpp"
#include "base/text.hpp"
#include "observe/colltrace/job.hpp"

namespace weft::observe::colltrace {
namespace {

enum Column : std::uint8_t {
  step_column,
  kind_column,
  group_column,
  seq_column,
  rank_column,
  hash_column,
  run_column,
  place_column,
  size_column,
  bytes_column,
  ns_column,
  time_column,
  host_column,
};

class HashReader {
 public:
  HashReader(std::string_view text, const std::string& file, HashSet& out)
      : csv_(text, file), out_(out) {
    for (std::uint32_t i = 0; i < out.groups.size(); ++i) groups_.emplace(out.groups[i], i);
  }

  Status read() {
    const std::array<std::string, 6> required{"step", "kind", "group", "seq", "rank", "hash"};
    const std::array<std::string, 7> optional{"run", "place", "size", "bytes",
                                              "ns",  "time",  "host"};
    WEFT_TRY_STATUS(csv_.header(required, optional));
    while (csv_.next()) WEFT_TRY_STATUS(read_row());
    if (const Error* error = csv_.error()) return std::unexpected(*error);
    return {};
  }

 private:
  // In [0, most]; 0 where the column is missing or empty.
  Result<std::uint64_t> whole(Column column, std::int64_t most) {
    const Token cell = csv_.cell(column);
    if (column >= run_column && trim(cell.text).empty()) return 0;
    WEFT_TRY(const std::int64_t value, parse_count(cell));
    if (value < 0 || value > most)
      return fail(Errc::value, cell.where, fmt::format("{} is not in [0, {}]", value, most),
                  "write a whole number in that range");
    return static_cast<std::uint64_t>(value);
  }

  Status read_row() {
    constexpr std::int64_t any = std::numeric_limits<std::int64_t>::max();
    HashRow row;
    WEFT_TRY(row.run, whole(run_column, any));
    WEFT_TRY(row.step, whole(step_column, any));
    WEFT_TRY(row.seq, whole(seq_column, any));
    WEFT_TRY(const auto rank, whole(rank_column, JobBuilder::rank_max));
    row.rank = static_cast<std::uint32_t>(rank);
    WEFT_TRY(row.kind, from_name<HashKind>(csv_.cell(kind_column)));
    const auto [group, is_new] = groups_.try_emplace(
        std::string(csv_.cell(group_column).text), static_cast<std::uint32_t>(out_.groups.size()));
    if (is_new) out_.groups.push_back(group->first);
    row.group = group->second;
    WEFT_TRY_STATUS(read_place(row));
    WEFT_TRY_STATUS(read_slices(row));
    WEFT_TRY_STATUS(read_extras(row));
    out_.rows.push_back(row);
    return {};
  }

  Status read_place(HashRow& row) {
    WEFT_TRY(const auto size, whole(size_column, JobBuilder::rank_max));
    WEFT_TRY(const auto place, whole(place_column, JobBuilder::rank_max));
    const bool has_place = !trim(csv_.cell(place_column).text).empty();
    if (has_place != (size > 0) || (has_place && place >= size))
      return fail(Errc::value, csv_.where(), "place and size do not fit",
                  "write a place in [0, size), or leave both empty");
    row.place = static_cast<std::uint32_t>(place);
    row.size = static_cast<std::uint32_t>(size);
    return {};
  }

  Status read_slices(HashRow& row) {
    const Token cell = csv_.cell(hash_column);
    row.first = out_.hashes.size();
    for (const std::string_view each : split(trim(cell.text), ':')) {
      std::uint64_t hash = 0;
      const auto [end, error] = std::from_chars(each.data(), each.data() + each.size(), hash, 16);
      if (each.empty() || error != std::errc() || end != each.data() + each.size())
        return fail(Errc::parse, cell.where, quote(each) + " is not a hash",
                    "write 1 to 16 hexadecimal digits, several joined by ':'");
      out_.hashes.push_back(hash);
    }
    row.slices = static_cast<std::uint32_t>(out_.hashes.size() - row.first);
    return {};
  }

  Status read_extras(const HashRow& row) {
    constexpr std::int64_t any = std::numeric_limits<std::int32_t>::max() * std::int64_t{1 << 20};
    WEFT_TRY(const auto bytes, whole(bytes_column, any));
    WEFT_TRY(const auto ns, whole(ns_column, any));
    if (ns > 0) {
      out_.bytes += bytes;
      out_.ns += ns;
    }
    WEFT_TRY(const auto time, whole(time_column, std::numeric_limits<std::int64_t>::max()));
    out_.last.ns = std::max(out_.last.ns, static_cast<std::int64_t>(time));
    const auto host = trim(csv_.cell(host_column).text);
    if (host.empty()) return {};
    const auto [at, is_new] = out_.hosts.try_emplace(row.rank, host);
    if (!is_new && at->second != host)
      return fail(Errc::value, csv_.cell(host_column).where,
                  fmt::format("rank {} is on host {} here and on host {} before", row.rank,
                              quote(host), quote(at->second)),
                  "give the files of runs on different hosts one at a time");
    return {};
  }

  CsvReader csv_;
  HashSet& out_;
  std::unordered_map<std::string, std::uint32_t> groups_;
};

Result<std::vector<std::string>> hash_files(const std::vector<std::string>& paths) {
  std::vector<std::string> out;
  for (const std::string& path : paths) {
    std::error_code error;
    if (!std::filesystem::is_directory(path, error)) {
      out.push_back(path);
      continue;
    }
    for (auto entry = std::filesystem::directory_iterator(path, error);
         !error && entry != std::filesystem::directory_iterator(); entry.increment(error))
      if (entry->path().extension() == ".csv") out.push_back(entry->path().string());
    if (error)
      return fail(Errc::io, {path, 0, 0}, "cannot read the folder: " + error.message(),
                  "give a folder that you may read");
  }
  std::ranges::sort(out);
  return out;
}

}  // namespace

Status read_hashes(std::string_view text, const std::string& file, HashSet& out) {
  return HashReader(text, file, out).read();
}

Result<HashSet> load_hashes(const std::vector<std::string>& paths) {
  WEFT_TRY(const std::vector<std::string> files, hash_files(paths));
  HashSet out;
  Errors errors;
  for (const std::string& file : files) {
    const auto text = read_file(file);
    if (!text)
      errors.push_back(text.error());
    else if (Status done = read_hashes(*text, file, out); !done)
      errors.push_back(std::move(done).error());
    if (errors.size() == errors_max) break;
  }
  if (!errors.empty()) return std::unexpected(combine(std::move(errors)));
  if (out.rows.empty())
    return fail(Errc::value, {paths.empty() ? "" : paths.front(), 0, 0}, "no hashes",
                "give CSV files of hashes, see docs/commands/colltrace.md");
  return out;
}

}  // namespace weft::observe::colltrace
