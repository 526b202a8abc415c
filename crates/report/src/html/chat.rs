//! A chat over time: who is in the room, when messages come, and what goes over the wire for it.

use std::fmt::Write as _;

use throng_observation::run::RunData;
use throng_observation::{ChatCounters, ChatRow};

use super::chart::{Line, Scale};
use super::markup::escape;
use super::timeline::Timeline;
use crate::summary::Summary;

/// Empty where nobody is in a chat.
pub(crate) fn render(run: &RunData, summary: &Summary) -> String {
    let Some(chat) = &summary.chat else { return String::new() };
    let time = Timeline::of(run);
    let charts =
        [room(&time), delivery(&time), messages(&time), frames(&time), traffic(&time)].concat();
    let mut out = format!("<h2>Chat</h2><div class=\"charts\">{charts}</div>");
    let (messages, frames) = (chat.messages_line(), chat.frames_line());
    let _ = write!(out, "<p>Messages: {}.</p><p>{}.</p>", escape(&messages), escape(&frames));
    out
}

fn chart(time: &Timeline, title: &str, (unit, note): (&str, &str), lines: Vec<Line>) -> String {
    time.chart(title, unit, Scale::Plain, note, lines)
}

/// A value of the chat for each point that has one.
fn line(
    time: &Timeline,
    name: &'static str,
    colour: u8,
    value: impl Fn(&ChatRow) -> Option<f64>,
) -> Line {
    Line::solid(name, colour, time.each(|point| value(point.chat.as_ref()?)))
}

/// A rate of something that is counted.
fn rate(
    time: &Timeline,
    name: &'static str,
    colour: u8,
    count: impl Fn(&ChatCounters) -> f64,
) -> Line {
    let each = time.each(|p| Some(count(&p.chat.as_ref()?.counters) / p.seconds.max(1) as f64));
    Line::solid(name, colour, each)
}

/// Who is there.
fn room(time: &Timeline) -> String {
    let crowd =
        |index: usize| time.each(|point| point.crowd.and_then(|sums| sums.get(index).copied()));
    let lines = vec![
        Line::dashed("intended", 6, crowd(0)),
        line(time, "in the room", 3, |chat| Some(f64::from(chat.joined))),
        Line::solid("failed", 2, crowd(3)),
    ];
    chart(time, "In the room", ("participants", ""), lines)
}

/// When messages come.
fn delivery(time: &Timeline) -> String {
    let lines =
        [("p50", 1, 0.5), ("p95", 4, 0.95), ("max", 2, 1.0)].map(|(name, colour, quantile)| {
            line(time, name, colour, |chat| chat.delay_us.quantile_in(quantile, 1e3))
        });
    let note = "From the time at which a message was to be sent to its arrival at each chatter, \
                in the second in which it came.";
    chart(time, "Delivery", ("ms", note), lines.into())
}

fn messages(time: &Timeline) -> String {
    let lines = vec![
        rate(time, "due", 1, |counters| counters.messages_due as f64),
        rate(time, "missing", 2, |counters| counters.messages_missing as f64),
    ];
    let note = "Counted at each chatter: a message to a room of a hundred is due a hundred times. \
                Missing: not there after 10 s.";
    chart(time, "Messages", ("messages/s, all chatters together", note), lines)
}

fn frames(time: &Timeline) -> String {
    let lines = vec![
        rate(time, "all", 1, |counters| counters.frames_received as f64),
        rate(time, "presences", 4, |counters| counters.presences_received as f64),
    ];
    let unit = "protocol messages/s, all chatters together";
    chart(time, "Protocol messages received", (unit, ""), lines)
}

fn traffic(time: &Timeline) -> String {
    let mbit = |bytes: u64| bytes as f64 * 8.0 / 1e6;
    let lines = vec![
        rate(time, "received", 1, |counters| mbit(counters.bytes_received)),
        rate(time, "sent", 4, |counters| mbit(counters.bytes_sent)),
    ];
    chart(time, "Bit rate", ("Mbit/s of protocol messages, without WebSocket and below", ""), lines)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use throng_observation::Distribution;
    use throng_observation::run::CohortId;

    use super::*;
    use crate::html;
    use crate::{example, summarise};

    fn row(second: i64, cohort: u16, joined: u32, delays_ms: &[u64]) -> ChatRow {
        let mut delay_us = Distribution::new();
        delays_ms.iter().for_each(|ms| delay_us.record(ms * 1_000));
        let counters = ChatCounters {
            messages_due: delays_ms.len() as u64,
            frames_received: 10,
            ..ChatCounters::default()
        };
        let cohort = CohortId(cohort);
        ChatRow { second, cohort, members: 5, joined, delay_us, counters, ..ChatRow::default() }
    }

    #[test]
    fn a_run_of_a_chat_has_its_charts_and_none_of_frames() {
        let mut run = example::crowd_only(20);
        assert_eq!(render(&run, &summarise(&run, &[], Duration::ZERO)), "");
        run.chat = (0..20).map(|second| row(second, 0, 5, &[second as u64 + 10, 400])).collect();
        let page = html::render(&run, &summarise(&run, &[], Duration::ZERO));
        for text in [
            ">Chat</a></h2>",
            "In the room",
            "Delivery",
            "messages/s",
            "Protocol messages received",
            "presences",
            "chatters in the room",
            "CPU ms a chatter-second",
        ] {
            assert!(page.contains(text), "{text}");
        }
        for text in [
            "decodable frames/s",
            "frames played/s",
            "of packets expected",
            "NaN",
            "viewers playing",
            "viewer-second",
            ">first frame<",
        ] {
            assert!(!page.contains(text), "{text}");
        }
    }
}
