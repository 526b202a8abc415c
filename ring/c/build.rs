//! Gives the shared library its soname, so that a program that was linked against one version does
//! not start with another that breaks its interface: before 1.0 that is each minor version, as
//! cargo reads versions.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let part = |name: &str| std::env::var(format!("CARGO_PKG_VERSION_{name}")).unwrap_or_default();
    let (major, minor) = (part("MAJOR"), part("MINOR"));
    let compatible = if major == "0" { format!("{major}.{minor}") } else { major };
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libthrong_ring_c.so.{compatible}");
}
