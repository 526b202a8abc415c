//! The tables of `run.db`, format 1. `docs/run-folder.md` says what the columns mean.

/// `PRAGMA application_id`: "thrn", so that `file` and the reader can tell a run from any other database.
pub(crate) const APPLICATION_ID: i32 = 0x7468_726e;

/// The columns of a [`throng_observation::TrackCounters`], in the order in which `rows` binds and reads them.
pub(crate) const COUNTERS: [&str; 22] = [
    "packets_received",
    "payload_bytes",
    "header_bytes",
    "wire_bytes",
    "packets_lost",
    "packets_late",
    "packets_duplicate",
    "packets_reordered",
    "packets_recovered",
    "nack_sent",
    "pli_sent",
    "fir_sent",
    "frames_complete",
    "frames_decodable",
    "key_frames",
    "frames_dropped",
    "freeze_count",
    "freeze_us",
    "active_us",
    "packets_discarded",
    "missing_us",
    "rtx_packets_received",
];

/// Columns of `crowd`.
pub(crate) const CROWD: [&str; 14] = [
    "second",
    "cohort",
    "intended",
    "started",
    "connected",
    "playing",
    "failed",
    "left_orderly",
    "ice_new",
    "ice_checking",
    "ice_connected",
    "ice_disconnected",
    "ice_failed",
    "ice_closed",
];

/// Columns of `series` before its counters.
pub(crate) const SERIES: [&str; 14] = [
    "second",
    "cohort",
    "kind",
    "tracks",
    "tracks_below_source_fps",
    "source_fps_milli",
    "relative_delay_us",
    "absolute_delay_us",
    "capture_basis",
    "absolute_delay_negative",
    "jitter_us",
    "fps_milli",
    "loss_ppm",
    "oven_rtc_tester_delay_us",
];

/// Columns of `sent`.
pub(crate) const SENT: [&str; 14] = [
    "second",
    "cohort",
    "kind",
    "tracks",
    "packets_sent",
    "payload_bytes",
    "wire_bytes",
    "retransmitted_packets",
    "retransmitted_bytes",
    "frames_sent",
    "key_frames_sent",
    "nack_received",
    "pli_received",
    "fir_received",
];

/// Columns of `participant`; a phase's column is its key with `_us`.
pub(crate) const PARTICIPANT: [&str; 17] = [
    "participant",
    "cohort",
    "intended_us",
    "ended_us",
    "outcome",
    "failure_reason",
    "failure_detail",
    "local_address",
    "started_us",
    "resolved_us",
    "connected_us",
    "secured_us",
    "negotiated_us",
    "ice_connected_us",
    "dtls_connected_us",
    "first_packet_us",
    "first_frame_us",
];

/// Columns of `track` before its counters.
pub(crate) const TRACK: [&str; 13] = [
    "participant",
    "track",
    "kind",
    "codec",
    "sender",
    "first_frame_us",
    "fps",
    "jitter_us",
    "oven_rtc_tester_delay_us",
    "relative_delay_us",
    "absolute_delay_us",
    "capture_basis",
    "absolute_delay_negative",
];

/// Columns of `layer_switch`.
pub(crate) const LAYER_SWITCH: [&str; 7] =
    ["participant", "track", "layer", "requested_us", "shown_us", "width", "height"];

/// Columns of `generator`.
pub(crate) const GENERATOR: [&str; 13] = [
    "second",
    "thread",
    "cpu_us",
    "run_queue_wait_us",
    "lag_p99_us",
    "lag_max_us",
    "socket_drops",
    "send_drops",
    "sent_bytes",
    "rss_bytes",
    "open_fds",
    "steal_ratio",
    "observations_dropped",
];

/// Columns of `event`.
pub(crate) const EVENT: [&str; 5] = ["at_us", "participant", "kind", "count", "detail"];

/// Columns of `host`.
pub(crate) const HOST: [&str; 6] =
    ["host", "name", "facts", "clock_error_us", "watcher_cpu_us", "watcher_rss_bytes"];

/// Columns of `host_series`. `upper_limit`, because LIMIT is a word of SQL.
pub(crate) const HOST_SERIES: [&str; 6] = ["series", "host", "metric", "unit", "labels", "upper_limit"];

/// Columns of `host_sample`.
pub(crate) const HOST_SAMPLE: [&str; 3] = ["at_us", "series", "value"];

/// Columns of `host_event`.
pub(crate) const HOST_EVENT: [&str; 4] = ["host", "at_us", "kind", "detail"];

/// Columns of `host_profile`.
pub(crate) const HOST_PROFILE: [&str; 8] =
    ["host", "moment", "started_at_us", "duration_us", "frequency_hz", "method", "samples_lost", "limits"];

/// Columns of `host_profile_frame`.
pub(crate) const HOST_PROFILE_FRAME: [&str; 4] = ["profile", "frame", "symbol", "module"];

/// Columns of `host_profile_stack`.
pub(crate) const HOST_PROFILE_STACK: [&str; 7] =
    ["profile", "stack", "pid", "tid", "thread", "count", "frames"];

