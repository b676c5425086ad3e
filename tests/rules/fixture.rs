//! One fixture: a manifest, and in its comments what the rule is to make of it.

use std::collections::BTreeMap;
use std::path::Path;

use plimsoll::engine::context::{Context, Declined};
use plimsoll::engine::document::Value;
use plimsoll::engine::facts::{ConfigFacts, Facts, Known, Needs, Quota, Reason, ServerVersion};
use plimsoll::engine::finding::{Action, Finding};
use plimsoll::engine::kind::{self, Kind};
use plimsoll::engine::neighbours::{Neighbours, Requirement};
use plimsoll::engine::request::{Endpoint, Operation};
use plimsoll::engine::rule::AnyRule;
use plimsoll::policy::Policy;

/// A manifest to judge.
pub struct Fixture {
    /// `pass/a.yaml`, for messages.
    pub name: String,
    /// The object as JSON text.
    pub object: String,
    /// What must be found, in any order.
    pub expects: Vec<Expect>,
    kind: &'static Kind,
    parent: Option<&'static Kind>,
    operation: Operation,
    endpoint: Endpoint,
    params: serde_json::Value,
    facts: GivenFacts,
    neighbours: Neighbours,
}

/// One finding that must come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expect {
    /// Its pointer, whole.
    pub pointer: String,
    /// A part of its message.
    pub message: String,
}

/// Facts as `# facts:` gives them; what it leaves out is as in the head of `main.rs`.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct GivenFacts {
    server_version: Option<String>,
    quotas: Option<Given<Vec<GivenQuota>>>,
    limit_range: Option<Given<bool>>,
    #[serde(default)]
    digests: BTreeMap<String, String>,
    #[serde(default)]
    configs: BTreeMap<String, Given<GivenConfig>>,
    /// `"unknown"`: nothing is known of what stands in the namespace.
    neighbours: Option<Unknown>,
}

/// What is told of a ConfigMap or Secret; `absent`: it is not there.
#[derive(Debug, Clone, serde::Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct GivenConfig {
    #[serde(default)]
    absent: bool,
    #[serde(default)]
    immutable: bool,
    #[serde(default)]
    bytes: u64,
    #[serde(default)]
    missing_keys: Vec<String>,
    #[serde(default)]
    binary_keys: Vec<String>,
}

/// A value, or the word `unknown`.
#[derive(Debug, serde::Deserialize)]
#[serde(untagged)]
enum Given<T> {
    Value(T),
    Word(Unknown),
}

#[derive(Debug, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
enum Unknown {
    Unknown,
}

#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct GivenQuota {
    name: String,
    hard: Vec<String>,
    /// Names of scopes, as in `spec.scopes`.
    #[serde(default)]
    scopes: Vec<String>,
}

impl Fixture {
    /// Reads the file; the error says what is wrong with it.
    pub fn read(name: String, path: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
        let mut manifests: Vec<serde_json::Value> =
            serde_saphyr::from_multiple(&text).map_err(|error| error.to_string())?;
        if manifests.is_empty() {
            return Err("there is no manifest in it".to_owned());
        }
        let manifest = manifests.remove(0);
        let mut neighbours = Neighbours::default();
        for manifest in &manifests {
            neighbours.add(&Value::parse(&manifest.to_string()).map_err(|error| error.to_string())?);
        }
        let member = |key: &str| manifest[key].as_str().ok_or(format!("{key} is missing"));
        let (api_version, kind) = (member("apiVersion")?, member("kind")?);
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        let kind = kind::lookup(group, kind).ok_or(format!("kind {api_version} {kind} is not judged at all"))?;
        let mut fixture = Fixture {
            name,
            object: manifest.to_string(),
            expects: Vec::new(),
            kind,
            parent: None,
            operation: Operation::Create,
            endpoint: Endpoint::Validate,
            params: serde_json::json!({}),
            facts: GivenFacts::default(),
            neighbours,
        };
        let mut seen = Vec::new();
        for (word, rest) in text.lines().filter_map(directive) {
            if word != "expect" && seen.contains(&word) {
                return Err(format!("`# {word}:` stands there twice"));
            }
            seen.push(word);
            fixture.apply(word, rest).map_err(|error| format!("`# {word}:`: {error}"))?;
        }
        Ok(fixture)
    }

    fn apply(&mut self, word: &str, rest: &str) -> Result<(), String> {
        match word {
            "expect" => {
                let (pointer, message) = rest.split_once(" | ").ok_or("want `<pointer> | <part of the message>`")?;
                self.expects.push(Expect { pointer: pointer.trim().to_owned(), message: message.trim().to_owned() });
            }
            "params" => self.params = serde_json::from_str(rest).map_err(|error| error.to_string())?,
            "facts" => self.facts = serde_json::from_str(rest).map_err(|error| error.to_string())?,
            "operation" => {
                self.operation = Operation::parse(rest);
                if self.operation == Operation::Other {
                    return Err(format!("{rest} is no operation"));
                }
            }
            "endpoint" => {
                let known = [Endpoint::Mutate, Endpoint::Validate];
                let named = known.into_iter().find(|endpoint| endpoint.as_str() == rest);
                self.endpoint = named.ok_or(format!("{rest} is no endpoint"))?;
            }
            "resource" => {
                let named = rest.split_once('/').and_then(|(group, plural)| kind::by_resource(group, plural));
                self.parent = Some(named.ok_or(format!("{rest} is no resource that is judged"))?);
            }
            _ => return Err("no such directive; other comments must not start with one word and a colon".to_owned()),
        }
        Ok(())
    }

