//! HTTP/1.1, HTTP/2 and HTTP/3 for participants: whole bodies ([`fetch`]), and bodies read on
//! demand ([`download`]), on connections that each participant keeps in its [`Pool`].

mod origin;

mod request;

mod failure;

mod http1;

mod http2;

mod http3;

mod transport;

mod pool;
pub(crate) use pool::Pool;

mod alternative;

mod exchange;

mod body;

mod fetch;
pub(crate) use fetch::{fetch, get};

mod demand;
pub(crate) use demand::Demands;

mod download;
pub(crate) use download::{DownloadPart, Receiver, download};
