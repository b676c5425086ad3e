//! Several replicas share a volume that only one node can mount.
//!
//! ## What it does
//!
//! Finds workloads of two replicas or more, also when they are scaled to that number, whose pods all mount one
//! PersistentVolumeClaim of access mode ReadWriteOnce or ReadWriteOncePod and of no mode for many nodes. Claims that a
//! StatefulSet makes for each pod are not shared. Pods that are kept on one node (`nodeName`, a `nodeSelector` on the
//! hostname, required `podAffinity`) are left out: there they can share a ReadWriteOnce volume.
//!
//! ## Why it matters
//!
//! A ReadWriteOnce volume is attached to one node at a time. Replicas that the scheduler places on another node stay in
//! `ContainerCreating` (Multi-Attach error) for ever; whether it works at all is chance. And where it does, several
//! processes write into one directory that was made for one.
//!
//! ## Example
//!
//! Bad:
//!
//! ```yaml
//! spec:
//!   replicas: 2
//!   template:
//!     spec:
//!       volumes:
//!       - {name: data, persistentVolumeClaim: {claimName: data}}  # accessModes: [ReadWriteOnce]
//! ```
//!
//! Good:
//!
//! ```yaml
//! spec:
//!   replicas: 1
//!   strategy: {type: Recreate}
//!   template:
//!     spec:
//!       volumes:
//!       - {name: data, persistentVolumeClaim: {claimName: data}}
//! ```
//!
//! ## Parameters
//!
//! None.
//!
//! ## Unknown facts
//!
//! A claim that is not there, and claims that are unknown, are not judged. Neither is the scaling of a workload that is
//! unknown.

use std::collections::BTreeMap;

use crate::engine::context::Context;
use crate::engine::facts::{Known, Needs};
use crate::engine::finding::{Action, Finding};
use crate::engine::kind::COUNTED;
use crate::engine::neighbours::Claim;
use crate::engine::rule::{Category, Meta, Rule};
use crate::engine::text::quoted;

/// The rule.
pub struct SharedRwoClaim;

/// [`SharedRwoClaim`] has no parameters.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Params {}

impl Rule for SharedRwoClaim {
    const META: Meta = Meta {
        id: "shared-rwo-claim",
        category: Category::Rollout,
        since: "0.1",
        kinds: COUNTED,
        baseline: Action::Warn,
        critical: Action::Warn,
        fixable: false,
        baseline_fix: false,
        source: include_str!("shared_rwo_claim.rs"),
    };

    type Params = Params;

    fn needs(context: &Context<'_>, _params: &Params) -> Needs {
        if context.replicas().is_none_or(|replicas| replicas < 2) {
            return Needs::default();
        }
        let workloads = context.needs_workload();
        let claims = context.workload().is_some_and(|workload| !workload.shared_claims.is_empty());
        Needs { workloads, claims: claims || workloads, ..Needs::default() }
    }

    fn check(context: &Context<'_>, _params: &Params, findings: &mut Vec<Finding>) {
        let Some(replicas) = context.replicas().filter(|replicas| *replicas >= 2) else { return };
        let (Some(workload), Known::Known(claims)) = (context.workload(), &context.facts.claims) else { return };
        let claims: BTreeMap<&str, &Claim> = claims.iter().map(|claim| (claim.name.as_str(), claim)).collect();
        for name in &workload.shared_claims {
            let Some(claim) = claims.get(name.as_str()) else { continue };
            let Some(mode) = claim.keeps_apart(workload) else { continue };
            let who = match mode {
                "ReadWriteOncePod" => format!("one pod can use it, the other {} wait for ever", replicas - 1),
                _ => "only pods on one node can use it, those on any other wait for ever".to_owned(),
            };
            let message =
                format!("{replicas} replicas share the PersistentVolumeClaim {} ({mode}): {who}", quoted(name));
            findings.push(Finding::new(Self::META.id, pointer(context, name), message).measure(replicas - 1).mend(
                "spec:\n  replicas: 1  # or a claim of accessModes [ReadWriteMany], or volumeClaimTemplates of a \
                     StatefulSet",
            ));
        }
    }
}

/// Where the object names the claim; a Scale names none.
fn pointer(context: &Context<'_>, claim: &str) -> String {
    let place = context.template.and_then(|template| {
        let volumes = template.spec()["volumes"].items();
        let index =
            volumes.iter().position(|volume| volume["persistentVolumeClaim"]["claimName"].as_str() == Some(claim));
        index.map(|index| template.pointer(&["spec", "volumes", &index.to_string(), "persistentVolumeClaim"]))
    });
    place.unwrap_or_else(|| "/spec/replicas".to_owned())
}
