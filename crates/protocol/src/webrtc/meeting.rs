//! What a participant does in a meeting because of who speaks and of what the scenario's script says: when it speaks, whom
//! it wants to see and hear, when it is mute, when its picture is a shared screen. It knows nothing of connections.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use throng_observation::MediaKind;
use throng_scenario::{Act, Cue, Subscribe, Talk, Turn};

use super::sender::Ladder;
use crate::participant::Why;
use crate::signalling::room::{Attention, Heed};

/// More people than this are not told apart in a room.
const PEOPLE_MAX: usize = 4_096;

/// How often somebody speaks, by name, beside others of weight 1.
pub type Weights = Arc<dyn Fn(&str) -> u32 + Send + Sync>;

/// How a participant behaves in a meeting.
#[derive(Clone)]
pub struct Conduct {
    /// The name by which the others know it.
    pub name: String,
    /// Its intended join, since the start of the run.
    pub joins_at: Duration,
    /// Who speaks when; `None` for everybody all the time.
    pub talk: Option<Talk>,
    /// How often each speaks.
    pub weights: Weights,
    /// It sends sound, so that it may get a turn.
    pub has_voice: bool,
    /// Whom it sees.
    pub video: Subscribe,
    /// Whom it hears.
    pub audio: Subscribe,
    /// What it does when.
    pub script: Vec<Cue>,
    /// Its usual picture, and those of [`Act::Screen`] in the order of the script; one that is not there is not shown.
    pub pictures: Vec<Ladder>,
}

/// What becomes different.
#[derive(Clone, Debug)]
pub(super) enum Change {
    /// It speaks from here on, or is silent.
    Talk(bool),
    /// Whom it receives from here on.
    Attend(Attention),
    /// It sends this kind no more, or again.
    Mute(MediaKind, bool),
    /// Its picture from here on.
    Show(Ladder),
}

/// A participant's place in the meeting.
pub(super) struct Meeting {
    conduct: Conduct,
    /// The start of the run.
    zero: Option<Instant>,
    turns: Option<Box<dyn Iterator<Item = Turn> + Send>>,
    /// The turn that begins next.
    next: Option<Turn>,
    /// Turns that go on, and the number of the last that began.
    open: VecDeque<Turn>,
    latest: u64,
    /// Up to when the talk and the script were followed, since the start of the run.
    followed: Duration,
    people: BTreeSet<String>,
    /// What was told last.
    is_talking: bool,
    muted: Vec<MediaKind>,
    /// What the room does not let it send, whatever its script says.
    muted_by_room: Vec<MediaKind>,
    shown: usize,
    attention: Attention,
}

impl Conduct {
    /// Whom it receives before anybody is known.
    #[must_use]
    pub fn attention(&self) -> Attention {
        let heed = |whom| match whom {
            Subscribe::All => Heed::All,
            Subscribe::Nobody => Heed::Nobody,
            Subscribe::LastSpeakers(_) => Heed::These(BTreeSet::new()),
        };
        Attention { audio: heed(self.audio), video: heed(self.video) }
    }
}

impl Meeting {
    pub(super) fn new(conduct: Conduct) -> Self {
        let turns = |talk: Talk| -> Box<dyn Iterator<Item = Turn> + Send> { Box::new(talk.turns()) };
        let mut turns = conduct.talk.map(turns);
        let next = turns.as_mut().and_then(Iterator::next);
        let attention = conduct.attention();
        Self {
            conduct,
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
            attention,
        }
    }

    /// It joins, and was meant to at `intended_at`.
    pub(super) fn begin(&mut self, intended_at: Instant) {
        self.zero = intended_at.checked_sub(self.conduct.joins_at).or(Some(intended_at));
    }

    /// Who else is in the room.
    pub(super) fn people(&mut self, people: BTreeSet<String>) {
        self.people = people;
        while self.people.len() > PEOPLE_MAX {
            self.people.pop_last();
        }
    }

    /// The room does not let it send a kind any more, or does again.
    pub(super) fn room_mutes(&mut self, kind: MediaKind, is_muted: bool) {
        self.muted_by_room.retain(|muted| *muted != kind);
        self.muted_by_room.extend(is_muted.then_some(kind));
    }

    /// What it sends through begins anew: a sender speaks, is not mute and shows the usual picture.
    pub(super) fn sender_begins(&mut self) {
        (self.is_talking, self.shown) = (true, 0);
        self.muted.clear();
    }

    /// What is different at `now`.
    pub(super) fn changes(&mut self, now: Instant) -> Vec<Change> {
        let Some(at) = self.zero.map(|zero| now.saturating_duration_since(zero)) else { return Vec::new() };
        let mut changes = Vec::new();
        self.follow_turns(at);
        self.talk(&mut changes);
        self.attend(&mut changes);
        self.follow_script(at, &mut changes);
        changes
    }

