//! A watched host made up for tests, and the laws of what is asked of one.

use std::collections::BTreeMap;

use throng_observation::RunTime;
use throng_observation::host::*;
use throng_observation::run::RunData;

use super::*;
use crate::example;

const PACK: &str = r#"[{"pack":"janus","title":"Janus","source":"x","processes":["janus"],
  "thread":[{"name":"hloop *","group":"hloop","meaning":"Sends to viewers",
    "setting":{"name":"event_loops","place":"janus.jcfg: general","unit":"thread","default":"0","advice":"As many as cores"}},
    {"name":"mp *","group":"streaming mountpoints","meaning":"Hands packets to viewers"}],
  "log":[{"id":"old_packet_discarded","pattern":"x","meaning":"A packet waited too long","hint":"hloop is full"}]}]"#;

/// Builds rows as a watcher sends them.
#[derive(Default)]
pub(crate) struct Rows(HostData);

impl Rows {
    pub(crate) fn series(
        &mut self,
        metric: &str,
        unit: Unit,
        labels: &[(&str, &str)],
        limit: Option<f64>,
        values: impl IntoIterator<Item = (i64, f64)>,
    ) {
        let id = SeriesId(self.0.series.len() as u32);
        let labels =
            labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        self.0.series.push(HostSeries {
            id,
            host: HostId(0),
            metric: metric.into(),
            unit,
            labels,
            limit,
        });
        self.0.samples.extend(values.into_iter().map(|(at_us, value)| HostSample {
            series: id,
            at: RunTime(at_us),
            value,
        }));
    }

    fn thread(&mut self, name: &str, tid: u32, cpu: impl Fn(i64) -> f64) {
        let tid = tid.to_string();
        let labels =
            [("process", "janus"), ("pid", "4000"), ("tid", tid.as_str()), ("thread", name)];
        let each = |value: &dyn Fn(i64) -> f64| {
            (-4..60).map(|second| (second * 1_000_000 + 30_000, value(second))).collect::<Vec<_>>()
        };
        self.series("thread.cpu", Unit::Ratio, &labels, Some(1.0), each(&cpu));
        let wait = each(&|second| (cpu(second) - 0.7).max(0.0) / 8.0);
        self.series("thread.run_queue_wait", Unit::Ratio, &labels, None, wait);
    }

    fn host(&mut self, metric: &str, unit: Unit, limit: Option<f64>, value: impl Fn(i64) -> f64) {
        let each = (-4..60).map(|second| (second * 1_000_000 + 30_000, value(second)));
        self.series(metric, unit, &[], limit, each.collect::<Vec<_>>());
    }

    pub(crate) fn event(&mut self, at_s: i64, kind: HostEventKind, detail: &str) {
        self.0.events.push(HostEvent::new(HostId(0), RunTime(at_s * 1_000_000), kind, detail));
    }
}

fn profile(moment: &str, hot: u32) -> Profile {
    let frame = |symbol: &str, module: &str| Frame { symbol: symbol.into(), module: module.into() };
    let stack = |thread: &str, frames: &[u32], count| Stack {
        pid: 4000,
        tid: 4012,
        thread: thread.into(),
        frames: frames.into(),
        count,
    };
    Profile {
        host: HostId(0),
        moment: moment.into(),
        started_at: RunTime(30_000_000),
        duration_us: 10_000_000,
        frequency_hz: 99,
        method: ProfileMethod::CpuClock,
        frames: vec![
            frame("srtp_protect", "libsrtp2.so.1"),
            frame("janus_ice_outgoing_traffic_handle<Some & thing>", "janus"),
            frame("g_main_loop_run", "libglib-2.0.so.0"),
            frame("udp_sendmsg", "[kernel]"),
        ],
        stacks: vec![
            stack("hloop 1", &[0, 1, 2], hot),
            stack("hloop 1", &[3, 1, 2], 300),
            stack("mp 1", &[], 40),
            stack("mp 1", &[99, 2], 5),
        ],
        samples_lost: 3,
        limits: vec!["no kernel symbols: kernel.kptr_restrict is 2".into()],
    }
}

