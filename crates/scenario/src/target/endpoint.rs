//! Target URLs: which server and which protocol.

use std::borrow::Cow;
use std::fmt;

use throng_observation::Url;
use throng_observation::percent::decoded;

use super::protocols::{self, Credential, Place, Protocol};
use super::urls::{not_url, parts_of_path};
use crate::secret::{Secret, may_be_shown};
use crate::url_template::UrlTemplateError;

/// The address of the target: a URL, and where on its server participants go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// What is connected to: `ws:`, `wss:`, `http:` or `https:`. The URL standard knows the hosts
    /// of those schemes only, so `http:` stands for `rtsp:`, `rtmp:` and `srt:`, `https:` for
    /// `rtsps:` and `rtmps:`, each with its port. What [`Self::place`] has is not in it.
    pub url: Url,
    /// The place on the server, by protocol.
    pub place: Place,
}

/// Who logs in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// The user name.
    pub name: String,
    /// Its password.
    pub password: Secret,
}

impl Account {
    /// Takes user name and password out of a URL; `None` if it has no user name.
    pub(super) fn take(url: &mut Url) -> Option<Self> {
        let clear = url.in_clear();
        let account = (!clear.username().is_empty()).then(|| Self {
            name: decoded(clear.username()),
            password: Secret::new(clear.password().map(decoded).unwrap_or_default()),
        });
        url.remove_user();
        account
    }
}

/// The id of a Janus Streaming mountpoint or of a VideoRoom. Janus uses numbers unless it is
/// configured with `string_ids`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum JanusId {
    /// The usual numeric id.
    Number(u64),
    /// The id of a Janus with `string_ids = true`.
    Text(String),
}

impl fmt::Display for JanusId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JanusId::Number(id) => id.fmt(f),
            JanusId::Text(id) => id.fmt(f),
        }
    }
}

/// Why a target URL is not valid. Its text is the message, and the help behind a `; `.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TargetError {
    /// Not a URL.
    NotUrl {
        /// The text, secrets redacted.
        text: String,
        /// The URL parser's error.
        why: String,
    },
    /// The scheme is not one of a supported protocol.
    Scheme {
        /// The scheme.
        scheme: String,
        /// What to write.
        help: String,
    },
    /// The path is incomplete.
    Path {
        /// The protocol.
        protocol: &'static str,
        /// What is missing.
        needs: &'static str,
        /// A URL that would be valid.
        example: &'static str,
    },
    /// A fragment, where it can only be meant as a part of a name, key or stream id.
    Fragment,
    /// A variable is unknown, or where none is allowed.
    Template(UrlTemplateError),
}

impl TargetError {
    /// What is wrong.
    #[must_use]
    pub fn message(&self) -> Cow<'_, str> {
        match self {
            Self::NotUrl { text, why } => format!("`{text}` is not a URL ({why})").into(),
            Self::Scheme { scheme, .. } => format!("unknown scheme `{scheme}`").into(),
            Self::Path { protocol, needs, .. } => format!("{protocol} requires {needs}").into(),
            Self::Fragment => "`#` begins a fragment, which no server sees".into(),
            Self::Template(error) => error.message.as_str().into(),
        }
    }

    /// What to write instead.
    #[must_use]
    pub fn help(&self) -> Cow<'_, str> {
        match self {
            Self::NotUrl { .. } => "write for example `whep+http://127.0.0.1:7080/whep`".into(),
            Self::Scheme { help, .. } => help.as_str().into(),
            Self::Path { example, .. } => format!("write for example `{example}`").into(),
            Self::Fragment => "write `%23` for a `#` in a URL".into(),
            Self::Template(error) => error.help.as_str().into(),
        }
    }
}

impl fmt::Display for TargetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.message(), self.help())
    }
}

impl std::error::Error for TargetError {}

impl From<UrlTemplateError> for TargetError {
    fn from(error: UrlTemplateError) -> Self {
        Self::Template(error)
    }
}

