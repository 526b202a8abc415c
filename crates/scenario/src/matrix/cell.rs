//! A cell resolved: the overrides, the server and the commands of its levels, with all variables in
//! their places.

use super::{Cell, Matrix, Server, SetTo, Shrink, Step};

/// What a cell runs with.
#[derive(Clone, Debug, PartialEq)]
pub struct CellConfig {
    /// Overrides of the scenario: path, and value as TOML. Later ones win.
    pub set: Vec<(String, String)>,
    /// The server.
    pub server: Server<String>,
    /// Commands before it starts.
    pub setup: Vec<Step<String>>,
    /// The value of each variable, for configuration files.
    pub variables: Vec<(String, String)>,
    /// Resources of which it gets less than that.
    pub shrink: Vec<Shrink>,
}

/// The folders that templates name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Places {
    /// `{{dir}}`: the cell's own folder.
    pub dir: String,
    /// `{{base}}`: the folder of the matrix file.
    pub base: String,
}

impl Matrix {
    /// Resolves `cell`.
    #[must_use]
    pub fn cell(&self, cell: &Cell, places: &Places) -> CellConfig {
        let levels = || {
            let chosen = self.factors.iter().zip(&cell.levels);
            chosen.filter_map(|(factor, level)| Some((factor, factor.levels.get(*level)?)))
        };
        let mut variables = self.variables.clone();
        let mut know = |name: &str, value: &str| {
            variables.retain(|(known, _)| known != name);
            variables.push((name.to_owned(), value.to_owned()));
        };
        for (factor, level) in levels() {
            know(&factor.name, &level.name);
        }
        for (name, value) in levels().flat_map(|(_, level)| &level.variables) {
            know(name, value);
        }
        know("dir", &places.dir);
        know("base", &places.base);
        let value = |name: &str| {
            let known = variables.iter().find(|(known, _)| known == name);
            known.map(|(_, value)| value.clone()).unwrap_or_default()
        };
        let set = self.set.iter().chain(levels().flat_map(|(_, level)| &level.set)).map(|set| {
            let toml = match &set.value {
                SetTo::Text(text) => toml::Value::String(text.render(&value)).to_string(),
                SetTo::Toml(toml) => toml.render(&value),
            };
            (set.path.clone(), toml)
        });
        let set = set.collect();
        let server =
            levels().fold(self.server.clone(), |server, (_, level)| server.with(&level.server));
        let steps = self.setup.iter().chain(levels().flat_map(|(_, level)| &level.setup));
        let setup = steps.map(|step| Step {
            run: step.run.iter().map(|word| word.render(&value)).collect(),
            undo: step.undo.iter().map(|word| word.render(&value)).collect(),
        });
        let setup = setup.collect();
        let server = server.map(|text| text.render(&value));
        let shrink = levels().flat_map(|(_, level)| level.shrink.clone()).collect();
        CellConfig { set, server, setup, variables, shrink }
    }
}
