#include "workload/trace/astra_system.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/config.hpp"

namespace weft::workload {
namespace {

using model::CollectiveOp;

struct OpKey {
  std::string_view name;  // "all-reduce"
  CollectiveOp op;
};
constexpr std::array<OpKey, 4> op_keys{{
    {"all-reduce", CollectiveOp::all_reduce},
    {"all-gather", CollectiveOp::all_gather},
    {"reduce-scatter", CollectiveOp::reduce_scatter},
    {"all-to-all", CollectiveOp::all_to_all},
}};

// An algorithm in one dimension, and which of weft's comes nearest. `window`: a number may follow,
// how many messages are under way at once.
struct Known {
  std::string_view name;
  std::string_view algorithm;
  enum class Window : std::uint8_t { no, yes } window = Window::no;
};
constexpr std::array<Known, 8> known_algorithms{{
    {"ring", "ring"},
    {"oneRing", "ring"},
    {"direct", "direct", Known::Window::yes},
    {"oneDirect", "direct", Known::Window::yes},
    {"halvingDoubling", "halving_doubling"},
    {"oneHalvingDoubling", "halving_doubling"},
    {"doubleBinaryTree", "tree"},
    {"hierarchicalRing", "hierarchical"},
}};

// Keys that change nothing here.
struct Unused {
  std::string_view key;
  std::string_view why;
};
constexpr std::array<Unused, 10> unused_keys{{
    {"collective-optimization", "weft's algorithms choose their own order of dimensions"},
    {"boost-mode", "all ranks are simulated"},
    {"model-shared-bus", "buses are fabric links"},
    {"L", "latency comes from the fabric's links"},
    {"o", "overheads come from the fabric's timing"},
    {"g", "gaps come from the fabric's timing"},
    {"G", "bandwidth comes from the fabric's links"},
    {"trace-enabled", "weft writes its own trace"},
    {"replay-only", "recorded times are used wherever a node has one"},
    {"track-local-mem", "memory use is not tracked"},
}};

// Over several dimensions weft goes host by host, then between hosts.
bool is_hierarchical(CollectiveOp op) {
  return op == CollectiveOp::all_reduce || op == CollectiveOp::all_gather ||
         op == CollectiveOp::reduce_scatter;
}

// What weft has for this operation: all-to-all is pairwise whatever its order, halving-doubling of
// half an all-reduce is recursive doubling, and only all-reduce has trees.
std::string serve(CollectiveOp op, std::string_view algorithm) {
  if (op == CollectiveOp::all_to_all) return "pairwise";
  if (op == CollectiveOp::all_reduce) return std::string(algorithm);
  if (algorithm == "halving_doubling") return "recursive_doubling";
  if (algorithm == "tree") return "ring";
  return std::string(algorithm);
}

class SystemReader {
 public:
  explicit SystemReader(const Config& document) : reader_(document, "system", errors_) {}

  Result<AstraSystem> read() {
    constexpr double seconds_max = 1e9;  // in ns
    const std::array<std::string, 2> policies{"LIFO", "FIFO"};
    if (reader_.choice("scheduling-policy", policies, 0) == 1)
      out_.scheduling = AstraSystem::Scheduling::fifo;
    out_.active_chunks = count("active-chunks-per-dimension");
    out_.dataset_splits = count("preferred-dataset-splits");
    out_.endpoint_delay_s = reader_.number("endpoint-delay", 0, 0, seconds_max) * 1e-9;
    out_.local_reduction_delay_s =
        reader_.number("local-reduction-delay", 0, 0, seconds_max) * 1e-9;
    out_.local_memory_bytes_per_s = reader_.number("local-mem-bw", 0, 0, 1e9) * 1e9;
    out_.peak_flops = reader_.number("peak-perf", 0, 0, 1e9) * 1e12;
    out_.roofline = is_on("roofline-enabled");
    for (const OpKey& key : op_keys) read_implementation(key);
    for (const Unused& key : unused_keys)
      if (reader_.child(key.key) != nullptr)
        out_.unused.push_back(fmt::format("{}: {}", key.key, key.why));
    check_roofline();
    reader_.finish();
    if (!errors_.empty()) return std::unexpected(combine(std::move(errors_)));
    return std::move(out_);
  }

 private:
  std::uint64_t count(std::string_view key) {
    return static_cast<std::uint64_t>(reader_.count(key, 1, 1, 1'000'000));
  }

  // JSON of the wild has 1 as well as true.
  bool is_on(std::string_view key) {
    if (!reader_.has(key)) return false;
    const std::string text = reader_.text(key, std::string("0"));
    if (text != "0" && text != "1" && text != "true" && text != "false")
      reader_.error(Errc::value, reader_.where(key),
                    fmt::format("system.{} is {}", key, quote(text)), "write 0, 1, true or false");
    return text == "1" || text == "true";
  }