impl Endpoint {
    pub(crate) fn parse(text: &str) -> Result<Self, TargetError> {
        let text = text.trim();
        let Some((scheme, rest)) = text.split_once("://") else {
            return Err(not_url(text, "it has no `scheme://`"));
        };
        // The URL standard takes what follows more slashes for the host.
        if rest.is_empty() || rest.starts_with(['/', '\\', '?', '#']) {
            return Err(not_url(text, "it has no host"));
        }
        protocols::read(&scheme.to_ascii_lowercase(), text)
    }

    /// The same server with another room: 0 is that of the URL. Numbers are incremented, names
    /// become `NAME-2`, `NAME-3` and so on. Endpoints without rooms stay the same.
    #[must_use]
    pub fn in_room(&self, index: u32) -> Self {
        let mut endpoint = self.clone();
        (self.protocol().facts().in_room)(&mut endpoint.place, index);
        endpoint
    }

    /// What the URL has that its server is told and nobody else: passwords, a PIN, signatures in
    /// the path, values of the query.
    pub fn secrets(&self) -> impl Iterator<Item = Secret> + '_ {
        let of_place = self.credential().map(|credential| match credential {
            Credential::Pin(pin) => pin.clone(),
            Credential::Account(account) => account.password.clone(),
        });
        of_place.into_iter().chain(secrets_of(&self.url))
    }

    /// Who logs in.
    #[must_use]
    pub fn account(&self) -> Option<&Account> {
        match self.credential()? {
            Credential::Account(account) => Some(account),
            Credential::Pin(_) => None,
        }
    }

    fn credential(&self) -> Option<Credential<'_>> {
        (self.protocol().facts().credential)(&self.place)
    }

    /// The URL as in the scenario, secrets redacted.
    pub(crate) fn display(&self) -> String {
        self.place.show(&self.url)
    }

    /// Host and port.
    pub(crate) fn host_and_port(&self) -> (String, u16) {
        let url = &self.url;
        (url.host_str().unwrap_or_default().to_owned(), url.port_or_known_default().unwrap_or(0))
    }

    /// The protocol.
    #[must_use]
    pub fn protocol(&self) -> Protocol {
        self.place.protocol()
    }
}

/// A shorter value of a query may be a word of what a server says, such as the `h264` of `codec=`.
const VALUE_BYTES_MIN: usize = 8;

/// What a URL has that its server is told and nobody else, as it is sent and as it is read: the
/// password, signatures in the path, values of the query that are no words.
pub fn secrets_of(url: &Url) -> impl Iterator<Item = Secret> + '_ {
    let clear = url.in_clear();
    let password = clear.password().map(|sent| [decoded(sent), sent.to_owned()]);
    let signed = parts_of_path(url).filter(|part| part.contains('=') && !may_be_shown(part));
    // Base64 ends with `=`.
    let signatures = signed.filter_map(|part| {
        let (name, _) = part.trim_end_matches('=').rsplit_once('=')?;
        part.get(name.len() + 1..)
    });
    let signatures = signatures.flat_map(|sent| [decoded(sent), sent.to_owned()]);
    let sent = clear.query().unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
    let pairs = clear.query_pairs().zip(sent);
    let hidden = pairs.filter(|((name, value), _)| !may_be_shown(&format!("{name}={value}")));
    let values = hidden.flat_map(|((_, value), sent)| {
        let sent = sent.split_once('=').map_or("", |(_, value)| value);
        [value.into_owned(), sent.to_owned()]
    });
    let values = values.filter(|value| value.len() >= VALUE_BYTES_MIN);
    let mut before = String::new();
    let all = password.into_iter().flatten().chain(signatures).chain(values);
    // Most are read as they are sent.
    let all = all.filter(move |text| {
        let is_new = *text != before;
        before.clone_from(text);
        is_new
    });
    all.map(Secret::new)
}
