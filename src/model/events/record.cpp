#include "model/events/record.hpp"

#include <fmt/format.h>

#include <map>

#include "base/hash.hpp"
#include "base/json_line.hpp"

namespace weft::model {
namespace {

constexpr std::size_t record_bytes = 256;  // of most lines that are written

}  // namespace

// Not in the anonymous namespace, as the Impl structs hold one.
class RecordReader {
 public:
  // Of ids that may repeat, between `ids_max` and twice as many are kept.
  RecordReader(const Fabric& fabric, RecordCounts& counts, std::size_t ids_max)
      : fabric_(fabric), counts_(counts), ids_max_(ids_max) {}

  void add(const JsonLine& line, std::string_view text) {
    ++counts_.lines;
    std::string id = line.text("id", fmt::format("{}", line.where().line), errors_);
    if (!is_repeated(line, id, text)) append(line, std::move(id));
  }

  // Whatever its id.
  void append(const JsonLine& line, std::string id) {
    Attributes attributes;
    if (const auto attrs = line.object("attrs", errors_)) attributes = attrs->members();
    Record row;
    row.t = line.time("t", {}, errors_);
    row.until = line.time("until", row.t, errors_);
    row.received = line.time("received", row.t, errors_);
    if (row.until < row.t)
      errors_.push_back({Errc::value,
                         line.where(),
                         "\"until\" is before \"t\"",
                         "omit \"until\" for events without a duration",
                         {}});
    row.value = line.number("value", 1, -1e300, 1e300, errors_);
    read_source(line, row);
    read_kind(line, row, attributes);
    read_entity(line, row, attributes);
    row.id = set_.add_id(std::move(id));
    row.attrs = set_.add_attributes(std::move(attributes));
    set_.rows.push_back(row);
  }

  Errors& errors() { return errors_; }
  std::size_t size() const { return set_.rows.size(); }
  RecordSet take() { return std::exchange(set_, {}); }
  void drop_after(std::size_t size) { set_.rows.resize(size); }

 private:
  bool is_repeated(const JsonLine& line, const std::string& id, std::string_view text) {
    const std::uint64_t content = hash_text(text);
    auto known = older_.find(id);
    if (known == older_.end()) {
      if (seen_.size() >= ids_max_) older_ = std::exchange(seen_, {});
      const auto [at, is_new] = seen_.emplace(id, content);
      if (is_new) return false;
      known = at;
    }
    if (known->second == content)
      ++counts_.duplicates;
    else
      errors_.push_back({Errc::value,
                         line.where(),
                         fmt::format("duplicate id {} for different records", quote(id)),
                         "give each record a unique id",
                         {}});
    return true;
  }

  void read_source(const JsonLine& line, Record& row) {
    const std::string name = line.text("source", {}, errors_);
    if (name.empty()) return;
    if (const auto known = source(name)) {
      row.source = *known;
      return;
    }
    errors_.push_back(
        {Errc::unknown,
         line.where(),
         fmt::format("\"source\" is {}{}", quote(name), did_you_mean(name, source_names())),
         fmt::format("give one of: {}", fmt::join(source_names(), ", ")),
         {}});
  }

  void read_kind(const JsonLine& line, Record& row, Attributes& attributes) {
    std::string name = line.text("kind", {}, errors_);
    if (const auto known = event_kind(name)) {
      row.kind = *known;
    } else {
      ++counts_.unknown_kinds;
      attributes.emplace_back("kind", std::move(name));
    }
  }

  void read_entity(const JsonLine& line, Record& row, Attributes& attributes) {
    std::string name = line.text("entity", "", errors_);
    if (name.empty()) return;
    auto known = entities_.find(name);
    if (known == entities_.end()) {
      const auto found = find_entity(fabric_, {name, line.where()});
      known = entities_.emplace(name, found.value_or(Entity{})).first;
    }
    row.entity = known->second;
    if (row.entity.kind != EntityKind::none) return;
    ++counts_.unknown_entities;
    attributes.emplace_back("entity", std::move(name));
  }

