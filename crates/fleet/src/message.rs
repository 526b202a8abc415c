//! What coordinator and workers tell each other, as JSON on the bus. Rows travel in a form of their
//! own, see [`wire`](crate::wire).
//!
//! ```text
//! coordinator                                   worker
//!   call  ────────────── all workers ─────────────>      who is free?
//!         <───────────────────────────────── offer      this build, this many cores
//!   order ───────────────────────────────────────>      the plan and a share of it
//!         <───────────────────────── ready | refusal     its own consent guard has agreed, or not
//!   start ────────────── all workers ─────────────>      one moment, by the coordinator's clock
//!   beat  ──── each second, with what is wanted ──>
//!         <──── each second, how it goes ─────── pulse
//!         <──── JetStream: rows, each batch once ─
//!         <──── JetStream: the end of its part ───
//! ```
//!
//! The coordinator's decisions about workers are stored between the rows, so that whoever collects
//! a run whose coordinator is gone reads rows and decisions in the order in which they were made.

use serde::{Deserialize, Serialize};
use throng_observation::run::{CohortId, Ending, ParticipantId};
use throng_observation::{RunTime, Unloaded};

use crate::disciplined::{ClockBasis, ClockWord};

/// Version of these messages.
const MESSAGES: u32 = 3;

/// Version of all that is on the bus, of these messages and of rows; both sides must have the same.
/// A worker whose rows nobody reads would be lost in the middle of a run.
pub const PROTOCOL: u32 = MESSAGES * 256 + crate::wire::VERSION as u32;

/// Longest message that is read, bytes. A scenario with its overrides is far shorter.
pub const MESSAGE_BYTES_MAX: usize = 1 << 20;

/// What a program was built from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Build {
    /// Its version, such as `0.1.0`.
    pub version: String,
    /// The instruction set, as `std::env::consts::ARCH` has it.
    pub arch: String,
    /// SHA-256 of the program file, hexadecimal.
    pub sha256: String,
    /// [`PROTOCOL`].
    pub protocol: u32,
}

impl Build {
    /// Whether two programs play a plan alike: the same file, or the same version for another
    /// instruction set.
    #[must_use]
    pub fn plays_like(&self, other: &Self) -> bool {
        let same_file = self.arch != other.arch || self.sha256 == other.sha256;
        self.protocol == other.protocol && self.version == other.version && same_file
    }

    /// The version and the beginning of the hash.
    #[must_use]
    pub fn shown(&self) -> String {
        let hash: String = self.sha256.chars().take(12).collect();
        format!("{} ({}, {hash})", self.version, self.arch)
    }
}

/// The coordinator asks who is free.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// The run's name on the bus.
    pub run: String,
    /// The coordinator's program.
    pub build: Build,
}

/// A free worker offers itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Offer {
    /// Tells workers apart, also those of one host.
    pub id: String,
    /// What people call it: its host, or as `--name` says.
    pub name: String,
    /// Its program.
    pub build: Build,
    /// Cores that it may use.
    pub cores: u32,
    /// The share that it takes, relative to the others; the viewers that `throng calibrate` found,
    /// or one for each core.
    pub weight: u32,
    /// The number that it wants to be, as an Indexed Job of Kubernetes gives it; the coordinator's
    /// choice without.
    pub index: Option<u16>,
}

/// The plan and the share of a worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Order {
    /// The run's name on the bus.
    pub run: String,
    /// The worker's number, from 0.
    pub worker: u16,
    /// The weight of each worker, by number.
    pub weights: Vec<u32>,
    /// The scenario file as it was written. References to secrets are resolved where they are used.
    pub scenario: String,
    /// Values that override it: path, value, and whether the value is text whatever it looks like.
    pub overrides: Vec<(String, String, bool)>,
    /// What is common to the participants of all workers: their mark, their random numbers, the
    /// secret of a room.
    pub seed: u64,
    /// In a search the coordinator adds and removes participants, at most so many in this worker;
    /// `None` where they join as planned.
    pub added_participants_max: Option<u32>,
    /// The participants of a worker that is lost may be given to this one.
    pub reassigns: bool,
}

/// What the worker found when it prepared the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Prepared {
    /// It may begin.
    Ready(Ready),
    /// It may not, or cannot; why.
    Refused(String),
}

/// A worker that may begin.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Ready {
    /// SHA-256 of the plan as the worker made it, hexadecimal: must be that of the coordinator.
    pub plan_sha256: String,
    /// SHA-256 of each media file that it will send, by path as the scenario has it.
    pub media_files: std::collections::BTreeMap<String, String>,
    /// Participants of its share.
    pub participants: u32,
    /// Facts about its host.
    pub host: std::collections::BTreeMap<String, String>,
    /// Warnings about its machine.
    pub warnings: Vec<String>,
    /// Bits per second that it may exchange with the target, Mbit/s, if its owner has a limit.
    pub mbit_per_s_max: Option<f64>,
    /// Its clock.
    pub clock: ClockSaid,
}

