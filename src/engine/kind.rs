//! What differs between the kinds, one row each: rules read columns and never match on a kind.

use super::document::Value;
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
    /// Its resource, as URLs and `request.resource` spell it; `""` where it has none of its own.
    pub resource: &'static str,
    /// The subresource that it is sent to, `""` for the object itself. It then stands for a part of the workload that
    /// `request.resource` names.
    pub sub_resource: &'static str,
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
    /// What an absent `spec.replicas` means: a Scale leaves out its 0 (autoscaling/v1 ScaleSpec, `omitempty`).
    pub absent_replicas: i64,
    /// Whether it runs one pod on each node, so that a pod that is slow to stop leaves its node dark (TRAPS E13).
    pub per_node: bool,
    /// The kind whose rules judge it, where that is another: a Pod that stands for its workload.
    pub stands_for: Option<&'static str>,
    /// Kinds (group, kind) that own it as built-in controllers: such an object is out of scope (TRAPS B10).
    pub built_in_owners: &'static [(&'static str, &'static str)],
    /// Where old templates are kept (TRAPS C14).
    pub revisions: Option<RevisionStore>,
}

const NO_TEMPLATE: Kind = Kind {
    group: "",
    kind: "",
    resource: "",
    sub_resource: "",
    template: None,
    defaulted: true,
    strategy: Strategy::None,
    immutable: false,
    mutable: false,
    scales: false,
    absent_replicas: 1,
    per_node: false,
    stands_for: None,
    built_in_owners: &[],
    revisions: None,
};

const WORKLOAD: Kind = Kind { template: Some(&["spec", "template"]), mutable: true, ..NO_TEMPLATE };

const POD: Kind = Kind {
    kind: "Pod",
    resource: "pods",
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
};

/// Every kind that is judged (TRAPS C19); anything else is let through (A22), DeploymentConfig included (C18).
pub static KINDS: &[Kind] = &[
    POD,
    Kind {
        group: "apps",
        kind: "Deployment",
        resource: "deployments",
        strategy: Strategy::Deployment,
        scales: true,
        revisions: Some(RevisionStore::ReplicaSets),
        ..WORKLOAD
    },
    Kind {
        group: "apps",
        kind: "ReplicaSet",
        resource: "replicasets",
        mutable: false,
        scales: true,
        built_in_owners: &[("apps", "Deployment"), ("argoproj.io", "Rollout")],
        ..WORKLOAD
    },
    Kind {
        group: "apps",
        kind: "StatefulSet",
        resource: "statefulsets",
        strategy: Strategy::StatefulSet,
        scales: true,
        revisions: Some(RevisionStore::ControllerRevisions),
        ..WORKLOAD
    },
    Kind {
        group: "apps",
        kind: "DaemonSet",
        resource: "daemonsets",
        strategy: Strategy::DaemonSet,
        per_node: true,
        revisions: Some(RevisionStore::ControllerRevisions),
        ..WORKLOAD
    },
    Kind {
        group: "batch",
        kind: "Job",
        resource: "jobs",
        immutable: true,
        built_in_owners: &[("batch", "CronJob")],
        ..WORKLOAD
    },
    Kind {
        group: "batch",
        kind: "CronJob",
        resource: "cronjobs",
        template: Some(&["spec", "jobTemplate", "spec", "template"]),
        ..WORKLOAD
    },
    Kind { kind: "ReplicationController", resource: "replicationcontrollers", scales: true, ..WORKLOAD },
    Kind {
        group: "argoproj.io",
        kind: "Rollout",
        resource: "rollouts",
        defaulted: false,
        strategy: Strategy::Rollout,
        scales: true,
        revisions: Some(RevisionStore::ReplicaSets),
        ..WORKLOAD
    },
    Kind {
        group: "policy",
        kind: "PodDisruptionBudget",
        resource: "poddisruptionbudgets",
        mutable: true,
        ..NO_TEMPLATE
    },
    Kind { group: "autoscaling", kind: "HorizontalPodAutoscaler", resource: "horizontalpodautoscalers", ..NO_TEMPLATE },
    Kind { kind: "Service", resource: "services", ..NO_TEMPLATE },
    // Sent to `deployments/scale` and the like: the number of the workload's pods (TRAPS A15).
    Kind {
        group: "autoscaling",
        kind: "Scale",
        sub_resource: "scale",
        scales: true,
        absent_replicas: 0,
        ..NO_TEMPLATE
    },
    // Only the one that holds our own policy is looked at.
    Kind { kind: "ConfigMap", resource: "configmaps", ..NO_TEMPLATE },
];

