#include "workload/trace/goal.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <queue>

#include "base/rng.hpp"
#include "base/test_approx.hpp"
#include "workload/trace/test_kit.hpp"
#include "workload/trace/trace.hpp"

namespace weft::workload {
namespace {

using namespace testing;
using model::Operation;

Result<RecordedWorkload> read_schedule(const std::string& content,
                                       const TraceOptions& options = {}) {
  return read_goal({"job.goal", content}, options);
}

RecordedWorkload good_goal(const std::string& content, const TraceOptions& options = {}) {
  return accepted(read_schedule(content, options));
}

std::string bad_goal(const std::string& content, const TraceOptions& options = {}) {
  return refused(read_schedule(content, options));
}

// The binary form of a text, by the layout of the format's own compiler.
class BinaryWriter {
 public:
  static std::string write(const GoalSchedule& schedule) {
    std::string ranks;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges;
    const std::uint64_t first = 6 + 16ull * schedule.rank_count;
    for (const GoalRank& rank : schedule.ranks) {
      const std::uint64_t begin = first + ranks.size();
      ranks += rank_bytes(rank);
      ranges.emplace_back(begin, first + ranks.size());
    }
    std::string out =
        number(goal_magic, 8) + number(schedule.rank_count, 4) + number(255, 1) + number(255, 1);
    for (const auto& [begin, end] : ranges) out += number(begin, 8) + number(end, 8);
    return out + ranks;
  }

  static std::string number(std::uint64_t value, std::size_t width) {
    std::string out;
    for (std::size_t i = 0; i < width; ++i) out += static_cast<char>(value >> (8 * i));
    return out;
  }

 private:
  static std::string rank_bytes(const GoalRank& rank) {
    std::vector<std::uint32_t> waits(rank.ops.size(), 0);
    for (const GoalEdge& edge : rank.edges) ++waits[edge.after];
    std::string roots, nodes, appendix;
    for (std::uint32_t i = 0; i < rank.ops.size(); ++i) {
      if (waits[i] == 0) roots += number(i, 4);
      const GoalOp& op = rank.ops[i];
      nodes += number(waits[i], 4) + number(static_cast<std::uint64_t>(op.kind), 1) +
               number(op.peer, 4) + number(op.size, 8) + number(op.tag, 4) + number(op.cpu, 1) +
               number(op.nic, 1);
      for (const auto when : {GoalEdge::When::end, GoalEdge::When::start}) {
        const std::uint64_t at = appendix.size() / 4;
        std::uint64_t count = 0;
        for (const GoalEdge& edge : rank.edges)
          if (edge.before == i && edge.when == when) {
            appendix += number(edge.after, 4);
            ++count;
          }
        nodes += number(count, 4) + number(at, 4);
      }
    }
    return number(rank.ops.size(), 4) + number(roots.size() / 4, 4) + roots + nodes + appendix;
  }
};

std::string to_binary(const std::string& text) {
  const auto schedule = parse_goal_text(text, "t");
  REQUIRE(schedule.has_value());
  return BinaryWriter::write(*schedule);
}

// Waits as sets: the two forms list edges in another order.
std::vector<std::string> describe(const model::OpGraph& graph) {
  std::vector<std::string> out;
  for (const auto& actor : graph.actors) {
    const auto& program = graph.programs[actor.program];
    for (const Operation& op : program.operations) {
      std::vector<std::uint32_t> after(program.after.begin() + op.after_first,
                                       program.after.begin() + op.after_first + op.after_count);
      std::ranges::sort(after);
      std::string line = program.role + " " + graph.labels[op.label];
      for (const double x : {op.seconds, op.bytes, double(op.tag), double(op.stream)})
        line += " " + std::to_string(x);
      if (op.kind == Operation::Kind::send || op.kind == Operation::Kind::recv)
        line += " peer " + std::to_string(graph.peers[actor.peer_first + op.slot]);
      for (const std::uint32_t a : after) line += " " + std::to_string(a);
      out.push_back(line);
    }
  }
  return out;
}

// LogGP without contention: a message arrives L + bytes * G after both ends are ready. Runs the
// graph as its contract says; the time of its end.
class Executor {
 public:
  Executor(const model::OpGraph& graph, double latency_s, double s_per_byte)
      : graph_(graph), latency_(latency_s), per_byte_(s_per_byte) {
    for (const auto& actor : graph.actors) {
      const auto& program = graph.programs[actor.program];
      first_.push_back(static_cast<std::uint32_t>(waits_.size()));
      for (const Operation& op : program.operations) waits_.push_back(op.after_count);
    }
    next_.resize(waits_.size());
    ready_.assign(waits_.size(), -1);
    for (std::uint32_t a = 0; a < graph.actors.size(); ++a)
      for (std::uint32_t o = 0; o < program(a).operations.size(); ++o) {
        const Operation& op = program(a).operations[o];
        for (std::uint32_t i = 0; i < op.after_count; ++i)
          next_[first_[a] + program(a).after[op.after_first + i]].push_back(o);
        if (op.after_count == 0) events_.push({0, 0, a, o});
      }
  }

