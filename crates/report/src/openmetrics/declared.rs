//! The families that no catalogue has: each is declared once, with its labels and its meaning.

use super::family::Kind;

/// A family.
#[derive(Debug)]
pub(super) struct Declared {
    /// Without the ending of its series.
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    /// With which the name ends; empty without one.
    pub(super) unit: &'static str,
    /// Its labels, as the documentation shows them.
    pub(super) labels: &'static str,
    pub(super) help: &'static str,
}

/// Declares families: each a constant, all of them in [`ALL`].
macro_rules! families {
    ($(
        $constant:ident = $kind:ident $name:literal $unit:literal [$labels:literal]
            $help:literal;
    )+) => {
        $(
            #[doc = $help]
            pub(in crate::openmetrics) const $constant: Declared = Declared {
                name: $name,
                kind: Kind::$kind,
                unit: $unit,
                labels: $labels,
                help: $help,
            };
        )+

        /// All of them.
        pub(in crate::openmetrics) const ALL: &[Declared] = &[$($constant),+];
    };
}
pub(super) use families;

/// Those of this file, and those of fleets.
pub(super) fn all() -> impl Iterator<Item = &'static Declared> {
    ALL.iter().chain(super::fleet::ALL)
}

families! {
    INFO = Info "throng" "" ["version, scenario, run"]
        "The version of throng, the name of the scenario and that of the run folder.";
    RUN_TIME = Gauge "throng_run_seconds" "seconds" [""]
        "Time of the run at the end of the last second that is whole; below 0 in the baseline of \
         the idle server.";
    RUN_PLANNED = Gauge "throng_run_planned_seconds" "seconds" [""]
        "Planned length of the run.";
    CROWD = Gauge "throng_crowd" "" ["cohort, state"]
        "Participants: intended, started, failed and left so far; connected and playing now.";
    CROWD_ICE = Gauge "throng_crowd_ice" "" ["cohort, state"]
        "Participants by the state of their ICE transport now.";
    USER_SECONDS = Counter "throng_user_seconds" "seconds" ["cohort"]
        "Seconds of participants that should have been served.";
    BAD_USER_SECONDS = Counter "throng_bad_user_seconds" "seconds" ["cohort"]
        "Those that were bad; one in which a participant received a part of its streams badly \
         counts by that part.";
    BAD_BY_CLAUSE = Counter "throng_bad_clause_user_seconds" "seconds" ["clause"]
        "Bad seconds of participants by what made them bad; one may have several reasons.";
    FAILURES = Counter "throng_failures" "" ["cohort, reason"]
        "Participants that failed, by the reason.";
    JOIN = Histogram "throng_join_seconds" "seconds" ["cohort, phase"]
        "Time from the intended join of a participant to a phase: media keys known \
         (dtls_connected), the server agreed to play (playing), first_frame, playback_started, in \
         the room of a chat (joined).";
    TRACKS = Gauge "throng_tracks" "" ["cohort, kind"]
        "Received tracks that reported in the last second.";
    TRACKS_BELOW_SOURCE = Gauge "throng_tracks_below_source_fps" "" ["cohort, kind"]
        "Received tracks whose decodable frame rate was below 0.9 of the source's.";
    TRACK_DELAY = Histogram "throng_track_relative_delay_seconds" "seconds" ["cohort, kind"]
        "Delay of frames above the least that their track has seen.";
    SENT_TRACKS = Gauge "throng_sent_tracks" "" ["cohort, kind"]
        "Tracks that participants sent in the last second.";
    PLAYERS = Gauge "throng_players" "" ["cohort"]
        "Players that reported in the last second.";
    PLAYERS_STALLED = Gauge "throng_players_stalled" "" ["cohort"]
        "Players that stalled in the last second, for however short a time.";
    PLAYERS_STARTING = Gauge "throng_players_starting" "" ["cohort"]
        "Players that waited for playback to begin, or to begin again after a seek.";
    PLAYER_BUFFER = Histogram "throng_player_buffer_seconds" "seconds" ["cohort"]
        "Media time buffered by a player, a sample each second.";
    PLAYER_LATENCY = Histogram "throng_player_latency_seconds" "seconds" ["cohort, basis"]
        "How far behind a live stream a player is, a sample each second: by the dates of the \
         playlist (program_date_time), by its end (playlist_edge), by marks of the publisher \
         (capture).";
    CHAT_MEMBERS = Gauge "throng_chat_members" "" ["cohort"]
        "Participants of a chat that reported in the last second.";
    CHAT_JOINED = Gauge "throng_chat_joined" "" ["cohort"]
        "Of them, those that were in the room at its end.";
    CHAT_DELIVERY = Histogram "throng_chat_delivery_seconds" "seconds" ["cohort"]
        "Time from the intended time of a chat message to its arrival, of those that came.";
    OBJECTIVE_MET = Gauge "throng_objective_met" "" ["objective"]
        "Whether the last 10 s meet an objective; absent while there is nothing to judge it by.";
    VERDICT = Gauge "throng_verdict" "" ["verdict"]
        "1 for what the objectives of the last 10 s come to: met, missed or not_measured.";
    SEARCH_PHASE = Gauge "throng_search_phase" "" ["phase"]
        "1 for the purpose of the current hold of a search; pause: server or generator recover; \
         over: the search has ended.";
    SEARCH_LOAD = Gauge "throng_search_load" "" [""]
        "The load that a search wants: participants, or the place of a value in its list, from 1.";
    SEARCH_JUDGED = Gauge "throng_search_judged_seconds" "seconds" [""]
        "Seconds of the current hold that were judged.";
    SEARCH_REPEAT = Gauge "throng_search_repeat" "" [""]
        "The repeat of the search, from 1.";
    SEARCH_PASSING = Gauge "throng_search_passing_load" "" [""]
        "The largest load that passed in this repeat; absent before the first.";
    SEARCH_FAILING = Gauge "throng_search_failing_load" "" [""]
        "The smallest load that failed in this repeat; absent before the first.";
    SEARCH_HOLDS = Counter "throng_search_holds" "" ["outcome"]
        "Holds that have ended: passed, failed or undecided.";
    CAPACITY = Gauge "throng_capacity" "" [""]
        "The load that the last complete repeat of a search found to be served well; absent \
         before. At least that load, where throng_search_failing_load is absent. The report judges \
         all repeats together.";
    FINDING = Gauge "throng_finding" "" ["finding"]
        "Score, of 100, of what limited the server or may have, once the run is over: in the last \
         figures that a collector gets.";
    MARKS = Counter "throng_marks" "" [""]
        "Moments of the run that somebody marked.";
    GENERATOR_CPU = Counter "throng_generator_cpu_seconds" "seconds" [""]
        "CPU time of the processes that play the crowd.";
    GENERATOR_MEMORY = Gauge "throng_generator_resident_bytes" "bytes" [""]
        "Their resident memory.";
    GENERATOR_FILES = Gauge "throng_generator_open_files" "" [""]
        "Their open descriptors.";
    GENERATOR_LAG = Gauge "throng_generator_lag_seconds" "seconds" [""]
        "How late the latest of their threads was at its deadlines in the last second, 99th \
         percentile.";
    GENERATOR_STEAL = Gauge "throng_generator_steal_ratio" "ratio" [""]
        "Steal time in the last second, share of all CPUs; of several machines the largest.";
    GENERATOR_DROPS = Counter "throng_generator_dropped_datagrams" "" [""]
        "Datagrams that the generator itself dropped, received and to be sent.";
    GENERATOR_LIMITED = Counter "throng_generator_limited_seconds" "seconds" [""]
        "Seconds in which the generator exceeded one of its own limits.";
    HOST_HOTTEST = Gauge "throng_host_hottest_thread_ratio" "ratio" ["host, process"]
        "Share of one core that the busiest thread of the processes of this name ran on, a running \
         mean of about 5 s.";
    HOST_OTHER_THREADS = Gauge "throng_host_other_threads" "" ["host, process"]
        "Threads whose figures are summed as the thread \"other\".";
    HOST_LIMIT_USED = Gauge "throng_host_limit_used_ratio" "ratio"
        ["host, metric, and those of the metric"]
        "Value of a metric divided by its limit, where one is known, of rates a running mean of \
         about 5 s; of several objects with the same labels the largest.";
    HOST_ENDED = Counter "throng_host_ended_processes" "" ["host, process"]
        "Watched processes that ended; 0 from when the first of this name is found.";
    HOST_MARKS = Counter "throng_host_marks" "" ["host"]
        "Moments marked in a host's record: by people, and by the run, of what it did.";
    LEFT_OUT = Gauge "throng_exporter_left_out_series" "" [""]
        "Series beyond 2,000, which are left out.";
}
