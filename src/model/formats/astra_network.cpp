#include "model/formats/astra_network.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "model/generate/generator.hpp"

namespace weft::model {
namespace {

enum class Shape : std::uint8_t { ring, switched, full };
constexpr std::array<std::string_view, 3> shape_names{"Ring", "Switch", "FullyConnected"};

struct Dim {
  Shape shape = Shape::ring;
  std::int64_t count = 1;
  Rate rate;
  Duration latency;

  // Cables among one group of `count` NPUs.
  double cables() const {
    const auto n = static_cast<double>(count);
    if (shape == Shape::full) return n * (n - 1) / 2;
    if (shape == Shape::switched) return n;
    return count > 2 ? n : n - 1;
  }
  // Cable ends at each NPU.
  std::int64_t ports() const {
    if (shape == Shape::full) return count - 1;
    if (shape == Shape::switched) return 1;
    return std::min<std::int64_t>(count - 1, 2);
  }
};

class NetworkReader {
 public:
  explicit NetworkReader(const Config& document) : reader_(document, "network", errors_) {}

  Result<std::vector<Dim>> read() {
    const auto shapes = list("topology");
    const auto counts = list("npus_count");
    const auto rates = list("bandwidth");
    const auto latencies = list("latency");
    reader_.finish();
    std::vector<Dim> dims(shapes.size());
    for (std::size_t d = 0; d < dims.size(); ++d) {
      dims[d].shape = shape(shapes[d]);
      if (d < counts.size()) dims[d].count = count(counts[d]);
      if (d < rates.size()) dims[d].rate = rate(rates[d]);
      if (d < latencies.size()) dims[d].latency = latency(latencies[d]);
    }
    same_length("npus_count", counts.size(), dims.size());
    same_length("bandwidth", rates.size(), dims.size());
    same_length("latency", latencies.size(), dims.size());
    if (errors_.empty()) check_size(dims);
    if (!errors_.empty()) return std::unexpected(combine(std::move(errors_)));
    return dims;
  }

 private:
  std::vector<Token> list(std::string_view key) {
    auto values = reader_.texts(key);
    constexpr std::size_t dims_max = 16;
    if (!reader_.has(key) || (values.empty() && errors_.empty()))
      reader_.error(Errc::parse, reader_.where(key), fmt::format("network.{} is missing", key),
                    fmt::format("add {}: with one value per dimension", key));
    if (values.size() > dims_max) {
      reader_.error(Errc::value, reader_.where(key),
                    fmt::format("{} dimensions, more than {}", values.size(), dims_max),
                    "merge dimensions");
      values.resize(dims_max);
    }
    return values;
  }

  void same_length(std::string_view key, std::size_t have, std::size_t wanted) {
    if (have != wanted && errors_.empty())
      reader_.error(Errc::value, reader_.where(key),
                    fmt::format("network.{} has {} values, topology has {}", key, have, wanted),
                    "the four lists need one value per dimension");
  }

  Shape shape(const Token& token) {
    const auto found = std::ranges::find(shape_names, token.text);
    if (found != shape_names.end()) return static_cast<Shape>(found - shape_names.begin());
    const std::vector<std::string> known(shape_names.begin(), shape_names.end());
    reader_.error(
        Errc::unknown, token.where,
        fmt::format("unknown topology {}{}", quote(token.text), did_you_mean(token.text, known)),
        fmt::format("choose one of {}", fmt::join(known, ", ")));
    return Shape::ring;
  }

  std::int64_t count(const Token& token) {
    const auto value = parse_count(token);
    if (!value) return reader_.error(value.error()), 1;
    if (*value >= 1 && *value <= gpu_count_max) return *value;
    reader_.error(Errc::value, token.where, fmt::format("npus_count is {}", *value),
                  fmt::format("a dimension must have 1 to {} NPUs", gpu_count_max));
    return 1;
  }

  double number(const Token& token, double least, double most, std::string_view what) {
    const auto value = parse_number(token);
    if (!value) return reader_.error(value.error()), least;
    if (*value >= least && *value <= most) return *value;
    reader_.error(Errc::value, token.where, fmt::format("{} is {}", what, token.text),
                  fmt::format("give a number from {} to {}", least, most));
    return least;
  }
  Rate rate(const Token& token) {
    const double gib = number(token, 1e-6, 1e6, "bandwidth (2^30 B/s)");
    return {std::llround(gib * 8 * 1073741824.0)};
  }
  Duration latency(const Token& token) {
    return {std::llround(number(token, 0, 1e9, "latency (ns)") * 1000)};
  }

