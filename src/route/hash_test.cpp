// Hash functions: known answers, evenness, polarisation.
#include "route/hash.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstring>

#include "base/test_effort.hpp"
#include "route/test_net.hpp"

namespace weft::route {
namespace {

using namespace testing;

TEST_CASE("crc32 has the check value of IEEE 802.3 and is linear") {
  const auto crc_of = [](const char* text) {
    std::array<std::uint8_t, 16> bytes{};
    std::memcpy(bytes.data(), text, std::strlen(text));
    return crc32(0, bytes.data(), std::strlen(text));
  };
  CHECK(crc_of("123456789") == 0xCBF43926u);
  CHECK(crc_of("") == 0);
  // The XOR of three messages of one length has the XOR of their CRCs.
  const std::array<std::uint8_t, 3> a{'a', 'b', 'c'}, b{'x', 'y', 'z'}, c{'1', '2', '3'};
  std::array<std::uint8_t, 3> d{};
  for (std::size_t i = 0; i < 3; ++i) d[i] = a[i] ^ b[i] ^ c[i];
  CHECK(crc32(0, d.data(), 3) ==
        (crc32(0, a.data(), 3) ^ crc32(0, b.data(), 3) ^ crc32(0, c.data(), 3)));
}

TEST_CASE("headers from the table of addresses are those of the two nodes") {
  const Fabric fabric = make_fabric(
      "{generator: ai_zone, racks: 2, hosts_per_rack: 2, gpus_per_host: 2, spines: 2, "
      "frontend: {storage_hosts: 1}}");
  const auto addresses = addresses_of(fabric);
  for (const NodeId a : fabric.nodes())
    for (const NodeId b : fabric.nodes())
      CHECK(header_between(addresses[a], addresses[b], 3) == header_of(fabric, a, b, 3));
}

TEST_CASE("scale covers every outcome, evenly, for any count") {
  for (const std::size_t count : {1u, 2u, 3u, 7u, 18u, 60u, 1000u}) {
    CHECK(scale(0, count) == 0);
    CHECK(scale(UINT64_MAX, count) == count - 1);
    std::vector<int> hits(count, 0);
    for (std::uint64_t i = 0; i < 8000; ++i) ++hits[scale(i * (UINT64_MAX / 8000), count)];
    for (const int n : hits) CHECK(std::abs(n - 8000.0 / static_cast<double>(count)) <= 1);
  }
}

TEST_CASE("a header: what the pair decides and what the QP decides") {
  const Fabric fabric = make_fabric("{generator: ai_zone, racks: 2, spines: 2}");
  const NodeId a = fabric.nics()[1], b = fabric.nics()[20];
  const FlowHeader first = header_of(fabric, a, b, 0);
  CHECK(first.src_address == 0x0A000002u);
  CHECK(first.dst_address == 0x0A000015u);
  CHECK(first.src_port >= 0xC000);
  FlowHeader next = header_of(fabric, a, b, 1);
  CHECK(next.dst_qp == ((first.dst_qp + 1) & 0xFFFFFF));
  next.dst_qp = first.dst_qp;
  CHECK(next == first);
  for (const std::string& name : hash_names()) {
    const HashFunction& hash = *find_hash(name);
    CHECK(hash.digest(header_of(fabric, a, b, 1), QpField::ignored) ==
          hash.digest(first, QpField::ignored));
    CHECK(hash.digest(header_of(fabric, a, b, 1), QpField::hashed) !=
          hash.digest(first, QpField::hashed));
  }
  CHECK(find_hash("md5") == nullptr);
}

// Pearson's chi-square over 18 uplinks of one rack; 17 degrees of freedom, 99.9 % below 40.8.
TEST_CASE("flows spread over uplinks as independent draws would") {
  const Fabric fabric = make_fabric("{generator: ai_zone, racks: 64, spines: 18}");
  for (const std::string& hash : hash_names())
    for (std::uint64_t seed = 1; seed <= test_effort(4); ++seed) {
      CAPTURE(hash);
      CAPTURE(seed);
      Router router = make_router(fabric, {.scheme = "e_ecmp", .qps = 4, .hash = hash}, seed);
      std::map<LinkId, int> load;
      int flows = 0;
      for (std::size_t nic = 0; nic < 16; ++nic)
        for (std::size_t other = 16; other < fabric.nics().size(); ++other)
          for (std::uint32_t qp = 0; qp < 4; ++qp, ++flows)
            ++load[path_of(router, {fabric.nics()[nic], fabric.nics()[other], qp}).at(1)];
      CHECK(load.size() == 18);
      double chi_square = 0;
      const double mean = flows / 18.0;
      for (const auto& [l, n] : load) chi_square += (n - mean) * (n - mean) / mean;
      CHECK(chi_square < 40.8);
      // A linear hash of counted addresses is more even than chance, so no lower bound for it.
      if (hash == "mix64") CHECK(chi_square > 4);
    }
}

// Two levels of choice: 4 CTSWs in a pod, 4 ATSWs over each. Share of the CTSW uplinks that carry
// anything from one rack: a quarter where each switch repeats the choice before it.
double used_share(const Fabric& fabric, const RoutingConfig& config, std::uint64_t seed) {
  Router router = make_router(fabric, config, seed);
  std::set<LinkId> used;
  const std::size_t half = fabric.nics().size() / 2;
  for (std::size_t i = 0; i < 16; ++i)
    for (std::size_t j = half; j < 2 * half; ++j) {
      const Path path = path_of(router, {fabric.nics()[i], fabric.nics()[j]});
      REQUIRE(path.size() == 6);
      used.insert(path[2]);
    }
  return static_cast<double>(used.size()) / 16;
}

TEST_CASE("equal seeds polarise, with either hash; seeds of their own do not") {
  const Fabric fabric =
      make_fabric("{generator: three_tier, pods: 2, racks: 4, ctsws: 4, atsws: 4}");
  double crc_sum = 0;
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    CHECK(used_share(fabric, {.hash = "mix64", .same_hash_seed = true}, seed) == 0.25);
    CHECK(used_share(fabric, {.hash = "crc32", .same_hash_seed = true}, seed) == 0.25);
    CHECK(used_share(fabric, {.hash = "mix64"}, seed) == 1);
    crc_sum += used_share(fabric, {.hash = "crc32"}, seed);
  }
  // Two switches of a linear hash that read overlapping bits still repeat each other.
  CHECK(crc_sum / 8 > 0.7);
  CHECK(crc_sum / 8 < 1);
}

TEST_CASE("crc32 with equal seeds is linear from flow to path") {
  // With 4 uplinks the choice is two bits of the CRC. So from any three flows of one pair the path
  // of the fourth follows, when its QP is the XOR of theirs: what a host that knows the hash can
  // use.
  const Fabric fabric = make_fabric("{generator: ai_zone, racks: 2, spines: 4}");
  Router router = make_router(
      fabric, {.scheme = "e_ecmp", .qps = 4096, .hash = "crc32", .same_hash_seed = true});
  const NodeId a = fabric.nics()[0], b = fabric.nics()[16];
  const std::uint32_t base = header_of(fabric, a, b, 0).dst_qp;
  const std::uint32_t start = (8 - base % 8) % 8;  // QP numbers from here on end in 000, 001, ...
  const auto spine = [&](std::uint32_t qp) {
    return fabric.role_index(fabric.to(path_of(router, {a, b, start + qp}).at(1)));
  };
  for (std::uint32_t x = 0; x < 8; ++x)
    for (std::uint32_t y = 0; y < 8; ++y) CHECK(spine(x ^ y) == (spine(x) ^ spine(y) ^ spine(0)));
}

TEST_CASE("plain ECMP keeps all QPs of a pair on one path") {
  const Fabric fabric = make_fabric("{generator: ai_zone, racks: 4, spines: 8}");
  Router plain = make_router(fabric, {.scheme = "ecmp", .qps = 16});
  Router enhanced = make_router(fabric, {.scheme = "e_ecmp", .qps = 16});
  CHECK(plain.stream_count() == 1);
  CHECK(enhanced.stream_count() == 16);
  std::set<Path> plain_paths, enhanced_paths;
  for (std::uint32_t qp = 0; qp < 16; ++qp) {
    const Stream stream{fabric.nics()[0], fabric.nics()[40], qp};
    plain_paths.insert(path_of(plain, stream));
    enhanced_paths.insert(path_of(enhanced, stream));
  }
  CHECK(plain_paths.size() == 1);
  CHECK(enhanced_paths.size() > 3);
}

TEST_CASE("round robin: message m uses QP m mod qps") {
  const Fabric fabric = make_fabric("{generator: ai_zone, racks: 4, spines: 8}");
  const RoutingConfig split{.scheme = "e_ecmp", .qps = 4};
  RoutingConfig turns = split;
  turns.message_mode = MessageMode::round_robin;
  Router by_qp = make_router(fabric, split);
  Router by_message = make_router(fabric, turns);
  CHECK(by_message.stream_count() == 1);
  for (std::uint32_t m = 0; m < 12; ++m)
    CHECK(path_of(by_message, {fabric.nics()[3], fabric.nics()[60], 0, m}) ==
          path_of(by_qp, {fabric.nics()[3], fabric.nics()[60], m % 4}));
}

}  // namespace
}  // namespace weft::route
