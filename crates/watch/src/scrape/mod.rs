//! Metrics that a server provides itself: Prometheus and OpenMetrics endpoints, Janus's admin API
//! and event handler, OvenMediaEngine's REST API, status pages. Parsing gets bytes and the time
//! from outside; [`Scraper`] owns the connections, and contacts only addresses that the run may
//! reach.

mod backoff;
mod endpoint;
mod fetch;
mod filter;
pub mod janus;
mod openmetrics;
mod oven_media_engine;
mod query;
mod rates;
mod round;
mod scraper;
mod series;
mod status_page;
mod tls;

pub use endpoint::{AddressCheck, Credentials, Endpoint, EndpointError};
pub use fetch::FetchError;
pub use filter::Filter;
pub use openmetrics::{Exposition, Kind, SAMPLES_MAX, Sample, parse};
pub use query::{Query, UnexpectedAnswer};
pub use rates::{Rates, SERIES_MAX};
pub use round::Round;
pub use scraper::{INTERVAL_MIN, Scraper};
