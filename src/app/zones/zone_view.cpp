#include "app/zones/zone_view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "adapt/live/http_post.hpp"
#include "base/json_line.hpp"
#include "base/markup.hpp"
#include "operate/repair/ticket.hpp"

namespace weft::app {
namespace {

namespace live = adapt::live;
namespace repair = operate::repair;

// No zone has so many; a service that goes on giving pages is not asked for ever.
constexpr std::size_t cases_max = 100'000;

// A stage of a later version counts as one that is under way.
repair::Stage stage_named(const std::string& name) {
  return from_name<repair::Stage>({name, {}}).value_or(repair::Stage::detected);
}

bool waits_for_person(repair::Stage stage) {
  using enum repair::Stage;
  return stage == proposed || stage == repairing || stage == failed;
}

// One round of questions to one service.
class Round {
 public:
  Round(live::HttpClient client, std::string token, std::chrono::milliseconds timeout)
      : client_(std::move(client)), token_(std::move(token)), timeout_(timeout) {}

  Result<ZoneView> ask() {
    WEFT_TRY(const JsonLine ready, get("/readyz"));
    WEFT_TRY(const JsonLine capacity, get("/v1/capacity"));
    take_capacity(capacity.node());
    // Of those that changed last: all of them would be years of repairs, every few seconds.
    WEFT_TRY(const JsonLine repairs, get("/v1/repairs?limit=1000"));
    const JsonNode items = repairs.node().member("items");
    for (std::size_t i = 0; i < items.size(); ++i) take_repair(items.item(i));
    WEFT_TRY_STATUS(pages("/v1/handling?", [&](JsonNode item) {
      owner_[text_of(item, "id")] = text_of(item, "owner");
    }));
    for (const char* state : {"open", "provisional"})
      WEFT_TRY_STATUS(pages(fmt::format("/v1/cases?members=0&state={}&", state),
                            [&](JsonNode item) { take_case(item); }));
    const auto newest = std::min(latest_cases, out_.latest.size());
    std::ranges::partial_sort(out_.latest, out_.latest.begin() + std::ptrdiff_t(newest),
                              std::greater<>(), &ZoneCase::opened);
    out_.latest.resize(newest);
    return std::move(out_);
  }

 private:
  Result<JsonLine> get(const std::string& path) {
    WEFT_TRY(const std::string text, live::get_text(client_, path, token_, timeout_));
    return JsonLine::parse(text, {path});
  }

  Status pages(const std::string& path, const std::function<void(JsonNode)>& take) {
    std::string before;
    do {
      WEFT_TRY(const JsonLine page,
               get(fmt::format("{}limit=1000{}", path,
                               before.empty() ? "" : "&before=" + percent_encoded(before))));
      const JsonNode items = page.node().member("items");
      for (std::size_t i = 0; i < items.size(); ++i) take(items.item(i));
      before = text_of(page.node(), "next");
      if (out_.cases > cases_max)
        return fail(Errc::value, {}, fmt::format("it lists more than {} open cases", cases_max));
    } while (!before.empty());
    return {};
  }

  void take_capacity(JsonNode capacity) {
    out_.kill_switch = capacity.member("kill_switch").flag().value_or(false);
    out_.parts_out = capacity.member("out").size();
    const JsonNode groups = capacity.member("groups");
    for (std::size_t i = 0; i < groups.size(); ++i)
      out_.uplinks = std::min(out_.uplinks, groups.item(i).member("share").number().value_or(1));
  }

  // They come last changed first: of several repairs of a case the first counts.
  void take_repair(JsonNode item) {
    const std::string stage = text_of(item, "stage");
    const JsonNode cases = item.member("cases");
    for (std::size_t i = 0; i < cases.size(); ++i)
      stage_.emplace(text_of(cases.item(i), "id"), stage);
    if (stage.empty() || is_over(stage_named(stage))) return;
    ++out_.repairs;
    if (waits_for_person(stage_named(stage))) ++out_.waiting;
  }

  void take_case(JsonNode item) {
    const JsonNode cause = item.member("cause");
    ZoneCase of{.id = text_of(item, "id"),
                .kind = text_of(cause, "kind"),
                .entity = text_of(cause, "entity"),
                .standing = text_of(item, "standing"),
                .opened = text_of(item, "opened"),
                .stage = {},
                .owner = {}};
    if (const auto at = stage_.find(of.id); at != stage_.end()) of.stage = at->second;
    if (const auto at = owner_.find(of.id); at != owner_.end()) of.owner = at->second;
    ++out_.cases;
    ++out_.kinds[of.kind];
    out_.latest.push_back(std::move(of));
  }

  live::HttpClient client_;
  std::string token_;
  std::chrono::milliseconds timeout_;
  ZoneView out_;
  std::map<std::string, std::string, std::less<>> stage_, owner_;  // by case
};

Result<ZoneView> ask_service(const Zone& zone, const std::string& url,
                             std::chrono::milliseconds timeout) {
  WEFT_TRY(auto client, live::open_service({url, "urls"}, zone.tls, timeout));
  std::string token;
  if (!zone.token.empty()) {
    WEFT_TRY(token, live::read_secret(zone.token));
  }
  return Round(std::move(client), std::move(token), timeout).ask();
}

}  // namespace

ZoneClient::ZoneClient(Zone zone, std::chrono::milliseconds timeout)
    : zone_(std::move(zone)), timeout_(timeout) {
  view_.name = zone_.name;
  view_.console = zone_.console;
}

const ZoneView& ZoneClient::ask(Timestamp now) {
  std::vector<std::string> whys;
  view_.state = ZoneState::silent;
  for (std::size_t i = 0; i < zone_.urls.size(); ++i) {
    const std::size_t at = (at_work_ + i) % zone_.urls.size();
    auto found = ask_service(zone_, zone_.urls[at], timeout_);
    if (found) {
      found->name = zone_.name;
      found->console = zone_.console;
      found->state = ZoneState::ready;
      found->service = zone_.urls[at];
      found->heard = now;
      at_work_ = at;
      return view_ = *std::move(found);
    }
    if (found.error().code != Errc::io) view_.state = ZoneState::refused;
    whys.push_back(fmt::format("{}: {}", zone_.urls[at], found.error().what));
  }
  view_.why = fmt::format("{}", fmt::join(whys, "; "));
  return view_;
}

}  // namespace weft::app
