//! Downloads over HTTP/1.1, HTTP/2 and HTTP/3: what is demanded is read, and nothing else.

mod puller;
mod servers;

mod connections;
mod demand;
mod failures;
mod hostile;
mod real_servers;
mod refused;
