//! A thousand servers made from seeds, with what disturbs real measurements: the search may say
//! that it does not know, but what it says without a doubt has to be right.
//! docs/measurements/simulated-answers.md has the table.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use throng_observation::{Goal, HoldOutcome, HoldRow, RunTime};

use super::rng::Rng;
use super::*;
use crate::capacity::{Capacity, CapacityVerdict};

const SERVERS: u64 = 1_000;
/// Largest share of wrong answers among those without a caveat.
const WRONG_MAX: f64 = 0.01;
const CEILING: u32 = 5_000;
/// How far an answer may be from the capacity, in addition to one user: the widest bracket of the
/// paces that are used, and the noise.
const OFF_MAX: f64 = 0.10;

/// What is wrong with a server, apart from its capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Plain,
    Noise,
    Drift,
    Periodic,
    Random,
    WarmUp,
    Stuck,
    Leak,
    Bimodal,
    Churn,
    Soft,
}

const KINDS: [Kind; 11] = [
    Kind::Plain,
    Kind::Noise,
    Kind::Drift,
    Kind::Periodic,
    Kind::Random,
    Kind::WarmUp,
    Kind::Stuck,
    Kind::Leak,
    Kind::Bimodal,
    Kind::Churn,
    Kind::Soft,
];

/// A server with a capacity, and what disturbs it.
struct Model {
    kind: Kind,
    capacity: f64,
    noise: f64,
    /// Amplitude and period of a slow wave of the capacity, as shares and seconds.
    wave: (f64, f64),
    /// Everybody is served badly for so many seconds each so many; negative periods are means of
    /// random gaps.
    strikes: Option<(f64, f64)>,
    warm_up_s: i64,
    stuck_below: Option<f64>,
    /// Share of the capacity that is lost a second, and from when on.
    leak: f64,
    leak_from_s: f64,
    /// The lesser capacity as a share, and how long each lasts on the mean, seconds.
    modes: Option<(f64, f64)>,
    /// Share of users that have a bad second for reasons of their own.
    churn: f64,
    /// How many users beyond the capacity suffer for one that is too many; infinite: all.
    soft: bool,
    rng: Rng,
    drift: f64,
    queue: f64,
    is_stuck: bool,
    is_lesser: bool,
    strike_left_s: f64,
    next_strike_s: f64,
}

impl Model {
    fn new(seed: u64) -> Self {
        let mut rng = Rng(seed.wrapping_mul(0x9e37_79b9) ^ 0x5eed);
        let kind = KINDS[(rng.uniform() * KINDS.len() as f64) as usize];
        let mut between = |low: f64, high: f64| low + (high - low) * rng.uniform();
        let capacity = between(6_f64.ln(), 3_000_f64.ln()).exp();
        let noise = between(0.0, 0.005);
        let (period, length, other, share) =
            (between(20.0, 300.0), between(1.0, 10.0), between(0.0, 1.0), between(0.3, 0.9));
        let has = |of: Kind| kind == of;
        let phase = between(0.0, 1.0);
        Self {
            kind,
            capacity,
            noise: if has(Kind::Noise) { 0.005 + 0.015 * other } else { noise },
            wave: if has(Kind::Drift) {
                (0.02 + 0.06 * other, 200.0 + period * 2.0)
            } else {
                (0.0, 1.0)
            },
            strikes: match kind {
                Kind::Periodic => Some((length, period)),
                Kind::Random => Some((length, -period)),
                _ => None,
            },
            warm_up_s: if has(Kind::WarmUp) { 3 + (other * 60.0) as i64 } else { 0 },
            stuck_below: has(Kind::Stuck).then_some(share),
            leak: if has(Kind::Leak) { (0.05 + 0.3 * other) / 900.0 } else { 0.0 },
            leak_from_s: 0.0,
            modes: has(Kind::Bimodal).then_some((share, 10.0 + period)),
            churn: if has(Kind::Churn) { 0.0005 + 0.002 * other } else { 0.0 },
            soft: has(Kind::Soft),
            drift: 0.0,
            queue: 0.0,
            is_stuck: false,
            is_lesser: false,
            strike_left_s: 0.0,
            next_strike_s: phase * period,
            rng,
        }
    }

