#include "base/config.hpp"

#include <fmt/format.h>
#include <yaml-cpp/emitter.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <sstream>

#include "base/check.hpp"
#include "base/file.hpp"

namespace weft::inline base {
namespace {

constexpr std::size_t text_bytes_max = std::size_t{64} << 20;
constexpr std::size_t depth_max = 100;
constexpr std::size_t cost_max = 1'000'000;
constexpr std::size_t bytes_per_cost = 64;

std::string too_many() { return fmt::format("more than {} values", cost_max); }

// What YAML reads as null when it is not quoted.
bool is_null(std::string_view text) {
  return text == "~" || text == "null" || text == "Null" || text == "NULL";
}

// Leaves the parser's callbacks; never crosses parse_yaml.
struct Refused {
  Error error;
};

// Builds the tree from yaml-cpp's events, which carry positions and come in one pass.
class TreeBuilder final : public YAML::EventHandler {
 public:
  TreeBuilder(std::string file, YamlTags tags) : file_(std::move(file)), tags_(tags) {}

  Result<Config> take() {
    if (lonely_) return std::unexpected(*std::move(lonely_));
    if (root_.kind == Config::Kind::null) root_.where = {file_, 1, 1};
    return std::move(root_);
  }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ > 1)
      refuse(mark, "second document in the file", "put one document in each file");
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    add({Config::Kind::null, at(mark), {}, {}, {}}, anchor);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end())
      refuse(mark, "alias refers to a value that is not complete yet", "write the value in full");
    charge(found->second.cost, at(mark));
    Config copy = found->second.value;
    copy.where = at(mark);
    place(std::move(copy));
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    check_tag(mark, tag);
    // "~" and "null" without quotes are nulls; quoted ones carry the tag "!".
    if (tag.size() <= 1 && tag != "!" && is_null(value))
      return add({Config::Kind::null, at(mark), {}, {}, {}}, anchor);
    if (find_not_text(value) != std::string::npos)
      refuse(mark, "an escape sequence yields a control character or half a character",
             "write the text without the escape");
    add(Config::scalar(value, at(mark)), anchor);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    check_tag(mark, tag);
    open(Config::list(at(mark)), anchor, mark);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    Config map = Config::map(at(mark));
    map.is_replacement = tag == "!replace" && tags_ == YamlTags::replace;
    if (!map.is_replacement) check_tag(mark, tag);
    open(std::move(map), anchor, mark);
  }
  void OnMapEnd() override { close(); }

 private:
  struct Open {
    Config value;
    YAML::anchor_t anchor;
    std::size_t cost_before;
    bool wants_key = true;
    std::string key;
    Where key_where;
    std::set<std::string, std::less<>> keys;
  };
  struct Anchored {
    Config value;
    std::size_t cost;
  };

  Where at(const YAML::Mark& mark) const {
    return {file_, static_cast<std::uint32_t>(mark.line + 1),
            static_cast<std::uint32_t>(mark.column + 1)};
  }
  [[noreturn]] void refuse(const YAML::Mark& mark, std::string what, std::string hint) const {
    throw Refused{{Errc::parse, at(mark), std::move(what), std::move(hint), {}}};
  }
  void check_tag(const YAML::Mark& mark, const std::string& tag) const {
    if (tag.size() > 1 && tag != "tag:yaml.org,2002:str")
      refuse(mark, fmt::format("tag {} has no meaning here", quote(tag)), "remove the tag");
  }

  void open(Config value, YAML::anchor_t anchor, const YAML::Mark& mark) {
    if (stack_.size() >= depth_max)
      refuse(mark, fmt::format("nested deeper than {} levels", depth_max), "flatten the input");
    charge(1, value.where);
    stack_.push_back({std::move(value), anchor, cost_ - 1, true, {}, {}, {}});
  }
  void close() {
    Open done = std::move(stack_.back());
    stack_.pop_back();
    if (done.anchor != YAML::NullAnchor) keep(done.anchor, done.value, cost_ - done.cost_before);
    place(std::move(done.value));
  }
  void add(Config value, YAML::anchor_t anchor) {
    const std::size_t cost = 1 + value.text.size() / bytes_per_cost;
    charge(cost, value.where);
    if (anchor != YAML::NullAnchor) keep(anchor, value, cost);
    place(std::move(value));
  }
  // Anchored values are copied, and nested anchors would copy their insides once per level.
  void keep(YAML::anchor_t anchor, const Config& value, std::size_t cost) {
    charge(cost, value.where);
    anchors_[anchor] = {value, cost};
  }
  // Called before the memory is used. A value costs 1, a long text one more per 64 bytes.
  void charge(std::size_t cost, const Where& where) {
    cost_ += cost;
    if (cost_ > cost_max)
      throw Refused{{Errc::parse, where, too_many(), "split the input, or use fewer aliases", {}}};
  }
  void place(Config value) {
    if (stack_.empty()) {
      root_ = std::move(value);
      return;
    }
    Open& parent = stack_.back();
    if (parent.value.kind == Config::Kind::list) {
      parent.value.items.push_back(std::move(value));
    } else if (parent.wants_key) {
      take_key(parent, value);
    } else {
      check_value(parent, value);
      parent.value.fields.push_back({std::move(parent.key), parent.key_where, std::move(value)});
      parent.wants_key = true;
    }
  }
  // yaml-cpp reads a lonely word inside a map as a key, with a null at the same place. Kept back,
  // as an unclosed bracket looks like that too and has a better message.
  void check_value(const Open& parent, Config& value) {
    if (value.kind != Config::Kind::null) return;
    const bool lonely =
        value.where.line == parent.key_where.line && value.where.column == parent.key_where.column;
    if (lonely && !lonely_)
      lonely_ = {Errc::parse,
                 value.where,
                 fmt::format("no value for {}", quote(parent.key)),
                 "write \"key: value\"",
                 {}};
    value.where = parent.key_where;  // the parser gives the place of what comes next
  }
  void take_key(Open& parent, const Config& key) const {
    if (key.kind != Config::Kind::scalar)
      throw Refused{{Errc::parse,
                     key.where,
                     "a key must be a plain string",
                     "quote it if it is meant as a string",
                     {}}};
    if (!parent.keys.insert(key.text).second)
      throw Refused{{Errc::parse,
                     key.where,
                     fmt::format("duplicate key {}", quote(key.text)),
                     "remove one of them",
                     {}}};
    parent.key = key.text;
    parent.key_where = key.where;
    parent.wants_key = false;
  }

  std::string file_;
  YamlTags tags_;
  Config root_;
  std::vector<Open> stack_;
  std::map<YAML::anchor_t, Anchored> anchors_;
  std::size_t cost_ = 0;
  int documents_ = 0;
  std::optional<Error> lonely_;
};

