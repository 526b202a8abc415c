//! The run's rows added up once, for the summary, the objectives and the page.

use std::collections::BTreeSet;
use std::ops::Range;

use throng_observation::run::{ParticipantId, ParticipantRow, RunData, SeriesRow, TrackRow};
use throng_observation::{
    AggregatedTracks, MediaKind, Phase, PlannedCohort, Players, RunTime, SecondRow as _,
};
use throng_scenario::bad_if;
use throng_scenario::objective::Rows;

use crate::chat::ChatFigures;
use crate::planned;
use crate::playback::PlaybackFigures;
use crate::survival::Survival;

/// Everything that is added up from the rows.
#[derive(Debug)]
pub(crate) struct Figures<'a> {
    /// The window of all rows of media.
    pub(crate) seconds: Range<i64>,
    pub(crate) video: SeriesRow,
    pub(crate) audio: SeriesRow,
    pub(crate) intended: Vec<&'a ParticipantRow>,
    /// How many of them only send.
    pub(crate) publishers: u64,
    pub(crate) connect: Survival,
    pub(crate) first_frame: Survival,
    /// Viewers that got packets of video, and no frame in the time that a join may take.
    pub(crate) without_frame: u64,
    /// Of those intended, who plays from a buffer: who can wait for playback, and stall.
    pub(crate) players: Vec<&'a ParticipantRow>,
    /// Of those intended, who plays media as it arrives: whose picture can freeze.
    pub(crate) receivers: Vec<&'a ParticipantRow>,
    /// Of the players, to the begin of playback.
    pub(crate) startup: Survival,
    /// Of those with a page around the player.
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
        Self::within(run, planned::counted_seconds(run, warm_up_s), 0..u32::MAX)
    }

    /// Adds up a part of `run`: media of some `seconds`, and the joins of `participants`, which are
    /// numbered in their order.
    pub(crate) fn within(run: &'a RunData, seconds: Range<i64>, participants: Range<u32>) -> Self {
        let duration_s = planned::duration_s(run);
        let ended_ms = duration_s * 1e3;
        // A participant with an intended join after the end of the run does not count.
        let intended: Vec<_> = run
            .participants
            .iter()
            .filter(|row| participants.contains(&row.participant.0))
            .filter(|row| !row.was_censored() || row.intended_at.as_millis_f64() < ended_ms)
            .collect();
        let cohorts = Cohorts(planned::cohorts(run));
        let publishers = intended.iter().filter(|row| cohorts.publish(row)).count();
        // Publishers and participants of a chat wait for no frame; a run of them alone shows that
        // none arrived.
        let nobody_watches = intended.iter().all(|row| !cohorts.watch(row));
        let waits = |row: &&ParticipantRow| nobody_watches || cohorts.watch(row);
        let viewers = intended.iter().copied().filter(waits);
        let first_frame = Survival::of(viewers, &[Phase::FirstFrame], ended_ms);
        let with_video: BTreeSet<ParticipantId> =
            run.tracks.iter().filter(|track| is_video(track)).map(|it| it.participant).collect();
        let patience_ms = bad_if(&planned::planned_objectives(run)).join_ms_max;
        let without_frame = intended.iter().filter(|row| {
            let first = row.reached.get(&Phase::FirstPacket);
            let ended = row.ended_at.map_or(ended_ms, RunTime::as_millis_f64).min(ended_ms);
            let had_time = first.is_some_and(|at| ended - at.as_millis_f64() >= patience_ms);
            let has_frame = row.reached.contains_key(&Phase::FirstFrame);
            had_time
                && !has_frame
                && row.failure().is_none()
                && with_video.contains(&row.participant)
        });
        let without_frame = without_frame.count() as u64;
        let who = |can: &dyn Fn(&ParticipantRow) -> bool| -> Vec<&'a ParticipantRow> {
            intended.iter().copied().filter(|row| can(row)).collect()
        };
        let players = who(&|row| cohorts.play_from_buffer(row, &run.players));
        let receivers = who(&|row| cohorts.play_as_it_arrives(row));
        let time_to =
            |phase, who: &[&ParticipantRow]| Survival::of(who.iter().copied(), &[phase], ended_ms);
        let startup = time_to(Phase::PlaybackStarted, &players);
        let page_loaded = time_to(Phase::PageLoaded, &who(&|row| cohorts.load_page(row)));
        // Who closed the chat does not wait for it.
        let joined = time_to(Phase::Joined, &who(&|row| cohorts.chat(row)));
        let tracks = |kind: MediaKind| {
            let is_counted =
                |row: &&SeriesRow| row.kind == Some(kind) && seconds.contains(&row.second);
            SeriesRow::sum(run.series.iter().filter(is_counted))
        };
        Self {
            publishers: publishers as u64,
            video: tracks(MediaKind::Video),
            audio: tracks(MediaKind::Audio),
            connect: Survival::of(intended.iter().copied(), &Phase::CONNECTED, ended_ms),
            first_frame,
            without_frame,
            players,
            receivers,
            startup,
            page_loaded,
            playback: PlaybackFigures::of(run, &seconds),
            joined,
            chat: ChatFigures::of(run, &seconds),
            intended,
            tracks: &run.tracks,
            aggregated: &run.aggregated,
            duration_s,
            seconds,
        }
    }

    /// The rows by which most metrics are measured.
    pub(crate) fn rows(&self) -> Rows<'_> {
        let (players, chat) = (&self.playback.window, &self.chat.window);
        Rows { video: &self.video, audio: &self.audio, players, chat }
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

