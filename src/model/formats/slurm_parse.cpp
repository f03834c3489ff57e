// topology.conf as text into a checked tree of switches.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text.hpp"
#include "model/formats/hostlist.hpp"
#include "model/formats/slurm.hpp"

namespace weft::model {
namespace {

struct KeyValue {
  std::string key;  // lower case
  std::string_view value;
  Where key_where, value_where;
};

// Cuts the text into lines of "Key=Value" settings: comments, blank lines, "\" at a line's end.
class SettingLines {
 public:
  SettingLines(std::string_view text, const std::string& file, Errors& errors)
      : text_(text), file_(file), errors_(errors) {}

  // The next line with settings; empty at the end of the text.
  std::vector<KeyValue> next() {
    std::vector<KeyValue> settings;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '\n') {
        new_line();
        if (!settings.empty()) break;
      } else if (c == '\\' && is_line_end(at_ + 1)) {
        at_ = text_.find('\n', at_);
        if (at_ == text_.npos) at_ = text_.size();
        if (at_ < text_.size()) new_line();
      } else if (c == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (is_blank(c)) {
        ++at_;
      } else {
        take_setting(settings);
      }
    }
    return settings;
  }

 private:
  static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }
  bool is_line_end(std::size_t i) const {
    while (i < text_.size() && is_blank(text_[i])) ++i;
    return i >= text_.size() || text_[i] == '\n';
  }
  void new_line() {
    line_begin_ = ++at_;
    ++line_;
  }
  Where where(std::size_t offset) const {
    return {file_, line_, static_cast<std::uint32_t>(offset - line_begin_ + 1)};
  }
  void take_setting(std::vector<KeyValue>& settings) {
    const std::size_t begin = at_;
    while (at_ < text_.size() && !is_blank(text_[at_]) && text_[at_] != '\n' && text_[at_] != '#')
      ++at_;
    const std::string_view word = text_.substr(begin, at_ - begin);
    const std::size_t equals = word.find('=');
    if (equals == word.npos) {
      errors_.push_back({Errc::parse,
                         where(begin),
                         fmt::format("\"{}\" is not Key=Value", word.substr(0, 40)),
                         lower_case(word) == "include" ? "copy the included lines into this file"
                                                       : "write \"SwitchName=s0 Nodes=n[0-15]\"",
                         {}});
      return;
    }
    settings.push_back({lower_case(word.substr(0, equals)), word.substr(equals + 1), where(begin),
                        where(begin + equals + 1)});
  }

  std::string_view text_;
  const std::string& file_;
  Errors& errors_;
  std::size_t at_ = 0;
  std::size_t line_begin_ = 0;
  std::uint32_t line_ = 1;
};

class TreeReader {
 public:
  TreeReader(std::string_view text, const std::string& file, std::size_t node_count_max)
      : text_(text), file_(file), names_left_(node_count_max) {}

  Result<SlurmTree> read() {
    SettingLines lines(text_, file_, errors_);
    for (auto line = lines.next(); !line.empty(); line = lines.next()) {
      if (errors_.size() >= errors_max) break;
      read_switch(line);
    }
    if (tree_.switches.empty() && errors_.empty())
      error(Errc::parse, {file_, 1, 1}, "the file has no switches",
            "write lines such as \"SwitchName=s0 Nodes=n[0-15]\"");
    if (errors_.empty()) join_blocks();
    if (errors_.empty()) link_children();
    if (errors_.empty()) find_heights();
    if (!errors_.empty()) return std::unexpected(combine(std::move(errors_)));
    return std::move(tree_);
  }

 private:
  void error(Errc code, const Where& where, std::string what, std::string hint) {
    if (errors_.size() < errors_max)
      errors_.push_back({code, where, std::move(what), std::move(hint), {}});
  }

  std::vector<std::string> expand(const KeyValue& setting) {
    auto names = expand_hostlist({setting.value, setting.value_where}, names_left_);
    if (!names) {
      errors_.push_back(std::move(names).error());
      return {};
    }
    names_left_ -= names->size();
    for (const std::string& name : *names)
      if (auto status = check_name({name, setting.value_where}); !status) {
        errors_.push_back(std::move(status).error());
        return {};
      }
    return *std::move(names);
  }

