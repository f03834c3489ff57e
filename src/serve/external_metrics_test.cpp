#include "serve/external_metrics.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <string>

#include "base/json_line.hpp"
#include "base/text.hpp"
#include "os/digest.hpp"
#include "serve/api_kit.hpp"
#include "serve/test_identity.hpp"
#include "serve/web.hpp"

namespace weft::serve {
namespace {

using namespace testing;

using Labels = std::map<std::string, std::string, std::less<>>;

// What a Horizontal Pod Autoscaler does with a metric of type External and a target of
// averageValue: https://kubernetes.io/docs/tasks/run-application/horizontal-pod-autoscale/, and the
// types of k8s.io/metrics/pkg/apis/external_metrics/v1beta1.
class AutoscalerClient {
 public:
  AutoscalerClient(std::uint16_t port, SSL_CTX* context, std::string headers = {})
      : port_(port), context_(context), headers_(std::move(headers)) {}

  JsonLine get(const std::string& target, int status = 200) const {
    Client client(port_);
    REQUIRE(client.start_tls(context_));
    const Answer answer =
        client.call("GET", target, "",
                    "Accept: application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,"
                    "application/json\r\n" +
                        headers_);
    CHECK(answer.status == status);
    CHECK(answer.headers.at("content-type") == "application/json");
    return JsonLine::parse(answer.body, {}).value();
  }
  // The path of the metric, from discovery alone.
  std::string discover(const std::string& tenant, const std::string& metric) const {
    const JsonLine groups = get("/apis?timeout=32s");
    CHECK(groups.node().member("kind").text() == "APIGroupList");
    const JsonNode group = groups.node().member("groups").item(0);
    CHECK(group.member("name").text() == "external.metrics.k8s.io");
    const std::string version =
        group.member("preferredVersion").member("groupVersion").text().value();
    CHECK(get("/apis/" + *group.member("name").text()).node().member("kind").text() == "APIGroup");
    const JsonLine list = get("/apis/" + version + "?timeout=32s");
    CHECK(list.node().member("kind").text() == "APIResourceList");
    CHECK(list.node().member("groupVersion").text() == version);
    const JsonNode resource = list.node().member("resources").item(0);
    CHECK(resource.member("name").text() == metric);
    CHECK(resource.member("namespaced").flag() == true);
    CHECK(resource.member("kind").text() == "ExternalMetricValueList");
    CHECK(resource.member("verbs").item(0).text() == "get");
    return fmt::format("/apis/{}/namespaces/{}/{}", version, tenant, metric);
  }
  // Replicas that it would set where `now` run and each is to have `average` of the metric.
  int replicas(const std::string& path, const std::string& selector, int now,
               double average) const {
    const JsonLine list = get(path + "?labelSelector=" + selector);
    CHECK(list.node().member("kind").text() == "ExternalMetricValueList");
    CHECK(list.node().member("apiVersion").text() == "external.metrics.k8s.io/v1beta1");
    CHECK(list.node().member("metadata").is_object());
    double sum = 0;
    const JsonNode items = list.node().member("items");
    for (std::size_t i = 0; i < items.size(); ++i) {
      sum += parse_number({items.item(i).member("value").text().value(), {}}).value();
      CHECK(items.item(i).member("metricLabels").is_object());
      CHECK(items.item(i).member("timestamp").text()->size() == 20);  // seconds, Z
    }
    if (items.size() == 0) return now;  // no metric: nothing is changed
    if (std::abs(sum / (average * now) - 1) <= 0.1) return now;
    return static_cast<int>(std::ceil(sum / average));
  }

