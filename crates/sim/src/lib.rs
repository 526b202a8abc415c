//! Test stands: conformance servers, recorded traffic, namespaces and links. Only for tests.