// yaml-cpp queues a token for every bracket and comma until the first bracket is closed, so their
// number is bounded before it starts. Those of quotes and comments count too: a million are no
// text.
Status check_shape(std::string_view text, const std::string& file) {
  std::size_t count = 0;
  std::uint32_t line = 1;
  std::size_t line_start = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\n') {
      ++line;
      line_start = i + 1;
    }
    if (c == '[' || c == '{' || c == ',') ++count;
    if (count > cost_max)
      return fail(Errc::parse, {file, line, static_cast<std::uint32_t>(i - line_start + 1)},
                  too_many(), "split the input");
  }
  return {};
}

// The parser takes the byte 4 for the end of the file, and mends broken UTF-8 without a word.
Status check_text(std::string_view text, const std::string& file) {
  const std::size_t at = find_not_text(text);
  if (at == std::string_view::npos) return {};
  const std::string_view before = text.substr(0, at);
  const std::size_t line_start = before.find_last_of('\n') + 1;
  return fail(Errc::parse,
              {file, static_cast<std::uint32_t>(1 + std::ranges::count(before, '\n')),
               static_cast<std::uint32_t>(1 + at - line_start)},
              fmt::format("byte {:#04x} is not text", static_cast<unsigned char>(text[at])),
              "save the file as UTF-8 without control characters");
}

// The end mark that parse_yaml appends stands behind the last line; users see that line's end.
Where place_of(const YAML::Mark& mark, std::string_view text, const std::string& file) {
  if (text.ends_with('\n')) text.remove_suffix(1);
  const auto line_count = static_cast<int>(1 + std::ranges::count(text, '\n'));
  if (mark.line < line_count)
    return {file, static_cast<std::uint32_t>(mark.line + 1),
            static_cast<std::uint32_t>(mark.column + 1)};
  const std::size_t last_line = text.size() - (text.find_last_of('\n') + 1);
  return {file, static_cast<std::uint32_t>(line_count), static_cast<std::uint32_t>(last_line + 1)};
}

