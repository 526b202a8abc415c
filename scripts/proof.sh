#!/usr/bin/env bash
# The checks that take too long for every landing, one after another; docs/testing.md says when to
# run which and their times.
#   scripts/proof.sh [STEP]...   long mutations fuzz miri sanitizers ring soak kills kubernetes
#                                collector prometheus tables packages image lab features
#                                stability coverage fresh; all of them unless named
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/steps.sh
PATH=$PATH:${XDG_CACHE_HOME:-$HOME/.cache}/throng/bin

# Tests that `make test` leaves out: docs/testing.md says what else covers them.
long() { cargo nextest run --workspace --locked --run-ignored only -E 'test(/(^|::)long::/)'; }
mutations() { scripts/mutations.sh; }
fuzz() { scripts/fuzz.sh; }
miri() { each ring/scripts/miri.sh "scripts/net.sh miri"; }
sanitizers() { each ring/scripts/sanitizers.sh "scripts/net.sh address thread"; }
ring() { ring/scripts/proof.sh; }
soak() { ring/scripts/soak.sh; }
kills() { make build && scripts/kills.sh; }
kubernetes() { make build && scripts/kubernetes_proof.sh; }
# With either form of histograms.
collector() {
  local form=OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION
  make build && scripts/collector_proof.sh &&
    env $form=base2_exponential_bucket_histogram scripts/collector_proof.sh
}
prometheus() { make build && scripts/prometheus_proof.sh; }
tables() { make build && scripts/tables_proof.sh; }
packages() { make packages; }
image() { scripts/try-image.sh; }
lab() { make lab; }
# What the default build, which all other checks are of, leaves out.
features() {
  local with=(-p throng-cli -p throng-ipc --locked)
  with+=(--features throng-cli/parquet,throng-ipc/iceoryx2)
  cargo clippy "${with[@]}" --all-targets -- -D warnings &&
    cargo nextest run "${with[@]}" -E 'package(=throng-ipc) + test(/(^|::)(tables|export)::/)'
}
stability() { make stability; }
coverage() { scripts/coverage.sh; }
# Has a table of its own.
fresh() { env -u THRONG_STEPS scripts/fresh.sh; }

[[ $# -gt 0 ]] ||
  set -- long mutations fuzz miri sanitizers ring soak kills kubernetes collector prometheus \
    tables packages image lab features stability coverage fresh
for one in "$@"; do
  step "$one" "$one"
done
