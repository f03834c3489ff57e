#include "adapt/snmp/session.hpp"

#include "adapt/snmp/library.hpp"

namespace weft::adapt::snmp {

namespace {

constexpr std::size_t values_max = 10'000;  // of one answer

}  // namespace

struct Session::Impl {
  void* handle = nullptr;
  Credentials::Version version = Credentials::Version::v2c;
  std::vector<Reply> replies;

  Impl() = default;
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl() {
    // Closing tells pending requests that they time out: nobody is there any more to hear it.
    closing = true;
    if (handle != nullptr) snmp_sess_close(handle);
  }
  bool closing = false, is_discovering = false;

  static int heard(int operation, netsnmp_session* /*session*/, int /*id*/, netsnmp_pdu* pdu,
                   void* self) {
    auto* const impl = static_cast<Impl*>(self);
    if (!impl->closing) impl->hear(operation, pdu);
    return 1;
  }
  void hear(int operation, netsnmp_pdu* pdu);
  void hear_report(netsnmp_pdu& pdu);
  Status send(netsnmp_pdu* pdu);
};

void Session::Impl::hear_report(netsnmp_pdu& pdu) {
  Reply reply;
  const int type = snmpv3_get_report_type(&pdu);
  // Of the first the library has the time now and tries again; the second it could not read.
  if (type == SNMPERR_NOT_IN_TIME_WINDOW || type == SNMPERR_UNKNOWN_REPORT) return;
  // A question without an engine's id and a user: some agents complain of the one, some of the
  // other.
  const bool is_id = is_discovering || type == SNMPERR_UNKNOWN_ENG_ID;
  if (is_id && pdu.securityEngineIDLen > 0) {
    reply.what = Reply::What::engine;
    reply.engine.assign(reinterpret_cast<const char*>(pdu.securityEngineID),
                        pdu.securityEngineIDLen);
  } else {
    reply.what = Reply::What::refusal;
    reply.error = snmp_api_errstring(type);
  }
  replies.push_back(std::move(reply));
}

void Session::Impl::hear(int operation, netsnmp_pdu* pdu) {
  Reply reply;
  switch (operation) {
    case NETSNMP_CALLBACK_OP_RECEIVED_MESSAGE:
      if (pdu == nullptr) return;
      if (pdu->command == SNMP_MSG_REPORT) return hear_report(*pdu);
      if (pdu->command != SNMP_MSG_RESPONSE) return;
      reply.what = Reply::What::answer;
      reply.error_status = static_cast<int>(pdu->errstat);
      for (const netsnmp_variable_list* at = pdu->variables;
           at != nullptr && reply.values.size() < values_max; at = at->next_variable)
        reply.values.emplace_back(oid_of(at->name, at->name_length), value_of(*at));
      break;
    case NETSNMP_CALLBACK_OP_TIMED_OUT:
    case NETSNMP_CALLBACK_OP_SEND_FAILED:
      reply.what = Reply::What::silence;
      break;
    case NETSNMP_CALLBACK_OP_SEC_ERROR:
      // Complaints come this way too. What else is not authentic is not from the agent: go on
      // waiting.
      if (pdu != nullptr && pdu->command == SNMP_MSG_REPORT) hear_report(*pdu);
      return;
    default:
      return;
  }
  replies.push_back(std::move(reply));
}

Status Session::Impl::send(netsnmp_pdu* pdu) {
  if (snmp_sess_async_send(handle, pdu, &Impl::heard, this) != 0) return {};
  int error = 0, library_error = 0;
  char* text = nullptr;
  snmp_sess_error(handle, &error, &library_error, &text);
  const std::string what = text == nullptr ? "cannot send" : text;
  free(text);
  snmp_free_pdu(pdu);
  return fail(Errc::io, {}, what, "");
}

Session::Session(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() = default;

Result<Session> Session::open(const Endpoint& agent, const Credentials& who,
                              const std::string& engine, const Options& options) {
  start_library();
  WEFT_TRY_STATUS(check(agent, {}));
  const bool is_six = agent.address.find(':') != std::string::npos;
  std::string peer = (is_six ? "udp6:[" + agent.address + "]" : "udp:" + agent.address) + ":" +
                     std::to_string(agent.port);
  auto impl = std::make_unique<Impl>();
  impl->version = who.version;
  netsnmp_session session;
  snmp_sess_init(&session);
  session.peername = peer.data();
  session.timeout = static_cast<long>(options.timeout.count()) * 1'000;
  session.retries = options.retries;
  // The library would wait for an agent's id: discover() does not.
  session.flags |= SNMP_FLAGS_DONT_PROBE;
  std::string community = who.community, user = who.user, id = engine;
  if (who.version == Credentials::Version::v2c) {
    session.version = SNMP_VERSION_2c;
    session.community = reinterpret_cast<u_char*>(community.data());
    session.community_len = community.size();
  } else if (engine.empty()) {
    session.version = SNMP_VERSION_3;
    session.securityModel = SNMP_SEC_MODEL_USM;
    session.securityLevel = SNMP_SEC_LEVEL_NOAUTH;
    user.clear();
    session.securityName = user.data();
  } else {
    WEFT_TRY_STATUS(set_user(who, session));
    session.securityName = user.data();
    session.securityNameLen = user.size();
    session.securityEngineID = reinterpret_cast<u_char*>(id.data());
    session.securityEngineIDLen = id.size();
    session.contextEngineID = session.securityEngineID;
    session.contextEngineIDLen = session.securityEngineIDLen;
    if (usm_create_user_from_session(&session) != SNMPERR_SUCCESS)
      return fail(Errc::value, {}, "net-snmp does not accept the SNMP v3 user",
                  "check its passwords");
  }
  impl->handle = snmp_sess_open(&session);
  if (impl->handle == nullptr)
    return fail(
        Errc::io, {},
        "cannot open a socket to " + peer + ": " + snmp_api_errstring(session.s_snmp_errno));
  return Session(std::move(impl));
}

Status Session::discover() {
  add_nobody();
  impl_->is_discovering = true;
  netsnmp_pdu* const pdu = snmp_pdu_create(SNMP_MSG_GET);
  pdu->version = SNMP_VERSION_3;
  pdu->securityName = strdup("");
  pdu->securityNameLen = 0;
  pdu->securityLevel = SNMP_SEC_LEVEL_NOAUTH;
  pdu->securityModel = SNMP_SEC_MODEL_USM;
  return impl_->send(pdu);
}

namespace {
void add(netsnmp_pdu* pdu, std::span<const Oid> oids) {
  for (const Oid& one : oids) {
    const std::vector<oid> wide(one.begin(), one.end());
    snmp_add_null_var(pdu, wide.data(), wide.size());
  }
}
}  // namespace

Status Session::get(std::span<const Oid> oids) {
  netsnmp_pdu* const pdu = snmp_pdu_create(SNMP_MSG_GET);
  add(pdu, oids);
  return impl_->send(pdu);
}

Status Session::get_bulk(std::span<const Oid> oids, int repetitions) {
  netsnmp_pdu* const pdu = snmp_pdu_create(SNMP_MSG_GETBULK);
  pdu->non_repeaters = 0;
  pdu->max_repetitions = repetitions;
  add(pdu, oids);
  return impl_->send(pdu);
}

int Session::fd() const {
  const netsnmp_transport* const transport = snmp_sess_transport(impl_->handle);
  return transport == nullptr ? -1 : transport->sock;
}

void Session::pump() {
  read_if_ready(impl_->handle, fd());
  snmp_sess_timeout(impl_->handle);
}

std::optional<Reply> Session::take() {
  if (impl_->replies.empty()) return std::nullopt;
  Reply out = std::move(impl_->replies.front());
  impl_->replies.erase(impl_->replies.begin());
  return out;
}

}  // namespace weft::adapt::snmp
