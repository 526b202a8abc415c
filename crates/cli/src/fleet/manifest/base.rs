//! The files of `deploy/kubernetes`, with the values of a command line in place of their own.
//!
//! A line that a flag changes ends with that flag as its mark (`# --workers`). One that begins with
//! `#~ ` counts only if there are values for all of its marks. In a chart (`--helm`) values are
//! expressions of its templates.

/// The bus.
pub(super) const BUS: &str = include_str!("../../../../../deploy/kubernetes/bus.yaml");
/// The workers.
pub(super) const WORKERS: &str = include_str!("../../../../../deploy/kubernetes/workers.yaml");
/// The coordinator, and the claim of its run folders.
pub(super) const COORDINATOR: &str =
    include_str!("../../../../../deploy/kubernetes/coordinator.yaml");

/// Without Kustomize, which makes it of the file itself. The scenario follows.
pub(super) const SCENARIO: &str = "\
apiVersion: v1
kind: ConfigMap
metadata:
  name: throng-scenario # --name
  #~ namespace: \"throng\" # --namespace
  labels:
    app.kubernetes.io/name: throng
    app.kubernetes.io/instance: \"throng\" # --name
data:
";

/// With `--namespace`.
pub(super) const NAMESPACE: &str = "\
apiVersion: v1
kind: Namespace
metadata:
  name: \"throng\" # --namespace
  labels:
    app.kubernetes.io/name: throng
    # The pods need no more.
    pod-security.kubernetes.io/enforce: restricted
";

/// In front of a line that counts only with its flags.
pub(super) const OPTIONAL: &str = "#~ ";

/// What stands in place of a value of the base.
#[derive(Clone)]
pub(super) struct Slot {
    /// At the end of the lines that it changes.
    mark: &'static str,
    /// What the base has there.
    base: &'static str,
    /// What they have instead: one line for each.
    values: Vec<String>,
    /// In a chart: the action of a template around these lines.
    block: Option<String>,
}

impl Slot {
    pub(super) fn new(
        mark: &'static str,
        base: &'static str,
        values: impl IntoIterator<Item = String>,
    ) -> Self {
        Self { mark, base, values: values.into_iter().collect(), block: None }
    }

    pub(super) fn mark(&self) -> &'static str {
        self.mark
    }

    pub(super) fn values(&self) -> &[String] {
        &self.values
    }

    /// The same whose value is known when a chart is installed: by this expression, in lines around
    /// which there is this action, if any.
    pub(super) fn later(&self, expression: String, block: Option<String>) -> Self {
        Self { mark: self.mark, base: self.base, values: vec![expression], block }
    }
}

/// A file of the base with these values.
pub(super) fn filled(base: &str, slots: &[Slot]) -> String {
    let lines = base.lines().flat_map(|line| filled_line(line, slots));
    lines.map(|line| line + "\n").collect()
}

fn filled_line(line: &str, slots: &[Slot]) -> Vec<String> {
    let as_it_is = || vec![line.to_owned()];
    let Some((written, marks)) = line.rsplit_once(" # ") else { return as_it_is() };
    let slot = |mark: &str| slots.iter().find(|slot| slot.mark == mark && !slot.values.is_empty());
    let Some(slots) = marks.split(", ").map(slot).collect::<Option<Vec<&Slot>>>() else {
        return as_it_is();
    };
    let mut lines = vec![written.replacen(OPTIONAL, "", 1)];
    for slot in &slots {
        let with_values = |line: &String| -> Vec<String> {
            slot.values.iter().map(|value| line.replace(slot.base, value)).collect()
        };
        lines = lines.iter().flat_map(with_values).collect();
    }
    let mut lines: Vec<String> =
        lines.into_iter().map(|line| format!("{line} # {marks}")).collect();
    let indent: String = line.chars().take_while(|c| *c == ' ').collect();
    for block in slots.iter().filter_map(|slot| slot.block.as_deref()) {
        lines.insert(0, format!("{indent}{{{{- {block} }}}}"));
        lines.push(format!("{indent}{{{{- end }}}}"));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn marked_lines_take_the_values_and_others_stay() {
        let slots = [
            Slot::new("--workers", "2", words(&["7"])),
            Slot::new("--allow", "10/8", words(&["10/8", "fd/8"])),
            Slot::new("--secret", "none", words(&[])),
            Slot::new("--name", "throng", words(&["a"])),
        ];
        for (line, expect) in [
            ("n: 2", "n: 2\n"),
            ("n: 2 # --workers", "n: 7 # --workers\n"),
            ("n: 2 # in words", "n: 2 # in words\n"),
            ("  #~ - \"x=10/8\" # --allow", "  - \"x=10/8\" # --allow\n  - \"x=fd/8\" # --allow\n"),
            ("#~ - x=none # --secret", "#~ - x=none # --secret\n"),
            ("#~ - throng=none # --name, --secret", "#~ - throng=none # --name, --secret\n"),
            (
                "#~ - throng=10/8 # --name, --allow",
                "- a=10/8 # --name, --allow\n- a=fd/8 # --name, --allow\n",
            ),
        ] {
            assert_eq!(filled(line, &slots), expect, "{line}");
        }
    }

    #[test]
    fn lines_whose_value_comes_later_stand_in_an_action() {
        let range = Slot::new("--allow", "10/8", words(&[]))
            .later("{{ . }}".into(), Some("range $.x".into()));
        let name = Slot::new("--name", "throng", words(&["b"])).later("{{ $.n }}".into(), None);
        let base = "a:\n  #~ - throng=10/8 # --name, --allow\nb: throng # --name\n";
        let expect = "a:\n  {{- range $.x }}\n  - {{ $.n }}={{ . }} # --name, --allow\n  {{- end }}\n\
                      b: {{ $.n }} # --name\n";
        assert_eq!(filled(base, &[range, name]), expect);
    }
}
