// What other systems read: Prometheus text and OpenSLO.
#include <fmt/format.h>

#include "base/config.hpp"
#include "observe/sli/report.hpp"

namespace weft::observe::sli {
namespace {

// Label values escape what would end them.
std::string label_value(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\n') {
      out += "\\n";
      continue;
    }
    if (c == '\\' || c == '"') out += '\\';
    out += c;
  }
  return out;
}

class MetricsWriter {
 public:
  MetricsWriter(const Report& report, const MinuteCounters& book) : report_(report), book_(book) {}

  std::string text() {
    add("minutes", "gauge", "Minutes in the report by verdict.", [&](const SeriesReport& s) {
      value(s, "verdict=\"good\"", static_cast<double>(s.minutes.good));
      value(s, "verdict=\"bad_loss\"", static_cast<double>(s.minutes.bad_loss));
      value(s, "verdict=\"bad_corruption\"", static_cast<double>(s.minutes.bad_corruption));
      value(s, "verdict=\"bad_latency\"", static_cast<double>(s.minutes.bad_latency));
      value(s, "verdict=\"no_data\"", static_cast<double>(s.minutes.no_data));
    });
    add("availability", "gauge", "Share of judged minutes that are good.",
        [&](const SeriesReport& s) {
          if (const auto a = s.minutes.availability()) value(s, "", *a);
        });
    add("budget_left", "gauge", "Error budget left: 1 is all of it, below 0 is overspent.",
        [&](const SeriesReport& s) { value(s, "", s.budget.left_share()); });
    add("burn_rate", "gauge", "Burn rate over the long window of the alert.",
        [&](const SeriesReport& s) {
          for (std::size_t i = 0; i < s.burn_rates.size(); ++i)
            value(s, fmt::format("alert=\"{}\"", book_.settings().alerts[i].name), s.burn_rates[i]);
        });
    add("probes", "counter", "Probes sent.",
        [&](const SeriesReport& s) { value(s, "", static_cast<double>(s.sent)); });
    add("probes_lost", "counter", "Probes lost.",
        [&](const SeriesReport& s) { value(s, "", static_cast<double>(s.lost)); });
    add("probes_damaged", "counter", "Probes that came with a wrong payload.",
        [&](const SeriesReport& s) { value(s, "", static_cast<double>(s.damaged)); });
    add("replies", "counter", "Replies timed or late.",
        [&](const SeriesReport& s) { value(s, "", static_cast<double>(s.timed_legs) / 2); });
    add("replies_slow", "counter", "Replies certainly slower than the threshold.",
        [&](const SeriesReport& s) { value(s, "", static_cast<double>(s.slow_legs) / 2); });
    return std::move(out_);
  }

 private:
  template <class Each>
  void add(std::string_view name, std::string_view type, std::string_view help, Each each) {
    name_ = fmt::format("weft_sli_{}{}", name, type == "counter" ? "_total" : "");
    out_ += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name_, help, name_, type);
    for (const SeriesReport& s : report_.series) each(s);
  }

  void value(const SeriesReport& s, const std::string& more, double number) {
    const Objective& o = book_.settings().objectives[s.objective];
    out_ += fmt::format("{}{{objective=\"{}\",class=\"{}\",entity=\"{}\"{}{}}} {}\n", name_, o.name,
                        label_value(s.traffic_class), label_value(s.entity),
                        more.empty() ? "" : ",", more, number);
  }

  const Report& report_;
  const MinuteCounters& book_;
  std::string name_, out_;
};

Config text_of(std::string text) { return Config::scalar(std::move(text)); }

Config map_of(std::initializer_list<std::pair<std::string_view, Config>> fields) {
  Config out = Config::map();
  for (const auto& [key, value] : fields) out.at_or_add(key) = value;
  return out;
}

Config list_of(Config item) {
  Config out = Config::list();
  out.items.push_back(std::move(item));
  return out;
}

Config document(std::string_view kind, const std::string& name, const std::string& shown,
                Config spec) {
  return map_of({{"apiVersion", text_of("openslo/v1")},
                 {"kind", text_of(std::string(kind))},
                 {"metadata", map_of({{"name", text_of(name)}, {"displayName", text_of(shown)}})},
                 {"spec", std::move(spec)}});
}

Config metric_source(const std::string& metric, const Objective& o) {
  const std::string of_class =
      o.traffic_class.empty() ? "" : fmt::format(",class=\"{}\"", label_value(o.traffic_class));
  const std::string query =
      fmt::format("sum({}{{objective=\"{}\",entity=\"all\"{}}})", metric, o.name, of_class);
  return map_of({{"metricSource", map_of({{"type", text_of("Prometheus")},
                                          {"spec", map_of({{"query", text_of(query)}})}})}});
}

std::string decimal(std::int64_t ppb) {
  std::string out = fmt::format("{}.{:09}", ppb / whole_ppb, ppb % whole_ppb);
  out.erase(out.find_last_not_of('0') + 1);
  return out.ends_with('.') ? out + "0" : out;
}

struct SliceRule {
  std::string suffix, shown, bad, total;
  std::int64_t good_ppb;  // share of a good slice's events that are good
};

Config slo(const Objective& o, const SliceRule& rule) {
  const std::string name = o.name + rule.suffix;
  const Config indicator = map_of(
      {{"metadata", map_of({{"name", text_of(name + "-ratio")}})},
       {"spec", map_of({{"ratioMetric", map_of({{"counter", text_of("true")},
                                                {"bad", metric_source(rule.bad, o)},
                                                {"total", metric_source(rule.total, o)}})}})}});
  Config spec =
      map_of({{"description",
               text_of(fmt::format("Good minutes, scope {}: {}.", to_text(o.span), rule.shown))},
              {"service", text_of("network")},
              {"indicator", indicator},
              {"timeWindow", list_of(map_of({{"duration", text_of(window_text(o.window_minutes))},
                                             {"isRolling", text_of("true")}}))},
              {"budgetingMethod", text_of("Timeslices")},
              {"objectives", list_of(map_of({{"displayName", text_of(rule.shown)},
                                             {"target", text_of(decimal(o.target.ppb))},
                                             {"timeSliceTarget", text_of(decimal(rule.good_ppb))},
                                             {"timeSliceWindow", text_of("1m")}}))}});
  return document("SLO", name, fmt::format("{}: {}", o.name, rule.shown), std::move(spec));
}

}  // namespace

std::string to_metrics(const Report& report, const MinuteCounters& book) {
  return MetricsWriter(report, book).text();
}

std::string to_openslo(const Settings& settings) {
  constexpr std::int64_t p99_ppb = 990'000'000;
  std::string out = to_yaml(document("Service", "network", "Network",
                                     map_of({{"description", text_of("The training network.")}})));
  for (const Objective& o : settings.objectives) {
    out += "---\n" +
           to_yaml(slo(o, {"-loss", "loss at most " + to_text(o.loss), "weft_sli_probes_lost_total",
                           "weft_sli_probes_total", whole_ppb - o.loss.ppb}));
    out += "---\n" + to_yaml(slo(o, {"-corruption", "corruption at most " + to_text(o.corruption),
                                     "weft_sli_probes_damaged_total", "weft_sli_probes_total",
                                     whole_ppb - o.corruption.ppb}));
    if (o.latency_p99_us > 0)
      out += "---\n" +
             to_yaml(slo(o, {"-latency", fmt::format("p99 at most {:g} us", o.latency_p99_us),
                             "weft_sli_replies_slow_total", "weft_sli_replies_total", p99_ppb}));
  }
  return out;
}

}  // namespace weft::observe::sli
