use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::Path;

use http_body_util::BodyExt as _;
use hyper::Request;
use throng_observation::RunTime;
use throng_observation::run::{Ending, RunInfo};
use throng_store::RunFolder;

use super::*;
use crate::http_server::{Reply, Site as _};

fn made(folder: &Path, started_at_unix_us: i64) {
    let info = RunInfo { started_at_unix_us, ..RunInfo::default() };
    RunFolder::create(folder, &info).unwrap().finish(Ending::Complete, RunTime(5_000_000)).unwrap();
}

/// The status of an answer and its text; of a stream of events nothing.
fn asked(site: &mut HistorySite, method: &str, uri: &str) -> (u16, String) {
    let request = Request::builder().method(method).uri(uri).body(()).unwrap();
    let response = match site.answer(&request) {
        Reply::Whole(response) => response,
        Reply::Later(make) => make(),
        Reply::Events(_) => return (200, String::new()),
    };
    let status = response.status().as_u16();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let body = runtime.block_on(response.into_body().collect()).unwrap().to_bytes();
    (status, String::from_utf8(body.into()).unwrap())
}

#[test]
fn a_folder_of_runs_is_a_list_with_a_page_of_each() {
    let folder = tempfile::tempdir().unwrap();
    made(&folder.path().join("old"), 1_000_000);
    made(&folder.path().join("new"), 2_000_000);
    let mut site = HistorySite::of(folder.path()).unwrap();
    let (status, list) = asked(&mut site, "GET", "/");
    assert_eq!(status, 200);
    let place = |link: &str| list.find(link).unwrap_or_else(|| panic!("{link}: {list}"));
    assert!(place("<a href=\"./new/\">new</a>") < place("<a href=\"./old/\">old</a>"));
    let (status, page) = asked(&mut site, "GET", "/old/");
    assert!(status == 200 && page.contains("id=\"part-answer\""), "{page}");
    assert_eq!(asked(&mut site, "GET", "/old/events").0, 200);
    let (status, page) = asked(&mut site, "GET", "/compare?runs=old,new");
    assert!(status == 200 && page.contains("<h1>"), "{page}");
    assert_eq!(asked(&mut site, "GET", "/trend?runs=old&runs=new").0, 200);
    for (method, uri, expect) in [
        ("GET", "/compare", 400),
        ("GET", "/compare?runs=old", 400),
        ("GET", "/compare?runs=old,gone", 400),
        ("GET", "/trend", 400),
        ("GET", "/old", 404),
        ("GET", "/old/run.db", 404),
        ("GET", "/gone/", 404),
        ("POST", "/stop", 405),
        ("DELETE", "/old/", 405),
    ] {
        assert_eq!(asked(&mut site, method, uri).0, expect, "{method} {uri}");
    }
}

#[test]
fn names_are_found_in_the_list_and_never_along_a_path() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("runs");
    let names: [&[u8]; 6] = [b"a b", b"a%20b", b"<img src=x>", b"a,b", b"line\nend", b"\xff"];
    for name in names {
        made(&folder.join(OsStr::from_bytes(name)), 1_000_000);
    }
    made(&root.path().join("outside"), 1_000_000);
    symlink(root.path().join("outside"), folder.join("link")).unwrap();
    let mut site = HistorySite::of(&folder).unwrap();
    let (_, list) = asked(&mut site, "GET", "/");
    assert!(!list.contains("<img"), "{list}");
    for address in ["a%20b", "a%2520b", "%3Cimg%20src%3Dx%3E", "a%2Cb", "line%0Aend", "%FF"] {
        assert!(list.contains(&format!("<a href=\"./{address}/\">")), "{address}: {list}");
        assert_eq!(asked(&mut site, "GET", &format!("/{address}/")).0, 200, "{address}");
        // As a form sends it: encoded once more.
        let chosen = format!("/trend?runs={}", address.replace('%', "%25"));
        assert_eq!(asked(&mut site, "GET", &chosen).0, 200, "{chosen}");
    }
    let outside = ["/../outside/", "/..%2Foutside/", "/%2e%2e/", "//", "/link/", "/./", "/%00/"];
    for uri in outside {
        assert_eq!(asked(&mut site, "GET", uri).0, 404, "{uri}");
    }
    // One that becomes a link after it was listed.
    fs::remove_dir_all(folder.join("a b")).unwrap();
    symlink(root.path().join("outside"), folder.join("a b")).unwrap();
    assert_eq!(asked(&mut site, "GET", "/a%20b/").0, 404);
}

/// The last byte of the format of `run.db` (`user_version`) in the header of a SQLite file.
const FORMAT_AT: usize = 63;

#[test]
fn folders_of_a_newer_format_and_half_written_ones_say_so_and_the_others_have_their_pages() {
    let folder = tempfile::tempdir().unwrap();
    let database = |name: &str| folder.path().join(name).join("run.db");
    for name in ["whole", "newer", "half", "empty"] {
        made(&folder.path().join(name), 1_000_000);
    }
    let mut newer = fs::read(database("newer")).unwrap();
    newer[FORMAT_AT] = 99;
    fs::write(database("newer"), newer).unwrap();
    let half = fs::read(database("half")).unwrap();
    fs::write(database("half"), &half[..half.len() / 2]).unwrap();
    fs::write(database("empty"), "").unwrap();
    let mut site = HistorySite::of(folder.path()).unwrap();
    let (status, list) = asked(&mut site, "GET", "/");
    assert!(status == 200 && list.contains("4 runs"), "{list}");
    for (name, says) in [
        ("whole", "id=\"part-charts\""),
        ("newer", "read it with a newer throng"),
        ("half", "<h1>"),
        ("empty", "This cannot be shown"),
    ] {
        let (status, page) = asked(&mut site, "GET", &format!("/{name}/"));
        assert!(status == 200 && page.contains(says), "{name}: {page}");
    }
    for of_both in ["/compare?runs=whole,newer", "/trend?runs=whole,newer"] {
        let (status, said) = asked(&mut site, "GET", of_both);
        assert!(status == 422 && said.contains("read it with a newer throng"), "{said}");
    }
}

#[test]
fn a_folder_that_is_not_there_gets_help() {
    let nowhere = tempfile::tempdir().unwrap().path().join("runs");
    let stop = found(&nowhere).unwrap_err();
    assert!(stop.error.to_string().contains("help: "), "{}", stop.error);
}

#[test]
fn a_run_itself_has_its_page_at_the_root() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    made(&run, 1_000_000);
    let source = FolderKind::of(&run).map(|kind| Source::of(kind, run.clone()));
    assert_eq!(source, Some(Source::Run(run)));
    assert_eq!(FolderKind::of(folder.path()), None);
    assert!(HistorySite::of(&folder.path().join("nowhere")).is_err());
}