/// The run that degrades, watched: one sending thread fills its core from second 38 on.
pub(crate) fn watched() -> RunData {
    let mut rows = Rows::default();
    let load = |second: i64| {
        (second.clamp(0, 10) as f64 / 10.0) * 0.5 + (second - 38).clamp(0, 10) as f64 * 0.048
    };
    rows.thread("hloop 1", 4012, load);
    (2..9).for_each(|n| rows.thread(&format!("hloop {n}"), 4012 + n, |second| load(second) * 0.1));
    rows.thread("mp 1", 4030, |second| load(second) * 0.3);
    rows.thread("janus", 4000, |_| 0.001);
    rows.thread("ws thread", 4040, |second| if second < 10 { 0.04 } else { 0.002 });
    let labels = [("process", "janus"), ("pid", "4000")];
    let each = |value: &dyn Fn(i64) -> f64| {
        (-4..60).map(|second| (second * 1_000_000 + 30_000, value(second))).collect::<Vec<_>>()
    };
    let all = |second: i64| load(second) * 2.0 + 0.001 + if second < 10 { 0.04 } else { 0.002 };
    rows.series("process.cpu", Unit::Ratio, &labels, None, each(&all));
    rows.series("process.rss", Unit::Bytes, &labels, None, each(&|s| 40e6 + s.max(0) as f64 * 1e5));
    rows.series(
        "process.fds",
        Unit::Count,
        &labels,
        Some(1_024.0),
        each(&|s| 40.0 + s.clamp(0, 10) as f64 * 30.0),
    );
    rows.host("host.cpu.user", Unit::Ratio, Some(4.0), |s| load(s) * 1.4);
    rows.host("host.cpu.system", Unit::Ratio, Some(4.0), |s| load(s) * 0.5);
    rows.host("host.cpu.busy", Unit::Ratio, Some(4.0), |s| load(s) * 1.9);
    rows.host("host.cpu.iowait", Unit::Ratio, Some(4.0), |_| 0.0);
    rows.host("host.pressure.cpu.some", Unit::Ratio, None, |s| (load(s) - 0.6).max(0.0));
    rows.host("udp.rcvbuf_errors", Unit::PerSecond, None, |s| if s > 45 { 12.0 } else { 0.0 });
    let lo = [("interface", "eth0")];
    rows.series(
        "nic.tx_bytes",
        Unit::BytesPerSecond,
        &lo,
        Some(125e6),
        each(&|s| s.clamp(0, 10) as f64 * 1.4e6),
    );
    rows.series("nic.rx_bytes", Unit::BytesPerSecond, &lo, Some(125e6), each(&|_| 2e4));
    rows.series(
        "disk.read_bytes",
        Unit::BytesPerSecond,
        &[("device", "vda")],
        None,
        each(&|_| 1e5),
    );
    for (cpu, busy) in [("0", 0.9), ("1", 0.3)] {
        rows.series(
            "core.busy",
            Unit::Ratio,
            &[("cpu", cpu)],
            Some(1.0),
            each(&|s| load(s) * busy),
        );
    }
    let socket = [("process", "janus"), ("pid", "4000"), ("port", "5004"), ("protocol", "udp")];
    let dropped = each(&|s| if s > 45 { 12.0 } else { 0.0 });
    rows.series("socket.drops", Unit::PerSecond, &socket, None, dropped);
    rows.host("host.memory.available", Unit::Bytes, Some(8e9), |s| 6e9 - s.max(0) as f64 * 2e7);
    let group = [("cgroup", "/system.slice/janus.service")];
    rows.series(
        "cgroup.memory",
        Unit::Bytes,
        &group,
        Some(2e9),
        each(&|s| 1e9 + s.max(0) as f64 * 1e7),
    );
    rows.series("disk.queue", Unit::Count, &[("device", "vda")], None, each(&|_| 0.3));
    let pattern = [("pattern", "old_packet_discarded")];
    rows.series(
        "log.lines",
        Unit::PerSecond,
        &pattern,
        None,
        each(&|s| if s > 40 { 31.0 } else { 0.0 }),
    );
    for (group, protocol, bytes) in [("chat", "h1", 9e6), ("playlists", "h2", 1e6)] {
        let labels = [("uri_group", group), ("protocol", protocol)];
        rows.series(
            "access.bytes",
            Unit::BytesPerSecond,
            &labels,
            None,
            each(&|s| if s < 0 { 0.0 } else { bytes }),
        );
        let labels = [("uri_group", group), ("protocol", protocol), ("status", "2xx")];
        rows.series("access.requests", Unit::PerSecond, &labels, None, each(&|_| 20.0));
    }
    rows.series(
        "janus_sessions",
        Unit::Count,
        &[("endpoint", "admin")],
        None,
        each(&|s| s.clamp(0, 100) as f64),
    );
    rows.event(-4, HostEventKind::ProcessFound, "janus (PID 4000)");
    rows.event(41, HostEventKind::LogLine, "Discarding too old outgoing packet (age=6597865us)");
    rows.event(-4, HostEventKind::Unreadable, "/proc/4000/io: permission denied; run as root");
    rows.0.profiles = vec![profile("baseline", 20), profile("fail", 900)];
    let facts = BTreeMap::from([
        ("kernel".into(), "6.18".into()),
        ("net.core.rmem_max".into(), "212992".into()),
        (throng_observation::pack::PACKS_FACT.into(), PACK.into()),
    ]);
    rows.0.hosts.push(HostInfo {
        host: HostId(0),
        name: "media one".into(),
        facts,
        clock_error_us: 400,
        watcher_cpu_us: 310_000,
        watcher_rss_bytes: 9 << 20,
    });
    RunData { host: rows.0, ..example::degraded() }
}

