// Rings and jobs that do the sums themselves, one bit of which is flipped somewhere: what is
// accused is compared with what was flipped, and for one operation with all that leaves the same.
#include "observe/colltrace/dissent.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <set>

#include "base/rng.hpp"
#include "base/test_effort.hpp"

namespace weft::observe::colltrace {
namespace {

using Word = std::uint32_t;
using Buffers = std::vector<std::vector<Word>>;  // by place, then by chunk

enum class Spot : std::uint8_t { nowhere, reducing, gathering, memory, input, compute, weights };
struct Flip {
  Spot spot = Spot::nowhere;
  std::uint32_t place = 0;  // that sends, or whose memory it is
  std::uint32_t at = 0;     // step of the ring, or chunk
};

std::uint32_t back(std::uint32_t from, std::uint32_t by, std::uint32_t n) {
  return (from + 2 * n - by) % n;
}

// AllReduce as n - 1 steps that reduce and n - 1 that pass the sums on: chunk c ends its sum at
// place c.
void ring_all_reduce(Buffers& b, const Flip& flip) {
  const auto n = static_cast<std::uint32_t>(b.size());
  for (const Spot phase : {Spot::reducing, Spot::gathering})
    for (std::uint32_t step = 0; step + 1 < n; ++step) {
      const Buffers before = b;
      for (std::uint32_t i = 0; i < n; ++i) {
        const std::uint32_t chunk = back(i, step + (phase == Spot::reducing ? 1 : 0), n);
        Word sent = before[i][chunk];
        if (flip.spot == phase && flip.place == i && flip.at == step) sent ^= 1u << 7;
        Word& to = b[(i + 1) % n][chunk];
        to = phase == Spot::reducing ? to + sent : sent;
      }
    }
  if (flip.spot == Spot::memory) b[flip.place][flip.at] ^= 1u << 9;
}

// The bytes themselves will do as their hash where only equality counts.
std::string sliced(const std::vector<Word>& chunks) {
  std::string out;
  for (const Word w : chunks) out += fmt::format("{}{:x}", out.empty() ? "" : ":", w);
  return out;
}
std::string whole(const std::vector<Word>& chunks) {
  std::uint64_t sum = 0;
  for (const Word w : chunks) sum = sum * 1'000'003 + w;
  return fmt::format("{:x}", sum);
}

HashReport report_on(const std::string& csv) {
  HashSet hashes;
  const Status done = read_hashes(csv, "test.csv", hashes);
  REQUIRE_MESSAGE(done.has_value(), (done ? "" : done.error().text()));
  auto out = find_dissent(hashes);
  REQUIRE_MESSAGE(out.has_value(), (out ? "" : out.error().text()));
  return std::move(*out);
}

struct RingCase {
  std::uint32_t n = 2;
  std::uint32_t missing = ~0u;  // place that leaves no hash of the flipped operation
  bool slices = false, places = true;
  std::uint32_t rank(std::uint32_t place) const { return (place * 7 + 3) % 41; }
};

Buffers result_of(const RingCase& c, const Flip& flip) {
  Rng rng(c.n);
  Buffers b(c.n, std::vector<Word>(c.n));
  for (auto& chunks : b)
    for (Word& w : chunks) w = static_cast<Word>(rng.next());
  ring_all_reduce(b, flip);
  return b;
}

// Which members hold the same, by slice: all that may be concluded from.
std::string pattern(const RingCase& c, const Buffers& b) {
  std::string out;
  std::map<std::string, int> known;
  for (std::uint32_t i = 0; i < c.n; ++i) {
    if (i == c.missing) continue;
    if (!c.slices)
      out += fmt::format("{},", known.try_emplace(whole(b[i]), known.size()).first->second);
    for (std::uint32_t k = 0; c.slices && k < c.n; ++k) {
      const auto key = fmt::format("{}/{}", k, b[i][k]);
      const int first = static_cast<int>(i);
      out += fmt::format("{},", known.try_emplace(key, first).first->second);
    }
  }
  return out;
}

HashPart part_of(const RingCase& c, const Flip& flip) {
  if (flip.spot == Spot::memory) return {HashPart::Kind::rank, c.rank(flip.place)};
  return {HashPart::Kind::edge, c.rank(flip.place), c.rank((flip.place + 1) % c.n)};
}

std::string csv_of(const RingCase& c, const Flip& flip) {
  std::string out = "step,kind,group,seq,rank,hash,place,size\n";
  for (const bool is_flipped : {false, true}) {
    const Buffers b = result_of(c, is_flipped ? flip : Flip());
    for (std::uint32_t i = 0; i < c.n; ++i)
      if (!is_flipped || i != c.missing)
        out += fmt::format("4,output,dp,{},{},{},{}\n", is_flipped ? 1 : 0, c.rank(i),
                           c.slices ? sliced(b[i]) : whole(b[i]),
                           c.places ? fmt::format("{},{}", i, c.n) : ",");
  }
  return out;
}

struct RingTally {
  int flips = 0, seen = 0, named = 0, single = 0;
};

void try_all_flips(const RingCase& c, RingTally& tally) {
  std::vector<Flip> flips;
  for (std::uint32_t i = 0; i < c.n; ++i) {
    for (std::uint32_t k = 0; k < c.n; ++k) flips.push_back({Spot::memory, i, k});
    for (const Spot phase : {Spot::reducing, Spot::gathering})
      for (std::uint32_t s = 0; s + 1 < c.n; ++s) flips.push_back({phase, i, s});
  }
  const std::string sound = pattern(c, result_of(c, {}));
  std::map<std::string, std::set<HashPart>> that_leave;
  for (const Flip& f : flips)
    if (c.places || f.spot == Spot::memory)
      that_leave[pattern(c, result_of(c, f))].insert(part_of(c, f));
  for (const Flip& f : flips) {
    const std::string seen = pattern(c, result_of(c, f));
    const HashReport report = report_on(csv_of(c, f));
    const std::string what =
        fmt::format("{} members, {} missing, slices {}, places {}, spot {} of {} at {}", c.n,
                    c.missing, c.slices, c.places, static_cast<int>(f.spot), f.place, f.at);
    CAPTURE(what);
    ++tally.flips;
    if (seen == sound) {
      CHECK(report.dissents.empty());
      continue;
    }
    REQUIRE(report.dissents.size() == 1);
    const auto& parts = report.dissents[0].parts;
    CHECK(std::set(parts.begin(), parts.end()) == that_leave[seen]);
    ++tally.seen;
    const bool is_named = std::ranges::find(parts, part_of(c, f)) != parts.end();
    CHECK(is_named == (c.places || f.spot == Spot::memory));
    tally.named += is_named ? 1 : 0;
    tally.single += is_named && parts.size() == 1 ? 1 : 0;
  }
}

TEST_CASE("every single flip in a ring: accused is all that leaves the same hashes") {
  const std::uint32_t n_max = test_is_quick ? 3 : 6;
  RingTally whole, slices, other;
  for (std::uint32_t n = 2; n <= n_max; ++n)
    for (std::uint32_t missing = 0; missing <= n; ++missing)
      for (const bool sliced : {false, true})
        for (const bool places : {true, false}) {
          const bool is_full = places && missing == n;
          try_all_flips(
              {.n = n, .missing = missing < n ? missing : ~0u, .slices = sliced, .places = places},
              !is_full ? other
              : sliced ? slices
                       : whole);
        }
  fmt::print("one hash: {} flips, {} seen, {} named, {} alone; slices: {}, {}, {}, {}\n",
             whole.flips, whole.seen, whole.named, whole.single, slices.flips, slices.seen,
             slices.named, slices.single);
  CHECK(whole.named == whole.seen);
  CHECK(slices.named == slices.seen);
}

// A job that trains: replicas x (ranks of a replica that read one input and exchange what they
// compute), an AllReduce over replicas for each of these. Every fourth step all replicas get one
// input, and what they compute from it is hashed.
struct HashJob {
  std::uint32_t replicas = 3, width = 3, steps = 12, flip_step = 0;
  Flip flip;  // of `rank`, or in the ring of its group
  std::uint32_t rank = 0;
  bool before_exchange = false;
  std::uint32_t every = 0;  // again each so many steps; 0: once

