//! `throng ring stat`: the counters of a shared-memory ring, read from outside while it is in use.

use std::path::PathBuf;

use serde_json::{Value, json};
use throng_observation::untrusted;
use throng_ring::{DropReason, LaneStats, ProducerStats};

use crate::args::{Ring, RingCommand, RingStat};
use crate::console::{CliError, Exit, print};

pub(crate) fn ring(command: &Ring) -> Result<Exit, CliError> {
    match &command.command {
        RingCommand::Stat(stat) => {
            print(&of(stat)?);
            Ok(Exit::Met)
        }
    }
}

fn of(command: &RingStat) -> Result<String, CliError> {
    let paths = paths(&command.ring)?;
    if paths.is_empty() {
        return Err(CliError::usage(format!(
            "{} has no ring open: name the consumer or a producer",
            command.ring
        )));
    }
    let rings: Vec<(PathBuf, LaneStats)> = paths
        .into_iter()
        .map(|path| match LaneStats::open(&path) {
            Ok(stats) => Ok((path, stats)),
            Err(error) => Err(CliError::usage(format!("{}: {error}", path.display()))),
        })
        .collect::<Result<_, CliError>>()?;
    Ok(if command.json {
        let rings: Vec<Value> =
            rings.iter().map(|(path, stats)| as_json(&path.to_string_lossy(), stats)).collect();
        untrusted::json(&format!("{:#}\n", Value::from(rings))).into_owned()
    } else {
        rings.iter().map(|(path, stats)| as_text(&path.to_string_lossy(), stats)).collect()
    })
}

/// The rings that the argument names.
fn paths(argument: &str) -> Result<Vec<PathBuf>, CliError> {
    if let Ok(number) = argument.parse::<u32>() {
        return Ok(vec![PathBuf::from(format!("/proc/self/fd/{number}"))]);
    }
    let process =
        argument.strip_prefix("/proc/").and_then(|rest| rest.trim_end_matches('/').parse().ok());
    match process {
        Some(pid) => throng_ring::rings_of_process(pid)
            .map_err(|error| CliError::usage(format!("{argument}: {error}"))),
        None => Ok(vec![PathBuf::from(argument)]),
    }
}

fn as_text(path: &str, stats: &LaneStats) -> String {
    let mut text = format!(
        "{path}: lane {}, {} KiB, {} descriptors{}\n",
        stats.lane,
        stats.arena_bytes / 1024,
        stats.descriptors,
        if stats.closed { ", CLOSED: a producer wrote invalid data" } else { "" },
    );
    text += &format!(
        "  in flight   {} frames, {} KiB\n",
        stats.frames_in_flight,
        stats.bytes_in_flight / 1024
    );
    text += &format!(
        "  consumer    pid {}, attached {} times; {} frames, {} MB delivered; slept {} times, \
         woke producers {} times; {} claims of dead producers put aside\n",
        stats.consumer_pid,
        stats.consumer_epoch,
        stats.delivered_frames,
        stats.delivered_bytes / 1_000_000,
        stats.consumer_sleeps,
        stats.consumer_wakes,
        stats.abandoned_claims,
    );
    stats.producers.iter().fold(text, |text, producer| text + &producer_as_text(producer))
}

fn producer_as_text(producer: &ProducerStats) -> String {
    let drops: Vec<String> = DropReason::ALL
        .into_iter()
        .filter(|reason| producer.dropped(*reason) > 0)
        .map(|reason| format!("{reason} {}", producer.dropped(reason)))
        .collect();
    let drops = if drops.is_empty() { "none".to_owned() } else { drops.join(", ") };
    format!(
        "  producer {:<2} pid {}{}; {} frames, {} MB; aborted {}; dropped {drops}; slept {} \
         times, woke the consumer {} times\n",
        producer.row,
        producer.pid,
        if producer.session == 0 { " (left)" } else { "" },
        producer.committed_frames,
        producer.committed_bytes / 1_000_000,
        producer.aborted_frames,
        producer.sleeps,
        producer.wakes,
    )
}

fn as_json(path: &str, stats: &LaneStats) -> Value {
    let producers: Vec<Value> = stats.producers.iter().map(producer_as_json).collect();
    json!({
        "path": path,
        "lane": stats.lane,
        "arena_bytes": stats.arena_bytes,
        "descriptors": stats.descriptors,
        "frames_in_flight": stats.frames_in_flight,
        "bytes_in_flight": stats.bytes_in_flight,
        "closed": stats.closed,
        "consumer": {
            "pid": stats.consumer_pid,
            "epoch": stats.consumer_epoch,
            "delivered_frames": stats.delivered_frames,
            "delivered_bytes": stats.delivered_bytes,
            "abandoned_claims": stats.abandoned_claims,
            "sleeps": stats.consumer_sleeps,
            "wakes": stats.consumer_wakes,
        },
        "producers": producers,
    })
}

fn producer_as_json(producer: &ProducerStats) -> Value {
    let drops: serde_json::Map<String, Value> = DropReason::ALL
        .iter()
        .map(|reason| (reason.name().to_owned(), producer.dropped(*reason).into()))
        .collect();
    json!({
        "row": producer.row,
        "session": producer.session,
        "pid": producer.pid,
        "committed_frames": producer.committed_frames,
        "committed_bytes": producer.committed_bytes,
        "aborted_frames": producer.aborted_frames,
        "dropped": drops,
        "sleeps": producer.sleeps,
        "wakes": producer.wakes,
    })
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use throng_ring::{Consumer, FrameInfo, Producer, RingOptions};

    use super::*;

    #[test]
    fn a_ring_is_shown_by_descriptor_by_path_and_by_process() {
        let mut consumer = Consumer::new().unwrap();
        let (lane, invitation) = consumer.add_lane(&RingOptions::with_size(65_536, 2)).unwrap();
        let mut producer = Producer::join(invitation).unwrap();
        for _ in 0..3 {
            producer.send(b"frame", &FrameInfo::default()).unwrap();
        }
        let fds = consumer.export(lane).unwrap();
        let number = fds.memfd.as_raw_fd();
        let pid = std::process::id();
        for ring in [number.to_string(), format!("/proc/{pid}/fd/{number}"), format!("/proc/{pid}")]
        {
            let text = of(&RingStat { ring: ring.clone(), json: false })
                .unwrap_or_else(|s| panic!("{}", s.error));
            assert!(text.contains("2 frames, 0 MB; aborted 0; dropped full 1;"), "{ring}: {text}");
            let json = of(&RingStat { ring, json: true }).unwrap_or_else(|s| panic!("{}", s.error));
            assert!(json.contains("\"full\": 1"), "{json}");
        }
    }

    #[test]
    fn what_is_no_ring_is_a_usage_error() {
        for (ring, expect) in
            [("/proc/self/exe", "not a memfd"), ("/proc/4294967295", "failed"), ("99999", "failed")]
        {
            let stop = of(&RingStat { ring: ring.to_owned(), json: false }).unwrap_err();
            assert!(
                stop.exit == Exit::Usage && stop.error.to_string().contains(expect),
                "{}",
                stop.error
            );
        }
    }
}
