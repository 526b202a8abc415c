//! A source that publishes into a stage by WHIP, apart from the run that is judged.

use std::process::{Child, Stdio};
use std::time::Duration;

use anyhow::ensure;
use tempfile::TempDir;
use throng_sim::namespace::Namespace;

use crate::search::Lab;
use crate::stage::Stage;

/// The codec of what is published.
#[derive(Clone, Copy, Debug)]
pub(crate) enum VideoCodec {
    /// The viewers of the stage see it.
    H264,
    /// They see the test card in its place.
    Vp8,
}

impl VideoCodec {
    fn setting(self) -> &'static str {
        match self {
            Self::H264 => "crowd.publish={video=\"240p\",codec=\"h264\"}",
            Self::Vp8 => "crowd.publish={video=\"240p\",codec=\"vp8\"}",
        }
    }
}

/// Publishes into a stage until it is dropped.
pub(crate) struct Publisher {
    process: Child,
    _folder: TempDir,
}

impl Publisher {
    /// Starts one, inside of `namespace` if there is one, and waits until the stage has its media.
    /// The stage does not transcode: throng's viewers take H.264 first, so that of a video in VP8
    /// they hear the audio, and see the test card.
    pub(crate) fn start(
        lab: &Lab,
        namespace: Option<&Namespace>,
        stage: &Stage,
        codec: VideoCodec,
    ) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let url = stage.url.replace("whep+", "whip+").replace("/whep", "/whip");
        let mut command = lab.command(namespace);
        command.args(["view", &url, "-n", "1", "--for", "1h", "--quiet"]);
        command.args(["--set", "crowd.subscribe=none", "--allow-target", "10.78.0.0/16"]);
        command.args(["--set", codec.setting()]);
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
