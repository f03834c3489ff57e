// What every command says of itself beyond its options, and the texts that are made of all of it:
// completion for shells and man pages.
#pragma once

#include <string>

#include "base/result.hpp"

namespace CLI {
class App;
}

namespace weft::cli {

// Groups of --help and examples behind that of each command.
void describe_commands(CLI::App& app);

// The script by which bash, zsh or fish complete commands, options and their values. Fails:
// Errc::unknown with the shells there are.
Result<std::string> completion(const CLI::App& app, const std::string& shell);

// roff for man(1): of weft, or of one of its commands.
std::string man_page(const CLI::App& app, const CLI::App* command);

}  // namespace weft::cli
