//! Secrets, and where one was seen.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tempfile::TempDir;

use crate::matrix::said;
use crate::throng::{THRONG, started};

/// What all secrets begin with: one look at a file tells whether it may have one.
const BEGIN: &str = "zq7zq7";

/// A place for scenarios and runs, the secrets, and where one was seen.
pub(super) struct Law {
    folder: TempDir,
    pub(super) secrets: Vec<String>,
    /// Words of commands that are started as they are written (docs/security.md): secrets, but not
    /// in the arguments of processes.
    words: Vec<String>,
    seen: Vec<String>,
    /// The arguments of each FFmpeg that was seen.
    pub(super) publishers: Vec<String>,
}

impl Law {
    pub(super) fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            secrets: Vec::new(),
            words: Vec::new(),
            seen: Vec::new(),
            publishers: Vec::new(),
        }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A new secret, which is in no other text.
    pub(super) fn secret(&mut self, place: &str) -> String {
        let secret = self.new_secret(place);
        self.secrets.push(secret.clone());
        secret
    }

    fn new_secret(&self, place: &str) -> String {
        let number = 7_130 + self.secrets.len() + self.words.len();
        format!("{BEGIN}{place}{number}")
    }

    /// A text of the table with a secret of its own in place of each `<PLACE>`, and those of them
    /// that its server is told: not `<~PLACE>`, nor `<!PLACE>`, which is a word of a command.
    pub(super) fn filled(&mut self, name: &str, text: &str) -> (String, Vec<String>) {
        let mut parts = text.split('<');
        let (mut filled, mut told) = (parts.next().unwrap_or_default().to_owned(), Vec::new());
        for part in parts {
            let (place, rest) = part.split_once('>').expect("<PLACE>");
            let bare = place.trim_start_matches(['~', '!']);
            let secret = self.new_secret(&format!("{name}{bare}"));
            let all = if place.starts_with('!') { &mut self.words } else { &mut self.secrets };
            all.push(secret.clone());
            filled.push_str(&secret);
            filled.push_str(rest);
            told.extend((bare == place).then_some(secret));
        }
        (filled, told)
    }

    /// Looks for secrets in an output; `what` names it.
    pub(super) fn look_at(&mut self, what: &str, bytes: &[u8]) {
        let found = found_in(bytes, self.secrets.iter().chain(&self.words));
        self.seen.extend(found.into_iter().map(|secret| format!("{secret} in {what}")));
    }

    /// All files below a folder, whatever they are.
    pub(super) fn look_below(&mut self, folder: &Path) {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                self.look_below(&path);
            } else if let Ok(bytes) = std::fs::read(&path) {
                self.look_at(&path.display().to_string(), &bytes);
            }
        }
    }

    /// The arguments of all processes of this machine, but of `but`, which a child of it has too
    /// until it executes its own program.
    pub(super) fn look_at_processes(&mut self, but: Option<u32>) {
        let own = but.and_then(|process| std::fs::read(format!("/proc/{process}/cmdline")).ok());
        for entry in std::fs::read_dir("/proc").unwrap().flatten() {
            let process = entry.file_name().to_string_lossy().parse::<u32>().ok();
            if let Some(process) = process.filter(|process| Some(*process) != but)
                && let Ok(bytes) = std::fs::read(entry.path().join("cmdline"))
                && own.as_ref() != Some(&bytes)
            {
                let found = found_in(&bytes, self.secrets.iter());
                let seen = |secret| format!("{secret} in the arguments of process {process}");
                self.seen.extend(found.into_iter().map(seen));
                if bytes.starts_with(b"ffmpeg\0") {
                    self.publishers.push(String::from_utf8_lossy(&bytes).into_owned());
                }
            }
        }
    }

    /// Runs `throng ARGUMENTS` with variables, and looks at what it says and starts. If it `shows`
    /// secrets, they are among its own arguments by the test's doing.
    pub(super) fn throng(
        &mut self,
        arguments: &[&str],
        variables: &[(&str, &str)],
        shows: bool,
    ) -> Output {
        let child = started(Command::new(THRONG).args(arguments).envs(variables.iter().copied()));
        let but = shows.then(|| child.id());
        let ended = std::thread::spawn(move || child.wait_with_output().unwrap());
        while !ended.is_finished() {
            self.look_at_processes(but);
            std::thread::sleep(Duration::from_millis(20));
        }
        let output = ended.join().unwrap();
        let what = arguments.first().copied().unwrap_or_default();
        self.look_at(&format!("the output of {what}"), &output.stdout);
        self.look_at(&format!("the errors of {what}"), &output.stderr);
        output
    }

    /// Plays a scenario, and does with its folder what one can do.
    pub(super) fn holds_for(&mut self, name: &str, scenario: &str, variables: &[(&str, &str)]) {
        let file = self.path(&format!("{name}.toml"));
        let scenario = format!("{scenario}\n[run]\nduration = \"1s\"\n");
        std::fs::write(&file, scenario).unwrap();
        let place = self.folder.path().display().to_string();
        let (run, page) = (self.path(name), self.path(&format!("{name}.html")));
        let markdown = self.path(&format!("{name}.md"));
        let [file, folder, page, markdown] =
            [&file, &run, &page, &markdown].map(|path| path.to_str().unwrap().to_owned());
        let flags = ["--csv", "--details", "--plain", "--markdown", &markdown];
        let ran = self.throng(
            &[&["run", &file, "--output", &folder][..], &flags].concat(),
            variables,
            false,
        );
        assert!(run.join("run.db").is_file(), "{name}: there was no run\n{}", said(&ran));
        let mode = std::fs::metadata(&run).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700, "{name}: its folder is open to others");
        for arguments in [
            &["check", &file][..],
            &["run", &file, "--dry-run"],
            &["report", &folder, "--details", "--csv"],
            &["report", &folder, "--json"],
            &["requests", &folder],
            &["compare", &folder, &folder, "--page", &page, "--markdown", &markdown],
            &["compare", &folder, &folder, "--json"],
            &["runs", &place],
            &["rerun", &folder, "--print"],
            &["rerun", &folder],
        ] {
            self.throng(arguments, variables, false);
        }
        self.look_below(&run);
        self.look_at(&page, &std::fs::read(&page).unwrap_or_default());
        let said = std::fs::read(&markdown).unwrap();
        assert!(said.starts_with(b"### throng: "), "{}", String::from_utf8_lossy(&said));
        self.look_at(&markdown, &said);
    }

    #[track_caller]
    pub(super) fn holds(mut self) {
        self.seen.sort();
        self.seen.dedup();
        assert!(self.seen.is_empty(), "{:#?}", self.seen);
    }
}