/// Whether packets of video came.
fn is_video(track: &TrackRow) -> bool {
    track.kind == MediaKind::Video && track.counters.packets_original > 0
}

/// What participants of each cohort do, as was planned; of none where the plan is not known.
struct Cohorts<'a>(&'a [PlannedCohort]);

impl Cohorts<'_> {
    fn kind(&self, row: &ParticipantRow) -> Option<&PlannedCohort> {
        // Where a value of the scenario was varied, its cohorts come once for each value.
        let cohort = usize::from(row.cohort.0).checked_rem(self.0.len())?;
        self.0.get(cohort)
    }

    /// Whether a participant only sends, as by WHIP.
    fn publish(&self, row: &ParticipantRow) -> bool {
        self.kind(row).is_some_and(|kind| kind.only_publishes)
    }

    /// Whether a participant receives media, or may.
    fn watch(&self, row: &ParticipantRow) -> bool {
        self.kind(row).is_none_or(|kind| kind.watches)
    }

    /// Whether a participant plays from a buffer. Without a plan to tell, those do who played so,
    /// and those who failed may have been meant to.
    fn play_from_buffer(&self, row: &ParticipantRow, players: &Players) -> bool {
        let did = || players.stalls().contains_key(&row.participant);
        self.kind(row).map_or_else(
            || !players.is_empty() && (did() || row.failure().is_some()),
            |kind| kind.plays_from_buffer,
        )
    }

    /// Whether a participant receives media that it plays as it arrives, or may.
    fn play_as_it_arrives(&self, row: &ParticipantRow) -> bool {
        self.kind(row).is_none_or(|kind| kind.watches && !kind.plays_from_buffer)
    }

    /// Whether a participant loads a page around its player, or may.
    fn load_page(&self, row: &ParticipantRow) -> bool {
        row.reached.contains_key(&Phase::PageLoaded)
            || self.kind(row).is_none_or(|kind| kind.loads_page)
    }

    /// Whether a participant is in a chat, or may be.
    fn chat(&self, row: &ParticipantRow) -> bool {
        self.kind(row).is_none_or(|kind| kind.is_in_chat)
    }
}

/// The value that a share `quantile` of participants does not exceed; `None` without values.
pub(crate) fn ranked(values: impl Iterator<Item = f64>, quantile: f64) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    at_rank(&values, quantile)
}

