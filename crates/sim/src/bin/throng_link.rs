//! Carries packets between two namespaces with a known delay; started by `throng_sim::link::Link`.

fn main() -> Result<(), throng_sim::SimError> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    throng_sim::link::carry(&args, announce)
}

#[expect(clippy::print_stdout, reason = "the parent waits for this word on standard output")]
fn announce() {
    println!("ready");
}
