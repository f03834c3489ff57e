#include "workload/serving/requests.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/test_approx.hpp"

namespace weft::workload {
namespace {

TEST_CASE("Azure's traces: arrivals from the first one on") {
  const auto trace = read_requests(
      "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-12-31 23:59:59.5000000,374,44\n"
      "2024-01-01 00:00:01.2500000,396,0\n2024-02-29T00:00:00,1,1\n",
      "azure.csv");
  REQUIRE(trace.has_value());
  REQUIRE(trace->requests.size() == 3);
  CHECK(trace->requests[0].arrival.ps == 0);
  CHECK(trace->requests[1].arrival.seconds() == approx(1.75).epsilon(1e-6));
  CHECK(trace->requests[1].output == 1);
  CHECK(trace->requests[2].arrival.seconds() == approx(59 * 86400 + 0.5).epsilon(1e-9));
  CHECK(trace->measured.empty());
}

TEST_CASE("recorded runs have two clocks") {
  const std::string run =
      R"({"input_toks": 10, "output_toks": 5, "arrival_time": 1000.5,)"
      R"( "queued_ts": 7, "first_token_ts": 8, "last_token_ts": 9})"
      "\n"
      R"({"input_toks": 20, "output_toks": 2, "arrival_time": 1001, "prefix": "a",)"
      R"( "prefix_toks": 16, "queued_ts": 7.5, "first_token_ts": 8, "last_token_ts": 8.25})"
      "\n";
  const auto trace = read_requests(run, "run.jsonl");
  REQUIRE(trace.has_value());
  CHECK(trace->requests[1].arrival.seconds() == 0.5);
  CHECK(trace->requests[1].prefix != 0);
  CHECK(trace->requests[1].prefix_tokens == 16);
  CHECK(trace->measured[0].first_token.seconds() == 1);
  CHECK(trace->measured[1].last_token.seconds() == 1.25);
}

TEST_CASE("bad traces say where") {
  const auto text = [](std::string_view trace) {
    const auto out = read_requests(trace, "t");
    return out ? std::string("none") : out.error().text();
  };
  const std::string head = "TIMESTAMP,ContextTokens,GeneratedTokens\n";
  CHECK(text(head) == "t: there are no requests; give one or more");
  CHECK(text(head + "2023-13-16 18:15:46,1,1\n2023-11-16 18:15:46,0,1\n") ==
        "t:2:1: \"2023-13-16 18:15:46\" is not a time; write 2023-11-16 18:15:46.6805900\n"
        "t:3:21: 0 tokens; 1 to 16777216 are allowed");
  CHECK(text(head + "2023-11-16 18:15:46,1,1\n2024-11-16 18:15:46,1,1\n") ==
        "t:3:1: 31622400 s after the first request; a trace may last 90 days");
  CHECK(text("{\"input_toks\": 1}\n").starts_with("t:1"));
  CHECK(text("{\"input_toks\": 9, \"output_toks\": 1, \"arrival_time\": 0, \"prefix\": \"a\", "
             "\"prefix_toks\": 10}\n") ==
        "t:1: the shared prefix is longer than the prompt; prefix tokens are the first ones of "
        "the prompt");
}

TEST_CASE("classes of requests, from all three sources") {
  const auto names = [](const RequestTrace& trace) {
    std::string out;
    for (const InferenceRequest& one : trace.requests) out += trace.classes[one.class_index] + "|";
    return out;
  };
  const auto azure = read_requests(
      "TIMESTAMP,ContextTokens,GeneratedTokens,Class\n2024-01-01 00:00:02,1,1,chat\n"
      "2024-01-01 00:00:00,1,1,batch\n2024-01-01 00:00:01,1,1,\n2024-01-01 00:00:03,1,1,batch\n",
      "azure.csv");
  REQUIRE(azure.has_value());
  CHECK(names(*azure) == "batch||chat|batch|");
  const auto lines = read_requests(
      "{\"input_toks\": 1, \"output_toks\": 1, \"arrival_time\": 0, \"class\": \"a\"}\n"
      "{\"input_toks\": 1, \"output_toks\": 1, \"arrival_time\": 1}\n",
      "run.jsonl");
  REQUIRE(lines.has_value());
  CHECK(names(*lines) == "a||");
  const std::vector<PoissonArrivals> laws{{.name = "a", .per_second = 30, .count = 3000},
                                          {.name = "b", .per_second = 10, .count = 1000}};
  const RequestTrace drawn = poisson_requests(laws);
  CHECK(drawn.requests.size() == 4000);
  CHECK(std::ranges::is_sorted(drawn.requests, {}, &InferenceRequest::arrival));
  CHECK(std::ranges::count(drawn.requests, 2U, &InferenceRequest::class_index) == 1000);
  // A class draws the same arrivals whatever stands beside it.
  const RequestTrace alone = poisson_requests(std::span(laws).last(1));
  std::vector<Time> of_b;
  for (const InferenceRequest& one : drawn.requests)
    if (drawn.classes[one.class_index] == "b") of_b.push_back(one.arrival);
  CHECK(std::ranges::equal(of_b, alone.requests, {}, {}, &InferenceRequest::arrival));
  std::string many = "TIMESTAMP,ContextTokens,GeneratedTokens,Class\n";
  for (int i = 0; i < 300; ++i) many += "2024-01-01 00:00:02,1,1,c" + std::to_string(i) + "\n";
  const auto refused = read_requests(many, "azure.csv");
  REQUIRE(!refused.has_value());
  CHECK(refused.error().text().starts_with("azure.csv:257:"));
}

TEST_CASE("Poisson arrivals have the rate and the spread of their law") {
  const RequestTrace trace = poisson_requests({.per_second = 50, .count = 20'001, .seed = 3});
  const double mean = trace.requests.back().arrival.seconds() / 20'000;
  CHECK(mean == approx(0.02).epsilon(0.03));
  int early = 0;  // gaps below the mean: 1 - 1/e of them
  for (std::size_t i = 1; i < trace.requests.size(); ++i)
    early += (trace.requests[i].arrival - trace.requests[i - 1].arrival).seconds() < 0.02 ? 1 : 0;
  CHECK(early / 20'000.0 == approx(0.632).epsilon(0.02));
}

}  // namespace
}  // namespace weft::workload
