//! The page around the player: the requests of its recording, in a closed loop, and the moment at
//! which the player begins.
//!
//! ```text
//! document ──┬─ 20 ms ─▶ app.js ─── 10 ms ─▶ poster.jpg ── 10 ms ─▶ (player)
//!            └─ 20 ms ─▶ style.css
//! ```
//! Each request begins its recorded gap after the end of the one that it followed. A request that a
//! warm cache answers ends as it begins. What fails is passed over, as browsers do with a picture,
//! but for the document.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::time::Instant;

use throng_observation::Failure;
use throng_scenario::har::{After, PagePlan, PlayerStart, WhenWarm};

use self::fetch::{FetchEvent, PageFetch};
use super::PageVisit;
use super::download::client::HttpClient;
use super::playback::meter::Meter;
use crate::participant::{DownloadEvent, FetchId};

mod fetch;

/// The page of one viewer.
pub(super) struct Page {
    plan: Arc<PagePlan>,
    is_warm: bool,
    /// Requests that will begin, by their moments; an index is that of the plan.
    due: BinaryHeap<Reverse<(Instant, usize)>>,
    running: Vec<(usize, PageFetch)>,
    /// Requests for whose end the player waits.
    awaited: usize,
    /// When the player begins, once that is known.
    player_at: Option<Instant>,
    has_begun_player: bool,
}

/// What a page needs of its player.
pub(super) struct PageContext<'a> {
    pub(super) client: &'a mut HttpClient,
    pub(super) meter: &'a mut Meter,
}

impl Page {
    pub(super) fn new(visit: PageVisit) -> Self {
        let awaited = match &visit.plan.player {
            PlayerStart::At(_) => 0,
            PlayerStart::Loaded(requests) => requests.len(),
        };
        Self {
            plan: visit.plan,
            is_warm: visit.is_warm,
            due: BinaryHeap::new(),
            running: Vec::new(),
            awaited,
            player_at: None,
            has_begun_player: false,
        }
    }

    /// The page is opened.
    pub(super) fn start(&mut self, now: Instant) {
        let begins = self.plan.requests.iter().map(|request| request.begins).enumerate();
        let first = begins.filter(|(_, begins)| begins.request.is_none());
        self.due.extend(first.map(|(index, begins)| Reverse((now + begins.delay, index))));
        self.player_at = match &self.plan.player {
            PlayerStart::At(After { request: None, delay }) => Some(now + *delay),
            PlayerStart::Loaded(requests) if requests.is_empty() => Some(now),
            _ => None,
        };
    }

    /// When the player may begin, if that is not later than `now`.
    pub(super) fn player_begins(&mut self, now: Instant) -> Option<Instant> {
        let at = self.player_at.filter(|at| now >= *at);
        self.has_begun_player |= at.is_some();
        at
    }

    pub(super) fn owns(&self, fetch: FetchId) -> bool {
        self.running.iter().any(|(_, running)| running.owns(fetch))
    }

    pub(super) fn next_timeout(&self) -> Option<Instant> {
        let due = self.due.peek().map(|Reverse((at, _))| *at);
        let player = self.player_at.filter(|_| !self.has_begun_player);
        let overdue = self.running.iter().filter_map(|(_, running)| running.next_timeout());
        overdue.chain(due).chain(player).min()
    }

    /// Begins what is due, and gives up what is overdue; an error is that of the document.
    pub(super) fn pump(
        &mut self,
        now: Instant,
        context: &mut PageContext<'_>,
    ) -> Result<(), Failure> {
        while let Some((index, fetch)) = self.take_overdue(now) {
            let failure = fetch.give_up(context.client);
            self.failed(index, failure, context)?;
            self.ended(index, now);
        }
        while let Some(Reverse((_, index))) =
            self.due.peek().copied().filter(|Reverse((at, _))| *at <= now)
        {
            self.due.pop();
            self.begin(index, now, context)?;
        }
        Ok(())
    }

    fn take_overdue(&mut self, now: Instant) -> Option<(usize, PageFetch)> {
        let is_overdue = |fetch: &PageFetch| fetch.next_timeout().is_some_and(|at| now >= at);
        let at = self.running.iter().position(|(_, fetch)| is_overdue(fetch))?;
        Some(self.running.swap_remove(at))
    }

    fn begin(
        &mut self,
        index: usize,
        now: Instant,
        context: &mut PageContext<'_>,
    ) -> Result<(), Failure> {
        let plan = Arc::clone(&self.plan);
        let Some(request) = plan.requests.get(index) else { return Ok(()) };
        let conditions = match &request.when_warm {
            WhenWarm::FromCache if self.is_warm => {
                self.ended(index, now);
                return Ok(());
            }
            WhenWarm::Revalidated(conditions) if self.is_warm => conditions.as_slice(),
            _ => &[],
        };
        match PageFetch::begin(now, context, request, conditions) {
            Ok(fetch) => self.running.push((index, fetch)),
            Err(failure) => {
                context.client.failed();
                self.failed(index, failure, context)?;
                self.ended(index, now);
            }
        }
        Ok(())
    }

    /// Handles what the driver reports of one of its requests; an error is that of the document.
    pub(super) fn handle(
        &mut self,
        now: Instant,
        context: &mut PageContext<'_>,
        fetch: FetchId,
        event: DownloadEvent<'_>,
    ) -> Result<(), Failure> {
        let Some(at) = self.running.iter().position(|(_, running)| running.owns(fetch)) else {
            return Ok(());
        };
        let Some((index, running)) = self.running.get_mut(at) else { return Ok(()) };
        let index = *index;
        let (failure, is_over) = match running.handle(now, context, event) {
            FetchEvent::Nothing => return Ok(()),
            FetchEvent::Failed(failure) => (Some(failure), false),
            FetchEvent::Broken(failure) => (Some(failure), true),
            FetchEvent::Ended => (None, true),
        };
        if is_over {
            self.running.swap_remove(at);
        }
        if let Some(failure) = failure {
            self.failed(index, failure, context)?;
        }
        if is_over {
            self.ended(index, now);
        }
        Ok(())
    }

    fn failed(
        &self,
        index: usize,
        failure: Failure,
        context: &mut PageContext<'_>,
    ) -> Result<(), Failure> {
        context.meter.page_request_failed();
        match self.plan.requests.get(index) {
            Some(request) if request.is_document => {
                Err(Failure::new(failure.reason, format!("page: {}", failure.detail)))
            }
            _ => Ok(()),
        }
    }

    /// A request is done: what followed it can begin.
    fn ended(&mut self, index: usize, now: Instant) {
        let Some(request) = self.plan.requests.get(index) else { return };
        for follower in &request.followers {
            let delay = self.plan.requests.get(*follower).map(|request| request.begins.delay);
            self.due.push(Reverse((now + delay.unwrap_or_default(), *follower)));
        }
        match &self.plan.player {
            PlayerStart::At(After { request: Some(followed), delay }) if *followed == index => {
                self.player_at = Some(now + *delay);
            }
            PlayerStart::Loaded(requests) if requests.binary_search(&index).is_ok() => {
                self.awaited -= 1;
                if self.awaited == 0 {
                    self.player_at = Some(now);
                }
            }
            _ => {}
        }
    }
}
