#include "plan/place/host_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/csv.hpp"
#include "model/formats/hostlist.hpp"

namespace weft::plan::place {

HostNames::HostNames(const model::Fabric& fabric) : fabric_(fabric) {
  for (const model::NodeId host : fabric.hosts()) {
    const std::string given = fabric.name(host);
    std::string name = given;
    std::erase(name, ':');
    const auto number = static_cast<std::uint32_t>(names_.size());
    number_.emplace(given, number);
    number_.emplace(name, number);
    names_.push_back(std::move(name));
  }
}

std::optional<std::uint32_t> HostNames::find(std::string_view name) const {
  const auto found = number_.find(name);
  return found == number_.end() ? std::nullopt : std::optional(found->second);
}

Result<std::vector<std::uint32_t>> HostNames::read(const Token& list) const {
  if (trim(list.text).empty()) return std::vector<std::uint32_t>{};
  WEFT_TRY(const std::vector<std::string> names,
           model::expand_hostlist(list, names_.size() + fabric_.scopes().size()));
  std::vector<std::uint32_t> out;
  Errors errors;
  for (const std::string& name : names) {
    if (const auto found = number_.find(name); found != number_.end()) {
      out.push_back(found->second);
    } else if (const auto scope = fabric_.find_scope({name, list.where})) {
      const model::ScopeKind kind = fabric_.scopes()[*scope].kind;
      for (std::uint32_t h = 0; h < names_.size(); ++h)
        if (fabric_.enclosing(fabric_.hosts()[h], kind) == *scope) out.push_back(h);
    } else if (errors.size() < errors_max) {
      errors.push_back({Errc::unknown,
                        list.where,
                        fmt::format("unknown host {}{}", quote(name), did_you_mean(name, names_)),
                        "name hosts, racks or pods of the fabric: host[0-3], rack:7",
                        {}});
    }
  }
  if (!errors.empty()) return std::unexpected(combine(std::move(errors)));
  return out;
}

Result<HostNames::Feeds> HostNames::read_feeds(std::string_view text,
                                               const std::string& file) const {
  constexpr std::uint32_t none = UINT32_MAX;
  CsvReader csv(text, file);
  const std::array<std::string, 2> columns{"name", "feed"};
  WEFT_TRY_STATUS(csv.header(columns, {}));
  Feeds out{.of = std::vector<std::uint32_t>(names_.size(), none), .names = {}};
  Errors errors;
  while (csv.next() && errors.size() < errors_max) {
    const std::string feed(csv.cell(1).text);
    const auto hosts = read(csv.cell(0));
    if (!hosts) {
      errors.push_back(hosts.error());
      continue;
    }
    auto number =
        static_cast<std::uint32_t>(std::ranges::find(out.names, feed) - out.names.begin());
    if (number == out.names.size()) out.names.push_back(feed);
    for (const std::uint32_t host : *hosts) {
      if (out.of[host] != none && out.of[host] != number)
        errors.push_back({Errc::value,
                          csv.where(),
                          fmt::format("{} is on feed {} and on feed {}", names_[host],
                                      quote(out.names[out.of[host]]), quote(feed)),
                          "give every host one feed",
                          {}});
      out.of[host] = number;
    }
  }
  if (csv.error() != nullptr) errors.push_back(*csv.error());
  if (errors.empty())
    if (const auto without = std::ranges::find(out.of, none); without != out.of.end())
      errors.push_back({Errc::value,
                        {file, 0, 0},
                        fmt::format("{} has no feed",
                                    names_[static_cast<std::size_t>(without - out.of.begin())]),
                        "name every host, or its rack or pod",
                        {}});
  if (!errors.empty()) return std::unexpected(combine(std::move(errors)));
  return out;
}

}  // namespace weft::plan::place
