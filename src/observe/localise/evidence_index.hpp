// The evidence of one window, turned around: by component. Internal to the room.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "observe/localise/structure.hpp"

namespace weft::observe::localise {

// A component that a lossy row crossed `times` times, or with probability `weight` < 1.
struct Crossing {
  ComponentId component;
  float weight = 1;
  std::uint32_t times = 1;
};

// A row that lost something.
struct LossyRow {
  std::uint32_t row = 0;   // in the EvidenceSet
  std::uint32_t flow = 0;  // ends, port, class and leg: the same number in all windows
  std::uint16_t traffic_class = 0;
  bool known_path = true;
  double sent = 0, lost = 0;
  std::span<const Crossing> crossings;
};

// The same from the component's side.
struct Entry {
  std::uint32_t row;  // in EvidenceIndex::lossy
  float weight;
  std::uint32_t times;
};

// What crossed a component. Whole numbers, or of rows without a path multiples of 2^-12: sums of
// them are exact in any order.
struct Tally {
  double survived = 0, lost = 0, late = 0;  // probes
  double rows = 0;
};

// Sums over whole numbers, and rows in an order of their own: the order of the input is forgotten.
struct EvidenceIndex {
  EvidenceIndex(const Structure& structure, const EvidenceSet& evidence,
                const model::State* believed);

  std::size_t at(std::size_t traffic_class, ComponentId component) const {
    return traffic_class * components + component.index();
  }
  std::span<const Entry> entries(ComponentId component) const {
    return {entry.data() + entry_first[component.index()],
            entry.data() + entry_first[component.index() + 1]};
  }

  std::size_t components = 0;
  std::vector<std::string> classes;  // by name; at most 256
  std::uint16_t class_count() const { return static_cast<std::uint16_t>(classes.size()); }
  std::vector<Tally> tally;  // by class and component, see at()
  std::vector<LossyRow> lossy;
  std::vector<Crossing> crossings;
  std::vector<std::uint32_t> entry_first;
  std::vector<Entry> entry;
  std::uint64_t total_sent = 0, total_lost = 0, total_late = 0;  // of rows: a probe has one a leg
  // What was sent out: a probe whose legs have rows of their own is one.
  std::uint64_t probes() const;
  Timestamp begin, end;
  std::size_t windows = 0;               // periods as long as one
  std::vector<std::uint32_t> window_of;  // by lossy row

 private:
  void count(const Structure& structure, const EvidenceSet& evidence, const model::State* believed);
  void count_pathless(const Structure& structure, const EvidenceSet& evidence,
                      const model::State* believed);
  void sort_lossy(const EvidenceSet& evidence);
  void index_lossy(const Structure& structure, const EvidenceSet& evidence,
                   const model::State* believed);
  void find_windows(const EvidenceSet& evidence);

  void rank_classes(const EvidenceSet& evidence);

  std::array<std::uint64_t, 3> sent_on_{};  // by leg
  NodeId prober_;                           // with the lowest number
  std::vector<Timestamp> starts_;           // of its windows
  std::vector<std::uint16_t> class_rank_;   // of EvidenceSet::classes
};

}  // namespace weft::observe::localise