 private:
  std::uint16_t port_;
  SSL_CTX* context_;
  std::string headers_;
};

}  // namespace

TEST_CASE("label selectors as Kubernetes writes them") {
  const Labels labels{{"service", "shop"}, {"site", "fra1"}};
  const auto fits = [&](const char* text) {
    return LabelSelector::parse(text).value().fits(labels);
  };
  for (const char* yes : {"", "service=shop", "service==shop", "service=shop,site=fra1", "site",
                          "!region", "site in (ams1, fra1)", "site notin (ams1)", "region!=x",
                          " service = shop , site in (fra1) "})
    CHECK(fits(yes));
  for (const char* no : {"service=chat", "service=shop,site=ams1", "region", "!site",
                         "site in (ams1)", "site notin (ams1,fra1)", "site!=fra1", "region=x"})
    CHECK_FALSE(fits(no));
  for (const char* bad : {"=a", "a b=c", "a in b", "a in (b", "in (b)", "a=b c", "!", ","})
    CHECK_FALSE(LabelSelector::parse(bad).has_value());
}

TEST_CASE("external metrics over TLS, as the API server's proxy and an HPA ask for them") {
  const TestFolder folder;
  const Identity authority(folder, "ca", "requestheader-ca");
  const Identity server(folder, "server", "localhost", &authority);
  const Identity proxy(folder, "proxy", "front-proxy-client", &authority);
  ApiOptions options{.certificate = server.certificate(),
                     .key = server.key(),
                     .client_ca = authority.certificate(),
                     .tokens = folder.write("tokens", "front-proxy-client read certificate\n")};
  bool is_stale = false;
  ExternalMetricSource source{
      .names = {"weft_replicas"},
      .read = [&](std::string_view tenant,
                  std::string_view name) -> Result<std::vector<ExternalMetric>> {
        if (name != "weft_replicas") return fail(Errc::unknown, {}, "there is no such metric");
        if (is_stale) return fail(Errc::infeasible, {}, "the last demand is old");
        if (tenant != "retail") return std::vector<ExternalMetric>();
        const Timestamp t{1'800'000'000'500'000'000};
        return std::vector{
            ExternalMetric{
                "retail", "weft_replicas", {{"service", "shop"}, {"site", "fra1"}}, t, 30},
            ExternalMetric{
                "retail", "weft_replicas", {{"service", "shop"}, {"site", "ams1"}}, t, 12},
            ExternalMetric{"retail", "weft_replicas", {{"service", "till"}}, t, 3}};
      },
      .push = [](auto, auto, auto) -> Result<std::size_t> { return 0; },
      .metrics = [] { return std::string(); }};
  const auto web = Web::listen(std::move(options), [&](const auto&, Meters& meters, const auto&) {
                     return external_metric_routes(source, meters);
                   }).value();
  const auto context = client_context(authority, &proxy);
  const AutoscalerClient client(web->port(), context.get(),
                                "X-Remote-User: system:serviceaccount:kube-system:"
                                "horizontal-pod-autoscaler\r\n");
  const std::string path = client.discover("retail", "weft_replicas");
  CHECK(client.replicas(path, "service%3Dshop", 20, 1) == 42);
  CHECK(client.replicas(path, "service%3Dshop%2Csite%3Dfra1", 20, 1) == 30);
  CHECK(client.replicas(path, "service%3Dshop", 40, 1) == 40);  // within its tolerance
  CHECK(client.replicas(path, "service%3Dnone", 20, 1) == 20);
  CHECK(client.replicas(client.discover("other", "weft_replicas"), "", 20, 1) == 20);
  const auto refused = [&](const std::string& target, int status) {
    const JsonLine answer = client.get(target, status);
    CHECK(answer.node().member("kind").text() == "Status");
    CHECK(answer.node().member("apiVersion").text() == "v1");
    CHECK(answer.node().member("status").text() == "Failure");
    CHECK(answer.node().member("code").whole() == status);
    return answer.node().member("reason").text().value();
  };
  CHECK(refused("/apis/external.metrics.k8s.io/v1beta1/namespaces/retail/other", 404) ==
        "NotFound");
  CHECK(refused(path + "?labelSelector=a%20b", 400) == "BadRequest");
  is_stale = true;
  CHECK(refused(path, 503) == "ServiceUnavailable");
}

}  // namespace weft::serve