  double run() {
    double now = 0;
    std::size_t done = 0;
    while (!events_.empty()) {
      const Event event = events_.top();
      events_.pop();
      now = event.time;
      if (event.phase == 0) {
        begin(now, event.actor, event.operation);
        continue;
      }
      ++done;
      for (const std::uint32_t o : next_[first_[event.actor] + event.operation])
        if (--waits_[first_[event.actor] + o] == 0) events_.push({now, 0, event.actor, o});
    }
    CHECK(done == waits_.size());
    return now;
  }

 private:
  struct Event {
    double time;
    int phase;  // 0 ready, 1 ended
    std::uint32_t actor, operation;
    // Ends first, so that all that is ready at one time queues by index.
    friend bool operator<(const Event& a, const Event& b) {
      return std::tuple(a.time, -a.phase, a.actor, a.operation) >
             std::tuple(b.time, -b.phase, b.actor, b.operation);
    }
  };

  const model::Program& program(std::uint32_t a) const {
    return graph_.programs[graph_.actors[a].program];
  }

  void begin(double now, std::uint32_t a, std::uint32_t o) {
    const Operation& op = program(a).operations[o];
    ready_[first_[a] + o] = now;
    if (op.kind == Operation::Kind::compute) {
      double start = now;
      if (op.stream != 0) {
        double& free = free_[{a, op.stream}];
        start = std::max(now, free);
        free = start + op.seconds;
      }
      events_.push({start + op.seconds, 1, a, o});
      return;
    }
    const std::uint32_t b = graph_.peers[graph_.actors[a].peer_first + op.slot];
    const std::uint32_t match = program(a).match[o];
    if (ready_[first_[b] + match] < 0) return;
    const double end = now + latency_ + op.bytes * per_byte_;
    events_.push({end, 1, a, o});
    events_.push({end, 1, b, match});
  }

