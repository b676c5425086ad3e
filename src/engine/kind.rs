//! What differs between the kinds, one row each: rules read columns and never match on a kind.

use super::facts::RevisionStore;

/// How a kind replaces its pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strategy {
    /// `spec.strategy`, surge rounds up and unavailable down (both zero: one is unavailable).
    Deployment,
    /// `spec.updateStrategy.rollingUpdate`, both round up, exactly one may be non-zero.
    DaemonSet,
    /// `spec.updateStrategy.rollingUpdate`, unavailable rounds down to at least one, no surge.
    StatefulSet,
    /// `spec.strategy.canary` or `blueGreen`, rounded as a Deployment, nothing defaulted by the server.
    Rollout,
    /// Pods are never replaced.
    None,
}

/// One kind.
#[derive(Debug, PartialEq, Eq)]
pub struct Kind {
    /// API group, `""` for core.
    pub group: &'static str,
    /// `kind` as in the manifest.
    pub kind: &'static str,
    /// Members from the root to the pod template (`metadata` and `spec` below it); empty for a Pod, which is one.
    /// `None`: no pod template at all.
    pub template: Option<&'static [&'static str]>,
    /// Whether the API server fills in defaults before we see the object (TRAPS B13); a CRD's absent is absent.
    pub defaulted: bool,
    /// How pods are replaced.
    pub strategy: Strategy,
    /// Whether the API server refuses to change its template (TRAPS B08, B09): never patched on UPDATE.
    pub immutable: bool,
    /// Whether `/mutate` may write to it at all.
    pub mutable: bool,
    /// Whether `spec.replicas` counts its pods.
    pub scales: bool,
    /// Whether it runs one pod on each node, so that a pod that is slow to stop leaves its node dark (TRAPS E13).
    pub per_node: bool,
    /// Kinds (group, kind) that own it as built-in controllers: such an object is out of scope (TRAPS B10).
    pub built_in_owners: &'static [(&'static str, &'static str)],
    /// Where old templates are kept (TRAPS C14).
    pub revisions: Option<RevisionStore>,
}

const NO_TEMPLATE: Kind = Kind {
    group: "",
    kind: "",
    template: None,
    defaulted: true,
    strategy: Strategy::None,
    immutable: false,
    mutable: false,
    scales: false,
    per_node: false,
    built_in_owners: &[],
    revisions: None,
};

const WORKLOAD: Kind = Kind { template: Some(&["spec", "template"]), mutable: true, ..NO_TEMPLATE };

/// Every kind that is judged (TRAPS C19); anything else is let through (A22), DeploymentConfig included (C18).
pub static KINDS: &[Kind] = &[
    Kind {
        kind: "Pod",
        template: Some(&[]),
        immutable: true,
        mutable: false,
        built_in_owners: &[
            ("apps", "ReplicaSet"),
            ("", "ReplicationController"),
            ("apps", "StatefulSet"),
            ("apps", "DaemonSet"),
            ("batch", "Job"),
        ],
        ..WORKLOAD
    },
    Kind {
        group: "apps",
        kind: "Deployment",
        strategy: Strategy::Deployment,
        scales: true,
        revisions: Some(RevisionStore::ReplicaSets),
        ..WORKLOAD
    },
    Kind {
        group: "apps",
        kind: "ReplicaSet",
        mutable: false,
        scales: true,
        built_in_owners: &[("apps", "Deployment"), ("argoproj.io", "Rollout")],
        ..WORKLOAD
    },
    Kind {
        group: "apps",
        kind: "StatefulSet",
        strategy: Strategy::StatefulSet,
        scales: true,
        revisions: Some(RevisionStore::ControllerRevisions),
        ..WORKLOAD
    },
    Kind {
        group: "apps",
        kind: "DaemonSet",
        strategy: Strategy::DaemonSet,
        per_node: true,
        revisions: Some(RevisionStore::ControllerRevisions),
        ..WORKLOAD
    },
    Kind { group: "batch", kind: "Job", immutable: true, built_in_owners: &[("batch", "CronJob")], ..WORKLOAD },
    Kind { group: "batch", kind: "CronJob", template: Some(&["spec", "jobTemplate", "spec", "template"]), ..WORKLOAD },
    Kind { kind: "ReplicationController", scales: true, ..WORKLOAD },
    Kind {
        group: "argoproj.io",
        kind: "Rollout",
        defaulted: false,
        strategy: Strategy::Rollout,
        scales: true,
        revisions: Some(RevisionStore::ReplicaSets),
        ..WORKLOAD
    },
    Kind { group: "policy", kind: "PodDisruptionBudget", mutable: true, ..NO_TEMPLATE },
    Kind { group: "autoscaling", kind: "HorizontalPodAutoscaler", ..NO_TEMPLATE },
    Kind { kind: "Service", ..NO_TEMPLATE },
];

/// The kinds whose pods are meant to run until somebody stops them: [`TEMPLATED`] without Job and CronJob.
pub const LONG_RUNNING: &[&str] =
    &["Pod", "Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "ReplicationController", "Rollout"];

/// The kinds that replace their pods when the template changes: every [`Strategy`] but `None`.
pub const ROLLING: &[&str] = &["Deployment", "StatefulSet", "DaemonSet", "Rollout"];

/// The kinds with a pod template, in the order of [`KINDS`]: for rules about containers.
pub const TEMPLATED: &[&str] = &[
    "Pod",
    "Deployment",
    "ReplicaSet",
    "StatefulSet",
    "DaemonSet",
    "Job",
    "CronJob",
    "ReplicationController",
    "Rollout",
];

/// The row of a kind.
pub fn lookup(group: &str, kind: &str) -> Option<&'static Kind> {
    KINDS.iter().find(|row| row.kind == kind && row.group == group)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templated_names_every_kind_with_a_pod_template() {
        let rows = KINDS.iter().filter(|kind| kind.template.is_some());
        assert_eq!(rows.map(|kind| kind.kind).collect::<Vec<_>>(), TEMPLATED);
    }

    #[test]
    fn long_running_and_rolling_kinds_are_those_of_the_table() {
        let long = TEMPLATED.iter().filter(|kind| !matches!(**kind, "Job" | "CronJob"));
        assert_eq!(long.copied().collect::<Vec<_>>(), LONG_RUNNING);
        let rows = KINDS.iter().filter(|kind| kind.strategy != Strategy::None);
        assert_eq!(rows.map(|kind| kind.kind).collect::<Vec<_>>(), ROLLING);
    }
}
