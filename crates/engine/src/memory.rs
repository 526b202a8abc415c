//! Settings of the allocator for thousands of participants.

/// Makes all threads share one arena until a run with several threads begins. Must be called before
/// the first thread starts: a thread keeps its arena, and arenas other than the main one grow by a
/// page and a system call at a time.
pub fn share_one_arena() {
    share_arenas(1);
}

/// Limits the process to as many arenas as engine threads. By default glibc gives each thread its
/// own, also the collector and the store. Memory that one thread allocates and another frees
/// fragments them, which costs a tenth of a viewer's memory. No effect with other allocators.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(crate) fn share_arenas(threads: usize) {
    // SAFETY: mallopt has no preconditions beyond valid parameters. A refused parameter changes
    // nothing.
    unsafe { libc::mallopt(libc::M_ARENA_MAX, i32::try_from(threads).unwrap_or(i32::MAX)) };
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(crate) fn share_arenas(_workers: usize) {}
