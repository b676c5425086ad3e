//! Reviews by chance: workloads of every kind, sane and odd, new and changed, with what is known beside them and a
//! policy to judge by. Shared with the fuzzer.

mod defaults;
mod edits;
pub mod entropy;
pub mod json;
mod pod;
pub mod policies;
mod workload;
pub mod world;

use std::fmt;

use plimsoll::engine::document::{Value, quote};
use plimsoll::engine::ownership::Place;
use plimsoll::engine::request::Endpoint;
use plimsoll::policy::Policy;
use plimsoll::rules::config::config_checksum::{ConfigChecksum, OnUnchangedTemplate};

use super::apply;
use super::ask::ask;
use entropy::Entropy;
use json::Json;
use policies::Named as NamedPolicy;
use workload::{Authored, authored};
use world::World;

pub use edits::template_path;
pub use workload::Named;

/// One review, and all that its answer depends on.
pub struct Case {
    /// The policy.
    pub policy: &'static NamedPolicy,
    /// The kind.
    pub named: Named,
    /// `CREATE` or `UPDATE`, rarely another verb.
    pub operation: &'static str,
    /// Subresource, mostly `""`.
    pub sub_resource: &'static str,
    /// `request.namespace`.
    pub namespace: &'static str,
    /// `userInfo` as JSON.
    pub user: &'static str,
    /// The object as JSON text.
    pub object: String,
    /// The old object as JSON text.
    pub old: Option<String>,
    /// What is known.
    pub world: World,
    /// Whether the object is as the API describes it, wrong values aside.
    pub sound: bool,
    /// Whether the author left the pod template as it was, so that it must stay as it is.
    pub template_kept: bool,
    /// Whether the old object's marker was never ours, or of another policy, so that it may claim what no fix of today
    /// would write.
    pub forged: bool,
}

const ORDINARY: &str = r#"{"username":"alice","groups":["system:authenticated"]}"#;

impl Case {
    /// The case that these bytes choose.
    pub fn generate(bytes: &[u8]) -> Case {
        let mut entropy = Entropy::new(bytes);
        let entropy = &mut entropy;
        let policy = &policies::all()[entropy.below(policies::all().len())];
        let updates = entropy.chance(45);
        let sub_resource =
            if entropy.chance(3) { entropy.pick(&["status", "scale", "ephemeralcontainers"]) } else { "" };
        let namespace = if entropy.chance(2) { "kube-system" } else { "team-a" };
        let user = if entropy.chance(8) {
            entropy.pick(&[
                r#"{"username":"bob","groups":["platform-breakglass"]}"#,
                r#"{"username":"system:node:n1","groups":["system:nodes"]}"#,
                "null",
            ])
        } else {
            ORDINARY
        };
        let authored = authored(entropy);
        let mut case = Case {
            policy,
            named: authored.named,
            operation: "CREATE",
            sub_resource,
            namespace,
            user,
            object: authored.object.to_string(),
            old: None,
            world: World::generate(entropy, &[]),
            sound: authored.sound,
            template_kept: false,
            forged: false,
        };
        if updates {
            case.update(entropy, &authored);
        } else if entropy.chance(2) {
            case.operation = entropy.pick(&["DELETE", "CONNECT", "PATCH", ""]);
        }
        if sub_resource == "scale" {
            case.scale(entropy);
        }
        case
    }

    /// Makes it an UPDATE: the object was created, under this policy or another, and its author now changes what
    /// stands (a PATCH) or sends a manifest that knows nothing of our fixes (a PUT).
    fn update(&mut self, entropy: &mut Entropy<'_>, authored: &Authored) {
        let all = policies::all();
        let before = if entropy.chance(25) { &all[entropy.below(all.len())] } else { self.policy };
        let kind = self.named.kind;
        let mut manifest = authored.object.clone();
        workload::as_stored(&mut manifest, kind);
        self.object = manifest.to_string();
        let fixed = Case { policy: before, world: self.world.clone(), ..self.plain() }.mutated();
        let mutated = entropy.chance(85);
        self.forged = !mutated || before.name != self.policy.name;
        let mut old = if mutated { fixed } else { manifest.clone() };
        if authored.defaulted {
            defaults::fill_in(kind, &mut old);
        }
        let puts = entropy.chance(45);
        let mut object = if puts { manifest } else { old.clone() };
        let kept = edits::edit(&mut object, kind, entropy);
        let damaged = entropy.chance(4);
        if damaged {
            json::damage(&mut object, entropy);
            self.sound = false;
        }
        if authored.defaulted {
            defaults::fill_in(kind, &mut object);
        }
        if old["metadata"].as_object().is_some() {
            json::put(&mut old, "metadata.uid", json::text("0c1f"));
        }
        let template = |object: &Json| object.at(template_path(kind)).to_string();
        self.operation = "UPDATE";
        let templates = [template(&object), template(&old)];
        self.world = World::generate(entropy, &templates);
        if entropy.chance(50) {
            self.world = self.world.with_other_config();
        }
        self.template_kept = kept && !damaged && same_places(&before.policy, &self.policy.policy);
        self.old = Some(old.to_string());
        self.object = object.to_string();
    }

