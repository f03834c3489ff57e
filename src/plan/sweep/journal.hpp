// What a sweep has done so far, on disk: rows as they come, so that nothing is lost when it is
// stopped, and so that several machines can share it.
//
// DIRECTORY/points.jsonl (points-K-of-N.jsonl of a shard) has a line with the SweepHead and one for
// every point that ended, in the order in which they did. Only a last line may be incomplete.
#pragma once

#include "base/file_stream.hpp"
#include "plan/sweep/sweep.hpp"

namespace weft::plan {

// What tells two sweeps apart.
struct SweepHead {
  std::uint32_t format = 1;
  std::string version;   // of weft
  std::string scenario;  // file
  std::string digest;    // of all points and the price table
  std::uint64_t points = 0;
  std::vector<std::string> keys;
  std::string currency;
  std::uint32_t shard = 1, shards = 1;
};
template <class Archive, Of<SweepHead> T>
void fields(Archive& ar, T& head) {
  ar("weft_sweep", head.format);
  ar("version", head.version);
  ar("scenario", head.scenario);
  ar("digest", head.digest);
  ar("points", head.points);
  ar("keys", head.keys);
  ar.if_set("currency", head.currency);
  ar("shard", head.shard);
  ar("shards", head.shards);
}

// `prices` is the text of the price table, if any. Cost: O(text of all points).
SweepHead sweep_head(const std::vector<SweepPoint>& points, std::string_view prices,
                     std::string version);

class Journal {
 public:
  // Begins the file, or with `resume` goes on behind what it has, which is put into `rows`. An
  // incomplete last line is cut off. Fails: Errc::value where there is a file without `resume`, or
  // one of another sweep; Errc::parse where it is broken; Errc::io, also while another process
  // writes it.
  static Result<Journal> open(const std::string& directory, const SweepHead& head, bool resume,
                              PointRows& rows);
  // Handed to the system at once. After a failure nothing more is written: see status().
  void add(std::size_t point, const std::vector<SweepRow>& rows);
  // Fails: Errc::io, where a line could not be written.
  const Status& status() const { return status_; }

 private:
  Journal(File file, std::string path) : file_(std::move(file)), path_(std::move(path)) {}
  void write(std::string line);

  File file_;
  std::string path_;
  Status status_;
};

// Complete lines of a journal; what is behind them was being written when weft was killed. A point
// that stands there twice must have the same rows. Fails: Errc::parse or Errc::value, with the
// line.
struct JournalLines {
  SweepHead head;
  PointRows rows;
  std::uint64_t bytes = 0;  // of complete lines; 0: not even a head
};
Result<JournalLines> read_journal(std::string_view text, const std::string& path);

// All journals in the directories, which must be of one sweep; a point that several have is kept
// once. Fails: Errc::value where there are none, or of different sweeps, or where two differ in a
// point; as Journal::open().
struct Merged {
  SweepHead head;
  PointRows rows;
};
Result<Merged> read_journals(const std::vector<std::string>& directories);

// "points 3, 7-9 (4 of 200)", for messages.
std::string describe_points(const std::vector<std::size_t>& points, std::uint64_t of);

// The rows as CSV while they come: each as soon as all points of the shard before it ended.
class CsvStream {
 public:
  // Fails: Errc::io.
  static Result<CsvStream> open(const std::string& path, const SweepHead& head);
  void write_ready(const PointRows& rows);

 private:
  CsvStream(File file, const SweepHead& head);
  File file_;
  SweepShard shard_;
  bool priced_;
  std::size_t next_ = 0;
};

}  // namespace weft::plan
