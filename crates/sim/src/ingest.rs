//! Real servers that take a live stream and make HLS of it: nginx with its RTMP module, and ffmpeg
//! that listens for SRT.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::outcome::skipped;
use crate::support::{ChildGuard, SimError, wait_for_port};

const NGINX: &str = "/usr/sbin/nginx";

/// Debian's `libnginx-mod-rtmp`.
const RTMP_MODULE: &str = "/usr/lib/nginx/modules/ngx_rtmp_module.so";

/// Whether an ffmpeg with SRT is installed; where it is not, the test is skipped.
#[must_use]
pub fn ffmpeg_has_srt() -> bool {
    let protocols = Command::new("ffmpeg").args(["-hide_banner", "-protocols"]).output();
    let has = protocols.is_ok_and(|said| String::from_utf8_lossy(&said.stdout).contains("srt\n"));
    if !has {
        skipped("ffmpeg with SRT is not installed (scripts/setup.sh test)");
    }
    has
}

/// A server that takes one stream; it ends when dropped.
#[derive(Debug)]
pub struct IngestServer {
    _process: ChildGuard,
    url: String,
    folder: TempDir,
}

impl IngestServer {
    /// nginx that takes streams by RTMP, with any key but `refused`, and writes HLS with segments
    /// of a second below [`Self::folder`]. `None` where it, or its module, is not installed.
    ///
    /// # Errors
    /// When it cannot be started or does not come up; its log is part of the error.
    pub fn nginx_rtmp() -> Result<Option<Self>, SimError> {
        if !(fs::exists(NGINX)? && fs::exists(RTMP_MODULE)?) {
            skipped("nginx with its RTMP module is not installed (scripts/setup.sh test)");
            return Ok(None);
        }
        let folder = tempfile::tempdir()?;
        let free = || {
            TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|listener| listener.local_addr())
        };
        let (address, control) = (free()?, free()?);
        let path = folder.path().display();
        let configuration = format!(
            "load_module {RTMP_MODULE};\n\
             daemon off; master_process off; pid {path}/nginx.pid; \
             error_log {path}/error.log info;\n\
             events {{ worker_connections 256; }}\n\
             rtmp {{ server {{ listen {address}; application live {{ live on; hls on; \
             hls_path {path}/hls;\n\
             hls_fragment 1s; hls_playlist_length 8s; notify_method get; \
             on_publish http://{control}/may; }} }} }}\n\
             http {{ access_log off; client_body_temp_path {path}/b; proxy_temp_path {path}/p; \
             fastcgi_temp_path {path}/f;\n\
             uwsgi_temp_path {path}/u; scgi_temp_path {path}/s;\n\
             server {{ listen {control}; location /may {{ \
             if ($arg_name = refused) {{ return 403; }} return 200; }} }} }}\n"
        );
        fs::write(folder.path().join("nginx.conf"), configuration)?;
        fs::create_dir(folder.path().join("hls"))?;
        let mut command = Command::new(NGINX);
        command.arg("-p").arg(folder.path()).args(["-c", "nginx.conf", "-e", "error.log"]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let process = ChildGuard::start(&mut command)?;
        if let Err(error) = wait_for_port("nginx", address, Duration::from_secs(10)) {
            let log = fs::read_to_string(folder.path().join("error.log")).unwrap_or_default();
            return Err(SimError::Said(format!("{error}; its log:\n{log}")));
        }
        Ok(Some(Self { _process: process, url: format!("publish+rtmp://{address}/live"), folder }))
    }

    /// ffmpeg that listens for SRT and writes HLS with segments of two seconds, with dates.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn ffmpeg_srt() -> Result<Option<Self>, SimError> {
        if !ffmpeg_has_srt() {
            return Ok(None);
        }
        let folder = tempfile::tempdir()?;
        fs::create_dir(folder.path().join("hls"))?;
        let address = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
        let log = fs::File::create(folder.path().join("error.log"))?;
        let mut command = Command::new("ffmpeg");
        command.args(["-nostdin", "-v", "info", "-fflags", "nobuffer", "-i"]);
        command.arg(format!("srt://{address}?mode=listener"));
        command.args(
            "-c copy -f hls -hls_time 2 -hls_list_size 8 -hls_flags program_date_time"
                .split_whitespace(),
        );
        command.arg("live.m3u8").current_dir(folder.path().join("hls"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let process = ChildGuard::start(&mut command)?;
        // A caller repeats its handshake; the listener only has to be there soon.
        std::thread::sleep(Duration::from_millis(500));
        Ok(Some(Self { _process: process, url: format!("publish+srt://{address}"), folder }))
    }

    /// Where it takes streams: without a key (RTMP).
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Where it writes HLS: `KEY.m3u8` (RTMP) or `live.m3u8`.
    #[must_use]
    pub fn folder(&self) -> std::path::PathBuf {
        self.folder.path().join("hls")
    }

    /// Waits until a playlist lists so many segments.
    ///
    /// # Errors
    /// When it does not in 30 s; the server's log is part of the error.
    pub fn wait_for(&self, playlist: &str, segments: usize) -> Result<(), SimError> {
        let until = Instant::now() + Duration::from_secs(30);
        let path = self.folder().join(playlist);
        let listed = |path: &Path| {
            fs::read_to_string(path).map_or(0, |text| text.matches("#EXTINF").count())
        };
        while listed(&path) < segments {
            if Instant::now() > until {
                return Err(SimError::Said(format!(
                    "no {}; its log:\n{}",
                    path.display(),
                    self.log()
                )));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    /// Its log.
    #[must_use]
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("error.log")).unwrap_or_default()
    }

    /// A free port of 127.0.0.1, where nobody listens.
    ///
    /// # Errors
    /// When there is none.
    pub fn nobody() -> Result<SocketAddr, SimError> {
        Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?)
    }
}
