//! A representation and its segments: one file with an index (`SegmentBase`), a list, or a
//! template.

use super::is_here;
use super::template::UrlTemplate;
use super::timeline::{Entry, Timeline};
use super::xml::Element;
use super::{Manifest, ManifestError};
use crate::manifest::ByteRange;

/// A version of some content.
#[derive(Clone, Debug, PartialEq)]
pub struct Representation {
    /// Its id.
    pub id: String,
    /// Its bit rate.
    pub bandwidth_bps: u64,
    /// Codecs in the form of RFC 6381, separated by commas.
    pub codecs: Option<String>,
    /// Its media type.
    pub mime_type: Option<String>,
    /// Width, pixels.
    pub width: Option<u32>,
    /// Height, pixels.
    pub height: Option<u32>,
    /// Frame rate, Hz.
    pub frame_rate_hz: Option<f64>,
    /// Base URLs from the outermost to the innermost: each is resolved against the one before, the
    /// first against the URL of the manifest; where a level has alternatives, its first. URLs of
    /// segments are resolved against the last.
    pub base_urls: Vec<String>,
    /// Its initialisation segment; `None`: the segments have all that is needed, or (in a single
    /// file) the initialisation is before the index.
    pub initialization: Option<Location>,
    /// It is a single file, at its base URL, and this is where its index (`sidx`, or Cues of WebM)
    /// is, if the manifest says so.
    pub single_file: Option<SingleFile>,
    start_us: u64,
    duration_us: Option<u64>,
    addresses: Option<Addresses>,
}

/// A representation that is one file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SingleFile {
    /// Where the index is.
    pub index_range: Option<ByteRange>,
    /// Its media times minus this, microseconds, are times of the period.
    pub presentation_time_offset_us: u64,
}

/// A file, or a part of one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Location {
    /// To be resolved against the base URL; empty for the base URL itself.
    pub url: String,
    /// The part of the file, if it is not the whole.
    pub byte_range: Option<ByteRange>,
}

/// A segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Its number.
    pub number: u64,
    /// When it begins in the presentation: the start of its period included.
    pub time_us: i64,
    /// How long it is.
    pub duration_us: u64,
    /// Where it is.
    pub location: Location,
}

#[derive(Clone, Debug, PartialEq)]
struct Addresses {
    hz: u64,
    start_number: u64,
    end_number: Option<u64>,
    /// Media time at the beginning of the period, ticks.
    offset: u64,
    timeline: Timeline,
    urls: Urls,
    /// So much earlier than its end a segment is available; `u64::MAX`: always.
    available_early_us: u64,
}

#[derive(Clone, Debug, PartialEq)]
enum Urls {
    Template(UrlTemplate),
    List(Vec<Location>),
}

/// The elements of one name from the innermost to the outermost: what an inner one has not, an
/// outer one says.
struct Levels<'a>(Vec<&'a Element>);

impl<'a> Levels<'a> {
    fn first<T>(
        &self,
        read: impl Fn(&'a Element) -> Result<Option<T>, ManifestError>,
    ) -> Result<Option<T>, ManifestError> {
        for element in &self.0 {
            if let Some(value) = read(element)? {
                return Ok(Some(value));
            }
        }
        Ok(None)
    }

    fn attribute(&self, name: &str) -> Option<(&'a Element, &'a str)> {
        self.0.iter().find_map(|element| Some((*element, element.attribute(name)?)))
    }

    fn child(&self, name: &str) -> Option<&'a Element> {
        self.0.iter().find_map(|element| element.child(name))
    }
}

