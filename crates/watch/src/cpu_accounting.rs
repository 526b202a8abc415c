//! The cost of monitoring a host: the CPU time of every thread that works for it.

use std::collections::HashMap;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use throng_observation::host::HostId;

/// What a thread's CPU time is spent on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Purpose {
    /// Counters, logs, endpoints: continuous, and bounded by the budget.
    Reading,
    /// A profile: requested once and soon over. Lower sampling rates would not make it cheaper.
    Profile,
}

/// CPU time that monitoring has used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CpuUsage {
    pub(crate) reading: Duration,
    pub(crate) profiles: Duration,
}

impl CpuUsage {
    pub(crate) fn all(self) -> Duration {
        self.reading + self.profiles
    }

    pub(crate) fn since(self, before: Self) -> Self {
        Self {
            reading: self.reading.saturating_sub(before.reading),
            profiles: self.profiles.saturating_sub(before.profiles),
        }
    }
}

/// CPU time by host and purpose.
#[derive(Debug, Default)]
pub(crate) struct CpuAccounts(Mutex<Charges>);

#[derive(Debug, Default)]
struct Charges {
    threads: Vec<ChargedThread>,
    /// Totals of threads that have ended.
    ended: HashMap<(HostId, Purpose), Duration>,
}

#[derive(Debug)]
struct ChargedThread {
    account: (HostId, Purpose),
    clock: libc::clockid_t,
    began: Duration,
}

/// Charges the thread that created it until it is dropped there.
#[derive(Debug)]
pub(crate) struct ChargeGuard {
    accounts: Arc<CpuAccounts>,
    clock: libc::clockid_t,
    /// Not `Send`: it must be dropped on the charged thread.
    _here: PhantomData<*const ()>,
}

impl CpuAccounts {
    /// Charges the calling thread's CPU time from now on.
    pub(crate) fn charge(self: Arc<Self>, host: HostId, purpose: Purpose) -> Option<ChargeGuard> {
        let clock = thread_clock()?;
        let began = thread_cpu();
        self.state().threads.push(ChargedThread { account: (host, purpose), clock, began });
        Some(ChargeGuard { accounts: self, clock, _here: PhantomData })
    }

    /// CPU time used for `host` so far.
    pub(crate) fn usage(&self, host: HostId) -> CpuUsage {
        let charges = self.state();
        let sum = |purpose| {
            let account = (host, purpose);
            let ended = charges.ended.get(&account).copied().unwrap_or_default();
            let running = charges.threads.iter().filter(|thread| thread.account == account);
            let taken = |thread: &ChargedThread| {
                read_clock(thread.clock).unwrap_or_default().saturating_sub(thread.began)
            };
            running.map(taken).fold(ended, |sum, taken| sum + taken)
        };
        CpuUsage { reading: sum(Purpose::Reading), profiles: sum(Purpose::Profile) }
    }

    fn state(&self) -> MutexGuard<'_, Charges> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ChargeGuard {
    fn drop(&mut self) {
        let mut charges = self.accounts.state();
        if let Some(place) = charges.threads.iter().rposition(|thread| thread.clock == self.clock) {
            let thread = charges.threads.swap_remove(place);
            let taken = thread_cpu().saturating_sub(thread.began);
            *charges.ended.entry(thread.account).or_default() += taken;
        }
    }
}

/// CPU time of the calling thread.
pub(crate) fn thread_cpu() -> Duration {
    clock(ClockId::ThreadCPUTime)
}

/// CPU time of all threads of this process.
pub(crate) fn process_cpu() -> Duration {
    clock(ClockId::ProcessCPUTime)
}

/// The time of one of the kernel's clocks.
pub(crate) fn clock(id: ClockId) -> Duration {
    let time = clock_gettime(id);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// The calling thread's CPU clock, which other threads can read.
fn thread_clock() -> Option<libc::clockid_t> {
    let mut clock = 0;
    // SAFETY: the thread is the calling one, and the pointer is to a local that outlives the call.
    let error = unsafe { libc::pthread_getcpuclockid(libc::pthread_self(), &raw mut clock) };
    (error == 0).then_some(clock)
}

/// Reads a CPU clock; `None` once its thread or process is gone.
pub(crate) fn read_clock(clock: libc::clockid_t) -> Option<Duration> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a local that outlives the call.
    if unsafe { libc::clock_gettime(clock, &raw mut time) } != 0 {
        return None;
    }
    Some(Duration::new(u64::try_from(time.tv_sec).ok()?, u32::try_from(time.tv_nsec).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    fn burn(time: Duration) {
        let until = thread_cpu() + time;
        while thread_cpu() < until {
            std::hint::black_box((0..500_u64).fold(0, |a, b| a ^ b));
        }
    }

    #[test]
    fn every_thread_is_on_its_hosts_account_while_it_runs_and_when_it_has_ended() {
        let ms = Duration::from_millis;
        let accounts = Arc::new(CpuAccounts::default());
        let (burnt, is_burnt) = channel();
        let (end, ended) = channel::<()>();
        let its = accounts.clone();
        let thread = std::thread::spawn(move || {
            burn(ms(30)); // before it was charged
            let _cost = its.charge(HostId(7), Purpose::Reading);
            burn(ms(60));
            burnt.send(()).unwrap();
            let _ = ended.recv();
        });
        is_burnt.recv().unwrap();
        let running = accounts.usage(HostId(7));
        assert!((ms(60)..ms(85)).contains(&running.reading), "{running:?}");
        drop(end);
        thread.join().unwrap();
        let after = accounts.usage(HostId(7));
        assert!((running.reading..ms(85)).contains(&after.reading), "{after:?} after {running:?}");

        let here = accounts.clone().charge(HostId(7), Purpose::Profile);
        burn(ms(20));
        let with_profile = accounts.usage(HostId(7));
        assert_eq!(with_profile.reading, after.reading);
        assert!(
            with_profile.profiles >= ms(20) && with_profile.all() >= ms(80),
            "{with_profile:?}"
        );
        assert_eq!(accounts.usage(HostId(0)), CpuUsage::default());
        drop(here);
    }
}