    /// What the rule finds in this object, which is the fixture's own or a changed one. Only the facts that the rule
    /// asks for are told, as in the server.
    pub fn check(&self, rule: &dyn AnyRule, object: &Value<'_>) -> Result<Vec<Finding>, String> {
        let meta = rule.meta();
        let policy = Policy::of(&[(meta.id, Action::Deny, meta.fixable, self.params.clone())])
            .map_err(|error| format!("params.{}: {}", error.path, error.message))?;
        let setting = policy.setting(meta.id).ok_or("the rule is not in the registry")?;
        let declined = Declined::default();
        let context = |facts| {
            Context::new(self.endpoint, self.operation, self.kind, object, facts, &policy, &declined)
                .of_parent(self.parent)
        };
        let nothing = Facts::unknown(Reason::NotAsked);
        let needs = rule.needs(&context(&nothing), &setting.params);
        let facts = self.facts.answer(&needs, &self.neighbours)?;
        let mut findings = Vec::new();
        rule.check(&context(&facts), &setting.params, &mut findings);
        Ok(findings)
    }
}

/// `# word: rest`, at the start of a line.
fn directive(line: &str) -> Option<(&str, &str)> {
    let (word, rest) = line.strip_prefix("# ")?.split_once(':')?;
    let one_word = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphabetic());
    one_word.then(|| (word, rest.trim()))
}

impl GivenFacts {
    fn answer(&self, needs: &Needs, neighbours: &Neighbours) -> Result<Facts, String> {
        let mut facts = Facts::unknown(Reason::NotAsked);
        if needs.server_version {
            facts.server_version = match self.server_version.as_deref() {
                None => Known::Known(ServerVersion { major: 1, minor: 37 }),
                Some("unknown") => Known::Unknown(Reason::Failed),
                Some(text) => Known::Known(ServerVersion::parse(text).ok_or(format!("{text} is no version"))?),
            };
        }
        if needs.quotas {
            facts.quotas = match &self.quotas {
                None => Known::Absent,
                Some(Given::Word(Unknown::Unknown)) => Known::Unknown(Reason::Failed),
                Some(Given::Value(quotas)) if quotas.is_empty() => Known::Absent,
                Some(Given::Value(quotas)) => Known::Known(
                    quotas
                        .iter()
                        .map(|quota| Quota {
                            name: quota.name.clone(),
                            hard: quota.hard.clone(),
                            scopes: quota.scopes.iter().map(|scope| Requirement::exists(scope)).collect(),
                        })
                        .collect(),
                ),
            };
        }
        if needs.limit_range {
            facts.limit_range = match self.limit_range {
                None | Some(Given::Value(false)) => Known::Absent,
                Some(Given::Value(true)) => Known::Known(()),
                Some(Given::Word(Unknown::Unknown)) => Known::Unknown(Reason::Failed),
            };
        }
        if needs.revisions.is_some() {
            facts.revisions = Known::Absent;
        }
        for reference in &needs.digests {
            let digest = match self
                .digests
                .get(&format!("{}/{}", reference.source.as_str(), reference.name))
                .map(String::as_str)
            {
                None => Known::Known("0123456789abcdef".repeat(4)),
                Some("absent") => Known::Absent,
                Some("unknown") => Known::Unknown(Reason::Failed),
                Some(digest) => Known::Known(digest.to_owned()),
            };
            facts.digests.insert(reference.clone(), digest);
        }
        for reference in &needs.configs {
            let told = match self.configs.get(&format!("{}/{}", reference.source.as_str(), reference.name)) {
                None => Known::Known(ConfigFacts { bytes: 100, ..ConfigFacts::default() }),
                Some(Given::Word(Unknown::Unknown)) => Known::Unknown(Reason::Failed),
                Some(Given::Value(given)) if given.absent => Known::Absent,
                Some(Given::Value(given)) => Known::Known(ConfigFacts {
                    immutable: given.immutable,
                    bytes: given.bytes,
                    missing_keys: given.missing_keys.clone(),
                    binary_keys: given.binary_keys.clone(),
                }),
            };
            facts.configs.insert(reference.clone(), told);
        }
        let known = self.neighbours.is_none();
        let Neighbours { budgets, autoscalers, services, workloads, claims } = neighbours.clone();
        facts.budgets = asked(needs.budgets, known, budgets);
        facts.autoscalers = asked(needs.autoscalers, known, autoscalers);
        facts.services = asked(needs.services, known, services);
        facts.workloads = asked(needs.workloads, known, workloads);
        facts.claims = asked(needs.claims, known, claims);
        Ok(facts)
    }
}

/// A list of neighbours, if it is asked for and known.
fn asked<T>(asked: bool, known: bool, items: Vec<T>) -> Known<Vec<T>> {
    match (asked, known) {
        (false, _) => Known::Unknown(Reason::NotAsked),
        (true, false) => Known::Unknown(Reason::Failed),
        (true, true) => Known::Known(items),
    }
}