    /// How many of `users` have a bad second, and the median delay.
    fn second(&mut self, at: i64, users: u32) -> (u32, f64) {
        let now = at as f64;
        self.drift = 0.7 * self.drift + self.noise * self.rng.normal();
        let mut capacity = self.capacity * (1.0 + self.drift);
        capacity *= 1.0 + self.wave.0 * (now / self.wave.1 * std::f64::consts::TAU).sin();
        capacity *= (1.0 - self.leak * (now - self.leak_from_s).max(0.0)).max(0.1);
        if let Some((share, dwell_s)) = self.modes {
            self.is_lesser ^= self.rng.uniform() < 1.0 / dwell_s;
            capacity *= if self.is_lesser { share } else { 1.0 };
        }
        if at < self.warm_up_s {
            capacity *= 0.1;
        }
        let own = (0..users).filter(|_| self.churn > 0.0 && self.rng.uniform() < self.churn).count()
            as u32;
        if self.strikes(now) {
            return (users, 5.0);
        }
        let (bad, delay_ms) = self.load(f64::from(users), capacity, users);
        (bad.max(own), delay_ms)
    }

    fn strikes(&mut self, now: f64) -> bool {
        let Some((length, period)) = self.strikes else { return false };
        if now >= self.next_strike_s {
            self.strike_left_s = length;
            self.next_strike_s +=
                if period > 0.0 { period } else { length + period * self.rng.uniform().ln() };
        }
        self.strike_left_s -= 1.0;
        self.strike_left_s > -1.0
    }

    fn load(&mut self, load: f64, capacity: f64, users: u32) -> (u32, f64) {
        if let Some(share) = self.stuck_below {
            self.is_stuck = load > capacity || (self.is_stuck && load > share * capacity);
            if self.is_stuck {
                return (users, 500.0);
            }
        }
        if self.soft {
            return (((load - capacity).max(0.0) * 1.5).min(load).round() as u32, 5.0);
        }
        self.queue = (self.queue + (load - capacity) / capacity).clamp(0.0, 0.5);
        if self.queue > 0.15 {
            (users, 150.0 + self.queue * 1e3)
        } else {
            (0, 5.0 + self.queue * 1e3)
        }
    }

    /// Share of seconds that are bad at any load.
    fn background(&self) -> f64 {
        self.strikes.map_or(0.0, |(length, period)| {
            let length = length.ceil();
            if period > 0.0 { length / period } else { length / (length - period) }
        })
    }

