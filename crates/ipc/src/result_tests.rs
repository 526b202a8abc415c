//! Properties of the report: the median round, what each side is divided by, stable keys, and a
//! page that loads nothing.

use std::time::Duration;

use super::*;
use crate::{FrameSize, Workload};

fn plan() -> Plan {
    Plan {
        transports: vec![Transport::Memcpy, Transport::Tcp, Transport::Websocket],
        workload: Workload {
            sizes: FrameSize::bytes(1_000_000).unwrap().into(),
            fps: None,
            producers: 2,
        },
        reading: ReadMode::Edges,
        duration: Duration::from_secs(1),
        rounds: 3,
        inspect: true,
        python: None,
        assumptions: Assumptions { price_core_hour: 0.05, streams: 1000, fps: 30.0 },
    }
}

fn side(frames: u64, cpu_ms: u64) -> SideReport {
    SideReport {
        frames,
        bytes: frames * 1_000_000,
        cpu_ns: cpu_ms * 1_000_000,
        user_ns: 250_000,
        system_ns: 750_000,
        context_switches: 10,
        first_ns: 1_000_000_000,
        last_ns: 3_000_000_000,
        latency: Some(LatencyNs { p50: 1_500, p99: 2_500_000, max: 3_000_000_000, samples: 7 }),
        ..SideReport::default()
    }
}

fn sides(producer_ms: u64, consumer_ms: u64) -> Sides {
    Sides {
        producers: vec![side(600, producer_ms / 2), side(400, producer_ms / 2)],
        consumer: side(1000, consumer_ms),
        spent: None,
    }
}

fn row(transport: Transport, outcome: Outcome, figures: Option<Measured>) -> Row {
    let reason = figures.is_none().then(|| "<b>why</b>".to_owned());
    Row { transport, name: transport.name().into(), outcome, reason, note: None, figures }
}

fn report() -> IpcReport {
    let plan = plan();
    let mut cheap = Sides::figures(&[sides(100, 100)], Some(&inspected()), &plan);
    if let Some(figures) = &mut cheap {
        figures.frames_not_sent = 12;
        figures.cpu_profile = Some(CpuProfile {
            samples: 500,
            copying_ratio: 0.91,
            functions: vec![crate::FunctionShare {
                function: "core::ptr::swap<&mut [u8]>".into(),
                module: "x".into(),
                ratio: 0.5,
            }],
            ..CpuProfile::default()
        });
    }
    let rows = vec![
        row(Transport::Memcpy, Outcome::Measured, Sides::figures(&[sides(0, 50)], None, &plan)),
        row(Transport::Tcp, Outcome::Measured, cheap),
        row(
            Transport::Websocket,
            Outcome::Measured,
            Sides::figures(&[sides(400, 600)], None, &plan),
        ),
        row(Transport::GstreamerShm, Outcome::Missing, None),
        row(Transport::Pipe, Outcome::Failed, None),
    ];
    IpcReport::new(&plan, Machine::default(), rows, true)
}

fn inspected() -> Sides {
    let mut sides = sides(1, 1);
    sides.producers[0].system_calls = Some(Ok(600));
    sides.producers[1].system_calls = Some(Ok(1400));
    sides.consumer.system_calls = Some(Ok(3000));
    sides
}

#[test]
fn a_row_is_its_median_round() {
    let rounds = [sides(300, 300), sides(100, 100), sides(200, 200)];
    let figures = Sides::figures(&rounds, None, &plan()).unwrap();
    assert!((figures.cpu_s_per_gb - 0.4).abs() < 1e-9, "{}", figures.cpu_s_per_gb);
    assert_eq!(figures.cpu_s_per_gb_rounds.len(), 3);
    assert!(Sides::figures(&[], None, &plan()).is_none());
    let nothing = Sides { producers: vec![], consumer: side(0, 1), spent: None };
    assert!(Sides::figures(&[nothing], None, &plan()).is_none());
}

