// What the two readers of flight recorder dumps share: from the fields of a dump to entries.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "observe/colltrace/job.hpp"

namespace weft::observe::colltrace {

// The keys of an entry. `other`: known, and of no use to verdicts.
enum class Field : std::uint8_t {
  process_group,
  record_id,
  collective_seq_id,
  profiling_name,
  input_sizes,
  input_dtypes,
  output_sizes,
  output_dtypes,
  time_created_ns,
  time_discovered_started_ns,
  time_discovered_completed_ns,
  state,
  is_p2p,
  duration_ms,
  other,
  unknown,
};
inline Field field_of(std::string_view key) {
  const auto is = [&](std::string_view name, Field field) {
    return key == name ? field : Field::unknown;
  };
  constexpr auto tag = [](std::string_view text) {  // tells all of them apart
    return text.size() << 8 | static_cast<unsigned char>(text[0]);
  };
  if (key.empty()) return Field::unknown;
  switch (tag(key)) {
    case tag("process_group"):
      return is("process_group", Field::process_group);
    case tag("record_id"):
      return key == "thread_id" ? Field::other : is("record_id", Field::record_id);
    case tag("collective_seq_id"):
      return is("collective_seq_id", Field::collective_seq_id);
    case tag("profiling_name"):
      return is("profiling_name", Field::profiling_name);
    case tag("input_sizes"):
      return is("input_sizes", Field::input_sizes);
    case tag("input_dtypes"):
      return is("input_dtypes", Field::input_dtypes);
    case tag("output_sizes"):
      return is("output_sizes", Field::output_sizes);
    case tag("output_dtypes"):
      return is("output_dtypes", Field::output_dtypes);
    case tag("time_created_ns"):
      return is("time_created_ns", Field::time_created_ns);
    case tag("time_discovered_started_ns"):
      return is("time_discovered_started_ns", Field::time_discovered_started_ns);
    case tag("time_discovered_completed_ns"):
      return is("time_discovered_completed_ns", Field::time_discovered_completed_ns);
    case tag("state"):
      return is("state", Field::state);
    case tag("is_p2p"):
      return is("is_p2p", Field::is_p2p);
    case tag("duration_ms"):
      return is("duration_ms", Field::duration_ms);
    case tag("p2p_seq_id"):
      return is("p2p_seq_id", Field::other);
    case tag("pg_id"):
      return is("pg_id", Field::other);
    case tag("op_id"):
      return is("op_id", Field::other);
    case tag("retired"):
      return is("retired", Field::other);
    case tag("timeout_ms"):
      return is("timeout_ms", Field::other);
    case tag("thread_id"):
      return is("thread_id", Field::other);
    case tag("thread_name"):
      return is("thread_name", Field::other);
    case tag("frames"):
      return is("frames", Field::other);
    default:
      return Field::unknown;
  }
}

// The fields of one entry as they were read; texts live until the entry is taken.
struct FlightFields {
  std::string_view name, group, description, state;
  // As in JSON, e.g. "[[4, 8]]" and "["Float"]".
  std::string_view in_sizes, out_sizes, in_types, out_types;
  std::uint64_t record = 0, seq = 0;
  bool has_record = false, has_seq = false, is_p2p = false;
  std::int64_t created_ns = 0, started_ns = 0, ended_ns = 0;
  double duration_ms = 0;
};

class FlightSink {
 public:
  FlightSink(std::string file, std::uint32_t rank, JobBuilder& job)
      : file_(std::move(file)), rank_(rank), job_(job) {}

  Status version(std::string_view text);
  // One of the process groups; may come behind the entries.
  Status group(std::string_view name, std::string_view description, std::string_view ranks);
  void unknown_key(std::string_view key) { ++job_.job().unknown_keys[std::string(key)]; }
  std::shared_ptr<void>& scratch() { return job_.scratch(); }
  Status entry(const FlightFields& f);
  Status finish();

 private:
  struct Known {
    std::string name, description;
    std::optional<std::uint32_t> group;  // of the job; none: pg_config has not said
  };
  struct Send {  // of `entries_`: between which members of its group
    std::size_t entry;
    std::uint32_t from, to;
  };

  std::unexpected<Error> refuse(std::string what) const;
  std::uint32_t index_of(std::string_view name, std::string_view description);
  std::uint32_t signature_of(const FlightFields& f, bool is_send);
  void end_of_batch(const Entry& whole);

  std::string file_;
  std::uint32_t rank_;
  JobBuilder& job_;
  std::vector<Known> groups_;  // Entry::group is an index into it until finish()
  std::vector<Entry> entries_;
  std::vector<std::uint64_t> records_;
  std::vector<Send> sends_;
  std::string raw_, signature_;
  bool has_version_ = false;
};

Status read_flight_json(std::string& content, const std::string& file, FlightSink& sink);
Status read_flight_pickle(std::string_view content, const std::string& file, FlightSink& sink);

}  // namespace weft::observe::colltrace
