#include "observe/telemetry/prometheus.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "base/check.hpp"
#include "base/json_text.hpp"
#include "base/text.hpp"
#include "observe/telemetry/metric_rules.hpp"

namespace weft::observe::telemetry {

namespace {

constexpr std::size_t line_max = 65'535, malformed_kept_max = 4, malformed_bytes_max = 200;
// A time beyond this in s is after the year 5138, one below it in ms before 1974.
constexpr double seconds_max = 1e11;

bool is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == ':';
}

void skip_blanks(std::string_view& text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
}

std::string_view take_name(std::string_view& text) {
  std::size_t end = 0;
  while (end < text.size() && is_name_char(text[end])) ++end;
  if (!text.empty() && text.front() >= '0' && text.front() <= '9') end = 0;
  const std::string_view out = text.substr(0, end);
  text.remove_prefix(end);
  return out;
}

std::string_view take_word(std::string_view& text) {
  const std::size_t end = std::min(text.find_first_of(" \t"), text.size());
  const std::string_view out = text.substr(0, end);
  text.remove_prefix(end);
  skip_blanks(text);
  return out;
}

// As Go and the formats write numbers, infinities and NaN.
std::optional<double> parse_double(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  double out = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, out);
  if (text.empty() || end != last) return std::nullopt;
  // Too large or too small for a double: infinite, which is no number here either.
  if (error == std::errc::result_out_of_range) return std::nan("");
  if (error != std::errc{}) return std::nullopt;
  return out;
}

Result<LabelText> parse_label_text(const Token& token) {
  LabelText out;
  out.words.emplace_back();
  for (std::size_t i = 0; i < token.text.size();) {
    if (token.text[i] != '{') {
      out.words.back() += token.text[i++];
      continue;
    }
    const std::size_t end = token.text.find('}', i);
    const std::string_view name =
        end == std::string_view::npos ? std::string_view() : token.text.substr(i + 1, end - i - 1);
    if (name.empty() || !std::ranges::all_of(name, is_name_char))
      return fail(Errc::parse, token.where, "label without a name or without \"}\"",
                  "write e.g. {device}");
    out.labels.emplace_back(name);
    out.words.emplace_back();
    i = end + 1;
  }
  return out;
}

LabelText read_label_text(Reader& reader, std::string_view key) {
  const Config* const child = reader.child(key);
  if (child == nullptr) return {{""}, {}};
  auto out = parse_label_text(token_of(*child));
  if (out) return *std::move(out);
  reader.error(std::move(out).error());
  return {{""}, {}};
}

// "share: left", and "growth: true" of counters.
void read_share(Reader& reader, PrometheusRow& out) {
  const std::array<std::string, 4> parts{"none", "left", "used", "total"};
  out.share = static_cast<SharePart>(reader.choice("share", parts, 0));
  if (reader.flag("growth", false)) out.share_of = ShareOf::growth;
  const bool is_share = out.share != SharePart::none;
  if (out.share_of == ShareOf::growth && !is_share)
    reader.error(Errc::value, reader.where("growth"), "\"growth\" needs \"share\"",
                 "add share: left, used or total");
  if (is_share && (out.form != PrometheusRow::Form::value || port::is_counter(out.metric)))
    reader.error(Errc::value, reader.where("share"),
                 "a part of a share is an amount, and a share is not a counter",
                 "remove equals and since, and use e.g. metric: memory_share");
}

PrometheusRow read_metric_row(const Config& config, Errors& errors) {
  PrometheusRow out;
  Reader reader(config, "metric", errors);
  out.name = reader.text("name", {});
  std::vector<std::string> metrics;
  for (std::size_t i = 0; i < port::metric_count; ++i)
    metrics.emplace_back(to_text(static_cast<port::Metric>(i)));
  out.metric = static_cast<port::Metric>(reader.choice("metric", metrics, {}));
  out.device = read_label_text(reader, "device");
  out.component = read_label_text(reader, "component");
  out.index = read_label_text(reader, "index");
  out.factor = reader.number("factor", 1, -1e18, 1e18);
  if (reader.has("equals")) {
    out.form = PrometheusRow::Form::equals;
    out.equals = reader.number("equals", 0, -1e18, 1e18);
  }
  if (reader.flag("since", false)) out.form = PrometheusRow::Form::since;
  read_share(reader, out);
  out.where = read_label_patterns(reader, errors);
  reader.finish();
  return out;
}

}  // namespace

