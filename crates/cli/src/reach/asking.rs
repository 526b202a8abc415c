//! Asks the owner of a public target for consent: where a proof may lie, and what it says.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use throng_engine::TlsOptions;
use throng_engine::consent::{ConsentError, fetch_file, fetch_txt};
use throng_scenario::consent::{DNS_LABEL, WELL_KNOWN_PATH};
use throng_scenario::{ConsentProof, Secret, Target};

use super::Demand;

/// What has to be asked again of a public target.
#[derive(Clone)]
pub(super) struct Asked {
    host: String,
    port: u16,
    token: Secret,
    tls: TlsOptions,
    pub(super) demand: Demand,
    places: Vec<Place>,
}

/// Where a proof may lie.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    /// `http(s)://AUTHORITY/.well-known/throng-consent`.
    File { secure: bool, authority: String },
    /// The TXT records of this name.
    Txt(String),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { secure, authority } => {
                write!(f, "http{}://{authority}{WELL_KNOWN_PATH}", if *secure { "s" } else { "" })
            }
            Self::Txt(name) => write!(f, "TXT {name}"),
        }
    }
}

impl Place {
    /// Where it is looked for, in this order: at the signalling port; at the web server of the host, because where
    /// signalling is a WebSocket no file can lie; in DNS.
    fn all(host: &str, port: u16, is_secure: bool) -> Vec<Self> {
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let name = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
        let mut places = vec![Self::File { secure: is_secure, authority: format!("{name}:{port}") }];
        for (secure, usual) in [(true, 443), (false, 80)] {
            if (is_secure, port) != (secure, usual) {
                places.push(Self::File { secure, authority: name.clone() });
            }
        }
        places.push(Self::Txt(format!("{DNS_LABEL}.{host}")));
        places
    }

    fn fetch(&self, tls: &TlsOptions) -> Result<Vec<String>, ConsentError> {
        match self {
            Self::File { secure, authority } => fetch_file(*secure, authority, tls).map(|text| vec![text]),
            Self::Txt(name) => fetch_txt(name),
        }
    }
}

impl Asked {
    pub(super) fn new(target: &Target, token: Secret, tls: TlsOptions, demand: Demand) -> Self {
        let (host, port) = target.host_and_port();
        let places = Place::all(&host, port, matches!(target.url().scheme(), "https" | "wss"));
        Self { host, port, token, tls, demand, places }
    }

    /// Fetches the proof from the first place that has a valid one, and keeps to that place: what its owner takes away
    /// there is withdrawn.
    pub(super) fn find(mut self) -> Result<(Self, ConsentProof), String> {
        let mut complaints = Vec::new();
        for place in std::mem::take(&mut self.places) {
            match self.proof_at(&place) {
                Ok(proof) => {
                    self.places = vec![place];
                    return Ok((self, proof));
                }
                Err(why) => complaints.push(why),
            }
        }
        Err(format!("no consent proof was found; tried {}", complaints.join("; ")))
    }

