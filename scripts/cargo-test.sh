#!/usr/bin/env bash
# `cargo test` with these arguments, to the end of all tests. Real servers on a machine with other work fail now and then
# for reasons of their own: a test that fails is run once more by itself. It says so, and only a test that fails twice is a
# failure; a test binary that ends without naming its failures is one at once.
set -uo pipefail
cd "$(dirname "$0")/.."

said=$(mktemp)
trap 'rm -f "$said"' EXIT
cargo test --no-fail-fast "$@" 2>&1 | tee "$said"
[[ ${PIPESTATUS[0]} -eq 0 ]] && exit 0

# What failed: the names under `failures:`, and the binaries that cargo lists at the end, as `-p PACKAGE --test NAME`.
mapfile -t failed < <(sed -n '/^failures:$/,/^test result: FAILED/s/^    \([A-Za-z_:0-9]\+\)$/\1/p' "$said" | sort -u)
mapfile -t binaries < <(sed -n 's/^    `-p [^ ]* \(--.*\)`$/\1/p' "$said" | sort -u)
if [[ ${#failed[@]} -eq 0 || $(grep -c '^test result: FAILED' "$said") -ne ${#binaries[@]} ]]; then
  echo "Something else than a test failed: see above."
  exit 1
fi
status=0
for binary in "${binaries[@]}"; do
  echo "AGAIN, by themselves: ${failed[*]}"
  # Of the whole workspace, so that nothing is built a second time with other features.
  # shellcheck disable=SC2086 # a list of words
  cargo test --workspace --locked $binary -- --exact "${failed[@]}" || status=1
done
exit $status
