// The search for the causes of a window's losses. Internal to the room.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <vector>

#include "observe/localise/evidence_index.hpp"
#include "observe/localise/structure.hpp"

namespace weft::observe::localise {

// What the counters say of one link and class.
struct Congestion {
  LinkId link;
  std::uint16_t traffic_class;  // in EvidenceIndex::classes
  double rate;                  // drops over packets
};
struct CounterFacts {
  std::vector<Congestion> congested;  // by link, then class
  std::vector<bool> damaged;          // by LinkId: the receiver counted damaged frames
};

// A component (its number) or a group (component_count + its number; port ranges come last).
using CauseId = Id<struct CauseTag>;

// Which losses a cause explains.
struct Shape {
  enum class Type : std::uint8_t { all, one_class, tuples };
  Type type = Type::all;
  std::uint16_t traffic_class = 0;

  bool takes(std::uint16_t row_class) const {
    return type != Type::one_class || row_class == traffic_class;
  }
  friend auto operator<=>(const Shape&, const Shape&) = default;
};

struct Candidate {
  CauseId cause;
  Shape shape;
  double score = 0;  // log posterior odds against "nothing of the kind"
  double rate = 0;   // intensity; of tuples: share of them
  double gain = 0;   // of the log likelihood
};

// What might be meant instead, and the score that the verdict has left beside it.
struct Alternative {
  Candidate candidate;
  double beside = 0;
};

struct Accepted {
  Candidate candidate;
  std::vector<ComponentId> members;
  std::vector<double> rates;  // of each member
  double prior_rate = 0;      // > 0: known from counters
  double explained = 0;       // lost probes
  std::vector<Alternative> alternatives;
};

// One parameter set for all fabrics; docs/localise.md says where each comes from.
struct Parameters {
  double first_fault = 0.01;  // expected faults of a kind per window, while none is known
  double next_fault = 0.3;    // the same once one is known
  double pair_odds = 0.1;     // both directions alike, against one
  double group_odds = 0.1;    // a whole switch or card, against a link
  double end_odds = 0.006;    // that a host stalls as it sends, as it receives, or both
  double damaged_odds = 0.5;  // that a link with damaged frames loses probes
  double accept = 2;          // least score of a verdict
  double certain = 0.5;       // least probability of a verdict about the fabric
  double decisive = 3;        // score that tells it from what explains as much
  double suspect = -10;       // least score of a suspect
  double losses_min = 3;      // of a fabric verdict
  double tuples_min = 3;      // different tuples of a tuple-selective one
  double group_shape = 4;     // Gamma shape of rates within a group
  double normal_losses = 0.5, normal_probes = 5e5;  // Gamma prior of the background
};

// A tuple that lost (nearly) everything.
inline bool is_hit_tuple(const LossyRow& row) { return row.lost >= 0.9 * row.sent; }

// A row of this intensity needs no further cause to lose everything.
inline constexpr double explained_mu = 0.5;

class Search {
 public:
  Search(const Structure& structure, const EvidenceIndex& ledger, const CounterFacts& counters,
         std::uint32_t card_ports);
  void run();

  const std::vector<Accepted>& accepted() const { return accepted_; }
  const std::vector<Candidate>& suspects() const { return suspects_; }
  const std::array<double, kind_count>& background() const { return background_; }
  const Parameters& parameters() const { return parameters_; }

  std::span<const ComponentId> members(CauseId cause) const;
  Entity entity(CauseId cause) const;
  std::span<const ComponentId> rivals(CauseId group) const;
  bool is_end(CauseId cause) const;
  // Of an end: it loses as much in one window as in another since it began, which stalls do not.
  bool is_even(CauseId end) const;
  // Crossings of the cause's members.
  Tally tally(CauseId cause, Shape shape) const;
  double mean_intensity() const;  // of a path, without faults

 private:
  struct Fit {
    double rate = 0, gain = 0;
  };
  struct Slope {
    double first, second;
  };

