//! One room of a chat with many participants: what it costs until all are in it, and while they
//! talk.
//!
//! A room is the work of one thread, and everybody is told of everybody: joins cost in proportion
//! to the participants, deliveries to their square. CPU-seconds of joins are an impulse; they bound
//! how many can come, and how fast, where messages are a steady use.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Estimate;
use crate::demand::growth::{CURVED_REACH, Extrapolation, ORDER_OF_MAGNITUDE, WIDTH_MIN};
use crate::demand::{ChatCost, ChatWork};

/// Halvings of a bisection: more than the bits of a mantissa.
const HALVINGS: u32 = 60;

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RoomRequest {
    /// Participants in one room.
    pub participants: f64,
    /// vCards for each pair of participants: 1 where all ask for all.
    pub vcards_per_pair: f64,
    /// All must be in it within so long, seconds: the event.
    pub within_s: f64,
    /// The share of the thread that may be used, above 0 and at most 1.
    pub target_utilisation: f64,
}

/// What one kind of work costs until all have joined.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RoomPart {
    /// The work.
    pub work: ChatWork,
    /// Whether there is as much of it as the square of the participants.
    pub is_quadratic: bool,
    /// How much of it.
    pub count: f64,
    /// CPU time of each, microseconds.
    pub cpu_us: f64,
    /// CPU-seconds of all.
    pub cpu_s: Estimate,
    /// Bytes that arrive.
    pub bytes: f64,
}

/// Everybody talks as in the run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RoomTalk {
    /// Messages that are said each second.
    pub messages_per_second: f64,
    /// Deliveries each second: of each message to each participant.
    pub deliveries_per_second: f64,
    /// What they use of the thread, 1 being all of it.
    pub thread: Estimate,
    /// Bytes that arrive each second.
    pub bytes_per_second: f64,
}

/// Whether a room can be joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RoomVerdict {
    /// The thread has done the work of the joins in time, used to the target.
    Joinable,
    /// The interval of that work contains the CPU time that there is.
    Doubtful,
    /// It has not.
    NotJoinable,
}

impl RoomVerdict {
    /// `available_s`: CPU-seconds that the thread may use until all must have joined.
    fn of(joins_s: Estimate, available_s: f64) -> Self {
        if joins_s.high <= available_s {
            Self::Joinable
        } else if joins_s.low <= available_s {
            Self::Doubtful
        } else {
            Self::NotJoinable
        }
    }
}

/// One room with all participants.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RoomForecast {
    /// How many.
    pub participants: f64,
    /// The thread.
    pub thread: String,
    /// The work until all have joined.
    pub parts: Vec<RoomPart>,
    /// CPU-seconds in proportion to the participants.
    pub linear_s: f64,
    /// CPU-seconds in proportion to their square.
    pub quadratic_s: f64,
    /// All of it.
    pub joins_s: Estimate,
    /// Bytes that arrive until all have joined.
    pub joins_bytes: f64,
    /// CPU time of the last join and of the deliveries that it causes, milliseconds.
    pub last_join_ms: f64,
    /// How far beyond the largest room of the run.
    pub extrapolation: Extrapolation,
    /// All must have joined within so long, seconds.
    pub within_s: f64,
    /// Whether they can.
    pub verdict: RoomVerdict,
    /// Joins a second in the run.
    pub joins_per_second: f64,
    /// Participants in the room from which joins that come as fast as in the run fill the thread;
    /// `null` if that is beyond these.
    pub full_from: Option<f64>,
    /// What is said while all are there; `null` if nothing was said in the run.
    pub talk: Option<RoomTalk>,
    /// The largest room that can be joined as fast as in the run, and can talk, with the thread
    /// used to the target.
    pub largest_room: f64,
    /// How many rooms of at most that size.
    pub rooms: f64,
}

/// A room by the costs of a run.
struct Law<'a> {
    cost: &'a ChatCost,
    request: RoomRequest,
}

