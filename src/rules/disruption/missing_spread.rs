//! Nothing asks that the replicas run on different nodes.
//!
//! ## What it does
//!
//! Reports a workload of `minReplicas` or more whose pods have neither a topology spread constraint nor pod
//! anti-affinity, required or preferred; which labels they compare is not judged. A host port counts as spread too: a
//! node has each port once.
//!
//! ## Why it matters
//!
//! The scheduler's own default only prefers, and bears all of three replicas on one node (`maxSkew` 3 by node, 5 by
//! zone). When that node fails or is drained, the workload is down, whatever its number of replicas.
//!
//! ## Example
//!
//! Bad:
//!
//! ```yaml
//! apiVersion: apps/v1
//! kind: Deployment
//! metadata: {name: web}
//! spec:
//!   replicas: 3
//!   template:
//!     metadata: {labels: {app: web}}
//!     spec:
//!       containers: [{name: app, image: registry.example/web:1.4.2}]
//! ```
//!
//! Good:
//!
//! ```yaml
//! apiVersion: apps/v1
//! kind: Deployment
//! metadata: {name: web}
//! spec:
//!   replicas: 3
//!   template:
//!     metadata: {labels: {app: web}}
//!     spec:
//!       topologySpreadConstraints:
//!       - maxSkew: 1
//!         topologyKey: kubernetes.io/hostname
//!         whenUnsatisfiable: ScheduleAnyway
//!         labelSelector: {matchLabels: {app: web}}
//!       containers: [{name: app, image: registry.example/web:1.4.2}]
//! ```
//!
//! ## Parameters
//!
//! * `minReplicas`: fewest replicas that should be spread, 2 to 1000. Default: 3.
//!
//! ## Unknown facts
//!
//! None are asked for: the scheduler's configuration is not looked up.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::selector_yaml::match_labels;
use crate::engine::context::Context;
use crate::engine::document::Value;
use crate::engine::finding::{Action, Finding};
use crate::engine::kind::SCALED;
use crate::engine::neighbours::labels;
use crate::engine::pod::Template;
use crate::engine::rule::{Category, InvalidParam, Meta, Rule};
use crate::rollout::selects_own_pods;

/// The rule.
pub struct MissingSpread;

/// Parameters of [`MissingSpread`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Params {
    /// Fewest replicas that should be spread.
    #[schemars(range(min = 2, max = 1000))]
    pub min_replicas: i64,
}

impl Default for Params {
    fn default() -> Self {
        Params { min_replicas: 3 }
    }
}

impl Rule for MissingSpread {
    const META: Meta = Meta {
        id: "missing-spread",
        category: Category::Disruption,
        since: "0.1",
        kinds: SCALED,
        baseline: Action::Audit,
        critical: Action::Warn,
        fixable: false,
        baseline_fix: false,
        source: include_str!("missing_spread.rs"),
    };

    type Params = Params;

    fn validate(params: &Params) -> Result<(), InvalidParam> {
        InvalidParam::unless_in("minReplicas", params.min_replicas, 2..=1000, "replicas")
    }

    fn check(context: &Context<'_>, params: &Params, findings: &mut Vec<Finding>) {
        let (Some(template), Some(replicas)) = (context.template, context.replicas()) else { return };
        if replicas < params.min_replicas || template.regular().next().is_none() || is_spread(&template) {
            return;
        }
        let message = format!(
            "neither topologySpreadConstraints nor podAntiAffinity: one node may run all {replicas} replicas and take \
             them down with it"
        );
        let pointer = template.pointer(&["spec", "topologySpreadConstraints"]);
        let mut yaml = "topologySpreadConstraints:\n- maxSkew: 1\n  topologyKey: kubernetes.io/hostname\n  \
                        whenUnsatisfiable: ScheduleAnyway"
            .to_owned();
        if let Some(labels) = match_labels(context, 4) {
            yaml.push_str(&format!("\n  labelSelector:\n{labels}"));
        }
        findings.push(Finding::new(Self::META.id, pointer, message).mend(yaml));
    }
}

/// Whether anything keeps the pods apart.
fn is_spread(template: &Template<'_>) -> bool {
    let spec = template.spec();
    let anti_affinity = spec.at(&["affinity", "podAntiAffinity"]);
    let terms = ["requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution"];
    // The scheduler counts the host ports of regular containers and native sidecars; with hostNetwork every port is
    // one.
    let host_network = spec["hostNetwork"].as_bool() == Some(true);
    let mut ports = template.running().flat_map(|container| container.value["ports"].items());
    let labels = labels(&template.metadata()["labels"]);
    let own = |term: &Value<'_>| selects_own_pods(term, &labels);
    // A preferred term stands below its weight.
    let apart = |term: &Value<'_>| own(term) || own(&term["podAffinityTerm"]);
    spec["topologySpreadConstraints"].items().iter().any(own)
        || terms.iter().any(|term| anti_affinity[term].items().iter().any(apart))
        || ports.any(|port| host_network || port["hostPort"].as_i64().is_some_and(|port| port > 0))
}
