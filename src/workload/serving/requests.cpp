#include "workload/serving/requests.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/csv.hpp"
#include "base/file.hpp"
#include "base/json_line.hpp"
#include "base/rng.hpp"
#include "base/text.hpp"

namespace weft::workload {
namespace {

constexpr double clock_max = 1e12;  // seconds
constexpr double span_max_s = 8e6;  // a Time holds 106 days
constexpr std::uint64_t trace_bytes_max = std::uint64_t{1} << 30;

Time time_of(double seconds) { return {std::llround(seconds * 1e12)}; }

// On the clocks of the file.
struct Raw {
  InferenceRequest request;
  double arrival = 0;
  double queued = 0, first = 0, last = 0;
  Where where;
};

constexpr std::size_t classes_max = 256;

// The place of a name among the classes; new names come last.
std::uint32_t class_of(std::string_view name, std::vector<std::string>& classes) {
  auto known = std::ranges::find(classes, name);
  if (known == classes.end()) known = classes.emplace(known, name);
  return static_cast<std::uint32_t>(known - classes.begin());
}

std::uint32_t class_of(const Token& name, std::vector<std::string>& classes, Errors& errors) {
  const std::uint32_t out = class_of(trim(name.text), classes);
  if (out < classes_max) return out;
  classes.pop_back();
  errors.push_back({Errc::value,
                    name.where,
                    fmt::format("more than {} classes of requests", classes_max - 1),
                    "a class is a kind of request with objectives of its own, e.g. chat",
                    {}});
  return 0;
}

// Arrivals from the first one on; measured times too, whose clock shows the first one's `queued`.
Result<RequestTrace> on_one_clock(std::vector<Raw> raw, bool measured,
                                  std::vector<std::string> classes, const std::string& file) {
  if (raw.empty())
    return fail(Errc::value, {file, 0, 0}, "there are no requests", "give one or more");
  std::ranges::stable_sort(raw, {}, &Raw::arrival);
  const double begin = raw.front().arrival, queued = raw.front().queued;
  RequestTrace out;
  out.classes = std::move(classes);
  Errors errors;
  for (Raw& one : raw) {
    const double latest = std::max(one.arrival - begin, measured ? one.last - queued : 0);
    const bool ordered = !measured || (one.first >= one.queued && one.last >= one.first);
    if (latest > span_max_s || !ordered) {
      errors.push_back({Errc::value,
                        one.where,
                        ordered ? fmt::format("{:.0f} s after the first request", latest)
                                : "queued, first and last token are not in this order",
                        ordered ? "a trace may last 90 days" : "check the clocks of the record",
                        {}});
      if (errors.size() >= errors_max) break;
      continue;
    }
    one.request.arrival = time_of(one.arrival - begin);
    out.requests.push_back(one.request);
    if (measured) out.measured.push_back({time_of(one.first - queued), time_of(one.last - queued)});
  }
  if (!errors.empty()) return std::unexpected(combine(std::move(errors)));
  return out;
}

Error bad_prefix(const Where& where) {
  return {Errc::value,
          where,
          "the shared prefix is longer than the prompt",
          "prefix tokens are the first ones of the prompt",
          {}};
}

// Days since 1970 (Gregorian); from the civil calendar's 400-year cycle.
std::int64_t days_of(std::int64_t y, std::int64_t m, std::int64_t d) {
  const std::int64_t year = m <= 2 ? y - 1 : y, month = (m + 9) % 12;
  return 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + d - 1 - 719468;
}

// "2023-11-16 18:15:46.6805900", also with "T" and "+00:00" or "Z" behind it; seconds of UTC.
Result<double> azure_time(const Token& token) {
  const auto bad = [&] {
    return fail(Errc::parse, token.where, fmt::format("{} is not a time", quote(token.text)),
                "write 2023-11-16 18:15:46.6805900");
  };
  std::string_view text = trim(token.text);
  for (const std::string_view zone : {"Z", "+00:00"})
    if (text.ends_with(zone)) text.remove_suffix(zone.size());
  constexpr std::string_view shape = "dddd-dd-dd dd:dd:dd";
  if (text.size() < shape.size()) return bad();
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const bool as_separator = shape[i] == ' ' && text[i] == 'T';
    if (shape[i] == 'd' ? !is_digit(text[i]) : text[i] != shape[i] && !as_separator) return bad();
  }
  const auto part = [&](std::size_t at, std::size_t n) {
    std::int64_t value = 0;
    for (const char c : text.substr(at, n)) value = value * 10 + (c - '0');
    return value;
  };
  const std::int64_t month = part(5, 2), day = part(8, 2), hour = part(11, 2), minute = part(14, 2);
  if (month < 1 || month > 12 || day < 1 || day > 31 || hour > 23 || minute > 59) return bad();
  const std::string_view rest = text.substr(17);
  if (rest.size() > 2 && (rest[2] != '.' || !std::ranges::all_of(rest.substr(3), is_digit)))
    return bad();
  const auto seconds = parse_number({rest, token.where});
  if (!seconds || *seconds >= 60) return bad();
  const std::int64_t days = days_of(part(0, 4), month, day);
  return static_cast<double>((days * 24 + hour) * 60 + minute) * 60 + *seconds;
}

}  // namespace

