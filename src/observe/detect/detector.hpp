// On-box detection: records and samples in, in about the order of their times; out come detections
// and the records that none of them is made of.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "observe/detect/detection.hpp"
#include "observe/detect/event.hpp"
#include "observe/detect/rules.hpp"
#include "observe/detect/term_window.hpp"

namespace weft::observe::detect {

struct DetectOptions {
  std::int64_t lateness_ns = ns_per_s / 5;  // how much an event may come behind the newest
  std::uint32_t ports_per_card = 36;
  std::size_t events_max = 16'384;   // that each term of a rule remembers
  std::size_t members_max = 4096;    // that a detection names
  std::size_t waiting_max = 65'536;  // events within the lateness
};

class Detector {
 public:
  struct Output {
    std::vector<Detection> detections;   // by when they were told, then by rule and group
    std::vector<std::uint64_t> singles;  // serials of records that are to be told themselves
    std::vector<std::uint64_t> folded;   // of those that are members of a detection instead
  };

  // The fabric must outlive this. Memory: at most 56 bytes for each event of `events_max` in each
  // term, and `waiting_max` of 64.
  Detector(const model::Fabric& fabric, Rules rules, const DetectOptions& options);
  Detector(Detector&&) noexcept;
  Detector& operator=(Detector&&) noexcept;
  ~Detector();

  // Any order within the lateness gives the same output: events are put in order of time, equal
  // times by content. Cost: O(log(events within the lateness)), and O(1) for each rule that
  // listens, amortised.
  void take(const Event& event);
  // It is this late now, less the lateness for what is under way: time passes without events too.
  void advance(Timestamp now);
  // What is certain so far. Samples have no serial and are never told.
  Output poll();
  // All of the rest: nothing more is to come.
  Output finish();

  const Rules& rules() const;
  const Context& context() const;
  const DetectCounts& counts() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace weft::observe::detect
