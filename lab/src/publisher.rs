//! A source that publishes into a stage by WHIP, apart from the run that is judged.

use std::process::{Child, Stdio};
use std::time::Duration;

use anyhow::ensure;
use tempfile::TempDir;
use throng_sim::namespace::Namespace;

use crate::search::Lab;
use crate::stage::Stage;

/// Publishes into a stage until it is dropped.
pub(crate) struct Publisher {
    process: Child,
    _folder: TempDir,
}

impl Publisher {
    /// Starts one, inside of `namespace` if there is one, and waits until the stage has its media.
    pub(crate) fn start(
        lab: &Lab,
        namespace: Option<&Namespace>,
        stage: &Stage,
    ) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let url = stage.url.replace("whep+", "whip+").replace("/whep", "/whip");
        let mut command = lab.command(namespace);
        command.args(["view", &url, "-n", "1", "--for", "1h", "--quiet"]);
        command.args(["--set", "crowd.subscribe=none", "--allow-target", "10.78.0.0/16"]);
        command.arg("--output").arg(folder.path().join("run")).stdin(Stdio::null());
        let process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let publisher = Self { process, _folder: folder };
        std::thread::sleep(Duration::from_secs(4));
        let published = || stage.counter("published_packets");
        let packets = match namespace {
            Some(namespace) => namespace.enter(published)??,
            None => published()?,
        };
        ensure!(packets > 0.0, "no publisher sends packets");
        Ok(publisher)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
