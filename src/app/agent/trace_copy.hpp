// Traces of this host's training processes, sent to the service.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "adapt/live/http_client.hpp"
#include "base/result.hpp"
#include "base/timestamp.hpp"
#include "observe/colltrace/ring.hpp"

namespace weft::app {

struct TraceCopySettings {
  adapt::live::ServiceUrl service;
  std::string token;  // with the role ingest; "": none
  adapt::live::TlsFiles tls;
  std::string host;    // as the fabric calls it
  std::string folder;  // of the rings
  std::string job;     // "": its rings say, or the service's list
  std::int64_t every_ns = 30 * ns_per_s;
};

// A thread that looks at every multiple of `every_ns` since 1970, so that all hosts copy at about
// the same time; it sends what it copied spread over half of that, each host at its own place. What
// has not changed is sent again when it is twice as old, so that the service sees that it stands
// still, and every five minutes, lest the service forget it. Not sent are
// the traces of processes that ended in order, of other machines that share the folder, and of
// processes that others have replaced (colltrace::are_current). A trace that the service refuses is
// not kept; one that it cannot take now is tried again until the next copy replaces it. Trouble is
// reported once on standard error, and its end.
class TraceCopy {
 public:
  // Fails: Errc::io where the folder cannot be read.
  static Result<std::unique_ptr<TraceCopy>> open(TraceCopySettings settings);
  explicit TraceCopy(TraceCopySettings settings);  // for open()

 private:
  struct Trace {
    std::string name, packed;
    std::uint64_t digest = 0;
    observe::colltrace::RingLife life = {};
  };
  struct Sent {
    std::uint64_t digest = 0;
    std::int64_t first_ns = 0, at_ns = 0;
  };

  void run(const std::stop_token& stop);
  bool rest(const std::stop_token& stop, std::int64_t until_ns);
  std::vector<Trace> copy(const std::stop_token& stop, std::int64_t now_ns, std::string& trouble);
  Result<std::optional<Trace>> copy_one(const std::string& path, std::int64_t now_ns) const;
  Status send_patiently(const std::stop_token& stop, const Trace& trace, std::int64_t until_ns);
  Status send(const std::stop_token& stop, const Trace& trace);
  void report(std::string trouble);

  TraceCopySettings settings_;
  std::map<std::string, Sent> sent_;  // by name
  std::optional<adapt::live::HttpClient> client_;
  std::string trouble_;
  bool were_too_many_ = false;
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::jthread thread_;
};

}  // namespace weft::app
