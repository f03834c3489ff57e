// What forward error correction leaves of a link's bit errors.
#pragma once

#include <cstdint>

namespace weft::model {

// Reed-Solomon codes of Ethernet, of 10-bit symbols (IEEE 802.3 clauses 91 and 119): rs528, "KR4",
// corrects 7 of 528 symbols (100GBASE-R with 25 Gb/s lanes); rs544, "KP4", 15 of 544, two codewords
// interleaved (200, 400 and 800GBASE-R).
enum class Fec : std::uint8_t { none, rs528, rs544 };

// Share of codewords that have more wrong symbols than the code corrects, bits being wrong
// independently of each other with probability `ber` in [0, 0.5]. Bursts are left out: they are
// worse for a code without interleaving. 0 for none.
double codeword_loss(double ber, Fec fec);

// Share of frames lost, in [0, 1]: those with a wrong bit (none), or with a part in such a
// codeword. A frame lies across 1 + L / P codewords (groups of interleaved ones) on average, L its
// bits and P those that a codeword (or group) carries. `frame_bytes`: with preamble and gap. From:
// IEEE 802.3bs-2017, 119.3: BER 2.4e-4 with rs544 gives 1.7e-12 for frames of 64 octets.
double frame_loss(double ber, Fec fec, double frame_bytes);

}  // namespace weft::model
