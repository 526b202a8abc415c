//! A participant that does several things at a time, as a person does who watches a stream and is
//! in its chat: each part is a participant of its own, with its own channels and fetches.
//!
//! The first part is what the person came for: the whole ends with it. Another part that fails is
//! told as an anomaly, and the others go on.

use std::time::{Duration, Instant};

use throng_media::prefetch::Prefetcher;
use throng_observation::{FailureReason, Observation, Outcome, Phase};

use crate::participant::{Channel, FetchId, Input, NEVER, Open, Output, Participant, Why};

/// Bits of the numbers of channels and fetches that are left to each part.
const CHANNEL_BITS: u32 = 8;
const FETCH_BITS: u32 = 28;

/// Most parts.
const PARTS_MAX: usize = 1 << (u32::BITS - FETCH_BITS);

/// A participant of parts.
pub struct Composite {
    parts: Vec<Part>,
    /// The part whose outputs are drained.
    at: usize,
    /// That of the first part, until the others are over too.
    outcome: Option<Outcome>,
}

/// One of several participants that the driver knows as one.
pub(crate) struct Part {
    place: usize,
    /// For people.
    name: &'static str,
    participant: Box<dyn Participant>,
    /// When it is to be woken, and why; `None` while it may have outputs.
    deadline: Option<(Instant, Why)>,
    is_over: bool,
}

impl Part {
    /// The part at `place`, which is at most 15.
    pub(crate) fn new(place: usize, name: &'static str, participant: Box<dyn Participant>) -> Self {
        Self { place, name, participant, deadline: None, is_over: false }
    }

    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    pub(crate) fn is_over(&self) -> bool {
        self.is_over
    }

    /// Handles `input`, whose channels and fetches are those of the whole ([`place`]).
    pub(crate) fn handle(&mut self, now: Instant, input: Input<'_>) {
        self.take(now, own(input));
    }

    /// Handles `input`, whose channels and fetches are its own.
    pub(crate) fn take(&mut self, now: Instant, input: Input<'_>) {
        if !self.is_over {
            self.deadline = None;
            self.participant.handle(now, input);
        }
    }

    /// The time passes.
    pub(crate) fn wake(&mut self, now: Instant) {
        if self.deadline.is_some_and(|(at, _)| now >= at) {
            self.take(now, Input::Timeout);
        }
    }

    /// Its next output, with the channels and fetches of the whole; `None` when there is none until
    /// its deadline.
    pub(crate) fn poll(&mut self, now: Instant) -> Option<Output> {
        if self.is_over || self.deadline.is_some() {
            return None;
        }
        match self.participant.poll_output(now) {
            Output::Timeout(at, why) => {
                self.deadline = Some((at, why));
                None
            }
            output => {
                self.is_over = matches!(output, Output::Ended(_));
                Some(self.outer(output))
            }
        }
    }

    /// When it is to be woken.
    pub(crate) fn deadline(&self) -> Option<(Instant, Why)> {
        self.deadline.filter(|_| !self.is_over)
    }

    fn channel(&self, channel: Channel) -> Channel {
        Channel((self.place as u16) << CHANNEL_BITS | channel.0)
    }

    fn fetch(&self, fetch: FetchId) -> FetchId {
        FetchId((self.place as u32) << FETCH_BITS | fetch.0 & ((1 << FETCH_BITS) - 1))
    }

    /// The output with the numbers of the whole.
    fn outer(&self, output: Output) -> Output {
        match output {
            Output::Open(channel, open) => {
                let open = match open {
                    Open::RtpPair { rtcp, toward } => {
                        Open::RtpPair { rtcp: self.channel(rtcp), toward }
                    }
                    open => open,
                };
                Output::Open(self.channel(channel), open)
            }
            Output::Send(channel, transmit) => Output::Send(self.channel(channel), transmit),
            Output::Signal(channel, message) => Output::Signal(self.channel(channel), message),
            Output::Close(channel) => Output::Close(self.channel(channel)),
            Output::Fetch(fetch, request) => Output::Fetch(self.fetch(fetch), request),
            Output::Download(fetch, request, version) => {
                Output::Download(self.fetch(fetch), request, version)
            }
            Output::Demand(fetch, demand) => Output::Demand(self.fetch(fetch), demand),
            Output::Cancel(fetch) => Output::Cancel(self.fetch(fetch)),
            output @ (Output::Observed(_) | Output::Ended(_) | Output::Timeout(..)) => output,
        }
    }
}

/// The place of the part that an input is for.
pub(crate) fn place(input: &Input<'_>) -> Option<usize> {
    match input {
        Input::Fetched { fetch, .. } | Input::Download { fetch, .. } => {
            Some((fetch.0 >> FETCH_BITS) as usize)
        }
        input => input.channel().map(|channel| usize::from(channel.0 >> CHANNEL_BITS)),
    }
}

