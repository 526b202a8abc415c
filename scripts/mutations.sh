#!/usr/bin/env bash
# Whether the tests notice that a rule is gone. Each patch in scripts/mutations takes one out, and
# is named after what throng believes then; its first line has the tests that must fail, all of one
# package:
#   # package: PACKAGE; must fail: TEST, TEST
# They are tried in a worktree of their own, on what git knows of this checkout. The same tests must
# pass there without any patch. A patch that does not apply, or does not compile, is an error: adapt
# it to the rule as it is written now.
#   scripts/mutations.sh [NAME]...      all of them unless named
set -euo pipefail
cd "$(dirname "$0")/.."
PATH=$PATH:${XDG_CACHE_HOME:-$HOME/.cache}/throng/bin
patches=$PWD/scripts/mutations
tree=$PWD/target/mutations
said=$PWD/target/mutations.log
CARGO_TARGET_DIR=$(realpath -m "${CARGO_TARGET_DIR:-target/mutations-target}")
# A rule that is gone leaves names that nobody uses.
RUSTFLAGS="${RUSTFLAGS:-} -A warnings"
# What is built runs for a second.
CARGO_PROFILE_DEV_OPT_LEVEL=0
export CARGO_TARGET_DIR RUSTFLAGS CARGO_PROFILE_DEV_OPT_LEVEL

fail() { echo "$*" >&2; exit 1; }
package_of() { sed -nE '1s/^# package: ([^ ;]+); must fail: .+/\1/p' "$patches/$1.patch"; }
tests_of() {
  sed -nE '1s/^# package: [^ ;]+; must fail: (.+)/\1/p' "$patches/$1.patch" | tr ',' '\n' |
    tr -d ' '
}

# The files of this checkout, changed ones as they are. Those that did not change since the last
# time keep their dates, by which cargo knows them.
copy_checkout() {
  local commit
  commit=$(git stash create)
  git worktree prune
  [[ -e $tree/.git ]] || git worktree add --quiet --detach "$tree"
  git -C "$tree" checkout --quiet --force --detach "${commit:-$(git rev-parse HEAD)}"
}

# What cargo-nextest says of these tests is in $said. Its exit code is 100 if some failed, and
# another if none ran.
run() { # PACKAGE TEST...
  local package=$1 part=--lib filter
  shift
  [[ -f $tree/crates/${package#throng-}/src/lib.rs ]] || part=--bins
  filter=$(printf ' + test(/(^|::)%s$/)' "$@")
  (cd "$tree" && cargo nextest run --locked --package "$package" $part -E "${filter# + }" \
    --color never --no-fail-fast --status-level pass) >"$said" 2>&1
}

# How many tests of that name passed.
passed() { grep -cE "^ +PASS .*[ :]$1\$" "$said" || true; }

if [[ $# -eq 0 ]]; then
  mapfile -t names < <(cd "$patches" && printf '%s\n' *.patch | sed 's/\.patch$//')
  set -- "${names[@]}"
fi
mkdir -p target
copy_checkout
for name; do
  [[ -f $patches/$name.patch ]] || fail "there is no $patches/$name.patch"
  [[ -n $(package_of "$name") ]] || fail "$name.patch: its first line names no package and tests"
  git -C "$tree" apply --check "$patches/$name.patch" || fail "$name.patch no longer applies"
done

echo "Without mutations:"
for package in $(for name; do package_of "$name"; done | sort -u); do
  mapfile -t tests < <(
    for name; do [[ $(package_of "$name") != "$package" ]] || tests_of "$name"; done | sort -u
  )
  run "$package" "${tests[@]}" || { cat "$said"; fail "$package does not pass without a mutation"; }
  for test in "${tests[@]}"; do
    [[ $(passed "$test") == 1 ]] || fail "$test: $(passed "$test") tests of $package have this name"
  done
  echo "$package: ${#tests[@]} tests pass"
done

missed=0
printf '\n| Mutation | Tests | Found |\n|---|---|---|\n'
for name; do
  mapfile -t tests < <(tests_of "$name")
  git -C "$tree" apply "$patches/$name.patch"
  status=0
  run "$(package_of "$name")" "${tests[@]}" || status=$?
  git -C "$tree" checkout --quiet -- .
  [[ $status == 0 || $status == 100 ]] || {
    cat "$said"; fail "$name.patch: its tests did not run"
  }
  found=yes
  for test in "${tests[@]}"; do
    [[ $(passed "$test") == 0 ]] || found="**no**: $test passes"
  done
  [[ $found == yes ]] || missed=$((missed + 1))
  all=$(printf ', `%s`' "${tests[@]}")
  printf '| %s | %s | %s |\n' "$name" "${all#, }" "$found"
done
[[ $missed == 0 ]] || fail "$missed of $# mutations were not found"