  bool flips(std::uint32_t step) const {
    return step == flip_step || (every > 0 && step > flip_step && (step - flip_step) % every == 0);
  }
  std::string csv() const;
};

Word stir(Word a, Word b) { return (a ^ (b * 2'654'435'761u)) * 40'503u + 0x51ed27u; }

std::string HashJob::csv() const {
  std::string out = "step,kind,group,seq,rank,hash,place,size\n";
  const std::uint32_t ranks = replicas * width;
  Buffers weights(ranks, std::vector<Word>(replicas));
  for (std::uint32_t r = 0; r < ranks; ++r)
    for (std::uint32_t k = 0; k < replicas; ++k) weights[r][k] = stir(r % width, k);
  const auto row = [&](std::uint32_t step, const char* kind, const std::string& group,
                       std::uint32_t seq, std::uint32_t r, const std::string& hash, bool in_ring) {
    out += fmt::format("{},{},{},{},{},{},{}\n", step, kind, group, seq, r, hash,
                       in_ring ? fmt::format("{},{}", r / width, replicas) : ",");
  };
  for (std::uint32_t step = 0; step < steps; ++step) {
    const bool is_replay = step % 4 == 0, now = flips(step);
    const auto hits = [&](Spot spot, std::uint32_t r) {
      return now && flip.spot == spot && rank == r;
    };
    std::vector<Word> inputs(ranks), sums(replicas);
    for (std::uint32_t r = 0; r < ranks; ++r) {
      inputs[r] = stir(step, is_replay ? 99 : r / width) ^ (hits(Spot::input, r) ? 4u : 0u);
      row(step, "input", fmt::format("read{}", r / width), 0, r, fmt::format("{:x}", inputs[r]),
          false);
      Word local = inputs[r] ^ (hits(Spot::compute, r) && before_exchange ? 16u : 0u);
      for (const Word w : weights[r]) local = stir(local, w);
      sums[r / width] += local;
    }
    Buffers gradients(ranks, std::vector<Word>(replicas));
    for (std::uint32_t r = 0; r < ranks; ++r) {
      for (std::uint32_t k = 0; k < replicas; ++k)
        gradients[r][k] = stir(sums[r / width], weights[r][k]);
      if (hits(Spot::compute, r) && !before_exchange) gradients[r][1] ^= 32;
      if (is_replay)
        row(step, "compute", fmt::format("dp{}", r % width), 0, r, whole(gradients[r]), false);
    }
    for (std::uint32_t t = 0; t < width; ++t) {
      Buffers ring;
      for (std::uint32_t d = 0; d < replicas; ++d) ring.push_back(gradients[d * width + t]);
      const bool in_ring = now && t == rank % width && flip.spot <= Spot::memory;
      ring_all_reduce(ring, in_ring ? Flip{flip.spot, rank / width, flip.at} : Flip());
      for (std::uint32_t d = 0; d < replicas; ++d) {
        const std::uint32_t r = d * width + t;
        row(step, "output", fmt::format("dp{}", t), 0, r, sliced(ring[d]), true);
        for (std::uint32_t k = 0; k < replicas; ++k) weights[r][k] += ring[d][k];
        if (hits(Spot::weights, r)) weights[r][flip.at] ^= 8;
        row(step, "weights", fmt::format("dp{}", t), step % replicas, r,
            fmt::format("{:x}", weights[r][step % replicas]), false);
      }
    }
  }
  return out;
}

HashPart truth_of(const HashJob& job) {
  if (job.flip.spot == Spot::input) return {HashPart::Kind::input, job.rank};
  if (job.flip.spot == Spot::gathering)
    return {HashPart::Kind::edge, job.rank, (job.rank + job.width) % (job.replicas * job.width)};
  return {HashPart::Kind::rank, job.rank};
}

bool is_accused(const Accused& accused, const HashPart& part) {
  return accused.part == part || std::ranges::find(accused.or_else, part) != accused.or_else.end();
}

TEST_CASE("one flip in a job that trains: one part is accused, and what follows is no other") {
  for (std::uint32_t rank = 0; rank < (test_is_quick ? 2u : 9u); ++rank)
    for (std::uint32_t step = 4; step < 8; ++step) {
      std::vector<HashJob> jobs;
      const auto add = [&](Spot spot, std::uint32_t at, bool before) {
        jobs.push_back(
            {.flip_step = step, .flip = {spot, 0, at}, .rank = rank, .before_exchange = before});
      };
      add(Spot::input, 0, false);
      add(Spot::compute, 0, false);
      add(Spot::compute, 0, true);
      for (std::uint32_t at = 0; at < 3; ++at) {
        add(Spot::memory, at, false);
        add(Spot::weights, at, false);
        if (at < 2) add(Spot::gathering, at, false);
        if (at < 2) add(Spot::reducing, at, false);
      }
      for (const HashJob& job : jobs) {
        const HashReport report = report_on(job.csv());
        const Spot spot = job.flip.spot;
        const std::string what =
            fmt::format("rank {}, step {}, spot {} at {}, before {}", rank, step,
                        static_cast<int>(spot), job.flip.at, job.before_exchange);
        CAPTURE(what);
        // Summed before anybody compares: all hold the same wrong bytes.
        if (spot == Spot::reducing || (spot == Spot::compute && step % 4 != 0)) {
          CHECK(report.dissents.empty());
          continue;
        }
        REQUIRE(report.accused.size() == 1);
        const Accused& accused = report.accused[0];
        CHECK(is_accused(accused, truth_of(job)));
        if (spot == Spot::input || spot == Spot::weights) CHECK(accused.or_else.empty());
        CHECK(accused.or_else.size() <= 2);
        if (spot == Spot::gathering || spot == Spot::memory)
          CHECK(report.dissents.size() > accused.dissents.size());  // weights follow
      }
    }
}

TEST_CASE("flips that come again leave one part: edge, or rank") {
  const auto first_of = [](HashJob job) {
    const HashReport report = report_on(job.csv());
    REQUIRE(!report.accused.empty());
    CHECK(report.accused.size() == 1);
    CHECK(report.accused[0].or_else.empty());
    return report.accused[0].part;
  };
  HashJob edge{
      .replicas = 5, .flip_step = 1, .flip = {Spot::gathering, 0, 1}, .rank = 7, .every = 1};
  CHECK(first_of(edge) == HashPart{HashPart::Kind::edge, 7, 10});
  HashJob memory{.flip_step = 1, .flip = {Spot::memory, 0, 2}, .rank = 4};
  std::string csv = memory.csv();
  CHECK(is_accused(report_on(csv).accused[0], {HashPart::Kind::rank, 4}));
  // Edges of two rings, from one card.
  csv = "step,kind,group,seq,rank,hash,place,size\n";
  for (const auto& [group, to] : {std::pair("a", 5), std::pair("b", 9)})
    for (std::uint32_t place = 0; place < 5; ++place)
      csv += fmt::format("1,output,{},0,{},{},{},5\n", group,
                         place == 1   ? 7
                         : place == 2 ? to
                                      : to * 10 + static_cast<int>(place),
                         place == 2 || place == 3 ? "1:2:3:4:6" : "1:2:3:4:5", place);
  const HashReport both = report_on(csv);
  REQUIRE(both.dissents.size() == 2);
  CHECK(both.dissents[0].parts == std::vector{HashPart{HashPart::Kind::edge, 7, 5}});
  REQUIRE(both.accused.size() == 1);
  CHECK(both.accused[0].part == HashPart{HashPart::Kind::rank, 7});
}

TEST_CASE("two replicas: one of two; three kinds of bytes: no single flip") {
  const HashReport two =
      report_on("step,kind,group,seq,rank,hash\n1,weights,g,0,3,a\n1,weights,g,0,8,b\n");
  REQUIRE(two.accused.size() == 1);
  CHECK(two.accused[0].part.rank == 3);
  REQUIRE(two.accused[0].or_else.size() == 1);
  CHECK(two.accused[0].or_else[0].rank == 8);
  const HashReport three = report_on(
      "step,kind,group,seq,rank,hash\n1,weights,g,0,3,a\n1,weights,g,0,8,b\n1,weights,g,0,9,c\n");
  REQUIRE(three.dissents.size() == 1);
  CHECK(three.dissents[0].parts.empty());
  CHECK(three.accused.empty());
}

TEST_CASE("hash files that make no sense are refused by line") {
  const auto error_of = [](const std::string& rows) {
    HashSet hashes;
    Status done = read_hashes("step,kind,group,seq,rank,hash,place,size\n" + rows, "h.csv", hashes);
    if (!done) return done.error().text();
    const auto report = find_dissent(hashes);
    return report ? std::string() : report.error().text();
  };
  CHECK(error_of("1,output,g,0,1,a,,\n1,output,g,0,1,a,,\n").empty());
  CHECK(error_of("1,output,g,0,1,xyz,,\n").find("h.csv:2") == 0);
  CHECK(error_of("1,outptu,g,0,1,a,,\n").find("output") != std::string::npos);
  CHECK(error_of("1,output,g,0,1,a,2,2\n").find("place and size") != std::string::npos);
  CHECK(error_of("1,output,g,0,1,a,,\n1,output,g,0,1,b,,\n").find("run") != std::string::npos);
  CHECK(error_of("1,output,g,0,1,a,,\n1,output,g,0,2,b:c,,\n").find("slices") != std::string::npos);
  HashSet moved;
  const Status done = read_hashes(
      "step,kind,group,seq,rank,hash,run,host\n1,input,g,0,4,a,1,x\n1,input,g,0,4,a,2,y\n", "h.csv",
      moved);
  REQUIRE_FALSE(done.has_value());
  CHECK(done.error().text().find("rank 4 is on host \"y\" here and on host \"x\"") !=
        std::string::npos);
  CHECK(error_of("1,output,g,0,1,a,0,2\n1,output,g,0,2,b,0,2\n").find("place 0") !=
        std::string::npos);
}

}  // namespace
}  // namespace weft::observe::colltrace
