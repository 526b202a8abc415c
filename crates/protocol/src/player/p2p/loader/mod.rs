//! From whom a viewer loads which segment: the decision table of p2p-media-loader, over a queue
//! that begins with the segment that the player wants next.
//!
//! What is urgent comes from the server; what a neighbour has comes from there; what nobody has and
//! nobody is loading, a viewer loads from the server now and then, the less often the more
//! neighbours it has; what a neighbour is loading is awaited.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use throng_media::timing::WholeSegment;

use super::neighbours::Neighbours;
use super::policy::{Policy, Random, Urgent};
use super::swarm::{PeerId, Sent};

mod held;
mod outlook;

use held::Held;
use outlook::{Outlook, Room, numbers_of, place_in};

/// How often the queue is looked at while playback goes on (`requestProcessQueueMicrotask`).
const PROCESS_EVERY: Duration = Duration::from_secs(1);

/// How soon an announcement of a neighbour is heard.
const NEWS_EVERY: Duration = Duration::from_millis(200);

/// How often it is looked at what a neighbour has sent.
const RECEIVE_EVERY: Duration = Duration::from_millis(250);

/// How often at once the queue is looked at: a neighbour may send at once what it is asked for.
const LOOKS_MAX: usize = 64;

/// How many segments at once are asked for, of which each neighbour that has it is busy.
const ASKS_MAX: usize = 64;

/// A segment that may be loaded, and its place on the time axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::player) struct Queued {
    pub(in crate::player) number: u64,
    pub(in crate::player) starts_us: i64,
    pub(in crate::player) ends_us: i64,
}

/// What the player has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::player) enum Action {
    /// Load this segment from the server.
    Load(u64),
    /// Load it no more.
    Abort(u64),
}

/// Counts since they were last taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::player) struct Received {
    pub(in crate::player) segments: u64,
    pub(in crate::player) bytes: u64,
    /// Segments that did not come whole.
    pub(in crate::player) failed: u64,
}

/// The loader of one lane of a viewer.
pub(super) struct Loader {
    policy: Policy,
    shares: bool,
    neighbours: Neighbours,
    rng: fastrand::Rng,
    held: Held,
    /// What is before this segment is not kept, from the next one on that comes.
    keeps_from: u64,
    /// What is before this segment was played.
    played_before: u64,
    /// From the server.
    loading: Vec<u64>,
    receiving: Vec<Receiving>,
    failed: BTreeMap<u64, Failures>,
    random_at: Option<Instant>,
    processed_at: Option<Instant>,
    /// Something has changed since the queue was looked at.
    is_stale: bool,
    /// The queue that was looked at: its ends, and what is waited for.
    looked_at: Option<(Option<u64>, Option<u64>, Option<u64>)>,
    lacks_segments: bool,
    received: Received,
}

/// A segment that a neighbour sends.
#[derive(Debug)]
struct Receiving {
    number: u64,
    from: PeerId,
    bytes: u64,
    progressed_at: Instant,
    whole_at: Instant,
    /// It is there, and not proven.
    whole: Option<WholeSegment>,
}

/// How often the server did not deliver a segment.
#[derive(Clone, Copy, Debug)]
struct Failures {
    count: u32,
    last_at: Instant,
}

impl Loader {
    pub(super) fn new(policy: Policy, shares: bool, neighbours: Neighbours, seed: u64) -> Self {
        Self {
            policy,
            shares,
            neighbours,
            rng: fastrand::Rng::with_seed(seed),
            held: Held::default(),
            keeps_from: 0,
            played_before: 0,
            loading: Vec::new(),
            receiving: Vec::new(),
            failed: BTreeMap::new(),
            random_at: None,
            processed_at: None,
            is_stale: true,
            looked_at: None,
            lacks_segments: false,
            received: Received::default(),
        }
    }

    /// Decides by this table from here on.
    pub(super) fn decide_by(&mut self, policy: Policy) {
        self.policy = policy;
    }

    pub(super) fn neighbours(&self) -> &Neighbours {
        &self.neighbours
    }

    pub(super) fn neighbours_mut(&mut self) -> &mut Neighbours {
        &mut self.neighbours
    }