/// The kinds with a pod template and `spec.replicas`, in the order of [`KINDS`].
pub const SCALED: &[&str] = &["Deployment", "ReplicaSet", "StatefulSet", "ReplicationController", "Rollout"];

/// [`SCALED`], and a Scale, which is a number of pods and nothing else.
pub const COUNTED: &[&str] = &["Deployment", "ReplicaSet", "StatefulSet", "ReplicationController", "Rollout", "Scale"];

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

/// Pods that are fixed in their workload's stead when the policy says `fixAt: pod`: the owner's group and kind, and the
/// row. A ReplicaSet's pods are a Deployment's (or a Rollout's, whose pods are the same).
static STAND_INS: &[(&str, &str, Kind)] = &[
    ("apps", "ReplicaSet", Kind { stands_for: Some("Deployment"), mutable: true, ..POD }),
    ("apps", "StatefulSet", Kind { stands_for: Some("StatefulSet"), mutable: true, ..POD }),
];

/// The row for a Pod that stands for the workload of this controller.
pub fn stand_in(owner_group: &str, owner_kind: &str) -> Option<&'static Kind> {
    let owner = STAND_INS.iter().find(|(group, kind, _)| *group == owner_group && *kind == owner_kind);
    owner.map(|(.., row)| row)
}

impl Kind {
    /// The kind whose rules judge it.
    pub fn judged_as(&self) -> &'static str {
        self.stands_for.unwrap_or(self.kind)
    }

    /// `spec.replicas` of an object of this kind; `None` where it is no whole number ≥ 0.
    pub fn replicas(&self, object: &Value<'_>) -> Option<i64> {
        match object.at(&["spec", "replicas"]) {
            Value::Null => Some(self.absent_replicas),
            value => value.as_i64().filter(|replicas| *replicas >= 0),
        }
    }
}

/// The row of a kind.
pub fn lookup(group: &str, kind: &str) -> Option<&'static Kind> {
    KINDS.iter().find(|row| row.kind == kind && row.group == group)
}

/// The row of the kind that a resource holds: `apps`, `deployments`.
pub fn by_resource(group: &str, resource: &str) -> Option<&'static Kind> {
    KINDS.iter().find(|row| !resource.is_empty() && row.resource == resource && row.group == group)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resources_name_one_kind_each() {
        for row in KINDS.iter().filter(|row| !row.resource.is_empty()) {
            assert_eq!(by_resource(row.group, row.resource), Some(row));
        }
        assert_eq!(by_resource("autoscaling", ""), None);
        assert_eq!(by_resource("apps", "Deployment"), None);
    }

    #[test]
    fn a15_a_scale_leaves_its_zero_out() {
        let (scale, deployment) = (lookup("autoscaling", "Scale").unwrap(), lookup("apps", "Deployment").unwrap());
        let empty = Value::parse(r#"{"spec":{}}"#).unwrap();
        assert_eq!((scale.replicas(&empty), deployment.replicas(&empty)), (Some(0), Some(1)));
        for (text, replicas) in [("3", Some(3)), ("0", Some(0)), ("-1", None), ("\"3\"", None), ("3.0", None)] {
            let text = format!(r#"{{"spec":{{"replicas":{text}}}}}"#);
            assert_eq!(scale.replicas(&Value::parse(&text).unwrap()), replicas, "{text}");
        }
    }

    #[test]
    fn scaled_names_every_kind_that_counts_its_pods() {
        let rows = KINDS.iter().filter(|kind| kind.scales && kind.template.is_some());
        assert_eq!(rows.map(|kind| kind.kind).collect::<Vec<_>>(), SCALED);
        let rows = KINDS.iter().filter(|kind| kind.scales);
        assert_eq!(rows.map(|kind| kind.kind).collect::<Vec<_>>(), COUNTED);
    }

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