    fn follow_turns(&mut self, at: Duration) {
        self.followed = at;
        while let Some(turn) = self.next.filter(|turn| turn.begins_at <= at) {
            self.latest = turn.number;
            // Who joins late passes over what was said before.
            if turn.ends_at > at {
                self.open.push_back(turn);
            }
            self.next = self.turns.as_mut().and_then(Iterator::next);
        }
        self.open.retain(|turn| turn.ends_at > at);
    }

    fn talk(&mut self, changes: &mut Vec<Change>) {
        let Some(talk) = self.conduct.talk else { return };
        let own = self.conduct.name.as_str();
        let everybody = || {
            let own = self.conduct.has_voice.then_some(own);
            let all = self.people.iter().map(String::as_str).chain(own);
            all.map(|name| (name, (self.conduct.weights)(name)))
        };
        let is_talking = self.open.iter().any(|turn| talk.speaker(turn.number, everybody()) == Some(own));
        if is_talking != self.is_talking {
            self.is_talking = is_talking;
            changes.push(Change::Talk(is_talking));
        }
    }

    fn attend(&mut self, changes: &mut Vec<Change>) {
        let Some(talk) = self.conduct.talk else { return };
        let wanted = |whom| match whom {
            Subscribe::LastSpeakers(count) => usize::from(count),
            _ => 0,
        };
        let count = wanted(self.conduct.video).max(wanted(self.conduct.audio));
        if count == 0 {
            return;
        }
        let people: Vec<(&str, u32)> =
            self.people.iter().map(|name| (name.as_str(), (self.conduct.weights)(name))).collect();
        let last = talk.last_speakers(self.latest, count, &people);
        let heed = |whom, usual: &Heed| match whom {
            Subscribe::LastSpeakers(count) => {
                Heed::These(last.iter().take(usize::from(count)).map(|name| (*name).to_owned()).collect())
            }
            _ => usual.clone(),
        };
        let attention = Attention {
            audio: heed(self.conduct.audio, &self.attention.audio),
            video: heed(self.conduct.video, &self.attention.video),
        };
        if attention != self.attention {
            self.attention = attention.clone();
            changes.push(Change::Attend(attention));
        }
    }

    fn follow_script(&mut self, at: Duration, changes: &mut Vec<Change>) {
        let on = || self.conduct.script.iter().filter(|cue| cue.is_on(at));
        for kind in [MediaKind::Audio, MediaKind::Video] {
            let is_muted = self.muted_by_room.contains(&kind) || on().any(|cue| cue.act == Act::Mute(kind));
            if is_muted != self.muted.contains(&kind) {
                self.muted.retain(|muted| *muted != kind);
                self.muted.extend(is_muted.then_some(kind));
                changes.push(Change::Mute(kind, is_muted));
            }
        }
        // The first picture is the usual one; each screen of the script has its own after that.
        let screens = self.conduct.script.iter().filter(|cue| matches!(cue.act, Act::Screen(_)));
        let shown = screens.zip(1..).filter(|(cue, _)| cue.is_on(at)).map(|(_, at)| at).last().unwrap_or(0);
        if shown != self.shown {
            self.shown = shown;
            changes.extend(self.conduct.pictures.get(shown).cloned().map(Change::Show));
        }
    }

