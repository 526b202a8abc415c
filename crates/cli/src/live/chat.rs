//! Participants of a chat in the live views: rooms and messages in place of frames.

use throng_engine::LiveSnapshot;
use throng_engine::live::LiveChat;
use throng_observation::ChatRow;
use throng_observation::units::{bit_rate, bytes, duration_ms};

use super::words::{Chart, last, ms, quantiles, quantiles_ms};

/// Charts of a chat.
pub(super) fn charts(live: &LiveSnapshot, chat: &ChatRow) -> [Chart; 4] {
    let (counters, last) = (&chat.counters, last(live));
    [
        (
            format!("Delivery p95 {}", ms(chat.delay_us.quantile_in(0.95, 1e3))),
            |point| point.delivery_ms_p95.unwrap_or(0.0),
            true,
        ),
        (
            format!("Missing {} of {} messages", counters.messages_missing, counters.messages_due),
            |point| point.messages_missing as f64,
            true,
        ),
        (
            format!("In the room {} of {}", chat.joined, chat.members),
            |point| point.in_room.map_or(0.0, f64::from),
            false,
        ),
        (
            format!(
                "Received {} in {} protocol messages",
                bit_rate(last.received_bps),
                counters.frames_received
            ),
            |point| point.received_bps,
            false,
        ),
    ]
}

/// The line of the crowd that viewers have their ICE states in.
pub(super) fn crowd(live: &LiveSnapshot) -> String {
    let Some(chat) = &live.chat else { return String::new() };
    let so_far = &chat.so_far;
    format!(
        "messages  sent {}  due {}  missing {}   reconnects {}",
        so_far.messages_sent, so_far.messages_due, so_far.messages_missing, so_far.reconnects
    )
}

/// How long joins took.
pub(super) fn joins(live: &LiveSnapshot) -> String {
    format!("join to in the room {}", quantiles_ms(live.joined_ms.as_ref()))
}

/// The lines of a summary block.
pub(super) fn lines(live: &LiveSnapshot, chat: &LiveChat) -> String {
    let LiveChat { last, so_far } = chat;
    let ChatRow { members, joined, occupants_max, counters, .. } = last;
    let reconnects = match (so_far.reconnects, so_far.resumes) {
        (0, _) => String::new(),
        (reconnects, 0) => format!(", {reconnects} reconnects"),
        (reconnects, resumes) => format!(", {reconnects} reconnects, {resumes} of them resumed"),
    };
    // A chat by template does not say who is there.
    let others = match occupants_max {
        0 => String::new(),
        most => format!(", with up to {most} others"),
    };
    format!(
        "  chat       {joined} of {members} in the room{others}; joined {}\n             delivery \
         {}, {} due, {} missing; {} received in {} protocol messages ({} presences)\n             \
         so far {} sent, {} due, {} missing, {} twice, {} out of order; {}{reconnects}\n",
        quantiles(live.joined_ms, duration_ms),
        quantiles(last.delay_us.quantiles(1e3), duration_ms),
        counters.messages_due,
        counters.messages_missing,
        bytes(counters.bytes_received as f64),
        counters.frames_received,
        counters.presences_received,
        so_far.messages_sent,
        so_far.messages_due,
        so_far.messages_missing,
        so_far.duplicates,
        so_far.out_of_order,
        bytes(so_far.bytes_received as f64),
    )
}
