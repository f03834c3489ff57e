#include "operate/jobs/running.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/csv.hpp"
#include "model/formats/hostlist.hpp"

namespace weft::operate::jobs {

Status NodeNames::add_csv(std::string_view text, const std::string& file) {
  CsvReader csv(text, file);
  const std::array<std::string, 2> columns{"node", "host"};
  WEFT_TRY_STATUS(csv.header(columns, {}));
  Errors errors;
  while (csv.next() && errors.size() < errors_max) {
    const auto host = hosts_.find(csv.cell(1).text);
    const std::string node(csv.cell(0).text);
    if (!host)
      errors.push_back({Errc::unknown,
                        csv.cell(1).where,
                        fmt::format("unknown host {}", quote(csv.cell(1).text)),
                        "name a host of the fabric: host:3",
                        {}});
    else if (!called_.emplace(node, *host).second)
      errors.push_back({Errc::value,
                        csv.where(),
                        fmt::format("node {} is named twice", quote(node)),
                        "name every node once",
                        {}});
  }
  if (csv.error() != nullptr) errors.push_back(*csv.error());
  if (!errors.empty()) return std::unexpected(combine(std::move(errors)));
  return {};
}

std::optional<std::uint32_t> NodeNames::find(std::string_view node) const {
  for (const std::string_view name : {node, node.substr(0, node.find('.'))}) {
    if (const auto found = called_.find(name); found != called_.end()) return found->second;
    if (const auto host = hosts_.find(name)) return host;
  }
  return std::nullopt;
}

void NodeNames::add(RunningJob& job, const std::string& node) const {
  const auto host = find(node);
  if (!host)
    job.strangers.push_back(node);
  else if (std::ranges::find(job.hosts, *host) == job.hosts.end())
    job.hosts.push_back(*host);
}

namespace {

JsonList racks_of(const RunningJob& job, const model::Fabric& fabric) {
  std::vector<model::ScopeId> order;
  std::map<model::ScopeId, std::vector<model::NodeId>> hosts;
  for (const std::uint32_t host : job.hosts) {
    const model::NodeId node = fabric.hosts()[host];
    const model::ScopeId rack = fabric.enclosing(node, model::ScopeKind::rack);
    std::vector<model::NodeId>& here = hosts[rack];
    if (here.empty()) order.push_back(rack);
    here.push_back(node);
  }
  JsonList out;
  for (const model::ScopeId rack : order) {
    std::vector<std::string> parts;
    for (const model::NodeId host : hosts[rack]) parts.push_back(fabric.name(host));
    for (const model::NodeId host : hosts[rack])
      for (const model::NodeId nic : fabric.nics_of(host)) parts.push_back(fabric.name(nic));
    out.add(JsonObject()
                .add("rack", rack.valid() ? fabric.name(rack) : "")
                .add("host_count", hosts[rack].size())
                .add("parts", model::compress_hostlist(parts)));
  }
  return out;
}

}  // namespace

JsonObject to_json(const RunningJob& job, const NodeNames& names) {
  std::vector<std::string> hosts;
  for (const std::uint32_t host : job.hosts) hosts.push_back(names.name(host));
  JsonObject out;
  out.add("id", job.id)
      .add("name", job.name)
      .add("user", job.user)
      .add("since", job.since)
      .add("host_count", job.hosts.size())
      .add("hosts", model::compress_hostlist(hosts))
      .add("racks", racks_of(job, names.fabric()));
  if (!job.strangers.empty()) out.add("unknown_nodes", model::compress_hostlist(job.strangers));
  return out;
}

}  // namespace weft::operate::jobs
