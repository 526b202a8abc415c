//! The AV1 dependency descriptor, an RTP header extension (appendix A of the AV1 RTP payload
//! specification): where frames begin and end, and which frames depend on them, readable without
//! the payload.

use throng_observation::Codec;

use super::CodecError;

/// Template ids have six bits, so a structure can have at most as many templates.
const TEMPLATES_MAX: usize = 64;

/// The dependency descriptor of one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DependencyDescriptor {
    /// The packet is the first of its frame.
    pub start_of_frame: bool,
    /// The packet is the last of its frame.
    pub end_of_frame: bool,
    /// Which template of the structure the frame follows, 0–63.
    pub template_id: u8,
    /// Number of the frame in decode order, with wrap.
    pub frame_number: u16,
    /// It contains a template structure: the first packet of a coded video sequence.
    pub new_structure: bool,
    /// The template of the frame; `None` before its structure was received.
    pub template: Option<FrameTemplate>,
}

/// Properties of a frame from its template and the descriptor's own changes to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrameTemplate {
    /// Spatial layer.
    pub spatial_layer: u8,
    /// Temporal layer.
    pub temporal_layer: u8,
    /// It refers to no other frame.
    pub independent: bool,
    /// No decode target needs it for later frames.
    pub discardable: bool,
}

/// Reads the dependency descriptors of one stream; it keeps the latest template structure.
#[derive(Clone, Debug, Default)]
pub struct DependencyReader {
    structure: Structure,
}

/// At most 64 templates, reused from one sequence to the next.
#[derive(Clone, Debug, Default)]
struct Structure {
    id_offset: u8,
    decode_targets: u32,
    templates: Vec<FrameTemplate>,
}

impl DependencyReader {
    /// Reads one descriptor, the data of the header extension.
    ///
    /// # Errors
    /// [`CodecError::Truncated`] and [`CodecError::Malformed`]; after a structure that cannot be
    /// read no structure is known, because frames refer to the new one.
    pub fn read(&mut self, bytes: &[u8]) -> Result<DependencyDescriptor, CodecError> {
        let mut bits = Bits { bytes, at: 0 };
        let mut descriptor = DependencyDescriptor {
            start_of_frame: bits.flag()?,
            end_of_frame: bits.flag()?,
            template_id: bits.take(6)? as u8,
            frame_number: bits.take(16)? as u16,
            new_structure: false,
            template: None,
        };
        let (mut custom_dependence, mut custom_references) = (false, false);
        if bytes.len() > 3 {
            descriptor.new_structure = bits.flag()?;
            let active_targets = bits.flag()?;
            custom_dependence = bits.flag()?;
            custom_references = bits.flag()?;
            bits.flag()?; // custom chains follow all that is read here
            if descriptor.new_structure
                && let Err(error) = self.structure.read(&mut bits)
            {
                self.structure.templates.clear();
                return Err(error);
            }
            if active_targets {
                bits.take(self.structure.decode_targets)?;
            }
        }
        let index = descriptor.template_id.wrapping_sub(self.structure.id_offset) & 0x3f;
        if let Some(&template) = self.structure.templates.get(usize::from(index)) {
            let mut template = template;
            if custom_dependence {
                template.discardable = bits.discardable(self.structure.decode_targets)?;
            }
            if custom_references {
                template.independent = bits.skip_custom_references()? == 0;
            }
            descriptor.template = Some(template);
        }
        Ok(descriptor)
    }
}

impl Structure {
    fn read(&mut self, bits: &mut Bits<'_>) -> Result<(), CodecError> {
        self.templates.clear();
        self.id_offset = bits.take(6)? as u8;
        self.decode_targets = bits.take(5)? + 1;
        self.read_layers(bits)?;
        for template in &mut self.templates {
            template.discardable = bits.discardable(self.decode_targets)?;
        }
        for template in &mut self.templates {
            template.independent = true;
            while bits.flag()? {
                bits.take(4)?;
                template.independent = false;
            }
        }
        self.skip_chains(bits)?;
        if bits.flag()? {
            // Width and height of each spatial layer.
            let spatial_layers = self.templates.last().map_or(0, |last| last.spatial_layer) + 1;
            for _ in 0..spatial_layers {
                bits.take(32)?;
            }
        }
        Ok(())
    }

