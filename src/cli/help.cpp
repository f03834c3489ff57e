#include "cli/help.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cmath>
#include <memory>
#include <set>
#include <vector>

#include "base/check.hpp"
#include "base/text.hpp"

namespace weft::cli {
namespace {

struct CommandHelp {
  const char *name, *group;
  const char* examples;  // a line each: command, two spaces or more, what it does
};

constexpr const char *simulate = "Simulate", *fabrics = "Fabrics", *plan = "Plan",
                     *wan = "Backbone and edge", *monitor = "Monitor", *operate = "Operate",
                     *about = "About weft";

constexpr std::array<CommandHelp, 55> command_help{{
    {"run", simulate,
     "weft run scenarios/llama3-405b.yaml --out report  the report as a page\n"
     "weft run zone.yaml --set fabric.spines=32 --json"},
    {"init", simulate,
     "weft init first.yaml --gpus 512 --model llama3-70b  a scenario to begin with\n"
     "weft init  asks"},
    {"examples", simulate,
     "weft examples  what there is, and how to run it\n"
     "weft examples --all examples  writes all of them"},
    {"why", simulate, "weft why zone.yaml  what it waits for, and what would help"},
    {"replay", simulate,
     "weft replay zone.yaml --records day.jsonl  a day's failures, each scheme"},
    {"sweep", simulate,
     "weft sweep study.yaml --out study --resume  goes on where it was stopped\n"
     "weft sweep study.yaml --prices prices.yaml  with cost, power and the Pareto front"},
    {"merge", simulate, "weft merge study  the parts that were run with --shard"},
    {"failures", simulate, "weft failures zone.yaml --pairs --page failures.html"},
    {"flows", simulate, "weft flows --fabric zone.yaml --flows flows.csv"},
    {"perf", simulate,
     "weft perf all_reduce -b 8 -e 16G -f 2  one host of eight H100\n"
     "weft perf all_to_all --fabric zone.yaml -n 512"},
    {"trace", simulate, "weft trace run.0.et run.1.et --groups groups.json  Chakra, a file a rank"},
    {"infer", simulate, "weft infer service.yaml  a scenario with inference:"},
    {"explain", fabrics,
     "weft explain zone.yaml\n"
     "weft explain --plan \"131072 x 800G, radix 512\" --prices prices.yaml"},
    {"export", fabrics, "weft export zone.yaml --to slurm -o topology.conf"},
    {"lab", fabrics,
     "weft lab doctor  what this machine can do\n"
     "weft lab up zone.yaml"},
    {"faults", fabrics, "weft faults  all kinds, and who can make them"},
    {"place", plan, "weft place --fabric pods.yaml --gpus 192 --busy rack:[0-3]"},
    {"advise", plan, "weft advise scenarios/advise.yaml --moves 3"},
    {"spares", plan, "weft spares scenarios/spares.yaml --years 200"},
    {"life", plan, "weft life scenarios/life-llama3.yaml"},
    {"regions", plan, "weft regions scenarios/regions.yaml"},
    {"te", wan,
     "weft te scenarios/llama3-405b.yaml --fail ctsw:3  uplinks of a zone's flows\n"
     "weft te scenarios/backbone/abilene.csv --demands scenarios/backbone/demands.csv "
     "--objective mlu"},
    {"bulk", wan,
     "weft bulk scenarios/backbone/abilene.csv --transfers scenarios/backbone/transfers.csv"},
    {"edge", wan,
     "weft edge scenarios/edge.yaml\n"
     "weft edge scenarios/edge.yaml --down frankfurt"},
    {"forecast", wan, "weft forecast series.csv --horizon 96"},
    {"autoscale", wan, "weft autoscale scenarios/autoscale.yaml --once"},
    {"scale", wan, "weft scale scenarios/forecast-requests.csv --capacity 40 --start-up \"1 h\""},
    {"tenants", wan,
     "weft tenants scenarios/tenants.yaml\n"
     "weft tenants scenarios/tenants.yaml --to nftables | nft -f -"},
    {"probe", monitor,
     "weft probe 10.0.0.5 10.0.0.6:8620 --key probe.key --duration \"30 s\"\n"
     "weft probe plan --fabric zone.yaml  pairs and ports that cross every link"},
    {"respond", monitor, "weft respond --key probe.key"},
    {"localise", monitor, "weft localise evidence.jsonl --fabric zone.yaml"},
    {"sli", monitor, "weft sli evidence.jsonl --fabric zone.yaml --objectives objectives.yaml"},
    {"agent", monitor, "weft agent --fabric zone.yaml --device rtsw:3 --log /var/log/syslog"},
    {"discover", fabrics,
     "weft discover --targets switches.csv --fabric zone.yaml\n"
     "weft discover --gnmi switches.csv --by bgp --fabric zone.yaml\n"
     "weft discover --netbox https://netbox.example --token token --out planned.csv"},
    {"poll", monitor,
     "weft poll snmp --fabric zone.yaml --targets switches.csv --every \"30 s\" --json"},
    {"traps", monitor, "weft traps --fabric zone.yaml"},
    {"gnmi", monitor, "weft gnmi --targets targets.csv --fabric zone.yaml --json"},
    {"send", monitor, "weft send --to https://weft.example --token token < records.jsonl"},
    {"colltrace", monitor, "weft colltrace dumps  for whom does this job wait?"},
    {"straggler", monitor, "weft straggler step.json.gz"},
    {"validate", monitor, "weft validate plan --fabric zone.yaml --out plan.csv"},
    {"serve", operate,
     "weft serve --fabric zone.yaml --store /var/lib/weft/weft.db --listen 127.0.0.1:8630"},
    {"up", operate,
     "weft up --lab  a first site on this machine, with a fault to find\n"
     "weft up site.yaml --check\n"
     "weft up site.yaml"},
    {"case", operate,
     "weft case --from https://weft.example --token token\n"
     "weft case 79fb656b217f --from https://weft.example --token token\n"
     "weft case 79fb656b217f --from https://weft.example --token token --do approve --reason "
     "\"spare optic is on site\""},
    {"drains", operate,
     "weft drains --from https://weft.example --token token\n"
     "weft drains --from unix:api.sock --freeze 2026-12-01T06:00:00Z --reason \"release run\"\n"
     "weft drains --plan rtsw:3--ctsw:1 --fabric zone.yaml --config serve.yaml"},
    {"zones", operate, "weft zones zones.yaml\nweft zones zones.yaml --listen 127.0.0.1:8640"},
    {"triage", operate, "weft triage records.jsonl --fabric zone.yaml"},
    {"snapshot", operate, "weft snapshot show FILE"},
    {"store", operate,
     "weft store backup weft.tar --store /var/lib/weft/weft.db\n"
     "weft store info weft.tar  checks it\n"
     "weft store restore weft.tar --store new.db --snapshots snapshots\n"
     "weft store accept zone.yaml --store weft.db  the fabric was changed on purpose"},
    {"storm", operate, "weft storm --fabric zone.yaml --faults 400 --out storm"},
    {"rehearse", operate, "weft rehearse zone.yaml --days 90"},
    {"help", about, "weft help sweep"},
    {"version", about, "weft version"},
    {"completion", about,
     "weft completion bash > ~/.local/share/bash-completion/completions/weft\n"
     "weft completion zsh > ~/.zfunc/_weft\n"
     "weft completion fish > ~/.config/fish/completions/weft.fish"},
    {"man", about, "weft man sweep | man -l -"},
}};

// What stands for the value of an option without dashes, or of an argument: by its name alone, or
// by its command and its name, which goes first. Each name has a comma on both sides.
struct ValueName {
  std::string_view value, of;
};
constexpr std::array<ValueName, 23> value_names{{
    {"FILE",
     ",addresses,background,bulk plan,bulk "
     "sites,ca,catalogue,cert,client-ca,config,contracts,copies,"
     "counters,csv,demands,diff,diff-relations,episodes,evidence,fabric,feeds,file,files,"
     "flows,gnmi,groups,hashes,health,ideal,inputs,inventory,jobs,jwt-keys,key,learn,learned,"
     "log,maintenance,mapping,marks,metrics,objectives,openslo,page,plan,prices,recorded,"
     "records,redact,regions file,relations,rules,scenario,senders,series,show-health,svg,"
     "targets,te before,te "
     "sites,timeline,token,tokens,topology,transfers,truth,world,write-demands,"
     "write-transfers,"},
    {"FILE",
     ",autoscale config,cases,discover out,examples out,export out,infer requests,infer run,model,"
     "perf compare,place out,policy,rehearse baseline-model,rehearse baseline-policy,"
     "rehearse compare,snapshot export out,te check,trace system,validate plan out,"
     "validate run out,"},
    {"PATH", ",on-change,path,paths,profile,results,snapshot file,store,"},
    {"DIRECTORY",
     ",agent traces,all,directory,out,serve traces,snapshots,spool,storm,triage truth,"},
    {"DURATION",
     ",delay,duration,end,every,for,from-fluid,horizon,interval,jitter,late,lateness,"
     "length,linger,max-age,move,overhead,period,silence,slot,start-up,timeout,"
     "trace-every,window,"},
    {"TIME", ",at,day,freeze,from,reference,sli to,start,until,"},
    {"URL", ",case from,drains from,netbox,service,to,"},
    {"SIZE", ",bucket size,ecn,maxbytes,minbytes,queue,spool-size,stepbytes,"},
    {"RATE", ",capacity,rate,"},
    {"WORDS", ",reason,"},
    {"QUERY", ",filter,"},
    {"FLOW", ",tenants flow,"},
    {"ADDRESS", ",bind,listen,poll traps,respond listen,syslog,"},
    {"KEY=VALUE", ",cost,set,"},
    {"LIST", ",busy,down,exclude,fail,free,hosts,order,policies,ports,types,"},
    {"ID", ",case id,case number,id,lab heal id,"},
    {"NUMBER", ",class,count,gap,lab fault interval,lab fault seed,stepfactor,unavailability,"},
    {"NAME",
     ",algorithm,audience,baseline,bulk replay,command,daemon,device,dialects,discover by,drains "
     "plan,encoding,"
     "engine,export to,feed,format,gpu,init fabric,init model,job,kind,lab,lab fault to,"
     "log-level,mode,name,node,objective,op,owner,place,place model,probe from,protocol,rankfile,"
     "replay scheme,section,shell,spread,start-unit,system,target,transport,variant,"
     "within,"},
    {"K/N", ",bucket,shard,"},
    {"SIZE=RATE", ",calibrate,"},
    {"KEY", ",over,"},
    {"COLUMN", ",show,"},
    {"WORDS", ",lab exec command,"},
}};

std::string_view value_name(const std::string& command, const std::string& option) {
  for (const std::string& name : {fmt::format("{} {}", command, option), option})
    for (const auto& [value, of] : value_names)
      if (of.contains(fmt::format(",{},", name))) return value;
  return "";
}

const CommandHelp& help_of(const std::string& name) {
  const auto found = std::ranges::find(command_help, name, &CommandHelp::name);
  WEFT_CHECK(found != command_help.end());
  return *found;
}

// A command as it is typed, and what it does.
std::pair<std::string_view, std::string_view> parts_of(std::string_view example) {
  const std::size_t at = example.find("  ");
  if (at == std::string_view::npos) return {example, ""};
  return {example.substr(0, at), example.substr(example.find_first_not_of(' ', at))};
}

std::string footer_of(const CommandHelp& help) {
  std::string out = "Examples:\n";
  for (const std::string_view line : split(help.examples, '\n')) {
    const auto [typed, what] = parts_of(line);
    out += what.empty() ? fmt::format("  {}\n", typed) : fmt::format("  {}    # {}\n", typed, what);
  }
  return out;
}

// Of a type such as "UINT:INT in [1 - 64]" or "TEXT:{on,off}": the type, and what it is limited to.
std::pair<std::string, std::string> type_and_limits(const CLI::Option& option) {
  const std::string all = option.get_type_name();
  const std::size_t colon = all.find(':');
  std::string type = all.substr(0, colon);
  if (type == "UINT" || type == "INT") type = "N";
  if (type == "FLOAT") type = "NUMBER";
  if (colon == std::string::npos) return {type, ""};
  std::string limits = all.substr(colon + 1);
  if (limits.starts_with('{')) {  // a choice
    std::ranges::replace(limits, ',', '|');
    return {limits.substr(1, limits.size() - 2), ""};
  }
  const std::size_t from = limits.find('['), dash = limits.find(" - ");
  if (from == std::string::npos || dash == std::string::npos)
    return {type, limits == "POSITIVE" ? "above 0" : limits};
  return {type, fmt::format("{} to {}", limits.substr(from + 1, dash - from - 1),
                            limits.substr(dash + 3, limits.size() - dash - 4))};
}

// What an option does, then in brackets its default, limits, and the options that it needs or
// cannot stand beside.
std::string described(const CLI::Option& option) {
  const std::string& what = option.get_description();
  std::vector<std::string> more;
  std::string value = option.get_default_str();
  if (value.starts_with('[') && value.ends_with(']')) value = value.substr(1, value.size() - 2);
  const bool is_said = what.contains("default:") || what.contains(fmt::format("({})", value)) ||
                       what.contains(" by default");
  const std::array<std::string_view, 4> nothing{"", "0", "-", "{}"};
  if (!is_said && !option.get_required() && std::ranges::find(nothing, value) == nothing.end())
    more.push_back(fmt::format("default: {}", value));
  if (const std::string limits = type_and_limits(option).second; !limits.empty())
    more.push_back(limits);
  if (option.get_required()) more.emplace_back("required");
  const auto add = [&](const char* how, const std::set<CLI::Option*>& others) {
    std::vector<std::string> names;
    for (const CLI::Option* other : others) names.push_back(other->get_name());
    std::ranges::sort(names);  // the set is in order of addresses
    if (!names.empty()) more.push_back(fmt::format("{} {}", how, fmt::join(names, " ")));
  };
  add("with", option.get_needs());
  add("not with", option.get_excludes());
  return more.empty() ? what : fmt::format("{} [{}]", what, fmt::join(more, "; "));
}

class HelpFormat : public CLI::Formatter {
 public:
  std::string make_option_opts(const CLI::Option* option) const override {
    if (option->get_type_size() == 0) return "";
    std::string out = " " + type_and_limits(*option).first;
    if (option->get_expected_max() == CLI::detail::expected_max_vector_size)
      out += " ...";
    else if (option->get_expected_min() > 1)
      out += fmt::format(" x {}", option->get_expected());
    return out;
  }
  std::string make_option_desc(const CLI::Option* option) const override {
    return described(*option);
  }
};

// NaN is inside of every range, and infinity outlasts most loops.
CLI::Validator finite() {
  return {[](const std::string& text) {
            double value = 0;
            const bool is_number = CLI::detail::lexical_cast(text, value);  // else others say so
            return is_number && !std::isfinite(value)
                       ? fmt::format("{} is not a finite number", text)
                       : std::string();
          },
          ""};
}

// "-4" would be read as 2^64 - 4.
CLI::Validator not_negative() {
  return {[](const std::string& text) {
            return text.starts_with('-') ? fmt::format("{} is negative", text) : std::string();
          },
          ""};
}

// Names of values instead of types, defaults, and what holds for all numbers.
void describe_options(CLI::App& command, const std::string& path) {
  command.formatter(std::make_shared<HelpFormat>());
  for (CLI::Option* option : command.get_options()) {
    if (option->get_type_size() == 0) continue;
    option->capture_default_str();
    if (option->get_type_name().starts_with("FLOAT")) option->check(finite());
    if (option->get_type_name().starts_with("UINT")) option->check(not_negative());
    if (!option->get_type_name().starts_with("TEXT")) continue;
    const std::string_view value = value_name(path, option->get_single_name());
    if (!value.empty()) option->type_name(std::string(value));
  }
}

std::vector<const CLI::App*> commands_of(const CLI::App& app) { return app.get_subcommands({}); }

struct OptionText {
  std::vector<std::string> shorts, longs;  // without dashes
  std::string what, described, type;
  bool has_value = false;
};
// Options and flags with a name; --help last.
std::vector<OptionText> options_of(const CLI::App& command) {
  std::vector<OptionText> out;
  for (const CLI::Option* option : command.get_options()) {
    if (option->nonpositional() && !option->get_description().empty())
      out.push_back({option->get_snames(), option->get_lnames(), option->get_description(),
                     described(*option), type_and_limits(*option).first,
                     option->get_items_expected_max() > 0});
  }
  return out;
}

// Every word that may follow "weft COMMAND": sub-commands and options.
std::string words_of(const CLI::App& command) {
  std::string out;
  for (const CLI::App* sub : commands_of(command)) out += sub->get_name() + " ";
  for (const OptionText& option : options_of(command)) {
    for (const std::string& name : option.longs) out += "--" + name + " ";
    for (const std::string& name : option.shorts) out += "-" + name + " ";
  }
  if (!out.empty()) out.pop_back();
  return out;
}

std::string names_of_commands(const CLI::App& app) {
  std::string out;
  for (const CLI::App* command : commands_of(app)) out += command->get_name() + " ";
  out.pop_back();
  return out;
}

std::string bash(const CLI::App& app) {
  std::string out = fmt::format(
      "# bash completion for weft\n"
      "_weft() {{\n"
      "  local word=${{COMP_WORDS[COMP_CWORD]}} words='{}'\n"
      "  if [ \"$COMP_CWORD\" -gt 1 ]; then\n"
      "    case ${{COMP_WORDS[1]}} in\n",
      names_of_commands(app));
  for (const CLI::App* command : commands_of(app)) {
    const bool names = command->get_name() == "help" || command->get_name() == "man";
    out += fmt::format("      {}) words='{}' ;;\n", command->get_name(),
                       names ? names_of_commands(app) : words_of(*command));
  }
  return out +
         "      *) words= ;;\n"
         "    esac\n"
         "  fi\n"
         "  COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
         "  if [ \"$COMP_CWORD\" -gt 1 ] && [[ $word != -* ]]; then\n"
         "    compopt -o filenames 2>/dev/null\n"
         "    COMPREPLY+=($(compgen -f -- \"$word\"))\n"
         "  fi\n"
         "}\n"
         "complete -F _weft weft\n";
}

// Inside single quotes of a shell.
std::string shell_text(std::string_view text) {
  std::string out;
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out;
}
// ... and inside the brackets of a zsh specification.
std::string zsh_text(std::string_view text) {
  std::string out;
  for (const char c : shell_text(text)) {
    if (c == '[' || c == ']' || c == ':') out += '\\';
    out += c;
  }
  return out;
}

std::string zsh(const CLI::App& app) {
  std::string out = "#compdef weft\n_weft() {\n  local -a commands=(\n";
  for (const CLI::App* command : commands_of(app))
    out += fmt::format("    '{}:{}'\n", command->get_name(), zsh_text(command->get_description()));
  out +=
      "  )\n"
      "  if (( CURRENT == 2 )); then\n"
      "    _describe -t commands 'weft command' commands\n"
      "    return\n"
      "  fi\n"
      "  case $words[2] in\n"
      "    help|man) _describe -t commands 'weft command' commands ;;\n";
  for (const CLI::App* command : commands_of(app)) {
    if (command->get_name() == "help" || command->get_name() == "man") continue;
    out += fmt::format("    {}) _arguments", command->get_name());
    for (const OptionText& option : options_of(*command)) {
      const std::string value = option.has_value ? ":value:_files" : "";
      for (const std::string& name : option.longs)
        out += fmt::format(" '--{}[{}]{}'", name, zsh_text(option.what), value);
      for (const std::string& name : option.shorts)
        out += fmt::format(" '-{}[{}]{}'", name, zsh_text(option.what), value);
    }
    out += " '*:file:_files' ;;\n";
  }
  return out + "  esac\n}\n_weft \"$@\"\n";
}

std::string fish(const CLI::App& app) {
  std::string out = "# fish completion for weft\n";
  for (const CLI::App* command : commands_of(app)) {
    const std::string& name = command->get_name();
    out += fmt::format("complete -c weft -f -n __fish_use_subcommand -a {} -d '{}'\n", name,
                       shell_text(command->get_description()));
    if (name == "help" || name == "man")
      out += fmt::format("complete -c weft -f -n '__fish_seen_subcommand_from {}' -a '{}'\n", name,
                         names_of_commands(app));
    for (const OptionText& option : options_of(*command)) {
      out += fmt::format("complete -c weft -n '__fish_seen_subcommand_from {}'", name);
      for (const std::string& s : option.shorts) out += " -s " + s;
      for (const std::string& l : option.longs) out += " -l " + l;
      out += fmt::format("{} -d '{}'\n", option.has_value ? " -r" : "", shell_text(option.what));
    }
  }
  return out;
}

// Text of a man page: no line may begin as a request, and dashes are those of the keyboard.
std::string roff(std::string_view text) {
  std::string out;
  bool is_begin = true;
  for (const char c : text) {
    if (is_begin && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else
      out += c;
    is_begin = c == '\n';
  }
  return out;
}

std::string man_options(const CLI::App& command) {
  std::string out;
  for (const OptionText& option : options_of(command)) {
    std::string names;
    for (const std::string& name : option.shorts)
      names += fmt::format("{}\\fB\\-{}\\fR", names.empty() ? "" : ", ", roff(name));
    for (const std::string& name : option.longs)
      names += fmt::format("{}\\fB\\-\\-{}\\fR", names.empty() ? "" : ", ", roff(name));
    if (option.has_value) names += fmt::format(" \\fI{}\\fR", roff(option.type));
    out += fmt::format(".TP\n{}\n{}\n", names, roff(option.described));
  }
  return out;
}

std::string man_head(const std::string& name, std::string_view what, const std::string& version) {
  std::string upper;
  for (const char c : name) upper += static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  return fmt::format(".TH \"{}\" \"1\" \"\" \"weft {}\" \"weft\"\n.SH NAME\n{} \\- {}\n",
                     roff(upper), roff(version), roff(name), roff(what));
}

}  // namespace

void describe_commands(CLI::App& app) {
  app.formatter(std::make_shared<HelpFormat>());
  for (CLI::App* command : app.get_subcommands({})) {
    const CommandHelp& help = help_of(command->get_name());
    command->group(help.group);
    command->footer(footer_of(help));
    describe_options(*command, command->get_name());
    for (CLI::App* sub : command->get_subcommands({}))
      describe_options(*sub, command->get_name() + " " + sub->get_name());
  }
}

Result<std::string> completion(const CLI::App& app, const std::string& shell) {
  if (shell == "bash") return bash(app);
  if (shell == "zsh") return zsh(app);
  if (shell == "fish") return fish(app);
  return fail(Errc::unknown, {"SHELL", 0, 0}, fmt::format("unknown shell {}", quote(shell)),
              "choose one of: bash, zsh, fish");
}

std::string man_page(const CLI::App& app, const CLI::App* command) {
  const std::string version = app.version();
  if (command == nullptr) {
    std::string out = man_head("weft", app.get_description(), version);
    out += ".SH SYNOPSIS\n\\fBweft\\fR \\fICOMMAND\\fR [\\fIOPTIONS\\fR]\n.SH COMMANDS\n";
    for (const CLI::App* each : commands_of(app))
      out += fmt::format(".TP\n\\fBweft\\-{}\\fR(1)\n{}\n", each->get_name(),
                         roff(each->get_description()));
    return out + ".SH OPTIONS\n" + man_options(app);
  }
  const std::string& name = command->get_name();
  std::string out = man_head("weft-" + name, command->get_description(), version);
  out += fmt::format(".SH SYNOPSIS\n\\fBweft {}\\fR [\\fIOPTIONS\\fR]", name);
  for (const CLI::Option* option : command->get_options())
    if (option->get_positional()) out += fmt::format(" \\fI{}\\fR", roff(option->get_name(true)));
  out += "\n";
  if (const auto subs = commands_of(*command); !subs.empty()) {
    out += ".SH COMMANDS\n";
    for (const CLI::App* sub : subs)
      out += fmt::format(".SS {} {}\n{}\n{}", name, sub->get_name(), roff(sub->get_description()),
                         man_options(*sub));
  }
  out += ".SH OPTIONS\n" + man_options(*command) + ".SH EXAMPLES\n";
  for (const std::string_view line : split(help_of(name).examples, '\n')) {
    const auto [typed, what] = parts_of(line);
    out += fmt::format(".TP\n\\fB{}\\fR\n{}\n", roff(typed), roff(what));
  }
  return out + ".SH SEE ALSO\n\\fBweft\\fR(1)\n";
}

}  // namespace weft::cli
