// Gauges as Prometheus text.
#pragma once

#include <fmt/format.h>

#include <initializer_list>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

namespace weft::serve {

class MetricText {
 public:
  using Label = std::pair<std::string_view, std::string_view>;

  // weft_NAME; its rows follow.
  void family(std::string_view name, std::string_view help) {
    name_ = name;
    fmt::format_to(std::back_inserter(out_), "# HELP weft_{0} {1}\n# TYPE weft_{0} gauge\n", name,
                   help);
  }
  // `value` of a label is one line.
  void row(double value, std::initializer_list<Label> labels) {
    std::string text;
    for (const auto& [key, name] : labels) {
      std::string quoted;
      for (const char c : name) {
        if (c == '\\' || c == '"') quoted += '\\';
        quoted += c;
      }
      text += fmt::format("{}{}=\"{}\"", text.empty() ? "" : ",", key, quoted);
    }
    fmt::format_to(std::back_inserter(out_), "weft_{}{{{}}} {}\n", name_, text, value);
  }
  std::string take() { return std::move(out_); }

 private:
  std::string name_, out_;
};

}  // namespace weft::serve
