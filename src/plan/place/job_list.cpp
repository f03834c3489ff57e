#include "plan/place/job_list.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/text.hpp"

namespace weft::plan::place {
namespace {

constexpr std::size_t job_list_bytes_max = std::size_t{64} << 20;
constexpr std::int64_t job_hosts_max = 1'000'000;

class JobListReader {
 public:
  explicit JobListReader(const std::string& file) : file_(file) {}

  Result<std::vector<JobEvent>> read(std::string_view text) {
    std::uint32_t line = 0;
    for (const std::string_view row : split(text, '\n')) {
      ++line;
      const std::string_view cells = trim(row);
      if (cells.empty() || cells.starts_with('#')) continue;
      read_line(cells, {file_, line, 1});
      if (errors_.size() >= errors_max) break;
    }
    if (!errors_.empty()) return std::unexpected(combine(std::move(errors_)));
    return std::move(events_);
  }

 private:
  void read_line(std::string_view row, const Where& where) {
    const std::vector<std::string_view> cells = split(row, ',');
    const bool start = cells[0] == "start";
    if ((!start && cells[0] != "stop") || cells.size() != (start ? 3 : 2) || trim(cells[1]).empty())
      return add(Errc::parse, where, fmt::format("{} is not an event of a job", quote(row)),
                 "write start,JOB,HOSTS or stop,JOB");
    JobEvent event{.kind = start ? JobEvent::Kind::start : JobEvent::Kind::stop,
                   .job = std::string(trim(cells[1])),
                   .where = where};
    if (start) {
      const auto hosts = parse_count({cells[2], where});
      if (!hosts) return errors_.push_back(hosts.error());
      if (*hosts < 1 || *hosts > job_hosts_max)
        return add(Errc::value, where, fmt::format("a job of {} hosts", *hosts),
                   fmt::format("ask for 1 to {}", job_hosts_max));
      event.hosts = static_cast<std::uint32_t>(*hosts);
      const auto [it, is_new] = running_.emplace(event.job, where);
      if (!is_new)
        return add(
            Errc::value, where,
            fmt::format("job {} starts, but runs since {}", quote(event.job), it->second.text()),
            "stop it first, or give each job a name of its own");
    } else if (running_.erase(event.job) == 0) {
      return add(Errc::value, where,
                 fmt::format("job {} stops, but does not run", quote(event.job)),
                 "remove the line, or start the job first");
    }
    events_.push_back(std::move(event));
  }
  void add(Errc code, const Where& where, std::string what, std::string hint) {
    errors_.push_back({code, where, std::move(what), std::move(hint), {}});
  }

  std::string file_;
  std::vector<JobEvent> events_;
  std::map<std::string, Where> running_;
  Errors errors_;
};

std::uint64_t distinct_racks(const FreeHosts& free, const std::vector<std::uint32_t>& hosts) {
  std::set<std::uint32_t> racks;
  for (const std::uint32_t host : hosts) racks.insert(free.rack_of(host));
  return racks.size();
}

}  // namespace

Result<std::vector<JobEvent>> parse_job_list(std::string_view text, const std::string& file) {
  WEFT_TRY_STATUS(check_text_size(text, file, job_list_bytes_max, "split the list"));
  return JobListReader(file).read(text);
}

ReplayResult replay(FreeHosts& free, std::span<const JobEvent> events, const HostRequest& request,
                    const std::function<std::int64_t()>& now_ns) {
  ReplayResult out;
  std::uint32_t zone_most = 1;
  for (std::uint32_t z = 0; z < free.zone_count(); ++z)
    zone_most = std::max(zone_most, free.zone_size(z));
  std::map<std::string, std::vector<std::uint32_t>> held;
  for (const JobEvent& event : events) {
    if (event.kind == JobEvent::Kind::stop) {
      for (const std::uint32_t host : held[event.job]) free.release(host);
      held.erase(event.job);
      continue;
    }
    HostRequest job = request;
    job.hosts = event.hosts;
    const std::int64_t begin = now_ns();
    auto choice = choose_hosts(free, job);
    out.decision_ns.push_back(now_ns() - begin);
    if (!choice) {
      ++out.refused;
      out.decisions.push_back({event.job, {}, {}, std::move(choice).error().what});
      continue;
    }
    ++out.started;
    if (event.hosts > 1) {
      ++out.wide_jobs;
      out.zones += choice->zones.size();
      out.zones_least += (event.hosts + zone_most - 1) / zone_most;
      out.racks += distinct_racks(free, choice->hosts);
      out.racks_least += (event.hosts + free.rack_size_max() - 1) / free.rack_size_max();
    }
    held[event.job] = std::move(choice->hosts);
    out.decisions.push_back({event.job, std::move(choice->zones), std::move(choice->why), {}});
  }
  std::ranges::sort(out.decision_ns);
  return out;
}

}  // namespace weft::plan::place
