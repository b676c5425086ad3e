//! A pod counts as available the moment it is ready.
//!
//! ## What it does
//!
//! Finds Deployments, StatefulSets, DaemonSets and Rollouts that roll with a `minReadySeconds` below `minSeconds`; absent
//! means 0. `Recreate`, `OnDelete` and workloads of no replica are left out.
//!
//! ## Why it matters
//!
//! A rollout takes an old pod down as soon as a new one counts as available. With `minReadySeconds` 0 one success of
//! the readiness probe (or no probe at all) is enough: a process that answers once and dies two seconds later has by then
//! replaced good ones, pod after pod. A few seconds turn that into a rollout that stops by itself.
//!
//! ## Example
//!
//! Bad:
//!
//! ```yaml
//! spec:
//!   minReadySeconds: 0
//! ```
//!
//! Good:
//!
//! ```yaml
//! spec:
//!   minReadySeconds: 10
//! ```
//!
//! ## Fix safety
//!
//! Writes `minReadySeconds` where it is absent (or 0 that nobody applied). A rollout then takes that much longer for each
//! step, on a DaemonSet for each node. Nothing is written where the value would not stay below
//! `progressDeadlineSeconds`, which the API server refuses; the finding then says so. It is no part of the pod
//! template: the fix restarts no pod.
//!
//! ## Parameters
//!
//! `minSeconds` (1 to 3600, default 10): what is asked for, and what the fix writes.
//!
//! ## Unknown facts
//!
//! None are asked for.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::engine::context::Context;
use crate::engine::document::Value;
use crate::engine::finding::{Action, Finding, Fix};
use crate::engine::kind::ROLLING;
use crate::engine::ownership::{Managed, Place, author_set};
use crate::engine::rule::{Category, InvalidParam, Meta, Rule};
use crate::rollout::{UpdateType, progress_deadline};

/// The rule.
pub struct ShortMinReady;

/// Parameters of [`ShortMinReady`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Params {
    /// How long a pod must be ready to count as available, seconds, 1 to 3600.
    #[schemars(range(min = 1, max = 3600))]
    pub min_seconds: i64,
}

impl Default for Params {
    fn default() -> Self {
        Params { min_seconds: 10 }
    }
}

const PATH: [&str; 2] = ["spec", "minReadySeconds"];

impl Rule for ShortMinReady {
    const META: Meta = Meta {
        id: "short-min-ready",
        category: Category::Rollout,
        since: "0.1",
        kinds: ROLLING,
        baseline: Action::Off,
        critical: Action::Warn,
        fixable: true,
        baseline_fix: false,
        source: include_str!("short_min_ready.rs"),
    };

    type Params = Params;

    fn validate(params: &Params) -> Result<(), InvalidParam> {
        InvalidParam::unless_in("minSeconds", params.min_seconds, 1..=3600, "seconds")
    }

    fn managed(_params: &Params) -> Vec<Managed> {
        let place = |kind: &&'static str| Managed { place: Place::Object(kind, &PATH), default: None };
        Self::META.kinds.iter().map(place).collect()
    }

    fn check(context: &Context<'_>, params: &Params, findings: &mut Vec<Finding>) {
        let Some(plan) = context.roll().filter(|plan| plan.replicas != Some(0)) else { return };
        if matches!(plan.update_type, UpdateType::Recreate | UpdateType::OnDelete) {
            return;
        }
        let value = context.object.at(&PATH);
        let wanted = params.min_seconds;
        let seconds = if value.is_null() { Some(0) } else { value.as_i64() };
        let Some(seconds) = seconds.filter(|seconds| (0..wanted).contains(seconds)) else { return };
        let mut message = format!(
            "minReadySeconds is {seconds}, below {wanted}: a pod that fails a moment after it became ready has already \
             replaced a good one"
        );
        let finding = |message| Finding::new(Self::META.id, "/spec/minReadySeconds", message).measure(wanted - seconds);
        if let Some(deadline) = progress_deadline(context).filter(|deadline| *deadline <= wanted) {
            message
                .push_str(&format!("; nothing is written: {wanted} is not below progressDeadlineSeconds {deadline}"));
            let both = format!("spec:\n  minReadySeconds: {wanted}\n  progressDeadlineSeconds: {}", wanted + 600);
            findings.push(finding(message).mend(both));
            return;
        }
        let fix = (!author_set(context.object, context.kind, &PATH, &Value::from(0))).then(|| {
            let writes = vec![(PATH.map(str::to_owned).to_vec(), Value::from(wanted))];
            Fix::new(Self::META.id, writes, format!("set minReadySeconds to {wanted} (it was {seconds})"))
        });
        findings.push(finding(message).mend(format!("spec:\n  minReadySeconds: {wanted}")).fix(fix));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::document::object;
    use crate::engine::request::{Endpoint, Operation, Request, Resource, User};
    use crate::engine::{self, facts::Facts, facts::Reason, verdict::Verdict};
    use crate::policy::Policy;

    fn review(endpoint: Endpoint, spec: &str) -> Verdict {
        let rest = r#""template":{"spec":{"containers":[{"name":"c","image":"i:1"}]}}"#;
        let text = format!(r#"{{"metadata":{{"name":"web"}},"spec":{{{spec}{rest}}}}}"#);
        let request = Request {
            operation: Operation::Create,
            group: "apps".to_owned(),
            kind: "Deployment".to_owned(),
            resource: Resource::default(),
            sub_resource: String::new(),
            namespace: "shop".to_owned(),
            name: "web".to_owned(),
            user: User::default(),
            object: Some(Value::parse(&text).unwrap()),
            old_object: None,
            dry_run: false,
            own: false,
        };
        let params = serde_json::json!({"minSeconds": 30});
        let policy = Policy::of(&[("short-min-ready", Action::Warn, true, params)]).unwrap();
        engine::evaluate(endpoint, &policy, &request, &Facts::unknown(Reason::NotAsked))
    }

    #[test]
    fn c13_never_at_or_above_the_progress_deadline() {
        for deadline in [20, 30] {
            let spec = format!(r#""progressDeadlineSeconds":{deadline},"#);
            assert_eq!(review(Endpoint::Mutate, &spec).patch, None);
            let verdict = review(Endpoint::Validate, &spec);
            let said = format!("nothing is written: 30 is not below progressDeadlineSeconds {deadline}");
            assert!(verdict.allowed() && verdict.warnings.len() == 1 && verdict.warnings[0].contains(&said));
        }
        let written = r#"{"op":"add","path":"/spec/minReadySeconds","value":30}"#;
        for spec in ["", r#""progressDeadlineSeconds":31,"#] {
            let patch = review(Endpoint::Mutate, spec).patch.unwrap();
            assert!(patch.contains(written), "{patch}");
        }
    }

    #[test]
    fn b13_what_the_author_wrote_stays() {
        assert_eq!(review(Endpoint::Mutate, r#""minReadySeconds":5,"#).patch, None);
        assert!(review(Endpoint::Mutate, r#""minReadySeconds":0,"#).patch.is_some());
        let zero = object([("spec", object([("minReadySeconds", Value::from(0))]))]);
        assert!(!author_set(&zero, crate::engine::kind::lookup("apps", "Deployment").unwrap(), &PATH, &Value::from(0)));
    }
}
