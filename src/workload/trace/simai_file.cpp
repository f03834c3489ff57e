#include "workload/trace/simai_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <span>
#include <utility>

#include "base/text.hpp"
#include "workload/trace/simai_grid.hpp"

namespace weft::workload {
namespace {

constexpr std::uint64_t lines_max = 10'000'000;
constexpr std::uint64_t list_max = 1 << 20;
constexpr std::uint64_t ns_max = 1'000'000'000'000'000;
constexpr std::uint64_t group_max = 1'000'000;

struct PolicyName {
  std::string_view name;
  SimaiPolicy policy;
};
constexpr std::array<PolicyName, 11> policies{{
    {"HYBRID_TRANSFORMER", SimaiPolicy::transformer},
    {"HYBRID_TRANSFORMER_FWD_IN_BCKWD", SimaiPolicy::transformer_recomputing},
    {"DATA", SimaiPolicy::data},
    {"MODEL", SimaiPolicy::model},
    {"HYBRID_DATA_MODEL", SimaiPolicy::data_model},
    {"HYBRID_MODEL_DATA", SimaiPolicy::model_data},
    {"HYBRID_DLRM", SimaiPolicy::dlrm},
    {"HYBRID_DLRM_ENHANCED", SimaiPolicy::dlrm_enhanced},
    {"HYBRID_CUSTOMIZED", SimaiPolicy::customized},
    {"MICRO", SimaiPolicy::micro},
    {"DISTRIBUTED_INFERENCE", SimaiPolicy::inference},
}};

struct KindName {
  std::string_view name;
  SimaiComm::Kind kind;
};
// A longer name stands before those it begins with.
constexpr std::array<KindName, 7> kinds{{
    {"ALLREDUCEALLTOALL", SimaiComm::Kind::all_reduce_all_to_all},
    {"ALLREDUCE", SimaiComm::Kind::all_reduce},
    {"ALLGATHER", SimaiComm::Kind::all_gather},
    {"REDUCESCATTER", SimaiComm::Kind::reduce_scatter},
    {"ALLTOALL", SimaiComm::Kind::all_to_all},
    {"BROADCAST", SimaiComm::Kind::broadcast},
    {"NONE", SimaiComm::Kind::none},
}};

constexpr std::array<std::string_view, 12> columns{"name",      "dep",     "fwd_ns",   "fwd_comm",
                                                   "fwd_bytes", "ig_ns",   "ig_comm",  "ig_bytes",
                                                   "wg_ns",     "wg_comm", "wg_bytes", "update_ns"};

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f'; }

std::optional<SimaiPolicy> policy_of(std::string_view name) {
  const auto found = std::ranges::find(policies, name, &PolicyName::name);
  return found == policies.end() ? std::nullopt : std::optional(found->policy);
}

template <class Rows>
std::vector<std::string> names_of(const Rows& rows) {
  std::vector<std::string> out;
  for (const auto& row : rows) out.emplace_back(row.name);
  return out;
}

// Takes the text apart line by line. After an error it goes on, to find further ones.
class SimaiParser {
 public:
  SimaiParser(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  Result<SimaiFile> parse() {
    if (const std::size_t bad = find_not_text(text_); bad != text_.npos) return refuse_binary(bad);
    if (next_line()) read_header();
    const std::optional<std::uint64_t> promised = read_line_count();
    while (errors_.size() < errors_max && next_line()) read_row();
    if (errors_.empty()) check_line_count(*promised);
    if (errors_.empty()) check_lists();
    if (!errors_.empty()) return std::unexpected(combine(std::move(errors_)));
    return std::move(out_);
  }

 private:
  std::unexpected<Error> refuse_binary(std::size_t at) const {
    const std::string_view before = text_.substr(0, at);
    const auto line = 1 + std::ranges::count(before, '\n');
    return fail(Errc::parse, {file_, static_cast<std::uint32_t>(line), 0}, "byte that is not text",
                "a SimAI workload is plain text; is the file damaged?");
  }

  void error(Errc code, Where where, std::string what, std::string hint) {
    if (errors_.size() < errors_max)
      errors_.push_back({code, std::move(where), std::move(what), std::move(hint), {}});
  }
  Where here(std::uint32_t column = 1) const { return {file_, std::max(line_, 1u), column}; }

  // The next line with something on it, as tokens.
  bool next_line() {
    tokens_.clear();
    while (at_ < text_.size() && tokens_.empty()) {
      const std::size_t end = std::min(text_.find('\n', at_), text_.size());
      ++line_;
      split_line(text_.substr(at_, end - at_));
      at_ = end + 1;
    }
    return !tokens_.empty();
  }

  void split_line(std::string_view line) {
    for (std::size_t i = 0; i < line.size();) {
      while (i < line.size() && is_blank(line[i])) ++i;
      const std::size_t start = i;
      while (i < line.size() && !is_blank(line[i])) ++i;
      if (i > start)
        tokens_.push_back({line.substr(start, i - start), static_cast<std::uint32_t>(start + 1)});
    }
  }

  struct Piece {
    std::string_view text;
    std::uint32_t column;
  };

  std::optional<std::uint64_t> number(const Piece& piece, std::string_view what,
                                      std::uint64_t least, std::uint64_t most) {
    std::uint64_t value = 0;
    const char* const end = piece.text.data() + piece.text.size();
    const auto [stop, fault] = std::from_chars(piece.text.data(), end, value);
    if (fault == std::errc{} && stop == end && value >= least && value <= most) return value;
    error(Errc::value, here(piece.column),
          fmt::format("{} is {}, not a whole number from {} to {}", what, quote(piece.text), least,
                      most),
          "correct the number");
    return std::nullopt;
  }

  // ---- line 1 ----

  void read_header() {
    out_.where = here(tokens_[0].column);
    const auto policy = policy_of(tokens_[0].text);
    if (!policy) {
      const auto names = names_of(policies);
      error(Errc::unknown, out_.where,
            fmt::format("unknown policy {}{}", quote(tokens_[0].text),
                        did_you_mean(tokens_[0].text, names)),
            fmt::format("choose one of {}", fmt::join(names, ", ")));
    }
    out_.policy = policy.value_or(SimaiPolicy::transformer);
    next_token_ = 1;
    while (next_token_ < tokens_.size()) read_key();
  }

  // "tp: 8", "tp 8" and "tp:8" are the same.
  void read_key() {
    Piece key = tokens_[next_token_++];
    if (const std::size_t colon = key.text.find(':'); colon != key.text.npos) {
      if (colon + 1 < key.text.size()) {
        tokens_[--next_token_] = {key.text.substr(colon + 1),
                                  key.column + static_cast<std::uint32_t>(colon + 1)};
      }
      key.text = key.text.substr(0, colon);
    }
    if (key.text == "checkpoints") return read_list(key, out_.checkpoints);
    if (key.text == "checkpoint_initiates") return read_list(key, out_.initiates);
    for (const Key& known : keys)
      if (key.text == known.name) return read_value(key, known);
    std::vector<std::string> names = names_of(keys);
    names.insert(names.end(), {"checkpoints", "checkpoint_initiates"});
    error(Errc::unknown, here(key.column),
          fmt::format("unknown key {}{}", quote(key.text), did_you_mean(key.text, names)),
          fmt::format("known keys: {}", fmt::join(names, ", ")));
    if (next_token_ < tokens_.size() && is_number(tokens_[next_token_].text)) ++next_token_;
  }

  static bool is_number(std::string_view text) {
    return std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
  }

  struct Key {
    std::string_view name;
    std::optional<SimaiValue> SimaiFile::* member;
    std::uint64_t least, most;
  };
  static constexpr std::array<Key, 8> keys{{
      {"model_parallel_NPU_group", &SimaiFile::tp, 1, group_max},
      {"ep", &SimaiFile::ep, 1, group_max},
      {"pp", &SimaiFile::pp, 1, group_max},
      {"vpp", &SimaiFile::vpp, 1, group_max},
      {"ga", &SimaiFile::ga, 1, group_max},
      {"all_gpus", &SimaiFile::all_gpus, 1, group_max},
      {"pp_comm", &SimaiFile::pp_comm, 0, simai_bytes_max},
      {"DLRM_LAST_BOTTOM_LAYER", &SimaiFile::last_bottom_layer, 0, lines_max},
  }};

  std::optional<Piece> take(const Piece& key) {
    if (next_token_ < tokens_.size()) return tokens_[next_token_++];
    error(Errc::parse, here(key.column), fmt::format("no value after {}", quote(key.text)),
          "write a number after the key");
    return std::nullopt;
  }

  void read_value(const Piece& key, const Key& known) {
    auto& slot = out_.*known.member;
    if (slot)
      error(Errc::parse, here(key.column), fmt::format("duplicate key {}", known.name),
            "keep one of them");
    const auto piece = take(key);
    if (!piece) return;
    if (const auto value = number(*piece, known.name, known.least, known.most))
      slot = SimaiValue{*value, here(piece->column)};
  }

  void read_list(const Piece& key, std::vector<std::uint32_t>& out) {
    const auto count_at = take(key);
    if (!count_at) return;
    const auto count = number(*count_at, key.text, 0, list_max);
    for (std::uint64_t i = 0; i < count.value_or(0); ++i) {
      if (next_token_ == tokens_.size())
        return error(Errc::parse, here(count_at->column),
                     fmt::format("{} declares {} layers, but {} follow", key.text, *count, i),
                     "write as many layer numbers as declared");
      const Piece& piece = tokens_[next_token_++];
      if (const auto layer = number(piece, key.text, 0, lines_max - 1))
        out.push_back(static_cast<std::uint32_t>(*layer));
    }
    list_at_ = here(count_at->column);
  }

  // ---- line 2 and the layers ----

  std::optional<std::uint64_t> read_line_count() {
    if (!next_line()) {
      error(Errc::parse, here(), "the file ends before the number of layers",
            "line 1 is the header, line 2 the number of layer lines, then come the layers");
      return std::nullopt;
    }
    count_at_ = here(tokens_[0].column);
    if (tokens_.size() > 1)
      error(Errc::parse, here(tokens_[1].column),
            fmt::format("{} after the number of layers", quote(tokens_[1].text)),
            "line 2 must contain only the number of layer lines");
    return number(tokens_[0], "the number of layers", 1, lines_max);
  }

  void check_line_count(std::uint64_t promised) {
    if (out_.lines.empty())
      error(Errc::parse, count_at_, "the file ends before the first layer",
            "check whether it is truncated");
    if (promised < out_.lines.size())
      error(Errc::value, count_at_,
            fmt::format("line 2 declares {} layers, but the file has {}", promised,
                        out_.lines.size()),
            "correct line 2");
    if (promised > out_.lines.size() && !out_.lines.empty())
      error(Errc::value, count_at_,
            fmt::format("line 2 declares {} layers, but the file ends after {}: it is truncated",
                        promised, out_.lines.size()),
            fmt::format("copy the file again or, if these are all the layers, write {} on line 2",
                        out_.lines.size()));
  }

  void check_lists() {
    for (const auto* list : {&out_.checkpoints, &out_.initiates})
      for (const std::uint32_t layer : *list)
        if (layer >= out_.lines.size())
          error(Errc::value, list_at_,
                fmt::format("layer {} in a checkpoint list, but there are {}", layer,
                            out_.lines.size()),
                "layers are numbered from 0");
  }

  void read_row() {
    const std::size_t wanted = out_.policy == SimaiPolicy::customized ? 13 : columns.size();
    if (tokens_.size() != wanted) return refuse_row(wanted);
    if (out_.lines.size() == lines_max)
      return error(Errc::value, here(), fmt::format("more than {} layers", lines_max),
                   "split the file");
    SimaiLine line;
    line.name = tokens_[0].text;
    check_dependency(tokens_[1]);
    line.forward = read_pass(2);
    line.input_gradient = read_pass(5);
    line.weight_gradient = read_pass(8);
    line.update_ns = number(tokens_[11], columns[11], 0, ns_max).value_or(0);
    if (wanted == 13) line.policy = read_policy(tokens_[12]);
    out_.lines.push_back(line);
  }

  void refuse_row(std::size_t wanted) {
    const std::size_t have = tokens_.size();
    const std::string what =
        have < wanted
            ? fmt::format("{} of {} columns: missing are {}", have, wanted,
                          have < columns.size()
                              ? fmt::format("{}", fmt::join(std::span(columns).subspan(have), ", "))
                              : "the policy of the layer")
            : fmt::format("{} columns, {} more than {}", have, have - wanted, wanted);
    error(Errc::parse, here(have > wanted ? tokens_[wanted].column : 1), what,
          fmt::format("a layer is {}", fmt::join(columns, " ")));
  }

  // The layers run in the order of the file, which is what a dependency on an earlier one says.
  void check_dependency(const Piece& piece) {
    if (piece.text == "-1") return;
    const auto on = number(piece, "dep", 0, lines_max);
    if (on && *on >= out_.lines.size())
      error(Errc::value, here(piece.column),
            fmt::format("layer {} depends on layer {}, which does not come before it",
                        out_.lines.size(), *on),
            "write -1, or the number (from 0) of an earlier layer");
  }

  SimaiPass read_pass(std::size_t column) {
    SimaiPass pass;
    pass.compute_ns = number(tokens_[column], columns[column], 0, ns_max).value_or(0);
    pass.comm = read_comm(tokens_[column + 1], columns[column + 1]);
    pass.comm.bytes =
        number(tokens_[column + 2], columns[column + 2], 0, simai_bytes_max).value_or(0);
    if (pass.comm.kind == SimaiComm::Kind::none && pass.comm.bytes > 0) ++out_.none_with_bytes;
    return pass;
  }

  SimaiComm read_comm(const Piece& piece, std::string_view column) {
    for (const KindName& known : kinds) {
      if (!piece.text.starts_with(known.name)) continue;
      const std::string_view suffix = piece.text.substr(known.name.size());
      if (suffix.empty()) return {known.kind, SimaiComm::Group::natural};
      if (known.kind == SimaiComm::Kind::none) break;
      if (suffix == "_EP") return {known.kind, SimaiComm::Group::ep};
      if (suffix == "_DP_EP") return {known.kind, SimaiComm::Group::dp_ep};
      error(Errc::unknown, here(piece.column),
            fmt::format("{}: unknown suffix {} of {}", column, quote(suffix), known.name),
            "use the suffix _EP, _DP_EP or none to select the group");
      return {};
    }
    const auto names = names_of(kinds);
    error(Errc::unknown, here(piece.column),
          fmt::format("{}: unknown collective {}{}", column, quote(piece.text),
                      did_you_mean(piece.text, names)),
          fmt::format("choose one of {}, with _EP, _DP_EP or no suffix", fmt::join(names, ", ")));
    return {};
  }

  SimaiPolicy read_policy(const Piece& piece) {
    if (const auto policy = policy_of(piece.text)) return *policy;
    error(Errc::unknown, here(piece.column),
          fmt::format("unknown policy {}{}", quote(piece.text),
                      did_you_mean(piece.text, names_of(policies))),
          "column 13 of HYBRID_CUSTOMIZED is a policy");
    return SimaiPolicy::customized;
  }

  std::string_view text_;
  const std::string& file_;
  std::size_t at_ = 0;
  std::uint32_t line_ = 0;
  std::vector<Piece> tokens_;
  std::size_t next_token_ = 0;
  Where count_at_, list_at_;
  SimaiFile out_;
  Errors errors_;
};

}  // namespace

std::string_view to_text(SimaiPolicy policy) {
  return std::ranges::find(policies, policy, &PolicyName::policy)->name;
}

std::optional<SimaiPolicy> simai_policy_at(std::string_view text) {
  std::size_t start = 0;
  while (start < text.size() && (is_blank(text[start]) || text[start] == '\n')) ++start;
  std::size_t end = start;
  while (end < text.size() && !is_blank(text[end]) && text[end] != '\n') ++end;
  return policy_of(text.substr(start, end - start));
}

Result<SimaiFile> parse_simai(std::string_view text, const std::string& file) {
  return SimaiParser(text, file).parse();
}

}  // namespace weft::workload
