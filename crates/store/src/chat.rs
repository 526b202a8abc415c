//! Measurements of participants of a chat: a table that exists only in runs that have one.

use rusqlite::Transaction;
use throng_observation::{ChatCounters, ChatRow};

use crate::table::{Stored, Sums, columns, create, put};

columns! { ChatCounters {
    messages_due, messages_missing, duplicates, out_of_order, messages_received, messages_sent,
    messages_unsent, stanzas_received, stanzas_sent, presences_received, vcards_received,
    bytes_received, bytes_sent, reconnects, resumes or "0", nick_changes or "0",
} }

columns! { ChatRow {
    second, cohort, members, joined, occupants_max, delay_us, counters as Sums,
} }

impl Stored for ChatRow {
    const TABLE: &'static str = "chat";
    const ORDER: &'static str = "second, cohort";
    const MAY_BE_ABSENT: bool = true;
}

/// Writes the pending rows; creates the table with the first of them.
pub(crate) fn put_all(db: &Transaction<'_>, waiting: &[ChatRow]) -> rusqlite::Result<()> {
    if waiting.is_empty() {
        return Ok(());
    }
    db.execute_batch(&create::<ChatRow>())?;
    put(db, waiting)
}