/// The search of [`example::searched`], watched: the only sending thread is full at 42 viewers.
pub(crate) fn searched() -> RunData {
    let run = example::searched();
    let users: Vec<(i64, f64)> =
        run.crowd.iter().map(|row| (row.second, f64::from(row.intended))).collect();
    // A little of everything else that a host does.
    let stir = |second: i64| 1.0 + ((second * 37) % 11) as f64 * 0.004;
    let each = |value: &dyn Fn(f64) -> f64| -> Vec<(i64, f64)> {
        users
            .iter()
            .map(|(second, users)| ((second + 1) * 1_000_000, value(*users) * stir(*second)))
            .collect()
    };
    let hot = |users: f64| (0.02 + 0.0228 * users).min(0.96);
    let mut rows = Rows::default();
    let labels = |tid: &'static str, thread: &'static str| {
        [("process", "janus"), ("pid", "4000"), ("tid", tid), ("thread", thread)]
    };
    rows.series("thread.cpu", Unit::Ratio, &labels("4012", "hloop 1"), Some(1.0), each(&hot));
    rows.series(
        "thread.run_queue_wait",
        Unit::Ratio,
        &labels("4012", "hloop 1"),
        None,
        each(&|_| 0.01),
    );
    rows.series(
        "thread.cpu",
        Unit::Ratio,
        &labels("4030", "mp 1"),
        Some(1.0),
        each(&|users| 0.004 * users),
    );
    let process = [("process", "janus"), ("pid", "4000")];
    rows.series(
        "process.cpu",
        Unit::Ratio,
        &process,
        None,
        each(&|users| hot(users) + 0.004 * users),
    );
    rows.series("process.rss", Unit::Bytes, &process, None, each(&|users| 4e7 + 6e5 * users));
    rows.series(
        "process.fds",
        Unit::Count,
        &process,
        Some(1_024.0),
        each(&|users| 40.0 + 3.0 * users),
    );
    rows.series("host.cpu.busy", Unit::Ratio, &[], Some(4.0), each(&|users| 0.1 + 0.045 * users));
    let line = [("interface", "eth0")];
    rows.series(
        "nic.tx_bytes",
        Unit::BytesPerSecond,
        &line,
        Some(125e6),
        each(&|users| 1.4e5 * users),
    );
    rows.series("nic.tx_packets", Unit::PerSecond, &line, None, each(&|users| 170.0 * users));
    rows.series(
        "udp.rcvbuf_errors",
        Unit::PerSecond,
        &[],
        None,
        each(&|users| if users > 40.0 { 12.0 } else { 0.0 }),
    );
    rows.event(0, HostEventKind::ProcessFound, "janus (PID 4000)");
    let facts = BTreeMap::from([(throng_observation::pack::PACKS_FACT.into(), PACK.into())]);
    rows.0.hosts.push(HostInfo { name: "media one".into(), facts, ..HostInfo::default() });
    RunData { host: rows.0, ..run }
}

