//! Real servers at a limit of their own: what they log then, the pattern of their packs that counts
//! it, and what throng names.
//!
//! Each test has all that it expects of its server in one [`Limit`], beside the crowd that meets
//! it.

mod galene;
mod go2rtc;
mod live555;
mod mediamtx;
mod oven_media_engine;
mod srs;

use throng_sim::namespace::Namespace;
use throng_sim::real::RealServer;

use crate::throng::{Ran, run};

/// What a server does at a limit, and what is made of it.
struct Limit {
    /// A part of the line that it logs, and the pattern that counts such lines; `None` where it
    /// logs nothing.
    log: Option<(&'static str, &'static str)>,
    /// What is named; `None` where it does not matter.
    finding: Option<&'static str>,
    /// The reason of the failures of those whom it does not serve; `None` where they need not have
    /// failed at the end.
    failure: Option<&'static str>,
}

impl Limit {
    /// Lets a crowd come while the server and its log are watched.
    #[track_caller]
    fn is_met(&self, server: &RealServer<'_>, crowd: &[&str]) -> Ran {
        self.is_met_from(server.namespace(), server, crowd)
    }

    /// As [`Self::is_met`], of a crowd in another namespace.
    #[track_caller]
    fn is_met_from(&self, crowds: &Namespace, server: &RealServer<'_>, crowd: &[&str]) -> Ran {
        let watch = format!("pid={},logs={}", server.pid(), server.file("log").display());
        let arguments = [crowd, &["--watch", watch.as_str()]].concat();
        let ran = run(Some(crowds), &arguments);
        let (summary, log) = (ran.summary(), server.log());
        if let Some((line, pattern)) = self.log {
            assert!(log.contains(line), "it did not log {line}\n{ran}\n{log}");
            let counted = &summary["hosts"][0]["log_lines"][pattern];
            assert!(counted.as_u64() > Some(0), "{pattern}: {counted}\n{ran}\n{log}");
        }
        if let Some(finding) = self.finding {
            let found = &summary["bottleneck"];
            assert_eq!(found["finding"], finding, "{found:#}\n{ran}\n{log}");
        }
        if let Some(reason) = self.failure {
            let failures = &summary["failures"];
            assert!(failures[reason].as_u64() > Some(0), "{reason}: {failures}\n{ran}\n{log}");
        }
        ran
    }
}
