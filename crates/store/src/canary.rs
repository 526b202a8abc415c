//! What browsers among the crowd saw: tables that are there only where there were browsers.

use rusqlite::types::Value;
use rusqlite::{Connection, Row, Transaction};
use throng_observation::RunTime;
use throng_observation::canary::{BrowserId, CanaryBrowserRow, CanaryData, CanarySecondRow};

use crate::reader::{known, list};
use crate::rows::{Cells, blob, int, opt, put};
use crate::waiting::WaitingCanary;

/// Columns of `canary_browser`.
const BROWSER: [&str; 10] = [
    "browser",
    "version",
    "intended_us",
    "connected_us",
    "first_frame_us",
    "ended_us",
    "failure",
    "candidates_refused",
    "failed_us",
    "failure_is_own",
];

/// Columns of `canary`.
const SECOND: [&str; 28] = [
    "second",
    "browser",
    "video_tracks",
    "video_active_us",
    "frames_decoded",
    "frames_dropped",
    "video_packets_received",
    "video_packets_lost",
    "video_bytes",
    "video_jitter_us",
    "jitter_buffer_us",
    "jitter_buffer_emitted",
    "freeze_count",
    "freeze_us",
    "decode_us",
    "nack_sent",
    "pli_sent",
    "audio_tracks",
    "audio_packets_received",
    "audio_packets_lost",
    "audio_bytes",
    "frames_sent",
    "bytes_sent",
    "cpu_us",
    "video_packets_repeated",
    "video_silent_us",
    "late_max_us",
    "host_cpu_ratio",
];

/// Columns that folders of earlier versions do not have, and what stands for them.
const NEWER: [(&str, &str); 6] = [
    ("failed_us", "ended_us"),
    ("failure_is_own", "0"),
    ("video_packets_repeated", "0"),
    ("video_silent_us", "0"),
    ("late_max_us", "0"),
    ("host_cpu_ratio", "NULL"),
];

const CREATE: &str = "CREATE TABLE IF NOT EXISTS canary_browser (browser INTEGER PRIMARY KEY, version TEXT NOT NULL,
    intended_us INTEGER NOT NULL, connected_us INTEGER, first_frame_us INTEGER, ended_us INTEGER, failure TEXT,
    candidates_refused INTEGER NOT NULL, failed_us INTEGER, failure_is_own INTEGER NOT NULL) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS canary (second INTEGER NOT NULL, browser INTEGER NOT NULL, video_tracks INTEGER NOT NULL,
    video_active_us INTEGER NOT NULL, frames_decoded INTEGER NOT NULL, frames_dropped INTEGER NOT NULL,
    video_packets_received INTEGER NOT NULL, video_packets_lost INTEGER NOT NULL, video_bytes INTEGER NOT NULL,
    video_jitter_us BLOB, jitter_buffer_us INTEGER NOT NULL, jitter_buffer_emitted INTEGER NOT NULL,
    freeze_count INTEGER NOT NULL, freeze_us INTEGER NOT NULL, decode_us INTEGER NOT NULL, nack_sent INTEGER NOT NULL,
    pli_sent INTEGER NOT NULL, audio_tracks INTEGER NOT NULL, audio_packets_received INTEGER NOT NULL,
    audio_packets_lost INTEGER NOT NULL, audio_bytes INTEGER NOT NULL, frames_sent INTEGER NOT NULL,
    bytes_sent INTEGER NOT NULL, cpu_us INTEGER NOT NULL,
    video_packets_repeated INTEGER NOT NULL, video_silent_us INTEGER NOT NULL, late_max_us INTEGER NOT NULL,
    host_cpu_ratio REAL, PRIMARY KEY (second, browser)) WITHOUT ROWID;";

/// Writes what waits.
pub(crate) fn put_all(db: &Transaction<'_>, waiting: &WaitingCanary) -> rusqlite::Result<()> {
    if waiting.len() == 0 {
        return Ok(());
    }
    db.execute_batch(CREATE)?;
    put(db, "canary_browser", &BROWSER, waiting.browsers.values(), browser)?;
    put(db, "canary", &SECOND, &waiting.seconds, second)
}

fn browser(row: &CanaryBrowserRow) -> Vec<Value> {
    let at = |at: Option<RunTime>| opt(at.map(|at| at.0));
    vec![
        i64::from(row.browser.0).into(),
        row.version.clone().into(),
        row.intended_at.0.into(),
        at(row.connected_at),
        at(row.first_frame_at),
        at(row.ended_at),
        opt(row.failure.clone()),
        i64::from(row.candidates_refused).into(),
        at(row.failed_at),
        i64::from(row.failure_is_own).into(),
    ]
}

fn second(row: &CanarySecondRow) -> Vec<Value> {
    vec![
        row.second.into(),
        i64::from(row.browser.0).into(),
        i64::from(row.video_tracks).into(),
        int(row.video_active_us),
        int(row.frames_decoded),
        int(row.frames_dropped),
        int(row.video_packets_received),
        row.video_packets_lost.into(),
        int(row.video_bytes),
        blob(&row.video_jitter_us),
        int(row.jitter_buffer_us),
        int(row.jitter_buffer_emitted),
        int(row.freeze_count),
        int(row.freeze_us),
        int(row.decode_us),
        int(row.nack_sent),
        int(row.pli_sent),
        i64::from(row.audio_tracks).into(),
        int(row.audio_packets_received),
        row.audio_packets_lost.into(),
        int(row.audio_bytes),
        int(row.frames_sent),
        int(row.bytes_sent),
        int(row.cpu_us),
        int(row.video_packets_repeated),
        int(row.video_silent_us),
        int(row.late_max_us),
        opt(row.host_cpu_ratio),
    ]
}