fn one(unit: Unit, values: &[(i64, f64)]) -> RunData {
    let mut rows = Rows::default();
    rows.series(
        "m",
        unit,
        &[],
        None,
        values.iter().map(|(at_s, value)| (at_s * 1_000_000, *value)),
    );
    RunData { host: rows.0, ..RunData::default() }
}

#[test]
fn a_byte_that_passes_two_devices_counts_once_on_the_page_and_in_the_accounts() {
    let unexplained = |run: &RunData| summarise(run)[0].unaccounted_tx_ratio.unwrap();
    let disks = |run: &RunData| {
        let page = crate::html::render(run, &crate::summarise(run, &[], std::time::Duration::ZERO));
        let at = page.find(">Disk</a> <small>").unwrap();
        page[at..at + page[at..].find("</figure>").unwrap()].to_owned()
    };
    let plain = watched();
    let mut stacked = watched();
    let next = stacked.host.series.iter().map(|series| series.id.0).max().unwrap() + 1;
    // What is on the disk again as a volume, and what the card sends again on a bridge and in the
    // container.
    for (id, metric, upper) in [
        (next, "disk.read_bytes", vec![("device", "dm-0")]),
        (next + 1, "nic.tx_bytes", vec![("interface", "docker0")]),
        (next + 2, "nic.tx_bytes", vec![("interface", "eth0"), ("netns", "4000")]),
    ] {
        let of = stacked.host.series.iter().find(|series| series.metric == metric).unwrap().clone();
        let labels =
            upper.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        stacked.host.series.push(HostSeries { id: SeriesId(id), labels, ..of.clone() });
        let again = stacked.host.samples.iter().filter(|sample| sample.series == of.id);
        let again: Vec<_> =
            again.map(|sample| HostSample { series: SeriesId(id), ..*sample }).collect();
        stacked.host.samples.extend(again);
    }
    assert_eq!(unexplained(&stacked), unexplained(&plain));
    assert_eq!(disks(&stacked), disks(&plain));
}

#[test]
fn two_watches_of_one_machine_have_names_of_their_own() {
    let mut run = watched();
    let again = HostInfo { host: HostId(1), ..run.host.hosts[0].clone() };
    run.host.hosts.push(again);
    let summary = crate::summarise(&run, &[], std::time::Duration::ZERO);
    let names: Vec<&str> = summary.hosts.iter().map(|host| host.name.as_str()).collect();
    assert_eq!(names, ["media one 0", "media one 1"]);
}

#[test]
fn a_rate_covers_the_time_before_its_sample_and_a_level_the_time_after() {
    let window = Window { from_us: 0, until_us: 3_000_000 };
    let values = [(1, 1.0), (2, 3.0), (3, 5.0)];
    let of = |unit| {
        let run = one(unit, &values);
        let hosts = hosts(&run);
        hosts[0].metric("m")[0].integral(window)
    };
    assert_eq!(of(Unit::Ratio), Some(9.0));
    assert_eq!(of(Unit::Count), Some(4.0));
}

#[test]
fn a_value_holds_until_the_next_and_nothing_is_known_after_its_end() {
    let run = one(Unit::Count, &[(0, 2.0), (10, f64::NAN), (20, 4.0), (30, 4.0)]);
    let hosts = hosts(&run);
    let (series, window) = (hosts[0].metric("m")[0], Window { from_us: 0, until_us: 30_000_000 });
    assert_eq!((series.integral(window), series.mean(window)), (Some(60.0), Some(3.0)));
    assert_eq!((series.max(window), series.quantile(window, 0.5)), (Some(4.0), Some(2.0)));
    let grid = Grid { first_us: 0, width_us: 5_000_000, count: 6 };
    assert_eq!(series.on(grid), [Some(2.0), Some(2.0), None, None, Some(4.0), Some(4.0)]);
    let mut sums = vec![None; 6];
    series.add_to(grid, &mut sums);
    assert_eq!(sums, series.on(grid));
}

