//! The MPD of DASH (ISO/IEC 23009-1): periods, adaptation sets, representations, and where their
//! segments are.
//!
//! Remote elements (`xlink:href`) are not loaded: such an MPD is refused, but for those that
//! resolve to nothing. Attributes and elements that players do not need to find segments are
//! ignored.

mod segments;
mod template;
mod timeline;
mod utc_timing;
mod values;
mod xml;

use super::{MANIFEST_LEN_MAX, ManifestError};
pub use segments::{Location, Representation, Segment, SingleFile};
pub use template::UrlTemplate;
pub use utc_timing::{ToldTime, UtcMethod, UtcTiming};
use xml::Element;

/// What the href of an element that stands for nothing is.
const TO_NOTHING: &str = "urn:mpeg:dash:resolve-to-zero:2013";

/// Representations of a manifest.
const REPRESENTATIONS_MAX: usize = 10_000;

/// A media presentation description.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Manifest {
    /// It is live: segments become available with time, and it may be updated.
    pub is_dynamic: bool,
    /// How long it is; `None` when that is not known.
    pub duration_us: Option<u64>,
    /// The beginning of its timeline, microseconds since 1970; segments become available from then
    /// on.
    pub availability_start_us: Option<i64>,
    /// When it was published, microseconds since 1970.
    pub publish_time_us: Option<i64>,
    /// After how long it may be loaded again.
    pub minimum_update_period_us: Option<u64>,
    /// How much a player should buffer before it starts.
    pub minimum_buffer_us: Option<u64>,
    /// How long segments stay available.
    pub time_shift_buffer_depth_us: Option<u64>,
    /// How far behind the present to play.
    pub suggested_presentation_delay_us: Option<u64>,
    /// How far behind the present the service wants to be played (`ServiceDescription`, `Latency`).
    pub latency_target_us: Option<u64>,
    /// How to get the time of the server.
    pub utc_timings: Vec<UtcTiming>,
    /// Where to load it from the next time.
    pub locations: Vec<String>,
    /// Its periods, in order.
    pub periods: Vec<Period>,
}

/// A period.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Period {
    /// Its id.
    pub id: Option<String>,
    /// When it begins in the presentation.
    pub start_us: u64,
    /// How long it is; `None` when that is not known.
    pub duration_us: Option<u64>,
    /// What can be played in it.
    pub adaptation_sets: Vec<AdaptationSet>,
}

/// What an adaptation set is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentKind {
    /// Video, with or without audio.
    Video,
    /// Audio.
    Audio,
    /// Subtitles.
    Text,
    /// Anything else.
    Other,
}

/// Representations of the same content.
#[derive(Clone, Debug, PartialEq)]
pub struct AdaptationSet {
    /// What it is.
    pub kind: ContentKind,
    /// Its language.
    pub language: Option<String>,
    /// Its versions, of different bit rates.
    pub representations: Vec<Representation>,
}

impl Manifest {
    /// Reads an MPD.
    ///
    /// # Errors
    /// [`ManifestError`] with the line and the element.
    pub fn parse(bytes: &[u8]) -> Result<Self, ManifestError> {
        if bytes.len() > MANIFEST_LEN_MAX {
            return Err(ManifestError::new(
                1,
                "MPD",
                format!("has {} bytes; 16 MiB are read", bytes.len()),
            ));
        }
        let text = String::from_utf8_lossy(bytes);
        let root = xml::read(text.trim_start_matches('\u{feff}'))?;
        if root.name != "MPD" {
            let problem = format!("is the root, not MPD: {}", super::excerpt(&root.name));
            return Err(ManifestError::new(root.line, "element", problem));
        }
        let mut manifest = Self {
            is_dynamic: root.attribute("type") == Some("dynamic"),
            duration_us: root.duration_us("mediaPresentationDuration")?,
            availability_start_us: root.date_us("availabilityStartTime")?,
            publish_time_us: root.date_us("publishTime")?,
            minimum_update_period_us: root.duration_us("minimumUpdatePeriod")?,
            minimum_buffer_us: root.duration_us("minBufferTime")?,
            time_shift_buffer_depth_us: root.duration_us("timeShiftBufferDepth")?,
            suggested_presentation_delay_us: root.duration_us("suggestedPresentationDelay")?,
            latency_target_us: latency_target_us(&root)?,
            utc_timings: root.children_of("UTCTiming").map(UtcTiming::read).collect(),
            locations: root
                .children_of("Location")
                .map(|location| location.text.trim().to_owned())
                .collect(),
            periods: Vec::new(),
        };
        if manifest.is_dynamic && manifest.availability_start_us.is_none() {
            return Err(root.error("is dynamic and has no availabilityStartTime"));
        }
        manifest.periods(&root)?;
        Ok(manifest)
    }

