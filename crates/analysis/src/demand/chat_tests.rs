use throng_observation::ChatRow;
use throng_observation::host::measured::hosts;
use throng_observation::host::{HostId, HostSample, HostSeries, SeriesId, Unit};
use throng_observation::{RunTime, run::RunData};

use super::*;

/// What each kind of work costs in the made-up run, seconds.
pub(crate) const PLANTED: [f64; KINDS] = [0.01, 3e-3, 120e-6, 600e-6, 150e-6];
/// And its bytes.
const BYTES: [f64; KINDS] = [0.0, 8_000.0, 370.0, 9_400.0, 440.0];

/// A room that `size` participants join in groups of fifteen each five seconds, with a noise of 1
/// %. vCards come four seconds after the presences, each as often as a presence times `vcards`;
/// from the thirtieth second on everybody says something twice a minute. The thread is never full.
pub(crate) fn chatted(size: u32, vcards: f64) -> RunData {
    let seconds = 2 * size.div_ceil(15) as usize * 5 + 40;
    let mut work = vec![[0.0; KINDS]; seconds + 1];
    let mut present = 0_u32;
    for second in 0..seconds {
        work[second][0] = 1.0;
        if second % 5 == 1 && present < size {
            let comes = 15.min(size - present);
            let after = present + comes;
            // Its own account's presence, and those of each pair of which one is new.
            let presences =
                f64::from(comes) + f64::from(after).powi(2) - f64::from(present).powi(2);
            work[second][1] += f64::from(comes);
            work[second][2] += presences;
            work[second + 4][3] += presences * vcards;
            present = after;
        }
        if second >= 30 {
            work[second][4] += f64::from(present).powi(2) / 30.0;
        }
    }
    work.truncate(seconds);
    run_of(&work)
}

fn run_of(work: &[[f64; KINDS]]) -> RunData {
    let mut run = RunData::default();
    let mut came = 0.0;
    let mut noise = 0x9E37_79B9_7F4A_7C15_u64;
    for (second, here) in work.iter().enumerate() {
        noise = noise.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
        let factor = 1.0 + 0.02 * ((noise >> 40) as f64 / (1_u64 << 24) as f64 - 0.5);
        let value = here.iter().zip(PLANTED).map(|(work, cost)| work * cost).sum::<f64>() * factor;
        let at = RunTime((second as i64 + 1) * 1_000_000);
        run.host.samples.push(HostSample { series: SeriesId(1), at, value });
        // Participants count to the middle of their own seconds.
        let sum = |place: usize| -> f64 {
            let near = [second.checked_sub(1), Some(second), Some(second + 1)];
            near.into_iter()
                .zip(SMEAR)
                .filter_map(|(at, share)| Some(work.get(at?)?[place] * share))
                .sum()
        };
        came += sum(1);
        let (here, second) = (came.round() as u32, second as i64);
        let mut row = ChatRow { second, joined: here, members: here, ..ChatRow::default() };
        row.occupants_max = here.saturating_sub(1);
        row.counters.presences_received = sum(2).round() as u64;
        row.counters.vcards_received = sum(3).round() as u64;
        row.counters.messages_received = sum(4).round() as u64;
        row.counters.messages_sent = (sum(4) / f64::from(here.max(1))).round() as u64;
        row.counters.bytes_received =
            (0..KINDS).map(|place| BYTES[place] * sum(place)).sum::<f64>().round() as u64;
        run.chat.push(row);
    }
    let labels = [("process", "lua5.4"), ("pid", "7"), ("tid", "7"), ("thread", "lua5.4")];
    run.host.series.push(HostSeries {
        id: SeriesId(1),
        host: HostId(0),
        metric: THREAD_CPU.name.into(),
        unit: Unit::Ratio,
        labels: labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into(),
        limit: Some(1.0),
    });
    run
}

/// The costs that [`chatted`] shows.
pub(crate) fn of_chat(run: &RunData) -> Option<ChatCost> {
    hosts(run).iter().find_map(|host| ChatCost::of(run, host, &Knowledge::default()))
}

#[test]
fn the_planted_cost_of_each_kind_of_work_is_found() {
    let cost = of_chat(&chatted(150, 1.0)).expect("a chat");
    for work in ChatWork::ALL {
        let of = cost.cost(work).expect("it occurred");
        let planted = PLANTED[work.place()] * 1e6;
        let slack = if work == ChatWork::Join { 0.5 } else { 0.05 };
        assert!((of.cpu_us / planted - 1.0).abs() < slack, "{work:?}: {of:?}");
        assert!(
            (of.cpu_us - planted).abs() < of.cpu_us_error.max(0.02 * planted),
            "{work:?}: {of:?}"
        );
    }
    let bytes = |work| cost.cost(work).unwrap().bytes;
    assert!(
        (bytes(ChatWork::Vcard) - 9_400.0).abs() < 100.0
            && (bytes(ChatWork::Presence) - 370.0).abs() < 20.0
    );
    assert!(
        cost.explained > 0.98 && cost.thread == "lua5.4 (7)" && cost.room_max == 150,
        "{cost:?}"
    );
    assert!((cost.joins_per_second - 3.0).abs() < 0.5, "{}", cost.joins_per_second);
    assert!((cost.messages_per_second - 1.0 / 30.0).abs() < 0.02, "{}", cost.messages_per_second);
}

#[test]
fn what_did_not_occur_has_no_cost() {
    let cost = of_chat(&chatted(90, 0.0)).expect("a chat");
    assert_eq!(cost.cost(ChatWork::Vcard), None);
    let presence = cost.cost(ChatWork::Presence).unwrap();
    assert!((presence.cpu_us - 120.0).abs() < 6.0, "{presence:?}");
}

#[test]
fn a_thread_that_does_something_else_is_not_the_chats() {
    let mut run = chatted(90, 0.0);
    run.host
        .samples
        .iter_mut()
        .enumerate()
        .for_each(|(at, sample)| sample.value = 0.1 + (at * 7 % 5) as f64 * 0.1);
    assert_eq!(of_chat(&run), None);
    assert_eq!(of_chat(&RunData { chat: Vec::new(), ..chatted(90, 0.0) }), None);
    assert_eq!(of_chat(&RunData::default()), None);
}
