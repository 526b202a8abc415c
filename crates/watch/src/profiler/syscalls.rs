//! Names of common system calls, in particular those in which server threads wait.

/// Name and number on this architecture.
macro_rules! table {
    ($($name:ident $number:ident,)*) => { &[$((stringify!($name), libc::$number),)*] };
}

const NAMES: &[(&str, libc::c_long)] = table! {
    read SYS_read, write SYS_write, pread64 SYS_pread64, pwrite64 SYS_pwrite64, readv SYS_readv,
    writev SYS_writev, preadv SYS_preadv, pwritev SYS_pwritev, openat SYS_openat, close SYS_close,
    fsync SYS_fsync, fdatasync SYS_fdatasync, sync SYS_sync, sync_file_range SYS_sync_file_range,
    getdents64 SYS_getdents64, sendto SYS_sendto, sendmsg SYS_sendmsg, sendmmsg SYS_sendmmsg,
    recvfrom SYS_recvfrom, recvmsg SYS_recvmsg, recvmmsg SYS_recvmmsg, accept SYS_accept,
    accept4 SYS_accept4, connect SYS_connect, sendfile SYS_sendfile, splice SYS_splice, tee SYS_tee,
    vmsplice SYS_vmsplice, ppoll SYS_ppoll, pselect6 SYS_pselect6, epoll_pwait SYS_epoll_pwait,
    epoll_pwait2 SYS_epoll_pwait2, epoll_ctl SYS_epoll_ctl, io_uring_enter SYS_io_uring_enter,
    io_getevents SYS_io_getevents, io_submit SYS_io_submit, futex SYS_futex,
    nanosleep SYS_nanosleep, clock_nanosleep SYS_clock_nanosleep, sched_yield SYS_sched_yield,
    rt_sigtimedwait SYS_rt_sigtimedwait, rt_sigsuspend SYS_rt_sigsuspend, wait4 SYS_wait4,
    waitid SYS_waitid, ioctl SYS_ioctl, fcntl SYS_fcntl, flock SYS_flock, mmap SYS_mmap,
    munmap SYS_munmap, madvise SYS_madvise, mprotect SYS_mprotect, msync SYS_msync, brk SYS_brk,
    clone SYS_clone, execve SYS_execve, exit SYS_exit, exit_group SYS_exit_group,
    fallocate SYS_fallocate, ftruncate SYS_ftruncate, unlinkat SYS_unlinkat,
    renameat2 SYS_renameat2, newfstatat SYS_newfstatat, fstat SYS_fstat, statx SYS_statx,
    semtimedop SYS_semtimedop, semop SYS_semop, mq_timedreceive SYS_mq_timedreceive,
    msgrcv SYS_msgrcv, process_vm_readv SYS_process_vm_readv, copy_file_range SYS_copy_file_range,
    restart_syscall SYS_restart_syscall,
};

/// Calls that newer architectures do not have.
#[cfg(target_arch = "x86_64")]
const OLDER: &[(&str, libc::c_long)] = table! {
    poll SYS_poll, select SYS_select, epoll_wait SYS_epoll_wait, pause SYS_pause, open SYS_open,
    stat SYS_stat, lstat SYS_lstat, fork SYS_fork, vfork SYS_vfork, unlink SYS_unlink,
    rename SYS_rename,
};
#[cfg(not(target_arch = "x86_64"))]
const OLDER: &[(&str, libc::c_long)] = &[];

/// The name of a system call; its number if unknown.
pub(super) fn name(number: libc::c_long) -> String {
    let known = NAMES.iter().chain(OLDER).find(|(_, known)| *known == number);
    known.map_or_else(|| format!("syscall {number}"), |(name, _)| (*name).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_named() {
        assert_eq!(name(libc::SYS_futex), "futex");
        assert_eq!(name(libc::SYS_io_uring_enter), "io_uring_enter");
        assert_eq!(name(99_999), "syscall 99999");
    }
}