/// The same of values that ascend.
pub(crate) fn at_rank(ascending: &[f64], quantile: f64) -> Option<f64> {
    let rank = (quantile * ascending.len() as f64).ceil() as usize;
    ascending.get(rank.max(1) - 1).copied()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use throng_observation::run::{CohortId, ParticipantId, RunInfo};
    use throng_observation::{Distribution, Failure, FailureReason, Outcome, RunTime};
    use throng_scenario::Scenario;

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
        let scenario = Scenario::parse(scenario).unwrap_or_else(|error| panic!("{error}"));
        let plan = scenario.run_plan();
        let run = RunData {
            info: RunInfo { plan: Some(plan), ..RunInfo::default() },
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

    /// Five viewers by WebRTC, five of HLS, a publisher; of each kind so many failed.
    fn mixed(failed_webrtc: u32, failed_hls: u32, failed_publishers: u32) -> RunData {
        let scenario = "[target]\nurl = \"https://127.0.0.1:5280/live.m3u8\"\n[run]\nduration = \"20s\"\n\
            [[crowd]]\nname = \"webrtc\"\nsize = 5\nurl = \"whep+http://127.0.0.1:5280/whep\"\n\
            [[crowd]]\nname = \"hls\"\nsize = 5\n\
            [[crowd]]\nname = \"camera\"\nsize = 1\nurl = \"whip+http://127.0.0.1:5280/whip\"\n";
        let scenario = Scenario::parse(scenario).unwrap_or_else(|error| panic!("{error}"));
        let plan = scenario.run_plan();
        let connected = [Phase::DtlsConnected];
        let webrtc = [Phase::DtlsConnected, Phase::FirstFrame];
        let hls = [Phase::Playing, Phase::FirstFrame, Phase::PlaybackStarted];
        let mut participants = Vec::new();
        let kinds: [(u16, u32, &[Phase], u32); 3] = [
            (0, 5, &webrtc, failed_webrtc),
            (1, 5, &hls, failed_hls),
            (2, 1, &connected, failed_publishers),
        ];
        for (cohort, size, phases, failed) in kinds {
            for number in 0..size {
                let fails = number < failed;
                let id = u32::try_from(participants.len()).unwrap();
                let mut row = participant(id, cohort, if fails { &[] } else { phases });
                if fails {
                    let why = Failure::new(FailureReason::Ice, "no answer");
                    row.outcome = Some(Outcome::Failed(why));
                }
                participants.push(row);
            }
        }
        RunData {
            info: RunInfo { plan: Some(plan), ..RunInfo::default() },
            ended_at: Some(RunTime(20_000_000)),
            participants,
            ..RunData::default()
        }
    }

    #[test]
    fn the_denominator_of_each_objective_is_who_can_have_it() {
        let result = |run: &RunData, objective: &str| {
            crate::judge::judge(&objective.parse().unwrap(), &Figures::of(run, 0.0)).result
        };
        let startup = "startup p95 < 2s";
        assert_eq!(result(&mixed(0, 0, 0), startup), "met", "who has no buffer fills none");
        assert_eq!(result(&mixed(5, 0, 1), startup), "met", "others' failures are none of players");
        assert_eq!(result(&mixed(0, 1, 0), startup), "missed", "a player that failed never began");
        assert_eq!(result(&mixed(0, 5, 0), startup), "missed");
        let freeze = "video.freeze p95 < 1%";
        assert_eq!(result(&mixed(0, 5, 1), freeze), "not_measured", "none of them has a picture");
        assert_eq!(result(&mixed(1, 0, 0), freeze), "missed");
        let stalls = "stall_ratio p95 < 1%";
        assert_eq!(result(&mixed(5, 0, 1), stalls), "not_measured");
        assert_eq!(result(&mixed(0, 1, 0), stalls), "missed");
        assert_eq!(result(&mixed(0, 0, 1), "failed < 5%"), "missed", "anybody can fail");
        let run = mixed(1, 2, 1);
        let of = Figures::of(&run, 0.0);
        let startup = of.startup.summary();
        assert_eq!((startup.reached, startup.failed, startup.censored), (3, 2, 0));
        let first_frame = of.first_frame.summary();
        assert_eq!((first_frame.reached, first_frame.failed), (7, 3), "a camera waits for none");
    }
    #[test]
    fn a_resolution_is_that_of_each_second_and_the_usual_ones_are_exact() {
        let mut run = crate::example::healthy(5, 10);
        let result = |run: &RunData, objective: &str| {
            let objective = objective.parse().unwrap();
            let judged = crate::judge::judge(&objective, &Figures::of(run, 0.0));
            (judged.result, judged.measured_text)
        };
        let is = |result: &str, text: &str| (result.to_owned(), text.to_owned());
        assert_eq!(result(&run, "resolution min >= 720p"), is("not_measured", "not measured"));
        assert!(!crate::html::render(&run, &summary(&run)).contains("Resolution"));
        let videos = |run: &mut RunData, lines: &[u64]| {
            let rows = run.series.iter_mut().filter(|row| row.kind == Some(MediaKind::Video));
            for (row, lines) in rows.zip(lines) {
                row.picture_lines = Distribution::new();
                row.picture_lines.record_many(*lines, row.tracks.max(1));
            }
        };
        for usual in [144, 180, 240, 360, 480, 540, 720, 1080, 1440, 2160] {
            videos(&mut run, &[usual; 10]);
            let objective = format!("resolution min >= {usual}p");
            assert_eq!(result(&run, &objective), is("met", &format!("{usual}p")));
            let objective = format!("resolution max > {usual}p");
            assert_eq!(result(&run, &objective), is("missed", &format!("{usual}p")));
        }
        videos(&mut run, &[720, 720, 360, 720]);
        assert_eq!(result(&run, "resolution min >= 720p"), is("missed", "360p"));
        assert!(crate::html::render(&run, &summary(&run)).contains("Resolution"));
    }

    fn summary(run: &RunData) -> crate::Summary {
        crate::summarise(run, &[], std::time::Duration::ZERO)
    }
}
