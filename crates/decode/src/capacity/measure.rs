//! Measures one number of streams: a decoder and a feeding thread for each.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use throng_observation::Distribution;

use super::{CapacityError, Conditions, Loop, Row};
use crate::ffmpeg::{Decoder, Feed, Output, Picture, SIZE_GUESSED};

/// Time for the first decoder to start, and for each further one.
const START: Duration = Duration::from_secs(10);
const START_EACH: Duration = Duration::from_millis(300);
/// After all have started: their backlog is decoded.
const WARM_UP: Duration = Duration::from_secs(1);
/// Most pictures between feed and output; a full pipe of small ones has about as many.
const UNDERWAY_MAX: usize = 16_384;

/// The time in which pictures count, nanoseconds from the start.
#[derive(Debug)]
struct Window {
    began: Instant,
    from_ns: AtomicU64,
    until_ns: AtomicU64,
    is_over: AtomicBool,
}

impl Window {
    fn holds(&self, due: Duration) -> bool {
        (self.from_ns.load(Relaxed)..self.until_ns.load(Relaxed)).contains(&nanos(due))
    }
}

/// The counts of one stream.
#[derive(Debug, Default)]
struct Account {
    /// Index and expected time of pictures that were fed and are not decoded.
    underway: VecDeque<(u64, Duration)>,
    has_begun: bool,
    late: u64,
    delay_us: Distribution,
}

/// Decodes `streams` streams under `conditions`.
///
/// # Errors
/// See [`CapacityError`].
pub fn measure(streams: u32, conditions: &Conditions) -> Result<Row, CapacityError> {
    let began = Instant::now();
    let never = || AtomicU64::new(u64::MAX);
    let window = Arc::new(Window {
        began,
        from_ns: never(),
        until_ns: never(),
        is_over: AtomicBool::new(false),
    });
    let mut lines = Vec::new();
    for number in 0..streams {
        let of = conditions.loops.get(number as usize % conditions.loops.len().max(1));
        let of = of.ok_or(CapacityError::Nothing)?;
        // Streams have different phases, as in a call.
        let offset = of
            .turn
            .div_f64(of.pictures.len() as f64)
            .mul_f64(f64::from(number) / f64::from(streams));
        lines.push(Line::start(of, offset, conditions, &window)?);
    }
    until_all_have_begun(&mut lines, streams, began)?;
    thread::sleep(WARM_UP);
    let from = began.elapsed();
    let until = from + conditions.duration;
    window.until_ns.store(nanos(until), Relaxed);
    window.from_ns.store(nanos(from), Relaxed);
    let cpu = || lines.iter().map(|line| line.decoder.cpu()).sum::<Duration>();
    let (cpu_before, measured_from) = (cpu(), Instant::now());
    thread::sleep(conditions.duration);
    let (cpu_after, seconds) = (cpu(), measured_from.elapsed().as_secs_f64());
    // A picture that is later counts as dropped.
    thread::sleep(conditions.late_after.max(Duration::from_millis(200)));
    window.is_over.store(true, Relaxed);
    let mut row = Row {
        streams,
        due: 0,
        pictures: 0,
        late: 0,
        dropped: 0,
        delay_us: Distribution::new(),
        cpu_cores: cpu_after.saturating_sub(cpu_before).as_secs_f64() / seconds,
        seconds: conditions.duration.as_secs_f64(),
    };
    for line in lines {
        line.end(&mut row, from, until);
    }
    row.dropped = row.due.saturating_sub(row.pictures);
    Ok(row)
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

fn until_all_have_begun(
    lines: &mut [Line],
    streams: u32,
    began: Instant,
) -> Result<(), CapacityError> {
    let patience = START + START_EACH * streams;
    loop {
        let started = lines.iter().filter(|line| line.has_begun()).count();
        if started == lines.len() {
            return Ok(());
        }
        if let Some(error) = lines.iter_mut().find_map(|line| line.decoder.gave_up()) {
            return Err(error.into());
        }
        if began.elapsed() > patience {
            return Err(CapacityError::NotStarted {
                started,
                streams,
                seconds: patience.as_secs(),
            });
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// One stream: its decoder and the thread that feeds it.
struct Line {
    account: Arc<Mutex<Account>>,
    of: Loop,
    offset: Duration,
    decoder: Decoder,
    feeder: JoinHandle<()>,
}

impl Line {
    fn start(
        of: &Loop,
        offset: Duration,
        conditions: &Conditions,
        window: &Arc<Window>,
    ) -> Result<Self, CapacityError> {
        let account = Arc::new(Mutex::new(Account::default()));
        let (seen, its_window, late_after) =
            (Arc::clone(&account), Arc::clone(window), conditions.late_after);
        let take = move |picture: Picture| came(&seen, &its_window, late_after, &picture);
        let (decoder, feed) =
            Decoder::start(&conditions.program, of.codec, SIZE_GUESSED, Output::Nothing, take)?;
        let (its_loop, its_account, its_window) =
            (of.clone(), Arc::clone(&account), Arc::clone(window));
        let feeder = thread::Builder::new()
            .name("pace".into())
            .stack_size(256 << 10)
            .spawn(move || pace(&its_loop, offset, feed, &its_account, &its_window))
            .map_err(|error| conditions.program.failed(error))?;
        Ok(Self { account, of: of.clone(), offset, decoder, feeder })
    }

    fn has_begun(&self) -> bool {
        self.account.lock().unwrap_or_else(PoisonError::into_inner).has_begun
    }

    fn end(self, row: &mut Row, from: Duration, until: Duration) {
        // The feeder may be blocked by a slow decoder: ending that unblocks it.
        drop(self.decoder);
        let _ = self.feeder.join();
        // By the schedule, not by the pictures fed: a decoder that blocks its feeder has as many to
        // decode.
        let dues = (0_u64..).map(|index| self.of.due(index) + self.offset);
        row.due += dues.skip_while(|due| *due < from).take_while(|due| *due < until).count() as u64;
        let account = self.account.lock().unwrap_or_else(PoisonError::into_inner);
        row.pictures += account.delay_us.count();
        row.late += account.late;
        row.delay_us.merge(&account.delay_us);
    }
}

/// Feeds each picture at its time.
fn pace(of: &Loop, offset: Duration, mut feed: Feed, account: &Mutex<Account>, window: &Window) {
    for index in 0_u64.. {
        let due = of.due(index) + offset;
        let wait = (window.began + due).saturating_duration_since(Instant::now());
        thread::sleep(wait);
        if window.is_over.load(Relaxed) {
            return;
        }
        let Some(picture) = of.pictures.get((index % of.pictures.len() as u64) as usize) else {
            return;
        };
        {
            let mut account = account.lock().unwrap_or_else(PoisonError::into_inner);
            if account.underway.len() == UNDERWAY_MAX {
                account.underway.pop_front();
            }
            account.underway.push_back((index, due));
        }
        if feed.frame(index, picture.key_frame, &picture.bytes).is_err() {
            return;
        }
    }
}

fn came(account: &Mutex<Account>, window: &Window, late_after: Duration, picture: &Picture) {
    let mut account = account.lock().unwrap_or_else(PoisonError::into_inner);
    account.has_begun = true;
    while let Some((index, due)) =
        account.underway.front().copied().filter(|(index, _)| *index <= picture.index)
    {
        account.underway.pop_front();
        if index == picture.index && window.holds(due) && !window.is_over.load(Relaxed) {
            let delay = picture.decoded_at.saturating_duration_since(window.began + due);
            account.delay_us.record(nanos(delay) / 1_000);
            account.late += u64::from(delay > late_after);
        }
    }
}
