//! The event configuration: `struct perf_event_attr` of a sampling clock.

/// Size of the stack copy for unwinding, bytes: enough for server threads, small enough to copy 99
/// times a second.
const STACK_BYTES: u32 = 16 * 1024;

/// User registers in a sample (`asm/perf_regs.h`), from which unwinding starts.
#[cfg(target_arch = "x86_64")]
pub(crate) const REGISTERS: u64 = 1 << 6 | 1 << 7 | 1 << 8; // bp, sp, ip
#[cfg(target_arch = "aarch64")]
pub(crate) const REGISTERS: u64 = 1 << 29 | 1 << 30 | 1 << 31 | 1 << 32; // fp, lr, sp, pc
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(crate) const REGISTERS: u64 = 0;
pub(crate) const REGISTERS_COUNT: usize = REGISTERS.count_ones() as usize;

/// Size of the thread id and time at the end of every record other than a sample, bytes.
pub(crate) const SAMPLE_ID_BYTES: usize = 16;

const TYPE_SOFTWARE: u32 = 1;
const TYPE_TRACEPOINT: u32 = 2;
const COUNT_SW_CPU_CLOCK: u64 = 0;

mod sample {
    pub(super) const IP: u64 = 1 << 0;
    pub(super) const TID: u64 = 1 << 1;
    pub(super) const TIME: u64 = 1 << 2;
    pub(super) const CALLCHAIN: u64 = 1 << 5;
    pub(super) const REGS_USER: u64 = 1 << 12;
    pub(super) const STACK_USER: u64 = 1 << 13;
}

mod flag {
    pub(super) const DISABLED: u64 = 1 << 0;
    pub(super) const INHERIT: u64 = 1 << 1;
    pub(super) const EXCLUDE_IDLE: u64 = 1 << 7;
    pub(super) const MMAP: u64 = 1 << 8;
    pub(super) const COMM: u64 = 1 << 9;
    pub(super) const TASK: u64 = 1 << 13;
    pub(super) const WATERMARK: u64 = 1 << 14;
    pub(super) const SAMPLE_ID_ALL: u64 = 1 << 18;
    pub(super) const MMAP2: u64 = 1 << 23;
    pub(super) const COMM_EXEC: u64 = 1 << 24;
    pub(super) const USE_CLOCKID: u64 = 1 << 25;
}

/// `struct perf_event_attr` of `include/uapi/linux/perf_event.h`, up to `PERF_ATTR_SIZE_VER5`
/// (Linux 4.1).
#[repr(C)]
#[derive(Clone, Debug, Default)]
pub(super) struct Attr {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_watermark: u32,
    bp_type: u32,
    config1: u64,
    config2: u64,
    branch_sample_type: u64,
    sample_regs_user: u64,
    sample_stack_user: u32,
    clockid: i32,
    sample_regs_intr: u64,
    aux_watermark: u32,
    sample_max_stack: u16,
    reserved: u16,
}

const _: () = assert!(size_of::<Attr>() == 112, "PERF_ATTR_SIZE_VER5");

impl Attr {
    /// A tracepoint by its number, without samples, in threads too that start later.
    pub(super) fn tracepoint(number: u64) -> Self {
        Self {
            kind: TYPE_TRACEPOINT,
            size: size_of::<Self>() as u32,
            config: number,
            flags: flag::DISABLED | flag::INHERIT,
            ..Self::default()
        }
    }

    /// The software clock `cpu-clock`, which needs no hardware counters; virtual machines seldom
    /// have them.
    pub(super) fn cpu_clock(frequency_hz: u32, with_stacks: bool, wakeup_watermark: u32) -> Self {
        let mut sample_type = sample::IP | sample::TID | sample::TIME | sample::CALLCHAIN;
        let mut attr = Self {
            kind: TYPE_SOFTWARE,
            size: size_of::<Self>() as u32,
            config: COUNT_SW_CPU_CLOCK,
            sample_period: 1_000_000_000 / u64::from(frequency_hz.max(1)),
            flags: flag::DISABLED
                | flag::EXCLUDE_IDLE
                | flag::MMAP
                | flag::COMM
                | flag::TASK
                | flag::WATERMARK
                | flag::SAMPLE_ID_ALL
                | flag::MMAP2
                | flag::COMM_EXEC
                | flag::USE_CLOCKID,
            wakeup_watermark,
            clockid: libc::CLOCK_MONOTONIC,
            ..Self::default()
        };
        if with_stacks && REGISTERS != 0 {
            sample_type |= sample::REGS_USER | sample::STACK_USER;
            attr.sample_regs_user = REGISTERS;
            attr.sample_stack_user = STACK_BYTES;
        }
        attr.sample_type = sample_type;
        attr
    }
}
