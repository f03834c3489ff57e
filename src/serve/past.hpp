// The network as it was: what the log says of an instant that is over.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/timestamp.hpp"
#include "port/store.hpp"

namespace weft::serve {

// How an instant was read, and what lies beside it.
struct PastFacts {
  Timestamp log_from;        // instants from here on can be told
  Timestamp read_from;       // events that were received since were read again
  std::uint64_t events = 0;  // so many
  // Cases that may have been open and began before what is read: as they stood then is not known.
  std::vector<std::string> not_known;
  std::optional<Timestamp> previous, next;  // entries of the audit log, before and after
};
std::string to_json(const PastFacts& facts);

struct Past {
  // Documents of kind case and handling as they stood. Read only; of other kinds there is nothing.
  std::unique_ptr<port::Store> documents;
  std::string network, probes;  // JSON, as the views have them
};

using IsCancelled = std::function<bool()>;  // asked now and then; true: give up

// A document that changed after an instant.
struct Changed {
  std::string id;
  Timestamp opened;  // of a case, by its first record
};
// Cases that changed after `at`, last changed first. Fails: Errc::io; Errc::value where they are
// more than 100,000.
Result<std::vector<Changed>> cases_changed_since(port::Store& store, Timestamp at);

// The number of the first event that was received at or after `t`, of one after the last where
// there is none. Cost: some dozen reads of one row. Fails: Errc::io.
Result<std::uint64_t> first_event_since(port::Store& store, Timestamp t);

// Entries of the audit log nearest to an instant, on both sides. Cost: the same.
Status find_neighbours(port::Store& store, Timestamp at, PastFacts& out);

// Documents as they stood at `at`: `cases` replace those that the store has under these ids, with
// none standing for a case that there was not yet; other cases are those that the store last
// changed before. Cost: that of reading all documents of kind handling, and the audit entries of
// those that changed since. `store` must outlive it. Fails: Errc::io, Errc::parse.
using PastCases = std::map<std::string, std::optional<port::Document>, std::less<>>;
Result<std::unique_ptr<port::Store>> past_documents(port::Store& store, Timestamp at,
                                                    PastCases cases);

}  // namespace weft::serve
