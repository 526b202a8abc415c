//! The run's rows added up once, for the summary, the objectives and the page.

use std::ops::Range;

use throng_observation::run::{ParticipantRow, RunData, TrackRow};
use throng_observation::{
    AggregatedTracks, Distribution, MediaKind, OneWayDelay, Phase, RunTime, TrackCounters,
};
use throng_scenario::Scenario;

use crate::chat::ChatFigures;
use crate::playback::PlaybackFigures;
use crate::survival::Survival;

/// All received tracks of one kind after the warm-up.
#[derive(Clone, Debug, Default)]
pub(crate) struct KindFigures {
    pub(crate) counters: TrackCounters,
    pub(crate) relative_delay_us: Distribution,
    pub(crate) absolute_delay: OneWayDelay,
    pub(crate) jitter_us: Distribution,
    pub(crate) fps_milli: Distribution,
    pub(crate) loss_ppm: Distribution,
    pub(crate) oven_rtc_tester_delay_us: Distribution,
    pub(crate) track_seconds: u64,
    pub(crate) below_source_fps: u64,
    /// Seconds in which a track of this kind reported.
    pub(crate) seconds: u64,
    source_fps_weighted: f64,
    source_fps_weight: u64,
}

impl KindFigures {
    fn of(run: &RunData, kind: MediaKind, seconds: &Range<i64>) -> Self {
        let mut figures = Self::default();
        let mut last_second = None;
        let rows = run.series.iter().filter(|row| row.kind == Some(kind));
        for row in rows.filter(|row| seconds.contains(&row.second)) {
            figures.counters += row.counters;
            figures.relative_delay_us.merge(&row.relative_delay_us);
            figures.absolute_delay.merge(&row.absolute_delay);
            figures.jitter_us.merge(&row.jitter_us);
            figures.fps_milli.merge(&row.fps_milli);
            figures.loss_ppm.merge(&row.loss_ppm);
            figures.oven_rtc_tester_delay_us.merge(&row.oven_rtc_tester_delay_us);
            figures.track_seconds += u64::from(row.tracks);
            figures.below_source_fps += u64::from(row.tracks_below_source_fps);
            if let Some(milli) = row.source_fps_milli {
                figures.source_fps_weighted += f64::from(milli) / 1e3 * f64::from(row.tracks);
                figures.source_fps_weight += u64::from(row.tracks);
            }
            if row.tracks > 0 && last_second != Some(row.second) {
                last_second = Some(row.second);
                figures.seconds += 1;
            }
        }
        figures
    }

    /// Mean of the sources' frame rate, over the track-seconds that know it.
    pub(crate) fn source_fps(&self) -> Option<f64> {
        (self.source_fps_weight > 0)
            .then(|| self.source_fps_weighted / self.source_fps_weight as f64)
    }
}

/// Everything that is added up from the rows.
#[derive(Debug)]
pub(crate) struct Figures<'a> {
    pub(crate) video: KindFigures,
    pub(crate) audio: KindFigures,
    pub(crate) intended: Vec<&'a ParticipantRow>,
    /// How many of them only send.
    pub(crate) publishers: u64,
    pub(crate) connect: Survival,
    pub(crate) first_frame: Survival,
    /// To the begin of playback; only of use where there are players.
    pub(crate) startup: Survival,
    pub(crate) page_loaded: Survival,
    pub(crate) playback: PlaybackFigures<'a>,
    /// To being in the room of a chat.
    pub(crate) joined: Survival,
    pub(crate) chat: ChatFigures,
    pub(crate) tracks: &'a [TrackRow],
    pub(crate) aggregated: &'a AggregatedTracks,
    pub(crate) duration_s: f64,
}

impl<'a> Figures<'a> {
    /// Adds up `run`, media from `warm_up_s` on.
    pub(crate) fn of(run: &'a RunData, warm_up_s: f64) -> Self {
        Self::within(run, warm_up_s.ceil() as i64..i64::MAX, 0..u32::MAX)
    }

    /// Adds up a part of `run`: media of some `seconds`, and the joins of `participants`, which are
    /// numbered in their order.
    pub(crate) fn within(run: &'a RunData, seconds: Range<i64>, participants: Range<u32>) -> Self {
        let duration_s = duration_s(run);
        let ended_ms = duration_s * 1e3;
        // A participant with an intended join after the end of the run does not count.
        let intended: Vec<_> = run
            .participants
            .iter()
            .filter(|row| participants.contains(&row.participant.0))
            .filter(|row| !row.was_censored() || row.intended_at.as_millis_f64() < ended_ms)
            .collect();
        let cohorts = Cohorts::of(run);
        let publishers = intended.iter().filter(|row| cohorts.publish(row)).count();
        // Publishers and participants of a chat wait for no frame; a run of them alone shows that
        // none arrived.
        let nobody_watches = intended.iter().all(|row| !cohorts.watch(row));
        let waits = |row: &&ParticipantRow| nobody_watches || cohorts.watch(row);
        let time_to =
            |phase| Survival::of(intended.iter().copied().filter(waits), &[phase], ended_ms);
        let (first_frame, startup) = (time_to(Phase::FirstFrame), time_to(Phase::PlaybackStarted));
        let page_loaded = time_to(Phase::PageLoaded);
        // Who closed the chat does not wait for it.
        let chatters = intended.iter().copied().filter(|row| cohorts.chat(row));
        let joined = Survival::of(chatters, &[Phase::Joined], ended_ms);
        Self {
            publishers: publishers as u64,
            video: KindFigures::of(run, MediaKind::Video, &seconds),
            audio: KindFigures::of(run, MediaKind::Audio, &seconds),
            connect: Survival::of(intended.iter().copied(), &Phase::CONNECTED, ended_ms),
            first_frame,
            startup,
            page_loaded,
            playback: PlaybackFigures::of(run, &seconds),
            joined,
            chat: ChatFigures::of(run, &seconds),
            intended,
            tracks: &run.tracks,
            aggregated: &run.aggregated,
            duration_s,
        }
    }

