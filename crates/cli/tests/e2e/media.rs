//! `throng media make` with a real FFmpeg: what is in the folder, and how the command ends.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// Small enough for any machine that runs other tests in parallel.
const SMALL: &str = "media make --size 320x180 --bitrate 400k --seconds 4 --count 2";

fn command(arguments: &str, output: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_throng"));
    command.args(arguments.split_whitespace()).arg("--output").arg(output);
    command
}

fn throng(arguments: &str, output: &Path) -> Output {
    command(arguments, output).output().unwrap()
}

fn said(output: &Output) -> String {
    [&output.stdout, &output.stderr]
        .map(|bytes| String::from_utf8_lossy(bytes).into_owned())
        .concat()
}

/// What ffprobe prints about `entries` of a file's streams.
fn probed(file: &Path, entries: &str) -> String {
    let mut ffprobe = Command::new("ffprobe");
    ffprobe.args(["-v", "error", "-of", "csv=p=0", "-show_entries", entries]).arg(file);
    String::from_utf8_lossy(&ffprobe.output().unwrap().stdout).into_owned()
}

#[test]
fn a_catalogue_is_as_its_list_says_and_no_two_files_are_alike() {
    let folder = tempfile::tempdir().unwrap();
    for (flags, names, codecs) in [
        ("--codec mpeg2", ["file-0.ts", "file-1.ts"], ["mpeg2video", "mp2"]),
        ("--moov-last", ["file-0.mp4", "file-1.mp4"], ["h264", "aac"]),
    ] {
        let output = folder.path().join(names[0]);
        let ran = throng(&format!("{SMALL} {flags}"), &output);
        assert_eq!(ran.status.code(), Some(0), "{}", said(&ran));
        let list: Value =
            serde_json::from_slice(&std::fs::read(output.join("catalogue.json")).unwrap()).unwrap();
        let files = list["files"].as_array().unwrap();
        assert_eq!(
            files.iter().map(|file| file["file"].as_str().unwrap()).collect::<Vec<_>>(),
            names
        );
        for file in files {
            let path = output.join(file["file"].as_str().unwrap());
            let length = std::fs::metadata(&path).unwrap().len();
            assert_eq!(
                (&file["bytes"], &file["frames"]),
                (&Value::from(length), &Value::from(100)),
                "{file}"
            );
            let bitrate = file["bitrate"].as_f64().unwrap();
            assert!((bitrate / 400e3 - 1.0).abs() <= 0.02, "{file}");
            let found = probed(&path, "stream=codec_name");
            assert!(
                codecs.iter().all(|codec| found.split([',', '\n']).any(|word| word == *codec)),
                "{found}"
            );
        }
        let [first, second] = names.map(|name| std::fs::read(output.join(name)).unwrap());
        assert!(first != second, "two files are alike");
        // No partial files are left.
        assert_eq!(std::fs::read_dir(&output).unwrap().count(), 3);
        let again = throng(&format!("{SMALL} {flags}"), &output);
        assert_eq!(again.status.code(), Some(2));
        assert!(said(&again).contains("catalogue already"), "{}", said(&again));
    }
    let mp4 = std::fs::read(folder.path().join("file-0.mp4/file-0.mp4")).unwrap();
    let place = |atom: &[u8]| mp4.windows(4).position(|bytes| bytes == atom).unwrap();
    assert!(place(b"mdat") < place(b"moov"), "--moov-last");
}

#[test]
fn an_interrupted_catalogue_has_no_half_files_and_no_list() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("catalogue");
    let mut command =
        command("media make --size 320x180 --bitrate 400k --seconds 3600 --count 2", &output);
    let running = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let is_begun = || std::fs::read_dir(&output).is_ok_and(|mut files| files.next().is_some());
    let until = Instant::now() + Duration::from_secs(20);
    while !is_begun() {
        assert!(Instant::now() < until, "no file is begun");
        std::thread::sleep(Duration::from_millis(20));
    }
    let pid = running.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    let ended = running.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(130), "{}", said(&ended));
    assert!(said(&ended).contains("interrupted"), "{}", said(&ended));
    assert_eq!(std::fs::read_dir(&output).unwrap().count(), 0);
}

#[test]
fn an_ffmpeg_that_is_missing_or_lacks_the_encoder_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let absent = throng(&format!("{SMALL} --ffmpeg /none/ffmpeg"), folder.path());
    assert_eq!(absent.status.code(), Some(2));
    assert!(said(&absent).contains("apt-get install ffmpeg"), "{}", said(&absent));
    // Programs of these names that know nothing.
    for name in ["ffmpeg", "ffprobe"] {
        std::os::unix::fs::symlink("/bin/true", folder.path().join(name)).unwrap();
    }
    let poor = folder.path().join("ffmpeg");
    let lacking =
        throng(&format!("{SMALL} --codec h265 --ffmpeg {}", poor.display()), folder.path());
    assert_eq!(lacking.status.code(), Some(2));
    assert!(said(&lacking).contains("no encoder libx265"), "{}", said(&lacking));
}
