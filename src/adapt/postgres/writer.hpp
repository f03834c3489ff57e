// The connection that writes: its lease, and commits that happen once.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "adapt/postgres/session.hpp"
#include "base/result.hpp"
#include "port/store.hpp"
#include "port/store_image.hpp"

namespace weft::adapt::postgres {

// A name unlike that of any other store that was ever opened, for a Writer. Fails: Errc::io.
Result<std::string> new_instance();

// Only one session of a database writes: the one that holds the advisory lock `writer_lock`. The
// server gives the lock to the next when that session has ended, which also means that nothing of
// it can be committed any more. So a commit whose answer was lost is settled by whoever gets the
// lock back: the commit's number stands in our row of table `writers` or it never will.
//
// Used by one thread at a time.
class Writer {
 public:
  // `instance` is unlike that of any other store that was ever opened: letters and digits.
  Writer(Target target, std::string instance);

  // As port::Store.
  Status claim();
  bool is_superseded() const { return is_superseded_; }  // any thread
  Result<std::uint64_t> commit(const port::Commit& commit);
  // Runs forget_events or forget_documents; how many rows.
  Result<std::uint64_t> forget(Call call);
  // Everything in the image, with its numbers, in one transaction, in place of what is there.
  // Fails: Errc::infeasible where the store has been used and that is refused.
  Status take(port::StoreImage& image, port::IfUsed if_used);

 private:
  // A commit of which it is not known whether it was carried out.
  struct Doubt {
    port::Commit commit;
    std::int64_t number = 0;
    std::optional<std::uint64_t> first;  // known by now: it was, and this is its first event
  };
  Status ready();
  Status take_lock(Session& session);
  Status end_our_earlier_session(Session& session);
  Status name_holder(Session& session);
  Status settle(Session& session);
  Status check_others(std::int64_t commits);
  Status fill(port::StoreImage& image, port::IfUsed if_used);
  Result<std::uint64_t> ask_again(const port::Commit& commit, Error failure);

  Target target_;
  std::string instance_;
  std::optional<Session> session_;
  std::int64_t number_ = 0;  // of the last commit
  std::optional<std::int64_t>
      others_;  // commits of all other instances, when this became the writer
  std::atomic<bool> is_superseded_ = false;
  std::optional<Doubt> doubt_;
};

}  // namespace weft::adapt::postgres
