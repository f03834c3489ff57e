// P-31: DCQCN's first decrease halves the rate, and with the paper's thresholds (Kmin 5 KB, Kmax
// 200 KB, Pmax 1 %) a packet that finds 100 KB waiting is marked with probability 0.00487 (Zhu et
// al., "Congestion Control for Large-Scale RDMA Deployments", SIGCOMM 2015). Tolerance: none on the
// rate, the printed digits on the probability.
#include <doctest/doctest.h>

#include "base/test_approx.hpp"
#include "transport/dcqcn.hpp"
#include "transport/red.hpp"

namespace weft::paper {
namespace {

using transport::DcqcnParameters;

TEST_CASE("P-31: the first decrease halves the rate") {
  for (const Rate line : {25_Gbps, 100_Gbps, 400_Gbps}) {
    for (const DcqcnParameters& p :
         {transport::dcqcn_paper(line), transport::dcqcn_reference(line)}) {
      transport::DcqcnSender sender;
      CHECK(sender.rate(p, 7'000'000) == line.bytes_per_s());
      sender.on_cnp(p, 7'000'000);
      CHECK(sender.rate(p, 7'000'000) == line.bytes_per_s() / 2);
    }
  }
}

TEST_CASE("P-31: p(100 KB) = 0.00487") {
  const double p = transport::mark_probability(100'000_B, 5'000_B, 200'000_B, 0.01);
  CHECK(p == approx(0.00487).epsilon(0.0005));
}

}  // namespace
}  // namespace weft::paper
