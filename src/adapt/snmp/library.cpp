#include "adapt/snmp/library.hpp"

#include <poll.h>

#include <algorithm>
#include <mutex>

#include "adapt/snmp/session.hpp"

namespace weft::adapt::snmp {

namespace {

constexpr std::size_t text_bytes_max = 1'024;
constexpr int messages_max = 64;  // taken at once, so that one agent cannot hold the others up

struct Protocol {
  oid* first;  // the library's own, which it never changes
  std::size_t size;
};

template <std::size_t n>
Protocol protocol(oid (&parts)[n]) {
  return {parts, n};
}

Protocol protocol_of(Credentials::Auth auth) {
  using enum Credentials::Auth;
  switch (auth) {
    case md5:
      return protocol(usmHMACMD5AuthProtocol);
    case sha:
      return protocol(usmHMACSHA1AuthProtocol);
    case sha256:
      return protocol(usmHMAC192SHA256AuthProtocol);
    case sha512:
      return protocol(usmHMAC384SHA512AuthProtocol);
    case none:
      break;
  }
  return protocol(usmNoAuthProtocol);
}

Protocol protocol_of(Credentials::Priv priv) {
  using enum Credentials::Priv;
  switch (priv) {
    case des:
      return protocol(usmDESPrivProtocol);
    case aes:
      return protocol(usmAESPrivProtocol);
    case none:
      break;
  }
  return protocol(usmNoPrivProtocol);
}

bool make_key(const Protocol& auth, const std::string& password, u_char* key, std::size_t& size) {
  size = USM_AUTH_KU_LEN;
  return generate_Ku(auth.first, static_cast<u_int>(auth.size),
                     reinterpret_cast<const u_char*>(password.data()), password.size(), key,
                     &size) == SNMPERR_SUCCESS;
}

}  // namespace

void start_library() {
  // The library's state is one for the process and cannot be taken down safely.
  static std::once_flag once;
  std::call_once(once, [] {
    // With no handler at all the library writes to standard error.
    netsnmp_register_loghandler(NETSNMP_LOGHANDLER_NONE, LOG_DEBUG);
    for (const int flag :
         {NETSNMP_DS_LIB_DONT_READ_CONFIGS, NETSNMP_DS_LIB_DONT_PERSIST_STATE,
          NETSNMP_DS_LIB_DISABLE_PERSISTENT_LOAD, NETSNMP_DS_LIB_DISABLE_PERSISTENT_SAVE})
      netsnmp_ds_set_boolean(NETSNMP_DS_LIBRARY_ID, flag, 1);
    netsnmp_set_mib_directory("");
    init_snmp("weft");
  });
}

Oid oid_of(const oid* first, std::size_t count) {
  Oid out(std::min<std::size_t>(count, MAX_OID_LEN));
  std::transform(first, first + out.size(), out.begin(),
                 [](oid part) { return static_cast<std::uint32_t>(part); });
  return out;
}

Value value_of(const netsnmp_variable_list& variable) {
  Value out;
  const auto word = [&] { return static_cast<std::uint32_t>(*variable.val.integer); };
  if (variable.val_len != 0 && variable.val.string == nullptr) return out;
  switch (variable.type) {
    case ASN_INTEGER:
      out.kind = Value::Kind::integer;
      out.integer = *variable.val.integer;
      break;
    case ASN_COUNTER:
    case ASN_GAUGE:
    case ASN_TIMETICKS:
      out.kind = Value::Kind::natural;
      out.natural = word();
      break;
    case ASN_COUNTER64:
      out.kind = Value::Kind::natural;
      out.natural =
          (std::uint64_t{static_cast<std::uint32_t>(variable.val.counter64->high)} << 32) +
          static_cast<std::uint32_t>(variable.val.counter64->low);
      break;
    case ASN_IPADDRESS:
    case ASN_OCTET_STR:
      out.kind = variable.type == ASN_IPADDRESS ? Value::Kind::address : Value::Kind::text;
      out.text.assign(reinterpret_cast<const char*>(variable.val.string),
                      std::min(variable.val_len, text_bytes_max));
      break;
    case ASN_OBJECT_ID:
      out.kind = Value::Kind::oid;
      out.oid = oid_of(variable.val.objid, variable.val_len / sizeof(oid));
      break;
    default:
      break;  // noSuchObject, endOfMibView, and what nobody asked for
  }
  return out;
}

Status set_user(const Credentials& who, netsnmp_session& session) {
  WEFT_TRY_STATUS(check(who, {}));
  session.version = SNMP_VERSION_3;
  session.securityModel = SNMP_SEC_MODEL_USM;
  const bool is_authentic = who.auth != Credentials::Auth::none;
  const bool is_private = who.priv != Credentials::Priv::none;
  session.securityLevel = is_private     ? SNMP_SEC_LEVEL_AUTHPRIV
                          : is_authentic ? SNMP_SEC_LEVEL_AUTHNOPRIV
                                         : SNMP_SEC_LEVEL_NOAUTH;
  const Protocol auth = protocol_of(who.auth), priv = protocol_of(who.priv);
  session.securityAuthProto = auth.first;
  session.securityAuthProtoLen = auth.size;
  session.securityPrivProto = priv.first;
  session.securityPrivProtoLen = priv.size;
  if ((is_authentic &&
       !make_key(auth, who.auth_password, session.securityAuthKey, session.securityAuthKeyLen)) ||
      (is_private &&
       !make_key(auth, who.priv_password, session.securityPrivKey, session.securityPrivKeyLen)))
    return fail(Errc::value, {}, "cannot derive a key from the SNMP v3 password", "change it");
  return {};
}

void add_nobody() {
  char nobody[] = "";
  if (usm_get_user(nullptr, 0, nobody) != nullptr) return;
  usmUser* const user = usm_create_user();
  if (user == nullptr) return;
  user->name = strdup("");
  user->secName = strdup("");
  usm_add_user(user);
}

void read_if_ready(void* session, int fd) {
  if (fd < 0) return;
  for (int i = 0; i < messages_max; ++i) {
    pollfd ready{fd, POLLIN, 0};
    if (poll(&ready, 1, 0) <= 0 || (ready.revents & POLLIN) == 0) return;
    netsnmp_large_fd_set set;
    netsnmp_large_fd_set_init(&set, FD_SETSIZE);
    netsnmp_large_fd_setfd(fd, &set);
    snmp_sess_read2(session, &set);
    netsnmp_large_fd_set_cleanup(&set);
  }
}

}  // namespace weft::adapt::snmp