  const model::OpGraph& graph_;
  double latency_, per_byte_;
  std::vector<std::uint32_t> first_;                               // by actor: of its operations
  std::vector<std::uint32_t> waits_;                               // by operation
  std::vector<std::vector<std::uint32_t>> next_;                   // by operation
  std::vector<double> ready_;                                      // by operation; < 0: not yet
  std::map<std::pair<std::uint32_t, std::uint8_t>, double> free_;  // stream of an actor
  std::priority_queue<Event> events_;
};

double makespan(const std::string& text, const TraceOptions& options, double latency_s,
                double s_per_byte) {
  const RecordedWorkload w = good_goal(text, options);
  return Executor(w.graph, latency_s, s_per_byte).run();
}

// Broadcast down a binomial tree of 2^depth ranks: rank r sends to r + 2^k for every k above its
// highest set bit, lowest first.
std::string binomial(unsigned depth, unsigned bytes) {
  std::string out = "num_ranks " + std::to_string(1u << depth) + "\n";
  for (unsigned r = 0; r < 1u << depth; ++r) {
    out += "rank " + std::to_string(r) + " {\n";
    const unsigned high = static_cast<unsigned>(std::bit_width(r));
    if (r > 0)
      out += "in: recv " + std::to_string(bytes) + "b from " +
             std::to_string(r - (1u << (high - 1))) + " tag 0\n";
    for (unsigned k = high; k < depth; ++k) {
      const std::string label = "l" + std::to_string(k);
      out += label + ": send " + std::to_string(bytes) + "b to " + std::to_string(r + (1u << k)) +
             " tag 0\n" + (r > 0 ? label + " requires in\n" : "");
    }
    out += "}\n";
  }
  return out;
}

// By hand: the way to rank r takes one hop per set bit; before bit b of its number the sender has
// b - (bit before) overheads to pay in turn, then L + sG for the message and o to receive it. The
// sum over r's bits is (highest bit + 1) o + (set bits) (o + L + sG), largest for all bits set.
double binomial_by_hand(unsigned depth, double bytes, double latency, double per_byte,
                        double overhead) {
  return depth * overhead + depth * (overhead + latency + bytes * per_byte);
}

const std::string two = R"(num_ranks 2
// a comment
rank 0 { /* and
another */ a: calc 100 cpu 1
  b: send 5000000000b to 1 tag 7 cpu 2 nic 3
  b requires a
  calc 10
}
rank 1 { r: recv 5000000000b from 0 tag 7 c: calc 30 c irequires r }
)";

TEST_CASE("the text form: every kind of operation and option") {
  const RecordedWorkload w = good_goal(two, {.goal_overhead_s = 1e-6});
  CHECK(w.format == "goal text");
  CHECK(w.graph.rank_count == 2);
  const auto& ops = w.graph.programs[0].operations;
  REQUIRE(ops.size() == 4);
  CHECK(ops[0].seconds == approx(100e-9));
  CHECK(ops[0].stream == 2);
  CHECK(ops[1].seconds == 1e-6);  // overhead of the send, behind the calc, on its cpu
  CHECK(ops[1].stream == 3);
  CHECK(ops[1].after_count == 1);
  CHECK(ops[2].kind == Operation::Kind::send);
  CHECK(ops[2].bytes == 5e9);
  CHECK(ops[2].tag == 7);
  CHECK(ops[3].stream == 1);
  CHECK(w.counts ==
        decltype(w.counts){
            {"ranks", 2}, {"calcs", 3}, {"sends", 1}, {"receives", 1}, {"dependencies", 2}});
  CHECK(noted(w, "1 operations specify a nic"));
  CHECK(noted(w, "1 sends are larger than 65535 bytes"));
  CHECK(is_goal({"x", "/* c */ // d\n num_ranks 1"}));
  CHECK_FALSE(is_goal({"x", "/* num_ranks"}));
}

TEST_CASE("mistakes are told with line and column, several at once") {
  const std::string many =
      "num_ranks 2\nrank 0 {\n  a: calc 1\n  a requires b\n  b: calc 1\n  a: calc 2\n}\n"
      "rank 0 { send 1b to 2 }\n";
  const std::string text = bad_goal(many);
  CHECK(text.contains("job.goal:4:14: label \"b\" is used before its definition"));
  CHECK(text.contains("job.goal:6:3: label \"a\" is defined twice"));
  CHECK(text.contains("job.goal:8:6: duplicate rank 0"));
  CHECK(text.contains("job.goal:8:21: rank 2 of 2"));

  struct Row {
    const char *text, *wanted;
  };
  for (const Row& row : {
           Row{"", "1:1: expected \"num_ranks\", but the file ends"},
           Row{"num_ranks 0", "no ranks"},
           Row{"num_ranks 9999999", "the number of ranks is 9999999"},
           Row{"num_ranks 1 rank 0 { calc 1", "1:28: expected an operation"},
           Row{"num_ranks 2\nrank 0 { calc 1\nrank 1 { }",
               "3:1: expected \"calc\", \"send\" or \"recv\", found \"rank\""},
           Row{"num_ranks 1 rank 0 { calc }", "expected a number of nanoseconds, found \"}\""},
           Row{"num_ranks 1 rank 0 { calc 99999999999999999999 }", "longer than 64 bits"},
           Row{"num_ranks 1 rank 0 { send 1 to 0 }",
               "expected a size in bytes such as 8b, found \"1\""},
           Row{"num_ranks 1 rank 0 { send 1b from 0 }", "expected \"to\", found \"from\""},
           Row{"num_ranks 2 rank 0 { send 1b to -1 }",
               "expected the number of a rank, found \"-1\""},
           Row{"num_ranks 2 rank 0 { send 1b to 1 cpu 0 tag 1 }", "in this order"},
           Row{"num_ranks 2 rank 0 { send 1b to 1 tag -1 }", "expected a tag, found \"-1\""},
           Row{"num_ranks 1 rank 0 { calc 1 nic 0 }", "in this order"},
           Row{"num_ranks 1 rank 0 { calc 1 cpu 255 }", "the number of a cpu is 255; at most 254"},
           Row{"num_ranks 1 rank 0 { calc 1x }", "after a number"},
           Row{"num_ranks 1 rank 0 { ? }", "1:22: unexpected character"},
           Row{"num_ranks 1 /* rank 0 { }", "unterminated comment"},
           Row{"num_ranks 1 rank 0 { l: }", "expected \"calc\", \"send\" or \"recv\", found \"}\""},
           Row{"num_ranks 1 rank 0 { l: calc 1 l requires l }", "in a cycle"},
           Row{"num_ranks 1 rank 0 { recv 1b from 0 }", "rank 0 sends to or receives from itself"},
       }) {
    CAPTURE(row.text);
    const std::string got = bad_goal(row.text);
    CAPTURE(got);
    CHECK(got.contains(row.wanted));
  }
  CHECK(read_schedule(two, {.ranks = 4}).error().code == Errc::unsupported);
}

TEST_CASE("sends and receives must meet") {
  CHECK(bad_goal("num_ranks 2\nrank 0 { send 1b to 1 tag 4 }")
            .contains("2:10: rank 1 has no receive from rank 0 with tag 4 for this send"));
  CHECK(bad_goal("num_ranks 2\nrank 1 { recv 1b from 0 }")
            .contains("2:10: no send from rank 0 with tag 0 to rank 1 for this receive"));
  CHECK(noted(good_goal("num_ranks 2 rank 0 { send 1b to 1 } rank 1 { recv 9b from 0 }"),
              "1 receives differ in size"));
  CHECK(noted(good_goal("num_ranks 3 rank 0 { send 1b to 1 } rank 1 { recv 1b from 0 }"),
              "1 ranks are not in the schedule"));
}

TEST_CASE("any source and any tag, where only one message is possible") {
  // Rank 2 gets tag 1 from 0 by name; what is left for the open receives is tag 5 from 1 and,
  // once that is gone, tag 2 from 0.
  const RecordedWorkload w = good_goal(R"(num_ranks 3
rank 0 { send 1b to 2 tag 1 send 2b to 2 tag 2 }
rank 1 { send 3b to 2 tag 5 }
rank 2 { recv 9b from -1 tag -1  recv 3b from -1 tag 5  recv 1b from 0 tag 1 }
)");
  const auto& ops = w.graph.programs[2].operations;
  std::vector<double> sizes;
  for (const Operation& op : ops)
    if (op.kind == Operation::Kind::recv) sizes.push_back(op.bytes);
  CHECK(sizes == std::vector<double>{2, 3, 1});

  const std::string race = R"(num_ranks 3
rank 0 { send 1b to 2 }
rank 1 { send 1b to 2 }
rank 2 { recv 1b from -1
 recv 1b from -1 })";
  CHECK(
      bad_goal(race).contains("4:10: the message matched by this receive depends on timing: from "
                              "rank 0 with tag 0 or from rank 1 with tag 0"));
  CHECK(read_schedule(race).error().code == Errc::unsupported);
  CHECK(bad_goal("num_ranks 2 rank 0 { send 1b to 1 } rank 1 { recv 1b from 0 recv 1b from -1 }")
            .contains("no message is left"));
}