Status PrometheusMapping::add(const Config& config) {
  Errors errors;
  Reader reader(config, "prometheus", errors);
  reader.flag("builtin", true);
  if (const Config* const list = reader.child("metrics"); list != nullptr) {
    if (list->kind != Config::Kind::list && list->kind != Config::Kind::null)
      reader.error(Errc::parse, list->where, "\"metrics\" is not a list", "write one row per name");
    for (const Config& row : list->items) rows_.push_back(read_metric_row(row, errors));
  }
  reader.finish();
  if (!errors.empty()) return std::unexpected(combine(std::move(errors)));
  return {};
}

void PrometheusMapping::index() {
  for (std::uint32_t i = 0; i < rows_.size(); ++i) {
    rows_[i].next = NameTable::none;
    std::uint32_t at = names_.find(0, rows_[i].name);
    if (at == NameTable::none) {
      names_.add(0, rows_[i].name, i);
      continue;
    }
    while (rows_[at].next != NameTable::none) at = rows_[at].next;
    rows_[at].next = i;
  }
}

PrometheusMapping PrometheusMapping::built_in() {
  PrometheusMapping out;
  const auto config = parse_yaml(builtin_prometheus_text(), "built-in metrics");
  WEFT_CHECK(config.has_value());
  WEFT_CHECK(out.add(*config).has_value());
  out.index();
  return out;
}

Result<PrometheusMapping> PrometheusMapping::from_yaml(const Config& config) {
  PrometheusMapping out;
  WEFT_TRY_STATUS(out.add(config));
  const Config* const flag = config.find("builtin");
  if (flag == nullptr || flag->text != "false")
    for (const PrometheusRow& row : built_in().rows_) out.rows_.push_back(row);
  out.index();
  return out;
}

std::uint32_t PrometheusMapping::first(std::string_view name) const {
  constexpr std::string_view total = "_total";
  const std::uint32_t exact = names_.find(0, name);
  if (exact != NameTable::none || !name.ends_with(total)) return exact;
  return names_.find(0, name.substr(0, name.size() - total.size()));
}

std::string_view PrometheusReader::label(std::string_view name) const {
  for (std::size_t i = 0; i < label_count_; ++i)
    if (labels_[i].name == name) return labels_[i].value;
  return {};
}

void PrometheusReader::fill(const LabelText& text, std::string& out) const {
  out = text.words.front();
  for (std::size_t i = 0; i < text.labels.size(); ++i) {
    out += label(text.labels[i]);
    out += text.words[i + 1];
  }
}

// A quoted value, behind its first quote; \\, \" and \n are undone in memory of our own.
bool PrometheusReader::read_escaped(std::string_view& rest, std::string_view& value) {
  const std::size_t plain = rest.find_first_of("\"\\");
  if (plain == std::string_view::npos) return false;
  if (rest[plain] == '"') {
    value = rest.substr(0, plain);
    rest.remove_prefix(plain + 1);
    return true;
  }
  const std::size_t first = unescaped_.size();
  while (!rest.empty()) {
    char c = rest.front();
    rest.remove_prefix(1);
    if (c == '"') {
      value = std::string_view(unescaped_).substr(first);
      return true;
    }
    if (c == '\\') {
      if (rest.empty()) return false;
      c = rest.front() == 'n' ? '\n' : rest.front();
      rest.remove_prefix(1);
    }
    unescaped_ += c;
  }
  return false;
}

// "{a="1",b="2",}", from the brace on.
bool PrometheusReader::read_labels(std::string_view& rest) {
  rest.remove_prefix(1);
  while (true) {
    skip_blanks(rest);
    if (rest.starts_with('}')) {
      rest.remove_prefix(1);
      return true;
    }
    Label one{take_name(rest), {}};
    skip_blanks(rest);
    if (one.name.empty() || !rest.starts_with('=') || label_count_ == labels_max) return false;
    rest.remove_prefix(1);
    skip_blanks(rest);
    if (!rest.starts_with('"')) return false;
    rest.remove_prefix(1);
    if (!read_escaped(rest, one.value)) return false;
    labels_[label_count_++] = one;
    skip_blanks(rest);
    if (rest.starts_with(','))
      rest.remove_prefix(1);
    else if (!rest.starts_with('}'))
      return false;
  }
}

