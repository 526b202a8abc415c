//! A producer under a seccomp filter that allows what a Chromium renderer may do on Linux, and
//! nothing else.
//!
//! After `sandbox/linux/seccomp-bpf-helpers/baseline_policy.cc`, `syscall_sets.cc`,
//! `syscall_parameters_restrictions.cc` there and
//! `sandbox/policy/linux/bpf_renderer_policy_linux.cc`: a system call that is not listed there
//! kills the process here, and one that they answer with EPERM gets EPERM. Arguments are checked
//! where they are (mmap, futex, fcntl, clock_gettime).

use std::os::fd::AsRawFd;
use std::time::Duration;

use throng_ring::{Consumer, Event, Policy, Producer, RingOptions};

use crate::child::{fork, is_whole, put};

const FRAMES: u64 = 3_000;

pub(crate) fn run() -> String {
    if !cfg!(target_arch = "x86_64") {
        return "SKIPPED: the filter is written for x86-64".to_owned();
    }
    let mut consumer = Consumer::new().unwrap();
    let (lane, invitation) = consumer.add_lane(&RingOptions::with_size(1 << 18, 8)).unwrap();
    let mut control = fork(|| {
        enter();
        // What the filter forbids ends the process: else it would prove nothing.
        let _ = std::fs::File::open("/proc/self/exe").map(|_| panic!("opened a file"));
        // SAFETY: a harmless call that renderers may not make.
        unsafe { libc::syscall(libc::SYS_socket, libc::AF_UNIX, libc::SOCK_STREAM, 0) };
    });
    let status = control.wait();
    assert_eq!(status & 0x7f, libc::SIGSYS, "the filter does not filter: {status:#x}");

    let mut child = fork(move || {
        // Everything of the producer happens inside: joining, mapping, waiting, waking, leaving.
        enter();
        let mut producer = Producer::join(invitation).unwrap();
        producer.set_policy(Policy::Wait { timeout: Duration::MAX });
        for number in 0..FRAMES {
            assert!(put(&mut producer, 1, number, number as usize * 37 % 100_000));
        }
        // The ways of an event loop are open too.
        let _ = producer.poll_room(100_000).unwrap();
        assert!(producer.has_consumer());
    });
    let mut received = 0;
    while received < FRAMES {
        let Some(frame) = consumer.peek() else {
            // One half by futex, the other through the eventfd, as an event loop would.
            let more = if received < FRAMES / 2 {
                consumer.wait(Duration::from_secs(20)).unwrap()
            } else {
                poll(&mut consumer)
            };
            match consumer.next_event() {
                None => {}
                // It may end before this process: its frames are still to be read.
                Some(Event::ProducerLeft { clean: true, .. }) => continue,
                Some(event) => {
                    let status = child.wait();
                    panic!("{event:?} at frame {received}: status {status:#x}");
                }
            }
            assert!(more, "stalled at {received}");
            continue;
        };
        assert!(is_whole(&consumer, &frame));
        // Slow enough at times for the producer to fall asleep, and to be woken.
        if received % 500 == 0 {
            std::thread::sleep(Duration::from_millis(20));
        }
        received += 1;
        consumer.release(frame.id).unwrap();
    }
    child.expect_success();
    let stats = consumer.stats(lane).unwrap();
    let (sleeps, wakes) = (stats.producers[0].sleeps, stats.producers[0].wakes);
    assert!(
        sleeps > 0 && stats.consumer_wakes > 0,
        "the producer never slept, or was never woken: {stats:?}"
    );
    assert!(wakes > 0, "it woke no process: {stats:?}");
    format!(
        "{received} frames, joined and mapped inside, where it slept {sleeps} and woke {wakes} times; a socket() ends \
         the process"
    )
}

