// What the API asks of the service behind it. Every call may come from any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/timestamp.hpp"
#include "serve/past.hpp"

namespace weft::serve {

// What became of a batch of lines.
struct Receipt {
  enum class State : std::uint8_t {
    durable,  // all lines but the refused ones survive whatever happens from now on
    busy,     // nothing was taken: too much waits already; to be sent again later
  };
  struct Refused {
    std::uint64_t line = 0;  // of the batch, from 1
    std::string why;
  };
  State state = State::durable;
  std::uint64_t acknowledged = 0;  // lines: taken now, known already, or empty
  std::uint64_t known = 0;         // of them: had been taken before
  std::uint64_t unknown_kinds = 0, unknown_entities = 0;  // of them: records of no use as they are
  std::vector<Refused> refused;                           // the first hundred
  std::uint64_t refused_count = 0;
};

// What a person, or a tool in her name, wants.
struct Command {
  enum class Kind : std::uint8_t {
    approve,      // a proposed drain
    reject,       // the same
    repaired,     // the part was mended: verify it
    rma,          // it goes back to its vendor: `step` of that
    hold,         // do nothing more about this case
    release,      // go on
    kill_switch,  // no action at all from now on
    revive,       // the end of that
    freeze,       // no new drains until `until`
    thaw,         // the end of all freezes set so
    own,          // somebody takes care of this case from now on
    disown,       // nobody does any more
    comment,      // words about this case
  };
  Kind kind = Kind::approve;
  std::string case_id;      // of the first six and the last three
  std::string who, reason;  // of a comment: its text
  std::string owner;        // of own; "": who asks
  Timestamp until;
  std::string step, number;  // of rma: "ordered", "shipped" or "received"; the vendor's number
};

// What the console shows of the network now; `network`: what the log says of it.
enum class View : std::uint8_t { fabric, capacity, probes, feeds, network };

// Records by id that were received within a time; of ids that repeat the first.
struct RecordWish {
  std::vector<std::string> ids;
  Timestamp since, until;
};

struct Health {
  bool is_alive = true;  // its loop turns
  bool is_ready = true;  // and it can take lines: the store works
  std::string why;       // where not
  std::size_t cases_open = 0;
};

// Something that listeners are told as it happens.
struct Announcement {
  std::string event;  // "case", "repair", "audit", ...
  std::string data;   // JSON, one line
};

class Service {
 public:
  virtual ~Service() = default;
  // Lines of a feed: "record" (JSON lines), "syslog" (raw), "evidence" (JSON lines). `sender` is
  // the address they came from. Waits until they are durable. Fails: Errc::io when the store does.
  virtual Result<Receipt> accept(std::string_view feed, std::vector<std::string> lines,
                                 std::string_view sender) = 0;
  // Fails: Errc::unknown for a case that is not known, Errc::infeasible where its state forbids it.
  virtual Status command(const Command& command) = 0;
  // Good and bad minutes of [from, to), as `weft sli --json` has them.
  virtual Result<std::string> sli(Timestamp from, Timestamp to) = 0;
  // JSON: times to repair by part and problem type, repeat offenders, no-fault-found ratio.
  virtual Result<std::string> ledger() = 0;
  // JSON, as the schema of the view's path in the OpenAPI document says.
  virtual Result<std::string> view(View view) = 0;
  // {"items": [{"id", "seq", "received", "feed", "line", "record"}], "missing": [ids]}.
  // Fails: Errc::io.
  virtual Result<std::string> records(const RecordWish& wish) = 0;
  // The network as it was. Kept for the last few instants, so that the pages of one are one
  // reading. Fails: Errc::value for an instant that the log does not reach; Errc::io, also while
  // another one is being read, and where `is_cancelled` says so.
  virtual Result<std::shared_ptr<const Past>> past(Timestamp at,
                                                   const IsCancelled& is_cancelled) = 0;
  // Prometheus text format.
  virtual std::string metrics() = 0;
  virtual Health health() = 0;
};

}  // namespace weft::serve