TEST_CASE("both forms of a schedule are the same graph") {
  for (const std::string& text : {two, binomial(3, 8), std::string("num_ranks 1 rank 0 { }")}) {
    const RecordedWorkload a = good_goal(text), b = good_goal(to_binary(text));
    CHECK(b.format == "goal binary");
    CHECK(describe(a.graph) == describe(b.graph));
    CHECK(a.counts == b.counts);
    CHECK(a.notes == b.notes);
  }
}

TEST_CASE("a binary schedule that points outside of itself is refused with the byte") {
  const std::string whole = to_binary(two);
  const auto put = [&](std::size_t at, std::uint64_t value, std::size_t width) {
    std::string out = whole;
    return out.replace(at, width, BinaryWriter::number(value, width));
  };
  CHECK(bad_goal(put(8, 0, 4)).contains("byte 8: 0 ranks"));
  CHECK(bad_goal(put(8, 3, 4)).contains("byte 14"));
  CHECK(bad_goal(put(14, 9999, 8)).contains("byte 14: rank 0"));
  CHECK(bad_goal(put(30, 38, 8)).contains("overlaps"));
  const std::size_t rank0 = 8 + 6 + 32;
  CHECK(bad_goal(put(rank0, 1000, 4)).contains("1000 nodes"));
  const std::size_t node0 = rank0 + 8 + sizeof(std::uint32_t) * 2;  // two roots
  CHECK(bad_goal(put(node0 + 4, 9, 1)).contains("has type 9"));
  CHECK(bad_goal(put(node0, 5, 4)).contains("declares 5 dependencies"));
  CHECK(bad_goal(put(node0 + 23, 77, 4)).contains("dependents beyond the end of the list"));
  CHECK(bad_goal(put(node0 + 39 + 5, 2, 4)).contains("has peer 2 of 2"));
  CHECK(bad_goal(put(rank0 + 8, 1, 4)).contains("root 1 is not a node"));
}