/// The secrets that some bytes have, as they are or in base64.
fn found_in<'s>(bytes: &[u8], secrets: impl Iterator<Item = &'s String>) -> Vec<&'s String> {
    let has = |part: &Vec<u8>| bytes.windows(part.len()).any(|at| at == part.as_slice());
    if !forms(BEGIN).iter().any(has) {
        return Vec::new();
    }
    secrets.filter(|secret| forms(secret).iter().any(has)).collect()
}

/// A text, and what is the same of it in base64 whatever stands before and behind it.
fn forms(text: &str) -> Vec<Vec<u8>> {
    let in_base64 = (0..3).map(|from| {
        let rest = &text.as_bytes()[from..];
        STANDARD.encode(&rest[..rest.len() / 3 * 3]).into_bytes()
    });
    std::iter::once(text.as_bytes().to_vec()).chain(in_base64).collect()
}

#[test]
fn a_secret_is_found_in_any_text_and_in_any_base64() {
    let mut law = Law::new();
    let (filled, told) = law.filled("Whep", "url = \"<user>\" <~key> <!word>");
    assert_eq!(told, ["zq7zq7Whepuser7130"]);
    assert!(filled.ends_with("\" zq7zq7Whepkey7131 zq7zq7Whepword7132"), "{filled}");
    law.look_at("nothing", b"zq7zq7 and zq7zq7Whepuse");
    assert!(law.seen.is_empty(), "{:?}", law.seen);
    for (count, before) in ["", "m", "me", "me:"].into_iter().enumerate() {
        let encoded = STANDARD.encode(format!("{before}{}", told[0]));
        law.look_at("base64", format!("Basic {encoded}").as_bytes());
        assert_eq!(law.seen.len(), count + 1, "{before}");
    }
    law.look_at("an output", filled.as_bytes());
    assert_eq!(law.seen.len(), 7, "{:?}", law.seen);
}
