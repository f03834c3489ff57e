// A wire in user space, slipped under an interface that stays up: delay, jitter, reordering,
// corruption, duplication, a slow queue with ECN; for kernels with or without netem.
//
//        the switch's namespace                         the wire's own
//   stack -> [nft egress of IF] --fwd--> weft-ID ===veth=== inner -> ring -> WireQueue
//                 ^ passes what is marked                                       |
//                 +------------------- AF_PACKET on IF, SO_MARK ----------------+--> the cable
//
// The wire's frames pass the egress hook a second time (a packet socket's do, even past the queue
// discipline); their mark tells filters and wires that have seen them to leave them alone. Several
// wires on one interface stand in line by their index. All that the kernel holds for a wire (the
// veth, and the table, which belongs to the process's socket) goes with its process, so that a
// crash heals the link. Offloads are off on the veth: every frame is as long as on a real cable
// and has its checksums.
#pragma once

#include <cstdint>
#include <string>

#include "adapt/lab/process.hpp"
#include "adapt/lab/wire_queue.hpp"
#include "base/result.hpp"

namespace weft::adapt::lab {

inline constexpr unsigned wire_index_max = 255;

struct WireSpec {
  std::string netns, interface;  // whose egress it takes
  std::string node;              // for the journal
  std::string name;              // of its process, table and veth; at most 15 characters
  std::uint8_t index = 1;        // place in line, from 1; unique on the interface
  std::string count_file;        // where it keeps its WireCount
  WireModel model;
};

// Starts a wire; frames go through it when this returns. SIGTERM ends it: frames that wait leave at
// once, in order. It ends by itself when the interface or the namespace's name is gone.
// Fails: Errc::io, Errc::unsupported without the nft egress hook (Linux 5.16); nothing is left
// then. Cost: about 20 ms; then 8 us of CPU a frame when busy (100 kpps), up to 40 when every frame
// wakes it (measured on a busy virtual machine); 8 MiB and its frames.
Result<LabProcess> start_wire(const WireSpec& spec, const std::string& journal);

// Also after the wire's end. Fails: Errc::io.
Result<WireCount> read_wire_count(const std::string& count_file);

}  // namespace weft::adapt::lab
