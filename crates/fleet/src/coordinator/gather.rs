//! Finds free workers, gives each its number and its share, and waits until all are ready.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use futures_util::future::join_all;

use crate::FleetError;
use crate::bus::{Bus, Subjects};
use crate::message::{Build, Call, Offer, Order, Prepared, Ready, read, write};

/// Time between two calls.
const CALL_EVERY: Duration = Duration::from_millis(500);

/// How long workers may prepare: they fetch proofs of consent and read media files.
const PREPARE_WITHIN: Duration = Duration::from_secs(60);

/// Longest name of a worker that is kept.
const NAME_CHARS_MAX: usize = 60;

/// Largest weight.
const WEIGHT_MAX: u32 = 1_000_000;

/// Whom to look for, and what to tell them.
#[derive(Clone, Debug)]
pub struct GatherConfig {
    /// How many.
    pub workers: usize,
    /// How long they are waited for.
    pub wait: Duration,
    /// This program.
    pub build: Build,
    /// The order, without the worker's number and the weights.
    pub order: Order,
    /// SHA-256 of the plan, hexadecimal: that of each worker must be the same.
    pub plan_sha256: String,
    /// SHA-256 of the media files that will be sent, by path: those of each worker must be the
    /// same.
    pub media_files: BTreeMap<String, String>,
}

/// A worker of the fleet.
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    /// Its name; those of one host differ.
    pub name: String,
    /// Cores that it may use.
    pub cores: u32,
    /// Its weight.
    pub weight: u32,
    /// What it found when it prepared.
    pub ready: Ready,
}

/// Offers of workers that play as this program does, and why others do not.
#[derive(Default)]
struct Offers {
    usable: BTreeMap<String, Offer>,
    refused: BTreeMap<String, String>,
}

impl Offers {
    fn take(&mut self, mut offer: Offer, build: &Build) {
        offer.name = offer.name.chars().filter(|c| !c.is_control()).take(NAME_CHARS_MAX).collect();
        let why = if !offer.build.plays_like(build) {
            let (theirs, ours) = (offer.build.shown(), build.shown());
            format!("it is throng {theirs}, this is {ours}")
        } else if !(1..=WEIGHT_MAX).contains(&offer.weight) {
            format!("its weight {} is not between 1 and {WEIGHT_MAX}", offer.weight)
        } else {
            self.usable.insert(offer.id.clone(), offer);
            return;
        };
        self.refused.insert(offer.name, why);
    }

    /// The `count` first workers by number: each has the one that it wants, if that is free; the
    /// others by their names.
    fn numbered(self, count: usize) -> Vec<Offer> {
        let mut numbered: Vec<Option<Offer>> = vec![None; count];
        let mut others: Vec<Offer> = Vec::new();
        for offer in self.usable.into_values() {
            let wanted = offer.index.and_then(|index| numbered.get_mut(usize::from(index)));
            match wanted.filter(|slot| slot.is_none()) {
                Some(slot) => *slot = Some(offer),
                None => others.push(offer),
            }
        }
        others.sort_by(|a, b| (&b.name, &b.id).cmp(&(&a.name, &a.id)));
        numbered.into_iter().filter_map(|slot| slot.or_else(|| others.pop())).collect()
    }

    fn refusals(&self) -> String {
        self.refused.iter().map(|(name, why)| format!("; {name}: {why}")).collect()
    }
}

/// Finds workers and lets them prepare.
pub(super) async fn gather(
    bus: &Bus,
    config: &GatherConfig,
    is_interrupted: &dyn Fn() -> bool,
) -> Result<Vec<Member>, FleetError> {
    let offers = offers(bus, config, is_interrupted).await?;
    let weights: Vec<u32> = offers.iter().map(|offer| offer.weight).collect();
    let names = distinct_names(&offers);
    let prepared = offers.iter().zip(&names).zip(0_u16..).map(|((offer, name), worker)| {
        let order = Order { worker, weights: weights.clone(), ..config.order.clone() };
        prepare(bus, offer, name, order)
    });
    let answers = tokio::select! {
        answers = join_all(prepared) => answers,
        () = until(is_interrupted) => return Err(FleetError::Interrupted),
    };
    let mut members = Vec::new();
    for ((offer, name), ready) in offers.into_iter().zip(names).zip(answers) {
        let ready = ready?;
        check(config, &name, &ready)?;
        members.push(Member { name, cores: offer.cores, weight: offer.weight, ready });
    }
    Ok(members)
}

