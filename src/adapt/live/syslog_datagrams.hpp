// Syslog over UDP: a datagram is a message.
#pragma once

#include <memory>
#include <vector>

#include "adapt/live/syslog_queue.hpp"
#include "base/fd.hpp"

namespace weft::adapt::live {

class SyslogDatagrams {
 public:
  SyslogDatagrams(SyslogQueue& queue, SyslogListener::Counts& counts);
  ~SyslogDatagrams();
  SyslogDatagrams(const SyslogDatagrams&) = delete;
  SyslogDatagrams& operator=(const SyslogDatagrams&) = delete;

  Status open();
  Status add(Fd socket);
  // What the kernel granted to the last one added, in bytes.
  std::size_t receive_bytes() const;
  // To be read where there is something to receive.
  int fd() const { return epoll_.get(); }

  enum class Room : std::uint8_t { kept, given_up };
  // A turn: at most 1,024 datagrams of each socket, and no more than the queue has room for. Given
  // up: what is beyond its room is read and counted as abandoned. Returns how many were read.
  // Cost: half a microsecond each.
  std::size_t receive(port::Clock& clock, Room room);
  // Asks the kernel, which tells of itself only with the next datagram that it has room for.
  void count_drops();

 private:
  struct Socket {
    Fd fd;
    std::uint32_t dropped = 0;
  };
  struct Buffers;

  std::size_t receive_some(Socket& socket, port::Clock& clock, Room room);
  void take(Socket& socket, std::size_t i, port::Instant now, Room room);
  std::string_view sender_of(std::size_t i);
  void note_drops(Socket& socket, std::uint32_t dropped);

  SyslogQueue& queue_;
  SyslogListener::Counts& counts_;
  Fd epoll_;
  std::vector<Socket> sockets_;
  std::unique_ptr<Buffers> buffers_;
};

}  // namespace weft::adapt::live