    /// The segment, if it is there.
    pub(super) fn held(&self, number: u64) -> Option<&WholeSegment> {
        self.held.get(number)
    }

    pub(super) fn take_received(&mut self) -> Received {
        std::mem::take(&mut self.received)
    }

    /// Whether the server will not be asked for it again.
    pub(super) fn has_failed(&mut self, now: Instant, number: u64) -> bool {
        self.forgive(now);
        self.is_given_up(number)
    }

    /// Failures are forgotten after a while.
    fn forgive(&mut self, now: Instant) {
        let failed_for = self.policy.http_failed_for;
        self.failed.retain(|_, failures| now < failures.last_at + failed_for);
    }

    fn is_given_up(&self, number: u64) -> bool {
        let failures = self.failed.get(&number);
        failures.is_some_and(|failures| failures.count >= self.policy.http_failures_max)
    }

    /// Whether the server has failed to deliver it lately.
    pub(super) fn has_failures(&self, number: u64) -> bool {
        self.failed.contains_key(&number)
    }

    /// A segment came from the server.
    pub(super) fn loaded(&mut self, now: Instant, number: u64, segment: WholeSegment) {
        let announces_late = self.policy.announces_late;
        if announces_late {
            // As one that is still loaded.
            self.neighbours.announce(&self.loading);
        }
        self.loading.retain(|loading| *loading != number);
        self.failed.remove(&number);
        self.hold(now, number, segment, announces_late);
    }

    /// Keeps a segment, and lets those go that were played, where they are in the way;
    /// `has_announced`: peers were told what they are told.
    fn hold(&mut self, now: Instant, number: u64, segment: WholeSegment, has_announced: bool) {
        let limits = (self.policy.kept_max, self.policy.kept_bytes_max);
        let fits_from = self.held.fits_from(segment.bytes(), limits, self.played_before);
        let keeps_from = self.keeps_from.max(fits_from);
        self.held.forget_before(keeps_from);
        let forgets = self.neighbours.forget_before(keeps_from);
        // The list that is announced for what goes is made before this segment is kept, and there
        // is no second one.
        let is_late = self.policy.announces_late && forgets && !has_announced;
        if is_late {
            self.neighbours.announce(&self.loading);
        }
        let segment = self.neighbours.keep(now, number, segment);
        if !is_late && !has_announced {
            self.neighbours.announce(&self.loading);
        }
        self.held.insert(number, segment);
        self.is_stale = true;
    }

    /// A segment did not come from the server.
    pub(super) fn failed(&mut self, now: Instant, number: u64) {
        self.loading.retain(|loading| *loading != number);
        let failures = self.failed.entry(number).or_insert(Failures { count: 0, last_at: now });
        *failures = Failures { count: failures.count.saturating_add(1), last_at: now };
        self.announce();
    }

    /// A segment is not to be had: it is not listed.
    pub(super) fn unlisted(&mut self, number: u64) {
        self.loading.retain(|loading| *loading != number);
        self.neighbours.announce(&self.loading);
    }

    fn announce(&mut self) {
        self.neighbours.announce(&self.loading);
        self.is_stale = true;
    }

    /// What is before this segment is listed no more, or was played a while ago: it goes when the
    /// next one comes.
    pub(super) fn keep_from(&mut self, number: u64) {
        self.keeps_from = number;
    }

