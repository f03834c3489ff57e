// A list of jobs that start and stop, and what placing them one after another uses.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "plan/place/choose.hpp"

namespace weft::plan::place {

struct JobEvent {
  enum class Kind : std::uint8_t { start, stop } kind = Kind::start;
  std::string job;
  std::uint32_t hosts = 0;  // start only
  Where where;
};

// Lines `start,JOB,HOSTS` and `stop,JOB`, in order of time; blank lines and those that begin with
// '#' are skipped.
// Fails with every error found: other lines, a count that is none, a job that starts while it runs
// or stops while it does not. Bounds: 64 MiB of text.
Result<std::vector<JobEvent>> parse_job_list(std::string_view text, const std::string& file);

struct ReplayResult {
  std::uint64_t started = 0, refused = 0;  // refused: too few hosts were free, or the constraint
  // Of the started jobs of more than one host. The least is ceil(hosts / the largest zone or rack),
  // as if nothing else ran.
  std::uint64_t wide_jobs = 0, zones = 0, zones_least = 0, racks = 0, racks_least = 0;
  std::vector<std::int64_t> decision_ns;  // of every start, ascending
  struct Decision {
    std::string job;
    std::vector<HostChoice::Share> zones;
    std::vector<std::string> why;
    std::string refused;  // the reason
  };
  std::vector<Decision> decisions;  // in order of start
};

// `request` has what holds for all jobs; `now_ns` times decisions, their reasons among them.
ReplayResult replay(FreeHosts& free, std::span<const JobEvent> events, const HostRequest& request,
                    const std::function<std::int64_t()>& now_ns);

}  // namespace weft::plan::place
