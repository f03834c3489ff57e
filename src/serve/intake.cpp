#include "serve/intake.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "base/check.hpp"
#include "base/hash.hpp"
#include "base/line_reader.hpp"
#include "base/text.hpp"

namespace weft::serve {
namespace {

constexpr std::array<std::string_view, 4> feed_names{"record", "syslog", "evidence", "captured"};

constexpr std::size_t refused_told = 100;

bool is_blank(std::string_view line) {
  return line.find_first_not_of(" \t\r") == std::string_view::npos;
}

// Syslog is kept in one form.
std::string_view stored_name(Feed feed) {
  return feed_names[static_cast<std::size_t>(feed == Feed::captured ? Feed::syslog : feed)];
}

// One line, without the position in front, for somebody who knows which line it is.
std::string reason(const Error& error) {
  std::string out = error.what;
  if (!error.hint.empty()) out += "; " + error.hint;
  return out;
}

}  // namespace

Result<Feed> find_feed(std::string_view name) {
  const auto* const at = std::ranges::find(feed_names, name);
  if (at != feed_names.end()) return static_cast<Feed>(at - feed_names.begin());
  return fail(Errc::unknown, {}, fmt::format("unknown feed {}", quote(name)),
              fmt::format("use one of: {}", fmt::join(feed_names, ", ")));
}

Intake::Intake(const model::Fabric& fabric, const observe::telemetry::Inventory& inventory,
               const observe::telemetry::Catalogue& catalogue)
    : fabric_(fabric), lines_(fabric), syslog_(inventory, catalogue, {}) {}

Receipt Intake::check(Feed feed, const std::vector<std::string>& lines, std::string_view sender,
                      Timestamp received, std::vector<port::StoredEvent>& events) {
  Receipt out;
  const model::RecordCounts before = lines_.counts();
  for (std::size_t i = 0; i < lines.size(); ++i) {
    ++counts_.lines;
    Checked line = is_blank(lines[i]) ? Checked{.is_known = true}
                                      : check_line(feed, lines[i], sender, received);
    if (!line.why.empty()) {
      ++counts_.refused;
      if (++out.refused_count <= refused_told) out.refused.push_back({i + 1, std::move(line.why)});
      continue;
    }
    ++out.acknowledged;
    if (line.is_known) {
      ++out.known;
      ++counts_.known;
    } else {
      events.push_back({0, received, std::string(stored_name(feed)), line.kept});
    }
  }
  // What a newer agent may say is kept for a newer service, and not passed over in silence.
  out.unknown_kinds = lines_.counts().unknown_kinds - before.unknown_kinds;
  out.unknown_entities = lines_.counts().unknown_entities - before.unknown_entities;
  counts_.unknown_kinds += out.unknown_kinds;
  counts_.unknown_entities += out.unknown_entities;
  WEFT_CHECK(out.acknowledged + out.refused_count == lines.size());
  return out;
}

Intake::Checked Intake::check_line(Feed feed, const std::string& line, std::string_view sender,
                                   Timestamp received) {
  Checked out{.kept = line};
  if (line.size() > line_bytes_max) {
    out.why =
        fmt::format("the line has {} bytes; at most {} are allowed", line.size(), line_bytes_max);
  } else if (feed == Feed::syslog) {
    out.kept = fmt::format("@{} {} {}", received.ns, sender.empty() ? "-" : sender, line);
  } else if (feed == Feed::captured) {
    if (!line.starts_with('@')) out.why = "it does not begin with \"@NS FROM \"";
  } else if (feed == Feed::evidence) {
    LineReader reader(line, "");
    if (const auto rows = model::read_evidence(fabric_, reader); !rows)
      out.why = reason(rows.error());
  } else if (const Status added = lines_.add(line, {}); !added) {
    out.why = reason(added.error());
  } else {
    const model::RecordSet set = lines_.take();
    WEFT_CHECK(set.rows.size() == 1);
    const std::string& id = set.ids.back();
    const std::uint64_t name = hash_text(id);
    out.is_known = !id.empty() && (known_.contains(name) || !checked_.insert(name).second);
  }
  return out;
}

void Intake::keep(std::span<const port::StoredEvent> events, Numbered& records,
                  model::EvidenceSet& evidence) {
  checked_.clear();
  Numbered messages;
  for (const port::StoredEvent& event : events) {
    const auto feed = find_feed(event.feed);
    if (!feed) {
      ++counts_.unreadable;
    } else if (*feed == Feed::record) {
      keep_record(event, records);
    } else if (*feed == Feed::evidence) {
      keep_evidence(event, evidence);
    } else {
      syslog_.take_captured(event.line);
      messages.numbers.resize(syslog_.records().rows.size(), event.seq);
    }
  }
  messages.records = syslog_.take_records();
  WEFT_CHECK(messages.records.rows.size() == messages.numbers.size());
  merge(messages, records);
  WEFT_CHECK(records.records.rows.size() == records.numbers.size());
}

// Messages were read apart from the others: back into the order of events.
void Intake::merge(const Numbered& messages, Numbered& records) {
  const auto row_count = static_cast<std::ptrdiff_t>(records.numbers.size());
  for (std::size_t i = 0; i < messages.numbers.size(); ++i) {
    model::Record row = messages.records.rows[i];
    row.id = records.records.add_id(fmt::format("e{}", messages.numbers[i]));
    row.attrs = records.records.add_attributes(messages.records.attrs[row.attrs]);
    records.records.rows.push_back(row);
    records.numbers.push_back(messages.numbers[i]);
  }
  if (row_count == 0 || messages.numbers.empty()) return;
  std::vector<std::size_t> order(records.numbers.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::inplace_merge(
      order.begin(), order.begin() + row_count, order.end(),
      [&](std::size_t a, std::size_t b) { return records.numbers[a] < records.numbers[b]; });
  std::vector<model::Record> rows;
  for (const std::size_t i : order) rows.push_back(records.records.rows[i]);
  records.records.rows = std::move(rows);
  std::ranges::sort(records.numbers);
}

void Intake::keep_evidence(const port::StoredEvent& event, model::EvidenceSet& evidence) {
  LineReader reader(event.line, "");
  const Status taken = model::scan_evidence(fabric_, reader, [&](const model::EvidenceSet& set) {
    for (model::Evidence row : set.rows) {
      const auto path = set.path(row);
      row.traffic_class = evidence.class_index(set.classes[row.traffic_class]);
      evidence.set_path(row, path);
      evidence.rows.push_back(row);
    }
  });
  if (!taken) ++counts_.unreadable;
}

void Intake::keep_record(const port::StoredEvent& event, Numbered& records) {
  if (!lines_.add(event.line, {})) {
    ++counts_.unreadable;
    return;
  }
  const model::RecordSet set = lines_.take();
  WEFT_CHECK(set.rows.size() == 1);
  model::Record row = set.rows.back();
  if (row.received == row.t) row.received = event.received;
  const std::string& id = set.ids[row.id];
  if (!id.empty()) known_.insert(hash_text(id));
  row.id = records.records.add_id(id.empty() ? fmt::format("e{}", event.seq) : id);
  row.attrs = records.records.add_attributes(set.attrs[row.attrs]);
  records.records.rows.push_back(row);
  records.numbers.push_back(event.seq);
}

}  // namespace weft::serve
