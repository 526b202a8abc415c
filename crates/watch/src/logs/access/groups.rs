//! Groups requests by URI: the first matching rule names the group.

use regex::bytes::Regex;
use throng_observation::pack::UriGroupRule;

use super::AccessLine;
use crate::packs::compile;

/// Maximum number of groups, including the group of all other requests.
pub const GROUPS_MAX: usize = 64;

/// The group of requests that match no rule.
const OTHER: &str = "other";

/// Why rules do not compile.
#[derive(Debug, thiserror::Error)]
#[error("uri group `{group}`: {reason}")]
pub struct GroupError {
    /// Name of the group.
    pub group: String,
    /// What is wrong and how to fix it.
    pub reason: String,
}

/// Compiled rules.
#[derive(Debug)]
pub struct UriGroups {
    rules: Vec<Rule>,
    names: Vec<String>,
}

#[derive(Debug)]
struct Rule {
    group: usize,
    prefix: Option<String>,
    regex: Option<Regex>,
    status: Option<u16>,
}

impl Default for UriGroups {
    /// All requests in one group.
    fn default() -> Self {
        Self { rules: Vec::new(), names: vec![OTHER.to_owned()] }
    }
}

impl UriGroups {
    /// Compiles rules; the user's come first, and the first match counts.
    ///
    /// # Errors
    /// With the invalid rule.
    pub fn new<'a>(rules: impl IntoIterator<Item = &'a UriGroupRule>) -> Result<Self, GroupError> {
        let mut groups = Self::default();
        for rule in rules {
            groups.add(rule).map_err(|reason| GroupError { group: rule.group.clone(), reason })?;
        }
        Ok(groups)
    }

    fn add(&mut self, rule: &UriGroupRule) -> Result<(), String> {
        if rule.prefix.is_none() && rule.regex.is_none() && rule.status.is_none() {
            return Err("no condition: give `prefix`, `regex` or `status`".into());
        }
        let group = match self.names.iter().position(|name| *name == rule.group) {
            Some(group) => group,
            None if self.names.len() >= GROUPS_MAX => {
                return Err(format!("too many groups: at most {GROUPS_MAX} including `{OTHER}`"));
            }
            None => {
                self.names.push(rule.group.clone());
                self.names.len() - 1
            }
        };
        let regex = rule.regex.as_deref().map(compile).transpose()?;
        self.rules.push(Rule { group, prefix: rule.prefix.clone(), regex, status: rule.status });
        Ok(())
    }

    /// The index of a request's group.
    #[must_use]
    pub fn of(&self, line: &AccessLine<'_>) -> usize {
        self.rules.iter().find(|rule| rule.holds(line)).map_or(0, |rule| rule.group)
    }

    /// The index of the group with this name.
    pub(super) fn place(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|known| known == name)
    }

    /// The name of the group with this index.
    #[must_use]
    pub fn name(&self, group: usize) -> &str {
        self.names.get(group).map_or(OTHER, String::as_str)
    }
}

impl Rule {
    fn holds(&self, line: &AccessLine<'_>) -> bool {
        self.status.is_none_or(|status| status == line.status)
            && self.prefix.as_ref().is_none_or(|prefix| line.path.starts_with(prefix))
            && self.regex.as_ref().is_none_or(|regex| regex.is_match(line.path.as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logs::access::parse;
    use crate::packs;

    fn group_of(packs: &[&str], path: &str, status: u16) -> String {
        let all = packs::built_in();
        let rules = packs
            .iter()
            .flat_map(|name| &all.iter().find(|pack| pack.pack == *name).unwrap().uri_groups);
        let groups = UriGroups::new(rules).unwrap();
        let line = format!("x [t] \"GET {path} HTTP/1.1\" {status} 10 ");
        let group = groups.of(&parse(line.as_bytes()).unwrap());
        groups.name(group).to_owned()
    }

    #[test]
    fn hls_is_grouped_without_a_pack_for_the_server() {
        let cases = [
            ("/live/a/index.m3u8", 200, "hls_playlist"),
            ("/live/a/0001.ts", 200, "hls_segment"),
            ("/live/a/part.1.m4s", 206, "hls_segment"),
            ("/live/manifest.mpd", 200, "dash_manifest"),
            ("/anything", 101, "websocket"),
            ("/index.html", 200, "page"),
            ("/api/v9/xyz", 200, "other"),
        ];
        for (path, status, expect) in cases {
            assert_eq!(group_of(&["generic"], path, status), expect, "{path}");
        }
    }

    #[test]
    fn the_log_of_a_peertube_is_grouped_by_kind_of_request() {
        let cases = [
            ("/plugins/livechat/6.0.1/ws/xmpp-websocket", 101, "chat_websocket"),
            ("/plugins/livechat/ws/xmpp-websocket", 502, "chat_websocket"),
            ("/plugins/livechat/6.0.1/static/conversejs/converse.min.js", 200, "chat_page"),
            ("/tracker/socket", 101, "tracker"),
            ("/socket.io/", 101, "notifications"),
            ("/api/v1/videos/2ac6/views", 204, "views"),
            ("/api/v1/metrics/playback", 204, "playback_metrics"),
            ("/api/v1/videos/2ac6", 200, "api"),
            ("/static/streaming-playlists/hls/2ac6/0-000123.ts", 200, "hls_segment"),
            ("/static/streaming-playlists/hls/2ac6/0.m3u8", 200, "hls_playlist"),
            ("/static/streaming-playlists/hls/2ac6/segments-sha256.json", 200, "segment_hashes"),
            ("/client/main.abc.js", 200, "client"),
            ("/w/abc", 200, "page"),
        ];
        for (path, status, expect) in cases {
            assert_eq!(group_of(&["peertube", "generic"], path, status), expect, "{path}");
        }
    }

    #[test]
    fn groups_are_bounded() {
        let rule = |n: usize| UriGroupRule {
            group: format!("g{n}"),
            prefix: Some("/".into()),
            ..Default::default()
        };
        let rules: Vec<_> = (0..GROUPS_MAX).map(rule).collect();
        assert!(UriGroups::new(rules.iter().take(GROUPS_MAX - 1)).is_ok());
        assert!(UriGroups::new(&rules).unwrap_err().to_string().contains("`g63`: too many groups"));
        let none = UriGroupRule { group: "x".into(), ..Default::default() };
        assert!(UriGroups::new([&none]).unwrap_err().to_string().contains("no condition"));
    }
}
