//! What the child does between fork and exec: it joins its control groups and takes its CPUs before
//! it runs anything.

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::process::{Resource, Rlimit};
use rustix::thread::CpuSet;
use throng_process::{Ended, end_with_this_thread};

/// Makes `command` join the groups whose `cgroup.procs` are given, and run on `cpus` with at most
/// `nofile` open files, in a process group of its own. It gets SIGTERM if the thread that starts it
/// dies: nothing else would end the server of a throng that was killed.
pub(crate) fn confine(
    command: &mut Command,
    groups: Vec<File>,
    cpus: Option<CpuSet>,
    nofile: Option<u64>,
) {
    command.process_group(0);
    let join = move || {
        for group in &groups {
            // 0 is the process that writes (cgroups(7)).
            rustix::io::write(group, b"0")?;
        }
        if let Some(cpus) = &cpus {
            rustix::thread::sched_setaffinity(None, cpus)?;
        }
        if let Some(nofile) = nofile {
            // Both, so that the server cannot raise it again without privileges.
            let limit = Rlimit { current: Some(nofile), maximum: Some(nofile) };
            rustix::process::setrlimit(Resource::Nofile, limit)?;
        }
        Ok(())
    };
    // SAFETY: between fork and exec only system calls are made on what was opened and allocated
    // before (write, sched_setaffinity, setrlimit); an error becomes the child's exit status
    // without allocation.
    unsafe {
        command.pre_exec(join);
    }
    end_with_this_thread(command, Ended::InOrder);
}
