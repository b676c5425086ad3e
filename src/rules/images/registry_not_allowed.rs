//! An image comes from a registry that is not on the list.
//!
//! ## What it does
//! Reports containers, init containers, sidecars and image volumes whose image comes from a registry other than those of
//! the parameter `registries`. Host and port are compared whole: `registry.example` allows neither
//! `registry.example:5000` nor `mirror.registry.example`. As in container runtimes, what stands before the first `/` is a
//! host only where it holds a `.`, a `:` or a capital letter, or is `localhost`; without a host the registry is
//! `docker.io`, and `index.docker.io` is another name of that. While `registries` is empty nothing is reported. An empty
//! image is left to the API server.
//!
//! ## Why it matters
//! Images from elsewhere were not scanned, can vanish or change with their owner, and are pulled through rate limits
//! and networks that nobody here controls: a rollout at night then stands still on `ImagePullBackOff`.
//!
//! ## Example
//! With `params: {registries: [registry.example]}`. Bad:
//! ```yaml
//! containers:
//!   - name: proxy
//!     image: nginx:1.27        # docker.io
//! ```
//! Good:
//! ```yaml
//! containers:
//!   - name: proxy
//!     image: registry.example/nginx:1.27
//! ```
//!
//! ## Parameters
//! * `registries`: the registries that are allowed, each a host with its port if it has one; `[]`.
//! * `ephemeral`: whether ephemeral containers are judged too; `false`.
//!
//! ## Unknown facts
//! It needs none. A node whose runtime rewrites registries, or completes short names otherwise, is not seen.

use crate::engine::context::Context;
use crate::engine::finding::{Action, Finding};
use crate::engine::kind::TEMPLATED;
use crate::engine::rule::{Category, InvalidParam, Meta, Rule};
use crate::engine::text::{listed, quoted};
use crate::rules::images::named::{Named, named};
use crate::rules::images::reference::ImageReference;

/// The registry of images that name none.
const DEFAULT_REGISTRY: &str = "docker.io";

/// Another name of [`DEFAULT_REGISTRY`] (distribution/reference: legacyDefaultDomain).
const LEGACY_DEFAULT_REGISTRY: &str = "index.docker.io";

/// Most registries that a message lists.
const MOST_LISTED: usize = 5;

/// The rule `registry-not-allowed`.
pub struct RegistryNotAllowed;

/// Parameters of `registry-not-allowed`.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Params {
    /// The registries that are allowed, each a host with its port if it has one.
    pub registries: Vec<String>,
    /// Whether ephemeral containers are judged too.
    pub ephemeral: bool,
}

impl Rule for RegistryNotAllowed {
    const META: Meta = Meta {
        id: "registry-not-allowed",
        category: Category::Images,
        since: "0.1",
        kinds: TEMPLATED,
        baseline: Action::Off,
        critical: Action::Off,
        fixable: false,
        baseline_fix: false,
        source: include_str!("registry_not_allowed.rs"),
    };

    type Params = Params;

    fn validate(params: &Params) -> Result<(), InvalidParam> {
        let wrong = params.registries.iter().enumerate().find_map(|(index, entry)| Some((index, misspelled(entry)?)));
        match wrong {
            Some((index, message)) => Err(InvalidParam { path: format!("registries[{index}]"), message }),
            None => Ok(()),
        }
    }

    fn check(context: &Context<'_>, params: &Params, findings: &mut Vec<Finding>) {
        let Some(template) = context.template.filter(|_| !params.registries.is_empty()) else { return };
        findings.extend(named(template, params.ephemeral).filter_map(|named| judge(&named, params)));
    }
}

/// What is wrong with an entry that no image's registry could equal.
fn misspelled(entry: &str) -> Option<String> {
    let shown = quoted(entry);
    if entry == LEGACY_DEFAULT_REGISTRY {
        return Some(format!("{shown} is another name of {DEFAULT_REGISTRY}: write that"));
    }
    if entry.contains('/') {
        return Some(format!("{shown} is no registry: write the host alone, without scheme and path"));
    }
    let (host, port) = entry.split_once(':').map_or((entry, None), |(host, port)| (host, Some(port)));
    let word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let labels = host.split('.').all(|label| {
        let edge = |byte: Option<&u8>| byte.is_some_and(|byte| word(*byte));
        let inner = label.bytes().all(|byte| word(byte) || byte == b'-');
        edge(label.as_bytes().first()) && edge(label.as_bytes().last()) && inner
    });
    if !labels || port.is_some_and(|port| port.parse::<u16>().is_err()) {
        return Some(format!("{shown} is no host[:port] in lower case, such as registry.example:5000"));
    }
    (registry(&format!("{entry}/x")) == DEFAULT_REGISTRY && entry != DEFAULT_REGISTRY).then(|| {
        format!("{shown} is read as a folder of {DEFAULT_REGISTRY} in an image's name: a host holds a dot or a port")
    })
}

/// The registry of an image's name without tag and digest, in lower case (distribution/reference: splitDockerDomain).
fn registry(name: &str) -> String {
    match name.split_once('/') {
        Some((LEGACY_DEFAULT_REGISTRY, _)) => DEFAULT_REGISTRY.to_owned(),
        Some((first, _)) if is_host(first) => first.to_ascii_lowercase(),
        _ => DEFAULT_REGISTRY.to_owned(),
    }
}

fn is_host(first: &str) -> bool {
    first == "localhost" || first.contains(['.', ':']) || first.bytes().any(|byte| byte.is_ascii_uppercase())
}