  const Fabric& fabric_;
  RecordCounts& counts_;
  std::size_t ids_max_;
  RecordSet set_;
  Errors errors_;
  std::map<std::string, Entity, std::less<>> entities_;
  std::map<std::string, std::uint64_t, std::less<>> seen_, older_;
};

namespace {

// Fills the reader with up to `rows_max` records, as far as lines and patience with errors go.
Result<RecordSet> read_piece(RecordReader& reader, LineReader& lines, std::size_t rows_max) {
  while (reader.size() < rows_max) {
    const auto line = next_json_line(lines, reader.errors());
    if (!line) break;
    reader.add(*line, lines.line());
  }
  if (!reader.errors().empty()) return std::unexpected(combine(std::move(reader.errors())));
  return reader.take();
}

}  // namespace

std::string_view RecordSet::attribute(const Record& record, std::string_view key) const {
  for (const auto& [name, value] : attrs[record.attrs])
    if (name == key) return value;
  return "";
}

std::uint32_t RecordSet::add_id(std::string id) {
  ids.push_back(std::move(id));
  return static_cast<std::uint32_t>(ids.size() - 1);
}

std::uint32_t RecordSet::add_attributes(Attributes attributes) {
  if (attributes.empty()) return 0;
  attrs.push_back(std::move(attributes));
  return static_cast<std::uint32_t>(attrs.size() - 1);
}

Result<RecordSet> read_records(const Fabric& fabric, LineReader& lines, RecordCounts& counts) {
  RecordReader reader(fabric, counts, SIZE_MAX);
  return read_piece(reader, lines, SIZE_MAX);
}

struct RecordStream::Impl {
  Impl(const Fabric& fabric, LineReader& from) : lines(from), reader(fabric, counts, ids_max) {}

  static constexpr std::size_t ids_max = 250'000, refused_max = 5;

  void refuse(Errors errors) {
    counts.malformed += errors.size();
    for (Error& error : errors)
      if (refused.size() < refused_max) refused.push_back(std::move(error));
  }

  LineReader& lines;
  RecordCounts counts;
  Errors refused;
  RecordReader reader;
};

RecordStream::RecordStream(const Fabric& fabric, LineReader& lines)
    : impl_(std::make_unique<Impl>(fabric, lines)) {}
RecordStream::RecordStream(RecordStream&&) noexcept = default;
RecordStream& RecordStream::operator=(RecordStream&&) noexcept = default;
RecordStream::~RecordStream() = default;

Result<RecordSet> RecordStream::next(std::size_t rows_max) {
  RecordReader& reader = impl_->reader;
  while (reader.size() < rows_max) {
    Errors broken;
    const auto line = next_json_line(impl_->lines, broken);
    const Error* error = impl_->lines.error();
    const bool is_long = error != nullptr && impl_->lines.pass_over();
    if (error != nullptr && !is_long) return std::unexpected(*error);
    const bool is_end = !line && !is_long && broken.size() < errors_max;
    impl_->refuse(std::move(broken));
    if (is_end) break;
    if (!line) continue;
    const std::size_t before = reader.size();
    reader.add(*line, impl_->lines.line());
    if (reader.errors().empty()) continue;
    reader.drop_after(before);
    --impl_->counts.lines;
    impl_->refuse({combine(std::exchange(reader.errors(), {}))});
  }
  return reader.take();
}
const Errors& RecordStream::refused() const { return impl_->refused; }
const RecordCounts& RecordStream::counts() const { return impl_->counts; }

struct RecordLines::Impl {
  explicit Impl(const Fabric& fabric) : reader(fabric, counts, 0) {}
  RecordCounts counts;
  RecordReader reader;
};

RecordLines::RecordLines(const Fabric& fabric) : impl_(std::make_unique<Impl>(fabric)) {}
RecordLines::RecordLines(RecordLines&&) noexcept = default;
RecordLines& RecordLines::operator=(RecordLines&&) noexcept = default;
RecordLines::~RecordLines() = default;

Status RecordLines::add(std::string_view text, const Where& where) {
  ++impl_->counts.lines;
  WEFT_TRY(const JsonLine line, JsonLine::parse(text, where));
  Errors& errors = impl_->reader.errors();
  std::string id = line.text("id", "", errors);
  const std::size_t before = impl_->reader.size();
  impl_->reader.append(line, std::move(id));
  if (errors.empty()) return {};
  impl_->reader.drop_after(before);
  return std::unexpected(combine(std::exchange(errors, {})));
}

RecordSet RecordLines::take() { return impl_->reader.take(); }
const RecordCounts& RecordLines::counts() const { return impl_->counts; }

std::string to_json(const Fabric& fabric, const RecordSet& set, const Record& record) {
  JsonObject out;
  out.reserve(record_bytes).add("id", set.ids[record.id]).add("t", record.t);
  if (record.until != record.t) out.add("until", record.until);
  if (record.received != record.t) out.add("received", record.received);
  out.add("source", record.source);
  const std::string_view unknown_kind = set.attribute(record, "kind");
  const bool known = record.entity.kind != EntityKind::none;
  if (known)
    out.add("entity", name(fabric, record.entity));
  else
    out.add("entity", set.attribute(record, "entity"));
  out.add("kind", unknown_kind.empty() ? to_text(record.kind) : unknown_kind)
      .add("value", record.value);
  JsonObject attrs;
  for (const auto& [key, value] : set.attrs[record.attrs]) {
    const bool stands_elsewhere =
        (key == "kind" && !unknown_kind.empty()) || (key == "entity" && !known);
    if (!stands_elsewhere) attrs.add(key, value);
  }
  return std::move(out.add_if("attrs", attrs)).text();
}

}  // namespace weft::model
