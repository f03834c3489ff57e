#include "adapt/snmp/trap_receiver.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <deque>
#include <utility>

#include "adapt/snmp/library.hpp"
#include "base/hash.hpp"

namespace weft::adapt::snmp {

namespace {

constexpr std::size_t traps_max = 10'000, recent_max = 512, engine_bytes_max = 32;
const Oid trap_oid{1, 3, 6, 1, 6, 3, 1, 1, 4, 1, 0};
const Oid uptime_oid{1, 3, 6, 1, 2, 1, 1, 3, 0};

std::uint64_t refused_by_library() {
  std::uint64_t out = 0;
  for (int i = STAT_USM_STATS_START; i <= STAT_USM_STATS_END; ++i) {
    // Engines that ask for our id, and for our time, are not refused but answered.
    if (i == STAT_USMSTATSNOTINTIMEWINDOWS) continue;
    out += snmp_get_statistic(i);
  }
  return out;
}

std::optional<std::string> parse_hex(std::string_view text) {
  if (text.starts_with("0x")) text.remove_prefix(2);
  if (text.size() % 2 != 0 || text.size() / 2 > engine_bytes_max) return std::nullopt;
  const auto digit = [](char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
  };
  std::string out;
  for (std::size_t i = 0; i < text.size(); i += 2) {
    const int high = digit(text[i]), low = digit(text[i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    out += static_cast<char>(high * 16 + low);
  }
  return out;
}

// In the same time whatever the first difference.
bool is_same(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    difference |= static_cast<unsigned>(static_cast<unsigned char>(a[i] ^ b[i]));
  return difference == 0;
}

// The sender, out of the library's own form of UDP addresses.
std::string sender_of(const netsnmp_pdu& pdu) {
  if (pdu.transport_data == nullptr ||
      static_cast<std::size_t>(pdu.transport_data_length) < sizeof(netsnmp_indexed_addr_pair))
    return {};
  const auto& pair = *static_cast<const netsnmp_indexed_addr_pair*>(pdu.transport_data);
  std::array<char, INET6_ADDRSTRLEN> text{};
  const sockaddr& address = pair.remote_addr.sa;
  const void* const bytes = address.sa_family == AF_INET
                                ? static_cast<const void*>(&pair.remote_addr.sin.sin_addr)
                                : static_cast<const void*>(&pair.remote_addr.sin6.sin6_addr);
  if (inet_ntop(address.sa_family, bytes, text.data(), text.size()) == nullptr) return {};
  std::string_view out(text.data());
  if (out.starts_with("::ffff:")) out.remove_prefix(7);  // IPv4 by way of IPv6
  return std::string(out);
}

// A user of that engine, ours where it names none. Fails: Errc::value.
Status add_user(const TrapUser& user) {
  const auto engine = parse_hex(user.engine);
  const Where where{user.credentials.user, 0, 0};
  if (!engine || user.credentials.version != Credentials::Version::v3)
    return fail(Errc::value, where, "an engine id of at most 32 bytes and a v3 user are required",
                "write hexadecimal digits, e.g. 80001f8804");
  netsnmp_session session;
  snmp_sess_init(&session);
  std::string name = user.credentials.user, id = *engine;
  WEFT_TRY_STATUS(set_user(user.credentials, session));
  if (id.empty()) {
    std::size_t size = 0;
    u_char* const own = snmpv3_generate_engineID(&size);
    if (own != nullptr) id.assign(reinterpret_cast<const char*>(own), size);
    free(own);
  }
  session.securityName = name.data();
  session.securityNameLen = name.size();
  session.securityEngineID = reinterpret_cast<u_char*>(id.data());
  session.securityEngineIDLen = id.size();
  if (usm_create_user_from_session(&session) == SNMPERR_SUCCESS) return {};
  return fail(Errc::value, where, "net-snmp does not accept the SNMP v3 user",
              "check its passwords");
}

}  // namespace

struct TrapReceiver::Impl {
  TrapReceiverOptions options;
  port::Clock& clock;
  void* handle = nullptr;
  std::deque<Trap> traps;
  std::deque<std::uint64_t> recent;  // hashes of what came last
  TrapReceiverCounts counts;
  std::uint64_t refused_before = 0;

  Impl(const TrapReceiverOptions& how, port::Clock& time) : options(how), clock(time) {}
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl() {
    if (handle != nullptr) snmp_sess_close(handle);
  }

  static int heard(int operation, netsnmp_session* /*session*/, int /*id*/, netsnmp_pdu* pdu,
                   void* self) {
    if (operation == NETSNMP_CALLBACK_OP_RECEIVED_MESSAGE && pdu != nullptr)
      static_cast<Impl*>(self)->hear(*pdu);
    return 1;
  }
  bool is_allowed(const netsnmp_pdu& pdu) const;
  void hear(netsnmp_pdu& pdu);
  void acknowledge(netsnmp_pdu& pdu);
  bool is_repeated(const Trap& trap, std::uint64_t uptime);
};

bool TrapReceiver::Impl::is_allowed(const netsnmp_pdu& pdu) const {
  if (pdu.version == SNMP_VERSION_2c) {
    const std::string_view given(reinterpret_cast<const char*>(pdu.community), pdu.community_len);
    bool is_known = false;
    for (const std::string& community : options.communities) is_known |= is_same(given, community);
    return is_known;
  }
  if (pdu.version != SNMP_VERSION_3 || pdu.securityName == nullptr) return false;
  // The library lets a user send with less than it has: only messages as well kept as can be count.
  const std::string_view name(pdu.securityName, pdu.securityNameLen);
  return std::ranges::any_of(options.users, [&](const TrapUser& user) {
    const Credentials& who = user.credentials;
    const int level = who.priv != Credentials::Priv::none   ? SNMP_SEC_LEVEL_AUTHPRIV
                      : who.auth != Credentials::Auth::none ? SNMP_SEC_LEVEL_AUTHNOPRIV
                                                            : SNMP_SEC_LEVEL_NOAUTH;
    return name == who.user && pdu.securityLevel >= level;
  });
}

void TrapReceiver::Impl::acknowledge(netsnmp_pdu& pdu) {
  netsnmp_pdu* const answer = snmp_clone_pdu(&pdu);
  if (answer == nullptr) return;
  answer->command = SNMP_MSG_RESPONSE;
  answer->errstat = 0;
  answer->errindex = 0;
  if (snmp_sess_send(handle, answer) == 0) snmp_free_pdu(answer);
}

bool TrapReceiver::Impl::is_repeated(const Trap& trap, std::uint64_t uptime) {
  Digest digest;
  digest.add(trap.from);
  digest.add(uptime);
  for (const std::uint32_t part : trap.kind) digest.add(std::uint64_t{part});
  for (const auto& [oid, value] : trap.values) {
    digest.add(to_text(oid));
    digest.add(shown(value));
  }
  if (std::ranges::find(recent, digest.value()) != recent.end()) return true;
  recent.push_back(digest.value());
  if (recent.size() > recent_max) recent.pop_front();
  return false;
}

void TrapReceiver::Impl::hear(netsnmp_pdu& pdu) {
  const bool is_inform = pdu.command == SNMP_MSG_INFORM;
  if (!is_inform && pdu.command != SNMP_MSG_TRAP2) {
    ++counts.refused;  // v1, and what is no trap
    return;
  }
  if (!is_allowed(pdu)) {
    ++counts.refused;
    return;
  }
  Trap trap{clock.wall(), sender_of(pdu), {}, {}};
  std::uint64_t uptime = 0;
  for (const netsnmp_variable_list* at = pdu.variables; at != nullptr; at = at->next_variable) {
    Oid oid = oid_of(at->name, at->name_length);
    Value value = value_of(*at);
    if (oid == uptime_oid)
      uptime = value.natural;
    else if (oid == trap_oid)
      trap.kind = std::move(value.oid);
    else
      trap.values.emplace_back(std::move(oid), std::move(value));
  }
  if (trap.kind.empty()) {
    ++counts.malformed;
    return;
  }
  if (traps.size() >= traps_max) {
    ++counts.dropped;  // not acknowledged: an inform comes again
    return;
  }
  if (is_inform) acknowledge(pdu);
  if (is_repeated(trap, uptime)) {
    ++counts.duplicates;
    return;
  }
  ++counts.heard;
  counts.informs += is_inform ? 1 : 0;
  traps.push_back(std::move(trap));
}

TrapReceiver::TrapReceiver(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TrapReceiver::TrapReceiver(TrapReceiver&&) noexcept = default;
TrapReceiver& TrapReceiver::operator=(TrapReceiver&&) noexcept = default;
TrapReceiver::~TrapReceiver() = default;

Result<TrapReceiver> TrapReceiver::open(const TrapReceiverOptions& options, port::Clock& clock) {
  start_library();
  WEFT_TRY_STATUS(check(options.listen, {}));
  if (options.communities.empty() && options.users.empty())
    return fail(Errc::value, {}, "no trap senders are permitted", "set a community or a user");
  for (const TrapUser& user : options.users) WEFT_TRY_STATUS(add_user(user));
  const bool is_six = options.listen.address.find(':') != std::string::npos;
  const std::string local = fmt::format(
      "{}:{}", is_six ? "udp6:[" + options.listen.address + "]" : "udp:" + options.listen.address,
      options.listen.port);
  auto impl = std::make_unique<Impl>(options, clock);
  netsnmp_transport* const transport = netsnmp_transport_open_server("snmptrap", local.c_str());
  if (transport == nullptr)
    return fail(Errc::io, {}, fmt::format("cannot listen on {}", local),
                "check that the address is local and free; ports below 1024 need privileges");
  netsnmp_session session;
  snmp_sess_init(&session);
  session.callback = &Impl::heard;
  session.callback_magic = impl.get();
  session.isAuthoritative = SNMP_SESS_UNKNOWNAUTH;
  impl->handle = snmp_sess_add(&session, transport, nullptr, nullptr);  // frees it where it fails
  if (impl->handle == nullptr)
    return fail(Errc::io, {}, fmt::format("net-snmp cannot listen on {}", local));
  impl->refused_before = refused_by_library();
  return TrapReceiver(std::move(impl));
}

void TrapReceiver::step() { read_if_ready(impl_->handle, fd()); }

void TrapReceiver::wait(port::Instant until) {
  const std::int64_t left = until - impl_->clock.now();
  if (left <= 0 || !impl_->traps.empty()) return;
  pollfd ready{fd(), POLLIN, 0};
  const timespec span{left / ns_per_s, left % ns_per_s};
  ppoll(&ready, 1, &span, nullptr);
}

std::optional<Trap> TrapReceiver::take() {
  if (impl_->traps.empty()) return std::nullopt;
  Trap out = std::move(impl_->traps.front());
  impl_->traps.pop_front();
  return out;
}

TrapReceiverCounts TrapReceiver::counts() const {
  TrapReceiverCounts out = impl_->counts;
  out.unauthentic = refused_by_library() - impl_->refused_before;
  return out;
}

int TrapReceiver::fd() const {
  const netsnmp_transport* const transport = snmp_sess_transport(impl_->handle);
  return transport == nullptr ? -1 : transport->sock;
}

}  // namespace weft::adapt::snmp