    fn proof_at(&self, place: &Place) -> Result<ConsentProof, String> {
        let texts = place.fetch(&self.tls).map_err(|error| error.to_string())?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let mut why = format!("{place}: nothing there");
        for text in texts {
            let proof = ConsentProof::parse(&text)
                .and_then(|proof| proof.validate(&self.token, &self.host, self.port, now).map(|()| proof));
            match proof {
                Ok(proof) => return Ok(proof),
                Err(error) => why = format!("{place}: {error}"),
            }
        }
        Err(why)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    use throng_scenario::ExpectedLoad;

    use super::*;

    const TOKEN: &str = "0123456789abcdef";

    /// A server that answers every request with this, once it is `there`, and with 404 before; and its authority.
    fn answers(body: String, there: Arc<AtomicBool>) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let authority = listener.local_addr().unwrap().to_string();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (mut stream, mut request) = (stream.unwrap(), [0; 1024]);
                let length = stream.read(&mut request).unwrap();
                let asked = String::from_utf8_lossy(&request[..length]).into_owned();
                let is_there =
                    there.load(Ordering::SeqCst) && asked.starts_with(&format!("GET {WELL_KNOWN_PATH} "));
                let (status, body) = if is_there { ("200 OK", body.as_str()) } else { ("404 Not Found", "") };
                let _ = write!(
                    stream,
                    "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                    body.len()
                );
            }
        });
        authority
    }

    /// A signalling server that knows nothing but WebSocket, as libwebsockets does: it closes on anything else.
    fn websocket_only() -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let authority = listener.local_addr().unwrap().to_string();
        std::thread::spawn(move || {
            listener.incoming().for_each(|stream| drop(stream.unwrap().read(&mut [0; 64])));
        });
        authority
    }

    fn asked(places: Vec<Place>) -> Asked {
        let expected = ExpectedLoad {
            users: 1,
            joins_per_s: 1,
            server_in_mbit_per_s: 0.0,
            server_out_mbit_per_s: 1.0,
            assumed: false,
        };
        Asked {
            host: "media.example.org".into(),
            port: 8188,
            token: Secret::new(TOKEN),
            tls: TlsOptions::default(),
            demand: Demand { expected, duration: Duration::from_secs(1) },
            places,
        }
    }

    /// A proof until the end of the year.
    fn proof(target: &str) -> String {
        const YEAR_S: u64 = 31_556_952;
        let year = 1970 + SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() / YEAR_S;
        format!("token = {TOKEN}\ntarget = {target}\nexpires = {year}-12-31\nmax_users = 7\n")
    }

    fn file(authority: &str) -> Place {
        Place::File { secure: false, authority: authority.to_owned() }
    }

    #[test]
    fn a_proof_is_looked_for_at_the_signalling_port_then_at_the_web_server_then_in_dns() {
        let check = |host: &str, port: u16, is_secure: bool, expect: &[&str]| {
            let places: Vec<String> =
                Place::all(host, port, is_secure).iter().map(Place::to_string).collect();
            let expect: Vec<String> =
                expect.iter().map(|place| place.replace('~', "/.well-known/throng-consent")).collect();
            assert_eq!(places, expect);
        };
        let txt = "TXT _throng-consent.h.example";
        check(
            "h.example",
            8188,
            false,
            &["http://h.example:8188~", "https://h.example~", "http://h.example~", txt],
        );
        check(
            "h.example",
            8989,
            true,
            &["https://h.example:8989~", "https://h.example~", "http://h.example~", txt],
        );
        check("h.example", 443, true, &["https://h.example:443~", "http://h.example~", txt]);
        check("h.example", 80, false, &["http://h.example:80~", "https://h.example~", txt]);
        let at = "TXT _throng-consent.2001:db8::1";
        let places = ["http://[2001:db8::1]:8188~", "https://[2001:db8::1]~", "http://[2001:db8::1]~", at];
        check("[2001:db8::1]", 8188, false, &places);
    }

    #[test]
    fn a_proof_beside_a_websocket_server_is_found_and_asked_for_again_where_it_was() {
        let there = Arc::new(AtomicBool::new(true));
        let always = || Arc::new(AtomicBool::new(true));
        let other = answers(proof("media.example.org:3333"), always());
        let web = answers(proof("media.example.org:8188"), Arc::clone(&there));
        let second = answers(proof("media.example.org:8188"), always());
        let places = [&websocket_only(), &other, &web, &second].map(|authority| file(authority));
        let (asked, proof) = asked(places.to_vec()).find().unwrap();
        assert_eq!((proof.caps.users, asked.places.as_slice()), (Some(7), &places[2..3]));
        assert_eq!(asked.clone().find().unwrap().1, proof);
        there.store(false, Ordering::SeqCst);
        let why = asked.find().err().unwrap();
        assert!(why.contains(&web) && why.contains("404") && !why.contains(&second), "{why}");
    }

    #[test]
    fn where_no_proof_is_found_each_place_that_was_tried_is_named_with_what_it_said() {
        let always = || Arc::new(AtomicBool::new(true));
        let (deaf, missing) = (websocket_only(), answers(String::new(), Arc::new(AtomicBool::new(false))));
        let other = answers(proof("elsewhere.example.org:8188"), always());
        let why =
            asked([&deaf, &missing, &other].map(|authority| file(authority)).to_vec()).find().err().unwrap();
        for (authority, said) in
            [(&deaf, "http://"), (&missing, "404"), (&other, "elsewhere.example.org:8188")]
        {
            let told = why.split("; ").any(|one| one.contains(authority.as_str()) && one.contains(said));
            assert!(told, "{authority} {said}: {why}");
        }
    }
}
