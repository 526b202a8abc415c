//! `throng requests`: the requests of a run's players, and beside a server's access log.

use std::fs::File;
use std::io::{Read, stdin};
use std::path::Path;

use throng_observation::shell;
use throng_report::csv;
use throng_report::requests::{
    LogAnswer, LogComparison, LogLine, LogRequests, LogSelection, RequestReport, text,
};
use throng_store::RunFolder;
use throng_watch::logs::Lines;
use throng_watch::logs::access::{self, UriGroups};
use throng_watch::packs;

use crate::args::Requests;
use crate::console::{CliError, Exit, print, print_json};
use crate::kept;

/// Bytes of a log that are read at a time.
const READ: usize = 256 * 1024;

pub(crate) fn requests(command: &Requests) -> Result<Exit, CliError> {
    let folder = kept::run_folder(&command.run);
    let info = RunFolder::outline(&folder).map_err(CliError::usage)?.info;
    let rows = RunFolder::http_requests(&folder).map_err(CliError::usage)?;
    let mut report = RequestReport::of(&info, &rows);
    if !command.access_log.is_empty() {
        let host = command.host.as_deref();
        let selection =
            LogSelection::of_run(&info, &rows, host, &command.prefix, &command.user_agent);
        let Some(selection) = selection else {
            return Err(CliError::usage(nothing_of(host, &report)));
        };
        let mut log = LogRequests::new(selection);
        let packs = packs::built_in();
        let kinds = UriGroups::new(packs.iter().flat_map(|pack| &pack.uri_groups))
            .map_err(CliError::usage)?;
        for path in &command.access_log {
            read(path, &kinds, &mut log)?;
        }
        report.access_log = Some(LogComparison::of(&rows, host, &log));
    }
    if command.json {
        print_json(&report.to_json());
    } else if command.csv {
        print(
            &report
                .access_log
                .as_ref()
                .map_or_else(|| csv::requests(&report), csv::requests_beside_log),
        );
    } else {
        print(&text::summary(&report, command.top));
        if let Some(beside) = report.access_log.as_ref().filter(|_| command.by_kind) {
            print(&text::accounts(&beside.accounts));
        }
    }
    Ok(match report.access_log.map(|beside| beside.answer) {
        None | Some(LogAnswer::Equal | LogAnswer::EqualButForCutOff) => Exit::Met,
        Some(LogAnswer::Differs) => Exit::Missed,
        Some(LogAnswer::NothingToCompare) => Exit::Invalid,
    })
}

/// Why there is nothing of the run to compare.
fn nothing_of(host: Option<&str>, report: &RequestReport) -> String {
    let mut hosts: Vec<&str> = report.uris.iter().map(|uri| uri.host.as_str()).collect();
    hosts.sort_unstable();
    hosts.dedup();
    match host {
        Some(host) if !hosts.is_empty() => {
            format!("--host {host}: the run has requests to {} only", hosts.join(", "))
        }
        _ => "no player of the run has made a request: only viewers of files, HLS and DASH are \
              counted"
            .to_owned(),
    }
}

/// Counts the lines of a log, of any length, piece by piece.
fn read(path: &Path, kinds: &UriGroups, log: &mut LogRequests) -> Result<(), CliError> {
    let wrong =
        |error: std::io::Error| CliError::usage(format!("cannot read {}: {error}", path.display()));
    let mut file: Box<dyn Read> = if path == Path::new("-") {
        Box::new(stdin())
    } else {
        Box::new(File::open(path).map_err(wrong)?)
    };
    let (mut lines, mut piece) = (Lines::default(), vec![0; READ]);
    let mut is_first = true;
    loop {
        let read = match file.read(&mut piece) {
            Ok(read) => read,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(wrong(error)),
        };
        let bytes = piece.get(..read).unwrap_or_default();
        if std::mem::take(&mut is_first) && bytes.starts_with(&[0x1f, 0x8b]) {
            let message = format!(
                "{} is compressed: zcat {} | throng requests RUN --access-log -",
                path.display(),
                shell::path(path)
            );
            return Err(CliError::usage(message));
        }
        if bytes.is_empty() {
            lines.finish(|line| count(line.bytes, kinds, log));
            return Ok(());
        }
        lines.push(bytes, |line| count(line.bytes, kinds, log));
    }
}

fn count(line: &[u8], kinds: &UriGroups, log: &mut LogRequests) {
    let Some(line) = access::parse(line) else { return log.add(None) };
    log.add(Some(LogLine {
        method: &line.method,
        path: &line.path,
        status: line.status,
        bytes: line.bytes,
        kind: kinds.name(kinds.of(&line)),
        at_unix_s: line.at_unix_s,
        user_agent: line.user_agent.as_deref(),
    }));
}
