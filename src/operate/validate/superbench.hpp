// Rounds as input of SuperBench's ib-traffic, and what it measured.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "operate/validate/flow_file.hpp"
#include "operate/validate/rounds.hpp"

namespace weft::operate::validate {

// A shell script that writes an inventory, a configuration and the pairs of hosts for ib-traffic of
// SuperBench 0.12, copies the pairs to all hosts, and runs it. One benchmark for each NIC of a
// host, one after the other, as ib-traffic uses one device; the rounds of each follow one another.
// A flow between NICs that have different places in their hosts cannot be said so, and is left out.
std::string superbench_script(const model::Fabric& fabric, const Rounds& rounds);
std::size_t left_out_of_superbench(const model::Fabric& fabric, const Rounds& rounds);

// SuperBench's results-summary.jsonl (a node a line; GB/s). What it could not measure (-1) is left
// out. Fails with file and line: Errc::parse; Errc::unknown for a line or pair that the rounds do
// not have; Errc::infeasible where it ran between other hosts than those of the rounds; Errc::value
// without any result.
Result<Measured> read_superbench(const model::Fabric& fabric, const Rounds& rounds,
                                 std::string_view text, const std::string& file);

}  // namespace weft::operate::validate
