// Runs an operation graph on a network without contention, for tests: communication of b bytes
// takes b / rate seconds once all its parties are ready, whoever else communicates.
#pragma once

#include <algorithm>
#include <map>
#include <queue>
#include <set>
#include <tuple>
#include <vector>

#include "model/work/op_graph.hpp"

namespace weft::workload::test {

struct IdealRun {
  double seconds = 0;                           // the last end
  std::size_t ended = 0, total = 0;             // operations of all actors
  std::vector<std::vector<double>> start, end;  // by actor and operation; < 0: never
};

class IdealNetwork {
 public:
  IdealNetwork(const model::OpGraph& graph, double rate) : graph_(graph), rate_(rate) {}

  IdealRun run() {
    for (std::uint32_t a = 0; a < graph_.actors.size(); ++a) {
      const std::size_t count = program(a).operations.size();
      run_.total += count;
      run_.start.emplace_back(count, -1);
      run_.end.emplace_back(count, -1);
      auto& waits = waits_.emplace_back();
      auto& next = next_.emplace_back(count);
      for (std::uint32_t o = 0; o < count; ++o) {
        const Operation& op = program(a).operations[o];
        waits.push_back(op.after_count);
        for (std::uint32_t i = 0; i < op.after_count; ++i)
          next[program(a).after[op.after_first + i]].push_back(o);
      }
    }
    for (std::uint32_t a = 0; a < graph_.actors.size(); ++a)
      for (std::uint32_t o = 0; o < waits_[a].size(); ++o)
        if (waits_[a][o] == 0) ready(a, o, 0);
    while (!events_.empty()) {
      const auto [now, order, actor, op] = events_.top();
      events_.pop();
      finish(actor, op, now);
    }
    return run_;
  }

 private:
  using Operation = model::Operation;
  using Kind = Operation::Kind;
  using Event = std::tuple<double, std::size_t, std::uint32_t, std::uint32_t>;
  using Place = std::pair<std::uint32_t, std::uint32_t>;  // actor and operation

  const model::Program& program(std::uint32_t actor) const {
    return graph_.programs[graph_.actors[actor].program];
  }

  // All of `parties` run for as long as the last of them needs.
  void begin(const std::vector<Place>& parties, double seconds, double now) {
    for (const auto& [actor, op] : parties) {
      run_.start[actor][op] = now;
      events_.emplace(now + seconds, order_++, actor, op);
    }
  }

  void ready(std::uint32_t actor, std::uint32_t o, double now) {
    const Operation& op = program(actor).operations[o];
    if (op.kind == Kind::compute) {
      auto& queue = queues_[{actor, op.stream}];
      queue.push_back(o);
      if (op.stream == 0 || queue.size() == 1) begin({{actor, o}}, op.seconds, now);
    } else if (op.kind == Kind::collective) {
      const std::uint32_t group = graph_.memberships[graph_.actors[actor].group_first + op.slot];
      auto& parties = meetings_[{group, program(actor).match[o]}];
      parties.emplace_back(actor, o);
      if (parties.size() == graph_.groups[group].actors) begin(parties, op.bytes / rate_, now);
    } else {
      waiting_.emplace(actor, o);
      const Place other{graph_.peers[graph_.actors[actor].peer_first + op.slot],
                        program(actor).match[o]};
      if (waiting_.contains(other)) begin({{actor, o}, other}, op.bytes / rate_, now);
    }
  }

  void finish(std::uint32_t actor, std::uint32_t o, double now) {
    const Operation& op = program(actor).operations[o];
    run_.end[actor][o] = now;
    run_.seconds = std::max(run_.seconds, now);
    ++run_.ended;
    if (op.kind == Kind::compute && op.stream != 0) {
      auto& queue = queues_[{actor, op.stream}];
      queue.erase(queue.begin());
      if (!queue.empty())
        begin({{actor, queue.front()}}, program(actor).operations[queue.front()].seconds, now);
    }
    for (const std::uint32_t next : next_[actor][o])
      if (--waits_[actor][next] == 0) ready(actor, next, now);
  }

  const model::OpGraph& graph_;
  double rate_;
  IdealRun run_;
  std::size_t order_ = 0;
  std::vector<std::vector<std::uint32_t>> waits_;
  std::vector<std::vector<std::vector<std::uint32_t>>> next_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::map<std::pair<std::uint32_t, std::uint8_t>, std::vector<std::uint32_t>> queues_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<Place>> meetings_;
  std::set<Place> waiting_;
};

}  // namespace weft::workload::test