std::size_t size_of(const Config& config) {
  std::size_t n = 1;
  for (const Config& item : config.items) n += size_of(item);
  for (const Config::Field& field : config.fields) n += size_of(field.value);
  return n;
}

void emit_text(YAML::Emitter& out, const std::string& text) {
  // The emitter would write these plain.
  const bool mark = text.starts_with("---") || text.starts_with("...");
  const bool returns = text.find('\r') != std::string::npos;
  if (text.empty() || is_null(text) || mark || returns) out << YAML::DoubleQuoted;
  out << text;
}

// YAML wants long keys marked, which between braces yaml-cpp writes so that nobody reads it.
bool has_long_key(const Config& config) {
  constexpr std::size_t long_key = 500;  // YAML: 1024, with quotes and escapes
  return std::ranges::any_of(config.items, has_long_key) ||
         std::ranges::any_of(config.fields, [](const Config::Field& field) {
           return field.key.size() > long_key || has_long_key(field.value);
         });
}

void emit(YAML::Emitter& out, const Config& config) {
  switch (config.kind) {
    case Config::Kind::null:
      out << YAML::Null;
      break;
    case Config::Kind::scalar:
      emit_text(out, config.text);
      break;
    case Config::Kind::list:
      if (size_of(config) <= 24 && !has_long_key(config)) out << YAML::Flow;
      out << YAML::BeginSeq;
      for (const Config& item : config.items) emit(out, item);
      out << YAML::EndSeq;
      break;
    case Config::Kind::map:
      if (size_of(config) <= 8 && !has_long_key(config)) out << YAML::Flow;
      out << YAML::BeginMap;
      for (const Config::Field& field : config.fields) {
        out << YAML::Key;
        emit_text(out, field.key);
        out << YAML::Value;
        emit(out, field.value);
      }
      out << YAML::EndMap;
      break;
  }
}

}  // namespace

const Config* Config::find(std::string_view key) const {
  const auto it = std::ranges::find(fields, key, &Field::key);
  return it == fields.end() ? nullptr : &it->value;
}

Config* Config::find(std::string_view key) {
  const auto it = std::ranges::find(fields, key, &Field::key);
  return it == fields.end() ? nullptr : &it->value;
}

Config& Config::at_or_add(std::string_view key) {
  if (kind == Kind::null) kind = Kind::map;
  if (Config* found = find(key)) return *found;
  fields.push_back({std::string(key), where, {}});
  return fields.back().value;
}

Config Config::scalar(std::string text, Where where) {
  return {Kind::scalar, std::move(where), std::move(text), {}, {}};
}
Config Config::map(Where where) { return {Kind::map, std::move(where), {}, {}, {}}; }
Config Config::list(Where where) { return {Kind::list, std::move(where), {}, {}, {}}; }

Result<Config> parse_yaml(std::string_view text, const std::string& file, YamlTags tags) {
  WEFT_TRY_STATUS(check_text_size(text, file, text_bytes_max, "split the input"));
  WEFT_TRY_STATUS(check_text(text, file));
  WEFT_TRY_STATUS(check_shape(text, file));
  TreeBuilder builder(file, tags);
  try {
    // The end mark makes yaml-cpp notice a quote that is never closed.
    std::istringstream in{std::string(text) + (text.ends_with('\n') ? "...\n" : "\n...\n")};
    YAML::Parser parser(in);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const Refused& refused) {
    return std::unexpected(refused.error);
  } catch (const YAML::Exception& e) {
    const Where where = place_of(e.mark, text, file);
    if (e.msg == YAML::ErrorMsg::DOC_IN_SCALAR)
      return fail(Errc::parse, where, "the file ends inside a quoted string", "close the quote");
    return fail(Errc::parse, where, "not valid YAML: " + e.msg,
                "check indentation, quotes and brackets there");
  }
  return builder.take();
}

Result<Config> load_yaml(const std::string& path, YamlTags tags) {
  WEFT_TRY(const std::string text, read_file(path, text_bytes_max));
  return parse_yaml(text, path, tags);
}

std::string to_yaml(const Config& config) {
  YAML::Emitter out;
  emit(out, config);
  return std::string(out.c_str()) + "\n";
}

namespace {

void end_replacement(Config& config) {
  config.is_replacement = false;
  for (Config& item : config.items) end_replacement(item);
  for (Config::Field& field : config.fields) end_replacement(field.value);
}

}  // namespace

