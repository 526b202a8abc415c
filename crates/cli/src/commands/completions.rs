//! `throng completions`: prints what a shell completes command lines of throng by.

use clap_complete::{Shell, generate};

use crate::args::{as_printed, for_users};
use crate::console::{CliError, Exit, print};

pub(super) fn completions(shell: Shell) -> Result<Exit, CliError> {
    print(&script(shell).map_err(CliError::invalid)?);
    Ok(Exit::Met)
}

fn script(shell: Shell) -> Result<String, std::string::FromUtf8Error> {
    let mut script = Vec::new();
    // Writing to memory does not fail.
    generate(shell, &mut for_users(), "throng", &mut script);
    Ok(as_printed(&String::from_utf8(script)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_shell_completes_the_commands_of_users() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let script = script(shell).unwrap();
            for word in ["calibrate", "manifest", "warm-up"] {
                assert!(script.contains(word), "{shell}: {word}");
            }
            for word in ["ipc-role", "⟨", "\u{1b}"] {
                assert!(!script.contains(word), "{shell}: {word}");
            }
        }
    }
}
