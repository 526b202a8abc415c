//! A chat over time: who is in the room, when messages come, and what goes over the wire for it.

use std::fmt::Write as _;

use throng_observation::run::RunData;
use throng_observation::{ChatCounters, ChatRow, Distribution};

use super::chart::{Chart, Line, Scale};
use super::markup::escape;
use super::timeline::{Point, Timeline};
use crate::summary::Summary;

/// The participants of chats in a stretch of seconds.
#[derive(Default)]
pub(crate) struct ChatPoint {
    is_present: bool,
    /// The latest second in it, and those in a room at its end.
    second: i64,
    joined: u64,
    counters: ChatCounters,
    delay_us: Distribution,
}

impl ChatPoint {
    /// Adds a row; they come in the order of their seconds.
    pub(super) fn add(&mut self, row: &ChatRow) {
        if !self.is_present || row.second != self.second {
            self.joined = 0;
        }
        (self.is_present, self.second) = (true, row.second);
        self.joined += u64::from(row.joined);
        self.counters += row.counters;
        self.delay_us.merge(&row.delay_us);
    }
}

/// Empty where nobody is in a chat.
pub(crate) fn render(run: &RunData, summary: &Summary) -> String {
    let Some(chat) = &summary.chat else { return String::new() };
    let time = Timeline::of(run);
    let charts =
        [room(&time), delivery(&time), messages(&time), stanzas(&time), traffic(&time)].concat();
    let mut out = format!("<h2>Chat</h2><div class=\"charts\">{charts}</div>");
    let (messages, stanzas) = (chat.messages_line(), chat.stanzas_line());
    let _ = write!(out, "<p>Messages: {}.</p><p>{}.</p>", escape(&messages), escape(&stanzas));
    out
}

fn chart(time: &Timeline, title: &str, (unit, note): (&str, &str), lines: Vec<Line>) -> String {
    Chart { title, unit, note, scale: Scale::Plain, seconds: &time.starts, lines }.render()
}

/// A value of the chat for each point that has one.
fn line(
    time: &Timeline,
    name: &'static str,
    colour: u8,
    value: impl Fn(&Point) -> Option<f64>,
) -> Line {
    Line::solid(name, colour, time.each(|point| value(point).filter(|_| point.chat.is_present)))
}

/// A rate of something that is counted.
fn rate(
    time: &Timeline,
    name: &'static str,
    colour: u8,
    count: impl Fn(&ChatCounters) -> u64,
) -> Line {
    line(time, name, colour, |point| {
        Some(count(&point.chat.counters) as f64 / point.seconds.max(1) as f64)
    })
}

/// Who is there.
fn room(time: &Timeline) -> String {
    let crowd =
        |index: usize| time.each(|point| point.crowd.and_then(|sums| sums.get(index).copied()));
    let lines = vec![
        Line::dashed("intended", 6, crowd(0)),
        line(time, "in the room", 3, |point| Some(point.chat.joined as f64)),
        Line::solid("failed", 2, crowd(3)),
    ];
    chart(time, "In the room", ("chatters", ""), lines)
}

/// When messages come.
fn delivery(time: &Timeline) -> String {
    let lines =
        [("p50", 1, 0.5), ("p95", 4, 0.95), ("max", 2, 1.0)].map(|(name, colour, quantile)| {
            let ms = move |point: &Point| {
                point.chat.delay_us.quantile(quantile).map(|us| us as f64 / 1e3)
            };
            line(time, name, colour, ms)
        });
    let note = "From the time at which a message was to be sent to its arrival at each chatter, in the second in which it came.";
    chart(time, "Delivery", ("ms", note), lines.into())
}

fn messages(time: &Timeline) -> String {
    let lines = vec![
        rate(time, "due", 1, |counters| counters.messages_due),
        rate(time, "missing", 2, |counters| counters.messages_missing),
    ];
    let note = "Counted at each chatter: a message to a room of a hundred is due a hundred times. Missing: not there after 10 s.";
    chart(time, "Messages", ("messages/s, all chatters together", note), lines)
}

fn stanzas(time: &Timeline) -> String {
    let lines = vec![
        rate(time, "all", 1, |counters| counters.stanzas_received),
        rate(time, "presences", 4, |counters| counters.presences_received),
    ];
    let unit = "protocol messages/s, all chatters together";
    chart(time, "Protocol messages received", (unit, ""), lines)
}

fn traffic(time: &Timeline) -> String {
    let mbit = |name, colour, count: fn(&ChatCounters) -> u64| {
        line(time, name, colour, move |point| {
            Some(count(&point.chat.counters) as f64 * 8.0 / 1e6 / point.seconds.max(1) as f64)
        })
    };
    let lines = vec![
        mbit("received", 1, |counters| counters.bytes_received),
        mbit("sent", 4, |counters| counters.bytes_sent),
    ];
    chart(time, "Bit rate", ("Mbit/s of protocol messages, without WebSocket and below", ""), lines)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use throng_observation::run::CohortId;

    use super::*;
    use crate::html;
    use crate::{example, summarise};

    fn row(second: i64, cohort: u16, joined: u32, delays_ms: &[u64]) -> ChatRow {
        let mut delay_us = Distribution::new();
        delays_ms.iter().for_each(|ms| delay_us.record(ms * 1_000));
        let counters = ChatCounters {
            messages_due: delays_ms.len() as u64,
            stanzas_received: 10,
            ..ChatCounters::default()
        };
        let cohort = CohortId(cohort);
        ChatRow { second, cohort, members: 5, joined, delay_us, counters, ..ChatRow::default() }
    }

    #[test]
    fn the_state_is_that_of_the_last_second_and_counts_add_up() {
        let mut point = ChatPoint::default();
        for row in
            [row(0, 0, 3, &[10]), row(0, 1, 4, &[20]), row(1, 0, 4, &[30, 40]), row(1, 1, 5, &[])]
        {
            point.add(&row);
        }
        assert_eq!((point.joined, point.counters.messages_due, point.delay_us.count()), (9, 4, 4));
        let mut zero = ChatPoint::default();
        zero.add(&row(0, 0, 2, &[]));
        assert_eq!((zero.joined, zero.is_present), (2, true), "the first second is no other one");
    }

    #[test]
    fn a_run_of_a_chat_has_its_charts_and_none_of_frames() {
        let mut run = example::crowd_only(20);
        assert_eq!(render(&run, &summarise(&run, &[], Duration::ZERO)), "");
        run.chat = (0..20).map(|second| row(second, 0, 5, &[second as u64 + 10, 400])).collect();
        let page = html::render(&run, &summarise(&run, &[], Duration::ZERO));
        for text in [
            "<h2>Chat</h2>",
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
