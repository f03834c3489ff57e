#!/usr/bin/env bash
# help_test.sh WEFT : completion in the shells themselves, man pages without a warning of groff, and examples whose
# options exist. A shell that is not there is named and left out.
set -euo pipefail
weft=$(readlink -f "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
ln -s "$weft" weft
PATH=$work:$PATH
failed=0
expect() { # WHAT GOT WANTED
  [[ " $2 " == *" $3 "* ]] || { echo "FAILED: $1: no \"$3\" in: $2"; failed=1; }
}

"$weft" man --out man
touch scenario.yaml
in_bash() { # WORD... : what bash offers for the last one
  bash -c 'source man/bash/weft; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _weft; echo "${COMPREPLY[@]}"' bash "$@"
}
expect bash "$(in_bash weft swe)" sweep
expect bash "$(in_bash weft sweep --res)" --resume
expect bash "$(in_bash weft run scen)" scenario.yaml
expect bash "$(in_bash weft lab u)" up
expect bash "$(in_bash weft help fail)" failures
if command -v fish >/dev/null; then
  in_fish() { HOME=$work fish -c "source man/fish/weft.fish; complete -C '$1'" | cut -f 1 | tr '\n' ' '; }
  expect fish "$(in_fish 'weft swe')" sweep
  expect fish "$(in_fish 'weft sweep --res')" --resume
else
  echo "left out: no fish"
fi
if command -v zsh >/dev/null; then
  zsh -n man/zsh/_weft
  in_zsh() { # calls the function with stand-ins for what the line editor has
    zsh -fc 'compdef() { :; }; _describe() { print -rl -- ${(P)4%%:*}; }; _arguments() { print -rl -- $@; }
             words=('"$1"'); CURRENT=$#words; source man/zsh/_weft' | tr '\n' ' '
  }
  expect zsh "$(in_zsh 'weft swe')" sweep
  expect zsh "$(in_zsh 'weft sweep --res')" '--resume[Go'
else
  echo "left out: no zsh"
fi

commands=0
for page in man/weft-*.1; do
  name=$(basename "$page" .1) && name=${name#weft-}
  commands=$((commands + 1))
  warnings=$(groff -man -Tutf8 -ww -z "$page" 2>&1) || true
  [ -z "$warnings" ] || { echo "FAILED: $page: $warnings"; failed=1; }
  help=$("$weft" help "$name"; for sub in $("$weft" help "$name" | sed -n '/^Subcommands:/,/^$/s/^  \([a-z]*\) .*/\1/p'); do
    "$weft" "$name" "$sub" --help; done)
  [[ $help == *"Usage: weft $name"*Examples:*"weft $name"* ]] || { echo "FAILED: help $name"; failed=1; }
  # Values have names that say what they are (value_names in help.cpp).
  if bad=$(grep -E ' TEXT|UINT|FLOAT|Excludes:|Needs:' <<<"$help"); then
    echo "FAILED: help $name: $bad"
    failed=1
  fi
  # Options of its own examples.
  while read -r option; do
    grep -qE -- "(^|[ ,])$option([ ,=]|\$)" <<<"$help" || { echo "FAILED: example of $name: no $option"; failed=1; }
  done < <(sed -n '/^Examples:/,$p' <<<"$help" | grep "^  weft $name" | sed 's/ # .*//' | grep -oE -- ' --?[a-z][a-z-]*' | tr -d ' ')
done
[ "$commands" -gt 40 ] || { echo "FAILED: only $commands commands"; failed=1; }
"$weft" version | grep -qE '^weft [0-9.]+' || { echo "FAILED: version"; failed=1; }
for wrong in "help swep" "completion tcsh" "man swep"; do
  # shellcheck disable=SC2086
  "$weft" $wrong 2>err && { echo "FAILED: $wrong is accepted"; failed=1; }
  grep -q "weft: error: .*" err || { echo "FAILED: $wrong says nothing"; failed=1; }
done
[ "$failed" = 0 ] && echo "$commands commands"
exit "$failed"