/// Everything about browsers; nothing where there were none.
pub(crate) fn read_all(db: &Connection) -> rusqlite::Result<CanaryData> {
    let has_table = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'canary'";
    if db.query_row(has_table, [], |row| row.get::<_, i64>(0))? == 0 {
        return Ok(CanaryData::default());
    }
    Ok(CanaryData {
        browsers: list(
            db,
            "canary_browser",
            &known(db, "canary_browser", &BROWSER, &NEWER)?,
            "browser",
            read_browser,
        )?,
        seconds: list(db, "canary", &known(db, "canary", &SECOND, &NEWER)?, "second, browser", read_second)?,
    })
}

fn read_browser(row: &Row<'_>) -> rusqlite::Result<CanaryBrowserRow> {
    let mut c = Cells::of(row);
    Ok(CanaryBrowserRow {
        browser: BrowserId(c.take()?),
        version: c.take()?,
        intended_at: RunTime(c.take()?),
        connected_at: c.take::<Option<i64>>()?.map(RunTime),
        first_frame_at: c.take::<Option<i64>>()?.map(RunTime),
        ended_at: c.take::<Option<i64>>()?.map(RunTime),
        failure: c.take()?,
        candidates_refused: c.take()?,
        failed_at: c.take::<Option<i64>>()?.map(RunTime),
        failure_is_own: c.take()?,
    })
}

fn read_second(row: &Row<'_>) -> rusqlite::Result<CanarySecondRow> {
    let mut c = Cells::of(row);
    Ok(CanarySecondRow {
        second: c.take()?,
        browser: BrowserId(c.take()?),
        video_tracks: c.take()?,
        video_active_us: c.count()?,
        frames_decoded: c.count()?,
        frames_dropped: c.count()?,
        video_packets_received: c.count()?,
        video_packets_lost: c.take()?,
        video_bytes: c.count()?,
        video_jitter_us: c.distribution()?,
        jitter_buffer_us: c.count()?,
        jitter_buffer_emitted: c.count()?,
        freeze_count: c.count()?,
        freeze_us: c.count()?,
        decode_us: c.count()?,
        nack_sent: c.count()?,
        pli_sent: c.count()?,
        audio_tracks: c.take()?,
        audio_packets_received: c.count()?,
        audio_packets_lost: c.take()?,
        audio_bytes: c.count()?,
        frames_sent: c.count()?,
        bytes_sent: c.count()?,
        cpu_us: c.count()?,
        video_packets_repeated: c.count()?,
        video_silent_us: c.count()?,
        late_max_us: c.count()?,
        host_cpu_ratio: c.take()?,
    })
}

#[cfg(test)]
mod tests {
    use throng_observation::canary::CanaryRow;
    use throng_observation::run::{Ending, Row, RunInfo};

    use super::*;
    use crate::RunFolder;

    #[test]
    fn the_page_names_every_column() {
        let page = include_str!("../../../docs/run-folder.md");
        for column in BROWSER.iter().chain(&SECOND) {
            assert!(page.contains(&format!("`{column}`")), "{column}");
        }
    }

    #[test]
    fn what_browsers_saw_reads_back_and_a_run_without_them_has_no_tables() {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = RunFolder::create(folder.path().join("none"), &RunInfo::default()).unwrap();
        writer.commit().unwrap();
        writer.finish(Ending::Complete, RunTime(1)).unwrap();
        let none = RunFolder::read(folder.path().join("none")).unwrap();
        assert!(none.canary.browsers.is_empty() && none.canary.seconds.is_empty());

        let mut writer = RunFolder::create(folder.path().join("run"), &RunInfo::default()).unwrap();
        let mut browser = CanaryBrowserRow { version: "Chrome/1".into(), ..CanaryBrowserRow::default() };
        writer.write(Row::Canary(CanaryRow::Browser(browser.clone())));
        let mut second = CanarySecondRow {
            second: 7,
            frames_decoded: 30,
            video_packets_lost: -2,
            host_cpu_ratio: Some(0.25),
            ..CanarySecondRow::default()
        };
        second.video_jitter_us.record(4_000);
        writer.write(Row::Canary(CanaryRow::Second(Box::new(second.clone()))));
        writer.commit().unwrap();
        browser.failure = Some("it went".into());
        (browser.failed_at, browser.failure_is_own) = (Some(RunTime(6)), true);
        browser.connected_at = Some(RunTime(5));
        writer.write(Row::Canary(CanaryRow::Browser(browser.clone())));
        writer.finish(Ending::Complete, RunTime(1)).unwrap();
        let run = RunFolder::read(folder.path().join("run")).unwrap();
        assert_eq!(run.canary.browsers, [browser]);
        let [read] = run.canary.seconds.as_slice() else { panic!("{:?}", run.canary.seconds) };
        assert_eq!((read.second, read.frames_decoded, read.video_packets_lost), (7, 30, -2));
        assert_eq!(read.video_jitter_us.quantile(0.5), second.video_jitter_us.quantile(0.5));
        assert_eq!(read.host_cpu_ratio, Some(0.25));

        let db = Connection::open(folder.path().join("run/run.db")).unwrap();
        db.execute_batch(
            "ALTER TABLE canary DROP COLUMN host_cpu_ratio; ALTER TABLE canary DROP COLUMN late_max_us;
             ALTER TABLE canary_browser DROP COLUMN failure_is_own; ALTER TABLE canary_browser DROP COLUMN failed_us;",
        )
        .unwrap();
        drop(db);
        let older = RunFolder::read(folder.path().join("run")).unwrap();
        assert_eq!(older.canary.seconds[0].host_cpu_ratio, None, "folders of earlier versions are read");
        assert_eq!(older.canary.browsers[0].failed_at, older.canary.browsers[0].ended_at);
    }
}
