//! The behaviour of a conference participant, by the conversation and the scenario's script: when
//! it talks, which senders it subscribes to, when it is muted, when it shares a screen. Independent
//! of connections.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use throng_observation::MediaKind;
use throng_scenario::{Action, Conversation, ScriptStep, SubscribePolicy, Talkspurt};

use super::sender::Ladder;
use crate::participant::Why;
use crate::signalling::room::{Subscription, Subscriptions};

/// The largest number of participants of a room that are tracked.
const PEOPLE_MAX: usize = 4_096;

/// How often the participant of a name talks, relative to others of weight 1.
pub type Weights = Arc<dyn Fn(&str) -> u32 + Send + Sync>;

/// How a participant behaves in a conference.
#[derive(Clone)]
pub struct Behaviour {
    /// Its name as the others see it.
    pub name: String,
    /// Its intended time, since the start of the run.
    pub joins_at: Duration,
    /// The turns to talk; `None` if all participants talk all the time.
    pub conversation: Option<Conversation>,
    /// How often each participant talks.
    pub weights: Weights,
    /// Whether it sends audio, and so can get a turn.
    pub has_voice: bool,
    /// The senders whose video it subscribes to.
    pub video: SubscribePolicy,
    /// The senders whose audio it subscribes to.
    pub audio: SubscribePolicy,
    /// The steps of its script.
    pub script: Vec<ScriptStep>,
    /// Its usual video, and those of [`Action::ScreenShare`] in the order of the script; a missing
    /// one is not shown.
    pub pictures: Vec<Ladder>,
}

/// A change of behaviour.
#[derive(Clone, Debug)]
pub(super) enum Change {
    /// It starts or stops talking.
    Talk(bool),
    /// It subscribes to these senders from now on.
    Subscribe(Subscriptions),
    /// It mutes or unmutes this kind.
    Mute(MediaKind, bool),
    /// The video that it shows from now on.
    Show(Ladder),
}

/// The progress of a participant's behaviour.
pub(super) struct BehaviourState {
    behaviour: Behaviour,
    /// The start of the run.
    zero: Option<Instant>,
    turns: Option<Box<dyn Iterator<Item = Talkspurt> + Send>>,
    /// The next turn.
    next: Option<Talkspurt>,
    /// Turns in progress, and the number of the last that began.
    open: VecDeque<Talkspurt>,
    latest: u64,
    /// Up to when the conversation and the script were processed, since the start of the run.
    followed: Duration,
    people: BTreeSet<String>,
    /// The state that was reported last.
    is_talking: bool,
    muted: Vec<MediaKind>,
    /// The kinds that the room has muted, whatever the script does.
    muted_by_room: Vec<MediaKind>,
    shown: usize,
    subscriptions: Subscriptions,
}

impl Behaviour {
    /// Its subscriptions before any sender is known.
    #[must_use]
    pub fn subscriptions(&self) -> Subscriptions {
        let subscription = |whom| match whom {
            SubscribePolicy::All => Subscription::All,
            SubscribePolicy::None => Subscription::None,
            SubscribePolicy::LastSpeakers(_) => Subscription::Named(BTreeSet::new()),
        };
        Subscriptions { audio: subscription(self.audio), video: subscription(self.video) }
    }
}

impl BehaviourState {
    pub(super) fn new(behaviour: Behaviour) -> Self {
        let turns = |conversation: Conversation| -> Box<dyn Iterator<Item = Talkspurt> + Send> {
            Box::new(conversation.talkspurts())
        };
        let mut turns = behaviour.conversation.map(turns);
        let next = turns.as_mut().and_then(Iterator::next);
        let subscriptions = behaviour.subscriptions();
        Self {
            behaviour,
            zero: None,
            turns,
            next,
            open: VecDeque::new(),
            latest: 0,
            followed: Duration::ZERO,
            people: BTreeSet::new(),
            is_talking: true,
            muted: Vec::new(),
            muted_by_room: Vec::new(),
            shown: 0,
            subscriptions,
        }
    }

