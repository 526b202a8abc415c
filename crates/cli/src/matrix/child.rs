//! The crowd of a cell: `throng run` or `throng find` in a process of its own.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use std::os::unix::process::CommandExt;

use throng_process::{Ended, Started, end_throng_with_this_thread};
use throng_rig::{Marker, RunningServer, signal_process};
use throng_scenario::masked_text;

use crate::console::{BY_PARENT, Interrupt};

const LOOK_EVERY: Duration = Duration::from_millis(50);

/// How the crowd's process ended.
pub(super) struct CrowdEnd {
    /// Its exit code; `None` if a signal ended it.
    pub(super) code: Option<i32>,
    /// Whether this throng asked it to end early.
    pub(super) was_interrupted: bool,
    /// When the server ended by itself during the run, in words.
    pub(super) server_ended: Option<String>,
}

/// Starts `throng ARGUMENTS`, with its output in `log`. It has a process group of its own: Ctrl-C
/// reaches it once, from this process ([`BY_PARENT`]). It ends with this thread: a throng that was
/// killed leaves nobody who sends. `mark` finds what is left of it nevertheless. `variables` are
/// more of its environment, which other users do not see: its secrets.
pub(super) fn start(
    arguments: &[String],
    log: &Path,
    mark: &str,
    variables: Vec<(String, String)>,
) -> std::io::Result<Child> {
    let output = throng_folder::create(log)?;
    let mut command = Command::new(std::env::current_exe()?);
    command.args(arguments).process_group(0).env(Marker::VARIABLE, mark).envs(variables);
    end_throng_with_this_thread(&mut command, Ended::InOrder);
    command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output).spawn()
}

/// Waits for its end. A signal to this process ends it early; so does the end of the server if
/// `ends_with_server`.
pub(super) fn wait(
    mut child: Child,
    server: &mut Option<RunningServer>,
    interrupt: &Interrupt,
    ends_with_server: bool,
) -> CrowdEnd {
    let _registered = Started::group(child.id());
    let began = std::time::Instant::now();
    let (mut was_interrupted, mut is_ending, mut server_ended) = (false, false, None);
    loop {
        if let Ok(Some(status)) = child.try_wait() {
            return CrowdEnd { code: status.code(), was_interrupted, server_ended };
        }
        if interrupt.is_set() && !was_interrupted {
            was_interrupted = true;
            if !is_ending {
                signal_process(&child, BY_PARENT);
                is_ending = true;
            }
        }
        if server_ended.is_none()
            && let Some(server) = server
            && let Some(status) = server.ended()
        {
            let after_s = began.elapsed().as_secs();
            server_ended = Some(format!(
                "the server ended {after_s} s into the run ({status}){}",
                masked_text(&server.said())
            ));
            if ends_with_server && !is_ending {
                signal_process(&child, BY_PARENT);
                is_ending = true;
            }
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn a_crowd_is_asked_to_end_by_what_is_no_second_signal() {
        let script =
            "trap 'exit 3' INT TERM; trap 'exit 7' USR1; echo; while :; do sleep 0.01; done";
        let mut command = Command::new("sh");
        command.args(["-c", script]).process_group(0).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        let interrupt = Interrupt::default();
        interrupt.set();
        let end = wait(child, &mut None, &interrupt, false);
        assert_eq!((end.code, end.was_interrupted), (Some(7), true));
    }
}
