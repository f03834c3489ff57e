#include "cli/colltrace_hashes.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/file.hpp"
#include "base/json_text.hpp"
#include "base/plural.hpp"
#include "base/text.hpp"
#include "observe/colltrace/dissent.hpp"
#include "plan/place/host_names.hpp"

namespace weft::cli {
namespace {

namespace colltrace = observe::colltrace;

std::string parts_text(const colltrace::Accused& accused) {
  std::string out = to_text(accused.part);
  for (const auto& part : accused.or_else) out += " or " + to_text(part);
  return out;
}

std::string dissent_text(const colltrace::HashSet& hashes, const colltrace::Dissent& d) {
  constexpr std::size_t shown_max = 12;
  std::string ranks;
  for (std::size_t i = 0; i < std::min(shown_max, d.ranks.size()); ++i)
    ranks += fmt::format("{}{}", i > 0 ? ", " : "", d.ranks[i]);
  if (d.ranks.size() > shown_max) ranks += fmt::format(" and {} more", d.ranks.size() - shown_max);
  const colltrace::HashRow& row = d.cohort;
  return fmt::format("{}step {}, {} {} of group {}: {} {} from {}",
                     row.run > 0 ? fmt::format("run {}, ", row.run) : "", row.step,
                     to_text(row.kind), row.seq, hashes.groups[row.group],
                     d.ranks.size() == 1 ? "rank" : "ranks",
                     ranks + (d.ranks.size() == 1 ? " differs" : " differ"),
                     counted(d.members - d.ranks.size(), "other"));
}

std::size_t followers(const colltrace::HashReport& report, const colltrace::Accused& accused) {
  return static_cast<std::size_t>(std::ranges::count_if(report.dissents, [&](const auto& d) {
    return d.follows && std::ranges::binary_search(accused.dissents, *d.follows);
  }));
}

bool is_unexplained(const colltrace::Dissent& d) { return d.parts.empty() && !d.follows; }

void print_hashes(const colltrace::HashSet& hashes, const colltrace::HashReport& r) {
  constexpr std::size_t shown_max = 10;
  fmt::print("{} of {} in {}, {}; {} cohort{}\n", counted(r.rows, "row"), counted(r.ranks, "rank"),
             counted(r.steps, "step"), counted(r.cohorts, "cohort"), r.dissents.size(),
             r.dissents.size() == 1 ? " differs" : "s differ");
  for (const colltrace::Accused& accused : r.accused) {
    fmt::print("corruption: {}: explains {}\n", parts_text(accused),
               counted(accused.dissents.size(), "cohort"));
    fmt::print("  first {}\n", dissent_text(hashes, r.dissents[accused.dissents.front()]));
    if (const std::size_t more = followers(r, accused); more > 0)
      fmt::print("  {} follow{} from it\n", counted(more, "cohort"), more == 1 ? "s" : "");
  }
  std::size_t unexplained = 0;
  for (const colltrace::Dissent& d : r.dissents)
    if (is_unexplained(d) && ++unexplained <= shown_max)
      fmt::print("no single flip explains {}\n", dissent_text(hashes, d));
  if (unexplained > shown_max)
    fmt::print("and {} more that no single flip explains; all with --json\n",
               unexplained - shown_max);
  if (r.accused.size() == colltrace::accused_max)
    fmt::print("note: the first {} parts are listed\n", colltrace::accused_max);
  if (r.missing > 0)
    fmt::print("note: {} missing\n", r.missing == 1
                                         ? "1 hash of a member is"
                                         : fmt::format("{} hashes of members are", r.missing));
  if (r.alone > 0)
    fmt::print("note: {} one hash only and cannot be compared\n",
               r.alone == 1 ? "1 cohort has" : fmt::format("{} cohorts have", r.alone));
  if (hashes.ns > 0)
    fmt::print("hashing: {} a rank and step, {} at {:.1f} GB/s\n",
               human(Bytes(static_cast<std::int64_t>(hashes.bytes / (r.ranks * r.steps)))),
               human_seconds(static_cast<double>(hashes.ns) * 1e-9 /
                             static_cast<double>(r.ranks * r.steps)),
               static_cast<double>(hashes.bytes) / static_cast<double>(hashes.ns));
}

void print_hashes_json(const colltrace::HashSet& hashes, const colltrace::HashReport& r) {
  JsonList accused, dissents;
  for (const colltrace::Accused& a : r.accused) {
    JsonList parts;
    parts.add(to_text(a.part));
    for (const auto& part : a.or_else) parts.add(to_text(part));
    accused.add(JsonObject()
                    .add("parts", parts)
                    .add("dissents", a.dissents)
                    .add("following", followers(r, a)));
  }
  for (const colltrace::Dissent& d : r.dissents) {
    JsonList parts;
    for (const auto& part : d.parts) parts.add(to_text(part));
    dissents.add(JsonObject()
                     .add("run", d.cohort.run)
                     .add("step", d.cohort.step)
                     .add("kind", to_text(d.cohort.kind))
                     .add("group", hashes.groups[d.cohort.group])
                     .add("seq", d.cohort.seq)
                     .add("ranks", d.ranks)
                     .add("members", d.members)
                     .add("parts", parts)
                     .add("follows", d.follows));
  }
  fmt::print("{}\n", JsonObject()
                         .add("rows", r.rows)
                         .add("ranks", r.ranks)
                         .add("steps", r.steps)
                         .add("cohorts", r.cohorts)
                         .add("accused", accused)
                         .add("dissents", dissents)
                         .add("missing", r.missing)
                         .add("alone", r.alone)
                         .add("bytes", hashes.bytes)
                         .add("hashing_s", static_cast<double>(hashes.ns) * 1e-9)
                         .text());
}

// Hosts by rank: by the list, or by what the rows say.
Result<std::vector<model::NodeId>> hosts_of_ranks(const model::Fabric& fabric,
                                                  const HashesArgs& args,
                                                  const colltrace::HashSet& hashes) {
  const plan::place::HostNames names(fabric);
  std::uint32_t world = 0;
  for (const colltrace::HashRow& row : hashes.rows) world = std::max(world, row.rank + 1);
  std::vector<model::NodeId> out(world);
  if (args.hosts.empty()) {
    for (const auto& [rank, host] : hashes.hosts)
      if (const auto at = names.find(host)) out[rank] = fabric.hosts()[*at];
  } else {
    WEFT_TRY(const auto hosts, names.read({args.hosts, {"--hosts", 0, 0}}));
    for (std::uint32_t r = 0; r < world; ++r)
      if (const std::size_t i = r / args.ranks_per_host; i < hosts.size())
        out[r] = fabric.hosts()[hosts[i]];
  }
  if (std::ranges::none_of(out, [](model::NodeId h) { return h.valid(); }))
    return fail(Errc::value, {}, "no rank has a host of the fabric",
                "fill the column host, or say where the ranks run with --hosts");
  return out;
}

Status write_hash_records(const Common& common, const HashesArgs& args,
                          const colltrace::HashSet& hashes, const colltrace::HashReport& found) {
  if (hashes.last.ns == 0)
    return fail(Errc::value, {}, "no row has a time, which records need",
                "fill the column time with nanoseconds since 1970");
  WEFT_TRY(const model::Fabric fabric, load_fabric(common, args.fabric));
  WEFT_TRY(const auto hosts, hosts_of_ranks(fabric, args, hashes));
  const model::RecordSet records = to_records(fabric, hashes, hosts, args.job, found);
  std::string text;
  for (const model::Record& row : records.rows) text += to_json(fabric, records, row) + "\n";
  if (records.rows.size() < found.accused.size())
    fmt::print(stderr, "weft: note: {} not on one host, without a record\n",
               counted(found.accused.size() - records.rows.size(), "accusation"));
  return write_file(args.records, text);
}

}  // namespace

int run_hashes(const Common& common, const HashesArgs& args) {
  const auto hashes = colltrace::load_hashes(args.paths);
  if (!hashes) return report(hashes.error());
  const auto found = find_dissent(*hashes);
  if (!found) return report(found.error());
  if (!args.records.empty())
    if (const Status done = write_hash_records(common, args, *hashes, *found); !done)
      return report(done.error());
  if (common.json)
    print_hashes_json(*hashes, *found);
  else
    print_hashes(*hashes, *found);
  return found->dissents.empty() ? done : work_failed;
}

}  // namespace weft::cli
