//! Participants of a chat.

use std::collections::HashSet;

use throng_observation::run::CohortId;
use throng_observation::{ChatInterval, ChatRow};

use super::{Family, Interval, OpenSecond};

#[derive(Default)]
pub(in crate::collector) struct Members {
    row: ChatRow,
    ids: HashSet<u32>,
}

impl Interval for ChatInterval {
    type Open = Members;
    type Row = ChatRow;

    fn family(second: &mut OpenSecond) -> &mut Family<Self> {
        &mut second.chat
    }

    fn add_to(&self, open: &mut Members, id: u32) {
        // The rest of a second, with which a participant ends, may count to the same as the
        // interval before.
        let is_first = open.ids.insert(id);
        let row = &mut open.row;
        row.members += u32::from(is_first);
        row.joined += u32::from(is_first && self.is_joined);
        row.occupants_max = row.occupants_max.max(self.occupants);
        row.counters += self.counters;
        self.delays_us.iter().for_each(|us| row.delay_us.record(*us));
    }

    fn rows(open: Members, second: i64, cohort: CohortId) -> Vec<ChatRow> {
        vec![ChatRow { second, cohort, ..open.row }]
    }
}
