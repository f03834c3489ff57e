// The collectives of one job, call by call: which traffic each is, and what it costs.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "workload/collective/cost.hpp"

namespace weft::workload {

// By operation, a name of the algorithm registry; empty: auto.
using Algorithms = std::array<std::string, model::collective_op_count>;

// Plans are kept: jobs repeat few kinds of calls very often.
class Calls {
 public:
  // `fabric` must outlive it.
  Calls(const Fabric& fabric, Library library, Algorithms wanted);

  struct Call {
    std::string algorithm;         // as traffic() takes it
    std::optional<CallCost> cost;  // none: line rate
  };
  // What an algorithm of the job cannot serve uses auto, and a machine that the cost model does not
  // cover runs at line rate; notes() says so.
  Call plan(std::span<const NodeId> ranks, Op op, double bytes);
  // A group of one has nobody to send to. The ranks are those of a group that was checked.
  Traffic traffic(std::vector<NodeId> ranks, Op op, double bytes, const std::string& algorithm);

  // In words.
  std::vector<std::string> notes() const;

 private:
  struct Key {
    std::uint32_t machine;
    Op op;
    double bytes;
    auto operator<=>(const Key&) const = default;
  };
  struct Refusals {
    std::uint32_t groups = 0;
    std::string why;  // of the first
    void add(const Error& error) {
      if (groups++ == 0) why = error.what;
    }
  };
  std::uint32_t number_of(Machine machine);
  Call plan_new(const Machine& machine, Op op, double bytes);

  const Fabric& fabric_;
  Library library_;
  Algorithms wanted_;
  std::vector<Machine> machines_;  // few: groups are alike
  std::map<Key, Call> known_;
  std::map<Op, Refusals> refused_;
  Refusals uncovered_;  // calls of machines that the model does not cover
};

}  // namespace weft::workload
