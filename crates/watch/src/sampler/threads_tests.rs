//! Threads of this process: new ones, and those for which there is no room.

use std::os::unix::fs::FileExt;
use std::sync::mpsc::channel;
use std::thread::{sleep, spawn};

use throng_observation::host::{HostEventKind, HostId, HostRow};

use super::super::HOT_SHARE_MIN;
use super::*;
use crate::rows::rows;

#[test]
fn digits_are_those_of_the_number() {
    for number in [0, 7, 10, 4_294_967_295] {
        assert_eq!(Digits::of(number).text(), number.to_string());
    }
}

#[test]
fn a_new_thread_has_run_since_its_birth_or_since_the_pass_that_overlooked_it() {
    let ms = Duration::from_millis;
    let zero = Instant::now();
    let at = |after: u64| zero + ms(after);
    for (born, before, on_cpu_ms, since) in [
        (4_000, 0, 500, 4_000),     // read every 5 s
        (4_950, 4_900, 50, 4_950),  // every 100 ms
        (1_000, 4_000, 600, 4_000), // overlooked
        (1_000, 4_000, 3_500, 1_500),
        (4_990, 4_900, 20, 4_980), // ticks are coarse
    ] {
        let reported = since_when(at(5_000), at(born), at(before), on_cpu_ms * 1_000_000);
        assert_eq!(reported, at(since), "born {born}, passed {before}, ran {on_cpu_ms}");
    }
}

/// The readings of this process, and the written rows.
struct Here {
    threads: Threads,
    sink: Sink,
    receiver: crate::RowReceiver,
    failures: ReadFailures,
    thread_budget: usize,
}

impl Here {
    fn new(thread_budget: usize) -> Self {
        let (rows, receiver) = rows(100_000);
        let sink = Sink { rows, host: HostId(0), zero: Instant::now(), netns: None };
        let threads = Threads::open(std::process::id(), "here").unwrap();
        Self { threads, sink, receiver, failures: ReadFailures::default(), thread_budget }
    }

    fn pass(&mut self) {
        let mut dir = [MaybeUninit::uninit(); 4096];
        let Self { threads, sink, failures, thread_budget, .. } = self;
        // No real thread count equals this one: every pass searches for new threads.
        threads
            .read_all(sink, &mut Reader::new(), failures, &mut dir, thread_budget, u64::MAX)
            .unwrap();
    }

    /// A pass after the readings of a hot thread, before each of which it ran for `ran_ms` of 10
    /// ms; returns whether it is still hot.
    fn is_hot_after(&mut self, tid: u32, counter: &mut Written, ran_ms: &[u64]) -> bool {
        for ran_ms in ran_ms {
            sleep(Duration::from_millis(10));
            counter.add(*ran_ms);
            self.threads.read_hot(&self.sink, &mut Reader::new(), tid);
        }
        self.pass();
        let is_it = |(load, other)| other == tid && load >= HOT_SHARE_MIN;
        self.threads.loads().any(is_it)
    }
}

/// A `schedstat` file that a test writes.
struct Written {
    file: File,
    on_cpu_ms: u64,
}

impl Written {
    fn add(&mut self, ran_ms: u64) {
        self.on_cpu_ms += ran_ms;
        self.file
            .write_all_at(format!("{:020} 0 1\n", self.on_cpu_ms * 1_000_000).as_bytes(), 0)
            .unwrap();
    }
}

#[test]
fn the_first_share_of_a_thread_is_of_the_time_since_it_came_however_seldom_is_read() {
    let mut here = Here::new(10_000);
    here.pass();
    sleep(Duration::from_millis(1_500));
    let (tell, reported) = channel();
    let (end, ended) = channel::<()>();
    let burner = spawn(move || {
        tell.send(rustix::thread::gettid().as_raw_nonzero().get().to_string()).unwrap();
        while ended.try_recv() == Err(std::sync::mpsc::TryRecvError::Empty) {
            std::hint::black_box((0..500_u64).fold(0, |a, b| a ^ b));
        }
    });
    let tid = reported.recv().unwrap();
    sleep(Duration::from_millis(500));
    let of_burner = File::open(format!("/proc/self/task/{tid}/schedstat")).unwrap();
    here.pass();
    let took =
        schedstat::parse(Reader::new().one(&of_burner).unwrap()).unwrap().on_cpu_ns as f64 * 1e-9;
    drop(end);
    burner.join().unwrap();
    let mut series = None;
    let mut first = None;
    for row in here.receiver.try_iter() {
        match row {
            HostRow::Series(row) if row.metric == "thread.cpu" && row.labels["tid"] == tid => {
                series = Some(row.id);
            }
            HostRow::Sample(sample) if Some(sample.series) == series => {
                first = first.or(Some(sample.value));
            }
            _ => {}
        }
    }
    // It lived for just over 0.5 s: its share is twice its CPU time, or less if the machine was
    // busy.
    let share = first.unwrap();
    assert!(share <= 1.0, "{share} cores");
    assert!(
        share > took && share < took * 2.3,
        "{share} cores of a thread that took {took} s in 0.5 s"
    );
}

#[test]
fn threads_beyond_the_descriptor_limit_are_reported_once_with_how_to_fix_it() {
    let mut here = Here::new(0);
    here.pass();
    let (end, ended) = channel::<()>();
    let further = spawn(move || ended.recv().is_err());
    here.pass();
    drop(end);
    further.join().unwrap();
    here.pass();
    let said: Vec<_> = here
        .receiver
        .try_iter()
        .filter_map(|row| match row {
            HostRow::Event(event) if event.kind == HostEventKind::Unreadable => Some(event.detail),
            _ => None,
        })
        .collect();
    assert!(said.len() == 1 && said[0].contains("ulimit -n"), "{said:?}");
}

#[test]
fn a_bursty_thread_stays_hot_and_an_idle_one_does_not() {
    const BURST: [u64; 10] = [10, 10, 10, 0, 0, 0, 0, 0, 0, 0];
    let (tell, reported) = channel();
    let (end, ended) = channel::<()>();
    let sleeper = spawn(move || {
        tell.send(rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned()).unwrap();
        ended.recv().is_err()
    });
    let tid = reported.recv().unwrap();
    let mut here = Here::new(10_000);
    here.pass();
    let file = tempfile::tempfile().unwrap();
    here.threads.by_tid.get_mut(&tid).unwrap().schedstat = file.try_clone().unwrap();
    let mut counter = Written { file, on_cpu_ms: 1_000 };
    here.is_hot_after(tid, &mut counter, &[0]); // from here on its times are those that are written
    let bursts: Vec<_> = (0..5).map(|_| here.is_hot_after(tid, &mut counter, &BURST)).collect();
    let idle: Vec<_> = (0..7).map(|_| here.is_hot_after(tid, &mut counter, &[0; 10])).collect();
    drop(end);
    sleeper.join().unwrap();
    assert_eq!(bursts, [true; 5]);
    assert_eq!(idle, [false; 7]);
}
