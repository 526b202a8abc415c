//! What a merge takes, and what became of a row.

/// What rows of a run can be about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MergeLimits {
    /// Cohorts of the scenario.
    pub cohorts: u16,
    /// The last second that the run can have: its planned end, and some time for its participants
    /// to leave.
    pub second_max: i64,
    /// Participants that the run can have, those that a search adds included.
    pub participants: u32,
}

/// What became of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It is, or will be, in the merged rows.
    Yes,
    /// Its second was closed before, or its worker had ended: it is not in the merged rows.
    Late,
    /// It cannot be; it is not in the merged rows.
    Refused(Refusal),
}

/// Why a row cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The fleet has no such worker.
    #[error("the fleet has no worker of this number")]
    UnknownWorker,
    /// The run has no such second, cohort or participant.
    #[error("the row has a second, cohort or participant that the run does not have")]
    OutOfRun,
    /// The participant is played by another worker.
    #[error("the row is about a participant of another worker")]
    NotItsParticipant,
    /// The worker sends more than any engine does.
    #[error("the worker has sent more rows of this kind than are taken from one")]
    TooMany,
    /// Only the coordinator makes such rows.
    #[error("rows of this kind come from the coordinator only")]
    NotAWorkers,
}