  void check_roofline() {
    if (!out_.roofline || (out_.peak_flops > 0 && out_.local_memory_bytes_per_s > 0)) return;
    reader_.error(Errc::infeasible, reader_.where("roofline-enabled"),
                  "the roofline is on, but peak-perf or local-mem-bw is missing or 0",
                  "give both, in TFLOP/s and GB/s");
  }

  void read_implementation(const OpKey& key) {
    const std::string custom = fmt::format("{}-implementation-custom", key.name);
    if (reader_.child(custom) != nullptr)
      reader_.error(Errc::unsupported, reader_.where(custom),
                    "custom collectives (Chakra files of one collective) are not supported",
                    fmt::format("use an algorithm name under {}-implementation", key.name));
    const std::string name = fmt::format("{}-implementation", key.name);
    const std::vector<Token> tokens = reader_.texts(name);
    if (tokens.empty()) return;
    AstraSystem::Implementation out{key.op, {}, {}};
    std::vector<std::string> served;
    for (const Token& token : tokens) {
      out.by_dimension.emplace_back(token.text);
      if (const Known* known = find(token)) served.push_back(serve(key.op, known->algorithm));
    }
    if (served.size() != tokens.size()) return;
    out.algorithm = served.front();
    const bool same = std::ranges::count(served, served.front()) == std::ssize(served);
    if (served.size() > 1 && is_hierarchical(key.op))
      out.algorithm = "hierarchical";
    else if (!same)
      out.algorithm = "auto";
    out_.implementations.push_back(std::move(out));
  }

  const Known* find(const Token& token) {
    for (const Known& known : known_algorithms) {
      if (token.text == known.name) return &known;
      if (known.window == Known::Window::no || !token.text.starts_with(known.name)) continue;
      const std::string_view window = token.text.substr(known.name.size());
      if (window.size() <= 5 && window.find_first_not_of("0123456789") == window.npos &&
          window.find_first_not_of('0') != window.npos)
        return &known;
    }
    std::vector<std::string> names;
    for (const Known& known : known_algorithms) names.emplace_back(known.name);
    reader_.error(Errc::unknown, token.where,
                  fmt::format("unknown collective algorithm {}{}", quote(token.text),
                              did_you_mean(token.text, names)),
                  fmt::format("choose one of {}", fmt::join(names, ", ")));
    return nullptr;
  }

  Errors errors_;
  Reader reader_;
  AstraSystem out_;
};

}  // namespace

void apply(const AstraSystem& system, TraceOptions& options) {
  if (!system.roofline) return;
  options.peak_flops = system.peak_flops;
  options.memory_bandwidth = system.local_memory_bytes_per_s;
}

Result<AstraSystem> read_astra_system(std::string_view text, const std::string& file) {
  // JSON is YAML, but for tabs, which inside its strings are not allowed either.
  std::string plain(text);
  std::ranges::replace(plain, '\t', ' ');
  WEFT_TRY(const Config document, parse_yaml(plain, file));
  if (document.kind != Config::Kind::map)
    return fail(Errc::parse, {file, 1, 1}, "a system file must be a map of keys",
                "write {\"scheduling-policy\": \"LIFO\", ...}");
  return SystemReader(document).read();
}

std::vector<std::string> to_notes(const AstraSystem& system) {
  std::vector<std::string> out;
  for (const auto& i : system.implementations)
    out.push_back(
        fmt::format("{} {}: {}",
                    op_keys[static_cast<std::size_t>(std::ranges::find(op_keys, i.op, &OpKey::op) -
                                                     op_keys.begin())]
                        .name,
                    fmt::join(i.by_dimension, " + "), i.algorithm));
  if (system.dataset_splits > 1 || system.active_chunks > 1)
    out.push_back(
        fmt::format("{} splits and {} active chunks: collectives are modelled in steady state, as "
                    "with many small chunks",
                    system.dataset_splits, system.active_chunks));
  if (system.endpoint_delay_s > 0 || system.local_reduction_delay_s > 0)
    out.push_back(
        fmt::format("endpoint-delay {:.0f} ns and local-reduction-delay {:.0f} ns per message are "
                    "not added: a message costs only its links' latency",
                    system.endpoint_delay_s * 1e9, system.local_reduction_delay_s * 1e9));
  if (system.scheduling == AstraSystem::Scheduling::lifo)
    out.emplace_back("LIFO: operations of a stream run in the order in which they become ready");
  if (system.local_memory_bytes_per_s > 0 && !system.roofline)
    out.emplace_back("local-mem-bw is used only by the roofline, which is off");
  for (const std::string& note : system.unused) out.push_back("not used: " + note);
  return out;
}

}  // namespace weft::workload
