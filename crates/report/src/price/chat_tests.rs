use std::time::Duration;

use throng_analysis::demand::{ChatCost, ChatWork, ChatWorkCost};
use throng_observation::run::RunData;

use super::super::tests::by_machine;
use super::super::{CostKind, PriceReport, PriceRequest, text};
use crate::{example, summarise};

/// A room of 400 that were measured: 3 ms a join, 120 µs a presence, 600 µs a vCard, 150 µs a
/// message.
fn cost(has_vcards: bool) -> ChatCost {
    let each = |work, count, cpu_us, bytes| ChatWorkCost {
        work,
        count,
        cpu_us,
        cpu_us_error: cpu_us / 50.0,
        bytes,
    };
    let mut costs = vec![
        each(ChatWork::Join, 400, 3_000.0, 8_000.0),
        each(ChatWork::Presence, 160_400, 120.0, 370.0),
        each(ChatWork::Message, 80_000, 150.0, 440.0),
    ];
    if has_vcards {
        costs.insert(2, each(ChatWork::Vcard, 160_000, 600.0, 9_400.0));
    }
    ChatCost {
        thread: "lua5.4 (7)".into(),
        idle: 0.01,
        costs,
        covariance: Default::default(),
        explained: 0.97,
        seconds: 120,
        room_max: 400,
        joins_per_second: 10.0,
        messages_per_second: 1.0 / 120.0,
    }
}

fn scenario(vcards: &str) -> String {
    format!(
        "[target]\nurl = \"xmpp+ws://127.0.0.1:5280/ws?room=stage@room.localhost\"\n[crowd]\nsize = 400\n\
         chat = {{ vcards = \"{vcards}\" }}\n"
    )
}

fn report(vcards: &str, viewers: u32, hours: f64) -> PriceReport {
    let mut run = RunData::default();
    example::plan(&mut run, scenario(vcards));
    let mut summary = summarise(&run, &[], Duration::ZERO);
    summary.chat_cost = Some(cost(vcards == "all"));
    let request = PriceRequest { viewers, hours, ..PriceRequest::default() };
    PriceReport::of(&run, &summary, &request, Some(&by_machine()))
}

#[test]
fn a_room_of_ten_thousand_cannot_be_joined_and_has_no_price() {
    let report = report("all", 10_000, 2.0);
    let words = text::summary(&report);
    for part in [
        "One room of 10,000 cannot be joined within 2 h: 100,010,000 presences and 100,000,000 vCards are ~72,000 CPU-seconds (20 h)",
        "in proportion to the chatters",
        "~30 CPU-seconds",
        "in proportion to their square",
        "extrapolated ×25.0",
        "more than it has",
        "rooms of at most",
        "EUR",
    ] {
        assert!(words.contains(part), "{part}\n{words}");
    }
    let compute = report
        .cost
        .as_ref()
        .unwrap()
        .terms
        .iter()
        .find(|term| term.kind == CostKind::Compute)
        .unwrap();
    assert!(compute.amount.is_none() && compute.detail.contains("cannot be joined"), "{compute:?}");
    assert!(
        report.headline.starts_with("One room of 10,000 cannot be joined") && !report.has_no_size()
    );
    let room = &report.chat.as_ref().unwrap().room;
    assert!(room.largest_room < 400.0 && room.rooms > 25.0, "{room:?}");
}

#[test]
fn vcards_of_nobody_are_no_square() {
    let report = report("none", 10_000, 24.0);
    let words = text::summary(&report);
    assert!(!words.contains("N²") && words.contains("100,010,000 (N (N + 1))"), "{words}");
    // 12,031 s are less than a day, and at three times as many still.
    assert!(!words.contains("cannot be joined"), "{words}");
    let egress = report
        .cost
        .as_ref()
        .unwrap()
        .terms
        .iter()
        .find(|term| term.kind == CostKind::Egress)
        .unwrap();
    assert!(egress.detail.contains("of it the chat"), "{egress:?}");
}

#[test]
fn who_only_watches_asks_for_no_vcards_and_does_not_thin_out_those_who_do() {
    let mut run = RunData::default();
    let scenario = "[target]\nurl = \"https://127.0.0.1/live.m3u8\"\n[run]\nduration = \"20s\"\n\
        [[crowd]]\nname = \"watch\"\nsize = 20\n\
        [[crowd]]\nname = \"chat\"\nsize = 50\n\
        chat = { url = \"xmpp+ws://127.0.0.1:5280/ws?room=stage@room.localhost\", vcards = \"all\" }\n";
    example::plan(&mut run, scenario);
    let pairs = super::vcards_per_pair(&run, &cost(true));
    assert!((pairs - 1.0).abs() < 1e-9, "50 of 50, not of 70: {pairs}");
}

#[test]
fn a_room_that_was_measured_is_forecast_as_it_was() {
    let report = report("none", 400, 1.0);
    let room = &report.chat.as_ref().unwrap().room;
    assert!((room.joins_s.value - (1.2 + 0.00012 * 160_400.0)).abs() < 1e-6, "{room:?}");
    let words = text::summary(&report);
    assert!(words.contains("160,400 (N (N + 1))") && !words.contains("extrapolated"), "{words}");
}
