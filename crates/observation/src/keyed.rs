//! Enums whose variants have stable keys.

/// Declares such an enum: its variants in order, each with its meaning (its comment) and its key,
/// by which serde writes it as well. Its column in `run.db` is named by the key and what follows
/// `column key +`.
macro_rules! keyed {
    (
        $(#[doc = $about:literal])+
        $name:ident, column key + $suffix:literal {
            $( $(#[doc = $meaning:literal])+ $variant:ident = $key:literal, )+
        }
    ) => {
        $(#[doc = $about])+
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, ::serde::Serialize,
            ::serde::Deserialize,
        )]
        #[serde(rename_all = "snake_case")]
        pub enum $name {
            $( $(#[doc = $meaning])+ $variant, )+
        }

        impl $name {
            /// All, in order.
            pub const ALL: [Self; [$($key),+].len()] = [$(Self::$variant),+];

            /// The stable key in tables, `run.db` and `summary.json`.
            #[must_use]
            pub fn key(self) -> &'static str {
                match self {
                    $(Self::$variant => $key,)+
                }
            }

            /// The name of its column in `run.db`.
            #[must_use]
            pub fn column(self) -> &'static str {
                match self {
                    $(Self::$variant => concat!($key, $suffix),)+
                }
            }
        }
    };
}
pub(crate) use keyed;
