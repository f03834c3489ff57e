// The process behind a wire: sockets, ring, clock. Internal to the room.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "adapt/lab/injector.hpp"
#include "adapt/lab/wire.hpp"
#include "base/fd.hpp"
#include "base/result.hpp"

namespace weft::adapt::lab {

// A mapping that unmaps itself.
class Mapping {
 public:
  Mapping() = default;
  static Result<Mapping> of(int fd, std::size_t bytes);
  ~Mapping();
  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&& other) noexcept;
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  std::uint8_t* data() const { return data_; }

 private:
  std::uint8_t* data_ = nullptr;
  std::size_t bytes_ = 0;
};

class WireRelay {
 public:
  // Builds everything and lets frames in. Leaves the calling process in the interface's namespace:
  // only for a process that is to be a wire.
  static Result<WireRelay> open(const WireSpec& spec);
  // Relays until SIGTERM, or until the interface is gone.
  void run();

 private:
  explicit WireRelay(const WireSpec& spec) : spec_(spec), queue_(spec.model) {}

  Status open_count();
  Status open_outside(int inside_netns);
  Status open_inside();
  Status set_up_veth(int mtu);
  Status redirect();

  void wait();
  void read_ring();
  void send_due(std::int64_t now_ns);
  // False when the interface is refusing for now.
  bool send_front();
  void publish();
  void add_unread();
  bool still_there() const;

  WireSpec spec_;
  WireQueue queue_;
  Fd netns_, control_, sender_, ring_, signals_;
  std::unique_ptr<Nft> nft_;
  Mapping frames_, shared_count_;
  std::uint32_t frame_bytes_ = 0, frame_count_ = 0, next_ = 0;
  int interface_index_ = 0;
  std::int64_t retry_ns_ = 0;  // not to send before
  bool stopping_ = false;
};

}  // namespace weft::adapt::lab