    /// Of those intended, how many reached one of `phases`.
    pub(crate) fn reached(&self, phases: &[Phase]) -> u64 {
        self.intended
            .iter()
            .filter(|row| phases.iter().any(|phase| row.reached.contains_key(phase)))
            .count() as u64
    }

    /// Of those intended, how many failed.
    pub(crate) fn failed(&self) -> u64 {
        self.intended.iter().filter(|row| row.failure().is_some()).count() as u64
    }
}

/// What participants of each cohort do, as its scenario says.
struct Cohorts(Vec<CohortKind>);

#[derive(Clone, Copy)]
struct CohortKind {
    publishes_only: bool,
    watches: bool,
    is_in_chat: bool,
}

impl Cohorts {
    /// Of all cohorts; none where the scenario can no longer be read.
    fn of(run: &RunData) -> Self {
        let Ok(scenario) = Scenario::parse_stored(&run.info.scenario) else {
            return Self(Vec::new());
        };
        let cohorts = scenario.destinations().into_iter().zip(scenario.cohorts());
        Self(
            cohorts
                .map(|(destination, (_, role))| {
                    let protocol = destination.target.protocol();
                    let publishes_only = destination.is_send_only();
                    CohortKind {
                        publishes_only,
                        watches: !publishes_only && !protocol.is_chat(),
                        is_in_chat: role.is_in_chat(protocol),
                    }
                })
                .collect(),
        )
    }

    fn kind(&self, row: &ParticipantRow) -> Option<CohortKind> {
        // Where a value of the scenario was varied, its cohorts come once for each value.
        let cohort = usize::from(row.cohort.0).checked_rem(self.0.len())?;
        self.0.get(cohort).copied()
    }

    /// Whether a participant only sends, as by WHIP.
    fn publish(&self, row: &ParticipantRow) -> bool {
        self.kind(row).is_some_and(|kind| kind.publishes_only)
    }

    /// Whether a participant receives media, or may.
    fn watch(&self, row: &ParticipantRow) -> bool {
        self.kind(row).is_none_or(|kind| kind.watches)
    }

    /// Whether a participant is in a chat, or may be.
    fn chat(&self, row: &ParticipantRow) -> bool {
        self.kind(row).is_none_or(|kind| kind.is_in_chat)
    }
}

/// How long the run lasted: as its ending says, or else to the last second that was written.
pub(crate) fn duration_s(run: &RunData) -> f64 {
    let written = || {
        let seconds =
            run.crowd.iter().map(|row| row.second).chain(run.series.iter().map(|row| row.second));
        seconds.max().map_or(0.0, |second| (second + 1) as f64)
    };
    run.ended_at.map_or_else(written, RunTime::as_secs_f64).max(0.0)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use throng_observation::RunTime;
    use throng_observation::run::{CohortId, ParticipantId, RunInfo};

    use super::*;

    fn participant(number: u32, cohort: u16, phases: &[Phase]) -> ParticipantRow {
        let at = |after: i64| RunTime(i64::from(number) * 1_000_000 + after);
        ParticipantRow {
            participant: ParticipantId(number),
            cohort: CohortId(cohort),
            intended_at: at(0),
            reached: phases.iter().map(|phase| (*phase, at(500_000))).collect::<BTreeMap<_, _>>(),
            ended_at: None,
            outcome: None,
            local_address: None,
        }
    }

    #[test]
    fn who_closed_the_chat_does_not_wait_for_it_and_who_only_chats_for_no_picture() {
        let scenario = "[target]\nurl = \"https://127.0.0.1:5280/live.m3u8\"\n[run]\nduration = \"20s\"\n\
            [[crowd]]\nname = \"talks\"\nsize = 1\nchat = { url = \"xmpp+ws://127.0.0.1:5280/xmpp-websocket?room=stage@conference.localhost&domain=localhost\" }\n\
            [[crowd]]\nname = \"silent\"\nsize = 2\n\
            [[crowd]]\nname = \"reads\"\nsize = 1\nurl = \"xmpp+ws://127.0.0.1:5280/xmpp-websocket?room=stage@conference.localhost&domain=localhost\"\n";
        Scenario::parse(scenario).unwrap_or_else(|error| panic!("{error}"));
        let run = RunData {
            info: RunInfo { scenario: scenario.into(), ..RunInfo::default() },
            ended_at: Some(RunTime(20_000_000)),
            participants: vec![
                participant(0, 0, &[Phase::FirstFrame, Phase::PlaybackStarted, Phase::Joined]),
                participant(1, 1, &[Phase::FirstFrame, Phase::PlaybackStarted]),
                participant(2, 1, &[]),
                participant(3, 2, &[Phase::Joined]),
            ],
            ..RunData::default()
        };
        let figures = Figures::of(&run, 0.0);
        let counts = |survival: Survival| {
            let time = survival.summary();
            (time.reached, time.censored)
        };
        assert_eq!(counts(figures.joined), (2, 0));
        assert_eq!(counts(figures.startup), (2, 1));
        assert_eq!(counts(figures.first_frame), (2, 1));
    }
}
