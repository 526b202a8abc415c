//! Enums whose variants have stable keys.

/// Declares such an enum: its variants in order, each with its meaning (its comment) and its key,
/// by which serde writes it as well. With `column` they have columns in `run.db`, whose names are
/// the key between the two texts.
macro_rules! keyed {
    (
        $(#[$about:meta])+
        $name:ident, column $prefix:literal key $suffix:literal {
            $( $(#[$meaning:meta])+ $variant:ident = $key:literal, )+
        }
    ) => {
        $crate::keyed::keyed! {
            $(#[$about])+
            $name { $( $(#[$meaning])+ $variant = $key, )+ }
        }

        impl $name {
            /// The name of its column in `run.db`.
            #[must_use]
            pub fn column(self) -> &'static str {
                match self {
                    $(Self::$variant => concat!($prefix, $key, $suffix),)+
                }
            }
        }
    };
    (
        $(#[$about:meta])+
        $name:ident {
            $( $(#[$meaning:meta])+ $variant:ident = $key:literal, )+
        }
    ) => {
        $(#[$about])+
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, ::serde::Serialize,
            ::serde::Deserialize,
        )]
        #[serde(rename_all = "snake_case")]
        pub enum $name {
            $( $(#[$meaning])+ $variant, )+
        }

        impl $name {
            /// All, in order.
            pub const ALL: [Self; [$($key),+].len()] = [$(Self::$variant),+];

            /// All with their keys, in order.
            pub const NAMED: &'static [(Self, &'static str)] = &[$((Self::$variant, $key)),+];

            /// The stable key in tables, `run.db` and `summary.json`.
            #[must_use]
            pub const fn key(self) -> &'static str {
                match self {
                    $(Self::$variant => $key,)+
                }
            }

            /// The inverse of [`Self::key`]; `None` where the key is not known.
            #[must_use]
            pub fn from_key(key: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|known| known.key() == key)
            }
        }
    };
}
pub(crate) use keyed;
