//! The reference pictures of the test card: decoded once, when first needed, from the clip that is
//! sent.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, mpsc};

use throng_media::card::Rung;
use throng_observation::Codec;

use crate::clip;
use crate::ffmpeg::{DecodeError, Decoder, Output, Picture, Program};
use crate::ssim::ssim;

/// The largest size that is compared, of which each codec takes 83 MB: a turn of 1080p would be
/// 187 MB.
const LARGEST: Rung = Rung::P720;

/// The luma of each picture of a turn, by its number.
type Pictures = Arc<Vec<Vec<u8>>>;

/// `None` while they are being decoded, or if that failed.
type Known = HashMap<(Rung, Codec), Option<Pictures>>;

/// The references of all sizes and codecs in use; clones share them.
#[derive(Clone, Debug)]
pub struct References {
    program: Program,
    known: Arc<Mutex<Known>>,
}

impl References {
    /// No references yet; `program` decodes them.
    #[must_use]
    pub fn new(program: &Program) -> Self {
        Self { program: Program { decoder: None, ..program.clone() }, known: Arc::default() }
    }

    /// The SSIM of `picture`, which has `number` on its card, to the source. `None` while the
    /// reference is being decoded, which a separate thread does, and above 720p.
    #[must_use]
    pub fn compare(&self, codec: Codec, number: u8, picture: &Picture) -> Option<f64> {
        let rung = Rung::from_size(picture.width, picture.height);
        let rung = rung.filter(|rung| *rung <= LARGEST)?;
        let pictures = self.wanted(rung, codec)?;
        let reference = pictures.get(usize::from(number))?;
        ssim(reference, &picture.luma, picture.width as usize, picture.height as usize)
    }

    fn wanted(&self, rung: Rung, codec: Codec) -> Option<Pictures> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        match known.get(&(rung, codec)) {
            Some(pictures) => pictures.clone(),
            None => {
                known.insert((rung, codec), None);
                let (references, program) = (Arc::clone(&self.known), self.program.clone());
                // Without a thread, or if decoding fails, no picture is compared.
                let _ = std::thread::Builder::new().name("reference".into()).spawn(move || {
                    if let Ok(pictures) = decode(&program, rung, codec) {
                        let mut known = references.lock().unwrap_or_else(PoisonError::into_inner);
                        known.insert((rung, codec), Some(Arc::new(pictures)));
                    }
                });
                None
            }
        }
    }
}

fn decode(program: &Program, rung: Rung, codec: Codec) -> Result<Vec<Vec<u8>>, DecodeError> {
    let (tell, results) = mpsc::channel();
    let (width, height) = rung.size();
    let take = move |picture: Picture| drop(tell.send(picture.luma));
    let size = (width as u16, height as u16); // of a rung: 1,920 at most
    let (decoder, mut feed) = Decoder::start(program, codec, size, Output::Luma, take)?;
    for (index, picture) in (0..).zip(clip::card(rung, codec)?) {
        feed.frame(index, picture.key_frame, &picture.bytes)?;
    }
    drop(feed);
    decoder.finish()?;
    Ok(results.try_iter().collect())
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn the_largest_card_is_not_kept_to_be_compared() {
        // That it cannot be started is found by the thread that decodes.
        let program = Program { ffmpeg: "/nowhere/ffmpeg".into(), decoder: None };
        let references = References::new(&program);
        let is_wanted = |rung: Rung| {
            let (width, height) = rung.size();
            let luma = Vec::new();
            let picture = Picture { index: 0, width, height, luma, decoded_at: Instant::now() };
            assert_eq!(references.compare(Codec::H264, 0, &picture), None, "{rung:?}");
            references.known.lock().unwrap().contains_key(&(rung, Codec::H264))
        };
        let wanted: Vec<Rung> = Rung::ALL.into_iter().filter(|rung| is_wanted(*rung)).collect();
        assert_eq!(wanted, [Rung::P144, Rung::P180, Rung::P240, Rung::P360, Rung::P720]);
    }
}
