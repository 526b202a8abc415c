//! Downloads over HTTP, as a browser makes them for a page.
//!
//! `client` sends requests and counts them; it has the cookies, the other versions of HTTP that a
//! server offers (`alternatives`), and the permissions of other origins (`cors`, `preflight`).
//! `transfer` checks responses, follows redirects and decodes bodies (`encoding`); `whole` is a
//! transfer whose body is used when it is complete. `retry` says when one that failed is made
//! again.

mod alternatives;
pub(super) mod client;
mod cookies;
pub(super) mod cors;
mod encoding;
mod preflight;
pub(super) mod retry;
pub(super) mod transfer;
pub(super) mod whole;

#[doc(hidden)]
pub use self::cookies::cookies_after;
#[doc(hidden)]
pub use self::encoding::decode_any_body;
#[doc(hidden)]
pub use self::preflight::permission_by;