    /// Goes on. `queue` begins with what the player wants next, `requested` if it waits for it
    /// already; playback is at `position_us`. `is_proven`: whether a segment that a neighbour has
    /// sent may be used; asked with `true` when it came.
    pub(super) fn pump(
        &mut self,
        now: Instant,
        queue: &[Queued],
        requested: Option<u64>,
        position_us: i64,
        is_proven: &mut dyn FnMut(u64, bool) -> bool,
    ) -> Vec<Action> {
        let mut actions = Vec::new();
        let outlook = self.outlook(queue, requested, position_us);
        let [first, last] = [outlook.queue.first(), outlook.queue.last()]
            .map(|end| end.map(|queued| queued.number));
        let looked_at = self.looked_at.replace((first, last, requested));
        self.is_stale |= self.neighbours.take_news() | (looked_at != self.looked_at);
        if self.random_at.is_none_or(|at| now >= at) {
            if self.random_at.is_some() {
                self.draw(now, outlook, &mut actions);
            }
            self.random_at = Some(now + self.next_draw(now));
        }
        for _ in 0..outlook.queue.len().clamp(1, LOOKS_MAX) {
            self.receive(now, is_proven);
            let is_due = self.processed_at.is_none_or(|at| now >= at + PROCESS_EVERY);
            if !std::mem::take(&mut self.is_stale) && !is_due {
                break;
            }
            self.processed_at = Some(now);
            self.drop_unqueued(now, outlook, &mut actions);
            self.process(now, outlook, &mut actions);
        }
        self.lacks_segments =
            outlook.from_server.iter().any(|queued| !self.held.has(queued.number));
        actions
    }

    pub(super) fn next_timeout(&self, now: Instant) -> Option<Instant> {
        let news = self.lacks_segments.then(|| now + NEWS_EVERY);
        let process =
            self.processed_at.filter(|_| self.lacks_segments).map(|at| at + PROCESS_EVERY);
        let receiving = self.receiving.iter().map(|receiving| {
            let silent_at = receiving.progressed_at + self.policy.peer_silence;
            let whole_at = if receiving.whole.is_some() { silent_at } else { receiving.whole_at };
            whole_at.min(now + RECEIVE_EVERY).max(now + Duration::from_millis(1)).min(silent_at)
        });
        [news, process, self.random_at.filter(|_| self.lacks_segments)]
            .into_iter()
            .flatten()
            .chain(receiving)
            .chain(self.neighbours.next_timeout(now))
            .min()
    }

    /// How long until the next draw.
    fn next_draw(&mut self, now: Instant) -> Duration {
        match self.policy.random {
            Random::ByPeers => {
                let peers = self.neighbours.degree(now) as f64;
                Duration::from_secs_f64(1.0 + self.rng.f64() * peers)
            }
            Random::Each { every, .. } => every,
        }
    }

    /// Takes what neighbours have sent.
    fn receive(&mut self, now: Instant, is_proven: &mut dyn FnMut(u64, bool) -> bool) {
        let mut running = std::mem::take(&mut self.receiving);
        running.retain_mut(|receiving| {
            let is_new = receiving.whole.is_none();
            if is_new {
                match self.neighbours.received(now, receiving.from, receiving.number) {
                    Sent::Whole(segment) => {
                        self.received.bytes += segment.bytes().saturating_sub(receiving.bytes);
                        (receiving.whole, receiving.progressed_at) = (Some(segment), now);
                    }
                    Sent::Partly(bytes, whole_at) => {
                        if bytes > receiving.bytes {
                            self.received.bytes += bytes - receiving.bytes;
                            (receiving.bytes, receiving.progressed_at) = (bytes, now);
                        }
                        receiving.whole_at = whole_at;
                    }
                    Sent::Broken => return self.broken(),
                }
            }
            if let Some(segment) = receiving.whole.take_if(|_| is_proven(receiving.number, is_new))
            {
                self.received.segments += 1;
                self.hold(now, receiving.number, segment, false);
                return false;
            }
            // The wait for a proof is one without bytes.
            if now < receiving.progressed_at + self.policy.peer_silence {
                return true;
            }
            self.neighbours.cancel(now, receiving.from, true);
            self.broken()
        });
        running.append(&mut self.receiving);
        self.receiving = running;
    }

    /// A neighbour did not send what it was asked for, which ends that.
    fn broken(&mut self) -> bool {
        self.received.failed += 1;
        self.is_stale = true;
        false
    }

    /// Gives up what is not in the queue any more.
    fn drop_unqueued(&mut self, now: Instant, outlook: Outlook<'_>, actions: &mut Vec<Action>) {
        let is_wanted = |number: u64| {
            outlook.requested == Some(number) || place_in(outlook.queue, number).is_some()
        };
        let count = self.loading.len();
        self.loading.retain(|number| {
            let keeps = is_wanted(*number);
            if !keeps {
                actions.push(Action::Abort(*number));
            }
            keeps
        });
        if self.loading.len() != count {
            self.announce();
        }
        for receiving in &self.receiving {
            if !is_wanted(receiving.number) {
                self.neighbours.cancel(now, receiving.from, false);
            }
        }
        self.receiving.retain(|receiving| is_wanted(receiving.number));
    }