fn judge(named: &Named<'_>, params: &Params) -> Option<Finding> {
    let image = ImageReference::parse(named.image)?;
    let registry = registry(image.name);
    if params.registries.contains(&registry) {
        return None;
    }
    let (host, path) = image.name.split_once('/').filter(|(host, _)| is_host(host)).unwrap_or(("", image.name));
    let from = if host.is_empty() {
        format!("names no registry, so it comes from {DEFAULT_REGISTRY}")
    } else {
        format!("comes from {}", quoted(&registry))
    };
    let message = format!(
        "{}: image {} {from}, but allowed are only {}",
        named.subject(),
        quoted(named.image),
        listed(params.registries.iter().map(|registry| quoted(registry)), MOST_LISTED)
    );
    let rest = &named.image[image.name.len()..];
    let mirrored = format!("{}/{path}{rest}", params.registries.first()?);
    Some(named.finding(RegistryNotAllowed::META.id, message, &mirrored, "once it is mirrored there"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::rules::testing::{in_pod_spec, refused};

    fn messages(image: &str, registries: &[&str]) -> Vec<(String, Option<String>)> {
        let spec = json!({"containers": [{"name": "app", "image": image}]});
        let findings = in_pod_spec::<RegistryNotAllowed>(spec, json!({"registries": registries}));
        findings.into_iter().map(|finding| (finding.message, finding.mend)).collect()
    }

    fn allowed(image: &str, registries: &[&str]) -> bool {
        messages(image, registries).is_empty()
    }

    #[test]
    fn h01_the_registry_is_what_runtimes_take_for_it() {
        for (name, expected) in [
            ("app", "docker.io"),
            ("team/app", "docker.io"),
            ("docker.io/app", "docker.io"),
            ("docker.io/library/app", "docker.io"),
            ("index.docker.io/library/app", "docker.io"),
            ("registry-1.docker.io/library/app", "registry-1.docker.io"),
            ("docker.io:443/app", "docker.io:443"),
            ("quay.io/team/app", "quay.io"),
            ("reg:5000/app", "reg:5000"),
            ("localhost/app", "localhost"),
            ("localhost:5000/app", "localhost:5000"),
            ("Registry.Example/app", "registry.example"),
            ("LOCAL/app", "local"),
            ("10.0.0.1/app", "10.0.0.1"),
        ] {
            assert_eq!(registry(name), expected, "{name}");
        }
    }

    #[test]
    fn hosts_are_compared_whole() {
        assert!(allowed("registry.example/app:1", &["registry.example"]));
        for image in [
            "registry.example:5000/app:1",
            "registry.example.evil.io/app:1",
            "mirror.registry.example/app:1",
            "registry.exampl/app",
            "evil.io/registry.example/app",
            "registry.example",
        ] {
            assert!(!allowed(image, &["registry.example"]), "{image}");
        }
        assert!(allowed("nginx", &["docker.io"]) && allowed("docker.io/nginx", &["docker.io"]));
        assert!(allowed("a.example/x", &["b.example", "a.example"]));
    }

    #[test]
    fn without_a_list_and_without_an_image_nothing_is_reported() {
        assert!(allowed("evil.io/app", &[]) && allowed("", &["registry.example"]));
        let spec = json!({"containers": [null, {"image": 1}], "volumes": "x"});
        assert_eq!(in_pod_spec::<RegistryNotAllowed>(spec, json!({"registries": ["r.io"]})), []);
    }

    #[test]
    fn the_message_spells_out_where_a_short_name_comes_from() {
        let (message, mend) = messages("nginx:1.27", &["registry.example:5000", "b.io"]).swap_remove(0);
        assert_eq!(
            message,
            "container \"app\": image \"nginx:1.27\" names no registry, so it comes from docker.io, but allowed are \
             only \"registry.example:5000\", \"b.io\""
        );
        assert_eq!(mend.as_deref(), Some("image: \"registry.example:5000/nginx:1.27\"  # once it is mirrored there"));
        let (message, mend) =
            messages("quay.io/a/b@sha256:00", &["1.io", "2.io", "3.io", "4.io", "5.io", "6.io"]).swap_remove(0);
        assert!(message.ends_with(
            "comes from \"quay.io\", but allowed are only \"1.io\", \"2.io\", \"3.io\", \"4.io\", \"5.io\" and 1 more"
        ));
        assert!(mend.unwrap().starts_with("image: \"1.io/a/b@sha256:00\""));
    }

    #[test]
    fn h08_image_volumes_and_all_classes_count() {
        let spec = json!({
            "initContainers": [{"name": "i", "image": "x"}, {"name": "s", "image": "x", "restartPolicy": "Always"}],
            "ephemeralContainers": [{"name": "e", "image": "x"}],
            "volumes": [{"name": "v", "image": {"reference": "x"}}],
        });
        let count = |params| in_pod_spec::<RegistryNotAllowed>(spec.clone(), params).len();
        assert_eq!(count(json!({"registries": ["r.io"]})), 3);
        assert_eq!(count(json!({"registries": ["r.io"], "ephemeral": true})), 4);
    }

    #[test]
    fn entries_that_no_registry_equals_are_refused() {
        for entry in [
            "",
            "https://r.io",
            "r.io/team",
            "R.io",
            "r.io:",
            "r.io:http",
            "-r.io",
            "r..io",
            "*.r.io",
            "index.docker.io",
            "mirror",
        ] {
            assert_eq!(
                refused::<RegistryNotAllowed>(json!({"registries": ["docker.io", entry]})),
                "registries[1]",
                "{entry}"
            );
        }
        assert!(allowed("x", &["localhost", "localhost:5000", "10.0.0.1:5000", "docker.io"]));
    }
}
