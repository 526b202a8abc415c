//! Video over HTTP: `GET` of a playlist of HLS, a manifest of DASH, or of the beginning of a file.

use http::header::{CONTENT_TYPE, SERVER};
use http::{HeaderMap, StatusCode};
use throng_media::manifest::dash::{ContentKind, Manifest, Representation};
use throng_media::manifest::hls::{Playlist, Variant};
use throng_observation::units;
use throng_scenario::Protocol;

use super::answer::field;
use super::{Access, Answer, Found, Given, Kind, ProbeRequest};
use crate::excerpt::excerpt;

/// Renditions that are told.
const RENDITIONS_MAX: usize = 12;

pub(super) static KIND: Kind = Kind {
    name: "HTTP video",
    protocols: &[Protocol::HttpVideo],
    is_asked,
    ask: |given| ProbeRequest::get(given.url().clone()),
    read,
    refine,
};

/// No recording is called as endpoints of WHEP and WHIP are.
fn is_asked(given: &Given) -> bool {
    given.may_be_http() && !matches!(given.parts().last(), Some(&("whep" | "whip")))
}

fn read(given: &Given, answer: &Answer) -> Option<(Found, Option<ProbeRequest>)> {
    let Answer::Http { status, headers, body, is_whole } = answer else { return None };
    let mut found = Found::new(Protocol::HttpVideo, given.with("http"));
    found.server = field(headers, SERVER).map(excerpt);
    if [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN].contains(status) {
        found.access = Access::Token;
        return has_ending(given).then_some((found, None));
    }
    if !status.is_success() {
        return None;
    }
    let further = if begins(body).starts_with(b"#EXTM3U") {
        playlist(&mut found, given, body, *is_whole)
    } else if is_manifest(body) {
        manifest(&mut found, body, *is_whole);
        None
    } else if is_file(headers, body) {
        let kind = field(headers, CONTENT_TYPE).map(excerpt);
        found.offers.push(format!("a file ({})", kind.unwrap_or_else(|| "no type".to_owned())));
        found.is_live = Some(false);
        None
    } else {
        return None;
    };
    Some((found, further))
}

/// Whether the path ends as those of videos do.
fn has_ending(given: &Given) -> bool {
    const ENDINGS: [&str; 6] = [".m3u8", ".mpd", ".mp4", ".webm", ".ts", ".m4s"];
    ENDINGS.iter().any(|ending| given.path().ends_with(ending))
}

/// The body without what may stand before a text.
fn begins(body: &[u8]) -> &[u8] {
    body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body).trim_ascii_start()
}

fn is_manifest(body: &[u8]) -> bool {
    let head = body.get(..body.len().min(2_048)).unwrap_or_default();
    begins(body).starts_with(b"<") && head.windows(4).any(|word| word == b"<MPD")
}

/// Whether it is a file of media: by its type, or as MP4, Matroska or MPEG-TS begin.
fn is_file(headers: &HeaderMap, body: &[u8]) -> bool {
    let kind = field(headers, CONTENT_TYPE).unwrap_or_default();
    kind.starts_with("video/")
        || kind.starts_with("audio/")
        || body.get(4..8) == Some(b"ftyp".as_slice())
        || body.starts_with(&[0x1a, 0x45, 0xdf, 0xa3])
        || (body.first() == Some(&0x47) && body.get(188) == Some(&0x47))
}

/// A playlist; that of a rendition is asked for then, as only it tells whether the stream goes on.
fn playlist(found: &mut Found, given: &Given, body: &[u8], is_whole: bool) -> Option<ProbeRequest> {
    match Playlist::parse(whole_lines(body, is_whole)) {
        Ok(Playlist::Master(master)) => {
            found.offers.push(format!("HLS, renditions: {}", master.variants.len()));
            found.offers.extend(master.variants.iter().take(RENDITIONS_MAX).map(rendition));
            let first = master.variants.first()?;
            given.url().join(&first.uri).ok().map(ProbeRequest::get)
        }
        Ok(Playlist::Media(media)) => {
            found.offers.push("HLS, one rendition".to_owned());
            found.is_live = goes_on(media.has_ended, is_whole);
            None
        }
        Err(_) if !is_whole => {
            found.offers.push("HLS whose playlist is longer than is read".to_owned());
            None
        }
        Err(error) => {
            found.offers.push(format!("HLS whose playlist cannot be read: {error}"));
            None
        }
    }
}

