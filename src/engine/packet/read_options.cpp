#include "engine/packet/read_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "engine/packet/check_options.hpp"

namespace weft::engine::packet {
namespace {

using Names = std::vector<std::string>;

constexpr Bytes packet_max{65'535};

struct Preset {
  std::string_view name;
  Reliability reliability;
  Congestion congestion;
  Admission admission;
  Overflow overflow;
  enum class Paths : std::uint8_t { one, spray } paths;
};
constexpr std::array<Preset, 5> presets{{
    {"roce", Reliability::goback_n, Congestion::none, Admission::open, Overflow::drop,
     Preset::Paths::one},
    {"hpcc", Reliability::goback_n, Congestion::hpcc, Admission::open, Overflow::drop,
     Preset::Paths::one},
    {"cts", Reliability::goback_n, Congestion::none, Admission::cts, Overflow::drop,
     Preset::Paths::one},
    {"nscc", Reliability::selective, Congestion::nscc, Admission::open, Overflow::trim,
     Preset::Paths::spray},
    {"eqds", Reliability::selective, Congestion::none, Admission::pull, Overflow::trim,
     Preset::Paths::spray},
}};

struct SchemeBalance {
  std::string_view scheme;
  Balance balance;
};
constexpr std::array<SchemeBalance, 6> balances{{
    {"spray", Balance::spray},
    {"reps", Balance::reps},
    {"flowlet", Balance::flowlet},
    {"adaptive", Balance::adaptive},
    {"multipath", Balance::multipath},
    {"ugal", Balance::ugal},
}};

// Where the fluid engine gives a QP one path, packets take it too.
Balance balance_of(std::string_view scheme) {
  const auto* found = std::ranges::find(balances, scheme, &SchemeBalance::scheme);
  return found == balances.end() ? Balance::path : found->balance;
}

class OptionsReader {
 public:
  OptionsReader(Reader& reader, const ReadContext& context) : reader_(reader), context_(context) {}

  Options read() {
    read_transport();
    read_wire();
    read_buffers();
    read_pfc();
    choose_queues();
    read_ecn();
    read_dcqcn();
    read_hpcc();
    read_nscc();
    read_cts();
    read_limits();
    read_classes();
    read_series();
    check_options(options_, reader_, context_);
    return std::move(options_);
  }

 private:
  void read_transport();
  void read_reliability(Reliability preset);
  void read_wire();
  void read_buffers();
  Buffer read_buffer(const std::string& role, const Config& value);
  void read_pfc();
  void read_thresholds(Reader& pfc);
  void choose_queues();
  void read_ecn();
  void read_dcqcn();
  void read_hpcc();
  void read_nscc();
  void read_cts();
  std::uint32_t answered_by_nics() const;
  void read_answers();
  void read_limits();
  void read_classes();
  void read_series();

  // Reads a map of its own; `used` says whether the present settings make use of it.
  enum class Use : std::uint8_t { used, unused };
  template <class Read>
  void section(const std::string& key, Use use, std::string_view needs, Read read);
  // true, false, or a map, which turns it on.
  template <class Read>
  bool flag_or_section(const std::string& key, bool fallback, Read read);

  Bytes full_packet() const { return options_.wire.mtu + options_.wire.header; }
  Use used_if(bool condition) const { return condition ? Use::used : Use::unused; }

  Reader& reader_;
  const ReadContext& context_;
  Options options_;
};

template <class Read>
void OptionsReader::section(const std::string& key, Use use, std::string_view needs, Read read) {
  const Config* value = reader_.child(key);
  if (value == nullptr) return;
  if (use == Use::unused)
    context_.notes.push_back(fmt::format("transport.{} has no effect without {}", key, needs));
  Reader inner(*value, "transport." + key, context_.errors);
  read(inner);
  inner.finish();
}

template <class Read>
bool OptionsReader::flag_or_section(const std::string& key, bool fallback, Read read) {
  const Config* value = reader_.child(key);
  if (value == nullptr) return fallback;
  if (value->kind == Config::Kind::scalar || value->kind == Config::Kind::null)
    return reader_.flag(key, fallback);
  Reader inner(*value, "transport." + key, context_.errors);
  read(inner);
  inner.finish();
  return true;
}

void OptionsReader::read_transport() {
  Names names;
  for (const Preset& preset : presets) names.emplace_back(preset.name);
  const Preset& preset = presets[reader_.choice("name", names, 0)];
  options_.transport = preset.name;
  options_.admission = preset.admission;
  const Names congestions{"none", "dcqcn", "hpcc", "nscc"};
  options_.congestion = static_cast<Congestion>(
      reader_.choice("cc", congestions, static_cast<std::size_t>(preset.congestion)));
  const Names overflows{"drop", "trim"};
  options_.overflow = static_cast<Overflow>(
      reader_.choice("overflow", overflows, static_cast<std::size_t>(preset.overflow)));
  route::RoutingConfig& routing = context_.routing;
  if (preset.paths == Preset::Paths::spray && !routing.scheme_given) routing.scheme = "spray";
  options_.balance = balance_of(routing.scheme);
  options_.entropies = routing.entropies;
  options_.paths = routing.paths;
  options_.flowlet_gap = routing.flowlet_gap;
  read_reliability(preset.reliability);
}

// Packets of one message that take different paths overtake each other, which go-back-N takes for
// losses.
void OptionsReader::read_reliability(Reliability preset) {
  const bool reorders = is_by_packet(options_.balance) || options_.balance == Balance::ugal;
  const bool selective = reorders || options_.congestion == Congestion::nscc;
  const Names names{"go_back_n", "selective"};
  options_.reliability = static_cast<Reliability>(reader_.choice(
      "reliability", names, static_cast<std::size_t>(selective ? Reliability::selective : preset)));
  if (reorders && options_.reliability == Reliability::goback_n)
    context_.notes.push_back(
        fmt::format("transport.reliability: go_back_n treats packets reordered by scheme {} as "
                    "lost and retransmits them",
                    context_.routing.scheme));
}

void OptionsReader::read_wire() {
  WireFormat& wire = options_.wire;
  const auto size = [&](const char* key, Bytes& value, Bytes least) {
    const Bytes read = reader_.bytes(key, value);
    if (read >= least && read <= packet_max) {
      value = read;
    } else {
      reader_.error(Errc::value, reader_.where(key),
                    fmt::format("{} {} is not within {} .. {}", key, to_text(read), to_text(least),
                                to_text(packet_max)),
                    "an mtu of 1 to 9 kB is typical, and 64 B for the rest");
    }
  };
  size("mtu", wire.mtu, Bytes{64});
  size("header", wire.header, Bytes{0});
  size("control", wire.control, Bytes{1});
  size("pause_frame", wire.pause, Bytes{1});
  if (full_packet() > packet_max)
    reader_.error(Errc::value, reader_.where("mtu"),
                  fmt::format("mtu {} and header {} make packets above {}", to_text(wire.mtu),
                              to_text(wire.header), to_text(packet_max)),
                  "jumbo frames carry 9,000 B; RoCE at most 4,096 B");
  const Names lengths{"full", "exact"};
  wire.last_packet = static_cast<LastPacket>(reader_.choice("last_packet", lengths, 0));
}

// A size for all switches, or a map by role.
void OptionsReader::read_buffers() {
  const Config* value = reader_.child("buffers");
  if (value == nullptr) return;
  if (value->kind != Config::Kind::map) {
    options_.buffers[""].shared = reader_.bytes("buffers", Bytes{0});
    return;
  }
  for (const Config::Field& field : value->fields)
    options_.buffers[field.key == "others" ? "" : field.key] = read_buffer(field.key, field.value);
}

Buffer OptionsReader::read_buffer(const std::string& role, const Config& value) {
  Buffer buffer;
  if (value.kind == Config::Kind::map) {
    Reader inner(value, "transport.buffers." + role, context_.errors);
    buffer.shared = inner.bytes("shared", Bytes{0});
    buffer.per_port = inner.bytes("per_port", Bytes{0});
    inner.finish();
  } else {
    Config one = Config::map(value.where);
    one.at_or_add(role) = value;
    Reader inner(one, "transport.buffers", context_.errors);
    buffer.shared = inner.bytes(role, Bytes{0});
  }
  return buffer;
}

void OptionsReader::read_pfc() {
  Pfc& pfc = options_.pfc;
  const bool shares = std::ranges::any_of(
      options_.buffers, [](const auto& entry) { return entry.second.shared.count > 0; });
  pfc.threshold = shares ? Pfc::Threshold::dynamic : Pfc::Threshold::fixed;
  pfc.xoff = full_packet() * 15;
  pfc.xon = full_packet() * 12;
  pfc.resume_offset = full_packet() * 2;
  pfc.on = flag_or_section("pfc", false, [&](Reader& reader) {
    read_thresholds(reader);
    const Bytes unset = pfc.headroom;
    pfc.headroom = reader.bytes("headroom", unset);
    const Names rules{"standard", "hpcc"};
    pfc.headroom_rule = static_cast<Pfc::Rule>(reader.choice("headroom_rule", rules, 0));
    if (reader.has("headroom") && reader.has("headroom_rule"))
      reader.error(Errc::infeasible, reader.where("headroom_rule"),
                   "pfc.headroom and pfc.headroom_rule are mutually exclusive", "keep one of them");
    pfc.headroom_factor = reader.number("headroom_factor", 1.0, 0, 100);
    pfc.response = reader.duration("response", pfc.response);
    constexpr Duration response_max = 1000_us;
    if (pfc.response > response_max)
      reader.error(Errc::value, reader.where("response"), "pfc.response is above 1 ms",
                   "ports obey within 1 us or so");
  });
}

void OptionsReader::read_thresholds(Reader& reader) {
  Pfc& pfc = options_.pfc;
  const bool fixed = reader.has("xoff");
  pfc.xoff = reader.bytes("xoff", pfc.xoff);
  pfc.xon = reader.bytes("xon", fixed ? Bytes{pfc.xoff.count / 5 * 4} : pfc.xon);
  pfc.alpha = reader.number("alpha", pfc.alpha, 1e-6, 1e6);
  pfc.resume_offset = reader.bytes("resume_offset", pfc.resume_offset);
  if (fixed) pfc.threshold = Pfc::Threshold::fixed;
  const bool is_fixed = pfc.threshold == Pfc::Threshold::fixed;
  pfc.reserve = reader.bytes("reserve", pfc.reserve);
  for (const char* key : {"alpha", "resume_offset", "reserve"})
    if (is_fixed && reader.has(key))
      reader.error(Errc::infeasible, reader.where(key),
                   fixed ? fmt::format("pfc.xoff and pfc.{} are mutually exclusive", key)
                         : fmt::format("pfc.{} needs shared memory, and none is given", key),
                   fixed ? "keep one of them" : "add e.g. buffers: 64 MB");
  if (!fixed && reader.has("xon"))
    reader.error(Errc::infeasible, reader.where("xon"), "pfc.xon without pfc.xoff",
                 "set both, or alpha and resume_offset");
  if (fixed && pfc.xon > pfc.xoff)
    reader.error(
        Errc::value, reader.where("xon"),
        fmt::format("pfc.xon ({}) is above pfc.xoff ({})", to_text(pfc.xon), to_text(pfc.xoff)),
        "resume below the threshold that pauses");
}

// Transports that live with trimmed packets have switches that trim, unless buffers are given.
void OptionsReader::choose_queues() {
  const bool adapts =
      options_.congestion == Congestion::nscc || options_.admission == Admission::pull;
  options_.round_trip_queues =
      adapts && options_.overflow == Overflow::trim && options_.buffers.empty() && !options_.pfc.on;
}

// Marks that somebody listens to are on unless refused.
void OptionsReader::read_ecn() {
  Ecn& ecn = options_.ecn;
  const bool dcqcn = options_.congestion == Congestion::dcqcn;
  const bool nscc = options_.congestion == Congestion::nscc;
  const bool listens = dcqcn || nscc || options_.balance == Balance::reps;
  const bool credit = options_.admission == Admission::pull;  // listens, but can do without
  if (nscc || credit) ecn.pmax = 1;
  ecn.on = flag_or_section("ecn", listens || credit, [&](Reader& reader) {
    if (reader.has("kmin") != reader.has("kmax"))
      reader.error(Errc::parse, reader.where(), "ecn needs both kmin and kmax, or neither",
                   "write e.g. ecn: {kmin: 800 kB, kmax: 3200 kB, pmax: 0.2}");
    ecn.kmin = reader.bytes("kmin", ecn.kmin);
    ecn.kmax = reader.bytes("kmax", ecn.kmax);
    ecn.pmax = reader.number("pmax", ecn.pmax, 1e-9, 1);
    if (reader.has("kmax") && ecn.kmin > ecn.kmax)
      reader.error(
          Errc::value, reader.where("kmin"),
          fmt::format("ecn.kmin ({}) is above ecn.kmax ({})", to_text(ecn.kmin), to_text(ecn.kmax)),
          "no packet is marked below kmin, and all are above kmax");
  });
  if (listens && !ecn.on)
    reader_.error(Errc::infeasible, reader_.where("ecn"),
                  fmt::format("{} depends on ECN marks, but ecn is off", dcqcn  ? "cc: dcqcn"
                                                                         : nscc ? "cc: nscc"
                                                                                : "scheme reps"),
                  "remove ecn: false");
}

void OptionsReader::read_dcqcn() {
  const bool used = options_.congestion == Congestion::dcqcn;
  section("dcqcn", used_if(used), "cc: dcqcn", [&](Reader& reader) {
    DcqcnOptions& dcqcn = options_.dcqcn;
    const Names sets{"paper", "reference"};
    dcqcn.preset = static_cast<DcqcnOptions::Preset>(reader.choice("preset", sets, 1));
    const auto timer = [&](const char* key, Duration& value) {
      value = reader.duration(key, value);
      constexpr Duration least = 1_ns, most = 1000_s;
      if (reader.has(key) && (value < least || value > most))
        reader.error(Errc::value, reader.where(key),
                     fmt::format("dcqcn.{} is not within 1 ns .. 1,000 s", key),
                     "1 to 300 us is typical");
    };
    timer("alpha_timer", dcqcn.alpha_timer);
    timer("decrease_timer", dcqcn.decrease_timer);
    timer("increase_timer", dcqcn.increase_timer);
    timer("cnp_interval", dcqcn.cnp_interval);
    if (reader.has("gain")) dcqcn.gain = reader.number("gain", 1.0 / 256, 1e-9, 1);
    const auto step = [&](const char* key, Rate& value) {
      value = reader.rate(key, value);
      if (reader.has(key) && value.bps <= 0)
        reader.error(Errc::value, reader.where(key), fmt::format("dcqcn.{} is 0", key),
                     "set a rate; otherwise no queue pair recovers");
    };
    step("additive", dcqcn.additive);
    step("hyper", dcqcn.hyper);
    step("minimum", dcqcn.minimum);
    dcqcn.byte_counter = reader.bytes("byte_counter", dcqcn.byte_counter);
    if (dcqcn.byte_counter.count > 0 && dcqcn.byte_counter < Bytes{1'000})
      reader.error(Errc::value, reader.where("byte_counter"), "dcqcn.byte_counter is below 1 kB",
                   "10 MB is typical; 0 disables it");
  });
}

void OptionsReader::read_hpcc() {
  const bool used = options_.congestion == Congestion::hpcc;
  section("hpcc", used_if(used), "cc: hpcc", [&](Reader& reader) {
    HpccOptions& hpcc = options_.hpcc;
    hpcc.eta = reader.number("eta", hpcc.eta, 0.01, 1);
    hpcc.max_stage =
        static_cast<std::uint32_t>(reader.count("max_stage", hpcc.max_stage, 0, 1'000));
    hpcc.additive = reader.bytes("additive", hpcc.additive);
  });
}

void OptionsReader::read_nscc() {
  const bool used = options_.congestion == Congestion::nscc;
  section("nscc", used_if(used), "cc: nscc", [&](Reader& reader) {
    options_.nscc.target_delay = reader.duration("target_delay", options_.nscc.target_delay);
  });
}

void OptionsReader::read_cts() {
  const bool used = options_.admission == Admission::cts;
  section("cts", used_if(used), "name: cts", [&](Reader& reader) {
    CtsOptions& cts = options_.cts;
    cts.channel_buffer = reader.bytes("channel_buffer", cts.channel_buffer);
    cts.channels =
        static_cast<std::uint32_t>(reader.count("channels", cts.channels, 1, channel_count_max));
    const Names queues{"data", "high"};
    cts.queue = static_cast<CtsOptions::Queue>(reader.choice("queue", queues, 1));
    cts.proxy_delay = reader.duration("proxy_delay", cts.proxy_delay);
    constexpr Bytes most{1 << 30};
    if (cts.channel_buffer < options_.wire.mtu || cts.channel_buffer > most)
      reader.error(Errc::value, reader.where("channel_buffer"),
                   fmt::format("cts.channel_buffer is not within {} (the MTU) .. 1 GiB",
                               to_text(options_.wire.mtu)),
                   "128 KiB to 16 MiB is typical");
  });
}

// How many packets NICs answer at once: HPCC's senders need the telemetry of each packet; else as
// Linux's drivers set up ConnectX NICs (mlx4, mlx5: a request in 2^8 packets), and as Ultra
// Ethernet's public simulator answers; four times in a window at least, or senders would stop for
// the round trip of each.
std::uint32_t OptionsReader::answered_by_nics() const {
  if (options_.congestion == Congestion::hpcc) return 1;
  constexpr Bytes gathered{16'384};
  const std::int64_t packet = full_packet().count;
  std::int64_t packets =
      options_.reliability == Reliability::goback_n ? 256 : (gathered.count + packet - 1) / packet;
  if (reader_.has("window"))
    packets = std::clamp<std::int64_t>(options_.window.count / packet / 4, 1, packets);
  return static_cast<std::uint32_t>(packets);
}

void OptionsReader::read_answers() {
  options_.ack_every =
      static_cast<std::uint32_t>(reader_.count("ack_every", answered_by_nics(), 1, ack_every_max));
  const Duration quarter{options_.ack_timeout.ps / 4};
  options_.ack_delay = reader_.duration("ack_delay", std::min<Duration>(25_us, quarter));
  if (reader_.has("ack_every") && options_.ack_every > 1 && options_.ack_delay.ps == 0)
    context_.notes.emplace_back("transport.ack_every has no effect with ack_delay: 0 s");
  if (reader_.has("ack_delay") && options_.ack_delay.ps > 0 && options_.ack_every == 1)
    context_.notes.emplace_back(
        "transport.ack_delay has no effect where each packet is acknowledged");
}

void OptionsReader::read_limits() {
  options_.window = reader_.bytes("window", options_.window);
  options_.ack_timeout = reader_.duration("ack_timeout", options_.ack_timeout);
  section("retransmit", used_if(options_.reliability == Reliability::selective),
          "reliability: selective", [&](Reader& inner) {
            options_.retransmit_gap =
                static_cast<std::uint32_t>(inner.count("gap", options_.retransmit_gap, 1, 1000));
            options_.retransmit_round_trips = static_cast<std::uint32_t>(
                inner.count("round_trips", options_.retransmit_round_trips, 1, 1000));
            options_.retransmit_least = inner.duration("at_least", options_.retransmit_least);
          });
  read_answers();
  options_.message_rate = reader_.number("message_rate", 0.0, 0, 1e12);
  if (reader_.has("receive_rate"))
    options_.receive_rate = reader_.number("receive_rate", 1.0, 1e-3, 1);
  if (!reader_.has("end")) return;
  const Duration end = reader_.duration("end", duration_max);
  options_.end = static_cast<Ps>(end.ps);
  if (end.ps == 0)
    reader_.error(Errc::value, reader_.where("end"), "transport.end is 0: nothing would run",
                  "set the time to stop at, or omit it");
}

// CTS in a queue of their own are a second class, as is what NSCC learns from (acknowledgements and
// trimmed packets), unless the classes are spelt out.
void OptionsReader::read_classes() {
  Scheduler& scheduler = options_.scheduler;
  const bool cts =
      options_.admission == Admission::cts && options_.cts.queue == CtsOptions::Queue::high;
  if ((cts || options_.round_trip_queues) && !reader_.has("classes")) {
    scheduler.weights = {
        static_cast<std::uint32_t>(std::min<std::int64_t>(full_packet().count, UINT32_MAX)), 0};
    scheduler.control_class = 1;
    scheduler.ack_class = cts ? 0 : 1;
    return;
  }
  section("classes", Use::used, "", [&](Reader& reader) {
    std::vector<std::uint32_t> weights;
    for (const Token& token : reader.texts("weights")) {
      const auto weight = parse_bytes(token);
      if (!weight) {
        reader.error(weight.error());
      } else if (weight->count > UINT32_MAX) {
        reader.error(Errc::value, token.where, "a weight above 4 GiB", "a few packets is typical");
      } else {
        weights.push_back(static_cast<std::uint32_t>(weight->count));
      }
    }
    if (!weights.empty()) scheduler.weights = std::move(weights);
    const auto number = [&](const char* key, std::uint32_t& value) {
      value = static_cast<std::uint32_t>(reader.count(key, value, 0, class_count_max - 1));
    };
    number("data", scheduler.data_class);
    number("ack", scheduler.ack_class);
    number("control", scheduler.control_class);
  });
}

void OptionsReader::read_series() {
  section("series", Use::used, "", [&](Reader& reader) {
    SeriesOptions& series = options_.series;
    series.interval = reader.duration("interval", std::nullopt);
    for (const Token& token : reader.texts("links")) {
      series.links.emplace_back(token.text);
      if (context_.fabric == nullptr) continue;
      if (const auto link = context_.fabric->find_link(token); !link) reader.error(link.error());
    }
    for (const Token& token : reader.texts("flows")) series.flows.emplace_back(token.text);
    series.samples_max = static_cast<std::size_t>(reader.count(
        "samples_max", static_cast<std::int64_t>(series.samples_max), 16, 100'000'000));
    if (series.links.empty() && series.flows.empty())
      reader.error(Errc::parse, reader.where(), "series selects neither links nor flows",
                   "add e.g. links: [\"rtsw:0->ctsw:1\"]");
    if (reader.has("interval") && series.interval < 1_ns)
      reader.error(Errc::value, reader.where("interval"), "series.interval is below 1 ns",
                   "set the time between samples, e.g. 10 us");
  });
}

}  // namespace

Config transport_section(const Config& section) {
  if (section.kind != Config::Kind::scalar) return section;
  Config map = Config::map(section.where);
  map.at_or_add("name") = section;
  return map;
}

Options read_options(Reader& transport, const ReadContext& context) {
  return OptionsReader(transport, context).read();
}

}  // namespace weft::engine::packet