    /// It joins; `intended_at` is its intended time.
    pub(super) fn begin(&mut self, intended_at: Instant) {
        self.zero = intended_at.checked_sub(self.behaviour.joins_at).or(Some(intended_at));
    }

    /// Sets the other senders in the room.
    pub(super) fn people(&mut self, people: BTreeSet<String>) {
        self.people = people;
        while self.people.len() > PEOPLE_MAX {
            self.people.pop_last();
        }
    }

    /// The room mutes or unmutes a kind.
    pub(super) fn room_mutes(&mut self, kind: MediaKind, is_muted: bool) {
        self.muted_by_room.retain(|muted| *muted != kind);
        self.muted_by_room.extend(is_muted.then_some(kind));
    }

    /// A new sender was created; its initial state is talking, not muted, usual video.
    pub(super) fn sender_begins(&mut self) {
        (self.is_talking, self.shown) = (true, 0);
        self.muted.clear();
    }

    /// The changes that are due at `now`.
    pub(super) fn changes(&mut self, now: Instant) -> Vec<Change> {
        let Some(at) = self.zero.map(|zero| now.saturating_duration_since(zero)) else {
            return Vec::new();
        };
        let mut changes = Vec::new();
        self.follow_turns(at);
        self.talk(&mut changes);
        self.follow_subscriptions(&mut changes);
        self.follow_script(at, &mut changes);
        changes
    }

    fn follow_turns(&mut self, at: Duration) {
        self.followed = at;
        while let Some(turn) = self.next.filter(|turn| turn.begins_at <= at) {
            self.latest = turn.number;
            // A participant that joins late skips earlier turns.
            if turn.ends_at > at {
                self.open.push_back(turn);
            }
            self.next = self.turns.as_mut().and_then(Iterator::next);
        }
        self.open.retain(|turn| turn.ends_at > at);
    }

    fn talk(&mut self, changes: &mut Vec<Change>) {
        let Some(conversation) = self.behaviour.conversation else { return };
        let own = self.behaviour.name.as_str();
        let everybody = || {
            let own = self.behaviour.has_voice.then_some(own);
            let all = self.people.iter().map(String::as_str).chain(own);
            all.map(|name| (name, (self.behaviour.weights)(name)))
        };
        let is_talking = self
            .open
            .iter()
            .any(|turn| conversation.speaker(turn.number, everybody()) == Some(own));
        if is_talking != self.is_talking {
            self.is_talking = is_talking;
            changes.push(Change::Talk(is_talking));
        }
    }

    fn follow_subscriptions(&mut self, changes: &mut Vec<Change>) {
        let Some(conversation) = self.behaviour.conversation else { return };
        let wanted = |whom| match whom {
            SubscribePolicy::LastSpeakers(count) => usize::from(count),
            _ => 0,
        };
        let count = wanted(self.behaviour.video).max(wanted(self.behaviour.audio));
        if count == 0 {
            return;
        }
        let people: Vec<(&str, u32)> = self
            .people
            .iter()
            .map(|name| (name.as_str(), (self.behaviour.weights)(name)))
            .collect();
        let last = conversation.last_speakers(self.latest, count, &people);
        let subscription = |whom, usual: &Subscription| match whom {
            SubscribePolicy::LastSpeakers(count) => Subscription::Named(
                last.iter().take(usize::from(count)).map(|name| (*name).to_owned()).collect(),
            ),
            _ => usual.clone(),
        };
        let subscriptions = Subscriptions {
            audio: subscription(self.behaviour.audio, &self.subscriptions.audio),
            video: subscription(self.behaviour.video, &self.subscriptions.video),
        };
        if subscriptions != self.subscriptions {
            self.subscriptions = subscriptions.clone();
            changes.push(Change::Subscribe(subscriptions));
        }
    }