fn refine(found: &mut Found, _: &Given, answer: &Answer) {
    if let Answer::Http { status, body, is_whole, .. } = answer
        && status.is_success()
        && let Ok(Playlist::Media(media)) = Playlist::parse(whole_lines(body, *is_whole))
    {
        found.is_live = goes_on(media.has_ended, *is_whole);
    }
}

/// A playlist of which the last line may be cut, without that line.
fn whole_lines(body: &[u8], is_whole: bool) -> &[u8] {
    let end = body.iter().rposition(|byte| *byte == b'\n').filter(|_| !is_whole);
    end.and_then(|end| body.get(..end)).unwrap_or(body)
}

/// Whether a playlist with or without the tag of its end goes on. That of a long recording is cut
/// before the tag.
fn goes_on(has_ended: bool, is_whole: bool) -> Option<bool> {
    (has_ended || is_whole).then_some(!has_ended)
}

fn rendition(variant: &Variant) -> String {
    let bps = variant.average_bandwidth_bps.unwrap_or(variant.bandwidth_bps);
    in_words(variant.resolution, bps, variant.codecs.as_deref())
}

fn manifest(found: &mut Found, body: &[u8], is_whole: bool) {
    let manifest = match Manifest::parse(body) {
        Ok(manifest) => manifest,
        Err(_) if !is_whole => {
            found.offers.push("DASH whose manifest is longer than is read".to_owned());
            return;
        }
        Err(error) => {
            found.offers.push(format!("DASH whose manifest cannot be read: {error}"));
            return;
        }
    };
    found.is_live = Some(manifest.is_dynamic);
    let sets = manifest.periods.first().map(|period| period.adaptation_sets.as_slice());
    let videos: Vec<&Representation> = sets
        .unwrap_or_default()
        .iter()
        .filter(|set| set.kind == ContentKind::Video)
        .flat_map(|set| &set.representations)
        .collect();
    found.offers.push(format!("DASH, renditions: {}", videos.len()));
    found.offers.extend(videos.into_iter().take(RENDITIONS_MAX).map(|video| {
        let size = video.width.zip(video.height);
        in_words(size, video.bandwidth_bps, video.codecs.as_deref())
    }));
}

