#!/usr/bin/env python3
"""Asks a Prometheus what the panels and annotations of deploy/grafana ask, for
scripts/prometheus_proof.sh. A query whose metrics some run gives must have an answer, and a metric
that no run gives must be of what no run does. A second Prometheus, which takes native histograms,
has each histogram with as many values, and the same median as the first.

    scripts/prometheus_queried.py PORT PORT-OF-NATIVE PORT-OF-A-RUN...
"""

import json
import pathlib
import re
import sys
import urllib.parse
import urllib.request

classic, native, *runs = sys.argv[1:]
DASHBOARDS = pathlib.Path(__file__).resolve().parent.parent / "deploy/grafana/dashboards"
# No run here has a server in a control group with a quota; a capacity and findings come at the end.
MAY_BE_ABSENT = re.compile(r"throng_(host_cgroup_|host_ended_|capacity$|finding$)")
VARIABLES = {"$__rate_interval": "20s", "$__range": "30s", "$__interval": "5s"}
# What only shows when something is wrong.
BOUND = re.compile(r"\s*(==|>)\s*[\d.]+\s*$")
QUANTILE, NEAR, WIDTH, LEAST_S = 0.5, 0.15, 2.5, 0.005


def get(port, path):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/{path}", timeout=10) as answer:
        return answer.read().decode()


def ask(port, query):
    """The answer of a query: labels and value of each series."""
    path = "api/v1/query?" + urllib.parse.urlencode({"query": query})
    result = json.loads(get(port, path))["data"]["result"]
    return [(one["metric"], float(one["value"][1])) for one in result]


def queries():
    """Dashboard, panel or annotation, and query of all of them, without variables and bounds."""
    for file in sorted(DASHBOARDS.glob("*.json")):
        board = json.loads(file.read_text())
        panels = board["panels"]
        panels += [inner for panel in panels for inner in panel.get("panels", [])]
        asked = [(panel["title"], of["expr"])
                 for panel in panels for of in panel.get("targets", [])]
        asked += [(of["name"], of["expr"]) for of in board["annotations"]["list"]]
        for title, query in asked:
            for name, value in VARIABLES.items():
                query = query.replace(name, value)
            query = re.sub(r"\$\{?\w+(:\w+)?\}?", ".*", query)
            yield file.stem, title, BOUND.sub("", query)


def check_panels(exposed):
    with_data, absent, empty, unknown = 0, 0, [], []
    for dashboard, panel, query in queries():
        names = set(re.findall(r"throng_\w+", query))
        missing = names - exposed
        if not missing:
            if ask(classic, query):
                with_data += 1
            else:
                empty.append(f"{dashboard}, {panel}: {query}")
        elif all(map(MAY_BE_ABSENT.match, missing)):
            absent += 1
        else:
            unknown.append(f"{dashboard}, {panel}: {sorted(missing)}")
    for kind, lines in ("no data", empty), ("given by no run", unknown):
        for line in lines:
            print(f"{kind}: {line}", file=sys.stderr)
    print(f"{with_data} queries of panels with data, {absent} of what no run here does")
    return not empty and not unknown and with_data > 50


def check_native(histograms):
    is_right = True
    for name in sorted(histograms):
        counts = [sum(value for _, value in ask(port, query)) for port, query in (
            (classic, f"{name}_count"), (native, f"histogram_count({name})"))]
        # Both are scraped by the second, not at the same moment.
        is_same = counts[0] > 0 and abs(counts[1] / counts[0] - 1) < NEAR
        of_all = {port: ask(port, f"histogram_quantile({QUANTILE}, {query})") for port, query in (
            (classic, f"sum by (le) ({name}_bucket)"), (native, f"sum ({name})"))}
        values = [of_all[port][0][1] if of_all[port] else None for port in (classic, native)]
        print(f"{name}: {counts[0]:.0f} and {counts[1]:.0f} values, median {values}")
        is_right &= is_same and None not in values and is_near(*values)
    return is_right and len(histograms) >= 3


def is_near(of_classic, of_native):
    """A classic bucket is up to two and a half times as wide as its lower bound; below the least
    one both may be anything."""
    ratio = of_native / of_classic if of_classic else 0
    return 1 / WIDTH <= ratio <= WIDTH or max(of_classic, of_native) <= LEAST_S


def main():
    texts = [get(port, "metrics") for port in runs]
    samples = {name for text in texts for name in re.findall(r"^(throng_\w+)", text, re.M)}
    histograms = {name for text in texts for name in re.findall(r"^# TYPE (\w+) histogram", text,
                                                               re.M)}
    histograms = {name for name in histograms if f"{name}_count" in samples}
    up = ask(classic, "up")
    print(f"{len(up)} runs, {len(samples)} names, scrapes of at most "
          f"{max(value for _, value in ask(classic, 'scrape_samples_scraped')):.0f} series and "
          f"{max(value for _, value in ask(classic, 'scrape_duration_seconds')) * 1000:.1f} ms")
    are_up = len(up) == len(runs) and all(value == 1 for _, value in up)
    results = [are_up, check_panels(samples), check_native(histograms)]
    sys.exit(0 if all(results) else 1)


main()
