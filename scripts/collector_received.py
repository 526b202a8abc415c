#!/usr/bin/env python3
"""Judges what an OpenTelemetry Collector got of a run, for scripts/collector_proof.sh: names, types
and units of metrics are those of docs/metrics.md, their last values those of the run folder;
histograms have the form that the environment asks for; each traced join is a trace with its phases,
at the times of the run folder; and neither the collector nor throng says that something did not
arrive.

    scripts/collector_received.py WORK TRACES-PER-SECOND

WORK has received.jsonl (of the file exporter), collector.log, throng.log and the folder run.
"""

import collections
import json
import math
import os
import pathlib
import re
import sqlite3
import sys

work, traces_a_second = pathlib.Path(sys.argv[1]), int(sys.argv[2])
DOCS = pathlib.Path(__file__).resolve().parent.parent / "docs/metrics.md"
UNITS = {"seconds": "s", "bytes": "By", "ratio": "1"}
CUMULATIVE, CLIENT, ERROR, SERIES_MAX = 2, 3, 2, 2000
ASKED = os.environ.get("OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION", "")
HISTOGRAM = "exponentialHistogram" if ASKED.startswith("base2_") else "histogram"
KINDS = {"sum": ["counter"], "gauge": ["gauge", "info"], HISTOGRAM: ["histogram"]}
# What every run of viewers with a watched server has, beside all sums of received tracks.
EXPECTED = """throng_info throng_run_seconds throng_crowd throng_join_seconds
    throng_user_seconds_total throng_failures_total throng_generator_cpu_seconds_total
    throng_host_hottest_thread_ratio throng_host_process_cpu_seconds_total
    throng_exporter_left_out_series""".split()


def check(holds, *what):
    if not holds:
        sys.exit("wrong: " + " ".join(str(part) for part in what))


def attributes(of):
    """Names and values; each value is of one type, such as {"stringValue": "a"}."""
    return {one["key"]: next(iter(one["value"].values())) for one in of.get("attributes", [])}


def received():
    """Metrics of each request, in their order, and all spans."""
    requests, spans = [], []
    for line in (work / "received.jsonl").read_text().splitlines():
        document = json.loads(line)
        for kind, scopes, items, into in (
            ("resourceMetrics", "scopeMetrics", "metrics", requests.append),
            ("resourceSpans", "scopeSpans", "spans", spans.extend),
        ):
            for one in document.get(kind, []):
                check(attributes(one["resource"])["service.name"] == "throng", one["resource"])
                for scope in one[scopes]:
                    check(scope["scope"]["name"] == "throng", scope["scope"])
                    into(scope[items])
    return requests, spans


# Metrics.


def declared():
    """Types by name, as the tables of docs/metrics.md have them."""
    rows = re.findall(r"^\| `(throng\w+)` \| (\w+) \|", DOCS.read_text(), re.MULTILINE)
    check(len(rows) > 100, DOCS, "has", len(rows), "metrics")
    return dict(rows)


def value(name, form, point):
    """The number of a point; of a histogram how many it has."""
    check(int(point["timeUnixNano"]) > 0, name, point)
    if form != "gauge":
        check(0 < int(point["startTimeUnixNano"]) <= int(point["timeUnixNano"]), name, point)
    if form != HISTOGRAM:
        number = float(point["asDouble"])
        check(not math.isinf(number), name, point)
        return number
    count = int(point.get("count", 0))
    if form == "exponentialHistogram":
        check_exponential(name, point, count)
        return count
    counts = [int(one) for one in point["bucketCounts"]]
    check(sum(counts) == count and len(counts) == len(point["explicitBounds"]) + 1, name, point)
    return count


def check_exponential(name, point, count):
    """All times are counted once, and their sum lies between those of the bounds of their buckets;
    a time is exact to 1 %."""
    positive, zero = point.get("positive", {}), int(point.get("zeroCount", 0))
    counts = [int(one) for one in positive.get("bucketCounts", [])]
    check(zero + sum(counts) == count and len(counts) <= 160, name, point)
    base, offset = 2 ** 2 ** -point["scale"], positive.get("offset", 0)
    low, high = (sum(number * base ** (offset + index + end) for index, number in enumerate(counts))
                 for end in (0, 1))
    high += zero * point["zeroThreshold"]
    check(0.98 * low <= point.get("sum", 0) <= 1.02 * high, name, low, high, point)


def metrics_of(requests, types):
    """The last value of each series, by name and labels."""
    last = {}
    for request in requests:
        now = {}
        for metric in request:
            form = next((form for form in KINDS if form in metric), None)
            check(form, metric["name"], "came with", list(metric))
            name, data = metric["name"] + ("_total" if form == "sum" else ""), metric[form]
            declared_as = types.get(name)
            check(declared_as in KINDS[form], name, "came as", form, "and is declared", declared_as)
            unit = UNITS.get(metric["name"].rsplit("_", 1)[-1], "")
            check(metric.get("unit", "") == unit, name, "has the unit", metric.get("unit"))
            check(metric.get("description"), name, "has no description")
            is_cumulative = data.get("aggregationTemporality") == CUMULATIVE
            check(form == "gauge" or is_cumulative, name, "is not cumulative")
            check(form != "sum" or data.get("isMonotonic"), name, "may fall")
            for point in data.get("dataPoints", []):
                series = (name, tuple(sorted(attributes(point).items())))
                check(series not in now, series, "is twice in a request")
                now[series] = value(name, form, point)
                check(form == "gauge" or now[series] >= last.get(series, 0), series, "fell")
        check(len(now) <= SERIES_MAX, len(now), "series in a request")
        last |= now
    return last


