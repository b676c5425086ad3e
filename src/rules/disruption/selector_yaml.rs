//! The selector of a workload as lines to copy.

use crate::engine::context::Context;
use crate::engine::text::quoted;

/// `matchLabels:` and the workload's own `spec.selector.matchLabels` below it, each line indented by this many spaces.
/// `None` where it has none or more than labels: no text is better than one that selects other pods.
pub fn match_labels(context: &Context<'_>, indent: usize) -> Option<String> {
    let selector = context.object.at(&["spec", "selector"]);
    if !selector["matchExpressions"].items().is_empty() {
        return None;
    }
    let mut yaml = format!("{:indent$}matchLabels:", "");
    let mut labels = 0;
    for (key, value) in selector["matchLabels"].members() {
        let (key, value) = (scalar(key), scalar(value.as_str()?));
        yaml.push_str(&format!("\n{:indent$}  {key}: {value}", ""));
        labels += 1;
    }
    (labels > 0).then_some(yaml)
}

/// The text as a YAML scalar that reads back as a string.
pub fn scalar(text: &str) -> String {
    let word = text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_./".contains(&byte));
    // What YAML 1.1 readers, kubectl's among them, take for a boolean or for nothing.
    let taken = ["true", "false", "yes", "no", "on", "off", "y", "n", "null"];
    if word && !taken.contains(&text.to_ascii_lowercase().as_str()) { text.to_owned() } else { quoted(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_yaml_would_misread_is_quoted() {
        assert_eq!(scalar("app.kubernetes.io/name"), "app.kubernetes.io/name");
        for (text, yaml) in [("1", "\"1\""), ("true", "\"true\""), ("No", "\"No\""), ("", "\"\""), ("a: b", "\"a: b\"")]
        {
            assert_eq!(scalar(text), yaml);
        }
    }
}
