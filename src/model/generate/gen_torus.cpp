// Torus: routers on a grid, each joined to the next and the last along every dimension.
#include <fmt/format.h>

#include "base/text.hpp"
#include "model/generate/generator.hpp"

namespace weft::model {
namespace {

//  dimensions: [4, 3]       the first coordinate counts fastest; a row closes to a ring
//   0 - 1 - 2 - 3 -(0)      unless `wrap: false` (a mesh)
//   |   |   |   |           2 places: one cable, no second one around
//   4 - 5 - 6 - 7
// Torus networks: Dally, Towles, "Principles and Practices of Interconnection Networks" (2004),
// chapter 5; as built for training: Jouppi et al., "TPU v4", ISCA 2023 (three dimensions).
class Torus {
 public:
  static CommonDefaults defaults(const Config&) { return {}; }

  Torus(Reader& reader, const CommonKeys& common)
      : common_(common),
        hosts_(reader.count("hosts_per_router", 1, 1, key_count_max)),
        link_(read_rate(reader, "torus_link", common.link)),
        wrap_(reader.flag("wrap", true)) {
    for (const Token& token : reader.texts("dimensions")) {
      const auto size = parse_count(token);
      if (!size)
        reader.error(size.error());
      else if (*size < 1 || *size > key_count_max)
        reader.error(Errc::value, token.where, fmt::format("a dimension of {} routers", *size),
                     fmt::format("give 1 to {}", key_count_max));
      else
        sizes_.push_back(*size);
    }
  }

  void check(Reader& reader) const {
    if (sizes_.empty() || sizes_.size() > dimensions_max)
      return reader.error(
          Errc::parse, reader.where("dimensions"),
          fmt::format("a torus of {} dimensions", sizes_.size()),
          fmt::format("give 1 to {} sizes, e.g. dimensions: [16, 16, 16]", dimensions_max));
    const double hosts = routers() * static_cast<double>(hosts_);
    check_gpus(reader, {{"hosts", hosts}, {"gpus_per_host", common_.gpus()}});
    double cables = 0;
    for (const std::int64_t size : sizes_)
      cables += routers() / static_cast<double>(size) * static_cast<double>(cables_along(size));
    check_cables(reader, {{"inside hosts", times(hosts, common_.host.cable_count())},
                          {"nic--router", times(hosts, common_.nics())},
                          {"router--router", cables}});
  }

  void build(FabricBuilder& builder) const {
    const ScopeId zone = builder.add_scope(ScopeKind::zone, ScopeId{});
    HostPlacer hosts(builder, common_.host);
    std::vector<NodeId> routers;
    for (double i = 0; i < this->routers(); ++i)
      routers.push_back(add_rack(builder, hosts, common_, {"router", zone, hosts_}));
    std::size_t step = 1;  // between neighbours of the dimension
    for (const std::int64_t along : sizes_) {
      const auto size = static_cast<std::size_t>(along);
      for (std::size_t i = 0; i < routers.size(); ++i) {
        const std::size_t place = i / step % size;
        const bool last = place + 1 == size;
        if (last && (!wrap_ || size <= 2)) continue;
        builder.add_circuit(routers[i], routers[last ? i - place * step : i + step],
                            {link_, common_.latency});
      }
      step *= size;
    }
  }

 private:
  static constexpr std::size_t dimensions_max = 6;

  double routers() const {
    double count = 1;
    for (const std::int64_t size : sizes_) count *= static_cast<double>(size);
    return count;
  }
  std::int64_t cables_along(std::int64_t size) const { return wrap_ && size > 2 ? size : size - 1; }

  const CommonKeys& common_;
  std::vector<std::int64_t> sizes_;
  std::int64_t hosts_;
  Rate link_;
  bool wrap_;
};

}  // namespace

Result<Fabric> generate_torus(const Config& section) { return generate<Torus>(section); }

}  // namespace weft::model