  const KeyValue* take(const std::vector<KeyValue>& line, std::string_view key) {
    const KeyValue* found = nullptr;
    for (const KeyValue& setting : line) {
      if (setting.key != key) continue;
      if (found != nullptr)
        error(Errc::parse, setting.key_where, fmt::format("duplicate \"{}\" in the line", key),
              "remove one of them");
      found = &setting;
    }
    return found;
  }

  void check_keys(const std::vector<KeyValue>& line) {
    const std::vector<std::string> known{"switchname", "nodes",     "switches",
                                         "linkspeed",  "blockname", "blocksizes"};
    for (const KeyValue& setting : line) {
      if (std::ranges::find(known, setting.key) != known.end()) continue;
      error(Errc::unknown, setting.key_where,
            fmt::format("unknown key \"{}\"{}", setting.key.substr(0, 40),
                        did_you_mean(setting.key, known)),
            "known keys: SwitchName, Nodes, Switches, LinkSpeed; BlockName, BlockSizes");
    }
  }

  // Slurm's own order: the size of a block, then whole multiples of it.
  void read_block_sizes(const std::vector<KeyValue>& line) {
    const KeyValue& sizes = line.front();
    std::int64_t last = 1;
    for (const std::string_view text : split(sizes.value, ',')) {
      const auto size = parse_count({text, sizes.value_where});
      if (!size) return errors_.push_back(size.error());
      if (*size < last || *size % last != 0)
        return error(Errc::value, sizes.value_where,
                     fmt::format("block size {} is not a multiple of {}", *size, last),
                     "list sizes from the smallest on, each a multiple of the one before");
      last = *size;
    }
    if (line.size() > 1)
      error(Errc::parse, line[1].key_where, "BlockSizes shares its line with other keys",
            "give it a line of its own");
  }

  // A block is a leaf; what joins blocks is not in the file, and becomes one switch.
  void join_blocks() {
    if (blocks_ == 0) return;
    if (blocks_ != tree_.switches.size())
      return error(Errc::value, {file_, 1, 1}, "the file has both SwitchName= and BlockName= lines",
                   "describe either a tree or blocks");
    if (blocks_ == 1) return;
    std::string name = "blocks";
    while (by_name_.contains(name) || leaf_of_.contains(name)) name += "_";
    std::vector<std::string> names;
    for (const SlurmTree::Switch& block : tree_.switches) names.push_back(block.name);
    SlurmTree::Switch root;
    root.name = name;
    root.where = {file_, 1, 1};
    by_name_.emplace(std::move(name), tree_.switches.size());
    child_names_.push_back(std::move(names));
    child_where_.push_back(root.where);
    tree_.switches.push_back(std::move(root));
  }

  void read_switch(const std::vector<KeyValue>& line) {
    check_keys(line);
    if (line.front().key == "blocksizes") return read_block_sizes(line);
    const KeyValue* block = take(line, "blockname");
    const KeyValue* name = block != nullptr ? block : take(line, "switchname");
    blocks_ += block != nullptr ? 1 : 0;
    const KeyValue* nodes = take(line, "nodes");
    const KeyValue* switches = take(line, "switches");
    const KeyValue* speed = take(line, "linkspeed");
    if (name == nullptr)
      return error(Errc::parse, line.front().key_where, "the line has no SwitchName",
                   "begin the line with \"SwitchName=...\"");
    if ((nodes == nullptr) == (switches == nullptr))
      return error(Errc::parse, name->value_where,
                   fmt::format("switch \"{}\" has {}", name->value,
                               nodes == nullptr ? "no children" : "both nodes and switches"),
                   "give either Nodes= or Switches=");
    SlurmTree::Switch made;
    made.name = name->value;
    made.where = name->value_where;
    if (speed != nullptr) made.link_speed = speed->value;
    if (auto status = check_name({made.name, made.where}); !status)
      errors_.push_back(std::move(status).error());
    if (!by_name_.emplace(made.name, tree_.switches.size()).second)
      error(Errc::parse, made.where, fmt::format("duplicate switch \"{}\"", made.name),
            fmt::format("the first is on line {}; rename one of them",
                        tree_.switches[by_name_[made.name]].where.line));
    if (nodes != nullptr) made.nodes = expand(*nodes);
    for (const std::string& node : made.nodes)
      if (const auto [it, is_new] = leaf_of_.emplace(node, tree_.switches.size()); !is_new)
        error(Errc::value, nodes->value_where,
              fmt::format("node \"{}\" is under this switch and under {}", node,
                          it->second == tree_.switches.size() ? "this switch again"
                                                              : tree_.switches[it->second].name),
              "put each node under one leaf switch");
    child_names_.push_back(switches != nullptr ? expand(*switches) : std::vector<std::string>{});
    child_where_.push_back(switches != nullptr ? switches->value_where : made.where);
    tree_.switches.push_back(std::move(made));
  }