def check_metrics(requests, run):
    types = declared()
    last = metrics_of(requests, types)
    names = {name for name, _ in last}
    of_tracks = {name for name in types if name.startswith("throng_track_")}
    missing = (of_tracks | set(EXPECTED)) - names
    check(not missing, "not received:", missing)
    for name, label, query in (
        ("throng_track_packets_original_total", None, "sum(packets_original) FROM series"),
        ("throng_track_frames_decodable_total", None, "sum(frames_decodable) FROM series"),
        ("throng_join_seconds", ("phase", "first_frame"), "count(first_frame_us) FROM participant"),
        ("throng_failures_total", ("reason", "http_503"),
         "count(*) FROM participant WHERE failure_reason = 'http_503'"),
    ):
        of_name = [(has, number) for (of, has), number in last.items() if of == name]
        came = sum(number for has, number in of_name if label is None or label in has)
        (stored,) = run.execute(f"SELECT {query}").fetchone()
        check(came == stored and stored > 0, name, label, "is", came, "and in run.db", stored)
    arrived = f"{len(names)} of {len(types)} names, {len(last)} series"
    print(f"{len(requests)} requests with metrics: {arrived}")


# Traces.


def interval(span):
    return int(span["startTimeUnixNano"]), int(span["endTimeUnixNano"])


def phases_of(participant):
    """When each phase was reached, by its name."""
    ends = ("intended_us", "ended_us")
    return {key[:-3]: participant[key] for key in participant.keys()
            if key.endswith("_us") and key not in ends and participant[key] is not None}


def check_session(spans, participant, run_trace, started_at_us):
    """The spans of a traced join against its row."""
    number = participant["participant"]
    session = next(span for span in spans if span["name"] == "session")
    parts = {span["name"]: span for span in spans if span is not session}
    check(not session.get("parentSpanId"), number, session)
    check(session["kind"] == CLIENT, number, session)
    check([link["traceId"] for link in session["links"]] == [run_trace], number, session)

    def ns(us):
        return (started_at_us + us) * 1000

    stay = ns(participant["intended_us"]), ns(participant["ended_us"])
    check(interval(session) == stay, number, session, "and in run.db", stay)
    reached = phases_of(participant)
    check(len(parts) == len(spans) - 1, number, "has a phase twice")
    check(parts.keys() == reached.keys(), number, set(parts), "and in run.db", set(reached))
    for name, span in parts.items():
        check(span["parentSpanId"] == session["spanId"], number, span)
        (begin, end), expected = interval(span), ns(reached[name])
        check(begin <= end == expected, number, name, "ends at", end, "and in run.db", expected)
    is_error = participant["outcome"] == "failed"
    check((session.get("status", {}).get("code", 0) == ERROR) == is_error, number, session)
    check(attributes(session).get("error.type") == participant["failure_reason"], number, session)


def check_traces(spans, run):
    traces = collections.defaultdict(list)
    for span in spans:
        traces[span["traceId"]].append(span)
    ids = {(span["traceId"], span["spanId"]) for span in spans}
    check(len(ids) == len(spans), "a span came twice")
    of_run = [span for span in spans if span["name"] == "run"]
    check(len(of_run) == 1 and "throng.outcome" in attributes(of_run[0]), of_run)
    run_trace = of_run[0]["traceId"]
    check(traces.pop(run_trace) == of_run, "the trace of the run has other spans")
    query = "SELECT value FROM info WHERE key = 'started_at_unix_us'"
    (started_at_us,) = run.execute(query).fetchone()
    run.row_factory = sqlite3.Row
    rows = {row["participant"]: row for row in run.execute("SELECT * FROM participant")}
    traced = collections.Counter()
    for of_join in traces.values():
        sessions = [attributes(span) for span in of_join if span["name"] == "session"]
        check(len(sessions) == 1, "a trace has the sessions", sessions)
        participant = rows.pop(int(sessions[0]["throng.participant"]))
        traced[participant["intended_us"] // 1_000_000] += 1
        check_session(of_join, participant, run_trace, int(started_at_us))
    others = collections.Counter(row["intended_us"] // 1_000_000 for row in rows.values())
    joined = traced + others
    expected = {second: min(count, traces_a_second) for second, count in joined.items()}
    check(traced == expected, "traced joins by second", dict(traced), "and not", expected)
    sessions = [span for span in spans if span["name"] == "session"]
    failed = [span for span in sessions if span.get("status", {}).get("code", 0) == ERROR]
    check(failed and rows, len(failed), "failed joins are traced,", len(rows), "joins are not")
    joins = f"{len(traces)} joins, of which {len(failed)} failed"
    print(f"{len(spans)} spans: {joins}; {len(rows)} more joins without a trace")


def check_logs():
    """A line of the collector's log begins with its time and level."""
    for line in (work / "collector.log").read_text().splitlines():
        level = line.split("\t")[1] if line.count("\t") else "info"
        is_good = level == "info" and "partial success" not in line.lower()
        check(is_good, "the collector says:", line)
    for line in (work / "throng.log").read_text().splitlines():
        check(not line.startswith("otlp: "), "throng says:", line)


def main():
    check_logs()
    requests, spans = received()
    # Two at least while it runs, and one at its end.
    check(len(requests) >= 3, len(requests), "requests with metrics")
    run = sqlite3.connect(f"file:{work}/run/run.db?mode=ro", uri=True)
    check_metrics(requests, run)
    check_traces(spans, run)


main()