    fn read_layers(&mut self, bits: &mut Bits<'_>) -> Result<(), CodecError> {
        let mut template = FrameTemplate::default();
        loop {
            if self.templates.len() == TEMPLATES_MAX {
                return Err(CodecError::Malformed {
                    codec: Codec::Av1,
                    what: "count of frame templates",
                });
            }
            self.templates.push(template);
            match bits.take(2)? {
                0 => {}
                1 => template.temporal_layer += 1, // both stay below TEMPLATES_MAX
                2 => {
                    (template.temporal_layer, template.spatial_layer) =
                        (0, template.spatial_layer + 1);
                }
                _ => return Ok(()),
            }
        }
    }

    fn skip_chains(&self, bits: &mut Bits<'_>) -> Result<(), CodecError> {
        let chains = bits.non_symmetric(self.decode_targets + 1)?;
        if chains == 0 {
            return Ok(());
        }
        for _ in 0..self.decode_targets {
            bits.non_symmetric(chains)?;
        }
        for _ in 0..self.templates.len() {
            for _ in 0..chains {
                bits.take(4)?;
            }
        }
        Ok(())
    }
}

/// Bits, the most significant first.
struct Bits<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Bits<'_> {
    fn flag(&mut self) -> Result<bool, CodecError> {
        let what = "dependency descriptor";
        let byte = self.bytes.get(self.at / 8).ok_or(CodecError::Truncated {
            codec: Codec::Av1,
            what,
            len: self.bytes.len(),
        })?;
        let flag = byte >> (7 - self.at % 8) & 1 == 1;
        self.at += 1;
        Ok(flag)
    }

    /// The next `count` bits, at most 32.
    fn take(&mut self, count: u32) -> Result<u32, CodecError> {
        let mut value = 0;
        for _ in 0..count {
            value = value << 1 | u32::from(self.flag()?);
        }
        Ok(value)
    }

    /// A value below `n` in the non-symmetric code ns(n) of the AV1 specification, section 4.10.7.
    fn non_symmetric(&mut self, n: u32) -> Result<u32, CodecError> {
        let width = u32::BITS - n.leading_zeros();
        let short = (1 << width) - n;
        let value = self.take(width - 1)?;
        if value < short {
            return Ok(value);
        }
        Ok((value << 1 | self.take(1)?) - short)
    }

    /// Reads the indication of each decode target; true if none is above "discardable": no later
    /// frame needs it.
    fn discardable(&mut self, decode_targets: u32) -> Result<bool, CodecError> {
        let mut discardable = true;
        for _ in 0..decode_targets {
            discardable &= self.take(2)? <= 1;
        }
        Ok(discardable)
    }

    /// Number of frames that the frame refers to, by its own list.
    fn skip_custom_references(&mut self) -> Result<usize, CodecError> {
        let mut count = 0;
        loop {
            match self.take(2)? {
                0 => return Ok(count),
                size => self.take(4 * size)?,
            };
            count += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes bits for the descriptors of these tests.
    #[derive(Default)]
    struct Written(Vec<bool>);

    impl Written {
        fn put(mut self, value: u32, count: u32) -> Self {
            self.0.extend((0..count).rev().map(|place| value >> place & 1 == 1));
            self
        }

        fn bytes(&self) -> Vec<u8> {
            self.0
                .chunks(8)
                .map(|bits| {
                    bits.iter()
                        .zip((0..8).rev())
                        .fold(0, |byte, (&bit, place)| byte | u8::from(bit) << place)
                })
                .collect()
        }
    }

    /// L1T3 of section A.6.1: five templates, three decode targets, one chain; template ids
    /// from 10.
    fn l1t3_key_frame() -> Written {
        let mut bits = Written::default()
            .put(0b10, 2) // start, not end
            .put(10, 6)
            .put(500, 16)
            .put(0b10000, 5) // structure, nothing custom
            .put(10, 6)
            .put(2, 5)
            .put(0b00_01_01_00_11, 10); // layers 0, 0, 1, 2, 2
        for dtis in [[2, 2, 2], [2, 2, 2], [2, 1, 0], [1, 0, 0], [1, 0, 0]] {
            bits = dtis.iter().fold(bits, |bits, &dti| bits.put(dti, 2));
        }
        bits = bits.put(0, 1); // the first refers to none
        for reference in [4, 2, 1, 1] {
            bits = bits.put(1, 1).put(reference - 1, 4).put(0, 1);
        }
        bits = bits.put(1, 2); // ns(4): one chain; its ns(1) for each decode target takes no bits
        for distance in [0, 4, 2, 1, 3] {
            bits = bits.put(distance, 4);
        }
        bits.put(1, 1).put(639, 16).put(359, 16)
    }

    fn later(template_id: u32) -> [u8; 3] {
        Written::default().put(0b11, 2).put(template_id, 6).put(501, 16).bytes().try_into().unwrap()
    }

    #[test]
    fn the_structure_of_the_key_frame_explains_later_frames() {
        let mut reader = DependencyReader::default();
        assert_eq!(reader.read(&later(13)).unwrap().template, None);
        let key = reader.read(&l1t3_key_frame().bytes()).unwrap();
        assert_eq!(
            key,
            DependencyDescriptor {
                start_of_frame: true,
                end_of_frame: false,
                template_id: 10,
                frame_number: 500,
                new_structure: true,
                template: Some(FrameTemplate { independent: true, ..FrameTemplate::default() }),
            }
        );
        for (id, temporal_layer, discardable) in
            [(11, 0, false), (12, 1, false), (13, 2, true), (14, 2, true)]
        {
            let descriptor = reader.read(&later(id)).unwrap();
            assert_eq!((descriptor.frame_number, descriptor.end_of_frame), (501, true));
            assert_eq!(
                descriptor.template,
                Some(FrameTemplate {
                    spatial_layer: 0,
                    temporal_layer,
                    independent: false,
                    discardable
                })
            );
        }
        assert_eq!(reader.read(&later(15)).unwrap().template, None); // no such template
        assert_eq!(reader.read(&later(9)).unwrap().template, None);
    }

    #[test]
    fn a_frame_may_amend_its_template() {
        let mut reader = DependencyReader::default();
        reader.read(&l1t3_key_frame().bytes()).unwrap();
        let amended = Written::default()
            .put(0b11, 2)
            .put(11, 6)
            .put(502, 16)
            .put(0b01110, 5) // active decode targets, custom DTIs and references
            .put(0b111, 3)
            .put(0b01_00_00, 6)
            .put(1, 2) // a reference of one nibble
            .put(3, 4)
            .put(2, 2) // and one of two
            .put(1, 8)
            .put(0, 2);
        let template = reader.read(&amended.bytes()).unwrap().template.unwrap();
        assert!(template.discardable && !template.independent);
        let none =
            Written::default().put(0b11, 2).put(11, 6).put(503, 16).put(0b00010, 5).put(0, 2);
        assert!(reader.read(&none.bytes()).unwrap().template.unwrap().independent);
    }

    #[test]
    fn every_truncation_of_a_structure_is_an_error_and_forgets_the_old_one() {
        let whole = l1t3_key_frame().bytes();
        for len in (0..whole.len()).filter(|&len| len != 3) {
            let mut reader = DependencyReader::default();
            reader.read(&whole).unwrap();
            assert!(
                matches!(reader.read(&whole[..len]), Err(CodecError::Truncated { .. })),
                "{len}"
            );
            if len > 3 {
                assert_eq!(reader.read(&later(11)).unwrap().template, None);
            }
        }
    }

    #[test]
    fn a_structure_cannot_grow_without_end() {
        let mut bytes = l1t3_key_frame().0;
        bytes.truncate(40);
        bytes.resize(40 + 2 * 100, false); // next_layer_idc 0 for ever
        assert_eq!(
            DependencyReader::default().read(&Written(bytes).bytes()),
            Err(CodecError::Malformed { codec: Codec::Av1, what: "count of frame templates" })
        );
    }

    #[test]
    fn non_symmetric_codes() {
        // n = 5: 0, 1 and 2 take two bits, 3 and 4 three.
        for (bits, width, value) in
            [(0b00, 2, 0), (0b01, 2, 1), (0b10, 2, 2), (0b110, 3, 3), (0b111, 3, 4)]
        {
            let bytes = Written::default().put(bits, width).bytes();
            let mut reader = Bits { bytes: &bytes, at: 0 };
            assert_eq!((reader.non_symmetric(5).unwrap(), reader.at), (value, width as usize));
        }
    }
}