  void check_size(const std::vector<Dim>& dims) {
    double npus = 1;
    for (const Dim& dim : dims) npus *= static_cast<double>(dim.count);
    check_gpus(reader_, {{"NPUs", npus}});
    double cables = 0;
    for (const Dim& dim : dims) cables += npus / static_cast<double>(dim.count) * dim.cables();
    check_cables(reader_, {{"inside hosts and to their switches", 2 * npus}, {"others", cables}});
  }

  Errors errors_;
  Reader reader_;
};

class NetworkBuilder {
 public:
  explicit NetworkBuilder(const std::vector<Dim>& dims) : dims_(dims) {
    for (const Dim& dim : dims) {
      npus_ *= dim.count;
      port_rate_ = port_rate_ + dim.rate * dim.ports();
    }
    // A network of one NPU has no cable.
    port_rate_.bps = std::max<std::int64_t>(port_rate_.bps, dims.front().rate.bps);
  }

  Fabric build() {
    zone_ = builder_.add_scope(ScopeKind::zone, ScopeId{});
    const bool direct = dims_.size() == 1 && dims_[0].shape == Shape::switched;
    add_npus(direct);
    std::int64_t stride = 1;
    for (const Dim& dim : dims_) {
      for (std::int64_t r = 0; r < npus_; ++r)
        if (r / stride % dim.count == 0) join(dim, r, stride);
      stride *= dim.count;
    }
    return builder_.freeze();
  }

 private:
  // Where the cables of NPU r end: its switch, or its NIC.
  void add_npus(bool direct) {
    HostSpec spec;
    spec.name = "npu";
    spec.parts = {{NodeKind::gpu, "gpu"}, {NodeKind::nic, "nic"}};
    spec.wires = {{0, 1, port_rate_, Duration{}}};
    HostPlacer hosts(builder_, spec);
    const ScopeId shared = direct ? builder_.add_scope(ScopeKind::rack, zone_) : ScopeId{};
    for (std::int64_t r = 0; r < npus_; ++r) {
      const ScopeId rack = direct ? shared : builder_.add_scope(ScopeKind::rack, zone_);
      const NodeId nic = hosts.nic(hosts.place(rack), 0);
      ends_.push_back(nic);
      if (direct) continue;
      ends_.back() = builder_.add_node({NodeKind::fabric_switch, "npu", rack});
      builder_.add_circuit(nic, ends_.back(), {port_rate_, Duration{}});
    }
  }

  // The group of one dimension whose first NPU is `first`.
  void join(const Dim& dim, std::int64_t first, std::int64_t stride) {
    const auto end = [&](std::int64_t i) {
      return ends_[static_cast<std::size_t>(first + i * stride)];
    };
    const FabricBuilder::LinkSpec cable{dim.rate, dim.latency};
    switch (dim.shape) {
      case Shape::switched: {
        const NodeId middle = builder_.add_node({NodeKind::fabric_switch, "switch", zone_});
        for (std::int64_t i = 0; i < dim.count; ++i) builder_.add_circuit(end(i), middle, cable);
        return;
      }
      case Shape::ring:
        for (std::int64_t i = 0; i + 1 < dim.count; ++i)
          builder_.add_circuit(end(i), end(i + 1), cable);
        if (dim.count > 2) builder_.add_circuit(end(dim.count - 1), end(0), cable);
        return;
      case Shape::full:
        for (std::int64_t i = 0; i < dim.count; ++i)
          for (std::int64_t j = i + 1; j < dim.count; ++j)
            builder_.add_circuit(end(i), end(j), cable);
        return;
    }
  }

  const std::vector<Dim>& dims_;
  std::int64_t npus_ = 1;
  Rate port_rate_;
  FabricBuilder builder_;
  ScopeId zone_;
  std::vector<NodeId> ends_;
};

}  // namespace

bool is_astra_network(const Config& document) {
  return document.find("topology") != nullptr && document.find("npus_count") != nullptr;
}

Result<Fabric> build_astra_network(const Config& document) {
  WEFT_TRY(const std::vector<Dim> dims, NetworkReader(document).read());
  return NetworkBuilder(dims).build();
}

Result<Fabric> read_astra_network(std::string_view text, const std::string& file) {
  WEFT_TRY(const Config document, parse_yaml(text, file));
  return build_astra_network(document);
}

}  // namespace weft::model
