// The scopes of a fabric as topology.conf.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>

#include "model/formats/hostlist.hpp"
#include "model/formats/place_tree.hpp"
#include "model/formats/slurm.hpp"

namespace weft::model {
namespace {

// Names that Slurm takes: what stands in a host list without brackets.
std::string slurm_name(std::string_view name) {
  std::string out;
  for (const char c : name)
    if (c != ':') out += c;
  return out;
}

class TreeWriter {
 public:
  explicit TreeWriter(const Fabric& fabric)
      : fabric_(fabric), tree_(fabric), hosts_in_(fabric.scopes().size()), open_(tree_.roots) {}

  // A block for each innermost place.
  Result<std::string> write_blocks() {
    WEFT_TRY_STATUS(read_hosts());
    std::size_t smallest = SIZE_MAX;
    for (std::size_t i = 0; i < hosts_in_.size(); ++i) {
      const ScopeId scope{i};
      if (hosts_in_[scope].empty()) continue;
      WEFT_TRY(const std::string name, claim(fabric_.name(scope)));
      out_ += fmt::format("BlockName={} Nodes={}\n", name, compress_hostlist(hosts_in_[scope]));
      smallest = std::min(smallest, hosts_in_[scope].size());
    }
    return out_ + fmt::format("BlockSizes={}\n", smallest);
  }

  Result<std::string> write() {
    WEFT_TRY_STATUS(read_hosts());
    // From each root down, every place before what is inside it.
    while (!open_.empty()) {
      const ScopeId scope = open_.back();
      open_.pop_back();
      WEFT_TRY_STATUS(write_scope(scope));
      const std::vector<ScopeId>& inside = tree_.inside[scope];
      open_.insert(open_.end(), inside.begin(), inside.end());
    }
    return std::move(out_);
  }

 private:
  Status read_hosts() {
    if (fabric_.hosts().empty())
      return fail(Errc::unsupported, {}, "the fabric has no hosts for Slurm to run jobs on",
                  "export a fabric with hosts");
    for (std::size_t i = 0; i < hosts_in_.size(); ++i)
      for (const NodeId host : tree_.hosts[ScopeId{i}]) {
        WEFT_TRY(std::string name, claim(fabric_.name(host)));
        hosts_in_[ScopeId{i}].push_back(std::move(name));
      }
    return {};
  }
  Result<std::string> claim(const std::string& name) {
    std::string made = slurm_name(name);
    const auto odd = [](char c) {
      return !std::isalnum(static_cast<unsigned char>(c)) && !std::string_view("_.-").contains(c);
    };
    if (std::ranges::any_of(made, odd))
      return fail(Errc::unsupported, {},
                  fmt::format("\"{}\" contains a character that Slurm names do not allow", name),
                  "rename it using letters, digits, \"_\", \".\" and \"-\"");
    const auto [it, is_new] = taken_.emplace(made, name);
    if (!is_new)
      return fail(Errc::unsupported, {},
                  fmt::format("\"{}\" and \"{}\" would both be called {}", it->second, name, made),
                  "rename one of them");
    return made;
  }
  Status write_scope(ScopeId scope) {
    const std::vector<std::string>& hosts = hosts_in_[scope];
    const std::vector<ScopeId>& scopes = tree_.inside[scope];
    WEFT_TRY(const std::string name, claim(fabric_.name(scope)));
    if (scopes.empty()) {
      out_ += fmt::format("SwitchName={} Nodes={}\n", name, compress_hostlist(hosts));
      return {};
    }
    std::vector<std::string> children;
    if (!hosts.empty()) {
      WEFT_TRY(std::string own, claim(fabric_.name(scope) + "-hosts"));
      out_ += fmt::format("SwitchName={} Nodes={}\n", own, compress_hostlist(hosts));
      children.push_back(std::move(own));
    }
    for (std::size_t i = scopes.size(); i-- > 0;)
      children.push_back(slurm_name(fabric_.name(scopes[i])));
    out_ += fmt::format("SwitchName={} Switches={}\n", name, compress_hostlist(children));
    return {};
  }

  const Fabric& fabric_;
  PlaceTree tree_;
  Column<ScopeId, std::vector<std::string>> hosts_in_;
  std::vector<ScopeId> open_;                 // still to be written, the next one last
  std::map<std::string, std::string> taken_;  // Slurm name -> ours
  std::string out_;
};

}  // namespace

Result<std::string> to_slurm_topology(const Fabric& fabric) { return TreeWriter(fabric).write(); }

Result<std::string> to_slurm_blocks(const Fabric& fabric) {
  return TreeWriter(fabric).write_blocks();
}

}  // namespace weft::model