  void link_children() {
    for (std::uint32_t i = 0; i < tree_.switches.size(); ++i) {
      for (const std::string& name : child_names_[i]) {
        const auto child = by_name_.find(name);
        if (child == by_name_.end()) {
          error(Errc::unknown, child_where_[i],
                fmt::format("switch \"{}\" is not defined{}", name, near(name)),
                fmt::format("add \"SwitchName={} ...\"", name));
          continue;
        }
        auto& parents = tree_.switches[child->second].parents;
        if (!parents.empty() && parents.back() == i)
          error(Errc::value, child_where_[i],
                fmt::format("switch \"{}\" is listed as a child twice", name), "list it once");
        parents.push_back(i);
        tree_.switches[i].children.push_back(static_cast<std::uint32_t>(child->second));
      }
      if (leaf_of_.contains(tree_.switches[i].name))
        error(Errc::value, tree_.switches[i].where,
              fmt::format("\"{}\" is both a switch and a node", tree_.switches[i].name),
              "rename one of them");
    }
  }
  std::string near(std::string_view name) const {
    constexpr std::size_t candidates_max = 2'000;  // bounds the search
    std::vector<std::string> names;
    for (const SlurmTree::Switch& s : tree_.switches)
      if (names.size() < candidates_max) names.push_back(s.name);
    return did_you_mean(name, names);
  }

  // From the leaves up, each switch after its last child; who is never reached is in a cycle.
  void find_heights() {
    std::vector<std::size_t> waiting;
    std::vector<std::uint32_t> ready;
    for (std::uint32_t i = 0; i < tree_.switches.size(); ++i) {
      waiting.push_back(tree_.switches[i].children.size());
      if (waiting.back() == 0) ready.push_back(i);
    }
    for (std::size_t at = 0; at < ready.size(); ++at) {
      const SlurmTree::Switch& done = tree_.switches[ready[at]];
      for (const std::uint32_t parent : done.parents) {
        std::uint32_t& height = tree_.switches[parent].height;
        height = std::max(height, done.height + 1);
        if (--waiting[parent] == 0) ready.push_back(parent);
      }
    }
    for (std::size_t i = 0; i < waiting.size(); ++i)
      if (waiting[i] != 0)
        error(Errc::infeasible, tree_.switches[i].where,
              fmt::format("switch \"{}\" is its own ancestor, or the ancestor of one that is",
                          tree_.switches[i].name),
              "remove the \"Switches=\" entry that closes the cycle");
  }

  std::string_view text_;
  const std::string& file_;
  std::size_t names_left_;
  std::size_t blocks_ = 0;
  Errors errors_;
  SlurmTree tree_;
  std::map<std::string, std::size_t> by_name_, leaf_of_;
  std::vector<std::vector<std::string>> child_names_;  // by switch
  std::vector<Where> child_where_;
};

}  // namespace

Result<SlurmTree> parse_slurm_topology(std::string_view text, const std::string& file,
                                       std::size_t node_count_max) {
  WEFT_TRY_STATUS(check_text_size(text, file, 64 << 20, "import only part of the cluster"));
  return TreeReader(text, file, node_count_max).read();
}

}  // namespace weft::model