void overlay(Config& base, const Config& over) {
  if (base.kind != Config::Kind::map || over.kind != Config::Kind::map || over.is_replacement) {
    base = over;
    end_replacement(base);
    return;
  }
  std::map<std::string, std::size_t, std::less<>> position;
  for (std::size_t i = 0; i < base.fields.size(); ++i) position.emplace(base.fields[i].key, i);
  std::set<std::string, std::less<>> deleted;
  for (const Config::Field& field : over.fields) {
    const auto old = position.find(field.key);
    if (field.value.kind == Config::Kind::null) {
      deleted.insert(field.key);
    } else if (old != position.end()) {
      overlay(base.fields[old->second].value, field.value);
    } else {  // onto nothing: what its nulls would remove is not there
      base.fields.push_back({field.key, field.where, Config::map(field.value.where)});
      overlay(base.fields.back().value, field.value);
    }
  }
  std::erase_if(base.fields, [&](const auto& field) { return deleted.contains(field.key); });
}

Config laid_over(std::string_view defaults, const Config& over) {
  auto whole = parse_yaml(defaults, "defaults");
  WEFT_CHECK(whole.has_value());
  if (over.kind != Config::Kind::null) overlay(*whole, over);
  return *std::move(whole);
}

Status set_path(Config& config, std::string_view path, const Config& value) {
  const std::vector<std::string_view> steps = split(path, '.');
  const bool removes = value.kind == Config::Kind::null;
  Config* at = &config;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const std::string_view step = steps[i];
    const bool is_last = i + 1 == steps.size();
    const auto wrong = [&](std::string what) {
      return fail(Errc::unknown, value.where, fmt::format("cannot set \"{}\": {}", path, what),
                  "name a key as section.key");
    };
    if (step.empty()) return wrong("empty name");
    if (at->kind == Config::Kind::list) {
      std::size_t index = 0;
      const auto [end, error] = std::from_chars(step.data(), step.data() + step.size(), index);
      if (error != std::errc{} || end != step.data() + step.size() || index >= at->items.size())
        return wrong(fmt::format("\"{}\" is not an index below {}", step, at->items.size()));
      if (removes && is_last)
        return fail(Errc::unsupported, value.where,
                    fmt::format("cannot remove \"{}\": it is an element of a list", path),
                    "set the whole list, without the element");
      at = &at->items[index];
    } else if (at->kind == Config::Kind::scalar) {
      return wrong(fmt::format("\"{}\" steps into a plain value", step));
    } else if (!removes) {
      at = &at->at_or_add(step);
    } else if (is_last) {
      std::erase_if(at->fields, [&](const Config::Field& field) { return field.key == step; });
      return {};
    } else if (at = at->find(step); at == nullptr) {
      return {};  // removed with what it stood in
    }
  }
  *at = value;
  return {};
}

Token token_of(const Config& config) { return {config.text, config.where}; }

Reader::Reader(const Config& config, std::string what, Errors& errors)
    : config_(config), what_(std::move(what)), errors_(errors) {
  if (config_.kind == Config::Kind::scalar || config_.kind == Config::Kind::list)
    error(Errc::parse, config_.where, fmt::format("{} must be a map of keys", what_),
          "write \"key: value\" lines");
}

void Reader::error(Errc code, const Where& where, std::string what, std::string hint) {
  errors_.push_back({code, where, std::move(what), std::move(hint), {}});
}

const Config* Reader::child(std::string_view key) {
  known_.emplace_back(key);
  return config_.find(key);
}

bool Reader::has(std::string_view key) { return child(key) != nullptr; }

Where Reader::where(std::string_view key) const {
  const Config* value = config_.find(key);
  return value != nullptr ? value->where : config_.where;
}

const Config* Reader::scalar(std::string_view key, bool required) {
  const Config* value = child(key);
  if (value != nullptr && value->kind == Config::Kind::null) {
    error(Errc::parse, value->where, fmt::format("{}.{} is empty", what_, key),
          "give it a value or remove the key");
    return nullptr;
  }
  if (value == nullptr) {
    if (required)
      error(Errc::parse, config_.where, fmt::format("{}: \"{}\" is missing", what_, key),
            fmt::format("add \"{}: ...\"", key));
    return nullptr;
  }
  if (value->kind != Config::Kind::scalar) {
    error(Errc::parse, value->where, fmt::format("{}.{} must be a single value", what_, key),
          fmt::format("write \"{}: value\"", key));
    return nullptr;
  }
  return value;
}