Result<RequestTrace> read_vllm_requests(std::string_view text, const std::string& file) {
  LineReader lines(text, file);
  Errors errors;
  std::vector<Raw> raw;
  std::vector<std::string> classes{""};
  std::size_t measured = 0;
  while (const auto line = next_json_line(lines, errors)) {
    Raw one{.where = line->where()};
    one.arrival = line->number("arrival_time", {}, -clock_max, clock_max, errors);
    const auto tokens = [&](std::string_view key, std::optional<std::int64_t> otherwise,
                            std::int64_t least) {
      return static_cast<std::uint32_t>(
          line->count(key, otherwise, least, request_tokens_max, errors));
    };
    one.request.input = tokens("input_toks", {}, 1);
    one.request.output = tokens("output_toks", {}, 1);
    one.request.prefix_tokens = tokens("prefix_toks", 0, 0);
    if (line->has("prefix")) one.request.prefix = hash_text(line->text("prefix", {}, errors)) | 1;
    if (line->has("class"))
      one.request.class_index =
          class_of({line->text("class", {}, errors), line->where()}, classes, errors);
    if (one.request.prefix_tokens > one.request.input) errors.push_back(bad_prefix(one.where));
    const bool has = line->has("queued_ts") || line->has("first_token_ts");
    if (has) {
      one.queued = line->number("queued_ts", {}, -clock_max, clock_max, errors);
      one.first = line->number("first_token_ts", {}, -clock_max, clock_max, errors);
      one.last = line->number("last_token_ts", {}, -clock_max, clock_max, errors);
      ++measured;
    }
    raw.push_back(std::move(one));
    if (errors.size() >= errors_max) break;
  }
  if (errors.empty() && measured != 0 && measured != raw.size())
    errors.push_back({Errc::value,
                      {file, 0, 0},
                      fmt::format("{} of {} requests have measured times", measured, raw.size()),
                      "record all or none",
                      {}});
  if (!errors.empty()) return std::unexpected(combine(std::move(errors)));
  return on_one_clock(std::move(raw), measured > 0, std::move(classes), file);
}

Result<RequestTrace> read_azure_requests(std::string_view text, const std::string& file) {
  CsvReader csv(text, file);
  const std::array<std::string, 3> required{"TIMESTAMP", "ContextTokens", "GeneratedTokens"};
  const std::array<std::string, 3> optional{"Prefix", "PrefixTokens", "Class"};
  WEFT_TRY_STATUS(csv.header(required, optional));
  Errors errors;
  std::vector<Raw> raw;
  std::vector<std::string> classes{""};
  const auto tokens = [&](std::size_t column, std::int64_t least) -> std::uint32_t {
    const auto value = parse_count(csv.cell(column));
    if (value && *value >= least && *value <= request_tokens_max)
      return static_cast<std::uint32_t>(*value);
    errors.push_back(value ? Error{Errc::value,
                                   csv.cell(column).where,
                                   fmt::format("{} tokens; {} to {} are allowed", *value, least,
                                               request_tokens_max),
                                   "",
                                   {}}
                           : value.error());
    return 1;
  };
  while (errors.size() < errors_max && csv.next()) {
    Raw one{.where = csv.where()};
    if (const auto at = azure_time(csv.cell(0)))
      one.arrival = *at;
    else
      errors.push_back(at.error());
    one.request.input = tokens(1, 1);
    one.request.output = std::max(1U, tokens(2, 0));
    if (const Token prefix = csv.cell(3); !trim(prefix.text).empty())
      one.request.prefix = hash_text(trim(prefix.text)) | 1;
    if (!trim(csv.cell(4).text).empty()) one.request.prefix_tokens = tokens(4, 0);
    one.request.class_index = class_of(csv.cell(5), classes, errors);
    if (one.request.prefix_tokens > one.request.input) errors.push_back(bad_prefix(one.where));
    raw.push_back(std::move(one));
  }
  if (csv.error() != nullptr) errors.push_back(*csv.error());
  if (!errors.empty()) return std::unexpected(combine(std::move(errors)));
  return on_one_clock(std::move(raw), false, std::move(classes), file);
}

Result<RequestTrace> read_requests(std::string_view bytes, const std::string& file) {
  std::string unpacked;
  if (bytes.starts_with("\x1f\x8b")) {
    WEFT_TRY(unpacked, gunzip(bytes, file, trace_bytes_max));
    bytes = unpacked;
  }
  return trim(bytes).starts_with('{') ? read_vllm_requests(bytes, file)
                                      : read_azure_requests(bytes, file);
}

RequestTrace poisson_requests(const PoissonArrivals& arrivals) {
  Rng rng = Rng(arrivals.seed).stream("arrivals");
  RequestTrace out;
  const std::uint32_t class_index = class_of(arrivals.name, out.classes);
  double at = 0;
  for (std::uint64_t i = 0; i < arrivals.count; ++i) {
    out.requests.push_back({.arrival = time_of(at),
                            .input = arrivals.input,
                            .output = arrivals.output,
                            .class_index = class_index});
    at += -std::log1p(-rng.uniform()) / arrivals.per_second;
  }
  return out;
}

RequestTrace poisson_requests(std::span<const PoissonArrivals> classes) {
  RequestTrace out;
  for (PoissonArrivals one : classes) {
    if (!one.name.empty()) one.seed = Rng(one.seed).stream(one.name).next();
    RequestTrace drawn = poisson_requests(one);
    const std::uint32_t class_index = class_of(one.name, out.classes);
    for (InferenceRequest& request : drawn.requests) {
      request.class_index = class_index;
      out.requests.push_back(request);
    }
  }
  std::ranges::stable_sort(out.requests, {}, &InferenceRequest::arrival);
  return out;
}

}  // namespace weft::workload
