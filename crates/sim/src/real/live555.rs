//! The media server of Live555 (C++): RTSP of the files in its folder.

use std::net::Ipv4Addr;
use std::process::Command;

use super::{Launch, RealServer};
use crate::namespace::Namespace;
use crate::rtsp::MediaFile;
use crate::support::{SimError, run};

/// The program.
pub const PROGRAM: &str = "live555MediaServer";
/// RTSP, when it runs as root.
pub const RTSP_PORT: u16 = 554;

/// Starts it with `film.mkv`, H.264 and AAC, and `film.ts`, a transport stream of MPEG-2.
///
/// # Errors
/// When it or ffmpeg is not installed, or it does not come up.
pub fn start(namespace: &Namespace, address: Ipv4Addr) -> Result<RealServer<'_>, SimError> {
    let folder = tempfile::tempdir()?;
    for (file, name) in [(MediaFile::H264, "film.mkv"), (MediaFile::Mpeg2, "film.ts")] {
        let mut command = Command::new("ffmpeg");
        command.args(["-nostdin", "-v", "error", "-i"]).arg(file.path()?);
        run(command.args(["-c", "copy"]).arg(folder.path().join(name)))?;
    }
    let launch = Launch { program: PROGRAM, arguments: &[], ports: &[RTSP_PORT] };
    RealServer::start(namespace, address, folder, &launch)
}

/// Puts `film.mpg` into its folder, a program stream of MPEG-2 video and MPEG audio of two minutes,
/// whose audio it sends in bursts.
///
/// # Errors
/// When ffmpeg is not installed, or lacks an encoder.
pub fn add_program_stream(server: &RealServer<'_>) -> Result<(), SimError> {
    let mut command = Command::new("ffmpeg");
    command.args("-nostdin -v error -stream_loop 11 -i".split(' ')).arg(MediaFile::Mpeg2.path()?);
    command.args("-c copy -f vob".split(' '));
    run(command.arg(server.file("film.mpg"))).map(drop)
}

/// Puts `large.mkv` into its folder: pictures of noise, each larger than what it takes of one.
///
/// # Errors
/// When ffmpeg is not installed, or lacks an encoder.
pub fn add_film_of_large_frames(server: &RealServer<'_>) -> Result<(), SimError> {
    let mut command = Command::new("ffmpeg");
    command.args("-nostdin -v error -f lavfi -i color=gray:s=640x480:r=5:d=12".split(' '));
    command.args("-vf noise=alls=100:allf=t -c:v libx264 -preset ultrafast -qp 1 -g 5".split(' '));
    command.args("-pix_fmt yuv420p -x264-params slices=1:sliced-threads=0".split(' '));
    run(command.arg(server.file("large.mkv"))).map(drop)
}
