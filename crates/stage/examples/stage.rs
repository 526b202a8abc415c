//! Runs a stage until Ctrl-C: `cargo run -p throng-stage --example stage -- 127.0.0.1:7080
//! [workers] [low|standard]`.

use throng_stage::{Card, Stage, StageConfig};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut config = StageConfig::default();
    if let Some(listen) = arguments.next() {
        config.http_listen = listen.parse()?;
    }
    if let Some(workers) = arguments.next() {
        config.workers = workers.parse()?;
    }
    if let Some(card) = arguments.next() {
        config.card = Card::from_name(&card).ok_or("card is standard or low")?;
    }
    let stage = Stage::start(config)?;
    say(&format!("view {} or open {}", stage.whep_url(), stage.player_url()));
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(tokio::signal::ctrl_c())?;
    say(&format!("{:#?}", stage.stats()));
    stage.stop();
    Ok(())
}

#[expect(clippy::print_stdout, reason = "an example talks to its terminal")]
fn say(line: &str) {
    println!("{line}");
}