    fn periods(&mut self, root: &Element) -> Result<(), ManifestError> {
        let mut elements = Vec::new();
        for element in root.children_of("Period") {
            if is_here(element)? {
                elements.push((
                    element,
                    element.duration_us("start")?,
                    element.duration_us("duration")?,
                ));
            }
        }
        let (mut at, mut representations) = (Some(0), 0);
        for (index, (element, start, duration)) in elements.iter().enumerate() {
            let start_us = start.or(at);
            let start_us = start_us.ok_or_else(|| {
                element.error("has no start, and the period before it has no duration")
            })?;
            let next_us = elements.get(index + 1).and_then(|(_, start, _)| *start);
            let end_us = if index + 1 < elements.len() { next_us } else { self.duration_us };
            let duration_us = duration.or(end_us.and_then(|end_us| end_us.checked_sub(start_us)));
            at = duration_us.map(|duration_us| start_us.saturating_add(duration_us));
            let period = period(element, root, (start_us, duration_us))?;
            representations +=
                period.adaptation_sets.iter().map(|set| set.representations.len()).sum::<usize>();
            if representations > REPRESENTATIONS_MAX {
                return Err(element.error(format!(
                    "has too many representations; {REPRESENTATIONS_MAX} are read"
                )));
            }
            self.periods.push(period);
        }
        if self.periods.is_empty() {
            return Err(root.error("has no Period"));
        }
        // The duration of what is not live may be that of its periods only.
        if !self.is_dynamic {
            self.duration_us = self.duration_us.or(at);
        }
        Ok(())
    }
}

/// `Latency@target`, in milliseconds, of the first service description (section K.3.2).
fn latency_target_us(root: &Element) -> Result<Option<u64>, ManifestError> {
    let latency =
        root.child("ServiceDescription").and_then(|description| description.child("Latency"));
    let target_ms = latency.map(|latency| latency.number::<u64>("target")).transpose()?.flatten();
    Ok(target_ms.map(|ms| ms.saturating_mul(1_000)))
}

/// Whether an element is in the document, and not a reference to nothing.
fn is_here(element: &Element) -> Result<bool, ManifestError> {
    match element.attribute("xlink:href") {
        None => Ok(true),
        Some(TO_NOTHING) => Ok(false),
        Some(_) => Err(element.error("is remote (xlink:href), which is not loaded").unsupported()),
    }
}

fn period(
    element: &Element,
    root: &Element,
    (start_us, duration_us): (u64, Option<u64>),
) -> Result<Period, ManifestError> {
    let id = element.attribute("id").map(str::to_owned);
    let mut period = Period { id, start_us, duration_us, adaptation_sets: Vec::new() };
    for set in element.children_of("AdaptationSet") {
        if !is_here(set)? {
            continue;
        }
        let mut representations = Vec::new();
        for representation in set.children_of("Representation") {
            let levels = [representation, set, element, root];
            representations.push(Representation::read(levels, start_us, duration_us)?);
        }
        let kind = kind(set, representations.first());
        let language = set.attribute("lang").map(str::to_owned);
        period.adaptation_sets.push(AdaptationSet { kind, language, representations });
    }
    Ok(period)
}

fn kind(set: &Element, first: Option<&Representation>) -> ContentKind {
    let mime_type = first.and_then(|first| first.mime_type.as_deref());
    let named = set.attribute("contentType").or(mime_type).unwrap_or_default();
    match named.split('/').next() {
        Some("video") => ContentKind::Video,
        Some("audio") => ContentKind::Audio,
        Some("text") => ContentKind::Text,
        // Subtitles in MP4, and others.
        _ => ContentKind::Other,
    }
}

#[cfg(test)]
mod tests;