impl Representation {
    /// Reads a `Representation`; `levels` are it, its adaptation set, its period, and the MPD.
    pub(super) fn read(
        levels: [&Element; 4],
        start_us: u64,
        duration_us: Option<u64>,
    ) -> Result<Self, ManifestError> {
        let [element, set, ..] = levels;
        let both = Levels(vec![element, set]);
        let text = |name: &str| both.attribute(name).map(|(_, value)| value.to_owned());
        let base_urls = levels.iter().rev().filter_map(|level| level.child("BaseURL"));
        let mut representation = Self {
            id: element.attribute("id").unwrap_or_default().to_owned(),
            bandwidth_bps: element.number("bandwidth")?.unwrap_or_default(),
            codecs: text("codecs"),
            mime_type: text("mimeType"),
            width: both.first(|level| level.number("width"))?,
            height: both.first(|level| level.number("height"))?,
            frame_rate_hz: both.first(|level| level.frame_rate_hz("frameRate"))?,
            base_urls: base_urls.clone().map(|url| url.text.trim().to_owned()).collect(),
            initialization: None,
            single_file: None,
            start_us,
            duration_us,
            addresses: None,
        };
        let mut early_us = 0_u64;
        for base in base_urls {
            early_us = early_us
                .saturating_add(base.offset_us("availabilityTimeOffset")?.unwrap_or_default());
        }
        representation.addressing([element, set, levels[2]], early_us)?;
        Ok(representation)
    }

    /// Which of the three forms it has: that of the innermost level.
    fn addressing(&mut self, levels: [&Element; 3], early_us: u64) -> Result<(), ManifestError> {
        let names = ["SegmentTemplate", "SegmentList", "SegmentBase"];
        let name =
            levels.iter().find_map(|level| names.iter().find(|name| level.child(name).is_some()));
        let Some(name) = name else {
            self.single_file = Some(SingleFile::default());
            return Ok(());
        };
        let elements = Levels(levels.iter().filter_map(|level| level.child(name)).collect());
        for element in &elements.0 {
            if !is_here(element)? {
                return Err(element.error("resolves to nothing, so that there are no segments"));
            }
        }
        let hz = elements.first(|level| level.number::<u64>("timescale"))?.unwrap_or(1);
        let offset = elements
            .first(|level| level.number::<u64>("presentationTimeOffset"))?
            .unwrap_or_default();
        if hz == 0 {
            return Err(elements.0[0].error("has a timescale of 0"));
        }
        self.initialization = self.initialization(&elements)?;
        if *name == "SegmentBase" {
            self.single_file = Some(SingleFile {
                index_range: elements.first(|level| level.range("indexRange"))?,
                presentation_time_offset_us: ticks_us(offset, hz),
            });
            return Ok(());
        }
        let early =
            elements.first(|level| level.offset_us("availabilityTimeOffset"))?.unwrap_or_default();
        let urls =
            if *name == "SegmentList" { list(&elements)? } else { self.template(&elements)? };
        let duration_ticks = self.duration_us.map(|us| us_ticks(us, hz));
        let end = duration_ticks.map(|ticks| offset.saturating_add(ticks));
        let timeline = match (
            elements.child("SegmentTimeline"),
            elements.first(|level| level.number::<u64>("duration"))?,
        ) {
            (Some(timeline), _) => Timeline::read(timeline, end)?,
            (None, Some(ticks)) if ticks > 0 => Timeline::equal(ticks, offset, end),
            // One segment, as long as the period.
            (None, None) => Timeline::equal(
                duration_ticks.unwrap_or(hz).max(1),
                offset,
                Some(offset.saturating_add(1)),
            ),
            (None, Some(_)) => return Err(elements.0[0].error("has a duration of 0")),
        };
        self.addresses = Some(Addresses {
            hz,
            start_number: elements.first(|level| level.number("startNumber"))?.unwrap_or(1),
            end_number: elements.first(|level| level.number("endNumber"))?,
            offset,
            timeline,
            urls,
            available_early_us: early_us.saturating_add(early),
        });
        Ok(())
    }

    fn initialization(&self, elements: &Levels<'_>) -> Result<Option<Location>, ManifestError> {
        if let Some(element) = elements.child("Initialization") {
            let url = element.attribute("sourceURL").unwrap_or_default();
            let url = UrlTemplate::parse(url, &self.id, self.bandwidth_bps)
                .map_err(|problem| element.error(problem))?;
            return Ok(Some(Location { url: url.url(0, 0), byte_range: element.range("range")? }));
        }
        let Some((element, text)) = elements.attribute("initialization") else { return Ok(None) };
        let url = UrlTemplate::parse(text, &self.id, self.bandwidth_bps)
            .map_err(|problem| element.error(problem))?;
        Ok(Some(Location { url: url.url(0, 0), byte_range: None }))
    }

