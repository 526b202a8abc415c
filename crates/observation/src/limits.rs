//! Past these limits a second says more about the generator than about the server. One place, so that the live view and
//! the report judge alike.

/// CPU of a worker thread, share of one core: the usual knee of a queue, where waiting passes twice the service time.
pub const WORKER_CPU_RATIO_MAX: f64 = 0.70;

/// 99th percentile of how late a worker's loop comes to its deadlines, milliseconds.
///
/// Lateness does not enter the delay figures, because the kernel stamps arrivals; it delays joins and feedback. Browsers
/// look for packets to ask again each 20 ms (libwebrtc `NackPeriodicProcessor`), so up to there a crowd still answers as
/// real viewers do.
pub const LAG_P99_MS_MAX: f64 = 20.0;

/// CPU time that the hypervisor took, share of all CPUs: 50 ms of each second, as long as the shortest freeze that a
/// viewer of 20 frames per second could notice. Beyond it the host's neighbours are part of the measurement.
pub const STEAL_RATIO_MAX: f64 = 0.05;

/// Share of a run's seconds that must pass a limit of CPU, lag or steal for the run to be invalid: the exceed ratio that
/// a capacity trial allows the server (RFC 9971 with trials of 1 s), so that both sides are held to one rule.
pub const BAD_SECONDS_RATIO_MIN: f64 = 0.05;

/// And at least so many seconds, so that one hiccup does not spoil a short run.
pub const BAD_SECONDS_MIN: usize = 3;
