// What the audit log says of a repair's course: the machine writes it, the ledger reads it back.
#pragma once

#include <cstdint>
#include <string>

#include "base/fields.hpp"
#include "operate/repair/ticket.hpp"

namespace weft::operate::repair {

// What a repair is about; parts by name, "" for none.
struct Subject {
  CauseKind kind = CauseKind::unknown;
  std::string root, part;
};
template <class Archive, Of<Subject> T>
void fields(Archive& ar, T& s) {
  ar("kind", s.kind);
  ar("root", s.root);
  ar("part", s.part);
}

// Of action "opened".
struct Opening {
  std::uint64_t serial = 0;
  Timestamp opened;
  Subject subject;
};
template <class Archive, Of<Opening> T>
void fields(Archive& ar, T& o) {
  ar("serial", o.serial);
  ar("opened", o.opened);
  fields(ar, o.subject);
}

// Of action "stage".
struct StageChange {
  Stage from = Stage::detected, to = Stage::detected;
  std::string why;
  Subject subject;
  Resolution resolution = Resolution::none;
  std::uint32_t rollbacks = 0;
  bool is_offender = false;
};
template <class Archive, Of<StageChange> T>
void fields(Archive& ar, T& c) {
  ar("from", c.from);
  ar("to", c.to);
  ar("why", c.why);
  fields(ar, c.subject);
  ar("resolution", c.resolution);
  ar("rollbacks", c.rollbacks);
  ar("offender", c.is_offender);
}

}  // namespace weft::operate::repair
