// Prometheus' text format to samples: what a scrape gives, by a table of names as data.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/config.hpp"
#include "base/result.hpp"
#include "base/timestamp.hpp"
#include "observe/telemetry/label_patterns.hpp"
#include "observe/telemetry/name_table.hpp"
#include "observe/telemetry/share_accumulator.hpp"
#include "port/sample.hpp"

namespace weft::observe::telemetry {

// "{chip}/{sensor}": words and labels in turn.
struct LabelText {
  std::vector<std::string> words;  // one more than labels
  std::vector<std::string> labels;
};

struct PrometheusRow {
  std::string name;
  port::Metric metric = port::Metric::reachable;
  LabelText device, component, index;  // device "": that of the target
  LabelPatterns where;
  double factor = 1;
  enum class Form : std::uint8_t {
    value,
    equals,  // 1 where it is `equals`, else 0
    since    // it is a time in s since 1970: how long ago that is
  } form = Form::value;
  double equals = 0;
  SharePart share = SharePart::none;  // of which part of the metric, a share, it is
  ShareOf share_of = ShareOf::amount;
  std::uint32_t next = NameTable::none;  // the next row of the same name
};

// Of one name the first row whose labels fit counts; rows of files stand before the built-in ones.
class PrometheusMapping {
 public:
  static PrometheusMapping built_in();
  // Fails with every error of the file, each with its position.
  static Result<PrometheusMapping> from_yaml(const Config& config);
  const std::vector<PrometheusRow>& rows() const { return rows_; }
  // The first row of that name, also without the "_total" of counters; NameTable::none.
  std::uint32_t first(std::string_view name) const;

 private:
  Status add(const Config& config);
  void index();
  std::vector<PrometheusRow> rows_;
  NameTable names_;
};
std::string_view builtin_prometheus_text();

struct PrometheusCounts {
  std::uint64_t lines = 0, comments = 0;
  std::uint64_t mapped = 0;          // made a sample, or a part of one
  std::uint64_t unmapped = 0;        // of names, or with labels, that the table does not have
  std::uint64_t malformed = 0;       // no such line, or longer than 64 KiB
  std::uint64_t not_numbers = 0;     // NaN and infinities
  std::uint64_t shares = 0;          // samples that were made of several lines
  ShareAccumulator::Counts untold;   // shares that could not be
  std::vector<std::string> samples;  // the first malformed ones, at most 4 of 200 bytes
};

// Text format 0.0.4 and OpenMetrics 1.0: escapes, time stamps (ms, or s where that is the only
// likely reading), exemplars, which are skipped. Of names that are not in the table only the name
// is looked at.
class PrometheusReader {
 public:
  // Must outlive the reader.
  explicit PrometheusReader(const PrometheusMapping& mapping) : mapping_(mapping) {}

  // All of one scrape; shares that lines give in parts come last. `device`: who answered. Values
  // without a time stamp are of `received`. Cost: some tenths of a microsecond a line.
  void read(std::string_view text, std::string_view device, Timestamp received,
            std::vector<port::Sample>& out);
  const PrometheusCounts& counts() const { return counts_; }

 private:
  static constexpr std::size_t labels_max = 64;
  struct Label {
    std::string_view name, value;
  };
  enum class Fault : std::uint8_t { none, unmapped, malformed, not_number };

  Fault read_line(std::string_view line, std::string_view device, Timestamp received,
                  std::vector<port::Sample>& out);
  bool read_labels(std::string_view& rest);
  bool read_escaped(std::string_view& rest, std::string_view& value);
  std::string_view label(std::string_view name) const;
  void take(const PrometheusRow& row, std::string_view device, Timestamp t, double value,
            std::vector<port::Sample>& out);
  void fill(const LabelText& text, std::string& out) const;

  const PrometheusMapping& mapping_;
  PrometheusCounts counts_;
  ShareAccumulator shares_;
  std::array<Label, labels_max> labels_;
  std::size_t label_count_ = 0;
  std::string unescaped_;  // values that had escapes; never grows while a line is read
  std::string scratch_;
};

// For people: what was read and what was not understood.
std::string to_text(const PrometheusCounts& counts);

}  // namespace weft::observe::telemetry
