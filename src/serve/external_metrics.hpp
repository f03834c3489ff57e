// Kubernetes' external metrics API (external.metrics.k8s.io/v1beta1), as an aggregated API server
// serves it: discovery, and lists of values by namespace, name and labels.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/timestamp.hpp"
#include "serve/meters.hpp"
#include "serve/openapi.hpp"

namespace weft::serve {

struct ExternalMetric {
  std::string tenant, name;  // the namespace
  std::map<std::string, std::string, std::less<>> labels;
  Timestamp t;
  std::int64_t value = 0;
};

// What the routes ask; from any thread.
struct ExternalMetricSource {
  std::vector<std::string> names;  // of the metrics that there are
  // All values of a namespace and name that are good now. Fails: Errc::unknown where there is no
  // such metric; Errc::infeasible where no value is good.
  std::function<Result<std::vector<ExternalMetric>>(std::string_view tenant, std::string_view name)>
      read;
  // Takes samples of a service's demand, CSV. Fails: Errc::unknown, Errc::parse, Errc::value.
  std::function<Result<std::size_t>(std::string_view tenant, std::string_view service,
                                    std::string_view csv)>
      push;
  std::function<std::string()> metrics;  // Prometheus text
};

// A label selector as Kubernetes writes it: "a=b,c!=d,e in (f,g),h notin (i),j,!k". Fails:
// Errc::parse.
class LabelSelector {
 public:
  static Result<LabelSelector> parse(std::string_view text);
  bool fits(const std::map<std::string, std::string, std::less<>>& labels) const;

 private:
  enum class Kind : std::uint8_t { in, not_in, exists, missing };
  struct Term {
    std::string key;
    Kind kind;
    std::vector<std::string> values;
  };
  static Result<Term> parse_term(std::string_view text);
  std::vector<Term> terms_;
};

// Discovery is for everybody; values need the role read, samples ingest, both of the namespace's
// tenant where who asks is of one. Refusals of values are Kubernetes' Status objects.
std::vector<Route> external_metric_routes(ExternalMetricSource source, Meters& meters);

}  // namespace weft::serve