    /// The review that created the object: nothing odd about it but the object.
    fn plain(&self) -> Case {
        Case {
            policy: self.policy,
            named: self.named,
            operation: "CREATE",
            sub_resource: "",
            namespace: "team-a",
            user: ORDINARY,
            object: self.object.clone(),
            old: None,
            world: self.world.clone(),
            sound: self.sound,
            template_kept: false,
            forged: self.forged,
        }
    }

    /// The object with the patch of `/mutate` applied.
    fn mutated(&self) -> Json {
        let patch = ask(self, Endpoint::Mutate).and_then(|verdict| verdict.patch);
        let text = match patch {
            Some(patch) => apply::patched(&self.object, &patch).unwrap_or_else(|_| self.object.clone()),
            None => self.object.clone(),
        };
        json::json(&text)
    }

    /// Whether nothing in the policy renews a value in a template that its author left alone.
    pub fn keeps_templates(&self) -> bool {
        let policy = &self.policy.policy;
        [None, Some("critical"), Some("strict")].into_iter().all(|profile| {
            let params = policy.resolve(profile, None).params::<ConfigChecksum>();
            params.on_unchanged_template == OnUnchangedTemplate::Keep
        })
    }

    /// Makes it a change of the workload's scale.
    fn scale(&mut self, entropy: &mut Entropy<'_>) {
        let mut scale = || {
            let replicas = entropy.pick(&["1", "0", "3", "-1", "\"2\"", "null"]);
            format!(r#"{{"kind":"Scale","metadata":{{"name":"web"}},"spec":{{"replicas":{replicas}}}}}"#)
        };
        (self.object, self.old, self.operation) = (scale(), Some(scale()), "UPDATE");
        self.template_kept = false;
    }

    /// The AdmissionReview, as an API server sends it.
    pub fn review(&self) -> String {
        let Named { group, version, kind, resource } = self.named;
        let of_kind = match self.sub_resource {
            "scale" => r#"{"group":"autoscaling","version":"v1","kind":"Scale"}"#.to_owned(),
            _ => format!(r#"{{"group":"{group}","version":"{version}","kind":"{kind}"}}"#),
        };
        format!(
            r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{{"uid":"a/\"b","kind":{of_kind},"resource":{{"group":"{group}","version":"{version}","resource":"{resource}"}},"subResource":{},"name":"web","namespace":"{}","operation":"{}","userInfo":{},"object":{},"oldObject":{}}}}}"#,
            quote(self.sub_resource),
            self.namespace,
            self.operation,
            self.user,
            self.object,
            self.old.as_deref().unwrap_or("null"),
        )
    }

    /// The same case with another object.
    pub fn with_object(&self, object: String) -> Case {
        Case {
            object,
            old: self.old.clone(),
            operation: self.operation,
            sub_resource: self.sub_resource,
            namespace: self.namespace,
            user: self.user,
            ..self.plain()
        }
    }

    /// The same case as the UPDATE of an object that stands.
    pub fn with_old(&self, old: String) -> Case {
        Case { old: Some(old), operation: "UPDATE", ..self.with_object(self.object.clone()) }
    }
}

/// Whether the fixes of both policies write to the same places of a pod template.
fn same_places(a: &Policy, b: &Policy) -> bool {
    let annotations = |policy: &Policy| -> Vec<Place> {
        let managed = policy.settings.iter().flat_map(|setting| setting.rule.managed(&setting.params));
        managed.map(|managed| managed.place).filter(|place| matches!(place, Place::TemplateAnnotation(_))).collect()
    };
    annotations(a) == annotations(b)
}

/// All that is needed to see a failure without its bytes.
impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "policy {}, {} {}", self.policy.name, self.operation, self.named.kind)?;
        writeln!(f, "review {}", cut(&self.review()))?;
        write!(f, "world {:?}", self.world)
    }
}

fn cut(text: &str) -> &str {
    match text.char_indices().nth(40_000) {
        Some((end, _)) => &text[..end],
        None => text,
    }
}

/// The place of the template in this kind, as a JSON Pointer without its last slash.
pub fn template_pointer(kind: &str) -> String {
    template_path(kind).iter().map(|segment| format!("/{segment}")).collect()
}

/// The pod template of an object.
pub fn template<'v>(object: &'v Value<'v>, kind: &str) -> &'v Value<'v> {
    object.at(template_path(kind))
}