/// Returns once `is_interrupted` says so.
async fn until(is_interrupted: &dyn Fn() -> bool) {
    while !is_interrupted() {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Calls until enough workers have come.
async fn offers(
    bus: &Bus,
    config: &GatherConfig,
    is_interrupted: &dyn Fn() -> bool,
) -> Result<Vec<Offer>, FleetError> {
    let inbox = bus.client.new_inbox();
    let subscribed = bus.client.subscribe(inbox.clone()).await;
    let mut answers = subscribed.map_err(|error| FleetError::Bus(error.to_string()))?;
    let call = write(&Call { run: config.order.run.clone(), build: config.build.clone() });
    let (begun, mut offers) = (Instant::now(), Offers::default());
    let mut calls = tokio::time::interval(CALL_EVERY);
    while offers.usable.len() < config.workers {
        tokio::select! {
            _ = calls.tick() => {
                if is_interrupted() {
                    return Err(FleetError::Interrupted);
                }
                if begun.elapsed() > config.wait {
                    return Err(FleetError::TooFewWorkers {
                        found: offers.usable.len(),
                        wanted: config.workers,
                        waited_s: config.wait.as_secs(),
                        more: offers.refusals(),
                    });
                }
                let calls = crate::bus::Subjects::calls();
                let _ = bus.client.publish_with_reply(calls, inbox.clone(), call.clone()).await;
            }
            Some(answer) = answers.next() => match read::<Offer>("an offer", &answer.payload) {
                Ok(offer) => offers.take(offer, &config.build),
                Err(error) => tracing::warn!("{error}"),
            },
        }
    }
    Ok(offers.numbered(config.workers))
}

/// Gives a worker its order, and waits until it is ready.
async fn prepare(bus: &Bus, offer: &Offer, name: &str, order: Order) -> Result<Ready, FleetError> {
    let refused = |why: String| FleetError::Refused { worker: name.to_owned(), why };
    let request = async_nats::Request::new().payload(write(&order)).timeout(Some(PREPARE_WITHIN));
    let answer = bus.client.send_request(Subjects::order(&offer.id), request).await;
    let answer = answer.map_err(|error| refused(format!("no answer to its order: {error}")))?;
    match read::<Prepared>("an answer to an order", &answer.payload) {
        Ok(Prepared::Ready(ready)) => Ok(ready),
        Ok(Prepared::Refused(why)) => Err(refused(why)),
        Err(error) => Err(refused(error.to_string())),
    }
}

/// A worker must have made the same plan, of the same files.
fn check(config: &GatherConfig, name: &str, ready: &Ready) -> Result<(), FleetError> {
    let refused = |why: String| Err(FleetError::Refused { worker: name.to_owned(), why });
    if !ready.clock.is_known() {
        return refused("what it reports of its clock is impossible".into());
    }
    let other =
        config.media_files.iter().find(|(path, hash)| ready.media_files.get(*path) != Some(hash));
    if let Some((path, _)) = other {
        return match ready.media_files.get(path) {
            Some(_) => refused(format!("its {path} is another file than the coordinator's")),
            None => refused(format!("it has no {path}; copy the file to the same path there")),
        };
    }
    if ready.plan_sha256 != config.plan_sha256 {
        return refused(
            "it read the scenario differently: are files that the scenario names the same there?"
                .into(),
        );
    }
    Ok(())
}

/// The names of workers, those that several have with a number.
fn distinct_names(offers: &[Offer]) -> Vec<String> {
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    let times = |name: &str| offers.iter().filter(|offer| offer.name == name).count();
    offers
        .iter()
        .map(|offer| {
            let nth = seen.entry(&offer.name).or_default();
            *nth += 1;
            if times(&offer.name) > 1 {
                format!("{}-{nth}", offer.name)
            } else {
                offer.name.clone()
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{ClockSaid, PROTOCOL};

    fn build() -> Build {
        Build { version: "1".into(), arch: "x".into(), sha256: "a".into(), protocol: PROTOCOL }
    }

    fn offer(id: &str, name: &str, index: Option<u16>) -> Offer {
        Offer { id: id.into(), name: name.into(), build: build(), cores: 2, weight: 1, index }
    }

    #[test]
    fn workers_get_the_numbers_that_they_want_and_the_others_by_name() {
        let mut offers = Offers::default();
        let all = [
            ("d", "b", None),
            ("c", "a", None),
            ("b", "z", Some(1)),
            ("a", "y", Some(9)),
            ("e", "x", Some(1)),
        ];
        for (id, name, index) in all {
            offers.take(offer(id, name, index), &build());
        }
        let names: Vec<String> = offers.numbered(3).into_iter().map(|offer| offer.name).collect();
        assert_eq!(names, ["a", "z", "b"]);
        let twins = [offer("1", "host", None), offer("2", "host", None), offer("3", "other", None)];
        assert_eq!(distinct_names(&twins), ["host-1", "host-2", "other"]);
    }

    #[test]
    fn another_program_and_a_weight_that_is_none_are_refused_by_name() {
        let mut offers = Offers::default();
        let old = Build { version: "0".into(), ..build() };
        offers.take(Offer { build: old, ..offer("1", "old", None) }, &build());
        offers.take(Offer { weight: 0, ..offer("2", "odd", None) }, &build());
        assert!(offers.usable.is_empty());
        let said = offers.refusals();
        assert!(
            said.contains("; old: it is throng 0 (x, a), this is 1 (x, a)")
                && said.contains("; odd: "),
            "{said}"
        );
    }

    #[test]
    fn files_that_differ_are_refused_by_name() {
        let files = |hash: &str| BTreeMap::from([("talk.webm".to_owned(), hash.to_owned())]);
        let config = GatherConfig {
            workers: 1,
            wait: Duration::ZERO,
            build: build(),
            order: Order {
                run: "r".into(),
                worker: 0,
                weights: Vec::new(),
                scenario: String::new(),
                overrides: Vec::new(),
                seed: 0,
                added_participants_max: None,
                reassigns: false,
            },
            plan_sha256: "p".into(),
            media_files: files("one"),
        };
        let checked = |plan: &str, files: BTreeMap<String, String>| {
            let ready = Ready { plan_sha256: plan.into(), media_files: files, ..Ready::default() };
            check(&config, "w", &ready).map_err(|error| error.to_string())
        };
        assert_eq!(checked("p", files("one")), Ok(()));
        for (plan, files, why) in [
            ("p", files("two"), "its talk.webm is another file"),
            ("p", BTreeMap::new(), "it has no talk.webm"),
            ("q", files("one"), "read the scenario differently"),
        ] {
            let error = checked(plan, files).expect_err(why);
            assert!(
                error.starts_with("worker w does not play: ") && error.contains(why),
                "{error}"
            );
        }
        let clock = ClockSaid { bound_us: u64::MAX, ..ClockSaid::default() };
        let ready = Ready { clock, ..Ready::default() };
        let error = check(&config, "w", &ready).expect_err("no clock").to_string();
        assert!(error.contains("what it reports of its clock is impossible"), "{error}");
    }
}
