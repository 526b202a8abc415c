//! What a difference between a run and an access log may come from: only what the data supports.

use super::comparison::{LogAnswer, LogComparison};
use super::grouped;
use super::log::LogRequests;

/// The remarks, the most likely first.
pub(super) fn remarks(beside: &LogComparison, log: &LogRequests, has_others: bool) -> Vec<String> {
    let mut remarks = Vec::new();
    if beside.answer == LogAnswer::NothingToCompare {
        remarks.push(nothing(beside, log));
    } else if beside.missing > 0 {
        remarks.push(missing(beside, log));
    }
    if beside.surplus > 0 && beside.answer != LogAnswer::NothingToCompare {
        remarks.push(surplus(beside, log));
    }
    if beside.cut_off_in_log > 0 {
        remarks.push(format!(
            "{} responses that players cut off are in the log with a status for a client that has \
             gone (499, 408, 0)",
            grouped(beside.cut_off_in_log)
        ));
    }
    if beside.given_up > 0 {
        remarks.push(format!(
            "{} requests had no response when their players gave them up (they left, or it took \
             too long); the log has {} of them, with the status that the server decided on",
            grouped(beside.given_up),
            grouped(beside.given_up_in_log)
        ));
    }
    if log.untimed > 0 {
        remarks.push(format!(
            "{} lines have no time: they count whenever they were",
            grouped(log.untimed)
        ));
    }
    let has_more = match (has_others, log.not_listed > 0) {
        (true, true) => Some("run and log have"),
        (true, false) => Some("the run has"),
        (false, true) => Some("the log has"),
        (false, false) => None,
    };
    remarks.extend(has_more.map(|who| {
        format!(
            "{who} more URIs than are counted one by one: differences among the rest are not known"
        )
    }));
    remarks
}

fn nothing(beside: &LogComparison, log: &LogRequests) -> String {
    let count = grouped;
    if beside.ours == 0 {
        return "no request of the run, or of the chosen host and prefix, had a response".into();
    }
    if log.lines == 0 {
        return "the log is empty: it may be written through a buffer (nginx: `buffer=`, \
                `flush=`), or be another file"
            .into();
    }
    if log.unread == log.lines {
        return format!("none of the {} lines is in a supported format", count(log.lines));
    }
    if log.of_other_agents + log.without_agent() > 0 {
        return format!(
            "{} lines in the time of the run are of user agents that do not begin with `{}`: a \
             header of the scenario may set another, or a proxy does; --user-agent NAME, or \
             --user-agent '' for all",
            count(log.of_other_agents + log.without_agent()),
            log.selection.user_agent
        );
    }
    if log.elsewhere > 0 {
        let (lines, prefix) = (count(log.elsewhere), &log.selection.prefix);
        return format!(
            "none of the {lines} lines in the time of the run has a path that begins with {prefix}"
        );
    }
    "no line is of the time of the run: the log is of another time, its clock or time zone is \
     wrong, or it was rotated"
        .into()
}

fn missing(beside: &LogComparison, log: &LogRequests) -> String {
    let lacks = format!("the log lacks {} requests that were answered", grouped(beside.missing));
    // The window is a second wider than the requests.
    let (first, last) = (beside.from_unix_s + 1.0, beside.to_unix_s - 1.0);
    match log.span {
        Some((begins, _)) if begins > first + 1.0 => format!(
            "{lacks}: it begins {:.0} s after the first request; an earlier file may have the \
             rest (--access-log takes several)",
            begins - first
        ),
        Some((_, ends)) if ends < last - 1.0 => format!(
            "{lacks}: it ends {:.0} s before the last request; it may be written through a buffer \
             (nginx: `buffer=`, `flush=`), or go on in another file",
            last - ends
        ),
        _ if log.unread >= beside.missing => {
            format!("{lacks}, and {} lines are in an unsupported format", grouped(log.unread))
        }
        _ if log.without_agent() + log.of_other_agents >= beside.missing => format!(
            "{lacks}, and has {} others in the same time without the user agent `{}`: a proxy in \
             front may change it",
            grouped(log.without_agent() + log.of_other_agents),
            log.selection.user_agent
        ),
        _ => format!(
            "{lacks}, though it covers all of the run: something in front of this server answered \
             them (a cache, a CDN, another instance behind a balancer), or the server does not \
             log them"
        ),
    }
}

fn surplus(beside: &LogComparison, log: &LogRequests) -> String {
    let has = format!("the log has {} requests that the run did not make", grouped(beside.surplus));
    if !log.has_agents() {
        return format!(
            "{has}: it names no user agents, so that requests of others cannot be told apart; \
             --prefix selects by path"
        );
    }
    if log.selection.user_agent.is_empty() {
        return format!("{has}: all user agents are compared, those of others too");
    }
    format!(
        "{has}, of the user agent `{}`: another run at the same time, or a proxy that repeats \
         requests",
        log.selection.user_agent
    )
}
