#include "model/fabric/fec.hpp"

#include <cmath>

namespace weft::model {
namespace {

struct Code {
  int symbols, corrects, data, interleaved;
};
constexpr int symbol_bits = 10;
constexpr Code code_of(Fec fec) {
  return fec == Fec::rs528 ? Code{528, 7, 514, 1} : Code{544, 15, 514, 2};
}

// 1 - (1 - p)^n, also where p is tiny.
double any_of(double p, double n) { return -std::expm1(n * std::log1p(-p)); }

}  // namespace

double codeword_loss(double ber, Fec fec) {
  if (fec == Fec::none || ber <= 0) return 0;
  const auto [n, t, data, interleaved] = code_of(fec);
  const double wrong = any_of(ber, symbol_bits);
  // Terms of the binomial distribution from `first` on, each from the one before: the tail on the
  // side where they are small.
  const auto sum_of = [&](int first, int last) {
    double term =
        std::exp(std::lgamma(n + 1) - std::lgamma(first + 1) - std::lgamma(n - first + 1) +
                 first * std::log(wrong) + (n - first) * std::log1p(-wrong));
    double sum = 0;
    for (int k = first; k <= last; ++k) {
      sum += term;
      term *= wrong / (1 - wrong) * (n - k) / (k + 1);
    }
    return sum;
  };
  return n * wrong < t + 1 ? sum_of(t + 1, n) : std::fmax(1 - sum_of(0, t), 0);
}

double frame_loss(double ber, Fec fec, double frame_bytes) {
  const double bits = 8 * frame_bytes;
  if (ber <= 0) return 0;
  if (fec == Fec::none) return any_of(ber, bits);
  const Code code = code_of(fec);
  const double carried = code.interleaved * code.data * symbol_bits;
  return any_of(codeword_loss(ber, fec), code.interleaved * (1 + bits / carried));
}

}  // namespace weft::model
