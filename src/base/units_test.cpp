#include "base/units.hpp"

#include <doctest/doctest.h>

#include <initializer_list>
#include <limits>

#include "base/test_approx.hpp"

using namespace weft;

TEST_CASE("the time to send rounds up to one picosecond") {
  CHECK(4096_B / 400_Gbps == 81'920_ps);
  CHECK(1_B / Rate{8} == 1_s);
  CHECK(1_B / Rate{3} == Duration{2'666'666'666'667});
  CHECK(0_B / 1_Gbps == 0_ps);
  // Against exact integer arithmetic: the result is the least t with t * rate >= bits.
  for (std::int64_t bytes = 1; bytes <= 64; ++bytes) {
    for (std::int64_t gbps : {1, 3, 7, 25, 50, 100, 200, 400, 800}) {
      const Duration t = Bytes{bytes} / Rate{gbps * 1'000'000'000};
      CHECK(t.ps * gbps >= bytes * 8 * 1000);
      CHECK((t.ps - 1) * gbps < bytes * 8 * 1000);
    }
  }
}

TEST_CASE("a transfer longer than simulated time saturates and does not wrap") {
  CHECK(Bytes{INT64_MAX} / Rate{1} == duration_max);
  CHECK(Bytes{INT64_MAX} / Rate{INT64_MAX} == Duration{8'000'000'000'000});
}

TEST_CASE("decimal and binary multiples differ") {
  CHECK(1_MB == Bytes{1'000'000});
  CHECK(1_KiB == Bytes{1024});
  CHECK(1_MiB == 1_KiB * 1024);
  CHECK(1_GiB == 1_MiB * 1024);
  CHECK(1_us == 1000_ns);
  CHECK(1_s == 1'000'000_us);
}

TEST_CASE("sums, differences and scales") {
  CHECK(5_B + 3_B - 2_B == 6_B);
  CHECK(100_Gbps + 100_Gbps == 400_Gbps / 2);
  CHECK(50_Gbps * 8 == 400_Gbps);
  CHECK(Time{5} + Duration{7} == Time{12});
  CHECK(Time{12} - Time{5} == Duration{7});
  CHECK((400_Gbps).bytes_per_s() == 5e10);
  CHECK((2_us).us() == 2.0);
  CHECK((3_s).seconds() == approx(3.0));
}

TEST_CASE("seconds become picoseconds, and the ends of the range hold") {
  CHECK(from_seconds(1.5e-6) == 1500_ns);
  CHECK(from_seconds(0.6e-12) == 1_ps);
  CHECK(from_seconds(-1) == 0_ps);
  CHECK(from_seconds(1e30) == duration_max);
  CHECK(from_seconds(std::numeric_limits<double>::infinity()) == duration_max);
  CHECK(from_seconds(std::numeric_limits<double>::quiet_NaN()) == duration_max);
}
