//! GStreamer elements over throng-ring: `throngringsink` writes buffers into a ring,
//! `throngringsrc` reads them in another process, without a copy.

use gst::glib;
use gst::prelude::*;

mod sink;
mod source;
mod wire;

glib::wrapper! {
    /// Puts buffers into a ring: connects to the socket path of a `throngringsrc` or any other
    /// consumer.
    pub struct Sink(ObjectSubclass<sink::Sink>)
        @extends gst_base::BaseSink, gst::Element, gst::Object;
}

glib::wrapper! {
    /// Takes buffers out of a ring: listens at a socket path for one producer.
    pub struct Source(ObjectSubclass<source::Source>)
        @extends gst_base::PushSrc, gst_base::BaseSrc, gst::Element, gst::Object;
}

fn plugin_init(plugin: &gst::Plugin) -> Result<(), glib::BoolError> {
    gst::Element::register(Some(plugin), "throngringsink", gst::Rank::NONE, Sink::static_type())?;
    gst::Element::register(Some(plugin), "throngringsrc", gst::Rank::NONE, Source::static_type())
}

gst::plugin_define!(
    throngring,
    env!("CARGO_PKG_DESCRIPTION"),
    plugin_init,
    env!("CARGO_PKG_VERSION"),
    // The licences are MIT or Apache-2.0; GStreamer's list has only the first.
    "MIT/X11",
    env!("CARGO_PKG_NAME"),
    env!("CARGO_PKG_NAME"),
    "https://example.invalid/throng",
    "2026-11-21"
);