    fn follow_script(&mut self, at: Duration, changes: &mut Vec<Change>) {
        let on = || self.behaviour.script.iter().filter(|cue| cue.is_on(at));
        for kind in [MediaKind::Audio, MediaKind::Video] {
            let is_muted = self.muted_by_room.contains(&kind)
                || on().any(|cue| cue.action == Action::Mute(kind));
            if is_muted != self.muted.contains(&kind) {
                self.muted.retain(|muted| *muted != kind);
                self.muted.extend(is_muted.then_some(kind));
                changes.push(Change::Mute(kind, is_muted));
            }
        }
        // The first video is the usual one; those of the script's screen shares follow in order.
        let screens =
            self.behaviour.script.iter().filter(|cue| matches!(cue.action, Action::ScreenShare(_)));
        let shown =
            screens.zip(1..).filter(|(cue, _)| cue.is_on(at)).map(|(_, at)| at).last().unwrap_or(0);
        if shown != self.shown {
            self.shown = shown;
            changes.extend(self.behaviour.pictures.get(shown).cloned().map(Change::Show));
        }
    }

    /// When the next change is due, and why.
    pub(super) fn next_timeout(&self) -> Option<(Instant, Why)> {
        let zero = self.zero?;
        let begins = self.next.map(|turn| (turn.begins_at, "a turn to talk begins"));
        let ends = self.open.iter().map(|turn| (turn.ends_at, "a turn to talk ends"));
        let cues = self.behaviour.script.iter().filter_map(|cue| cue.next_change(self.followed));
        let script = cues.map(|at| (at, "the next step of the script"));
        let (at, why) = ends.chain(begins).chain(script).min_by_key(|(at, _)| *at)?;
        Some((zero.checked_add(at)?, why))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use throng_media::card::{self, Rung};
    use throng_observation::Codec;

    const S: fn(u64) -> Duration = Duration::from_secs;

    fn behaviour(number: u32) -> Behaviour {
        Behaviour {
            name: format!("throng-{number}"),
            joins_at: S(u64::from(number)),
            conversation: Some(Conversation::default()),
            weights: Arc::new(|_| 1),
            has_voice: true,
            video: SubscribePolicy::LastSpeakers(3),
            audio: SubscribePolicy::All,
            script: Vec::new(),
            pictures: Vec::new(),
        }
    }

    /// A meeting of `size`, simulated for `seconds`: the changes of each participant with their
    /// times.
    fn played(size: u32, seconds: u64) -> Vec<Vec<(Duration, Change)>> {
        let zero = Instant::now();
        let everybody: BTreeSet<String> = (0..size).map(|n| format!("throng-{n}")).collect();
        let play = |number: u32| {
            let mut state = BehaviourState::new(behaviour(number));
            state.begin(zero + S(u64::from(number)));
            let mut others = everybody.clone();
            others.remove(&format!("throng-{number}"));
            state.people(others);
            let mut now = zero + S(u64::from(size));
            let mut reported = Vec::new();
            while now < zero + S(seconds) {
                reported.extend(state.changes(now).into_iter().map(|change| (now - zero, change)));
                let (next, _) = state.next_timeout().expect("conversation never ends");
                assert!(next > now);
                now = next;
            }
            reported
        };
        (0..size).map(play).collect()
    }

    #[test]
    fn all_agree_on_the_speaker_and_there_is_one_most_of_the_time() {
        let reported = played(8, 600);
        let mut spoken = Duration::ZERO;
        for changes in &reported {
            let mut since: Option<Duration> = None;
            for (at, change) in changes {
                match change {
                    Change::Talk(true) => since = Some(*at),
                    Change::Talk(false) => {
                        spoken += since.take().map_or(Duration::ZERO, |since| *at - since);
                    }
                    _ => {}
                }
            }
        }
        // Turns of 6 s, pauses of 0.6 s, one in ten overlapping: a little more than nine tenths of
        // the time.
        let share = spoken.as_secs_f64() / 592.0;
        assert!((0.85..1.1).contains(&share), "{share}");
    }

    #[test]
    fn video_follows_the_speaker_and_audio_of_all_stays() {
        let reported = played(8, 120);
        let all_subscriptions = |changes: &[(Duration, Change)]| -> Vec<Subscriptions> {
            let of = |(_, change): &(Duration, Change)| match change {
                Change::Subscribe(subscriptions) => Some(subscriptions.clone()),
                _ => None,
            };
            changes.iter().filter_map(of).collect()
        };
        let first = all_subscriptions(&reported[0]);
        assert!(first.len() > 5, "{first:?}");
        for subscriptions in &first {
            assert_eq!(subscriptions.audio, Subscription::All);
            let Subscription::Named(names) = &subscriptions.video else {
                panic!("{subscriptions:?}")
            };
            assert!(names.len() == 3 && !names.contains("throng-0"), "{names:?}");
        }
    }

    #[test]
    fn a_script_is_done_and_undone_and_again_by_a_new_sender() {
        let clips = [Rung::P144, Rung::P360].map(|rung| card::picture(rung, Codec::Vp8).unwrap());
        let script = vec![
            ScriptStep { at: S(5), lasts: Some(S(10)), action: Action::Mute(MediaKind::Video) },
            ScriptStep { at: S(8), lasts: Some(S(4)), action: Action::ScreenShare("360p".into()) },
        ];
        let zero = Instant::now();
        let alone = Behaviour {
            conversation: None,
            script,
            pictures: clips.clone().map(Ladder::from).to_vec(),
            ..behaviour(0)
        };
        let mut state = BehaviourState::new(alone);
        state.begin(zero);
        let mut at = |second: u64| {
            let say = |change| match change {
                Change::Mute(kind, is_muted) => format!("mute {} {is_muted}", kind.key()),
                Change::Show(ladder) => {
                    let is_shown = |known: &Arc<_>| Arc::ptr_eq(known, ladder.top());
                    format!("show {}", clips.iter().position(is_shown).unwrap())
                }
                other => format!("{other:?}"),
            };
            let said: Vec<String> = state.changes(zero + S(second)).into_iter().map(say).collect();
            if second == 9 {
                state.sender_begins();
            }
            said.join(", ")
        };
        let reported: Vec<String> = [0, 5, 8, 9, 10, 12, 15, 20].map(&mut at).into();
        let expect = [
            "",
            "mute video true",
            "show 1",
            "",
            "mute video true, show 1",
            "show 0",
            "mute video false",
            "",
        ];
        assert_eq!(reported, expect);
        assert!(state.next_timeout().is_none());
    }

    #[test]
    fn the_room_mutes_whatever_the_script_says() {
        let script = vec![ScriptStep {
            at: S(5),
            lasts: Some(S(10)),
            action: Action::Mute(MediaKind::Video),
        }];
        let zero = Instant::now();
        let mut state =
            BehaviourState::new(Behaviour { conversation: None, script, ..behaviour(0) });
        state.begin(zero);
        let mut at = |second: u64, by_room: bool| -> Vec<bool> {
            state.room_mutes(MediaKind::Video, by_room);
            let mutes = |change| match change {
                Change::Mute(MediaKind::Video, is_muted) => Some(is_muted),
                _ => None,
            };
            state.changes(zero + S(second)).into_iter().filter_map(mutes).collect()
        };
        assert_eq!(at(1, true), [true]);
        assert_eq!(at(6, true), [false; 0]);
        assert_eq!(at(7, false), [false; 0], "the script mutes it as well");
        assert_eq!(at(9, true), [false; 0]);
        assert_eq!(at(16, true), [false; 0], "the script is over and the room still mutes");
        assert_eq!(at(17, false), [false]);
    }
}