/// What a worker knows of the difference between its clock and the coordinator's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockSaid {
    /// The coordinator's clock less the worker's, microseconds.
    pub offset_us: i64,
    /// The offset is right within so many microseconds.
    pub bound_us: u64,
    /// The shortest round trip of a recent exchange, microseconds.
    pub round_trip_us: u64,
    /// Steps of the worker's wall clock during the run. They do not touch the run, which counts by
    /// a steady clock.
    pub steps: u32,
    /// What offset and bound were made of.
    #[serde(default)]
    pub basis: ClockBasis,
    /// What the worker's host says of its clock, if it says something.
    #[serde(default)]
    pub word: Option<ClockWord>,
}

/// A larger bound, or offset, is no knowledge of a clock, microseconds: an hour, and some 285
/// years.
const CLOCK_US_MAX: (u64, u64) = (3_600_000_000, 1 << 53);

impl ClockSaid {
    /// Whether it says something that can be: a worker that has heard no time yet has no bound.
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.bound_us <= CLOCK_US_MAX.0 && self.offset_us.unsigned_abs() <= CLOCK_US_MAX.1
    }
}

/// The moment at which all workers begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Start {
    /// Time 0 of the run by the coordinator's clock, microseconds since the Unix epoch.
    pub at_unix_us: i64,
}

/// A change of the crowd in a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CrowdChange {
    /// A participant joins.
    Add {
        /// Its number in the crowd.
        participant: ParticipantId,
        /// Its cohort.
        cohort: CohortId,
        /// Its index within the cohort.
        place: u32,
        /// The intended time of the join.
        at: RunTime,
        /// Its local address.
        source_ip: Option<std::net::IpAddr>,
    },
    /// A participant leaves.
    Remove(ParticipantId),
    /// Users are judged beyond what they see without load.
    JudgeBeyond(Unloaded),
}

/// The participants of a worker that is gone, given to others. Each worker makes out by itself whom
/// it gets: see [`Deal`](crate::reassign::Deal).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reassignment {
    /// Counted from 1 within the run; they are made in this order.
    pub number: u32,
    /// Whose participants.
    pub of: u16,
    /// Who gets them, in proportion to their weights.
    pub to: Vec<u16>,
    /// Who was to join from here on joins as planned; who was there joins anew.
    pub from: RunTime,
    /// Who had ended by itself before, ascending: these do not join anew.
    pub ended: Vec<u32>,
}

/// What the coordinator decided about a worker that is gone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// Its number.
    pub worker: u16,
    /// Why it was given up; `None` of one that had ended by itself.
    pub gave_up: Option<String>,
    /// What becomes of its participants.
    pub reassignment: Option<Reassignment>,
}

/// What the coordinator wants of all workers, each second. It repeats itself: a lost beat loses
/// nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heartbeat {
    /// When all begin; `None` while some still prepare.
    pub start: Option<Start>,
    /// Why the run ends now, if it does.
    pub stop: Option<String>,
    /// Changes of the crowd that some worker has not confirmed, in order.
    pub changes: Vec<(u64, u16, CrowdChange)>,
    /// Workers that were given up: if they hear this, they stop.
    pub lost: Vec<u16>,
    /// Reassignments that some worker has not confirmed, in order.
    pub reassigned: Vec<Reassignment>,
    /// The run is over for the coordinator too: workers that have sent everything may forget it.
    pub is_over: bool,
}

/// How it goes for a worker, each second.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Pulse {
    /// Its number.
    pub worker: u16,
    /// The last change of the crowd that it has made.
    pub changed: u64,
    /// The last reassignment that it has made.
    pub reassigned: u32,
    /// Its clock.
    pub clock: ClockSaid,
    /// Batches of rows that the bus has not confirmed.
    pub spooled: u64,
    /// Their bytes.
    pub spooled_bytes: u64,
    /// Batches of rows that it had to give up because its spool was full.
    pub given_up: u64,
    /// How its part ended, and how many batches of rows there are in all, once that is known.
    pub end: Option<End>,
}

/// How a worker's part of the run ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// Complete, interrupted or aborted.
    pub ending: Ending,
    /// Why, if early.
    pub why: Option<String>,
    /// When its last participant had ended.
    pub ended_at: RunTime,
    /// Batches of rows that it has sent, all of which the bus has confirmed.
    pub batches: u64,
}

