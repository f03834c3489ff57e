// From leaves of one target to samples, with the little memory that this takes.
#pragma once

#include <compare>
#include <cstdint>
#include <expected>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "adapt/gnmi/leaf.hpp"
#include "adapt/gnmi/mapping.hpp"
#include "adapt/gnmi/misread.hpp"
#include "base/timestamp.hpp"
#include "port/sample.hpp"

namespace weft::adapt::gnmi {

// What a component is says its type, which interface an optic belongs to says the interface, and
// which of two counters with the same meaning a target has shows only once it has sent everything:
// so values may be held until then, that is until synced().
class Mapper {
 public:
  static constexpr std::size_t entries_max = 65'536;  // of each kind of memory

  // `misread` must outlive this.
  Mapper(std::string device, MisreadTable& misread)
      : device_(std::move(device)), misread_(misread) {}

  // Appends what the leaf means to `out`: at most three samples. Cost: some look-ups.
  void take(const Leaf& leaf, Timestamp t, std::vector<port::Sample>& out);
  // A list entry is gone: forgets what was remembered of it. That is no failure.
  void forget(std::span<const std::string_view> elements, std::span<const PathKey> keys);
  // The target has sent all there is once: what was held comes out.
  void synced(std::vector<port::Sample>& out);
  // A new session with the target.
  void reset();

 private:
  enum class PartType : std::uint8_t { unknown, fan, supply, card, optic, other };
  struct Held {
    Timestamp t;
    double value = 0;
  };
  struct Part {
    PartType type = PartType::unknown;
    std::optional<Held> status, celsius;
  };
  struct Share {
    std::optional<double> used, whole;
  };
  struct SeriesKey {
    std::string component;
    port::Metric metric;
    std::uint32_t index;
    friend auto operator<=>(const SeriesKey&, const SeriesKey&) = default;
  };
  struct Series {
    std::uint8_t rank = 0;
    std::optional<Held> held;  // none: this rank is the one that is used
  };

  void take_sai(const Leaf& leaf, Timestamp t, std::vector<port::Sample>& out);
  void take_row(const Row& row, const Leaf& leaf, Timestamp t, std::vector<port::Sample>& out);
  void take_type(const Row& row, const Leaf& leaf, std::vector<port::Sample>& out);
  void take_optic(const Row& row, const Leaf& leaf);
  void take_part(const Row& row, const Leaf& leaf, Timestamp t, std::vector<port::Sample>& out);
  void take_share(const Row& row, const Leaf& leaf, Timestamp t, std::vector<port::Sample>& out);
  void take_ranked(const Row& row, port::Sample sample, std::vector<port::Sample>& out);

  std::expected<std::uint32_t, Misread> index_of(const Row& row, const Leaf& leaf,
                                                 const std::string& component);

  void emit_status(const std::string& name, PartType type, Held held,
                   std::vector<port::Sample>& out) const;
  void emit_celsius(const std::string& name, PartType type, Held held,
                    std::vector<port::Sample>& out) const;
  void set_type(const std::string& name, Part& part, PartType type,
                std::vector<port::Sample>& out) const;

  // The entry of `key`, made where there is none; nullptr, and counted, when there are too many.
  template <class Map>
  typename Map::mapped_type* entry(Map& map, const typename Map::key_type& key,
                                   std::string_view path);
  void forget_component(const std::string& name);
  void forget_optic_of(const std::string& interface);
  // The interface that a transceiver belongs to, where known; else its own name.
  std::string optic_component(std::string_view name) const;
  static PartType part_type(std::string_view type);

  std::string device_;
  MisreadTable& misread_;
  bool is_synced_ = false;
  std::map<std::string, Part, std::less<>> parts_;
  std::map<std::string, std::string, std::less<>> interface_of_, optic_of_;
  std::map<SeriesKey, Share> shares_;
  std::map<SeriesKey, Series> series_;
  std::map<SeriesKey, std::string> queue_names_;  // metric queue_bytes stands for all
};

}  // namespace weft::adapt::gnmi