#[test]
fn figures_are_of_all_processes_and_of_what_each_passed() {
    let figures = Sides::figures(&[sides(100, 300)], Some(&inspected()), &plan()).unwrap();
    let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{a} {b}");
    close(figures.cpu_s_per_gb_producer, 0.1);
    close(figures.cpu_s_per_gb_consumer, 0.3);
    close(figures.cpu_us_per_frame, 400.0);
    close(figures.bytes_per_second, 0.5e9);
    close(figures.frames_per_second, 500.0);
    close(figures.kernel_ratio.unwrap(), 0.75);
    close(figures.context_switches_per_frame, 0.03);
    close(figures.cores_per_stream, 0.4 * 0.03);
    close(figures.cost_per_year, 0.012 * 1000.0 * 8760.0 * 0.05);
    let calls = figures.system_calls.unwrap();
    assert_eq!((calls.per_frame_producer, calls.per_frame_consumer), (Some(2.0), Some(3.0)));
    assert_eq!(calls.per_frame(), Some(5.0));
    let latency = figures.latency.unwrap();
    assert_eq!(
        (latency.us_p50, latency.us_p99, latency.us_max, latency.samples),
        (1.5, 2500.0, 3e6, 7)
    );
}

#[test]
fn a_right_that_is_missing_is_named_and_nothing_is_called_zero() {
    let mut inspected = inspected();
    inspected.producers[1].system_calls = Some(Err("it takes root".into()));
    let calls =
        Sides::figures(&[sides(1, 1)], Some(&inspected), &plan()).unwrap().system_calls.unwrap();
    assert_eq!((calls.per_frame_producer, calls.per_frame_consumer), (None, Some(3.0)));
    assert_eq!((calls.missing.as_deref(), calls.per_frame()), (Some("it takes root"), None));
}

#[test]
fn the_table_has_every_row_and_says_why_one_is_absent() {
    let text = report().text();
    for line in [
        "WebSocket takes 5 times the CPU of TCP loopback: 1,000 streams cost 13,140 a year by the one, 2,628 by the other",
        "transport                    CPU s/GB  send + receive",
        "memcpy (floor, one process)      0.05               -    500 MB/s      50 us  1.5 us  2.5 ms  3 s            -        -        -                   -",
        "TCP loopback                      0.2       0.1 + 0.1    500 MB/s     200 us  1.5 us  2.5 ms  3 s            5     91 %      0 %               2,628",
        "  TCP loopback: 50 % ptr::swap",
        "  GStreamer shm: not here: <b>why</b>",
        "  pipe: FAILED: <b>why</b>",
        "  Ended early",
        "  TCP loopback was too slow for the offered rate: 12 frames were not sent in time.",
        "  a year = CPU s/GB x 0.03 GB/s a stream (1,000,000 B x 30 fps) x 1,000 streams x 8760 h x 0.05 a core-hour",
    ] {
        assert!(text.contains(line), "{line}\n---\n{text}");
    }
}

#[test]
fn the_page_shows_every_bar_and_asks_nothing_of_any_network() {
    let page = report().html();
    for load in ["http://", "https://", "src=", "@import", "url(", "<script", "fetch("] {
        assert!(!page.contains(load), "{load}");
    }
    assert!(
        page.contains("&lt;b&gt;why") && !page.contains("<b>why"),
        "reasons come from elsewhere and stay text"
    );
    assert_eq!(page.matches("class=\"bar ").count(), 4 * 3);
    assert!(!page.contains("NaN") && page.contains("Where the time goes"));
}

#[test]
fn the_result_is_read_back_as_it_was_written() {
    let report = report();
    assert_eq!(IpcReport::from_json(&report.to_json()).as_ref(), Ok(&report));
    let newer = report.to_json().replace("\"ipc_version\": 1", "\"ipc_version\": 2");
    assert!(IpcReport::from_json(&newer).unwrap_err().contains("version 2"));
    assert!(IpcReport::from_json("{").is_err() && IpcReport::from_json("{}").is_err());
    assert!(report.has_failed_rows() && report.has_figures());
}

#[test]
fn nothing_measured_is_said_so() {
    let report = IpcReport::new(&plan(), Machine::default(), Vec::new(), true);
    assert_eq!(report.headline, "No transport was measured");
    assert!(
        !report.text().contains("NaN") && !report.html().contains("NaN") && !report.has_figures()
    );
}

#[test]
fn the_schema_in_the_documentation_is_that_of_the_code() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/ipc.schema.json");
    let code = json_schema();
    if std::env::var_os("THRONG_WRITE_DOCS").is_some() {
        std::fs::write(file, format!("{code:#}\n")).unwrap();
    }
    let documented: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    assert_eq!(
        documented, code,
        "write it anew: THRONG_WRITE_DOCS=1 cargo test -p throng-ipc schema"
    );
}
