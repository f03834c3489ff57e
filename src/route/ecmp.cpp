// Hash-based ECMP: a switch hashes the header and takes the next hop that the hash falls on.
#include "route/scheme.hpp"
#include "route/shortest_path_scheme.hpp"

namespace weft::route {
namespace {

// `ecmp` hashes addresses, UDP ports and the protocol. `e_ecmp` adds the destination QP, which lets
// the QPs of one connection take different paths (Meta: "RDMA over Ethernet for Distributed AI
// Training at Meta Scale", SIGCOMM 2024).
class Ecmp : public ShortestPathScheme {
 public:
  Ecmp(Parts& parts, QpField qp) : ShortestPathScheme(parts), qp_(qp) {}

  bool append_leg(const Stream& stream, NodeId from, NodeId to, std::vector<Hop>& out) override {
    const std::uint64_t digest = parts_.hasher.digest(stream, qp_);
    const auto choose = [&](NodeId at, const Choices& choices) {
      return parts_.hasher.choose(at, digest, choices);
    };
    const Goal goal = parts_.next_hops.goal(to);
    return walk(parts_.fabric, parts_.next_hops, from, goal, choose, out).valid();
  }

 private:
  QpField qp_;
};

}  // namespace

Result<std::unique_ptr<Scheme>> make_ecmp(Parts& parts) {
  return std::make_unique<Ecmp>(parts, QpField::ignored);
}
Result<std::unique_ptr<Scheme>> make_e_ecmp(Parts& parts) {
  return std::make_unique<Ecmp>(parts, QpField::hashed);
}

}  // namespace weft::route