#[test]
fn the_summary_names_the_thread_that_was_full() {
    let run = watched();
    let server = &summarise(&run)[0];
    let hottest = server.hottest_thread.as_ref().unwrap();
    assert_eq!((hottest.name.as_str(), hottest.tid), ("hloop 1", 4012));
    assert!((hottest.cpu_max - 0.98).abs() < 1e-9 && hottest.cpu_p50 > 0.4, "{hottest:?}");
    assert_eq!(hottest.meaning.as_deref(), Some("Sends to viewers"));
    assert!(
        hottest
            .help
            .as_deref()
            .is_some_and(|help| help.contains("event_loops (janus.jcfg: general)"))
    );
    let sum = server.threads_cpu_ratio.unwrap();
    assert!((sum - 1.0).abs() < 0.02, "{sum}");
    assert_eq!(server.udp_receive_buffer_errors, Some(12 * 14));
    assert_eq!(server.log_lines.get("old_packet_discarded"), Some(&(31 * 19)));
    assert_eq!((server.open_fds_max, server.open_fds_limit), (Some(340.0), Some(1_024.0)));
    assert_eq!(server.network[0].line_rate_bps, Some(1e9));
    assert_eq!(server.profiles, ["baseline", "fail"]);
    assert!(server.unaccounted_tx_ratio.is_some_and(|ratio| (0.0..0.3).contains(&ratio)));
    assert_eq!(server.unreadable.len(), 1);
}

/// `watched`, with answers 502 on the chat: 3 before the run, 40 in its first minute, 7 after it.
fn refused() -> RunData {
    let mut run = watched();
    let id = SeriesId(run.host.series.len() as u32);
    let labels = [("log", "access"), ("uri_group", "chat_websocket"), ("status", "502")];
    let labels = labels.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    let metric = "access.server_errors".to_owned();
    run.host.series.push(HostSeries {
        id,
        metric,
        labels,
        unit: Unit::Count,
        ..HostSeries::default()
    });
    let sums = [(-2.0, 3.0), (20.5, 23.0), (59.9, 43.0), (70.0, 50.0)];
    let at = |second: f64| RunTime((second * 1e6) as i64);
    let samples = sums.map(|(second, value)| HostSample { series: id, at: at(second), value });
    run.host.samples.extend(samples);
    run
}

#[test]
fn answers_5xx_are_counted_by_uri_and_minute_of_the_run() {
    let run = refused();
    let errors = &summarise(&run)[0].server_errors;
    let [chat] = errors.as_slice() else { panic!("{errors:?}") };
    assert_eq!((chat.uri_group.as_str(), chat.status.as_str()), ("chat_websocket", "502"));
    let minutes = run.ended_at.map_or(2, |ended| (ended.0 + 59_999_999) / 60_000_000);
    assert_eq!(chat.by_minute.len() as i64, minutes, "{chat:?}");
    assert_eq!(
        (chat.by_minute[0], chat.per_minute_max),
        (40, 40),
        "those before the run are not its own"
    );
    let chart = figure(&run, "Answers 5xx").unwrap();
    assert!(chart.contains("502 on chat_websocket"), "{chart}");
    let summary = crate::summarise(&run, &[], std::time::Duration::ZERO);
    let text = crate::text::summary(&summary);
    assert!(text.contains("answers 5xx: 502 ×"), "{text}");
    assert!(text.contains(" on chat_websocket, at most 40 a minute"), "{text}");
    assert!(text.contains("MB: chat 90.0 %, playlists 10.0 %; "), "{text}");
    assert_eq!(figure(&watched(), "Answers 5xx"), None);
}

#[test]
fn the_others_are_counted_together() {
    let run = watched();
    let (hosts, grid) = (hosts(&run), Grid { first_us: 0, width_us: 1_000_000, count: 60 });
    let threads = Threads::of(&hosts[0]);
    let groups = threads.groups(grid, &Knowledge::of(hosts[0].info), 2);
    let named: Vec<_> = groups.iter().map(|group| (group.name.as_str(), group.count)).collect();
    assert_eq!(named, [("hloop", 8), ("mp 1", 1), ("2 others", 2)]);
    let sum: f64 = groups.iter().map(|group| group.cpu_s).sum();
    assert!((sum - threads.cpu_s()).abs() < 1e-9, "nothing is left out");
}

