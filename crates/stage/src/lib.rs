//! The embedded media server that a demo, a calibration and a quick test fill.