template <class T, class Parse>
T Reader::read(std::string_view key, const std::optional<T>& fallback, Parse parse) {
  const Config* value = scalar(key, !fallback.has_value());
  if (value == nullptr) return fallback.value_or(T{});
  auto parsed = parse(token_of(*value));
  if (parsed) return *std::move(parsed);
  Error e = std::move(parsed).error();
  e.what = fmt::format("{}.{}: {}", what_, key, e.what);
  errors_.push_back(std::move(e));
  return fallback.value_or(T{});
}

std::int64_t Reader::count(std::string_view key, std::optional<std::int64_t> fallback,
                           std::int64_t least, std::int64_t most) {
  return read<std::int64_t>(key, fallback, [&](const Token& token) -> Result<std::int64_t> {
    WEFT_TRY(const std::int64_t n, parse_count(token));
    if (n < least || n > most)
      return fail(Errc::value, token.where,
                  most == INT64_MAX ? fmt::format("{} is below {}", n, least)
                                    : fmt::format("{} is not within {} .. {}", n, least, most),
                  "choose a value in range");
    return n;
  });
}

double Reader::number(std::string_view key, std::optional<double> fallback, double least,
                      double most) {
  return read<double>(key, fallback, [&](const Token& token) -> Result<double> {
    WEFT_TRY(const double x, most <= 1 ? parse_fraction(token) : parse_number(token));
    if (!(x >= least && x <= most))
      return fail(Errc::value, token.where,
                  fmt::format("{} is not within {} .. {}", x, least, most),
                  "choose a value in range");
    return x;
  });
}

Bytes Reader::bytes(std::string_view key, std::optional<Bytes> fallback) {
  return read<Bytes>(key, fallback, parse_bytes);
}
Rate Reader::rate(std::string_view key, std::optional<Rate> fallback) {
  return read<Rate>(key, fallback, parse_rate);
}
Duration Reader::duration(std::string_view key, std::optional<Duration> fallback) {
  return read<Duration>(key, fallback, parse_duration);
}
bool Reader::flag(std::string_view key, std::optional<bool> fallback) {
  return read<bool>(key, fallback, parse_flag);
}
std::string Reader::text(std::string_view key, const std::optional<std::string>& fallback) {
  return read<std::string>(key, fallback, [](const Token& token) -> Result<std::string> {
    return std::string(token.text);
  });
}

std::size_t Reader::choice(std::string_view key, std::span<const std::string> names,
                           std::optional<std::size_t> fallback) {
  return read<std::size_t>(key, fallback, [&](const Token& token) -> Result<std::size_t> {
    const auto it = std::ranges::find(names, token.text);
    if (it != names.end()) return static_cast<std::size_t>(it - names.begin());
    return fail(
        Errc::unknown, token.where,
        fmt::format("unknown name {}{}", quote(token.text), did_you_mean(token.text, names)),
        fmt::format("choose one of: {}", fmt::join(names, ", ")));
  });
}

std::vector<Token> Reader::texts(std::string_view key) {
  const Config* value = child(key);
  if (value == nullptr || value->kind == Config::Kind::null) return {};
  if (value->kind == Config::Kind::scalar) return {token_of(*value)};
  std::vector<Token> out;
  for (const Config& item : value->items) {
    if (item.kind == Config::Kind::scalar) {
      out.push_back(token_of(item));
    } else {
      error(Errc::parse, item.where,
            fmt::format("{}.{} must be a list of plain values", what_, key),
            fmt::format("write \"{}: [a, b]\"", key));
    }
  }
  if (value->kind == Config::Kind::map)
    error(Errc::parse, value->where, fmt::format("{}.{} must be a list", what_, key),
          fmt::format("write \"{}: [a, b]\"", key));
  return out;
}

void Reader::finish() {
  std::ranges::sort(known_);
  known_.erase(std::ranges::unique(known_).begin(), known_.end());
  constexpr std::size_t shown = 20;
  std::size_t unknown = 0;
  for (const Config::Field& field : config_.fields) {
    if (std::ranges::binary_search(known_, field.key) || ++unknown > shown) continue;
    error(Errc::unknown, field.where,
          fmt::format("unknown key {} in {}{}", quote(field.key), what_,
                      did_you_mean(field.key, known_)),
          fmt::format("known keys: {}", fmt::join(known_, ", ")));
  }
  if (unknown > shown)
    error(Errc::unknown, config_.where,
          fmt::format("{} more unknown keys in {}", unknown - shown, what_), "remove them");
}

}  // namespace weft::base
