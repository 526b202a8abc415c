//! CPU by thread: named threads with a known duty cycle.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use throng_watch::Target;

use crate::recorded::{RecordedRows, watch};

fn thread_cpu() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

const SLICE: Duration = Duration::from_millis(10);

/// Works for `duty` of each time slice as far as the machine allows; returns its CPU time and how
/// long it ran.
fn burn(duty: f64, is_over: &AtomicBool) -> (Duration, Duration) {
    let (began, cpu_began) = (Instant::now(), thread_cpu());
    let mut slice_ends = began;
    while !is_over.load(Relaxed) {
        slice_ends = (slice_ends + SLICE).max(Instant::now());
        let enough = thread_cpu() + SLICE.mul_f64(duty);
        while thread_cpu() < enough && Instant::now() < slice_ends {
            std::hint::black_box((0..500_u64).fold(0, |a, b| a ^ b));
        }
        std::thread::sleep(slice_ends.saturating_duration_since(Instant::now()));
    }
    (thread_cpu() - cpu_began, began.elapsed())
}

#[test]
fn the_share_of_each_named_thread_is_its_cpu_time() {
    let duties = [("burn-10", 0.10), ("burn-25", 0.25), ("burn-40", 0.40)];
    let watched = watch(vec![Target::Pid(std::process::id())]);
    let mut seen = RecordedRows::default();
    watched.until(&mut seen, Duration::from_secs(5), "the process", |seen| seen.info.is_some());
    std::thread::sleep(Duration::from_millis(1_500));
    let is_over = Arc::new(AtomicBool::new(false));
    let burners: Vec<_> = duties
        .into_iter()
        .map(|(name, duty)| {
            let is_over = is_over.clone();
            let builder = std::thread::Builder::new().name(name.into());
            (name, duty, builder.spawn(move || burn(duty, &is_over)).unwrap())
        })
        .collect();
    std::thread::sleep(Duration::from_secs(5));
    let at_end = watched.zero.elapsed().as_secs_f64();
    is_over.store(true, Relaxed);
    let truths: Vec<_> = burners
        .into_iter()
        .map(|(name, duty, thread)| (name, duty, thread.join().unwrap()))
        .collect();
    let seen = watched.end(seen);
    for (name, duty, (cpu, ran)) in truths {
        let truth = cpu.as_secs_f64() / ran.as_secs_f64();
        let labels = [("thread", name)];
        let samples = seen.samples("thread.cpu", &labels);
        let (first, last) =
            (samples.first().unwrap().0, samples.iter().rfind(|s| !s.1.is_nan()).unwrap().0);
        let measured = seen.sum("thread.cpu", &labels, first) / (last - first);
        assert!(
            (measured - truth).abs() < 0.02,
            "{name}: measured {measured}, took {truth}, {samples:?}"
        );
        assert!(at_end - last < 1.2, "{name} was last read at {last} of {at_end} s");
        // The machine may be too busy for a thread's duty cycle; then only its measured CPU time
        // counts.
        assert!(truth < duty + 0.02, "{name} took {truth}");
        assert_eq!(seen.find("thread.cpu", &labels).count(), 1);
        assert!(
            samples.len() > 20,
            "a hot thread is read more than once a second: {}",
            samples.len()
        );
    }
}