    fn template(&self, elements: &Levels<'_>) -> Result<Urls, ManifestError> {
        let Some((element, text)) = elements.attribute("media") else {
            return Err(elements.0[0].error("has no media"));
        };
        let template = UrlTemplate::parse(text, &self.id, self.bandwidth_bps);
        template.map(Urls::Template).map_err(|problem| element.error(problem))
    }

    /// All segments of the period; without those of a run whose end is not known.
    pub fn segments(&self) -> impl Iterator<Item = Segment> + '_ {
        let addresses = self.addresses.iter();
        addresses.flat_map(move |addresses| {
            let known =
                addresses.timeline.count().unwrap_or_else(|| addresses.timeline.open_index());
            let entries = addresses.timeline.from(0).take_while(move |entry| entry.index < known);
            entries.map_while(move |entry| self.segment_of(addresses, entry))
        })
    }

    /// The segment with this number. A live one may not be available yet, or not any more.
    #[must_use]
    pub fn segment(&self, number: u64) -> Option<Segment> {
        let addresses = self.addresses.as_ref()?;
        let index = number.checked_sub(addresses.start_number)?;
        self.segment_of(addresses, addresses.timeline.get(index)?)
    }

    /// The segment that is played at this time of the presentation: that which contains it, else
    /// the one before, else the first. A live one may not be available.
    #[must_use]
    pub fn segment_at(&self, time_us: i64) -> Option<Segment> {
        let addresses = self.addresses.as_ref()?;
        let time = addresses.ticks(time_us.saturating_sub(to_i64(self.start_us)));
        let mut entry = addresses.timeline.at_time(time, None)?;
        if let Urls::List(list) = &addresses.urls {
            entry = addresses.timeline.get(entry.index.min((list.len() as u64).checked_sub(1)?))?;
        }
        self.segment_of(addresses, entry)
    }

    /// The segments that can be loaded now, at `now_unix_us` on the server's clock: of a live
    /// presentation those that have ended and are not older than the time shift buffer, else all.
    pub fn available(
        &self,
        manifest: &Manifest,
        now_unix_us: i64,
    ) -> impl Iterator<Item = Segment> + '_ {
        let live = manifest.is_dynamic.then_some(manifest.availability_start_us).flatten();
        let depth_us = manifest.time_shift_buffer_depth_us;
        let addresses = self.addresses.iter();
        addresses.flat_map(move |addresses| {
            let (mut first, mut end) =
                (0, addresses.timeline.count().unwrap_or_else(|| addresses.timeline.open_index()));
            if let Some(start_unix_us) = live {
                let elapsed_us =
                    now_unix_us.saturating_sub(start_unix_us).saturating_sub(to_i64(self.start_us));
                end = addresses.end_at(elapsed_us);
                first = depth_us.map_or(0, |depth_us| {
                    addresses.first_at(elapsed_us.saturating_sub(to_i64(depth_us)))
                });
            }
            let entries = addresses.timeline.from(first).take_while(move |entry| entry.index < end);
            entries.map_while(move |entry| self.segment_of(addresses, entry))
        })
    }

    /// The first and the last segment of [`Self::available`], without those between.
    #[must_use]
    pub fn available_span(
        &self,
        manifest: &Manifest,
        now_unix_us: i64,
    ) -> Option<(Segment, Segment)> {
        let addresses = self.addresses.as_ref()?;
        let first = self.available(manifest, now_unix_us).next()?;
        let known = addresses.timeline.count().unwrap_or_else(|| addresses.timeline.open_index());
        let live = manifest.is_dynamic.then_some(manifest.availability_start_us).flatten();
        let end = live.map_or(known, |start_unix_us| {
            let elapsed_us = now_unix_us.saturating_sub(start_unix_us);
            addresses.end_at(elapsed_us.saturating_sub(to_i64(self.start_us)))
        });
        let last = addresses.timeline.get(end.checked_sub(1)?)?;
        Some((first, self.segment_of(addresses, last)?))
    }

    /// How much earlier than its end a segment can be requested: chunks of it are sent as they are
    /// made (low latency).
    #[must_use]
    pub fn available_early_us(&self) -> u64 {
        self.addresses.as_ref().map_or(0, |addresses| addresses.available_early_us)
    }

    fn segment_of(&self, addresses: &Addresses, entry: Entry) -> Option<Segment> {
        let number = addresses.start_number.checked_add(entry.index)?;
        if addresses.end_number.is_some_and(|end| number > end) {
            return None;
        }
        let location = match &addresses.urls {
            Urls::Template(template) => {
                Location { url: template.url(number, entry.time), byte_range: None }
            }
            Urls::List(list) => list.get(usize::try_from(entry.index).ok()?)?.clone(),
        };
        let at_us = addresses.us(entry.time);
        let end_us = addresses.us(entry.end());
        // The last segment of equal ones ends with the period.
        let end_us = self
            .duration_us
            .map_or(end_us, |duration_us| end_us.min(to_i64(duration_us).max(at_us)));
        Some(Segment {
            number,
            time_us: at_us.saturating_add(to_i64(self.start_us)),
            duration_us: end_us.saturating_sub(at_us).unsigned_abs(),
            location,
        })
    }
}