    /// Decides what is loaded from whom.
    fn process(&mut self, now: Instant, outlook: Outlook<'_>, actions: &mut Vec<Action>) {
        let Outlook { queue, from_server, requested, position_us } = outlook;
        let Some(within) = numbers_of(queue) else { return };
        let overview = self.neighbours.overview(now, &within);
        let is_soon = |queued: &Queued| {
            queued.ends_us < position_us || self.is_urgent(queue, queued, position_us)
        };
        let soon = queue.iter().take_while(|queued| is_soon(queued)).count();
        for (at, queued) in queue.iter().enumerate().take(soon) {
            let number = queued.number;
            if self.held.has(number) || self.loading.contains(&number) {
                continue;
            }
            let later = queue.get(at + 1..).unwrap_or_default();
            // What the player waits for behind its position is not played in any time.
            let is_overdue = requested == Some(number) && queued.ends_us < position_us;
            if is_overdue || self.is_urgent(queue, queued, position_us) {
                self.load_soon(now, number, later, actions);
            } else if !self.is_receiving(number)
                && overview.loaded.contains(number)
                && self.has_place(now, later)
            {
                self.ask(now, number);
            }
        }
        // What the server may not send is looked at as far as somebody has one after the other.
        let far = queue.get(from_server.len()..).unwrap_or_default();
        let reached = far.iter().take_while(|queued| overview.has(queued.number)).count();
        let rest = queue.get(soon..from_server.len() + reached).unwrap_or_default();
        let mut asked = 0;
        for number in overview.loaded.without(&self.held.numbers().clone()) {
            let Some(at) = place_in(rest, number) else { continue };
            if self.loading.contains(&number) || self.is_receiving(number) {
                continue;
            }
            asked += 1;
            if asked > ASKS_MAX || !self.has_place(now, rest.get(at + 1..).unwrap_or_default()) {
                break;
            }
            self.ask(now, number);
        }
    }

    /// Loads what is played soon from the server, or where that has too much to send, from a
    /// neighbour.
    fn load_soon(
        &mut self,
        now: Instant,
        number: u64,
        later: &[Queued],
        actions: &mut Vec<Action>,
    ) {
        if self.has_failed(now, number) {
            return;
        }
        if self.loading.len() < self.policy.http_max || self.abort_later(later, actions) {
            self.stop_receiving(now, number);
            self.load(number, actions);
        } else if !self.is_receiving(number) && self.has_place(now, later) {
            self.ask(now, number);
        }
    }

    /// Whether another segment may come from neighbours: there is a place for it, or one of those
    /// that come after it makes place.
    fn has_place(&mut self, now: Instant, later: &[Queued]) -> bool {
        self.receiving.len() < self.policy.peers_max || self.stop_later(now, later)
    }

    fn is_urgent(&self, queue: &[Queued], queued: &Queued, position_us: i64) -> bool {
        match self.policy.urgent {
            Urgent::Within(window) => {
                let until_us = position_us.saturating_add_unsigned(window.as_micros() as u64);
                queued.starts_us <= until_us && position_us <= queued.ends_us
            }
            Urgent::Next(count) => segments_before(queue, queued, position_us) < count,
        }
    }

    fn load(&mut self, number: u64, actions: &mut Vec<Action>) {
        self.loading.push(number);
        actions.push(Action::Load(number));
        self.neighbours.announce(&self.loading);
    }

    /// Aborts the last of what comes after in the queue that is loaded from the server.
    fn abort_later(&mut self, later: &[Queued], actions: &mut Vec<Action>) -> bool {
        let last = later.iter().rev().find(|queued| self.loading.contains(&queued.number));
        let Some(number) = last.map(|queued| queued.number) else { return false };
        self.loading.retain(|loading| *loading != number);
        actions.push(Action::Abort(number));
        true
    }

