//! Measurements of participants of a chat: a table that exists only in runs that have one.

use rusqlite::Transaction;
use throng_observation::ChatRow;

use crate::table::{Stored, Sums, columns, create, put};

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
