//! Measurements of participants of a chat: a table that exists only in runs that have one.

use throng_observation::ChatRow;

use crate::table::{Stored, Sums, columns};

columns! { ChatRow {
    second, cohort, members, joined, occupants_max, delay_us, counters as Sums,
} }

impl Stored for ChatRow {
    const TABLE: &'static str = "chat";
    const IS_OF_CROWD: bool = true;
    const ORDER: &'static str = "second, cohort";
}