    fn is_receiving(&self, number: u64) -> bool {
        self.receiving.iter().any(|receiving| receiving.number == number)
    }

    fn stop_receiving(&mut self, now: Instant, number: u64) {
        for receiving in self.receiving.iter().filter(|receiving| receiving.number == number) {
            self.neighbours.cancel(now, receiving.from, false);
        }
        self.receiving.retain(|receiving| receiving.number != number);
    }

    /// Stops the last of what comes after in the queue that a neighbour sends.
    fn stop_later(&mut self, now: Instant, later: &[Queued]) -> bool {
        let last = later.iter().rev().find(|queued| self.is_receiving(queued.number));
        let Some(number) = last.map(|queued| queued.number) else { return false };
        self.stop_receiving(now, number);
        true
    }

    /// Asks a neighbour for it.
    fn ask(&mut self, now: Instant, number: u64) {
        let busy: Vec<PeerId> = self.receiving.iter().map(|receiving| receiving.from).collect();
        if let Some(from) = self.neighbours.request(now, number, &busy, &mut self.rng) {
            let receiving = Receiving {
                number,
                from,
                bytes: 0,
                progressed_at: now,
                whole_at: now,
                whole: None,
            };
            self.receiving.push(receiving);
            self.is_stale = true;
        }
    }

    /// Loads something from the server that nobody has, by chance.
    fn draw(&mut self, now: Instant, outlook: Outlook<'_>, actions: &mut Vec<Action>) {
        let peers = self.neighbours.degree(now);
        if self.loading.len() >= self.policy.http_max
            || self.policy.only_sharers_draw && !self.shares
            || !self.policy.draws_alone && peers == 0
            || self.room() != Room::Enough
        {
            return;
        }
        let Outlook { queue, from_server, position_us, .. } = outlook;
        let Some(within) = numbers_of(from_server) else { return };
        let overview = self.neighbours.overview(now, &within);
        self.forgive(now);
        let is_near = |queued: &Queued| {
            let within = self.policy.draws_within;
            within.is_none_or(|count| segments_before(queue, queued, position_us) < count)
        };
        let is_open = |number: u64| {
            !self.held.has(number)
                && !self.loading.contains(&number)
                && !self.is_receiving(number)
                && !self.is_given_up(number)
                && !overview.has(number)
        };
        let most = match self.policy.random {
            Random::ByPeers => self.policy.http_max * (peers + 1),
            Random::Each { .. } => usize::MAX,
        };
        let ahead = from_server.iter().filter(|queued| queued.ends_us >= position_us);
        let open = ahead.filter(|queued| is_near(queued) && is_open(queued.number));
        let mut open: Vec<u64> = open.map(|queued| queued.number).take(most).collect();
        match self.policy.random {
            Random::ByPeers => {
                let mut expected = open.len() as f64 / (peers + 1) as f64;
                self.rng.shuffle(&mut open);
                for number in open {
                    if expected <= 0.0 || self.loading.len() >= self.policy.http_max {
                        break;
                    }
                    if self.rng.f64() <= expected {
                        self.load(number, actions);
                    }
                    expected -= 1.0;
                }
            }
            Random::Each { probability, .. } => {
                let draws = self.rng.f64() <= probability * open.len() as f64;
                if let Some(number) =
                    open.get(self.rng.usize(..open.len().max(1))).filter(|_| draws)
                {
                    self.load(*number, actions);
                }
            }
        }
    }
}

/// Segments between the one that is played and this one of the queue.
fn segments_before(queue: &[Queued], queued: &Queued, position_us: i64) -> u64 {
    let before = queue.first().map_or(0, |first| {
        let length_us = first.ends_us.saturating_sub(first.starts_us).max(1);
        let until_first_us = first.starts_us.saturating_sub(position_us).saturating_sub(1);
        until_first_us.div_euclid(length_us).max(0)
    });
    let place = queued.number.saturating_sub(queue.first().map_or(0, |first| first.number));
    place.saturating_add(before as u64)
}

#[cfg(test)]
mod tests;
