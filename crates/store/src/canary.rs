//! Measurements of a run's browsers: tables that exist only in runs with browsers.

use rusqlite::Connection;
use throng_observation::canary::{CanaryBrowserRow, CanaryData, CanarySecondRow};

use crate::table::{Stored, columns, list};

columns! { CanaryBrowserRow {
    browser, version, intended_at = "intended_us", connected_at = "connected_us",
    first_frame_at = "first_frame_us", ended_at = "ended_us", failure, candidates_refused,
    failed_at = "failed_us" or "ended_us", failure_is_own or "0",
} }

impl Stored for CanaryBrowserRow {
    const TABLE: &'static str = "canary_browser";
    const IS_OF_CROWD: bool = false;
    const KEY: &'static str = "browser";
}

columns! { CanarySecondRow {
    second, browser, video_tracks, video_active_us, frames_decoded, frames_dropped,
    video_packets_received, video_packets_lost, video_bytes, video_jitter_us, jitter_buffer_us,
    jitter_buffer_emitted, freeze_count, freeze_us, decode_us, nack_sent, pli_sent, audio_tracks,
    audio_packets_received, audio_packets_lost, audio_bytes, frames_sent, bytes_sent, cpu_us,
    video_packets_repeated or "0", video_silent_us or "0", late_max_us or "0",
    host_cpu_ratio or "NULL",
} }

impl Stored for CanarySecondRow {
    const TABLE: &'static str = "canary";
    const IS_OF_CROWD: bool = false;
    const KEY: &'static str = "second, browser";
}

/// Reads everything about browsers; empty in a run without browsers.
pub(crate) fn read_all(db: &Connection) -> rusqlite::Result<CanaryData> {
    Ok(CanaryData { browsers: list(db)?, seconds: list(db)? })
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;
    use throng_observation::RunTime;
    use throng_observation::canary::CanaryRow;
    use throng_observation::run::{Ending, Row, RunInfo};

    use super::*;
    use crate::RunFolder;

    #[test]
    fn what_browsers_saw_reads_back_and_a_run_without_them_has_no_tables() {
        let folder = tempfile::tempdir().unwrap();
        let mut writer =
            RunFolder::create(folder.path().join("none"), &RunInfo::default()).unwrap();
        writer.commit().unwrap();
        writer.finish(Ending::Complete, RunTime(1)).unwrap();
        let none = RunFolder::read(folder.path().join("none")).unwrap();
        assert!(none.canary.browsers.is_empty() && none.canary.seconds.is_empty());

        let mut writer = RunFolder::create(folder.path().join("run"), &RunInfo::default()).unwrap();
        let mut browser =
            CanaryBrowserRow { version: "Chrome/1".into(), ..CanaryBrowserRow::default() };
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
        assert_eq!(
            older.canary.seconds[0].host_cpu_ratio, None,
            "folders of earlier versions are read"
        );
        assert_eq!(older.canary.browsers[0].failed_at, older.canary.browsers[0].ended_at);
    }
}
