// Fat tree of k-port switches: k pods, k^3 / 4 GPUs, full bisection.
#include <fmt/format.h>

#include "model/generate/generator.hpp"

namespace weft::model {
namespace {

// core:0 ... core:k^2/4-1      core a*k/2 + j joins agg a of every pod
//   pod p: agg:0 ... agg:k/2-1
//          | full mesh |             From: Al-Fares, Loukissas, Vahdat, "A Scalable, Commodity
//          edge:0 ... edge:k/2-1     Data Center Network Architecture", SIGCOMM 2008.
//          k/2 NICs each
class FatTree {
 public:
  static CommonDefaults defaults(const Config& section) {
    return {"h100", gpus_per_host_for(peek_count(section, "k", 2) / 2)};
  }

  FatTree(Reader& reader, const CommonKeys& common)
      : common_(common), k_(reader.count("k", std::nullopt, 2, 4096)), half_(k_ / 2) {}

  void check(Reader& reader) const {
    if (k_ % 2 != 0)
      reader.error(Errc::value, reader.where("k"), fmt::format("k = {} is odd", k_),
                   "half of a switch's ports face down and half up: use an even k");
    if (half_ % common_.nics() != 0)
      reader.error(
          Errc::infeasible, reader.where("k"),
          fmt::format("{} NICs per host do not divide the k/2 = {} ports of an edge switch",
                      common_.nics(), half_),
          "choose gpus_per_host so that its NICs divide k/2");
    const double nics = times(k_, half_, half_);
    const double hosts = nics / static_cast<double>(common_.nics());
    check_gpus(reader, {{"hosts", hosts}, {"gpus_per_host", common_.gpus()}});
    check_cables(reader, {{"inside hosts", times(hosts, common_.host.cable_count())},
                          {"nic--edge", nics},
                          {"edge--agg", nics},
                          {"agg--core", nics}});
  }

  void build(FabricBuilder& builder) const {
    const ScopeId zone = builder.add_scope(ScopeKind::zone, ScopeId{});
    const std::vector<NodeId> cores = add_switches(builder, half_ * half_, {"core", zone});
    HostPlacer hosts(builder, common_.host);
    for (std::int64_t p = 0; p < k_; ++p) {
      const ScopeId pod = builder.add_scope(ScopeKind::pod, zone);
      const std::vector<NodeId> aggs = add_switches(builder, half_, {"agg", pod});
      for (std::int64_t e = 0; e < half_; ++e) {
        const NodeId edge =
            add_rack(builder, hosts, common_, {"edge", pod, half_ / common_.nics()});
        for (const NodeId agg : aggs) builder.add_circuit(edge, agg, cable());
      }
      for (std::size_t c = 0; c < cores.size(); ++c)
        builder.add_circuit(aggs[c / static_cast<std::size_t>(half_)], cores[c], cable());
    }
  }

 private:
  FabricBuilder::LinkSpec cable() const { return {common_.link, common_.latency}; }

  const CommonKeys& common_;
  std::int64_t k_, half_;
};

}  // namespace

Result<Fabric> generate_fat_tree(const Config& section) { return generate<FatTree>(section); }

}  // namespace weft::model