impl RoomForecast {
    /// The room that `request` asks for, by what a run's chat cost.
    #[must_use]
    pub fn of(cost: &ChatCost, request: RoomRequest) -> Self {
        let law = Law { cost, request };
        let n = request.participants;
        let parts: Vec<RoomPart> = [ChatWork::Join, ChatWork::Presence, ChatWork::Vcard]
            .into_iter()
            .filter_map(|work| law.part(work, n))
            .collect();
        let sum = |is_quadratic: bool| -> f64 {
            parts
                .iter()
                .filter(|part| part.is_quadratic == is_quadratic)
                .map(|part| part.cpu_s.value)
                .sum()
        };
        let joins_s = law.joins_s(n);
        let largest_room = law.largest_room();
        let full_from = law.most(|users| law.last_join_s(users) * cost.joins_per_second <= 1.0);
        Self {
            participants: n,
            thread: cost.thread.clone(),
            linear_s: sum(false),
            quadratic_s: sum(true),
            joins_s,
            joins_bytes: parts.iter().map(|part| part.bytes).sum(),
            parts,
            last_join_ms: law.last_join_s(n) * 1e3,
            extrapolation: law.extrapolation(n),
            within_s: request.within_s,
            verdict: RoomVerdict::of(joins_s, request.within_s * request.target_utilisation),
            joins_per_second: cost.joins_per_second,
            full_from: (full_from < n).then_some(full_from),
            talk: law.talk(n),
            rooms: (n / largest_room.max(1.0) - 1e-9).ceil().max(1.0),
            largest_room,
        }
    }
}