#[test]
fn what_ended_is_said_and_how() {
    let mut run = watched();
    for (at_s, kind, detail) in [
        (0, HostEventKind::ProcessFound, "janus (PID 4000): janus -o"),
        (1, HostEventKind::ProcessEnded, "sh (PID 7): it executed another program"),
        (50, HostEventKind::ProcessEnded, "janus (PID 4000): it ended by signal 9"),
    ] {
        run.host.events.push(HostEvent::new(HostId(0), RunTime(at_s * 1_000_000), kind, detail));
    }
    let summary = crate::summarise(&run, &[], std::time::Duration::ZERO);
    let ended: Vec<_> =
        summary.hosts[0].ended.iter().map(|e| (e.pid, e.signal, e.exit_code)).collect();
    assert_eq!(ended, [(4000, Some(9), None)], "a program that executes another one goes on");
    let text = crate::text::summary(&summary);
    assert!(text.contains("ended: janus (PID 4000) at 50.0 s by signal 9 (SIGKILL)"), "{text}");
    assert!(crate::html::render(&run, &summary).contains("janus (PID 4000): it ended by signal 9"));
}

#[test]
fn any_rows_are_borne() {
    let mut rows = Rows::default();
    let extreme = [
        (i64::MIN, 1.0),
        (-1, f64::INFINITY),
        (0, f64::NEG_INFINITY),
        (5, 1e308),
        (i64::MAX, 1e308),
    ];
    for metric in
        ["thread.cpu", "process.cpu", "nic.tx_bytes", "access.bytes", "host.cpu.busy", "log.lines"]
    {
        for unit in [Unit::Ratio, Unit::Count] {
            rows.series(
                metric,
                unit,
                &[("thread", "\"<b>"), ("tid", "x")],
                Some(f64::NAN),
                extreme,
            );
        }
    }
    rows.series("m", Unit::Count, &[], None, []);
    rows.event(i64::MAX / 2_000_000, HostEventKind::ProcessEnded, "<script>");
    rows.0.samples.push(HostSample { series: SeriesId(4_000), at: RunTime(0), value: 1.0 });
    rows.0.samples.push(HostSample { series: SeriesId(0), at: RunTime(-7), value: 1.0 });
    rows.0.profiles.push(Profile { stacks: Vec::new(), ..profile("x", 0) });
    for base in [RunData::default(), example::degraded()] {
        let run = RunData { host: rows.0.clone(), ..base };
        let summary = crate::summarise(&run, &[], std::time::Duration::ZERO);
        let page = crate::html::render(&run, &summary);
        assert_eq!(page.matches("<script>").count(), 1, "the page's own");
        assert!(!page.contains("NaN") && !page.contains("<b>\""), "{page}");
        assert!(!crate::text::summary(&summary).is_empty() && !crate::csv::hosts(&run).is_empty());
    }
}

/// The figure of that title on the page of a run.
fn figure(run: &RunData, title: &str) -> Option<String> {
    let page = crate::html::render(run, &crate::summarise(run, &[], std::time::Duration::ZERO));
    let at = page.find(&format!(">{title}</a> <small>"))?;
    Some(page[at..at + page[at..].find("</figure>")?].to_owned())
}

#[test]
fn levels_are_drawn_against_their_limits_the_nearest_first() {
    let chart = figure(&watched(), "Levels against their limits").unwrap();
    let places = [
        "cgroup.memory of /system.slice/janus.service",
        "process.fds of janus",
        "nic.tx_bytes of eth0",
    ]
    .map(|name| chart.find(name).unwrap_or_else(|| panic!("{name}: {chart}")));
    assert!(places.is_sorted(), "{places:?}");
    assert!(chart.contains("the limit"));
    // What is left of the host's memory is no level that fills up, and threads have their own
    // chart.
    assert!(!chart.contains("host.memory.available") && !chart.contains("thread.cpu"), "{chart}");
}

#[test]
fn cores_sockets_memory_and_the_disks_queue_have_their_charts() {
    for (title, name) in [
        ("Each core", "CPU 0"),
        ("Dropped at sockets", "udp 5004 of janus"),
        ("Memory left", "of the control group"),
        ("Disk queue", "vda"),
    ] {
        let chart = figure(&watched(), title).unwrap_or_else(|| panic!("{title}"));
        assert!(chart.contains(name), "{title}: {chart}");
    }
    // One core is the host, and what was not looked at has no chart.
    let mut bare = watched();
    bare.host
        .series
        .retain(|series| !["core.busy", "socket.drops"].contains(&series.metric.as_str()));
    assert_eq!((figure(&bare, "Each core"), figure(&bare, "Dropped at sockets")), (None, None));
}

