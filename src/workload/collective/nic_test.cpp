#include "workload/collective/nic.hpp"

#include <doctest/doctest.h>

#include <string>

#include "base/test_approx.hpp"
#include "workload/collective/cost.hpp"
#include "workload/collective/test_kit.hpp"

namespace weft::workload {
namespace {

using test::contains;
using test::hosts_of;
using test::preset;

Library library_of(const std::string& section) {
  const auto file = parse_yaml(section, "s.yaml");
  REQUIRE(file.has_value());
  Errors errors;
  Library library = read_library(*file, errors);
  REQUIRE_MESSAGE(errors.empty(), errors.front().text());
  return library;
}

std::string refusal(const std::string& section) {
  const auto file = parse_yaml(section, "s.yaml");
  REQUIRE(file.has_value());
  Errors errors;
  read_library(*file, errors);
  REQUIRE(errors.size() == 1);
  return errors.front().text();
}

System with(const std::string& nic) {
  System system = preset("h100");
  set_nic(system, *library_of("nic: " + nic).nic);
  return system;
}

constexpr double us = 1e-6;

TEST_CASE("a NIC has the figures of its attachment and drive, and those that are given") {
  const Nic usual = *library_of("nic: {}").nic;
  CHECK(usual.trigger == 6900_ns);
  CHECK(usual.hardware() == 2100_ns);  // 2 x 550 + 1,000
  const Nic nic =
      *library_of("nic: {attach: package, drive: event, latency: 300 ns, message_rate: 5e6}").nic;
  CHECK(nic.trigger == 200_ns);
  CHECK(nic.hardware() == 600_ns);  // 2 x 150 + 300
  CHECK(nic.message_rate == 5e6);
  CHECK(library_of("nic: {attach: smartnic, drive: event}").nic->trigger == 1_us);
  CHECK_FALSE(library_of("step: 3 us").nic.has_value());
}

TEST_CASE("what no NIC can be is refused where it stands") {
  CHECK(contains(refusal("nic: {attach: pci}"), "did you mean \"pcie\"?"));
  CHECK(contains(refusal("nic: {drive: gpus}"), "did you mean \"gpu\"?"));
  CHECK(contains(refusal("nic: {crossing: 2 s}"), "s.yaml:1:17"));
  CHECK(contains(refusal("nic: {message_rate: 0}"), "message_rate"));
  CHECK(contains(refusal("nic: {triggers: 1 us}"), "did you mean \"trigger\"?"));
  CHECK(contains(refusal("{step: 3 us, nic: {}}"), "remove one of them"));
  CHECK(contains(refusal("{cost: line_rate, nic: {}}"), "no effect"));
}

TEST_CASE("a card that a proxy thread drives is what InfiniBand was measured with") {
  const System measured = preset("h100"), made = with("{attach: pcie, drive: cpu}");
  const auto latency_us = [](const System& system, Protocol protocol) {
    return predict(system, hosts_of(4, 8), {Op::all_reduce, "tree", protocol, 0})->latency / us;
  };
  CHECK(latency_us(made, Protocol::ll) == approx(latency_us(measured, Protocol::ll)));
  // 4 steps; Simple takes 2.8 times the software of LL, and the same hardware: 6.9 and 2.1 us.
  CHECK(latency_us(made, Protocol::simple) - latency_us(made, Protocol::ll) ==
        approx(4 * 1.8 * 6.9));
  const auto exchange_us = [](const System& system) {
    return predict(system, hosts_of(8, 8), {Op::all_to_all, "pairwise", Protocol::simple, 1e6})
               ->seconds() /
           us;
  };
  CHECK(exchange_us(made) == approx(exchange_us(measured)));
}

TEST_CASE("each part of a NIC counts as often as a call uses it") {
  // Up and down two levels: 6.8 us, 14 hops of 0.6 us, 4 steps of 0.2 + 2 x 0.15 + 1 us.
  const auto tree = predict(with("{attach: package, drive: event}"), hosts_of(4, 8),
                            {Op::all_reduce, "tree", Protocol::ll, 0});
  CHECK(tree->latency / us == approx(6.8 + 14 * 0.6 + 4 * 1.5));
  // 56 peers of other hosts at 5 million messages a second.
  const auto exchange_us = [](const std::string& rate) {
    return predict(with("{drive: gpu, message_rate: " + rate + "}"), hosts_of(8, 8),
                   {Op::all_to_all, "pairwise", Protocol::simple, 0})
               ->latency /
           us;
  };
  CHECK(exchange_us("5e6") - exchange_us("1e12") == approx(56 / 5.0));
}

TEST_CASE("integration buys much for small exchanges, nothing for large collectives") {
  const System card = with("{attach: pcie, drive: cpu}"),
               chip = with("{attach: package, drive: gpu}");
  const auto gain = [&](Op op, const char* algorithm, double bytes) {
    const Call call{op, algorithm, Protocol::simple, bytes};
    return predict(card, hosts_of(64, 8), call)->seconds() /
           predict(chip, hosts_of(64, 8), call)->seconds();
  };
  CHECK(gain(Op::all_to_all, "pairwise", 64e3) > 3);
  CHECK(gain(Op::all_to_all, "pairwise", 16e9) < 1.02);
  CHECK(gain(Op::all_reduce, "nvls_tree", 16e9) < 1.01);
}

// DeepEP's low-latency kernels, from their table: 128 tokens to 8 experts each, one message a
// token, 7,168 FP8 values with 56 scales of 4 bytes; H800 with a card of 400 Gbps each. Those
// within the host do not leave it, which the table's 98 GB/s on 8 GPUs show.
TEST_CASE(
    "published rows: messages of DeepEP are those of NICs that GPUs drive, not of a proxy's") {
  struct Row {
    double gpus, us;
  };
  const System card = with("{drive: cpu}"), kernels = with("{drive: gpu}");
  for (const Row row : {Row{16, 118}, {32, 155}, {64, 173}, {128, 192}, {256, 194}}) {
    CAPTURE(row.gpus);
    const double messages = 128 * 8 * (row.gpus - 8) / row.gpus;
    const double bytes_s = messages * (7168 + 56 * 4) / (kernels.nic_rate.bytes_per_s() * 0.96);
    CHECK(messages / kernels.message_rate < bytes_s);
    CHECK(bytes_s < row.us * us);
    CHECK(messages / card.message_rate > 3 * row.us * us);
  }
}

}  // namespace
}  // namespace weft::workload
