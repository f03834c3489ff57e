#include "model/fabric/fec.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "base/rng.hpp"
#include "base/test_approx.hpp"
#include "base/test_effort.hpp"

namespace weft::model {

TEST_CASE("frame loss of RS(544,514) at 802.3's bit error ratio is the published one") {
  // IEEE 802.3bs: 2.4e-4 gives 1.7e-12 for 64 octets, sent with 8 of preamble and 12 of gap.
  CHECK(frame_loss(2.4e-4, Fec::rs544, 84) == approx(1.7e-12).epsilon(0.03));
}

// Bits thrown one by one.
TEST_CASE("codewords fail as often as thrown bits make them") {
  struct Case {
    Fec fec;
    int symbols, corrects;
    double ber;
  };
  for (const Case& c : {Case{Fec::rs544, 544, 15, 2e-3}, Case{Fec::rs528, 528, 7, 1e-3}}) {
    Rng rng(7);
    constexpr auto words = static_cast<int>(std::max<std::uint64_t>(test_effort(4000), 2000));
    int failed = 0;
    for (int w = 0; w < words; ++w) {
      int wrong = 0;
      for (int s = 0; s < c.symbols; ++s) {
        bool is_wrong = false;
        for (int bit = 0; bit < 10; ++bit) is_wrong |= rng.uniform() < c.ber;
        wrong += is_wrong ? 1 : 0;
      }
      failed += wrong > c.corrects ? 1 : 0;
    }
    const double expected = codeword_loss(c.ber, c.fec);
    const double spread = std::sqrt(expected * (1 - expected) / words);
    CAPTURE(expected);
    REQUIRE(failed > 50);
    CHECK(std::abs(failed / static_cast<double>(words) - expected) < 4 * spread);
  }
}

TEST_CASE("without a code a frame is lost with any of its bits; ends of the scale") {
  CHECK(frame_loss(1e-6, Fec::none, 4160) == approx(1 - std::pow(1 - 1e-6, 8 * 4160)));
  for (const Fec fec : {Fec::none, Fec::rs528, Fec::rs544}) {
    CHECK(frame_loss(0, fec, 4160) == 0);
    CHECK(frame_loss(0.5, fec, 4160) == approx(1));
    double last = 0;
    for (double ber = 1e-7; ber < 0.4; ber *= 3) {
      const double lost = frame_loss(ber, fec, 4160);
      CHECK(lost >= last);
      CHECK(lost <= 1);
      last = lost;
    }
  }
  CHECK(frame_loss(1e-4, Fec::rs528, 4160) > frame_loss(1e-4, Fec::rs544, 4160));
}

}  // namespace weft::model