impl Addresses {
    /// Time of the period, microseconds, of a media time.
    fn us(&self, ticks: u64) -> i64 {
        let us =
            (i128::from(ticks) - i128::from(self.offset)) * 1_000_000 + i128::from(self.hz) / 2;
        us.div_euclid(self.hz.into()).clamp(i64::MIN.into(), i64::MAX.into()) as i64
    }

    /// The media time of a time of the period; 0 before the first.
    fn ticks(&self, us: i64) -> u64 {
        let ticks =
            (i128::from(us) * i128::from(self.hz)).div_euclid(1_000_000) + i128::from(self.offset);
        u64::try_from(ticks.max(0)).unwrap_or(u64::MAX)
    }

    /// The index after the last segment that has ended at this time of the period, or may be loaded
    /// before its end.
    fn end_at(&self, us: i64) -> u64 {
        if us.saturating_add(to_i64(self.available_early_us)) < 0 {
            return 0;
        }
        let time = self.ticks(us.saturating_add(to_i64(self.available_early_us)));
        match self.timeline.at_time(time, None) {
            Some(entry) if entry.end() <= time => entry.index.saturating_add(1),
            Some(entry) => entry.index,
            None => 0,
        }
    }

    /// The index of the first segment that ends after this time of the period.
    fn first_at(&self, us: i64) -> u64 {
        self.timeline.at_time(self.ticks(us), None).map_or(0, |entry| entry.index)
    }
}

fn list(elements: &Levels<'_>) -> Result<Urls, ManifestError> {
    let holder = elements.0.iter().find(|element| element.child("SegmentURL").is_some());
    let holder = holder.ok_or_else(|| elements.0[0].error("has no SegmentURL"))?;
    let read = |element: &Element| {
        let url = element.attribute("media").unwrap_or_default().to_owned();
        Ok(Location { url, byte_range: element.range("mediaRange")? })
    };
    holder.children_of("SegmentURL").map(read).collect::<Result<_, _>>().map(Urls::List)
}

fn to_i64(us: u64) -> i64 {
    i64::try_from(us).unwrap_or(i64::MAX)
}

fn ticks_us(ticks: u64, hz: u64) -> u64 {
    u64::try_from(u128::from(ticks) * 1_000_000 / u128::from(hz)).unwrap_or(u64::MAX)
}

fn us_ticks(us: u64, hz: u64) -> u64 {
    u64::try_from(u128::from(us) * u128::from(hz) / 1_000_000).unwrap_or(u64::MAX)
}
