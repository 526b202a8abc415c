//! Finds a Python that has the package `websockets`.

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

/// The cost of masking depends on whether its C extension is installed.
const ASK: &str = "
import importlib.util, platform, websockets
c = importlib.util.find_spec('websockets.speedups') is not None
print('Python', platform.python_version() + ', websockets', websockets.__version__, 'with' if c \
                   else 'without', 'its C extension')
";

/// The requested one; else the first one in `PATH` or of the system that has the package.
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
