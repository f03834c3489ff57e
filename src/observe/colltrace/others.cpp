#include "observe/colltrace/others.hpp"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/text.hpp"
#include "observe/colltrace/flight.hpp"

namespace weft::observe::colltrace {
namespace {

namespace dom = simdjson::dom;

// What a reader throws inside of this file.
struct Unfit {
  std::string what;
};

std::string_view text_in(dom::element object, const char* key) {
  std::string_view out;
  if (object[key].get(out) != simdjson::SUCCESS) return {};
  return out;
}
std::uint64_t number_in(dom::element object, const char* key) {
  std::uint64_t out = 0;
  if (object[key].get(out) != simdjson::SUCCESS)
    throw Unfit{fmt::format("{} is missing or not a number", quote(key))};
  return out;
}
double real_in(dom::element object, const char* key) {
  double out = 0;
  if (object[key].get(out) != simdjson::SUCCESS || !std::isfinite(out))
    throw Unfit{fmt::format("{} is missing or not a number", quote(key))};
  return out;
}
dom::array list_in(dom::element object, const char* key) {
  dom::array out;
  if (object[key].get(out) != simdjson::SUCCESS)
    throw Unfit{fmt::format("{} is missing or not a list", quote(key))};
  return out;
}
std::uint32_t rank_in(dom::element object, const char* key) {
  const std::uint64_t out = number_in(object, key);
  if (out >= JobBuilder::rank_max) throw Unfit{fmt::format("{} is not a rank", out)};
  return static_cast<std::uint32_t>(out);
}

// Runs `work`, whose troubles become errors of the file.
template <class Work>
auto guard(const std::string& file, std::uint32_t line, const Work& work) -> decltype(work()) {
  const auto refuse = [&](std::string what) {
    return fail(Errc::parse, {file, line, 0}, std::move(what),
                "see docs/commands/colltrace.md for the formats");
  };
  try {
    return work();
  } catch (const simdjson::simdjson_error& error) {
    return refuse(error.what());
  } catch (const Unfit& unfit) {
    return refuse(unfit.what);
  }
}

dom::element parse(dom::parser& parser, std::string& content) {
  content.reserve(content.size() + json_padding);
  return parser.parse(content.data(), content.size(), false);
}

class Inspector {
 public:
  void add(dom::element line) {
    const dom::element head = line["header"], meta = line["metadata"], perf = line["coll_perf"];
    out_.host = text_in(meta, "hostname");
    out_.pid = static_cast<std::int32_t>(number_in(meta, "pid"));
    const std::string key = fmt::format("{} {}", text_in(head, "id"), text_in(perf, "coll"));
    auto [at, is_new] =
        comms_.try_emplace(key, static_cast<std::uint32_t>(out_.communicators.size()));
    if (is_new) {
      RingCommunicator comm{.name = std::string(text_in(head, "comm_name"))};
      for (const char c : key)
        comm.id = comm.id * 1'099'511'628'211u ^ static_cast<unsigned char>(c);
      comm.rank = static_cast<std::int32_t>(rank_in(head, "rank"));
      comm.rank_count = static_cast<std::int32_t>(rank_in(head, "n_ranks"));
      comm.node_count = static_cast<std::int32_t>(rank_in(head, "nnodes"));
      out_.communicators.push_back(std::move(comm));
    }
    RingOperation o{.communicator = at->second, .state = RingOperation::State::completed};
    o.order = o.seq = number_in(perf, "coll_sn");
    o.count = number_in(perf, "coll_msg_size_bytes");
    o.function = name(text_in(perf, "coll"));
    o.type = name("bytes");
    const double us = real_in(perf, "coll_exec_time_us");
    if (us > 0 && us < 1e12) o.device_ns = static_cast<std::uint64_t>(us * 1000);
    const std::uint64_t dumped_us = number_in(meta, "dump_timestamp_us");
    if (dumped_us < 9'000'000'000'000'000)
      o.called_ns = static_cast<std::int64_t>(dumped_us * 1000);
    if (out_.operations.empty()) out_.opened_ns = o.called_ns;
    out_.operations.push_back(o);
  }
  RingTrace take() {
    while (out_.names.size() < 256) out_.names.emplace_back("?");
    return std::move(out_);
  }

 private:
  std::uint8_t name(std::string_view text) {
    const auto at = std::ranges::find(out_.names, text);
    if (at != out_.names.end()) return static_cast<std::uint8_t>(at - out_.names.begin());
    if (out_.names.size() == 255) return 255;
    out_.names.emplace_back(text);
    return static_cast<std::uint8_t>(out_.names.size() - 1);
  }
  RingTrace out_;
  std::map<std::string, std::uint32_t> comms_;
};

struct KinetoKernel {
  double begin_us = 0, us = 0;
  std::string signature;
  std::uint32_t group = 0;
};

void add_kineto_kernel(dom::element event, JobBuilder& job, std::vector<KinetoKernel>& out) {
  dom::element args;
  if (text_in(event, "cat") != "kernel" || event["args"].get(args) != simdjson::SUCCESS) return;
  const std::string_view name = text_in(args, "Collective name");
  const std::string_view ranks = text_in(args, "Process Group Ranks");
  if (name.empty() || ranks.empty()) return;
  const auto members = parse_ranks(ranks, "");
  if (!members) return;  // long lists are cut off with "..."
  // Only what members share: splits of an all-to-all are their own.
  const bool is_free = name.find("all_to_all") != std::string_view::npos ||
                       name.find("alltoall") != std::string_view::npos;
  KinetoKernel k{.begin_us = real_in(event, "ts"), .us = real_in(event, "dur")};
  k.signature = fmt::format("{}\t{}\t{}", name, text_in(args, "dtype"),
                            is_free ? "" : std::to_string(number_in(args, "In msg nelems")));
  k.group = job.group(text_in(args, "Process Group Name"),
                      text_in(args, "Process Group Description"), *members);
  out.push_back(std::move(k));
}

struct RasRank {
  std::string process;
  std::uint32_t rank = 0;
  std::map<std::string, std::uint64_t> counts;
};

// A group for each kind of operation: its members have begun so many; who has begun fewer is
// awaited in the last one.
void add_ras_communicator(dom::element comm, const std::map<std::string, std::uint32_t>& rank_of,
                          JobBuilder& job, std::map<std::uint32_t, std::vector<Entry>>& out) {
  const std::uint32_t size = rank_in(comm, "size");
  std::map<std::uint32_t, std::uint32_t> members;
  std::vector<RasRank> ranks;
  const auto process = [](dom::element r) {
    return fmt::format("{} {} {}", text_in(r, "host"), number_in(r, "pid"),
                       number_in(r, "cuda_dev"));
  };
  std::map<std::string, std::uint64_t> most;
  for (const dom::element r : list_in(comm, "ranks")) {
    RasRank one{process(r), rank_in(r, "rank"), {}};
    const dom::object counts = r["collective_counts"].get_object().value();
    for (const auto& [kind, count] : counts) {
      const std::uint64_t n = count.get_uint64();
      one.counts[std::string(kind)] = n;
      most[std::string(kind)] = std::max(most[std::string(kind)], n);
    }
    members[one.rank] = rank_of.at(one.process);
    ranks.push_back(std::move(one));
  }
  bool is_missing = false;
  dom::array missing;
  if (comm["missing_ranks"].get(missing) == simdjson::SUCCESS)
    for (const dom::element r : missing) {
      members[rank_in(r, "rank")] = rank_of.at(process(r));
      is_missing = true;
    }
  if (members.size() > size) throw Unfit{"a communicator has more ranks than its size"};
  std::vector<std::uint32_t> list;
  for (const auto& [i, rank] : members) list.push_back(rank);
  for (const auto& [kind, last] : most) {
    if (last == 0) continue;
    const bool is_even =
        std::ranges::all_of(ranks, [&](RasRank& r) { return r.counts[kind] == last; });
    const std::uint32_t group =
        job.group(fmt::format("{} {}", text_in(comm, "hash"), kind), "", list);
    for (RasRank& r : ranks) {
      Entry e{.group = group, .seq = static_cast<std::uint32_t>(r.counts[kind])};
      e.signature = job.signature(kind) & ((1u << 29) - 1);
      const bool waits = r.counts[kind] == last && (!is_even || is_missing);
      e.state = waits ? EntryState::started : EntryState::completed;
      if (r.counts[kind] > 0) out[members[r.rank]].push_back(e);
    }
  }
}

// Ranks of the job: those of the largest communicator, then others in their order.
std::map<std::string, std::uint32_t> ras_ranks(dom::element top) {
  std::vector<dom::element> comms;
  for (const dom::element c : list_in(top, "communicators")) comms.push_back(c);
  std::ranges::stable_sort(comms, std::greater{},
                           [](dom::element c) { return rank_in(c, "size"); });
  std::map<std::string, std::uint32_t> out;
  std::set<std::uint32_t> used;
  for (const dom::element c : comms)
    for (const char* list : {"ranks", "missing_ranks"}) {
      dom::array ranks;
      if (c[list].get(ranks) != simdjson::SUCCESS) continue;
      for (const dom::element r : ranks) {
        std::string key = fmt::format("{} {} {}", text_in(r, "host"), number_in(r, "pid"),
                                      number_in(r, "cuda_dev"));
        if (out.contains(key)) continue;
        std::uint32_t rank = rank_in(r, "rank");
        while (used.contains(rank)) ++rank;
        used.insert(rank);
        out.emplace(std::move(key), rank);
      }
    }
  return out;
}

}  // namespace

Result<RingTrace> read_inspector(std::string& content, const std::string& file) {
  Inspector inspector;
  dom::parser parser;
  std::uint32_t number = 0, used = 0;
  std::string line;
  for (const std::string_view text : split(content, '\n')) {
    ++number;
    if (!text.starts_with('{')) continue;
    line.assign(text);
    const Status status = guard(file, number, [&]() -> Status {
      const dom::element parsed = parse(parser, line);
      if (parsed["coll_perf"].error() != simdjson::SUCCESS) return {};  // sends: not numbered
      inspector.add(parsed);
      ++used;
      return {};
    });
    if (!status) return std::unexpected(status.error());
  }
  if (used == 0)
    return fail(Errc::parse, {file, 1, 0}, "no collective of NCCL Inspector",
                "give its JSON lines of format v4");
  return inspector.take();
}

Status read_kineto(std::string& content, const std::string& file, JobBuilder& job) {
  return guard(file, 0, [&]() -> Status {
    dom::parser parser;
    const dom::element top = parse(parser, content);
    RankTrace rank{.rank = rank_in(top["distributedInfo"], "rank"), .file = file};
    std::vector<KinetoKernel> kernels;
    for (const dom::element event : list_in(top, "traceEvents"))
      add_kineto_kernel(event, job, kernels);
    std::ranges::stable_sort(kernels, {}, &KinetoKernel::begin_us);
    std::vector<Entry> entries;
    std::map<std::uint32_t, std::uint32_t> next;
    for (const KinetoKernel& k : kernels) {
      constexpr double year_3000_us = 3.25e16;
      if (k.begin_us < 0 || k.begin_us > year_3000_us / 4 || k.us < 0 || k.us > 1e12) continue;
      Entry e{.created_ns = static_cast<std::int64_t>(k.begin_us * 1000)};
      e.started_ns = e.created_ns;
      e.ended_ns = e.created_ns + static_cast<std::int64_t>(k.us * 1000);
      e.group = k.group;
      e.seq = next[k.group]++;
      e.duration_us = static_cast<float>(k.us);
      e.signature = job.signature(k.signature) & ((1u << 29) - 1);
      e.state = EntryState::completed;
      entries.push_back(e);
    }
    if (entries.empty())
      job.job().notes.push_back(fmt::format("{}: no kernel names its collective", file));
    return job.add(std::move(rank), entries);
  });
}

Status read_ras(std::string& content, const std::string& file, JobBuilder& job) {
  return guard(file, 0, [&]() -> Status {
    dom::parser parser;
    const dom::element top = parse(parser, content);
    const std::map<std::string, std::uint32_t> rank_of = ras_ranks(top);
    std::map<std::uint32_t, std::vector<Entry>> entries;
    for (const dom::element comm : list_in(top, "communicators"))
      add_ras_communicator(comm, rank_of, job, entries);
    std::map<std::uint32_t, std::string> hosts;
    for (const auto& [key, rank] : rank_of) hosts[rank] = key.substr(0, key.find(' '));
    for (auto& [rank, list] : entries)
      WEFT_TRY_STATUS(job.add({.rank = rank, .file = file, .host = hosts[rank]}, list));
    return {};
  });
}

}  // namespace weft::observe::colltrace
