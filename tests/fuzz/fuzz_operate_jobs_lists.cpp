// read_squeue, read_pods, names of nodes: no input crashes, what is refused is told, and the hosts
// of every job are hosts of the fabric, each once.
#include <set>

#include "fuzz_fabric.hpp"
#include "operate/jobs/running.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace jobs = weft::operate::jobs;
  static const auto fabric = weft::fuzz::make_fabric("{generator: ai_zone, racks: 2, spines: 2}");
  jobs::NodeNames names(fabric);
  const std::string_view text = weft::fuzz::text_of(data, size);
  static const std::vector<std::string> resources{"nvidia.com/gpu"};
  if (const auto read = names.add_csv(text, "nodes.csv"); !read)
    WEFT_CHECK(!read.error().what.empty());
  for (const bool is_squeue : {true, false}) {
    const auto read = is_squeue ? jobs::read_squeue(text, names, "squeue")
                                : jobs::read_pods(text, names, resources, "pods");
    if (!read) {
      WEFT_CHECK(!read.error().what.empty());
      continue;
    }
    for (const jobs::RunningJob& job : *read) {
      WEFT_CHECK(!job.id.empty());
      for (const std::uint32_t host : job.hosts) WEFT_CHECK(host < fabric.hosts().size());
      WEFT_CHECK(std::set(job.hosts.begin(), job.hosts.end()).size() == job.hosts.size());
      WEFT_CHECK(!jobs::to_json(job, names).text().empty());
    }
  }
  return 0;
}