TEST_CASE("irequires waits for the start, requires for the end") {
  // b starts with a (after 10 ns of w), c behind a's end.
  const std::string text =
      "num_ranks 1 rank 0 { w: calc 10 cpu 3 a: calc 50 b: calc 7 cpu 1 c: calc 1 cpu 2\n"
      "a requires w b irequires a c requires a }";
  const RecordedWorkload w = good_goal(text);
  CHECK(w.graph.programs[0].operations.size() == 5);  // and "ready" before a
  CHECK(makespan(text, {}, 0, 0) == approx(61e-9));
  CHECK(makespan("num_ranks 1 rank 0 { w: calc 10 cpu 3 a: calc 50 b: calc 70 cpu 1\n"
                 "a requires w b irequires a }",
                 {}, 0, 0) == approx(80e-9));
}

TEST_CASE("small sends are buffered, large ones wait: a send before a receive on both sides") {
  const auto exchange = [](const std::string& size) {
    std::string out = "num_ranks 2 ";
    for (const auto& [self, other] : {std::pair("0", "1"), std::pair("1", "0")})
      out += fmt::format("rank {0} {{ s: send {2}b to {1} r: recv {2}b from {1} r requires s }} ",
                         self, other, size);
    return out;
  };
  // o, then L + sG, then o.
  CHECK(makespan(exchange("1000"), {.goal_overhead_s = 2}, 5, 0.001) == approx(10));
  CHECK(bad_goal(exchange("70000")).contains("cycle"));
  CHECK_FALSE(read_schedule(exchange("1000"), {.goal_eager_bytes = 10}).has_value());
}

TEST_CASE("calcs of one cpu run one at a time, those of several side by side") {
  CHECK(makespan("num_ranks 1 rank 0 { calc 10 calc 20 calc 25 cpu 1 }", {}, 0, 0) ==
        approx(30e-9));
}

//      0
//     /|\ ...    rank r sends to r + 2^k, k above r's highest bit
//    1 2 4
TEST_CASE("LogGP by hand: binomial trees") {
  for (const unsigned depth : {1u, 2u, 3u, 5u, 7u})
    for (const double overhead : {0.0, 1.5e-6})
      CHECK(makespan(binomial(depth, 1000), {.goal_overhead_s = overhead}, 2.5e-6, 1e-9) ==
            approx(binomial_by_hand(depth, 1000, 2.5e-6, 1e-9, overhead)));
}

TEST_CASE("LogGP by hand: the binary tree of 32 ranks") {
  const std::string content = binomial(5, 1);
  // L = 2.5 us, o = 1.5 us, G = 6 ns per byte: 5 o + 5 (o + L + G).
  const double latency = 2500e-9, overhead = 1500e-9, per_byte = 6e-9;
  const double expected = binomial_by_hand(5, 1, latency, per_byte, overhead);
  CHECK(expected == approx(27.53e-6));
  CHECK(makespan(content, {.goal_overhead_s = overhead}, latency, per_byte) == approx(expected));
  CHECK(makespan(to_binary(content), {.goal_overhead_s = overhead}, latency, per_byte) ==
        approx(expected));
  const RecordedWorkload w = good_goal(content);
  CHECK(w.counts ==
        decltype(w.counts){
            {"ranks", 32}, {"calcs", 0}, {"sends", 31}, {"receives", 31}, {"dependencies", 26}});
}

TEST_CASE("no prefix and no flipped bit breaks the readers") {
  for (const std::string& whole : {two, to_binary(two)}) {
    for (std::size_t n = 0; n < whole.size(); ++n)
      if (const auto out = read_schedule(whole.substr(0, n)); !out)
        CHECK_FALSE(out.error().what.empty());
    Rng rng(2);
    for (int round = 0; round < 20'000; ++round) {
      std::string broken = whole;
      for (int flips = 0; flips < 1 + round % 3; ++flips)
        flip(broken[rng.below(broken.size())], rng.below(8));
      if (const auto out = read_schedule(broken); !out) CHECK_FALSE(out.error().what.empty());
    }
  }
}

}  // namespace
}  // namespace weft::workload