/// A rendition: size, bit rate, codecs, as far as they are told.
fn in_words(size: Option<(u32, u32)>, bps: u64, codecs: Option<&str>) -> String {
    let size = size.map(|(width, height)| format!("{width}x{height}"));
    let rate = (bps > 0).then(|| units::bit_rate(bps as f64));
    let all = [size, rate, codecs.map(excerpt)];
    all.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::super::tests::{cut, http, read_by};
    use super::*;

    const MASTER: &str = "#EXTM3U\n#EXT-X-VERSION:3\n\
        #EXT-X-STREAM-INF:BANDWIDTH=2800000,RESOLUTION=1280x720,CODECS=\"avc1.64001f,mp4a.40.2\"\n\
        720/index.m3u8\n#EXT-X-STREAM-INF:BANDWIDTH=800000\n360/index.m3u8\n";
    const MEDIA: &str = "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\na.ts\n";

    #[test]
    fn a_master_playlist_has_renditions_and_one_of_them_says_whether_it_goes_on() {
        let given = Given::parse("http://h/live/master.m3u8").unwrap();
        let answer = http("200\nserver: nginx/1.22.1", MASTER);
        let (mut found, further) = read(&given, &answer).unwrap();
        assert_eq!(found.server.as_deref(), Some("nginx/1.22.1"));
        assert_eq!(found.offers[0], "HLS, renditions: 2");
        assert!(found.offers[1].starts_with("1280x720, "), "{:?}", found.offers);
        assert!(found.offers[1].ends_with(", avc1.64001f,mp4a.40.2"), "{:?}", found.offers);
        assert_eq!(further.unwrap().to_string(), "GET http://h/live/720/index.m3u8");
        refine(&mut found, &given, &http("404", MEDIA));
        assert_eq!(found.is_live, None);
        refine(&mut found, &given, &http("200", MEDIA));
        assert_eq!(found.is_live, Some(true));
        refine(&mut found, &given, &http("200", &format!("{MEDIA}#EXT-X-ENDLIST\n")));
        assert_eq!(found.is_live, Some(false));
    }

    #[test]
    fn of_what_is_cut_nobody_knows_whether_it_goes_on() {
        let given = Given::parse("http://h/a.m3u8").unwrap();
        let live = |body: &str| {
            let (found, _) = read(&given, &cut(http("200", body)))?;
            let mut refined = Found::new(Protocol::HttpVideo, String::new());
            refine(&mut refined, &given, &cut(http("200", body)));
            assert_eq!(refined.is_live, found.is_live, "{body}");
            Some((found.is_live, found.offers))
        };
        let one = vec!["HLS, one rendition".to_owned()];
        // The last line is half of one.
        for rest in ["#EXTIN", "#EXTINF:4,\nb", "#EXT-X-ENDLIS"] {
            assert_eq!(live(&format!("{MEDIA}{rest}")), Some((None, one.clone())), "{rest}");
        }
        assert_eq!(live(&format!("{MEDIA}#EXT-X-ENDLIST\n")), Some((Some(false), one)));
        let long = mpd("static");
        let half = long.get(..long.len() / 2).unwrap();
        let longer = vec!["DASH whose manifest is longer than is read".to_owned()];
        assert_eq!(live(half), Some((None, longer)));
    }

    fn mpd(kind: &str) -> String {
        format!(
            "<?xml version=\"1.0\"?>\n<MPD xmlns=\"urn:mpeg:dash:schema:mpd:2011\" \
             type=\"{kind}\" mediaPresentationDuration=\"PT8S\" \
             availabilityStartTime=\"2026-01-01T00:00:00Z\"><Period><AdaptationSet \
             contentType=\"video\" mimeType=\"video/mp4\"><SegmentTemplate media=\"$Number$.m4s\" \
             initialization=\"i.mp4\" duration=\"4\"/><Representation id=\"1\" width=\"640\" \
             height=\"360\" bandwidth=\"800000\" codecs=\"avc1.4d401e\"/></AdaptationSet>\
             </Period></MPD>"
        )
    }

    #[test]
    fn manifests_and_files_are_told_and_pages_are_not() {
        let live = |head: &str, body: &str| {
            let found = read_by(&KIND, "http://h/x", &http(head, body))?;
            Some((found.is_live, found.offers.len()))
        };
        assert_eq!(live("200", &mpd("static")), Some((Some(false), 2)));
        assert_eq!(live("200", &mpd("dynamic")), Some((Some(true), 2)));
        assert_eq!(live("200", MEDIA), Some((Some(true), 1)));
        assert_eq!(live("206\ncontent-type: video/mp4", "x"), Some((Some(false), 1)));
        assert_eq!(live("200", "\0\0\0\x18ftypisom"), Some((Some(false), 1)));
        for (head, body) in [
            ("200\ncontent-type: text/html", "<!DOCTYPE html><html></html>"),
            ("404\ncontent-type: video/mp4", ""),
            ("401", ""),
        ] {
            assert_eq!(live(head, body), None, "{head}");
        }
        let locked = read_by(&KIND, "http://h/a.m3u8", &http("401", "")).unwrap();
        assert_eq!(locked.access, Access::Token);
    }
}
