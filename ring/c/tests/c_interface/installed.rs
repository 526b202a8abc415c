//! Examples are built by pkg-config against the shared library that scripts/install.sh installed,
//! and run.
#![expect(clippy::print_stderr, reason = "a skipped test is reported")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use throng_ring::{Consumer, Event, RingOptions};

const FRAMES: u64 = 20;
const BYTES: usize = 40_000;

/// Whether a program can be called. A missing one is reported, so that a skipped test does not look
/// like a passed one.
fn has(program: &str) -> bool {
    let found =
        Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success());
    if !found {
        eprintln!("SKIPPED: {program} is not installed");
    }
    found
}

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// Installs what cargo built with the tests.
fn install(prefix: &Path) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/install.sh");
    let built = std::env::current_exe().unwrap();
    let output = Command::new(script)
        .env_remove("DESTDIR")
        .env_remove("LIBDIR")
        .arg("--built")
        .arg(built.parent().unwrap())
        .arg(prefix)
        .output()
        .unwrap();
    assert!(text(&output).starts_with("Installed throng-ring "));
}

fn compile_by_pkg_config(example: &str, prefix: &Path) -> PathBuf {
    let output = Command::new("pkg-config")
        .env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig"))
        .args(["--cflags", "--libs", "throng-ring"])
        .output()
        .unwrap();
    let flags = text(&output);
    let source =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(example).with_extension("c");
    let program = prefix.join(example);
    let output = Command::new("cc")
        .args(["-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror"])
        .arg(source)
        .args(flags.split_whitespace())
        .arg("-o")
        .arg(&program)
        .output()
        .unwrap();
    text(&output);
    program
}

#[test]
fn a_program_that_pkg_config_linked_runs_on_the_installed_shared_library() {
    if !["cc", "pkg-config", "readelf"].into_iter().all(has) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let prefix = folder.path().canonicalize().unwrap();
    install(&prefix);
    let program = compile_by_pkg_config("producer", &prefix);

    let needed = text(&Command::new("readelf").arg("-d").arg(&program).output().unwrap());
    let (major, minor) = (env!("CARGO_PKG_VERSION_MAJOR"), env!("CARGO_PKG_VERSION_MINOR"));
    let soname = if major == "0" {
        format!("libthrong_ring_c.so.{major}.{minor}")
    } else {
        format!("libthrong_ring_c.so.{major}")
    };
    let by_soname = format!("Shared library: [{soname}]");
    assert!(needed.contains(&by_soname), "{by_soname} in\n{needed}");

    let mut consumer = Consumer::new().unwrap();
    let (_, invitation) = consumer.add_lane(&RingOptions::for_frames(BYTES, 4)).unwrap();
    let mut command = Command::new(&program);
    command
        .args([FRAMES.to_string(), BYTES.to_string()])
        .env("LD_LIBRARY_PATH", prefix.join("lib"));
    invitation.give_to(&mut command);
    let mut child = command.spawn().unwrap();
    drop(command);
    let delivered = loop {
        assert!(consumer.wait(Duration::from_secs(60)).unwrap(), "nothing came for a minute");
        while let Some(frame) = consumer.peek() {
            consumer.release(frame.id).unwrap();
        }
        if let Some(Event::LaneEnded { stats, .. }) = consumer.next_event() {
            break stats.delivered_frames;
        }
    };
    assert_eq!(delivered, FRAMES);
    assert!(child.wait().unwrap().success());

    // Without the installed library it does not start: no other copy was linked.
    let alone = Command::new(&program).env_remove("LD_LIBRARY_PATH").output().unwrap();
    assert!(String::from_utf8_lossy(&alone.stderr).contains(&soname), "{alone:?}");
}

#[test]
fn the_installed_version_is_the_library_s() {
    if !["pkg-config", "readelf"].into_iter().all(has) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    install(folder.path());
    let output = Command::new("pkg-config")
        .env("PKG_CONFIG_PATH", folder.path().join("lib/pkgconfig"))
        .args(["--modversion", "throng-ring"])
        .output()
        .unwrap();
    assert_eq!(text(&output).trim(), env!("CARGO_PKG_VERSION"));
    let library = folder.path().join("lib/libthrong_ring_c.so").canonicalize().unwrap();
    let named = library.file_name().unwrap().to_string_lossy().into_owned();
    assert_eq!(named, format!("libthrong_ring_c.so.{}", env!("CARGO_PKG_VERSION")));
}
