#include "adapt/lab/fault_book.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "adapt/lab/netns.hpp"
#include "base/file.hpp"
#include "os/error.hpp"

namespace weft::adapt::lab {
namespace {

using nlohmann::json;

constexpr std::uint64_t book_bytes_max = 256 << 20;
constexpr std::array<std::string_view, 3> phases{"injecting", "active", "over"};

json options_json(const FaultSpec& spec) {
  json out = json::object();
  for (const FaultOption& option : options_of(spec)) out[option.name] = option.value;
  return out;
}

json to_json(const FaultRecord& record) {
  return {{"id", record.id},
          {"kind", to_text(record.spec.kind)},
          {"target", record.spec.target},
          {"options", options_json(record.spec)},
          {"entities", record.entities},
          {"phase", to_text(record.phase)},
          {"start", record.start},
          {"end", record.end},
          {"hits", record.hits},
          {"wire_index", record.wire_index},
          {"icmp_before", {record.icmp_before.mask, record.icmp_before.interval}},
          {"daemons", record.daemons}};
}

// Throws json::exception on what is not a record.
Result<FaultRecord> from_json(const json& row) {
  std::vector<FaultOption> options;
  for (const auto& [name, value] : row.at("options").items())
    options.push_back({name, value.get<std::string>()});
  FaultRecord record;
  WEFT_TRY(record.spec, parse_fault(row.at("kind").get<std::string>(),
                                    row.at("target").get<std::string>(), options));
  row.at("id").get_to(record.id);
  row.at("entities").get_to(record.entities);
  row.at("start").get_to(record.start);
  row.at("end").get_to(record.end);
  row.at("hits").get_to(record.hits);
  row.at("wire_index").get_to(record.wire_index);
  record.icmp_before = {row.at("icmp_before").at(0).get<std::string>(),
                        row.at("icmp_before").at(1).get<std::string>()};
  row.at("daemons").get_to(record.daemons);
  const auto* const phase = std::ranges::find(phases, row.at("phase").get<std::string>());
  if (phase == phases.end()) return fail(Errc::parse, {}, "unknown phase of fault " + record.id);
  record.phase = static_cast<FaultPhase>(phase - phases.begin());
  return record;
}

Result<std::vector<FaultRecord>> read_records(const std::string& path) {
  std::vector<FaultRecord> records;
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return records;
  WEFT_TRY(const std::string text, read_file(path, book_bytes_max));
  try {
    const json book = json::parse(text);
    for (const json& row : book.at("faults")) {
      WEFT_TRY(FaultRecord record, from_json(row));
      records.push_back(std::move(record));
    }
  } catch (const json::exception& error) {
    return fail(Errc::parse, {path, 0, 0},
                fmt::format("the list of faults is damaged: {}", error.what()),
                "take the lab down, which removes every fault, and bring it up again");
  }
  return records;
}

}  // namespace

std::string_view to_text(FaultPhase phase) { return phases[static_cast<std::size_t>(phase)]; }

std::string truth_line(const FaultRecord& record) {
  json attrs = options_json(record.spec);
  attrs["phase"] = to_text(record.phase);
  for (const auto& [name, count] : record.hits) attrs[name] = count;
  return json{{"id", record.id},
              {"kind", to_text(record.spec.kind)},
              {"entities", record.entities},
              {"start", record.start},
              {"end", record.end.empty() ? json() : json(record.end)},
              {"attrs", std::move(attrs)}}
      .dump();
}

Result<FaultBook> FaultBook::open(const std::string& directory) {
  FaultBook book(directory + "/faults.json");
  const std::string lock = directory + "/faults.lock";
  book.lock_ = Fd(::open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!book.lock_.valid()) return system_failure(lock, errno);
  while (flock(book.lock_.get(), LOCK_EX) != 0)
    if (errno != EINTR) return system_failure(lock, errno);
  WEFT_TRY(book.records, read_records(book.path_));
  return book;
}

Status FaultBook::save() const {
  json rows = json::array();
  for (const FaultRecord& record : records) rows.push_back(to_json(record));
  return write_file(path_, json{{"faults", std::move(rows)}}.dump(1) + "\n");
}

std::string now_text() {
  using namespace std::chrono;
  const auto now = time_point_cast<nanoseconds>(system_clock::now());
  const auto day = floor<days>(now);
  const year_month_day date(day);
  const hh_mm_ss time(now - day);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:09}Z", int{date.year()},
                     unsigned{date.month()}, unsigned{date.day()}, time.hours().count(),
                     time.minutes().count(), time.seconds().count(), time.subseconds().count());
}

}  // namespace weft::adapt::lab