/// The tables of watched hosts. A folder from before them has none, which reads as a run without hosts.
///
/// Samples are keyed by time first: they come in order of time, so each second goes to the end of the tree; by series
/// first it would rewrite a page for each of several thousand series every second. `NUMERIC` keeps whole values as
/// integers of a byte or two.
const CREATE_HOST: &str = "
         CREATE TABLE host (host INTEGER PRIMARY KEY, name TEXT NOT NULL, facts TEXT NOT NULL,
             clock_error_us INTEGER NOT NULL, watcher_cpu_us INTEGER NOT NULL, watcher_rss_bytes INTEGER NOT NULL);
         CREATE TABLE host_series (series INTEGER PRIMARY KEY, host INTEGER NOT NULL, metric TEXT NOT NULL,
             unit TEXT NOT NULL, labels TEXT NOT NULL, upper_limit REAL);
         CREATE TABLE host_sample (at_us INTEGER NOT NULL, series INTEGER NOT NULL, value NUMERIC,
             PRIMARY KEY (at_us, series)) WITHOUT ROWID;
         CREATE TABLE host_event (host INTEGER NOT NULL, at_us INTEGER NOT NULL, kind TEXT NOT NULL,
             detail TEXT NOT NULL);
         CREATE TABLE host_profile (profile INTEGER PRIMARY KEY, host INTEGER NOT NULL, moment TEXT NOT NULL,
             started_at_us INTEGER NOT NULL, duration_us INTEGER NOT NULL, frequency_hz INTEGER NOT NULL,
             method TEXT NOT NULL, samples_lost INTEGER NOT NULL, limits TEXT NOT NULL);
         CREATE TABLE host_profile_frame (profile INTEGER NOT NULL, frame INTEGER NOT NULL, symbol TEXT NOT NULL,
             module TEXT NOT NULL, PRIMARY KEY (profile, frame)) WITHOUT ROWID;
         CREATE TABLE host_profile_stack (profile INTEGER NOT NULL, stack INTEGER NOT NULL, pid INTEGER NOT NULL,
             tid INTEGER NOT NULL, thread TEXT NOT NULL, count INTEGER NOT NULL, frames TEXT NOT NULL,
             PRIMARY KEY (profile, stack)) WITHOUT ROWID;";

/// The statements that make an empty run.
pub(crate) fn create() -> String {
    let integers =
        |names: &[&str]| names.iter().map(|n| format!("{n} INTEGER NOT NULL")).collect::<Vec<_>>().join(", ");
    let counters = integers(&COUNTERS);
    format!(
        "CREATE TABLE info (key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;
         CREATE TABLE crowd ({crowd});
         CREATE TABLE series (second INTEGER NOT NULL, cohort INTEGER NOT NULL, kind TEXT, tracks INTEGER NOT NULL,
             tracks_below_source_fps INTEGER NOT NULL, source_fps_milli INTEGER, relative_delay_us BLOB,
             absolute_delay_us BLOB, capture_basis TEXT, absolute_delay_negative INTEGER NOT NULL, jitter_us BLOB, fps_milli BLOB, loss_ppm BLOB, oven_rtc_tester_delay_us BLOB, {counters});
         CREATE TABLE sent (second INTEGER NOT NULL, cohort INTEGER NOT NULL, kind TEXT NOT NULL, {sent});
         CREATE TABLE participant (participant INTEGER PRIMARY KEY, cohort INTEGER NOT NULL,
             intended_us INTEGER NOT NULL, ended_us INTEGER, outcome TEXT, failure_reason TEXT, failure_detail TEXT,
             local_address TEXT, {phases});
         CREATE TABLE track (participant INTEGER NOT NULL, track INTEGER NOT NULL, kind TEXT NOT NULL,
             codec TEXT NOT NULL, sender TEXT, first_frame_us INTEGER, fps REAL, jitter_us INTEGER, oven_rtc_tester_delay_us INTEGER, relative_delay_us BLOB,
             absolute_delay_us BLOB, capture_basis TEXT, absolute_delay_negative INTEGER NOT NULL, {counters},
             PRIMARY KEY (participant, track)) WITHOUT ROWID;
         CREATE TABLE layer_switch (participant INTEGER NOT NULL, track INTEGER NOT NULL, layer TEXT NOT NULL,
             requested_us INTEGER NOT NULL, shown_us INTEGER, width INTEGER NOT NULL, height INTEGER NOT NULL);
         CREATE TABLE generator (second INTEGER NOT NULL, thread INTEGER, cpu_us INTEGER NOT NULL,
             run_queue_wait_us INTEGER NOT NULL, lag_p99_us INTEGER NOT NULL, lag_max_us INTEGER NOT NULL,
             socket_drops INTEGER NOT NULL, send_drops INTEGER NOT NULL, sent_bytes INTEGER NOT NULL,
             rss_bytes INTEGER NOT NULL,
             open_fds INTEGER NOT NULL, steal_ratio REAL NOT NULL, observations_dropped INTEGER NOT NULL);
         CREATE TABLE event (at_us INTEGER NOT NULL, participant INTEGER, kind TEXT NOT NULL,
             count INTEGER NOT NULL, detail TEXT NOT NULL);{CREATE_HOST}{search}",
        search = crate::search::CREATE,
        crowd = integers(&CROWD),
        sent = integers(SENT.get(3..).unwrap_or_default()),
        phases = PARTICIPANT.iter().skip(8).map(|n| format!("{n} INTEGER")).collect::<Vec<_>>().join(", "),
    )
}

/// `INSERT OR REPLACE INTO table (columns) VALUES (?1, …)`.
pub(crate) fn insert(table: &str, columns: &[&str]) -> String {
    let marks = vec!["?"; columns.len()].join(", ");
    format!("INSERT OR REPLACE INTO {table} ({}) VALUES ({marks})", columns.join(", "))
}

/// `SELECT columns FROM table ORDER BY order`.
pub(crate) fn select(table: &str, columns: &[&str], order: &str) -> String {
    format!("SELECT {} FROM {table} ORDER BY {order}", columns.join(", "))
}
