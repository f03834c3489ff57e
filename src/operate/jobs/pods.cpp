#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <tuple>

#include "base/json_line.hpp"
#include "operate/jobs/running.hpp"

namespace weft::operate::jobs {
namespace {

// Labels by which controllers mark the pods of a job. Sources: the documentation of JobSet,
// Kubeflow Trainer, LeaderWorkerSet, Volcano, KubeRay and of Kubernetes' own Jobs.
constexpr std::array<std::string_view, 7> job_labels{"jobset.sigs.k8s.io/jobset-name",
                                                     "training.kubeflow.org/job-name",
                                                     "leaderworkerset.sigs.k8s.io/name",
                                                     "volcano.sh/job-name",
                                                     "ray.io/cluster",
                                                     "batch.kubernetes.io/job-name",
                                                     "job-name"};
// And the number of a pod in it: of its group, where there are groups, and inside that.
constexpr std::array<std::string_view, 3> group_labels{"jobset.sigs.k8s.io/job-global-index",
                                                       "jobset.sigs.k8s.io/job-index",
                                                       "leaderworkerset.sigs.k8s.io/group-index"};
constexpr std::array<std::string_view, 4> index_labels{
    "batch.kubernetes.io/job-completion-index", "training.kubeflow.org/replica-index",
    "leaderworkerset.sigs.k8s.io/worker-index", "volcano.sh/task-index"};

bool asks_for(JsonNode spec, std::span<const std::string> resources) {
  const JsonNode containers = spec.member("containers");
  for (std::size_t i = 0; i < containers.size(); ++i) {
    const JsonNode wants = containers.item(i).member("resources");
    for (const std::string& resource : resources)
      for (const char* kind : {"limits", "requests"})
        if (const std::string count = text_of(wants.member(kind), resource);
            !count.empty() && count != "0")
          return true;
  }
  return false;
}

std::string job_of(JsonNode metadata) {
  const JsonNode labels = metadata.member("labels");
  for (const std::string_view label : job_labels)
    if (std::string name = text_of(labels, label); !name.empty()) return name;
  const JsonNode owners = metadata.member("ownerReferences");
  for (std::size_t i = 0; i < owners.size(); ++i)
    if (std::string name = text_of(owners.item(i), "name"); !name.empty()) return name;
  return text_of(metadata, "name");
}

// The first of the labels that is a number, whether a label or an annotation.
std::int64_t number_of(JsonNode metadata, std::span<const std::string_view> labels) {
  for (const std::string_view label : labels)
    for (const char* where : {"labels", "annotations"}) {
      const std::string text = text_of(metadata.member(where), label);
      std::int64_t value = 0;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
      if (!text.empty() && error == std::errc{} && end == text.data() + text.size()) return value;
    }
  return INT64_MAX;
}

struct Pod {
  std::int64_t group, index;
  std::string name, node;
  std::optional<Timestamp> since;
};

}  // namespace

Result<std::vector<RunningJob>> read_pods(std::string_view json, const NodeNames& names,
                                          std::span<const std::string> resources,
                                          const std::string& file) {
  WEFT_TRY(const JsonLine list, JsonLine::parse(json, {file, 0, 0}));
  const JsonNode items = list.node().member("items");
  if (!items.is_list())
    return fail(Errc::parse, {file, 0, 0}, "no list \"items\"",
                "print the pods with kubectl get pods --output=json");
  std::map<std::pair<std::string, std::string>, std::vector<Pod>> jobs;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const JsonNode pod = items.item(i), metadata = pod.member("metadata");
    const JsonNode spec = pod.member("spec"), status = pod.member("status");
    const std::string node = text_of(spec, "nodeName");
    if (text_of(status, "phase") != "Running" || node.empty() || !asks_for(spec, resources))
      continue;
    const auto since = parse_timestamp({text_of(status, "startTime"), {file, 0, 0}});
    jobs[{text_of(metadata, "namespace"), job_of(metadata)}].push_back(
        {number_of(metadata, group_labels), number_of(metadata, index_labels),
         text_of(metadata, "name"), node, since ? std::optional(*since) : std::nullopt});
  }
  std::vector<RunningJob> out;
  for (auto& [key, pods] : jobs) {
    std::ranges::sort(pods, {}, [](const Pod& p) { return std::tie(p.group, p.index, p.name); });
    RunningJob job{.id = fmt::format("{}/{}", key.first, key.second),
                   .name = key.second,
                   .user = key.first,
                   .since = {},
                   .hosts = {},
                   .strangers = {}};
    for (const Pod& pod : pods) {
      names.add(job, pod.node);
      if (pod.since && (!job.since || pod.since->ns < job.since->ns)) job.since = pod.since;
    }
    out.push_back(std::move(job));
  }
  return out;
}

}  // namespace weft::operate::jobs
