#include "operate/health/table.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/check.hpp"
#include "base/text.hpp"

namespace weft::operate::health {
namespace {

constexpr std::array<std::string_view, layout::evidence_count> evidence_text{
    "down", "session", "out", "slow", "damage", "loss", "delay", "marks", "pauses"};

template <std::size_t n>
std::string name_at(const std::array<std::string_view, n>& names, std::size_t i) {
  return i < n ? std::string(names[i]) : fmt::format("{}", i);
}

constexpr double million = 1e6;
std::uint32_t ppm(double share) {
  constexpr double most = UINT32_MAX / million;
  return static_cast<std::uint32_t>(std::lround(std::clamp(share, 0.0, most) * million));
}
double share_of(std::uint32_t ppm) { return ppm / million; }

template <class T>
void append(std::string& out, const T& row) {
  out.append(reinterpret_cast<const char*>(&row), sizeof row);
}
template <class T>
T take(std::string_view& bytes) {
  T row;
  std::memcpy(&row, bytes.data(), sizeof row);
  bytes.remove_prefix(sizeof row);
  return row;
}

Error no_table(const std::string& file) {
  return Error{Errc::parse,
               {file, 0, 0},
               "not a table of path health",
               "name the file of weft serve --health or weft agent --health",
               {}};
}

std::unexpected<Error> io_error(const std::string& path, std::string_view what, int error) {
  return fail(Errc::io, {path, 0, 0}, fmt::format("{}: {}", what, errno_text(error)),
              "check that the directory exists and may be written to");
}

// Whole, or not there at all.
Result<std::string> read_at(const std::string& path, int file, std::size_t bytes,
                            std::size_t offset) {
  std::string out(bytes, '\0');
  const ssize_t n = ::pread(file, out.data(), bytes, static_cast<off_t>(offset));
  if (n < 0)
    return fail(Errc::io, {path, 0, 0}, errno_text(errno),
                "name the file of weft serve --health or weft agent --health");
  out.resize(static_cast<std::size_t>(n));
  return out;
}

std::optional<layout::FileHead> head_of(std::string_view bytes) {
  if (bytes.size() < sizeof(layout::FileHead)) return std::nullopt;
  const auto head = take<layout::FileHead>(bytes);
  if (std::memcmp(head.magic, layout::file_magic, sizeof head.magic) != 0 ||
      head.version != layout::version || head.slot_bytes != layout::slot_bytes)
    return std::nullopt;
  return head;
}

std::size_t slot_at(std::uint64_t sequence) {
  return layout::slot_offset + sequence % 2 * layout::slot_bytes;
}

std::string age_text(const HealthTable& table, Timestamp now) {
  const double age_s = static_cast<double>(now.ns - table.written.ns) / ns_per_s;
  const double valid_s = static_cast<double>(table.valid_ns) / ns_per_s;
  if (age_s < -1) return fmt::format("written {:.1f} s in the future: not believed", -age_s);
  return fmt::format("{:.1f} s old, {}", std::max(0.0, age_s),
                     age_s <= valid_s ? fmt::format("valid for {:.1f} s", valid_s - age_s)
                                      : "too old to be believed");
}

// Bytes of a file that anybody may have written.
std::string shown(const std::string& name) {
  return find_not_text(name) == std::string::npos ? name : quote(name);
}

std::string size_text(std::uint64_t bytes) {
  return bytes > std::uint64_t{1} << 62 ? "more" : human(Bytes{static_cast<std::int64_t>(bytes)});
}

}  // namespace

std::string encode(const HealthTable& table) {
  WEFT_CHECK(table.rails.size() <= layout::rails_max && table.advice.size() <= layout::advice_max);
  layout::TableHead head{};
  head.version = layout::version;
  head.written_ns = table.written.ns;
  head.valid_ms = static_cast<std::uint32_t>(
      std::clamp<std::int64_t>(table.valid_ns / 1'000'000, 0, UINT32_MAX));
  head.links_more = table.links_more;
  std::string rows;
  for (const RailHealth& r : table.rails)
    append(rows, layout::Rail{r.rail,
                              r.evidence,
                              r.nics,
                              r.nics_down,
                              r.nics_impaired,
                              ppm(r.worst_rate),
                              ppm(r.worst_loss),
                              {}});
  for (const LinkHealth& l : table.links) {
    layout::Link row{};
    if (l.name.size() >= sizeof row.name || head.links == layout::links_max) {
      ++head.links_more;
      continue;
    }
    l.name.copy(row.name, sizeof row.name - 1);
    row.rate_ppm = ppm(l.rate);
    row.loss_ppm = ppm(l.loss);
    row.evidence = l.evidence;
    row.rail = l.rail;
    append(rows, row);
    ++head.links;
  }
  for (const Advice& a : table.advice) append(rows, a);
  head.rails = static_cast<std::uint16_t>(table.rails.size());
  head.advice = static_cast<std::uint16_t>(table.advice.size());
  head.bytes = static_cast<std::uint32_t>(layout::bytes_of(head));
  std::string out;
  append(out, head);
  out += rows;
  WEFT_CHECK(out.size() == head.bytes);
  head.sum = layout::sum_of(out.data() + sizeof head.sum, out.size() - sizeof head.sum);
  std::memcpy(out.data(), &head.sum, sizeof head.sum);
  return out;
}

Result<HealthTable> decode(std::string_view bytes, const std::string& file) {
  if (!layout::is_table(bytes.data(), bytes.size())) return std::unexpected(no_table(file));
  const std::size_t size = bytes.size();
  const auto head = take<layout::TableHead>(bytes);
  if (head.bytes != size || head.written_ns < 0 || head.written_ns > timestamp_ns_max)
    return std::unexpected(no_table(file));
  HealthTable out{.written = {head.written_ns},
                  .valid_ns = std::int64_t{head.valid_ms} * 1'000'000,
                  .links_more = head.links_more,
                  .rails = {},
                  .links = {},
                  .advice = {}};
  for (std::uint16_t i = 0; i < head.rails; ++i) {
    const auto r = take<layout::Rail>(bytes);
    out.rails.push_back({r.rail, r.evidence, r.nics, r.nics_down, r.nics_impaired,
                         share_of(r.worst_rate_ppm), share_of(r.worst_loss_ppm)});
  }
  for (std::uint16_t i = 0; i < head.links; ++i) {
    const auto l = take<layout::Link>(bytes);
    out.links.push_back({std::string(l.name, ::strnlen(l.name, sizeof l.name - 1)),
                         share_of(l.rate_ppm), share_of(l.loss_ppm), l.evidence, l.rail});
  }
  for (std::uint16_t i = 0; i < head.advice; ++i) out.advice.push_back(take<Advice>(bytes));
  return out;
}

Result<std::string> load(const std::string& path) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.valid())
    return fail(Errc::io, {path, 0, 0}, errno_text(errno),
                "name the file of weft serve --health or weft agent --health");
  // A slot whose sum is wrong was overtaken by its writer, which sends readers to the other one.
  for (int tries = 0; tries < 3; ++tries) {
    WEFT_TRY(const std::string bytes, read_at(path, file.get(), sizeof(layout::FileHead), 0));
    const auto head = head_of(bytes);
    if (!head) break;
    WEFT_TRY(std::string slot,
             read_at(path, file.get(), layout::slot_bytes, slot_at(head->sequence)));
    if (!layout::is_table(slot.data(), slot.size())) continue;
    std::string_view rest = slot;
    const auto size = take<layout::TableHead>(rest).bytes;
    slot.resize(size);
    return slot;
  }
  return std::unexpected(no_table(path));
}