#[test]
fn what_endpoints_tell_is_charted_where_it_moves_and_bounded() {
    let mut run = watched();
    let chart = figure(&run, "janus_sessions").unwrap();
    assert!(chart.contains("class=\"line c1\""), "{chart}");
    let endless =
        |run: &mut RunData, metric: &str, labels: &[(&str, String)], value: &dyn Fn(i64) -> f64| {
            let id = SeriesId(run.host.series.len() as u32);
            let labels =
                labels.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
            let metric = metric.to_owned();
            run.host.series.push(HostSeries { id, metric, labels, ..HostSeries::default() });
            let at = |second: i64| RunTime(second * 1_000_000);
            run.host.samples.extend((0..60).map(|s| HostSample {
                series: id,
                at: at(s),
                value: value(s),
            }));
        };
    let page = |run: &RunData| {
        crate::html::render(run, &crate::summarise(run, &[], std::time::Duration::ZERO))
    };
    let before = page(&run).matches("<figure class=\"chart\">").count();
    // What never moves is in the table alone; of what does, the server's own words come before its
    // runtime's.
    endless(&mut run, "rooms_max", &[], &|_| 7.0);
    for number in 0..300 {
        endless(&mut run, &format!("go_thing_{number}"), &[], &|s| s as f64);
    }
    for peer in 0..200 {
        endless(&mut run, "media_packets", &[("peer", peer.to_string())], &|s| (s * peer) as f64);
    }
    let after = page(&run);
    let drawn = after.matches("<figure class=\"chart\">").count() - before;
    assert_eq!(drawn, 7, "eight metrics, janus_sessions among them");
    let packets = figure(&run, "media_packets").unwrap();
    assert!(
        packets.contains("peer=199") && packets.matches("class=\"line c").count() == 3,
        "{packets}"
    );
    assert_eq!(figure(&run, "rooms_max"), None);
    assert!(after.contains("<td>rooms_max</td>") || after.contains("more are in run.db"));
}

#[test]
fn the_page_of_a_thousand_for_ten_minutes_stays_small() {
    let noise = |second: i64, n: i64| ((second * 7_919 + n * 104_729) % 9_973) as f64 / 9_973.0;
    let mut rows = Rows::default();
    let each =
        |n: i64, most: f64| (0..600).map(move |s| (s * 1_000_000 + 30_000, noise(s, n) * most));
    for (n, metric) in [
        "process.fds",
        "nic.tx_bytes",
        "tcp.memory",
        "udp.memory",
        "conntrack.entries",
        "host.files",
    ]
    .into_iter()
    .enumerate()
    {
        rows.series(metric, Unit::Count, &[], Some(100.0), each(n as i64, 90.0));
    }
    for n in 0..64 {
        let (cpu, name) = (n.to_string(), format!("sender {n}"));
        let thread =
            [("process", "media"), ("pid", "7"), ("tid", cpu.as_str()), ("thread", name.as_str())];
        rows.series("thread.cpu", Unit::Ratio, &thread, Some(1.0), each(n, 1.0));
        rows.series("core.busy", Unit::Ratio, &[("cpu", cpu.as_str())], Some(1.0), each(n, 1.0));
        let socket = [("process", "media"), ("port", cpu.as_str()), ("protocol", "udp")];
        rows.series("socket.drops", Unit::PerSecond, &socket, None, each(n, 1e4));
        rows.series("disk.queue", Unit::Count, &[("device", name.as_str())], None, each(n, 30.0));
        let metric = format!("media_count_{}", n % 32);
        rows.series(&metric, Unit::Count, &[("endpoint", cpu.as_str())], None, each(n, 1e5));
    }
    let run = RunData { host: rows.0, ..example::healthy(1_000, 600) };
    let page = crate::html::render(&run, &crate::summarise(&run, &[], std::time::Duration::ZERO));
    assert!(page.len() < 1_600_000, "{} bytes", page.len());
}
