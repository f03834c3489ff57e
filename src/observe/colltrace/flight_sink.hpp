// What the two readers of flight recorder dumps share: from the fields of a dump to entries.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "observe/colltrace/job.hpp"

namespace weft::observe::colltrace {

// The fields of one entry as they were read; texts live until the entry is taken.
struct FlightFields {
  std::string_view name, group, description, state;
  // Sizes and types without spaces, e.g. "[[4,8]]" and "["Float"]"
  std::string in_sizes, out_sizes, in_types, out_types;
  std::uint64_t record = 0, seq = 0, p2p_seq = 0;
  bool has_record = false, has_seq = false, has_p2p_seq = false, is_p2p = false;
  std::int64_t created_ns = 0, started_ns = 0, ended_ns = 0;
  double duration_ms = 0;

  void clear();
};

class FlightSink {
 public:
  FlightSink(std::string file, std::uint32_t rank, JobBuilder& job)
      : file_(std::move(file)), rank_(rank), job_(job) {}

  Status version(std::string_view text);
  // One of the process groups; may come behind the entries.
  Status group(std::string_view name, std::string_view description, std::string_view ranks);
  void unknown_key(std::string_view key) { ++job_.job().unknown_keys[std::string(key)]; }
  Status entry(const FlightFields& f);
  Status finish();

 private:
  struct Known {
    std::string name, description;
    std::vector<std::uint32_t> members;
    bool is_configured = false;
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
  std::string signature_;
  bool has_version_ = false;
};

Status read_flight_json(std::string& content, const std::string& file, FlightSink& sink);
Status read_flight_pickle(std::string_view content, const std::string& file, FlightSink& sink);

}  // namespace weft::observe::colltrace