    /// When something is different next, and why.
    pub(super) fn next_timeout(&self) -> Option<(Instant, Why)> {
        let zero = self.zero?;
        let begins = self.next.map(|turn| (turn.begins_at, "a turn to speak begins"));
        let ends = self.open.iter().map(|turn| (turn.ends_at, "a turn to speak ends"));
        let cues = self.conduct.script.iter().filter_map(|cue| cue.next_change(self.followed));
        let script = cues.map(|at| (at, "the script goes on"));
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

    fn conduct(number: u32) -> Conduct {
        Conduct {
            name: format!("throng-{number}"),
            joins_at: S(u64::from(number)),
            talk: Some(Talk::default()),
            weights: Arc::new(|_| 1),
            has_voice: true,
            video: Subscribe::LastSpeakers(3),
            audio: Subscribe::All,
            script: Vec::new(),
            pictures: Vec::new(),
        }
    }

    /// A meeting of `size`, played for `seconds`: what each was told and when.
    fn played(size: u32, seconds: u64) -> Vec<Vec<(Duration, Change)>> {
        let zero = Instant::now();
        let everybody: BTreeSet<String> = (0..size).map(|n| format!("throng-{n}")).collect();
        let play = |number: u32| {
            let mut meeting = Meeting::new(conduct(number));
            meeting.begin(zero + S(u64::from(number)));
            let mut others = everybody.clone();
            others.remove(&format!("throng-{number}"));
            meeting.people(others);
            let mut now = zero + S(u64::from(size));
            let mut told = Vec::new();
            while now < zero + S(seconds) {
                told.extend(meeting.changes(now).into_iter().map(|change| (now - zero, change)));
                let (next, _) = meeting.next_timeout().expect("talk never ends");
                assert!(next > now);
                now = next;
            }
            told
        };
        (0..size).map(play).collect()
    }

    #[test]
    fn all_agree_whose_turn_it_is_and_somebody_speaks_most_of_the_time() {
        let told = played(8, 600);
        let mut spoken = Duration::ZERO;
        for changes in &told {
            let mut since: Option<Duration> = None;
            for (at, change) in changes {
                match change {
                    Change::Talk(true) => since = Some(*at),
                    Change::Talk(false) => spoken += since.take().map_or(Duration::ZERO, |since| *at - since),
                    _ => {}
                }
            }
        }
        // Turns of 6 s, pauses of 0.6 s, a tenth falling in: a little more than nine tenths of the time.
        let share = spoken.as_secs_f64() / 592.0;
        assert!((0.85..1.1).contains(&share), "{share}");
    }

    #[test]
    fn pictures_follow_who_speaks_and_sound_stays_with_everybody() {
        let told = played(8, 120);
        let attentions = |changes: &[(Duration, Change)]| -> Vec<Attention> {
            let of = |(_, change): &(Duration, Change)| match change {
                Change::Attend(attention) => Some(attention.clone()),
                _ => None,
            };
            changes.iter().filter_map(of).collect()
        };
        let first = attentions(&told[0]);
        assert!(first.len() > 5, "{first:?}");
        for attention in &first {
            assert_eq!(attention.audio, Heed::All);
            let Heed::These(names) = &attention.video else { panic!("{attention:?}") };
            assert!(names.len() == 3 && !names.contains("throng-0"), "{names:?}");
        }
    }

    #[test]
    fn a_script_is_done_and_undone_and_again_by_a_new_sender() {
        let clips = [Rung::P144, Rung::P360].map(|rung| card::picture(rung, Codec::Vp8).unwrap());
        let script = vec![
            Cue { at: S(5), lasts: Some(S(10)), act: Act::Mute(MediaKind::Video) },
            Cue { at: S(8), lasts: Some(S(4)), act: Act::Screen("360p".into()) },
        ];
        let zero = Instant::now();
        let alone =
            Conduct { talk: None, script, pictures: clips.clone().map(Ladder::from).to_vec(), ..conduct(0) };
        let mut meeting = Meeting::new(alone);
        meeting.begin(zero);
        let mut at = |second: u64| {
            let say = |change| match change {
                Change::Mute(kind, is_muted) => format!("mute {} {is_muted}", kind.key()),
                Change::Show(ladder) => {
                    let is_shown = |known: &Arc<_>| Arc::ptr_eq(known, ladder.top());
                    format!("show {}", clips.iter().position(is_shown).unwrap())
                }
                other => format!("{other:?}"),
            };
            let said: Vec<String> = meeting.changes(zero + S(second)).into_iter().map(say).collect();
            if second == 9 {
                meeting.sender_begins();
            }
            said.join(", ")
        };
        let told: Vec<String> = [0, 5, 8, 9, 10, 12, 15, 20].map(&mut at).into();
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
        assert_eq!(told, expect);
        assert!(meeting.next_timeout().is_none());
    }

    #[test]
    fn the_room_mutes_whatever_the_script_says() {
        let script = vec![Cue { at: S(5), lasts: Some(S(10)), act: Act::Mute(MediaKind::Video) }];
        let zero = Instant::now();
        let mut meeting = Meeting::new(Conduct { talk: None, script, ..conduct(0) });
        meeting.begin(zero);
        let mut at = |second: u64, by_room: bool| -> Vec<bool> {
            meeting.room_mutes(MediaKind::Video, by_room);
            let mutes = |change| match change {
                Change::Mute(MediaKind::Video, is_muted) => Some(is_muted),
                _ => None,
            };
            meeting.changes(zero + S(second)).into_iter().filter_map(mutes).collect()
        };
        assert_eq!(at(1, true), [true]);
        assert_eq!(at(6, true), [false; 0]);
        assert_eq!(at(7, false), [false; 0], "the script mutes it as well");
        assert_eq!(at(9, true), [false; 0]);
        assert_eq!(at(16, true), [false; 0], "the script is over and the room still mutes");
        assert_eq!(at(17, false), [false]);
    }
}
