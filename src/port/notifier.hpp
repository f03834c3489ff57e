// Telling people and their tools what happened.
#pragma once

#include <string>

#include "base/result.hpp"
#include "base/timestamp.hpp"

namespace weft::port {

struct Notice {
  std::string id;  // the same for every try
  Timestamp t;
  std::string event;  // "case_opened", "case_closed", "repair_proposed", "repair_drained", ...
  std::string case_id;
  std::string summary;  // one line for people
  std::string body;     // JSON: all there is to know
};

class Notifier {
 public:
  virtual ~Notifier() = default;
  // Sends it, within a time limit of its own. Fails: Errc::io; it may be tried again.
  virtual Status notify(const Notice& notice) = 0;
};

}  // namespace weft::port
