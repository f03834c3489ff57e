#include "adapt/linux_switch/nft.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <nftables/libnftables.h>

#include <type_traits>

#include "base/text.hpp"

namespace weft::adapt {
inline namespace linux_switch {
namespace {

// libnftables, loaded when it is first needed: it brings five more libraries, which every other
// command would load at its start too.
struct NftLibrary {
  decltype(&nft_ctx_new) open = nullptr;
  decltype(&nft_ctx_free) close = nullptr;
  decltype(&nft_ctx_buffer_output) keep_output = nullptr;
  decltype(&nft_ctx_buffer_error) keep_errors = nullptr;
  decltype(&nft_ctx_get_output_buffer) output = nullptr;
  decltype(&nft_ctx_get_error_buffer) errors = nullptr;
  decltype(&nft_run_cmd_from_buffer) run = nullptr;
  bool is_complete = false;
};

NftLibrary load_nft_library() {
  NftLibrary out;
  void* const library = dlopen("libnftables.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return out;
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
    return function != nullptr;
  };
  out.is_complete = find(out.open, "nft_ctx_new") && find(out.close, "nft_ctx_free") &&
                    find(out.keep_output, "nft_ctx_buffer_output") &&
                    find(out.keep_errors, "nft_ctx_buffer_error") &&
                    find(out.output, "nft_ctx_get_output_buffer") &&
                    find(out.errors, "nft_ctx_get_error_buffer") &&
                    find(out.run, "nft_run_cmd_from_buffer");
  return out;
}

const NftLibrary& nft_library() {
  static const NftLibrary library = load_nft_library();
  return library;
}

}  // namespace

void Nft::Free::operator()(nft_ctx* context) const { nft_library().close(context); }

Result<Nft> Nft::here() {
  const NftLibrary& library = nft_library();
  if (!library.is_complete)
    return fail(Errc::unsupported, {}, "libnftables.so.1 cannot be loaded",
                "install the package libnftables1");
  Nft nft(library.open(NFT_CTX_DEFAULT));
  if (!nft.context_ || library.keep_output(nft.context_.get()) != 0 ||
      library.keep_errors(nft.context_.get()) != 0)
    return fail(Errc::unsupported, {}, "nftables cannot be opened",
                "the kernel needs CONFIG_NF_TABLES and the netdev egress hook (Linux 5.16)");
  return nft;
}

Result<std::string> Nft::run(const std::string& commands) {
  const NftLibrary& library = nft_library();
  const int status = library.run(context_.get(), commands.c_str());
  const char* const printed = library.output(context_.get());
  const char* const said = library.errors(context_.get());
  if (status == 0) return std::string(printed == nullptr ? "" : printed);
  const std::string_view message = trim(said == nullptr ? "" : said);
  return fail(Errc::io, {}, fmt::format("nftables: {}", message.substr(0, message.find('\n'))));
}

}  // namespace linux_switch
}  // namespace weft::adapt