    /// The crowds of which one may say that so many are served well, for a search that ended at
    /// `end_s`.
    fn right(&self, end_s: i64) -> (f64, f64) {
        let spread = 2.5 * 1.4 * self.noise + self.wave.0;
        let lesser = self.modes.map_or(1.0, |(share, _)| share);
        let leaked = (1.0 - self.leak * end_s as f64).max(0.1);
        let low = self.capacity * (1.0 - spread) * lesser * leaked * (1.0 - OFF_MAX) - 1.0;
        let high = self.capacity * (1.0 + spread) * (1.0 + OFF_MAX / 2.0);
        (low, high)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Judged {
    Right,
    /// The answer has a caveat or is undecided; its number, if any, is right.
    Doubted,
    /// The same, and the number is wrong.
    DoubtedAndWrong,
    Wrong,
}

/// Runs a search on the model: its holds, and the second in which it ended or was out of time.
fn played(model: &mut Model, schedule: Schedule, minutes: i64) -> (Vec<HoldRow>, i64) {
    let settings = Settings {
        goal: Goal::Acceptable,
        start: 5,
        floor: 1,
        step: 1,
        ceiling: CEILING,
        schedule,
    };
    let mut search = Search::new(settings);
    let mut holds: Vec<HoldRow> = Vec::new();
    let (mut users, mut at, mut complete_for) = (0_u32, 0_i64, 0);
    while search.end().is_none() && at < minutes * 90 {
        at += 1;
        let wants = search.wants();
        complete_for = if users == wants { complete_for + 1 } else { 0 };
        users = if wants < users { wants } else { wants.min(users + 40) };
        let (bad, delay_ms) = model.second(at, users);
        let second = Second {
            at: RunTime(at * 1_000_000),
            users,
            bad: f64::from(bad),
            delay_ms: Some(delay_ms),
            is_limited: false,
            is_complete: complete_for >= 3,
            ..Second::default()
        };
        for row in search.second(&second) {
            match holds.iter_mut().find(|hold| hold.number == row.number) {
                Some(hold) => *hold = row,
                None => holds.push(row),
            }
        }
    }
    (holds, at)
}

fn judge(model: &Model, capacity: &Capacity, end_s: i64) -> Judged {
    let (low, high) = model.right(end_s);
    // Where a twentieth of the seconds is bad at any load, no crowd is served well.
    let (never, hardly) = (model.background() > 0.08, model.background() > 0.03);
    let is_near = capacity.users.is_some_and(|users| (low..=high).contains(&f64::from(users)));
    let is_right = match capacity.verdict {
        CapacityVerdict::Found => is_near && !never,
        CapacityVerdict::AtLeast => f64::from(CEILING) <= high,
        CapacityVerdict::NeverPasses => model.capacity < 1.0,
        CapacityVerdict::NotSustained => model.leak > 0.0 || model.modes.is_some() || hardly,
        CapacityVerdict::Undecidable | CapacityVerdict::Invalid => return Judged::Doubted,
    };
    match (capacity.caveats.is_empty(), is_right || is_near) {
        (true, _) if is_right => Judged::Right,
        (true, _) => Judged::Wrong,
        (false, true) => Judged::Doubted,
        (false, false) => Judged::DoubtedAndWrong,
    }
}

#[test]
#[expect(clippy::print_stdout, reason = "the table of docs/measurements is made with it")]
fn of_a_thousand_servers_hardly_any_gets_an_answer_that_is_wrong_and_sure() {
    let mut table: BTreeMap<Kind, BTreeMap<Judged, u32>> = BTreeMap::new();
    let mut wrong = String::new();
    let mut sure = 0;
    for seed in 0..SERVERS {
        let mut model = Model::new(seed);
        let minutes = [3, 5, 10, 20, 50][(seed % 5) as usize];
        let schedule = Schedule::of_budget(Duration::from_secs(minutes * 60));
        let (holds, end_s) = played(&mut model, schedule, minutes as i64);
        let capacity = Capacity::of(&holds, Goal::Acceptable).expect("something was held");
        assert!(
            capacity.users.zip(capacity.first_failing).is_none_or(|(passes, fails)| passes < fails),
            "seed {seed}: {}",
            capacity.statement("users")
        );
        let judged = judge(&model, &capacity, end_s);
        *table.entry(model.kind).or_default().entry(judged).or_default() += 1;
        sure += u32::from(matches!(judged, Judged::Right | Judged::Wrong));
        if judged == Judged::Wrong {
            let _ = writeln!(
                wrong,
                "seed {seed}, {:?}, {minutes} min, capacity {:.0}, background {:.2}: {}",
                model.kind,
                model.capacity,
                model.background(),
                capacity.statement("users")
            );
        }
    }
    println!(
        "| Servers | Right | Doubted, right | Doubted, wrong | Wrong and sure |\n|---|---|---|---|---|"
    );
    for (kind, counts) in &table {
        let of = |judged| counts.get(&judged).copied().unwrap_or(0);
        let all = [Judged::Right, Judged::Doubted, Judged::DoubtedAndWrong, Judged::Wrong].map(of);
        println!("| {kind:?} | {} | {} | {} | {} |", all[0], all[1], all[2], all[3]);
    }
    println!("{wrong}");
    let count = wrong.lines().count() as f64;
    assert!(count <= WRONG_MAX * SERVERS as f64, "{count} of {sure}:\n{wrong}");
    // A search that doubts everything would never be wrong.
    assert!(f64::from(sure) > 0.5 * SERVERS as f64, "{sure} sure");
}

/// A server whose users are all badly served for some seconds once in a while, whatever the load.
fn disturbed(length: f64, period: f64, phase: f64, minutes: u64) -> (Capacity, Vec<HoldRow>) {
    let mut model = Model::new(0);
    model = Model {
        kind: Kind::Periodic,
        capacity: 1_000.0,
        noise: 0.0,
        wave: (0.0, 1.0),
        strikes: Some((length, period)),
        next_strike_s: phase,
        warm_up_s: 0,
        stuck_below: None,
        leak: 0.0,
        modes: None,
        churn: 0.0,
        soft: false,
        ..model
    };
    let schedule = Schedule::of_budget(Duration::from_secs(minutes * 60));
    let (holds, _) = played(&mut model, schedule, minutes as i64);
    (Capacity::of(&holds, Goal::Acceptable).expect("something was held"), holds)
}

#[test]
fn a_disturbance_at_any_load_is_no_limit_whatever_its_phase() {
    let mut sure_and_wrong = Vec::new();
    let mut reported = 0;
    for (length, period, minutes) in [(3.0, 60.0, 10), (8.0, 300.0, 75)] {
        for phase in 0..60 {
            let (capacity, _) =
                disturbed(length, period, f64::from(phase) * period / 60.0, minutes);
            let is_right = capacity.users.is_some_and(|users| (900..=1_050).contains(&users));
            reported += usize::from(
                capacity.caveats.iter().any(|doubt| doubt.contains("independently of the load")),
            );
            let is_doubted =
                !capacity.caveats.is_empty() || capacity.verdict == CapacityVerdict::Undecidable;
            if !is_right && !is_doubted {
                sure_and_wrong
                    .push(format!("phase {phase} of {period}: {}", capacity.statement("users")));
            }
        }
    }
    assert!(sure_and_wrong.len() <= 1, "{sure_and_wrong:#?}");
    assert!(
        reported >= 50,
        "found to be independent of the load in {reported} of 60 phases of the first"
    );
}

#[test]
fn a_soak_that_goes_bad_is_the_answer() {
    let mut model = Model {
        kind: Kind::Leak,
        capacity: 200.0,
        noise: 0.0,
        wave: (0.0, 1.0),
        strikes: None,
        warm_up_s: 0,
        stuck_below: None,
        modes: None,
        churn: 0.0,
        soft: false,
        leak: 0.0,
        ..Model::new(0)
    };
    // How long the search takes until its soak; then a third of the capacity is lost within that.
    let schedule = Schedule { repeats: 1, ..Schedule::default() };
    let mut sound = Model { rng: Rng(1), ..model };
    let (holds, _) = played(&mut sound, schedule, 75);
    let soak = holds.iter().find(|hold| hold.purpose == Purpose::Soak).expect("a soak");
    assert_eq!(soak.passed(Goal::Acceptable), HoldOutcome::Yes);
    let at_s = soak.from.as_secs_f64();
    model = Model {
        leak: 0.33 / 600.0,
        leak_from_s: at_s,
        ..Model { rng: Rng(1), drift: 0.0, queue: 0.0, ..sound }
    };
    let (holds, _) = played(&mut model, schedule, 75);
    let soak = holds.iter().find(|hold| hold.purpose == Purpose::Soak).expect("a soak");
    assert_eq!(soak.passed(Goal::Acceptable), HoldOutcome::No);
    let capacity = Capacity::of(&holds, Goal::Acceptable).expect("an answer");
    assert_eq!(capacity.verdict, CapacityVerdict::NotSustained);
    let reported = capacity.statement("viewers");
    assert!(
        reported.contains("not sustained: in the soak") && reported.contains("bad service after"),
        "{reported}"
    );
}