Result<Publisher> Publisher::open(const std::string& path) {
  Fd file(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  std::optional<layout::FileHead> head;
  if (file.valid()) {
    WEFT_TRY(const std::string bytes, read_at(path, file.get(), sizeof(layout::FileHead), 0));
    struct stat found{};
    head = head_of(bytes);
    // One of another user's could be rewritten by him.
    if (::fstat(file.get(), &found) != 0 || found.st_uid != ::geteuid() ||
        std::cmp_less(found.st_size, static_cast<off_t>(layout::file_bytes)))
      head.reset();
  }
  if (!head) {
    // Made aside and renamed, so that nobody opens half of one.
    const std::string aside = fmt::format("{}.{}", path, ::getpid());
    ::unlink(aside.c_str());
    file = Fd(::open(aside.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
    if (!file.valid()) return io_error(path, "cannot create the table", errno);
    head.emplace();
    std::memcpy(head->magic, layout::file_magic, sizeof head->magic);
    head->version = layout::version;
    head->slot_bytes = layout::slot_bytes;
    if (const int error = ::posix_fallocate(file.get(), 0, layout::file_bytes)) {
      ::unlink(aside.c_str());
      return io_error(path, "no room for the table", error);
    }
    const bool is_written = ::pwrite(file.get(), &*head, sizeof *head, 0) == sizeof *head;
    if (!is_written || ::rename(aside.c_str(), path.c_str()) != 0) {
      const int error = errno;
      ::unlink(aside.c_str());
      return io_error(path, "cannot create the table", error);
    }
  }
  if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0)
    return fail(Errc::infeasible, {path, 0, 0}, "another process writes this table",
                "stop it, or name another file");
  return Publisher(std::move(file), path, head->sequence);
}

Status Publisher::write(std::string_view bytes, std::size_t offset) {
  const ssize_t n = ::pwrite(file_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
  if (n < 0) return io_error(path_, "cannot write the table", errno);
  if (std::cmp_not_equal(n, bytes.size())) return io_error(path_, "cannot write the table", ENOSPC);
  return {};
}

Status Publisher::publish(std::string_view table) {
  WEFT_CHECK(layout::is_table(table.data(), table.size()) && table.size() <= layout::slot_bytes);
  const std::uint64_t next = sequence_ + 1;
  WEFT_TRY_STATUS(write(table, slot_at(next)));
  WEFT_TRY_STATUS(write({reinterpret_cast<const char*>(&next), sizeof next},
                        offsetof(layout::FileHead, sequence)));
  sequence_ = next;
  return {};
}

std::vector<std::string_view> evidence_names(std::uint16_t bits) {
  std::vector<std::string_view> out;
  for (std::size_t i = 0; i < evidence_text.size(); ++i)
    if ((bits >> i & 1u) != 0) out.push_back(evidence_text[i]);
  return out;
}

std::string to_text(const HealthTable& table, Timestamp now) {
  const auto evidence = [](std::uint16_t bits) {
    return bits == 0 ? std::string("-") : fmt::format("{}", fmt::join(evidence_names(bits), ", "));
  };
  const auto percent = [](double share) { return fmt::format("{:.4g} %", 100 * share); };
  const std::size_t impaired = table.links.size() + table.links_more;
  std::string out = fmt::format("{}; {} {} not well", age_text(table, now), impaired,
                                impaired == 1 ? "link" : "links");
  if (table.links_more > 0) out += fmt::format(", {} not listed", table.links_more);
  out += "\n\n";
  using enum weft::Table::Align;
  weft::Table rails({{"rail"},
                     {"NICs"},
                     {"down"},
                     {"impaired"},
                     {"worst rate"},
                     {"worst loss"},
                     {"evidence", left}});
  for (const RailHealth& r : table.rails)
    rails.add({fmt::format("{}", r.rail), fmt::format("{}", r.nics), fmt::format("{}", r.nics_down),
               fmt::format("{}", r.nics_impaired), percent(r.worst_rate), percent(r.worst_loss),
               evidence(r.evidence)});
  out += rails.text();
  if (!table.links.empty()) {
    weft::Table links({{"link", left}, {"rate"}, {"loss"}, {"evidence", left}});
    for (const LinkHealth& l : table.links)
      links.add({shown(l.name), percent(l.rate), percent(l.loss), evidence(l.evidence)});
    out += "\n" + links.text();
  }
  if (!table.advice.empty()) {
    weft::Table rows({{"job", left},
                      {"operation", left},
                      {"ranks"},
                      {"hosts"},
                      {"from"},
                      {"to"},
                      {"use", left},
                      {"channels"},
                      {"of the time"}});
    for (const Advice& a : table.advice)
      rows.add({fmt::format("{:016x}", a.job), name_at(nccl_operations, a.operation),
                fmt::format("{}", a.ranks), fmt::format("{}", a.nodes), size_text(a.bytes_from),
                size_text(a.bytes_to),
                fmt::format("{} {}", name_at(nccl_algorithms, a.algorithm),
                            name_at(nccl_protocols, a.protocol)),
                a.channels == 0 ? std::string("all") : fmt::format("{}", a.channels),
                percent(share_of(a.share_ppm))});
    out += "\n" + rows.text();
  }
  return out;
}

JsonObject to_json(const HealthTable& table, Timestamp now) {
  JsonList rails, links, advice;
  for (const RailHealth& r : table.rails)
    rails.add(JsonObject()
                  .add("rail", r.rail)
                  .add("nics", r.nics)
                  .add("nics_down", r.nics_down)
                  .add("nics_impaired", r.nics_impaired)
                  .add("worst_rate", r.worst_rate, digits(6))
                  .add("worst_loss", r.worst_loss, digits(6))
                  .add("evidence", evidence_names(r.evidence)));
  for (const LinkHealth& l : table.links) {
    JsonObject row;
    row.add("link", shown(l.name)).add("rate", l.rate, digits(6)).add("loss", l.loss, digits(6));
    if (l.rail != layout::no_rail) row.add("rail", l.rail);
    links.add(row.add("evidence", evidence_names(l.evidence)));
  }
  for (const Advice& a : table.advice)
    advice.add(JsonObject()
                   .add("job", fmt::format("{:016x}", a.job))
                   .add("operation", name_at(nccl_operations, a.operation))
                   .add("ranks", a.ranks)
                   .add("hosts", a.nodes)
                   .add("bytes_from", a.bytes_from)
                   .add("bytes_to", a.bytes_to)
                   .add("algorithm", name_at(nccl_algorithms, a.algorithm))
                   .add("protocol", name_at(nccl_protocols, a.protocol))
                   .add("channels", a.channels)
                   .add("share", share_of(a.share_ppm), digits(6)));
  layout::TableHead fresh{};
  fresh.written_ns = table.written.ns;
  fresh.valid_ms = static_cast<std::uint32_t>(table.valid_ns / 1'000'000);
  return JsonObject()
      .add("written", table.written)
      .add("age_s", static_cast<double>(now.ns - table.written.ns) / ns_per_s, decimals(3))
      .add("valid_s", static_cast<double>(table.valid_ns) / ns_per_s, decimals(3))
      .add("is_fresh", layout::is_fresh(fresh, now.ns))
      .add("rails", rails)
      .add("links", links)
      .add("links_not_listed", table.links_more)
      .add("advice", advice);
}

}  // namespace weft::operate::health
