#!/usr/bin/env bash
# Builds an OpenTelemetry Collector for scripts/collector_proof.sh, once, and keeps it in
# ~/.cache/throng/bin: of its parts only the OTLP receiver and the exporters to its log and to a
# file. It has no Debian package; its parts are Go modules, put together here as the project's own
# builder does it.
set -euo pipefail
source "$(dirname "$0")/go.sh"

version=0.165.0
# Of the parts whose interfaces are stable.
stable=1.71.0
! is_kept otel-collector "$version" || exit 0

work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
find_go "The OpenTelemetry Collector" "$work"
mkdir "$work/source"
cat >"$work/source/go.mod" <<MOD
module throng/otel-collector

go 1.26

require (
	github.com/open-telemetry/opentelemetry-collector-contrib/exporter/fileexporter v$version
	go.opentelemetry.io/collector/component v$stable
	go.opentelemetry.io/collector/confmap v$stable
	go.opentelemetry.io/collector/confmap/provider/fileprovider v$stable
	go.opentelemetry.io/collector/exporter v$stable
	go.opentelemetry.io/collector/exporter/debugexporter v$version
	go.opentelemetry.io/collector/otelcol v$version
	go.opentelemetry.io/collector/receiver v$stable
	go.opentelemetry.io/collector/receiver/otlpreceiver v$version
	go.opentelemetry.io/collector/service v$version
)
MOD
cat >"$work/source/main.go" <<GO
package main

import (
	"errors"
	"os"

	"github.com/open-telemetry/opentelemetry-collector-contrib/exporter/fileexporter"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/provider/fileprovider"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/debugexporter"
	"go.opentelemetry.io/collector/otelcol"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/service/telemetry/otelconftelemetry"
)

func factories() (otelcol.Factories, error) {
	receivers, first := otelcol.MakeFactoryMap[receiver.Factory](otlpreceiver.NewFactory())
	exporters, second := otelcol.MakeFactoryMap[exporter.Factory](
		debugexporter.NewFactory(), fileexporter.NewFactory())
	return otelcol.Factories{
		Receivers: receivers,
		Exporters: exporters,
		Telemetry: otelconftelemetry.NewFactory(),
	}, errors.Join(first, second)
}

func main() {
	settings := otelcol.CollectorSettings{
		BuildInfo: component.BuildInfo{Command: "otel-collector", Version: "$version"},
		Factories: factories,
	}
	resolver := &settings.ConfigProviderSettings.ResolverSettings
	resolver.ProviderFactories = []confmap.ProviderFactory{fileprovider.NewFactory()}
	resolver.DefaultScheme = "file"
	if otelcol.NewCommand(settings).Execute() != nil {
		os.Exit(1)
	}
}
GO

echo "Building the OpenTelemetry Collector $version (once, some minutes)"
# Not tidied: the tests of its parts need modules that it does not.
(cd "$work/source" &&
  CGO_ENABLED=0 "$go" build -mod=mod -trimpath -ldflags "-s -w" -o "$work/collector" .)
keep "$work/collector" otel-collector "$version"
