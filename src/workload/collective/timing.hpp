// How long a collective takes: closed forms, and the calibrated model behind `weft perf`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "workload/collective/system.hpp"
#include "workload/collective/traffic.hpp"

namespace weft::workload {

enum class Protocol : std::uint8_t { ll, ll128, simple };
std::string_view to_text(Protocol protocol);  // "LL", "LL128", "Simple"
Result<Protocol> parse_protocol(std::string_view text);

// One call. `bytes` follows nccl-tests, as Request::bytes does.
struct Call {
  Op op = Op::all_reduce;
  std::string algorithm = "ring";
  Protocol protocol = Protocol::simple;
  double bytes = 0;
};

// The parts of one prediction:
//   seconds = launch + (latency^p + wire^p)^(1/p)
// `latency` is what the hops cost when they carry nothing, `wire` what the bytes cost at full
// bandwidth. p = 1 adds them; p < 1 says how slowly a pipeline of chunks reaches its bandwidth.
struct Terms {
  double launch = 0, latency = 0, wire = 0;  // seconds
  double exponent = 1;
  double seconds() const;
};

// `network` is what one host's NICs sustain for this algorithm, payload bytes per second and
// direction, as an engine finds it on the real fabric; without it network_bytes_per_s().
// Fails: Errc::unknown on an algorithm that timed_algorithms() does not name, Errc::infeasible
// where it cannot serve the shape, operation or protocol, Errc::value on bytes that are negative,
// not finite or beyond collective_bytes_max. Cost: O(1). From: docs/collectives-timing.md.
Result<Terms> predict(const System& system, const GroupShape& shape, const Call& call,
                      std::optional<double> network = {});
std::vector<std::string> timed_algorithms();

// The system with the one latency that makes `call` take `seconds`: host_latency within a host,
// network_latency between hosts.
// Fails: as predict(), and Errc::infeasible when the row is faster than the bandwidths allow.
Result<System> calibrate(System system, const GroupShape& shape, const Call& call, double seconds,
                         std::optional<double> network = {});

// Plain alpha-beta costs in seconds: n ranks, `bytes`, alpha s per step, beta bytes/s per link.
// From: Thakur, Rabenseifner, Gropp, "Optimization of collective communication operations in
// MPICH", IJHPCA 2005, without the reduction's own cost. n > 0, beta > 0.
namespace alpha_beta {
struct Link {
  double alpha, beta;
};
double ring_all_gather(std::uint32_t n, double bytes, Link link);
double ring_all_reduce(std::uint32_t n, double bytes, Link link);
// Steps rounded up where n is not a power of two.
double recursive_doubling_all_gather(std::uint32_t n, double bytes, Link link);
double halving_doubling_all_reduce(std::uint32_t n, double bytes, Link link);
// Every rank sends all it has to every other, through one link, in one step.
double flat_all_reduce(std::uint32_t n, double bytes, Link link);
}  // namespace alpha_beta

}  // namespace weft::workload
