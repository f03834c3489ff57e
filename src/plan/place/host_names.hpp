// Hosts by name: lists of free and busy ones, power feeds.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/text.hpp"
#include "model/fabric/fabric.hpp"

namespace weft::plan::place {

class HostNames {
 public:
  explicit HostNames(const model::Fabric& fabric);

  // As schedulers write it: "host:3" is host3.
  const std::string& name(std::uint32_t host) const { return names_[host]; }
  // In either spelling.
  std::optional<std::uint32_t> find(std::string_view name) const;
  // Host lists such as "host[0-3,7],pod:1": names of hosts, as the fabric or a scheduler writes
  // them, and of scopes, which stand for all hosts inside. In the order of the list.
  // Fails with every name that is unknown.
  Result<std::vector<std::uint32_t>> read(const Token& list) const;
  // CSV with the columns name (of a host or scope) and feed: the feed of each host, numbered in
  // order of first appearance. Fails with every host that has none, or two.
  struct Feeds {
    std::vector<std::uint32_t> of;  // by host
    std::vector<std::string> names;
  };
  Result<Feeds> read_feeds(std::string_view csv, const std::string& file) const;

 private:
  const model::Fabric& fabric_;
  std::vector<std::string> names_;
  std::map<std::string, std::uint32_t, std::less<>> number_;  // both spellings
};

}  // namespace weft::plan::place
