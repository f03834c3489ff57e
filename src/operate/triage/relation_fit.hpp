// The point process behind learned relations, fitted by expectation maximisation: see
// relations.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "operate/triage/relations.hpp"

namespace weft::operate::triage {

// Alarms, and for each the earlier ones that may have brought it about.
struct RelationProblem {
  struct Reason {
    std::uint32_t alarm = 0;  // the earlier
    std::uint32_t edge = 0;   // (from kind * kinds + to kind) * nearnesses + nearness
    double delay_s = 0;
  };
  std::uint32_t kinds = 0, places = 0;
  std::uint32_t nearnesses = 1;  // ways in which two places can be near each other
  double duration_s = 0;
  std::vector<std::uint32_t> alarms;  // their kinds, ascending in time
  std::vector<std::size_t> first{0};  // reasons[first[i]] to reasons[first[i + 1]] are of alarm i
  std::vector<Reason> reasons;
  std::vector<double> exposure;  // by kind * nearnesses + nearness: places its alarms could act at

  std::size_t edge_count() const { return std::size_t{kinds} * kinds * nearnesses; }
  std::uint32_t edge(const KindEdge& e) const {
    return (e.from * kinds + e.to) * nearnesses + e.nearness;
  }
};

class RelationFit {
 public:
  // `problem` must outlive the fit. The delay is first taken for a quarter of `memory_s`.
  RelationFit(const RelationProblem& problem, double memory_s);

  // Only these edges from now on.
  void set(const std::vector<KindEdge>& edges);
  // Each alarm is shared out among its reasons, and what each brought about is counted, `rounds`
  // times over.
  void run(std::uint32_t rounds);
  // The edges that are left, and the nats that each is worth: what its alarms would lose without
  // it, less what it foretells.
  std::vector<KindEdge> edges() const;
  // The likeliest reason of each alarm; itself where none is likelier than its own accord.
  std::vector<std::uint32_t> likeliest() const;
  // For each row of the problem's reasons: the part of its alarm that it explains.
  std::vector<double> shares() const;

 private:
  using Reason = RelationProblem::Reason;
  void round();
  double part_of(const Reason& r) const;
  double intensity(std::size_t i) const;
  double exposure_of(std::size_t edge) const;

  const RelationProblem& p_;
  std::vector<double> strength_;  // by edge
  std::vector<double> own_;       // by kind: rate per second and place of its own accord
  double context_ = 1;            // seconds times places
  double rate_per_s_;             // of the delay
};

// Fits, takes out edges that are worth less than they cost to name, and fits again. By evidence.
std::vector<KindEdge> fit_edges(RelationFit& fit, const RelationProblem& problem,
                                const RelationOptions& options);

}  // namespace weft::operate::triage
