// nftables of one network namespace, in this process.
#pragma once

#include <memory>
#include <string>

#include "base/result.hpp"

struct nft_ctx;

namespace weft::adapt {
inline namespace linux_switch {

class Nft {
 public:
  // Of the calling thread's namespace; it stays there. Fails: Errc::unsupported where the library
  // or the kernel has no nftables.
  static Result<Nft> here();
  // Runs commands, all or none, and returns what they print. Fails: Errc::io with nft's message.
  Result<std::string> run(const std::string& commands);

 private:
  struct Free {
    void operator()(nft_ctx* context) const;
  };
  explicit Nft(nft_ctx* context) : context_(context) {}
  std::unique_ptr<nft_ctx, Free> context_;
};

}  // namespace linux_switch
}  // namespace weft::adapt