/// Sleeps on the descriptor for event loops.
fn poll(consumer: &mut Consumer) -> bool {
    if !consumer.arm() {
        return true;
    }
    let mut fd =
        libc::pollfd { fd: consumer.event_fd().as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: waits for one descriptor of ours.
    let ready = unsafe { libc::poll(&raw mut fd, 1, 20_000) } == 1;
    consumer.process_events().unwrap();
    ready
}

/// What to do with a call.
enum Rule {
    Allow,
    /// This error.
    Fail(i32),
    /// Allowed if no bit outside the mask is set in an argument, else the end.
    Mask {
        argument: u32,
        mask: u32,
    },
    /// Allowed if an argument, without the ignored bits, is one of these.
    OneOf {
        argument: u32,
        ignore: u32,
        values: &'static [u32],
    },
}

fn rules() -> Vec<(i64, Rule)> {
    use Rule::{Allow, Fail, Mask, OneOf};
    let allowed = [
        libc::SYS_brk,
        libc::SYS_mlock,
        libc::SYS_munlock,
        libc::SYS_munmap,
        libc::SYS_mremap,
        libc::SYS_sched_yield,
        libc::SYS_nanosleep,
        libc::SYS_epoll_create1,
        libc::SYS_epoll_ctl,
        libc::SYS_epoll_pwait,
        libc::SYS_epoll_wait,
        libc::SYS_eventfd2,
        libc::SYS_fstat,
        libc::SYS_lseek,
        libc::SYS_poll,
        libc::SYS_ppoll,
        libc::SYS_pselect6,
        libc::SYS_read,
        libc::SYS_readv,
        libc::SYS_pread64,
        libc::SYS_recvfrom,
        libc::SYS_recvmsg,
        libc::SYS_select,
        libc::SYS_sendmsg,
        libc::SYS_sendto,
        libc::SYS_write,
        libc::SYS_writev,
        libc::SYS_pwrite64,
        libc::SYS_gettimeofday,
        libc::SYS_time,
        libc::SYS_exit,
        libc::SYS_exit_group,
        libc::SYS_rt_sigaction,
        libc::SYS_rt_sigprocmask,
        libc::SYS_rt_sigreturn,
        libc::SYS_sigaltstack,
        libc::SYS_getpid,
        libc::SYS_gettid,
        libc::SYS_close,
        libc::SYS_dup,
        libc::SYS_shutdown,
        libc::SYS_restart_syscall,
        libc::SYS_memfd_create,
        libc::SYS_mincore,
        libc::SYS_rseq,
        libc::SYS_getrandom,
        libc::SYS_ftruncate,
        libc::SYS_sysinfo,
    ];
    let eperm = [
        libc::SYS_set_robust_list,
        libc::SYS_madvise,
        libc::SYS_openat,
        libc::SYS_open,
        libc::SYS_access,
    ];
    let mmap = libc::MAP_SHARED
        | libc::MAP_PRIVATE
        | libc::MAP_ANONYMOUS
        | libc::MAP_STACK
        | libc::MAP_NORESERVE
        | libc::MAP_FIXED
        | libc::MAP_DENYWRITE
        | libc::MAP_LOCKED;
    let mprotect = libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC;
    // WAIT, WAKE, REQUEUE, CMP_REQUEUE, WAKE_OP, WAIT_BITSET, WAKE_BITSET; PRIVATE and
    // CLOCK_REALTIME with any.
    let futex: &[u32] = &[0, 1, 3, 4, 5, 9, 10];
    // GETFL, GETFD, SETFD, GETLK, SETLK, SETLKW, DUPFD, DUPFD_CLOEXEC, GET_SEALS.
    let fcntl: &[u32] = &[3, 1, 2, 5, 6, 7, 0, 1030, 1034];
    // REALTIME, MONOTONIC, CPU times of process and thread, RAW, both COARSE, BOOTTIME.
    let clocks: &[u32] = &[0, 1, 2, 3, 4, 5, 6, 7];
    let mut rules: Vec<_> = allowed.into_iter().map(|call| (call, Allow)).collect();
    rules.extend(eperm.map(|call| (call, Fail(libc::EPERM))));
    rules.extend([
        (libc::SYS_clone3, Fail(libc::ENOSYS)),
        (libc::SYS_pidfd_open, Fail(libc::ENOSYS)),
        (libc::SYS_mmap, Mask { argument: 3, mask: mmap as u32 }),
        (libc::SYS_mprotect, Mask { argument: 2, mask: mprotect as u32 }),
        (libc::SYS_futex, OneOf { argument: 1, ignore: 128 | 256, values: futex }),
        (libc::SYS_fcntl, OneOf { argument: 1, ignore: 0, values: fcntl }),
        (libc::SYS_clock_gettime, OneOf { argument: 0, ignore: 0, values: clocks }),
    ]);
    rules
}

const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
const AND: u16 = (libc::BPF_ALU | libc::BPF_AND | libc::BPF_K) as u16;
const EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
/// Offsets within `struct seccomp_data`: the call's number, the architecture, the low halves of the
/// arguments.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
const ARGUMENTS: u32 = 16;
const X86_64: u32 = 0xc000_003e;

fn step(code: u16, k: u32) -> libc::sock_filter {
    libc::sock_filter { code, jt: 0, jf: 0, k }
}

/// Continues if equal, else skips.
fn unless_equal_skip(k: u32, skip: usize) -> libc::sock_filter {
    libc::sock_filter { code: EQUAL, jt: 0, jf: skip as u8, k }
}

fn program() -> Vec<libc::sock_filter> {
    let kill = libc::SECCOMP_RET_KILL_PROCESS;
    let other_architecture = libc::sock_filter { code: EQUAL, jt: 1, jf: 0, k: X86_64 };
    let mut program =
        vec![step(LOAD, ARCHITECTURE), other_architecture, step(RETURN, kill), step(LOAD, NUMBER)];
    for (call, rule) in rules() {
        let body = match rule {
            Rule::Allow => vec![step(RETURN, libc::SECCOMP_RET_ALLOW)],
            Rule::Fail(error) => vec![step(RETURN, libc::SECCOMP_RET_ERRNO | error as u32)],
            Rule::Mask { argument, mask } => vec![
                step(LOAD, ARGUMENTS + 8 * argument),
                step(AND, !mask),
                unless_equal_skip(0, 1),
                step(RETURN, libc::SECCOMP_RET_ALLOW),
                step(RETURN, kill),
            ],
            Rule::OneOf { argument, ignore, values } => {
                let mut body = vec![step(LOAD, ARGUMENTS + 8 * argument), step(AND, !ignore)];
                for value in values {
                    body.extend([
                        unless_equal_skip(*value, 1),
                        step(RETURN, libc::SECCOMP_RET_ALLOW),
                    ]);
                }
                body.push(step(RETURN, kill));
                body
            }
        };
        program.push(unless_equal_skip(call as u32, body.len()));
        program.extend(body);
    }
    program.push(step(RETURN, kill));
    program
}

/// Enters the sandbox, for good.
fn enter() {
    let mut program = program();
    let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: both calls only restrict this process; the program outlives the call, which copies
    // it.
    let entered = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const filter) == 0
    };
    assert!(entered, "seccomp: {}", std::io::Error::last_os_error());
}
