#!/usr/bin/env bash
# How much production code there is: lines of Rust that are neither blank nor comments, outside of
# tests, and how long functions and files are. Tests are what `cfg(test)` has, files and folders
# whose names end in `tests`, and crates/sim.
#   scripts/count-lines.sh               lines of each crate, and their sum
#   scripts/count-lines.sh --functions N functions of more than N lines, from `fn` to the closing
#                                        brace, the longest first
#   scripts/count-lines.sh --files N     files of more than N lines, tests left out, the longest
#                                        first
#   scripts/count-lines.sh --duplicates N  blocks of N or more lines that are in production code
#                                        once more, literally but for indents; imports, attributes
#                                        and lines without two letters left out
#   scripts/count-lines.sh --wide N      lines of more than N columns, comments and tests too, by
#                                        crate
set -euo pipefail
cd "$(dirname "$0")/.."
mode=${1:-} least=${2:-0}

# The files of production code. A file that is only declared below `cfg(test)` is one of tests.
sources() {
  local all of_tests
  all=$(git ls-files 'crates/*/src/*.rs' 'ring/*/src/*.rs' | grep -vE '^crates/sim/|tests(\.rs|/)')
  # `#[cfg(test)]`, perhaps other attributes, `mod NAME;`: NAME.rs or NAME/ beside the file, or
  # below its folder.
  of_tests=$(xargs awk '
    FNR == 1 { armed = 0 }
    /^ *#\[cfg\(test\)\]/ { armed = 1; path = ""; next }
    armed && /^ *#\[path = "/ { split($0, part, "\""); path = part[2]; next }
    armed && /^ *(#\[|\/\/)/ { next }
    armed && /^ *(pub(\([a-z]*\))? )?mod [a-z_0-9]+;/ {
      name = $0; sub(/;.*/, "", name); sub(/.* /, "", name)
      folder = FILENAME; sub(/[^\/]*$/, "", folder)
      stem = FILENAME; sub(/.*\//, "", stem); sub(/\.rs$/, "", stem)
      if (path != "") print folder path
      else {
        below = (stem == "mod" || stem == "lib" || stem == "main") ? folder : folder stem "/"
        print below name ".rs"; print below name "/"
      }
    }
    { armed = 0 }' <<<"$all")
  grep -vFf <(printf '%s\n' "$of_tests") <<<"$all"
}

# Prints FILE, LINE, and the text of each line of code, without what `cfg(test)` has.
code() {
  xargs awk '
    FNR == 1 { skipping = 0; armed = 0; block = 0 }
    { match($0, /^ */); indent = RLENGTH }
    skipping { if (indent == at && $0 ~ /^ *[})]/ && $0 !~ /^ *\).*[{,]$/) skipping = 0; next }
    armed && indent == at && /^ *(#\[|\/\/)/ { next }
    armed { armed = 0; if ($0 !~ /[;,]$/ && $0 !~ /^ *[^"]*\{.*\}$/) skipping = 1; next }
    /^ *#\[cfg\((test|all\(test.*)\)\]$/ { armed = 1; at = indent; next }
    block { if (/\*\//) block = 0; next }
    /^ *\/\*/ { if (!/\*\//) block = 1; next }
    /^ *$/ || /^ *\/\// { next }
    { print FILENAME "\t" FNR "\t" $0 }'
}

case $mode in
"")
  sources | code | awk -F'\t' '{ split($1, part, "/"); of[part[1] "/" part[2]]++; all++ }
    END { for (name in of) printf "%7d  %s\n", of[name], name | "sort -k2"; close("sort -k2")
          printf "%7d  in all\n", all }'
  ;;
--functions)
  sources | code | awk -F'\t' -v least="$least" '
    $1 != file { file = $1; depth = 0 }
    {
      text = $3; match(text, /^ */); indent = RLENGTH
      # The end of the innermost function of this indent.
      if (depth && indent == at[depth] && text ~ /^ *\}/) {
        lines = $2 - from[depth] + 1; all++
        if (lines > 60) over60++
        if (lines > 100) over100++
        if (lines > least) printf "%5d  %s:%d  %s\n", lines, file, from[depth], name[depth]
        depth--
      }
      if (text ~ /^ *(pub(\([a-z: ]*\))? )?(default )?(const )?(async )?(unsafe )?(extern "[^"]*" )?fn [a-z_A-Z0-9]+/) {
        fn = text; sub(/^.*fn /, "", fn); sub(/[(<].*/, "", fn)
        if (text ~ /\}$/ && text ~ /\{/) all++                      # in one line
        else if (text !~ /;$/) { depth++; at[depth] = indent; from[depth] = $2; name[depth] = fn }
      } else if (depth && indent == at[depth] && text ~ /^ *\).*;$/) depth--   # a declaration of a trait
    }
    END { printf "%5d  functions in all; above 100 lines: %d; above 60: %d (%.2f %%)\n", all, over100, over60, over60 / all * 100 }' | sort -rn
  ;;
--files)
  sources | code | awk -F'\t' '{ of[$1]++ } END { for (name in of) print of[name], name }' |
    sort -rn |
    awk -v least="$least" '$1 > least { printf "%5d  %s\n", $1, $2 }'
  ;;
--duplicates)
  sources | code | awk -F'\t' -v least="$least" '
    # A block has ended that was read before.
    function ended() {
      if (lines) { blocks++; printf "%5d  %s, as %s\n", lines, begun, first }
      lines = 0
    }
    $1 != file { ended(); file = $1; count = 0; importing = 0 }
    { text = $3; sub(/^ +/, "", text) }
    importing { if (text ~ /;$/) importing = 0; next }
    text ~ /^(pub(\([a-z]*\))? )?use / { importing = text !~ /;$/; next }
    text !~ /[A-Za-z].*[A-Za-z]/ || text ~ /^#!?\[/ { next }
    {
      said[++count] = text; at[count] = $2
      if (count < least) next
      block = ""
      for (back = least - 1; back >= 0; back--) block = block "\n" said[count - back]
      place = file ":" at[count - least + 1]
      if (!(block in seen)) { seen[block] = place; ended() }
      else if (lines) lines++
      else { lines = least; begun = place; first = seen[block] }
    }
    END { ended(); printf "%5d  duplicated blocks in all\n", blocks }' | sort -rn
  ;;
--wide)
  # Characters, not bytes.
  git ls-files '*.rs' | LC_ALL=C.UTF-8 xargs grep -cE "^.{$((least + 1)),}" | awk -F: '$2 > 0 {
      split($1, part, "/"); of[part[1] "/" part[2]] += $2; all += $2 }
    END { for (name in of) printf "%5d  %s\n", of[name], name; printf "%5d  in all\n", all }' | sort -rn
  ;;
esac
