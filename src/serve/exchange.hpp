// Bodies in and answers out over one connection: the part of HTTP that cpp-httplib does for us.
//
// Heads are read by ourselves (wire, http), for the library bounds neither their lines nor their
// time. It gets a head of few words that we vouch for, and knows no route.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "serve/http.hpp"
#include "serve/wire.hpp"

namespace weft::serve {

// What becomes of one request.
class Handling {
 public:
  virtual ~Handling() = default;
  // An answer that needs no body, such as a refusal; none where answer() is to be asked.
  virtual std::optional<Reply> before_body() = 0;
  virtual Reply answer(std::string body) = 0;
};

class Exchange {
 public:
  struct Patience {
    std::chrono::milliseconds body{60'000};   // for all of it
    std::chrono::milliseconds write{10'000};  // for some bytes to be taken
  };
  // The wire must outlive it.
  Exchange(Wire& wire, const Patience& patience);
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;
  ~Exchange();

  // Answers the request with this head. Returns the status that was sent, 0 where none could be,
  // and whether another request may follow.
  struct Outcome {
    int status = 0;
    bool may_go_on = false;
  };
  Outcome serve(const Head& head, Handling& handling);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace weft::serve