PrometheusReader::Fault PrometheusReader::read_line(std::string_view line, std::string_view device,
                                                    Timestamp received,
                                                    std::vector<port::Sample>& out) {
  const std::string_view name = take_name(line);
  const bool is_ended = line.starts_with('{') || line.starts_with(' ') || line.starts_with('\t');
  if (name.empty() || !is_ended) return Fault::malformed;
  std::uint32_t at = mapping_.first(name);
  if (at == NameTable::none) return Fault::unmapped;
  label_count_ = 0;
  unescaped_.clear();
  unescaped_.reserve(line.size());  // views into it stay good
  skip_blanks(line);
  if (line.starts_with('{') && !read_labels(line)) return Fault::malformed;
  skip_blanks(line);
  const auto value = parse_double(take_word(line));
  if (!value) return Fault::malformed;
  Timestamp t = received;
  if (!line.empty() && line.front() != '#') {
    const auto stamp = parse_double(take_word(line));
    if (!stamp || (!line.empty() && line.front() != '#')) return Fault::malformed;
    const double us = *stamp * (std::abs(*stamp) < seconds_max ? 1e6 : 1e3);
    if (!(std::abs(us) < static_cast<double>(timestamp_ns_max) / 1e3)) return Fault::malformed;
    t.ns = std::llround(us) * 1'000;
  }
  if (!std::isfinite(*value)) return Fault::not_number;
  const auto labels = [&](std::string_view of) { return label(of); };
  while (at != NameTable::none && !fit(mapping_.rows()[at].where, labels))
    at = mapping_.rows()[at].next;
  if (at == NameTable::none) return Fault::unmapped;
  take(mapping_.rows()[at], device, t, *value, out);
  return Fault::none;
}

void PrometheusReader::take(const PrometheusRow& row, std::string_view device, Timestamp t,
                            double value, std::vector<port::Sample>& out) {
  port::Sample sample{t, {}, {}, row.metric, 0, value * row.factor};
  if (row.form == PrometheusRow::Form::equals) sample.value = value == row.equals ? 1 : 0;
  if (row.form == PrometheusRow::Form::since)
    sample.value = static_cast<double>(t.ns) / 1e9 - value;
  fill(row.device, sample.device);
  if (sample.device.empty()) sample.device = device;
  fill(row.component, sample.component);
  fill(row.index, scratch_);
  // "optic 2", "queue3": its number, where it has one.
  const std::size_t digits = std::min(scratch_.find_first_of("0123456789"), scratch_.size());
  std::from_chars(scratch_.data() + digits, scratch_.data() + scratch_.size(), sample.index);
  if (row.share == SharePart::none)
    out.push_back(std::move(sample));
  else
    shares_.add({std::move(sample.device), std::move(sample.component), row.metric, sample.index},
                row.share, row.share_of, sample.value, t);
}

void PrometheusReader::read(std::string_view text, std::string_view device, Timestamp received,
                            std::vector<port::Sample>& out) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    while (line.ends_with(' ')) line.remove_suffix(1);
    skip_blanks(line);
    if (line.empty()) continue;
    ++counts_.lines;
    if (line.front() == '#') {
      ++counts_.comments;
      continue;
    }
    const Fault fault =
        line.size() > line_max ? Fault::malformed : read_line(line, device, received, out);
    counts_.mapped += fault == Fault::none ? 1 : 0;
    counts_.unmapped += fault == Fault::unmapped ? 1 : 0;
    counts_.not_numbers += fault == Fault::not_number ? 1 : 0;
    if (fault != Fault::malformed) continue;
    ++counts_.malformed;
    if (counts_.samples.size() < malformed_kept_max)
      counts_.samples.emplace_back(line.substr(0, malformed_bytes_max));
  }
  const std::size_t before = out.size();
  shares_.end_page(out);
  counts_.shares += out.size() - before;
  counts_.untold = shares_.counts();
}

std::string to_text(const PrometheusCounts& c) {
  std::string out =
      fmt::format("{} lines: {} samples, {} comments, {} not used; {} shares of several\n", c.lines,
                  c.mapped, c.comments, c.unmapped, c.shares);
  const std::pair<std::string_view, std::uint64_t> troubles[] = {
      {"not_numbers", c.not_numbers},
      {"incomplete_shares", c.untold.incomplete},
      {"unsteady_shares", c.untold.unsteady},
      {"refused_shares", c.untold.refused}};
  for (const auto& [what, count] : troubles)
    if (count > 0) out += fmt::format("{}: {}\n", what, count);
  if (c.malformed > 0) out += fmt::format("malformed: {}\n", c.malformed);
  for (const std::string& sample : c.samples)
    out += fmt::format("  e.g. {}\n", json_string(sample));
  return out;
}

}  // namespace weft::observe::telemetry
