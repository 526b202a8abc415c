#!/usr/bin/env bash
# Every fuzz target with FUZZ_RUNS inputs, or for FUZZ_SECONDS if that is shorter; prints a table of
# what each took and found, and ends with 1 if one found something. What is found is in
# fuzz/artifacts, the corpora are in fuzz/corpus.
#   scripts/fuzz.sh [TARGET]...       all of them unless named
#   FUZZ_RUNS     inputs of a target, ten million unless set
#   FUZZ_SECONDS  the longest time of a target, unbounded unless set
#   FUZZ_JOBS     targets at a time, one for each core unless set
#   MINIMISE=1    keeps the smallest inputs that together cover what a target's corpus does, up to a
#                 number and size, in fuzz/kept: tests replay them (fuzz/hunt.rs)
# Without a nightly compiler and cargo-fuzz (`cargo install cargo-fuzz`) the tests of the same laws
# run that many inputs (fuzz/hunt.rs), which know nothing of coverage: then it ends with 77.
set -uo pipefail
cd "$(dirname "$0")/.."
export FUZZ_RUNS=${FUZZ_RUNS:-10000000} FUZZ_SECONDS=${FUZZ_SECONDS:-0}
jobs=${FUZZ_JOBS:-$(nproc)}
rows=$(mktemp -d)
trap 'rm -rf "$rows"' EXIT
export rows
builds=$(realpath -m "${CARGO_TARGET_DIR:-target}/fuzz")
kept_files=40 kept_bytes=16384 # Of a target: all of them are in each checkout.
export builds kept_files kept_bytes MINIMISE=${MINIMISE:-}

row() { printf '%s|%s|%s|%s\n' "$@" >"$rows/$1"; } # TARGET INPUTS SECONDS FINDINGS
print_table() {
  printf '\n%-14s %12s %9s  %s\n' target inputs seconds findings
  cat "$rows"/* | awk -F'|' '{ printf "%-14s %12s %9s  %s\n", $1, $2, $3, $4 }'
}

# Folders with inputs of a target, below fuzz/; fuzz/README.md has the same in words.
seeds_of() { # TARGET
  case $1 in
    source) echo seeds/container ;;
    whip) echo seeds/whep ;;
    target) echo seeds/target-url ;;
    prices) echo ../examples/prices ;;
    scenario) echo seeds/scenario ../examples ;;
    *) [[ -d fuzz/seeds/$1 ]] && echo "seeds/$1" ;;
  esac
  [[ -d fuzz/kept/$1 ]] && echo "kept/$1"
  return 0
}

# Safe Rust has nothing for the address sanitizer to find, and is twice as fast without.
sanitizer_of() { # TARGET
  case $1 in
    packet-frame | run-db) echo address ;;
    *) echo none ;;
  esac
}

# A sanitizer is a flag of all crates: each has its own folder, or they build each other anew.
cargo_fuzz() { # COMMAND TARGET [ARGUMENT]...
  local command=$1 target=$2 sanitizer
  sanitizer=$(sanitizer_of "$target")
  shift 2
  (cd fuzz && cargo +nightly fuzz "$command" --sanitizer "$sanitizer" \
    --target-dir "$builds/$sanitizer" "$target" "$@")
}

fuzz() { # TARGET
  local target=$1 log began inputs found before status
  log=$rows/.$target.log
  mkdir -p "fuzz/corpus/$target" "fuzz/artifacts/$target"
  before=$(find "fuzz/artifacts/$target" -type f | wc -l)
  began=$SECONDS
  # shellcheck disable=SC2046 # Folders, one word each.
  cargo_fuzz run "$target" "corpus/$target" $(seeds_of "$target") -- \
    -runs="$FUZZ_RUNS" -max_total_time="$FUZZ_SECONDS" -print_final_stats=1 >"$log" 2>&1
  status=$?
  inputs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log" | tail -1)
  found=$(($(find "fuzz/artifacts/$target" -type f | wc -l) - before))
  # A target that does not compile has no inputs, and is no finding.
  [[ $status -eq 0 || -n $inputs || $found -gt 0 ]] || found="did not run"
  row "$target" "${inputs:--}" $((SECONDS - began)) "$found"
  [[ $status -eq 0 ]] || { tail -40 "$log" && return 1; }
  [[ -z $MINIMISE ]] || keep "$target"
}

keep() { # TARGET: of its corpus, in fuzz/kept
  local corpus=fuzz/corpus/$1 kept=fuzz/kept/$1 log=$rows/.$1.log size name files=0 bytes=0
  cargo_fuzz cmin "$1" "corpus/$1" >"$log" 2>&1 || { tail -40 "$log" && return 1; }
  rm -rf "$kept" && mkdir -p "$kept"
  while read -r size name; do
    ((files += 1, bytes += size))
    [[ $files -le $kept_files && $bytes -le $kept_bytes ]] || break
    cp "$corpus/$name" "$kept"
  done < <(find "$corpus" -type f -size +0 -printf '%s %f\n' | sort -n)
  rmdir --ignore-fail-on-non-empty "$kept"
}
export -f fuzz keep cargo_fuzz seeds_of sanitizer_of row

# Names of targets are those of tests only in part: all of them, by crate.
hunt() {
  local binary began status
  for binary in hostile_bytes hostile_text hostile_file; do
    began=$SECONDS
    # Not by cargo-nextest, which ends a test that takes minutes.
    cargo test --workspace --locked --no-fail-fast --test "$binary"
    status=$?
    [[ $status -eq 0 ]] || failed=1
    row "$binary" "$FUZZ_RUNS each" $((SECONDS - began)) \
      "$([[ $status -eq 0 ]] && echo 0 || echo 'see above')"
  done
}

failed=0
# All of them, at once: nothing else compiles them (crates/cli/tests/architecture.rs says why), and
# what does not compile is not told after hours. A stable compiler suffices.
cargo check --manifest-path fuzz/Cargo.toml --locked --bins --target-dir "$builds" || failed=1
if cargo +nightly fuzz --version >/dev/null 2>&1; then
  [[ $# -gt 0 ]] || mapfile -t all < <(cd fuzz && cargo +nightly fuzz list)
  [[ $# -gt 0 ]] || set -- "${all[@]}"
  # Before the first begins, so that no time of a target has the building of another.
  for one in "$@"; do
    cargo_fuzz build "$one" || failed=1
  done
  printf '%s\n' "$@" | xargs -P "$jobs" -I{} bash -c 'fuzz "$1"' fuzz {} || failed=1
else
  echo "libFuzzer is skipped (no nightly compiler with cargo-fuzz): the tests of the same laws"
  hunt
  [[ $failed -ne 0 ]] || failed=77
fi
print_table
exit "$failed"
