// Which kinds of alarm lead to which, learned from history: for use beside the written rules.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/result.hpp"

namespace weft::operate::triage {

// Alarms of `kinds` kinds at `places` places, ascending in time. `near[p]` lists the places that
// an alarm at p may lead to alarms at, p itself among them; ascending.
struct AlarmHistory {
  struct Alarm {
    double t_s = 0;
    std::uint32_t place = 0, kind = 0;
  };
  std::uint32_t kinds = 0, places = 0;
  std::vector<Alarm> alarms;
  std::vector<std::vector<std::uint32_t>> near;

  double duration_s() const { return alarms.empty() ? 0 : alarms.back().t_s - alarms.front().t_s; }
};
// Fails: Errc::value for alarms that are out of order or of places or kinds that there are not.
Status check(const AlarmHistory& history);

struct KindEdge {
  std::uint32_t from = 0, to = 0;
  double strength = 0;  // alarms of `to` that one of `from` brings about at each place near it
  double evidence = 0;  // nats by which the history is likelier with the edge than without
  std::uint32_t nearness = 0;  // which of several ways of being near, where they are told apart
};

struct RelationOptions {
  double memory_s = 240;      // nothing older is thought of as a reason
  std::uint32_t rounds = 60;  // of the fit, between two prunings
  std::uint32_t prunings = 8;
};

// Fits a point process in which each alarm comes of its own accord or is brought about by one
// earlier alarm at a place near it, with an exponential delay. Alarms are shared out among their
// possible reasons (expectation maximisation), so that what a common reason explains does not count
// for its consequences; edges worth less than they cost to name, by the Bayesian information
// criterion and for as many pairs as there are, are taken out, and the rest fitted again.
// From: Hawkes, Biometrika 58 (1971); EM as in Veen and Schoenberg, JASA 103 (2008).
// Cost: O(rounds x prunings x pairs of alarms within `memory_s` and near). Deterministic.
std::vector<KindEdge> learn_relations(const AlarmHistory& history,
                                      const RelationOptions& options = {});

// Baselines, each pair of kinds with its score, best first.
// Lift of kind `to` in the `window_s` behind `from`, near it, over what its rate would give.
std::vector<KindEdge> lift_relations(const AlarmHistory& history, double window_s = 60);
// Transfer entropy from `from` to `to` over bins of `bin_s`, near and pooled over places.
// From: Schreiber, Phys. Rev. Lett. 85 (2000), with one bin of history.
std::vector<KindEdge> transfer_entropy(const AlarmHistory& history, double bin_s = 60);

struct EdgeScore {
  double precision = 0, recall = 0;
  double f1() const {
    return precision + recall > 0 ? 2 * precision * recall / (precision + recall) : 0;
  }
};
// `truth[from * kinds + to]` is not 0 for a true edge.
EdgeScore score_edges(const std::vector<KindEdge>& edges, const std::vector<std::uint8_t>& truth,
                      std::uint32_t kinds);

// How many groups the alarms fall into when each is put to the alarm that is its likeliest reason,
// as far as that is likelier than none. Cost: as one round of the fit.
std::size_t fold(const AlarmHistory& history, const std::vector<KindEdge>& edges,
                 const RelationOptions& options = {});

}  // namespace weft::operate::triage