/// A question for the coordinator's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimeAsked {
    /// The worker's clock when it asked, microseconds.
    pub sent_us: i64,
}

/// The coordinator's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimeSaid {
    /// The coordinator's clock when the question came, microseconds since the Unix epoch.
    pub received_us: i64,
    /// The same when the answer left.
    pub sent_us: i64,
    /// What the coordinator's host says of its clock, if it says something.
    #[serde(default)]
    pub word: Option<ClockWord>,
}

/// Reads a message; the error names what it should have been.
///
/// # Errors
/// When it is too long, or not such a message.
pub fn read<T: serde::de::DeserializeOwned>(what: &str, bytes: &[u8]) -> Result<T, MessageError> {
    if bytes.len() > MESSAGE_BYTES_MAX {
        return Err(MessageError(format!(
            "{what} of {} bytes, more than {MESSAGE_BYTES_MAX}",
            bytes.len()
        )));
    }
    // Errors of serde repeat the value that they did not expect, as long as it is.
    let shown = |error: serde_json::Error| error.to_string().chars().take(200).collect::<String>();
    serde_json::from_slice(bytes)
        .map_err(|error| MessageError(format!("not {what}: {}", shown(error))))
}

/// Writes a message.
#[must_use]
pub fn write<T: Serialize>(message: &T) -> bytes::Bytes {
    // Plain records of numbers, text and lists: serialisation does not fail.
    serde_json::to_vec(message).unwrap_or_default().into()
}

/// Bytes that are not the message that was expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct MessageError(String);

#[cfg(test)]
mod tests {
    use super::*;

    fn build(version: &str, arch: &str, sha256: &str) -> Build {
        Build {
            version: version.into(),
            arch: arch.into(),
            sha256: sha256.into(),
            protocol: PROTOCOL,
        }
    }

    #[test]
    fn programs_play_alike_if_they_are_the_same_file_or_the_same_version_elsewhere() {
        let ours = build("0.1.0", "x86_64", "aa");
        assert!(ours.plays_like(&ours));
        assert!(ours.plays_like(&build("0.1.0", "aarch64", "bb")));
        for other in [build("0.1.0", "x86_64", "bb"), build("0.2.0", "aarch64", "bb")] {
            assert!(!ours.plays_like(&other), "{other:?}");
        }
        assert!(!ours.plays_like(&Build { protocol: PROTOCOL + 1, ..ours.clone() }));
    }

    #[test]
    fn a_program_for_other_machines_with_another_form_of_rows_plays_nothing_alike() {
        assert_eq!(PROTOCOL & 0xff, u32::from(crate::wire::VERSION));
        let ours = build("0.1.0", "x86_64", "aa");
        let theirs = build("0.1.0", "aarch64", "bb");
        // 3 and 4 were versions of the messages alone.
        for protocol in [3, 4, PROTOCOL - 1, PROTOCOL + 256] {
            assert!(!ours.plays_like(&Build { protocol, ..theirs.clone() }), "{protocol}");
        }
    }

    #[test]
    fn what_hosts_say_of_their_clocks_may_be_left_out_and_what_cannot_be_is_no_knowledge() {
        let said = read::<TimeSaid>("a time", br#"{"received_us":1,"sent_us":2}"#);
        assert_eq!(said, Ok(TimeSaid { received_us: 1, sent_us: 2, word: None }));
        let clock = br#"{"offset_us":1,"bound_us":2,"round_trip_us":4,"steps":0}"#;
        let clock = read::<ClockSaid>("a clock", clock).expect("a clock");
        assert!(clock.basis == ClockBasis::Exchanges && clock.word.is_none() && clock.is_known());
        assert!(!ClockSaid { bound_us: u64::MAX, ..clock }.is_known());
        assert!(!ClockSaid { offset_us: i64::MIN, ..clock }.is_known());
    }

    #[test]
    fn what_is_no_message_is_named() {
        let beat = Heartbeat { stop: Some("enough".into()), ..Heartbeat::default() };
        assert_eq!(read::<Heartbeat>("a beat", &write(&beat)), Ok(beat));
        let error = read::<Heartbeat>("a beat", b"{").expect_err("half").to_string();
        assert!(error.starts_with("not a beat: "), "{error}");
        let error = read::<Heartbeat>("a beat", &vec![b' '; MESSAGE_BYTES_MAX + 1])
            .expect_err("long")
            .to_string();
        assert!(error.contains("1048577 bytes"), "{error}");
        let long = format!(r#"{{"start":"{}"}}"#, "x".repeat(100_000));
        let error = read::<Heartbeat>("a beat", long.as_bytes()).expect_err("no beat").to_string();
        assert!(error.len() < 1_000, "{} bytes", error.len());
    }
}
