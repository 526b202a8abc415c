//! The ids of requests. They are UUIDs, as those of ConverseJS, in which the last twelve digits
//! count, so that an answer names its request without a table of texts.

/// Makes the ids of one session.
#[derive(Debug)]
pub(super) struct Ids {
    prefix: String,
    count: u64,
}

impl Ids {
    pub(super) fn new(rng: &mut fastrand::Rng) -> Self {
        let (a, b, c) = (rng.u32(..), rng.u16(..), rng.u16(..) & 0x0fff);
        let d = rng.u16(..) & 0x3fff | 0x8000;
        Self { prefix: format!("{a:08x}-{b:04x}-4{c:03x}-{d:04x}-"), count: 0 }
    }

    /// The next UUID, and its number.
    pub(super) fn uuid(&mut self) -> (String, u64) {
        self.count += 1;
        (format!("{}{:012x}", self.prefix, self.count), self.count)
    }

    /// The number of an id that begins with one of these UUIDs.
    pub(super) fn number(&self, id: &str) -> Option<u64> {
        let digits = id.strip_prefix(self.prefix.as_str())?.get(..12)?;
        u64::from_str_radix(digits, 16).ok().filter(|number| (1..=self.count).contains(number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_tells_its_number_and_those_of_others_tell_none() {
        let mut rng = fastrand::Rng::with_seed(1);
        let (mut ids, mut others) = (Ids::new(&mut rng), Ids::new(&mut rng));
        let (first, second) = (ids.uuid(), ids.uuid());
        assert_eq!((first.0.len(), first.1, second.1), (36, 1, 2));
        assert_eq!(ids.number(&format!("{}:sendIQ", second.0)), Some(2));
        let (other, _) = others.uuid();
        assert_eq!((ids.number(&other), ids.number("é"), ids.number("")), (None, None, None));
        let ahead = first.0.replace("000000000001", "000000000003");
        assert_eq!(ids.number(&ahead), None, "not sent yet");
    }
}
