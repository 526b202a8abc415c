//! `throng man`: writes the manual pages, one for each command, for those who make packages.

use std::io;
use std::path::Path;

use clap_mangen::Man;

use crate::args::{as_printed, for_users};
use crate::console::{CliError, Exit};

pub(super) fn man(folder: &Path) -> Result<Exit, CliError> {
    write_pages(folder).map_err(|error| {
        CliError::usage(format!("cannot write manual pages into {}: {error}", folder.display()))
    })?;
    Ok(Exit::Met)
}

fn write_pages(folder: &Path) -> io::Result<()> {
    std::fs::create_dir_all(folder)?;
    let mut all = for_users();
    all.build();
    pages(&all)?.into_iter().try_for_each(|(name, text)| std::fs::write(folder.join(name), text))
}

/// The pages of a command and of those below it: name of the file and text.
fn pages(command: &clap::Command) -> io::Result<Vec<(String, String)>> {
    let page = Man::new(command.clone())
        .manual("throng")
        .source(concat!("throng ", env!("CARGO_PKG_VERSION")));
    let mut text = Vec::new();
    page.render(&mut text)?;
    let text = String::from_utf8(text).map_err(io::Error::other)?;
    let mut all = vec![(page.get_filename(), as_printed(&with_lines(&text)))];
    for below in command.get_subcommands() {
        all.extend(pages(below)?);
    }
    Ok(all)
}

/// The ends of help texts are tables: their lines stay lines (`.nf`, until the next heading).
fn with_lines(page: &str) -> String {
    page.replace(".SH EXTRA\n", ".SH NOTES\n.nf\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_command_of_users_has_a_page() {
        let folder = tempfile::tempdir().unwrap();
        write_pages(&folder.path().join("made")).unwrap();
        let page = |name: &str| std::fs::read_to_string(folder.path().join("made").join(name));
        let all = page("throng.1").unwrap();
        assert!(all.contains("\n.nf\nExit codes:\n    0  objectives met\n"), "{all}");
        let view = page("throng-view.1").unwrap();
        assert!(view.contains("{n}") && !view.contains('⟨'), "{view}");
        assert!(page("throng-fleet-manifest.1").unwrap().contains("throng fleet manifest"));
        for hidden in ["throng-man.1", "throng-ipc-role.1"] {
            assert!(page(hidden).is_err(), "{hidden}");
        }
    }

    #[test]
    fn a_folder_that_is_a_file_is_a_usage_error() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let stop = man(file.path()).unwrap_err();
        assert_eq!(stop.exit, Exit::Usage);
        let said = format!("{:#}", stop.error);
        assert!(said.contains("cannot write manual pages into /"), "{said}");
    }
}
