#!/usr/bin/env bash
# Which lines and regions of throng its tests run (LLVM's source-based coverage): those of
# `make test` without the lab, whose program is another, and without the ring, a workspace of its
# own. Takes half an hour.
# A process that is killed by signal 9 writes no profile: what only such ones run counts as not run.
#   scripts/coverage.sh         the table by file is in target/coverage/files
set -euo pipefail
cd "$(dirname "$0")/.."
PATH=$PATH:${XDG_CACHE_HOME:-$HOME/.cache}/throng/bin
folder=$(realpath -m "${CARGO_TARGET_DIR:-target}/coverage")
# The version of the format of profiles is LLVM's.
llvm=$(rustc -vV | sed -nE 's/^LLVM version: ([0-9]+).*/\1/p')
for tool in "llvm-profdata-$llvm" "llvm-cov-$llvm"; do
  command -v "$tool" >/dev/null || { echo "$tool is missing: apt-get install llvm-$llvm"; exit 77; }
done

rm -rf "$folder" && mkdir -p "$folder/raw"
# Dependencies are compiled as always. Not by dash, which drops variables such as CARGO_BIN_EXE_a-b.
printf '#!/bin/bash\nexec "$@" -C instrument-coverage\n' >"$folder/rustc"
chmod +x "$folder/rustc"
export RUSTC_WORKSPACE_WRAPPER=$folder/rustc CARGO_INCREMENTAL=0 CARGO_PROFILE_DEV_DEBUG=false
# Processes of one program add to the same eight files.
export LLVM_PROFILE_FILE=$folder/raw/%8m.profraw

cargo test --workspace --locked --no-run --message-format json |
  sed -nE 's/.*"executable":"([^"]+)".*/-object=\1/p' | sort -u >"$folder/objects"
# Failed tests ran their lines too: timeouts are nearer in a program that counts.
cargo nextest run --workspace --locked -E 'not package(throng-lab)' --no-fail-fast \
  --status-level fail ||
  echo "Some tests failed (above)."

find "$folder/raw" -name '*.profraw' >"$folder/profiles"
"llvm-profdata-$llvm" merge --sparse --failure-mode=all --input-files="$folder/profiles" \
  -o "$folder/all.profdata"
mapfile -t objects <"$folder/objects"
"llvm-cov-$llvm" report "${objects[@]}" --instr-profile="$folder/all.profdata" \
  --ignore-filename-regex='/(registry|rustc|lab|tests|examples|benches)/|tests\.rs$' >"$folder/files"
grep -E '^(Filename|TOTAL)' "$folder/files"