impl Law<'_> {
    /// How much of a kind of work until `n` have joined.
    fn count(&self, work: ChatWork, n: f64) -> f64 {
        match work {
            ChatWork::Join => n,
            // Each of each, and that of its own account.
            ChatWork::Presence => n * (n + 1.0),
            // Everybody asks for its own.
            ChatWork::Vcard => self.request.vcards_per_pair * n * (n - 1.0) + n,
            // The archive is read once each; deliveries are no part of a join.
            ChatWork::Message => 0.0,
        }
    }

    fn each_s(&self, work: ChatWork) -> f64 {
        self.cost.cost(work).map_or(0.0, |cost| cost.cpu_us / 1e6)
    }

    fn part(&self, work: ChatWork, n: f64) -> Option<RoomPart> {
        let (cost, count) = (self.cost.cost(work)?, self.count(work, n));
        let half = self.cost.error_of(|other| if other == work { count } else { 0.0 });
        (count > 0.0).then(|| RoomPart {
            work,
            is_quadratic: match work {
                ChatWork::Presence => true,
                ChatWork::Vcard => self.request.vcards_per_pair > 0.0,
                ChatWork::Join | ChatWork::Message => false,
            },
            count,
            cpu_us: cost.cpu_us,
            cpu_s: self.estimate(count * cost.cpu_us / 1e6, half, n),
            bytes: count * cost.bytes,
        })
    }

    /// CPU-seconds until `n` have joined.
    fn joins_s(&self, n: f64) -> Estimate {
        let value =
            ChatWork::ALL.into_iter().map(|work| self.count(work, n) * self.each_s(work)).sum();
        self.estimate(value, self.cost.error_of(|work| self.count(work, n)), n)
    }

    /// CPU-seconds of the join of the last of `n`.
    fn last_join_s(&self, n: f64) -> f64 {
        let one = |work| self.count(work, n) - self.count(work, (n - 1.0).max(0.0));
        ChatWork::ALL.into_iter().map(|work| one(work) * self.each_s(work)).sum()
    }

    fn talk(&self, n: f64) -> Option<RoomTalk> {
        let messages_per_second = self.cost.messages_per_second * n;
        let deliveries = messages_per_second * n;
        let bytes = self.cost.cost(ChatWork::Message).map_or(0.0, |cost| cost.bytes);
        let half =
            self.cost.error_of(|work| if work == ChatWork::Message { deliveries } else { 0.0 });
        (messages_per_second > 0.0).then(|| RoomTalk {
            messages_per_second,
            deliveries_per_second: deliveries,
            thread: self.estimate(deliveries * self.each_s(ChatWork::Message), half, n),
            bytes_per_second: deliveries * bytes,
        })
    }

    fn largest_room(&self) -> f64 {
        let target = self.request.target_utilisation;
        let talks = |n: f64| self.talk(n).is_none_or(|talk| talk.thread.value <= target);
        let comes = |n: f64| self.last_join_s(n) * self.cost.joins_per_second <= target;
        let is_in = |n: f64| self.joins_s(n).value <= self.request.within_s * target;
        self.most(|n| talks(n) && comes(n) && is_in(n)).floor()
    }

    /// The most participants, up to those asked for, of which `holds`, which holds for fewer too.
    fn most(&self, holds: impl Fn(f64) -> bool) -> f64 {
        let (mut low, mut high) = (0.0, self.request.participants);
        if holds(high) {
            return high;
        }
        for _ in 0..HALVINGS {
            let middle = (low + high) / 2.0;
            if holds(middle) { low = middle } else { high = middle }
        }
        low
    }

    fn extrapolation(&self, n: f64) -> Extrapolation {
        let factor = (n / f64::from(self.cost.room_max.max(1))).max(1.0);
        Extrapolation { factor, order_of_magnitude_only: factor > CURVED_REACH }
    }

    /// With its interval, which far beyond the measurement is half an order of magnitude either
    /// way.
    fn estimate(&self, value: f64, half: f64, n: f64) -> Estimate {
        let half = half.max(WIDTH_MIN * value);
        let (mut low, mut high) = ((value - half).max(0.0), value + half);
        if self.extrapolation(n).order_of_magnitude_only {
            (low, high) =
                (low.min(value / ORDER_OF_MAGNITUDE), high.max(value * ORDER_OF_MAGNITUDE));
        }
        Estimate { value, low, high }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demand::{chatted, of_chat};

    fn cost(vcards: f64) -> ChatCost {
        of_chat(&chatted(150, vcards)).expect("a chat")
    }

    fn request(participants: f64, vcards_per_pair: f64) -> RoomRequest {
        RoomRequest { participants, vcards_per_pair, within_s: 3_600.0, target_utilisation: 0.75 }
    }

    #[test]
    fn a_room_of_ten_thousand_cannot_be_joined_and_the_square_says_why() {
        let room = RoomForecast::of(&cost(1.0), request(10_000.0, 1.0));
        let part = |work| room.parts.iter().find(|part| part.work == work).unwrap();
        assert_eq!(part(ChatWork::Presence).count, 100_010_000.0);
        assert_eq!(part(ChatWork::Vcard).count, 1e8);
        // 120 µs for each presence, 600 µs for each vCard.
        assert!((room.quadratic_s / 72_001.0 - 1.0).abs() < 0.03, "{room:?}");
        assert!((room.linear_s - 30.0).abs() < 20.0, "{room:?}");
        assert_eq!(room.verdict, RoomVerdict::NotJoinable);
        assert!(
            room.extrapolation.order_of_magnitude_only
                && room.joins_s.low <= room.joins_s.value / 3.0
        );
        assert!(room.rooms > 20.0 && room.largest_room < 400.0, "{room:?}");
        // The last one's presences and vCards are those of all others, twice.
        assert!(
            (room.last_join_ms / (2.0 * 10_000.0 * 0.72) - 1.0).abs() < 0.05,
            "{}",
            room.last_join_ms
        );
    }

    #[test]
    fn a_room_whose_joins_take_all_of_the_thread_is_not_joinable_at_the_target() {
        let cost = cost(1.0);
        let joins_s = RoomForecast::of(&cost, request(150.0, 1.0)).joins_s;
        let verdict = |within_s: f64| {
            RoomForecast::of(&cost, RoomRequest { within_s, ..request(150.0, 1.0) }).verdict
        };
        // Three quarters of the time may be used.
        assert_eq!(verdict(joins_s.low * 1.3), RoomVerdict::NotJoinable);
        assert_eq!(verdict(joins_s.value / 0.75), RoomVerdict::Doubtful);
        assert_eq!(verdict(joins_s.high * 1.4), RoomVerdict::Joinable);
    }

    #[test]
    fn the_forecast_of_a_room_that_was_measured_is_its_cost() {
        let planted = 0.003 * 150.0 + 120e-6 * 150.0 * 151.0;
        let room = RoomForecast::of(&cost(0.0), request(150.0, 0.0));
        assert!((room.joins_s.value / planted - 1.0).abs() < 0.06, "{room:?}");
        assert!(room.joins_s.low <= planted && planted <= room.joins_s.high, "{room:?}");
        assert_eq!(
            (room.verdict, room.rooms, room.largest_room),
            (RoomVerdict::Joinable, 1.0, 150.0)
        );
        assert!(!room.extrapolation.is_one() && room.full_from.is_none());
    }

    #[test]
    fn more_participants_never_cost_less_and_the_largest_room_is_held() {
        let (cost, mut before) = (cost(1.0), 0.0);
        for participants in [1.0, 20.0, 150.0, 400.0, 1_000.0, 10_000.0, 1e6] {
            let room = RoomForecast::of(&cost, request(participants, 1.0));
            assert!(room.joins_s.value > before, "{participants}");
            assert!(
                room.joins_s.low <= room.joins_s.value && room.joins_s.value <= room.joins_s.high
            );
            before = room.joins_s.value;
            let held = RoomForecast::of(&cost, request(room.largest_room, 1.0));
            assert_eq!(held.verdict, RoomVerdict::Joinable, "{participants}: {held:?}");
            assert!(held.talk.unwrap().thread.value < 0.76 && held.full_from.is_none(), "{held:?}");
        }
    }
}
