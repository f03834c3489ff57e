#include "app/site/site_run.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <map>
#include <optional>
#include <utility>

#include "adapt/live/http_client.hpp"
#include "adapt/live/http_post.hpp"
#include "adapt/live/system_clock.hpp"
#include "adapt/live/uplink.hpp"
#include "app/site/supervisor.hpp"
#include "base/file.hpp"
#include "base/json_line.hpp"
#include "base/json_text.hpp"
#include "os/error.hpp"

namespace weft::app {
namespace {

namespace live = adapt::live;
using std::chrono::milliseconds;

constexpr std::int64_t turn_ns = 100'000'000;
constexpr std::int64_t look_every_ns = 500'000'000;
constexpr std::int64_t settle_ns = 3 * ns_per_s;
constexpr std::int64_t suspects_every_ns = 10 * ns_per_s;
constexpr std::int64_t write_every_ns = ns_per_s;
constexpr milliseconds http_patience{1'000};
constexpr milliseconds farewell{2'000};
constexpr std::int64_t stop_ns = 7 * ns_per_s;

// Two pipes for every child, and a site may have thousands.
void allow_many_files() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

flock whole_file() {
  flock out{};
  out.l_type = F_WRLCK;
  out.l_whence = SEEK_SET;
  return out;
}

class SiteRun {
 public:
  SiteRun(const Site& site, const model::Fabric& fabric, const SiteRunOptions& options)
      : site_(site),
        fabric_(fabric),
        options_(options),
        supervisor_(
            {}, clock_,
            {.log = [this](const std::string& name,
                           std::string_view line) { options_.log(name, line); },
             .lines = [this](const std::string& feed,
                             const std::vector<std::string>& lines) { send(feed, lines); },
             .ended = [this](const std::string& name, int status,
                             std::string text) { plan_->take(name, status, std::move(text)); }}) {}

  Status run(live::Signals& signals) {
    WEFT_TRY_STATUS(open());
    start();
    while (signals.take() != live::Signals::Seen::stop) {
      supervisor_.step();
      if (plan_) plan_->step();
      look();
      write_status();
      if (options_.turn) options_.turn(is_ready_ && (!plan_ || plan_->state().made > 0));
      supervisor_.wait(turn_ns, signals.fd());
    }
    stop();
    return {};
  }

 private:
  Status open() {
    if (!site_.token.empty()) {
      WEFT_TRY(token_, live::read_secret(site_.token));
    }
    for (const char* feed : {"records", "evidence"}) {
      live::UplinkOptions options{
          .url = site_.url, .path = fmt::format("/v1/{}", feed), .token = token_, .tls = files()};
      options.spool.directory = fmt::format("{}/spool-{}", site_.state, feed);
      WEFT_TRY(live::Uplink uplink, live::Uplink::open(std::move(options)));
      uplinks_.emplace(feed, std::move(uplink));
    }
    if (!site_.probes) return {};
    WEFT_TRY(NodeAddresses addresses, read_addresses(fabric_, site_.probes->addresses));
    WEFT_TRY(std::vector<model::NodeId> hosts, probe_hosts(fabric_, *site_.probes));
    plan_.emplace(site_, fabric_, std::move(addresses), std::move(hosts), options_.program,
                  supervisor_, clock_);
    return {};
  }
  live::TlsFiles files() const {
    return {.ca = site_.ca, .certificate = site_.client_certificate, .key = site_.client_key};
  }

  void start() {
    std::vector<std::string> argv = serve_arguments(site_);
    argv.insert(argv.begin(), options_.program);
    supervisor_.start({.name = "service", .argv = std::move(argv)});
    if (plan_) plan_->start_responders();
    for (const SiteFeed& feed : site_.feeds) {
      std::vector<std::string> words{options_.program};
      if (!feed.node.empty())
        words.insert(words.end(),
                     {"lab", "exec", feed.node, "--name", site_.lab, "--", options_.program});
      words.insert(words.end(), feed.arguments.begin(), feed.arguments.end());
      using enum ProcessSpec::Output;
      supervisor_.start({.name = feed.name,
                         .argv = std::move(words),
                         .output = feed.sends ? log : lines,
                         .feed = "records"});
    }
  }

  // Is the service ready, and what is out of service?
  void look() {
    const port::Instant now = clock_.now();
    if (now < look_at_) return;
    look_at_ = now + look_every_ns;
    const bool was_ready = std::exchange(is_ready_, get("/readyz").has_value());
    if (is_ready_ != was_ready)
      options_.log("site", is_ready_ ? "the service is ready at " + site_.url
                                     : "the service is not ready: " + trouble_);
    if (!is_ready_ || !plan_) return;
    const auto text = get("/v1/capacity");
    if (!text) return;
    Errors errors;
    const auto view = JsonLine::parse(*text, {"/v1/capacity", 0, 0});
    if (!view) return;
    Parts seen{.out = view->texts("out", errors),
               .moving = view->texts("moving", errors),
               .suspected = view->texts("suspected", errors)};
    if (!errors.empty()) return;
    for (auto* parts : {&seen.out, &seen.moving, &seen.suspected}) std::ranges::sort(*parts);
    // Paths that are found before a drain has its effect are those of before; mostly it has it
    // soon.
    if (seen.moving.empty())
      moving_since_.reset();
    else if (!moving_since_)
      moving_since_ = now;
    if (seen_ && *seen_ == seen) return;
    if (seen_ && moving_since_ && now < *moving_since_ + settle_ns) return;
    std::string reason = "start";
    if (seen_ && seen.out != seen_->out) {
      reason = "parts out of service changed";
    } else if (seen_ && seen.moving != seen_->moving) {
      reason = "a drain or a return took effect";
    } else if (seen_) {
      reason = "cases changed";
      if (now < renew_at_) return;  // in a storm; it is seen again
    }
    renew_at_ = now + suspects_every_ns;
    plan_->renew(std::move(reason), seen.out);
    seen_ = std::move(seen);
  }

  std::optional<std::string> get(const std::string& path) {
    if (!client_) {
      auto client = live::open_service({site_.url, "access.url"}, files(), http_patience);
      if (!client) {
        trouble_ = client.error().text();
        return std::nullopt;
      }
      client_.emplace(std::move(*client));
    }
    auto text = live::get_text(*client_, path, token_, http_patience);
    if (text) return std::move(*text);
    trouble_ = text.error().text();
    client_.reset();
    return std::nullopt;
  }

  void send(const std::string& feed, const std::vector<std::string>& lines) {
    const auto uplink = uplinks_.find(feed);
    if (uplink == uplinks_.end()) return;
    if (const Status sent = uplink->second.send(lines); !sent && clock_.now() >= complain_at_) {
      options_.log("site", fmt::format("{} lines of {} were lost: {}", lines.size(), feed,
                                       sent.error().text()));
      complain_at_ = clock_.now() + 10 * ns_per_s;
    }
  }

  void write_status() {
    const port::Instant now = clock_.now();
    if (now < write_at_) return;
    write_at_ = now + write_every_ns;
    JsonList processes;
    for (const ProcessState& one : supervisor_.states())
      processes.add(JsonObject()
                        .add("name", one.name)
                        .add("state", to_text(one.phase))
                        .add("pid", one.pid)
                        .add("since", one.since)
                        .add("restarts", one.restarts)
                        .add("lines", one.lines)
                        .add("last_error", one.last_error));
    JsonObject out;
    out.add("site", site_.name)
        .add("file", site_.file)
        .add("identity", options_.identity)
        .add("pid", ::getpid())
        .add("since", since_)
        .add("written", clock_.wall())
        .add("url", site_.url)
        .add("ready", is_ready_)
        .add("trouble", is_ready_ ? "" : trouble_);
    if (plan_) {
      const ProbePlan::State& plan = plan_->state();
      out.add("plan", JsonObject()
                          .add("made", plan.made)
                          .add("flows", plan.flows)
                          .add("at", plan.at)
                          .add("took_s", plan.took_s, decimals(3))
                          .add("reason", plan.reason)
                          .add("problem", plan.problem)
                          .add("busy", plan.is_busy));
    }
    JsonList sent;
    for (const auto& [feed, uplink] : uplinks_) {
      const live::Uplink::Counts counts = uplink.counts();
      sent.add(JsonObject()
                   .add("feed", feed)
                   .add("acknowledged", counts.acknowledged)
                   .add("refused", counts.refused)
                   .add("waiting_bytes", counts.waiting_bytes)
                   .add("trouble", uplink.trouble()));
    }
    out.add("sent", sent).add("processes", processes);
    const Status written = write_file(site_.state + "/status.json", std::move(out).text() + "\n");
    if (!written) options_.log("site", written.error().text());
  }

  // Of the order of stopping: what makes lines, what answers probes, the service.
  static int stage_of(const std::string& name) {
    return name == "service" ? 2 : name.starts_with("respond ") ? 1 : 0;
  }

  // Before the service ends, all lines that are left are sent.
  void stop() {
    options_.log("site", "stopping");
    if (plan_) plan_->stop();
    for (const int stage : {0, 1, 2}) {
      const auto is_left = [&](const ProcessState& one) { return stage_of(one.name) <= stage; };
      for (const ProcessState& one : supervisor_.states())
        if (is_left(one)) supervisor_.stop(one.name);
      const port::Instant end = clock_.now() + stop_ns;
      while (std::ranges::any_of(supervisor_.states(), is_left) && clock_.now() < end) {
        supervisor_.step();
        supervisor_.wait(turn_ns / 2, -1);
      }
      if (stage != 1) continue;
      for (auto& [feed, uplink] : uplinks_)
        if (!uplink.flush(farewell))
          options_.log("site", fmt::format("lines of {} stay in {}/spool-{} until the next start",
                                           feed, site_.state, feed));
    }
    ::unlink((site_.state + "/status.json").c_str());
    options_.log("site", "stopped");
  }

  const Site& site_;
  const model::Fabric& fabric_;
  const SiteRunOptions& options_;
  live::SystemClock clock_;
  Timestamp since_ = clock_.wall();
  std::string token_, trouble_;
  std::map<std::string, live::Uplink> uplinks_;
  std::optional<live::HttpClient> client_;
  std::optional<ProbePlan> plan_;
  Supervisor supervisor_;
  bool is_ready_ = false;
  // What routes depend on. A part under suspicion may be down, and routes then avoid it; nobody
  // knows before a look.
  struct Parts {
    std::vector<std::string> out, moving, suspected;
    bool operator==(const Parts&) const = default;
  };
  std::optional<Parts> seen_;
  std::optional<port::Instant> moving_since_;
  port::Instant look_at_, renew_at_, write_at_, complain_at_;
};

}  // namespace

Result<Fd> lock_site(const std::string& state) {
  const std::string path = state + "/lock";
  Fd file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!file.valid()) return system_failure(path, errno);
  if (flock lock = whole_file(); ::fcntl(file.get(), F_OFD_SETLK, &lock) != 0) {
    if (errno != EAGAIN && errno != EACCES) return system_failure(path, errno);
    return Fd();
  }
  return file;
}

bool is_site_running(const std::string& state) {
  const Fd file(::open((state + "/lock").c_str(), O_RDWR | O_CLOEXEC));
  flock lock = whole_file();
  return file.valid() && ::fcntl(file.get(), F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

Result<std::string> site_status(const std::string& state) {
  return read_file(state + "/status.json", std::uint64_t{1} << 26);
}

Status run_site(const Site& site, const model::Fabric& fabric, const SiteRunOptions& options,
                live::Signals& signals) {
  allow_many_files();
  return SiteRun(site, fabric, options).run(signals);
}

}  // namespace weft::app
