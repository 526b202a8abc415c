//! Which Python has the package `websockets`.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::TransportError;

/// A Python that can play the consumer.
#[derive(Clone, Debug)]
pub(super) struct Python {
    pub(super) program: PathBuf,
    /// `Python 3.11.2, websockets 10.4 with its C extension`.
    pub(super) version: String,
}

/// Whether its C extension is there decides by how much masking costs.
const ASK: &str = "
import importlib.util, platform, websockets
c = importlib.util.find_spec('websockets.speedups') is not None
print('Python', platform.python_version() + ', websockets', websockets.__version__, 'with' if c else 'without', 'its C extension')
";

/// The wanted one; else the first of those on the path and of the system that has the package.
pub(super) fn find(wanted: Option<&PathBuf>) -> Result<Python, TransportError> {
    let candidates = match wanted {
        Some(python) => vec![python.clone()],
        None => vec!["python3".into(), "/usr/bin/python3".into()],
    };
    let mut asked = Vec::new();
    for program in candidates {
        let answer = Command::new(&program).args(["-c", ASK]).stdin(Stdio::null()).output();
        match answer {
            Ok(answer) if answer.status.success() => {
                let version = String::from_utf8_lossy(&answer.stdout).trim().to_owned();
                return Ok(Python { program, version });
            }
            Ok(_) => asked.push(format!("{} has no package websockets", program.display())),
            Err(error) => asked.push(format!("{}: {error}", program.display())),
        }
    }
    Err(TransportError::Missing(format!(
        "{}: install python3-websockets, or name a Python that has it with --python",
        asked.join("; ")
    )))
}