  // fit.cpp
  std::span<const Entry> gather(CauseId cause);
  Slope slope(std::span<const Entry> entries, Shape shape, double survivors, double x) const;
  double gain_at(std::span<const Entry> entries, Shape shape, double survivors, double x) const;
  Fit maximise(std::span<const Entry> entries, Shape shape, double survivors) const;
  Candidate score(CauseId cause, Shape shape);
  Candidate score_tuples(CauseId cause);
  double cost(CauseId cause, Shape shape) const;
  double end_cost(ComponentId end) const;
  double losses_on_known_paths(std::span<const Entry> entries, Shape shape) const;
  double intensity(const LossyRow& row) const;
  void update_intensities(CauseId cause);
  void update_intensities();

  // search.cpp
  void count_kinds();
  void judge_ends();
  void accept_congestion();
  void accept_dead_ends();
  std::vector<Candidate> score_all();
  void score_shapes(CauseId cause, std::vector<Candidate>& out);
  enum class Pass : std::uint8_t { settled, again, cut_short };
  Pass greedy();
  bool take(const Candidate& candidate);
  void accept(const Candidate& candidate);
  void rebuild_extra();
  void add_extra(const Accepted& verdict, int sign);
  double explained_by(std::span<const CauseId> parts, const Candidate& group);
  bool is_spread(const Candidate& group) const;
  std::vector<CauseId> rivals_of(CauseId group) const;
  std::vector<CauseId> parts_of(CauseId group) const;
  void prune();
  void find_alternatives(Accepted& verdict);
  double score_beside(const Candidate& cause, const Candidate& known);

  // learn.cpp
  void learn();
  double sweep();
  double learn_background();
  double learn_rates(Accepted& verdict, const std::array<double, kind_count>& background);
  void spread_losses();
  void attribute();

  // ranges.cpp
  void propose_ranges();
  void propose_cards(NodeId node, std::span<const LinkId> ports, Flow flow);
  void propose_runs(NodeId node, std::span<const LinkId> ports, Flow flow);
  void propose(NodeId node, std::span<const LinkId> ports, Flow flow);
  bool is_one_host(std::span<const LinkId> ports) const;
  struct Span {
    std::ptrdiff_t first, last;  // in Structure::ports
  };
  Span span_of(const Entity& range, std::span<const LinkId> ports) const;
  CauseId range_cause(NodeId node, std::span<const LinkId> ports, Flow flow);
  void refine_ranges();
  void refine(Accepted& verdict);
  void merge_neighbours();
  void promote_runs();
  bool extend(Accepted& range, const Accepted& neighbour);
  static bool has_link(const Accepted& verdict, LinkId out, Flow flow);

  const Structure& structure_;
  const EvidenceIndex& ledger_;
  const CounterFacts& counters_;
  std::uint32_t card_ports_;
  Parameters parameters_;

  std::vector<ComponentId> atoms_;
  std::array<double, kind_count> background_{};
  std::array<double, kind_count> kind_crossings_{};  // of all probes
  bool learned_ = false;                             // the background is free of the big faults
  std::vector<double> extra_;                        // intensity of faults, by EvidenceIndex::at
  std::vector<double> mu_;                           // intensity of each lossy row
  std::vector<double> lost_;      // of each lossy row, what no tuple-selective cause explains
  std::vector<double> response_;  // scratch of sweep(), by EvidenceIndex::at
  std::vector<double> dropped_;  // losses that tuple-selective causes explain, by EvidenceIndex::at
  std::vector<Group> ranges_;
  std::set<std::vector<ComponentId>> known_ranges_;
  std::array<double, 6> kind_total_{};  // causes by EntityKind
  std::vector<double> end_cost_;        // by end
  std::vector<bool> even_;              // the same
  std::size_t fabric_faults_ = 0;
  std::vector<Accepted> accepted_;
  std::vector<std::uint8_t> taken_;  // by CauseId: accepted or refused in this pass
  std::vector<Candidate> suspects_;
  std::vector<Entry> gathered_;
  std::vector<std::uint32_t> place_;  // by lossy row: 1 + position in gathered_, or 0
};

}  // namespace weft::observe::localise
