//! The server of a cell: its start, when it is ready, what is watched of it.

use std::path::{Path, PathBuf};

use throng_observation::Url;
use throng_report::matrix::RunStatus;
use throng_rig::{Limits, Readiness, RunningServer, ServerSpec, Sign, StartError};
use throng_scenario::matrix::{ReadyWhen, Server};
use url::Position;

use super::super::shown;
use super::{CellRunner, NoRun};

impl CellRunner<'_> {
    pub(super) fn start(
        &mut self,
        command: &[String],
        server: &Server<String>,
        dir: &Path,
        name: &str,
    ) -> Result<RunningServer, NoRun> {
        let stop = server.stop.clone().unwrap_or_default();
        let disk =
            server.disk.as_ref().map(|disk| (PathBuf::from(&disk.path), disk.read_bytes_per_s));
        let ready = server.ready.as_ref().map(readiness).transpose().map_err(NoRun::failed)?;
        let spec = ServerSpec {
            command: command.to_vec(),
            env: server.env.clone(),
            cwd: server
                .cwd
                .as_ref()
                .map_or_else(|| self.plan.base.clone(), |cwd| self.plan.base.join(cwd)),
            ready,
            stop_signal: stop.signal,
            stop_within: stop.within,
            cpus: server.cpus.clone(),
            nofile: server.nofile,
            limits: Limits {
                cpu_quota: server.cpu_quota,
                memory_bytes: server.memory_bytes,
                disk_read: disk,
            },
            log: log_of(dir),
            name: name.to_owned(),
        };
        let interrupt = self.interrupt;
        RunningServer::start(spec, &mut self.journal, &|| interrupt.is_set()).map_err(|error| {
            match error {
                StartError::NotPossibleHere(_) => NoRun::of(RunStatus::Skipped, error),
                StartError::Interrupted => NoRun::of(RunStatus::Pending, error),
                error => NoRun::failed(error),
            }
        })
    }
}

fn readiness(ready: &throng_scenario::matrix::Ready) -> Result<Readiness, String> {
    let sign = match &ready.when {
        ReadyWhen::Port(port) => Sign::Port(*port),
        ReadyWhen::Url(text) => {
            let url = Url::parse(text).map_err(|error| format!("{text}: {error}"))?;
            let port = url.port_or_known_default().unwrap_or(80);
            let path = url.in_clear()[Position::BeforePath..Position::AfterQuery].to_owned();
            Sign::Http { authority: format!("{}:{port}", url.host_str().unwrap_or_default()), path }
        }
        ReadyWhen::Log(pattern) => {
            Sign::Line(throng_rig::pattern(pattern).map_err(|error| error.to_string())?)
        }
    };
    Ok(Readiness { sign, within: ready.within })
}

/// What a server writes to its standard output and error, in the folder of its files.
pub(super) fn log_of(dir: &Path) -> PathBuf {
    dir.join("output.log")
}

/// The watch of a server: all processes of its control group, where there is none those that listen
/// on its port; and its output, in which many say what they lack.
pub(super) fn watch(server: &RunningServer, log: &Path, more: Option<&str>) -> String {
    let target = match (server.control_group(), server.port()) {
        (Some(group), _) => format!("cgroup={group}"),
        (None, Some(port)) => format!("port={port}"),
        (None, None) => format!("pid={}", server.pid()),
    };
    watch_with(&target, &shown(log), more)
}

/// A value of `--watch`, which a comma ends: a log whose path has one is not followed.
fn watch_with(target: &str, log: &str, more: Option<&str>) -> String {
    let log = (!log.contains(',')).then(|| format!("logs={log}"));
    let parts =
        [Some(target.to_owned()), log, more.filter(|more| !more.is_empty()).map(str::to_owned)];
    parts.into_iter().flatten().collect::<Vec<_>>().join(",")
}

/// Whether the CPU time of the target's server is that of the processes that were started (`own`),
/// by who is `listening` on the target's port here. A server that a daemon starts (a container, a
/// unit), or that was there before, is none of them; one on another machine uses nothing here.
/// `is_here`: the target may be this host, where only root sees who listens.
pub(super) fn is_accounted(own: &[u32], listening: &[u32], is_here: bool) -> bool {
    if listening.is_empty() { !is_here } else { listening.iter().all(|pid| own.contains(pid)) }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_server_that_somebody_else_started_is_not_counted_as_others() {
        let (own, docker) = ([7, 8], 99);
        assert!(is_accounted(&own, &[8], true), "a helper of the server listens");
        assert!(!is_accounted(&own, &[docker], true) && !is_accounted(&own, &[8, docker], true));
        assert!(!is_accounted(&[], &[docker], false), "no command, and it is here");
        assert!(!is_accounted(&own, &[], true), "somebody whom only root sees");
        assert!(is_accounted(&own, &[], false), "the server is on another machine");
    }

    #[test]
    fn the_output_of_a_server_is_followed() {
        for (log, more, expect) in [
            ("/runs/1/server/output.log", None, "cgroup=/a,logs=/runs/1/server/output.log"),
            ("/o.log", Some("profile=full"), "cgroup=/a,logs=/o.log,profile=full"),
            ("/o.log", Some(""), "cgroup=/a,logs=/o.log"),
            ("/of,two/o.log", None, "cgroup=/a"),
        ] {
            assert_eq!(watch_with("cgroup=/a", log, more), expect);
        }
    }

    #[test]
    fn an_address_is_taken_from_a_url() {
        let ready = |url: &str| {
            let when = ReadyWhen::Url(url.into());
            readiness(&throng_scenario::matrix::Ready { when, within: Duration::from_secs(1) })
                .unwrap()
                .sign
                .to_string()
        };
        assert_eq!(
            ready("http://127.0.0.1:8081/status?full"),
            "http://127.0.0.1:8081/status?full answers"
        );
        assert_eq!(ready("http://localhost"), "http://localhost:80/ answers");
    }
}