/// The input with the numbers of its part.
fn own(input: Input<'_>) -> Input<'_> {
    let channel_of = |channel: Channel| Channel(channel.0 & ((1 << CHANNEL_BITS) - 1));
    let fetch_of = |fetch: FetchId| FetchId(fetch.0 & ((1 << FETCH_BITS) - 1));
    match input {
        Input::Opened { channel, opening } => {
            Input::Opened { channel: channel_of(channel), opening }
        }
        Input::Datagram { channel, source, local, arrived_at, bytes } => {
            Input::Datagram { channel: channel_of(channel), source, local, arrived_at, bytes }
        }
        Input::Bytes { channel, bytes } => Input::Bytes { channel: channel_of(channel), bytes },
        Input::Blocked { channel, duration } => {
            Input::Blocked { channel: channel_of(channel), duration }
        }
        Input::Message { channel, message } => {
            Input::Message { channel: channel_of(channel), message }
        }
        Input::Closed { channel, why } => Input::Closed { channel: channel_of(channel), why },
        Input::Fetched { fetch, result } => Input::Fetched { fetch: fetch_of(fetch), result },
        Input::Download { fetch, event } => Input::Download { fetch: fetch_of(fetch), event },
        input @ (Input::Start { .. } | Input::Timeout | Input::Leave { .. }) => input,
    }
}

/// What of a part's observations is one of the whole: how far the whole has come is told by the
/// first part, but for what only another one can reach.
pub(crate) fn is_of_whole(observation: &Observation) -> bool {
    match observation {
        Observation::Reached(phase, _) => *phase == Phase::Joined,
        Observation::Path(_) => false,
        _ => true,
    }
}

impl Composite {
    /// A participant of these parts, each with a name for people; of more than 16 the others are
    /// left out.
    #[must_use]
    pub fn new(parts: Vec<(&'static str, Box<dyn Participant>)>) -> Self {
        let parts = parts.into_iter().take(PARTS_MAX).enumerate();
        Self {
            parts: parts
                .map(|(place, (name, participant))| Part::new(place, name, participant))
                .collect(),
            at: 0,
            outcome: None,
        }
    }

    /// What the whole makes of an output of the part at `place`.
    fn pass(&mut self, now: Instant, place: usize, output: Output) -> Option<Output> {
        match output {
            Output::Ended(outcome) if place == 0 => {
                // A person who goes closes everything.
                for part in self.parts.iter_mut().skip(1) {
                    part.take(now, Input::Leave { others_follow: true });
                }
                self.outcome = Some(outcome);
                None
            }
            // Told at the end of the whole too: a chat that let nobody in until then has failed.
            Output::Ended(Outcome::Failed(failure))
                if failure.reason != FailureReason::NotStarted =>
            {
                let name = self.parts.get(place).map_or("", Part::name);
                Some(Output::Observed(Observation::ProtocolAnomaly {
                    place: name,
                    detail: format!("has ended: {failure}").into(),
                }))
            }
            Output::Ended(_) => None,
            Output::Observed(observation) if place > 0 && !is_of_whole(&observation) => None,
            output => Some(output),
        }
    }
}

impl Participant for Composite {
    fn handle(&mut self, now: Instant, input: Input<'_>) {
        self.at = 0;
        match input {
            Input::Start { intended_at } => {
                self.parts.iter_mut().for_each(|part| part.take(now, Input::Start { intended_at }));
            }
            Input::Leave { others_follow } => {
                self.parts
                    .iter_mut()
                    .for_each(|part| part.take(now, Input::Leave { others_follow }));
            }
            Input::Timeout => self.parts.iter_mut().for_each(|part| part.wake(now)),
            input => {
                if let Some(part) = place(&input).and_then(|place| self.parts.get_mut(place)) {
                    part.handle(now, input);
                }
            }
        }
    }

    fn poll_output(&mut self, now: Instant) -> Output {
        while let Some(part) = self.parts.get_mut(self.at) {
            part.wake(now);
            match part.poll(now) {
                Some(output) => {
                    if let Some(output) = self.pass(now, self.at, output) {
                        return output;
                    }
                    // The end of the first part moves the others.
                    self.at = 0;
                }
                None => self.at += 1,
            }
        }
        self.at = 0;
        if let Some(outcome) = self.outcome.take_if(|_| self.parts.iter().all(Part::is_over)) {
            return Output::Ended(outcome);
        }
        let deadlines = self.parts.iter().filter_map(Part::deadline);
        let (at, why) = deadlines.min_by_key(|(at, _)| *at).unwrap_or((now + NEVER, "nothing"));
        Output::Timeout(at, why)
    }

    fn receive_lag(&mut self, lag: Duration) {
        self.parts.iter_mut().for_each(|part| part.participant.receive_lag(lag));
    }

    fn prefetch(&self, level: u8, prefetcher: &mut Prefetcher<'_>) {
        match level.checked_sub(2) {
            Some(level) => {
                self.parts.iter().for_each(|part| part.participant.prefetch(level, prefetcher));
            }
            None if level == 0 => prefetcher.value(&*self.parts),
            None => self.parts.iter().for_each(|part| prefetcher.value(&*part.participant)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use throng_observation::Failure;

    use super::*;
    use crate::participant::{Message, Opening};

    /// Says what it is told, and does what it is to.
    struct Recorder {
        heard: Arc<Mutex<Vec<String>>>,
        outputs: Vec<Output>,
        wakes_at: Instant,
    }

    impl Participant for Recorder {
        fn handle(&mut self, _: Instant, input: Input<'_>) {
            self.heard.lock().unwrap().push(format!("{input:?}"));
            match input {
                Input::Leave { .. } => self.outputs.push(Output::Ended(Outcome::Completed)),
                Input::Start { .. } => {
                    self.outputs.push(Output::Signal(Channel(3), Message::Text("hello".into())));
                }
                _ => {}
            }
        }

        fn poll_output(&mut self, _: Instant) -> Output {
            let timeout = Output::Timeout(self.wakes_at, "wakes");
            if self.outputs.is_empty() { timeout } else { self.outputs.remove(0) }
        }
    }

    type Heard = Arc<Mutex<Vec<String>>>;

    fn composite(now: Instant) -> (Composite, [Heard; 2]) {
        let heard: [Heard; 2] = Default::default();
        let part = |at: usize| {
            let wakes_at = now + Duration::from_secs(1 + at as u64);
            let recorder =
                Recorder { heard: Arc::clone(&heard[at]), outputs: Vec::new(), wakes_at };
            (["first", "second"][at], Box::new(recorder) as Box<dyn Participant>)
        };
        (Composite::new(vec![part(0), part(1)]), heard)
    }

    fn drain(composite: &mut Composite, now: Instant) -> Vec<Output> {
        std::iter::repeat_with(|| composite.poll_output(now))
            .take(99)
            .take_while(|output| !matches!(output, Output::Timeout(..)))
            .collect()
    }

    #[test]
    fn each_part_has_channels_of_its_own_and_hears_what_is_for_it() {
        let now = Instant::now();
        let (mut composite, heard) = composite(now);
        composite.handle(now, Input::Start { intended_at: now });
        let channels = drain(&mut composite, now).into_iter().map(|output| match output {
            Output::Signal(channel, _) => channel,
            output => panic!("{output:?}"),
        });
        assert_eq!(channels.collect::<Vec<_>>(), [Channel(3), Channel(0x103)]);
        let opening = Opening::default();
        composite.handle(now, Input::Opened { channel: Channel(0x103), opening: opening.clone() });
        composite.handle(now, Input::Opened { channel: Channel(0x903), opening });
        let heard_last =
            heard.each_ref().map(|heard| heard.lock().unwrap().last().unwrap().clone());
        assert!(
            heard_last[0].starts_with("Start") && heard_last[1].contains("Channel(3)"),
            "{heard_last:?}"
        );
        assert!(
            matches!(composite.poll_output(now), Output::Timeout(at, _) if at == now + Duration::from_secs(1))
        );
        let later = now + Duration::from_millis(1_500);
        composite.handle(later, Input::Timeout);
        let counts = heard.each_ref().map(|heard| heard.lock().unwrap().len());
        assert_eq!(counts, [2, 2], "only the first is due");
    }

    #[test]
    fn the_whole_ends_with_its_first_part_and_another_one_may_fail() {
        let now = Instant::now();
        let (mut composite, _) = composite(now);
        let failure = Failure::new(FailureReason::Kicked, "by the owner");
        composite.parts[1].take(now, Input::Timeout);
        let failing = Recorder {
            heard: Heard::default(),
            outputs: vec![Output::Ended(Outcome::Failed(failure))],
            wakes_at: now,
        };
        composite.parts[1].participant = Box::new(failing);
        let outputs = drain(&mut composite, now);
        let [Output::Observed(Observation::ProtocolAnomaly { place: "second", .. })] = &outputs[..]
        else {
            panic!("{outputs:?}")
        };
        composite.handle(now, Input::Leave { others_follow: false });
        let outputs = drain(&mut composite, now);
        assert!(matches!(&outputs[..], [Output::Ended(Outcome::Completed)]), "{outputs:?}");
    }

    #[test]
    fn a_part_that_fails_only_when_the_first_has_ended_is_told_and_one_that_was_interrupted_is_not()
    {
        for (reason, is_told) in
            [(FailureReason::HttpStatus(502), true), (FailureReason::NotStarted, false)]
        {
            let now = Instant::now();
            let (mut composite, _) = composite(now);
            drain(&mut composite, now);
            composite.handle(now, Input::Leave { others_follow: true });
            assert!(matches!(
                composite.parts[0].poll(now),
                Some(Output::Ended(Outcome::Completed))
            ));
            composite.outcome = Some(Outcome::Completed);
            composite.parts[1].participant = Box::new(Recorder {
                heard: Heard::default(),
                outputs: vec![Output::Ended(Outcome::Failed(Failure::new(reason, "refused")))],
                wakes_at: now,
            });
            let outputs = drain(&mut composite, now);
            let told = outputs.iter().any(|output| {
                matches!(
                    output,
                    Output::Observed(Observation::ProtocolAnomaly { place: "second", .. })
                )
            });
            assert_eq!(told, is_told, "{outputs:?}");
            assert!(
                matches!(outputs.last(), Some(Output::Ended(Outcome::Completed))),
                "{outputs:?}"
            );
        }
    }
}
