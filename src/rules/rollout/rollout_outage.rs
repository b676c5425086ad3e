//! A rollout may take too many replicas down at once.
//!
//! ## What it does
//!
//! Works out, with the rounding of the kind's own controller, how many replicas an update may take down at once, and
//! refuses all of them, or more than `maxUnavailablePercent` of them. The object is judged with the fixes that the
//! policy will make.
//!
//! * Deployment, Rollout (canary): `maxUnavailable` rounds down; where it and the surge come to 0 the controller takes
//!   one. One replica that a rollout takes down before its successor is ready is only warned about.
//! * StatefulSet: `maxUnavailable` rounds down to at least 1, and one at a time is always accepted: the kind cannot
//!   surge. Pods below the `partition` are not replaced and do not count.
//! * DaemonSet: only a percentage is judged, for nobody knows the number of nodes.
//!
//! Not judged: 0 replicas; `Recreate` and `OnDelete`, which say what they do; canaries with a traffic router and
//! blue-green Rollouts, which keep the old pods until the new ones serve. A PodDisruptionBudget does not help, for
//! controllers are not bound by it.
//!
//! ## Why it matters
//!
//! Replicas that are down at once serve nobody, and if the new version does not start they stay down.
//!
//! ## Example
//!
//! All three replicas may be down at once:
//!
//! ```yaml
//! apiVersion: apps/v1
//! kind: Deployment
//! metadata: {name: web}
//! spec:
//!   replicas: 3
//!   strategy:
//!     rollingUpdate:
//!       maxSurge: 0
//!       maxUnavailable: 100%
//! ```
//!
//! None is down before another is ready:
//!
//! ```yaml
//! apiVersion: apps/v1
//! kind: Deployment
//! metadata: {name: web}
//! spec:
//!   replicas: 3
//!   strategy:
//!     rollingUpdate:
//!       maxSurge: 1
//!       maxUnavailable: 0
//! ```
//!
//! ## Parameters
//!
//! * `maxUnavailablePercent`: the share of replicas, in percent from 0 to 100, that may be down at once. All of two or
//!   more replicas at once are refused whatever it is. Default: 50.
//!
//! ## Unknown facts
//!
//! None of its own. The fix of `default-rolling-update`, which is reckoned with, is not made where the namespace's
//! ResourceQuotas are unknown.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::engine::context::Context;
use crate::engine::finding::{Action, Finding};
use crate::engine::pointer::pointer;
use crate::engine::rule::{Category, InvalidParam, Meta, Rule};
use crate::rollout::{IntOrPercent, Resolved, Rolling};

/// The rule.
pub struct RolloutOutage;

/// Parameters of [`RolloutOutage`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Params {
    /// Percent of the replicas that may be down at once.
    #[schemars(range(max = 100))]
    pub max_unavailable_percent: u32,
}

impl Default for Params {
    fn default() -> Self {
        Params { max_unavailable_percent: 50 }
    }
}

const MAX_SURGE: &str = "maxSurge";
const MAX_UNAVAILABLE: &str = "maxUnavailable";

impl Rule for RolloutOutage {
    const META: Meta = Meta {
        id: "rollout-outage",
        category: Category::Rollout,
        since: "0.1",
        kinds: &["DaemonSet", "Deployment", "Rollout", "StatefulSet"],
        baseline: Action::Deny,
        critical: Action::Deny,
        fixable: false,
        baseline_fix: false,
        source: include_str!("rollout_outage.rs"),
    };

    type Params = Params;

    fn validate(params: &Params) -> Result<(), InvalidParam> {
        if params.max_unavailable_percent > 100 {
            return Err(InvalidParam {
                path: "maxUnavailablePercent".to_owned(),
                message: format!("must be from 0 to 100, not {}", params.max_unavailable_percent),
            });
        }
        Ok(())
    }

    fn check(context: &Context<'_>, params: &Params, findings: &mut Vec<Finding>) {
        let Some(plan) = context.roll() else { return };
        let Some(rolling) = &plan.rolling else { return };
        findings.extend(match (plan.replicas, rolling.planned.resolved) {
            (Some(1), Some(resolved)) => lone_replica(rolling, resolved),
            (Some(replicas), Some(resolved)) => of_replicas(rolling, replicas, resolved, params),
            _ => of_unknown_number(rolling, params),
        });
    }
}

/// The only replica goes before another is ready. Never a denial, and no kind is blamed that cannot surge.
fn lone_replica(rolling: &Rolling, resolved: Resolved) -> Option<Finding> {
    if !rolling.surges || resolved.unavailable < 1 {
        return None;
    }
    let bounds = rolling.planned;
    let (field, message) = if resolved.surge == 0 {
        (MAX_SURGE, format!("each rollout takes the only replica down: maxSurge is {}", bounds.max_surge))
    } else {
        let unavailable = bounds.max_unavailable;
        (MAX_UNAVAILABLE, format!("each rollout may take the only replica down: maxUnavailable is {unavailable}"))
    };
    // Measured as nothing, so that scaling up into an outage counts as worse than this.
    let finding = finding(rolling, field, message).at_most(Action::Warn).measure(0);
    Some(match &rolling.no_room {
        Some(reason) if !reason.is_lookup() => finding,
        _ => finding.mend(rolling.yaml(&[(MAX_SURGE, IntOrPercent::Int(1)), (MAX_UNAVAILABLE, IntOrPercent::Int(0))])),
    })
}

fn of_replicas(rolling: &Rolling, replicas: i64, resolved: Resolved, params: &Params) -> Option<Finding> {
    let down = resolved.unavailable.min(replicas);
    // One at a time is the least that a kind without a surge can do.
    if replicas == 0 || (down <= 1 && !rolling.surges) {
        return None;
    }
    let allowed = i64::from(params.max_unavailable_percent);
    let verdict = if down == replicas {
        format!("{down} of {replicas} replicas may be down at once")
    } else if down * 100 > allowed * replicas {
        let percent = percent_of(down, replicas);
        format!("{down} of {replicas} replicas ({percent}%) may be down at once, more than {allowed}%")
    } else {
        return None;
    };
    let bounds = rolling.planned;
    let cause = if resolved.forced {
        let (surge, unavailable) = (bounds.max_surge, bounds.max_unavailable);
        format!("maxSurge {surge} and maxUnavailable {unavailable} both come to 0, and the controller then takes one")
    } else {
        format!("maxUnavailable is {}", bounds.max_unavailable)
    };
    let finding = finding(rolling, MAX_UNAVAILABLE, format!("{verdict}: {cause}"));
    Some(finding.measure(percent_of(down, replicas)).mend(mend(rolling, replicas, allowed)))
}

/// A DaemonSet: only percentages can be judged.
fn of_unknown_number(rolling: &Rolling, params: &Params) -> Option<Finding> {
    let percent = rolling.planned.max_unavailable.percent()?;
    let allowed = params.max_unavailable_percent;
    let more = match percent {
        100 => String::new(),
        percent if percent > allowed => format!(", more than {allowed}%"),
        _ => return None,
    };
    let message =
        format!("the pods of {percent}% of the nodes may be down at once{more}: maxUnavailable is {percent}%");
    let mend = rolling.yaml(&[(MAX_UNAVAILABLE, IntOrPercent::Int(1))]);
    Some(finding(rolling, MAX_UNAVAILABLE, message).measure(i64::from(percent)).mend(mend))
}

/// Surge first where a surge can be placed; else one at a time, if that is within bounds.
fn mend(rolling: &Rolling, replicas: i64, allowed: i64) -> String {
    let surge = if rolling.planned.max_surge.is_zero() { IntOrPercent::Int(1) } else { rolling.planned.max_surge };
    let no_surge = !rolling.surges || rolling.no_room.as_ref().is_some_and(|reason| !reason.is_lookup());
    if no_surge && (100 <= allowed * replicas || !rolling.surges) {
        return rolling.yaml(&[(MAX_UNAVAILABLE, IntOrPercent::Int(1))]);
    }
    rolling.yaml(&[(MAX_SURGE, surge), (MAX_UNAVAILABLE, IntOrPercent::Int(0))])
}

fn finding(rolling: &Rolling, field: &str, message: String) -> Finding {
    Finding::new(RolloutOutage::META.id, pointer(&rolling.path(field)), message)
}

/// Rounded up, so that what is above a whole percentage never reads as that percentage.
fn percent_of(down: i64, replicas: i64) -> i64 {
    (down * 100 + replicas - 1) / replicas
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::engine::context::Declined;
    use crate::engine::document::Value;
    use crate::engine::facts::{Facts, Known, Reason};
    use crate::engine::kind;
    use crate::engine::request::{Endpoint, Operation};
    use crate::policy::Policy;

    fn check_with(kind: &str, spec: &str, policy: &Policy) -> Vec<Finding> {
        let text = format!(r#"{{"spec":{{"template":{{"spec":{{"containers":[{{"name":"c"}}]}}}},{spec}}}}}"#);
        let object = Value::parse(&text).unwrap();
        let (facts, declined) =
            (Facts { quotas: Known::Absent, ..Facts::unknown(Reason::NotAsked) }, Declined::default());
        let group = if kind == "Rollout" { "argoproj.io" } else { "apps" };
        let kind = kind::lookup(group, kind).unwrap();
        let context = Context::new(Endpoint::Validate, Operation::Create, kind, &object, &facts, policy, &declined);
        let mut findings = Vec::new();
        let setting = policy.setting("rollout-outage").unwrap();
        setting.rule.check(&context, &setting.params, &mut findings);
        findings
    }

    fn check(kind: &str, percent: u32, spec: &str) -> Vec<Finding> {
        let params = json!({"maxUnavailablePercent": percent});
        check_with(kind, spec, &Policy::of(&[("rollout-outage", Action::Deny, false, params)]).unwrap())
    }

    fn deployment(percent: u32, replicas: i64, surge: &str, unavailable: &str) -> Vec<Finding> {
        let pair = format!(r#"{{"maxSurge":{surge},"maxUnavailable":{unavailable}}}"#);
        check("Deployment", percent, &format!(r#""replicas":{replicas},"strategy":{{"rollingUpdate":{pair}}}"#))
    }

    fn messages(findings: &[Finding]) -> Vec<&str> {
        findings.iter().map(|finding| finding.message.as_str()).collect()
    }

    #[test]
    fn c05_all_replicas_at_once() {
        let found = deployment(100, 3, "0", "\"100%\"");
        assert_eq!(messages(&found), ["3 of 3 replicas may be down at once: maxUnavailable is 100%"]);
        assert_eq!((found[0].measure, found[0].cap), (Some(100), None));
        assert_eq!(found[0].pointer, "/spec/strategy/rollingUpdate/maxUnavailable");
        assert_eq!(
            found[0].mend.as_deref(),
            Some("spec:\n  strategy:\n    rollingUpdate:\n      maxSurge: 1\n      maxUnavailable: 0\n")
        );
        assert_eq!(
            messages(&deployment(100, 3, "\"25%\"", "5")),
            ["3 of 3 replicas may be down at once: maxUnavailable is 5"]
        );
        assert_eq!(deployment(100, 4, "\"25%\"", "\"75%\""), []);
    }

    #[test]
    fn more_than_the_policys_percentage() {
        let found = deployment(50, 3, "1", "2");
        assert_eq!(messages(&found), ["2 of 3 replicas (67%) may be down at once, more than 50%: maxUnavailable is 2"]);
        assert_eq!(found[0].measure, Some(67));
        assert_eq!(deployment(50, 2, "0", "1"), []);
        assert_eq!(deployment(50, 10, "0", "\"50%\""), []);
        assert_eq!(deployment(50, 1000, "0", "501")[0].measure, Some(51));
        assert_eq!(deployment(0, 4, "1", "0"), []);
    }

    #[test]
    fn c02_one_replica_and_no_surge_warns_at_most() {
        let found = deployment(100, 1, "0", "\"25%\"");
        assert_eq!(messages(&found), ["each rollout takes the only replica down: maxSurge is 0"]);
        assert_eq!((found[0].cap, found[0].measure), (Some(Action::Warn), Some(0)));
        assert_eq!(found[0].pointer, "/spec/strategy/rollingUpdate/maxSurge");
        assert_eq!(deployment(100, 1, "\"25%\"", "\"25%\""), []);
        let found = deployment(50, 1, "1", "1");
        assert_eq!(messages(&found), ["each rollout may take the only replica down: maxUnavailable is 1"]);
        assert_eq!(found[0].cap, Some(Action::Warn));
    }

    #[test]
    fn c02_the_fencepost_counts() {
        assert_eq!(
            messages(&deployment(10, 3, "0", "\"25%\"")),
            ["1 of 3 replicas (34%) may be down at once, more than 10%: maxSurge 0 and maxUnavailable 25% both come \
              to 0, and the controller then takes one"]
        );
    }

    #[test]
    fn c12_no_replicas_no_outage() {
        assert_eq!(deployment(0, 0, "0", "1"), []);
    }

    #[test]
    fn c03_c04_what_the_server_refuses_is_left_to_it() {
        assert_eq!(deployment(50, 3, "0", "0"), []);
        assert_eq!(deployment(50, 3, "0", "\"101%\""), []);
        assert_eq!(deployment(50, 3, "0", "\"3\""), []);
        assert_eq!(deployment(50, 3, "0", "3.0"), []);
        assert_eq!(
            check("DaemonSet", 50, r#""updateStrategy":{"rollingUpdate":{"maxSurge":1,"maxUnavailable":"90%"}}"#),
            []
        );
        assert_eq!(
            check("StatefulSet", 50, r#""replicas":3,"updateStrategy":{"rollingUpdate":{"maxUnavailable":0}}"#),
            []
        );
    }

    #[test]
    fn c06_c11_recreate_and_on_delete_are_not_its_business() {
        assert_eq!(check("Deployment", 50, r#""replicas":3,"strategy":{"type":"Recreate"}"#), []);
        assert_eq!(check("StatefulSet", 50, r#""replicas":3,"updateStrategy":{"type":"OnDelete"}"#), []);
        assert_eq!(check("DaemonSet", 50, r#""updateStrategy":{"type":"OnDelete"}"#), []);
    }

    #[test]
    fn c10_c11_stateful_sets() {
        let set = |percent: u32, replicas: i64, rolling: &str| {
            let spec = format!(r#""replicas":{replicas},"updateStrategy":{{"rollingUpdate":{rolling}}}"#);
            check("StatefulSet", percent, &spec)
        };
        let found = set(50, 3, r#"{"maxUnavailable":"100%"}"#);
        assert_eq!(messages(&found), ["3 of 3 replicas may be down at once: maxUnavailable is 100%"]);
        assert_eq!(
            found[0].mend.as_deref(),
            Some("spec:\n  updateStrategy:\n    rollingUpdate:\n      maxUnavailable: 1\n")
        );
        // Rounded down, not up as the API's text says: 66 % of 3 is 1.
        assert_eq!(set(50, 3, r#"{"maxUnavailable":"66%"}"#), []);
        assert_eq!(set(10, 2, "null"), []);
        assert_eq!(set(50, 1, "null"), []);
        assert_eq!(set(50, 3, r#"{"maxUnavailable":"100%","partition":3}"#), []);
        assert_eq!(set(50, 3, r#"{"maxUnavailable":"100%","partition":2}"#), []);
        assert_eq!(set(50, 3, r#"{"maxUnavailable":3,"partition":1}"#)[0].measure, Some(67));
        assert_eq!(set(50, 3, r#"{"maxUnavailable":3,"partition":-1}"#), []);
    }

    #[test]
    fn daemon_sets_by_percentage_only() {
        let set = |percent: u32, unavailable: &str| {
            let spec = format!(r#""updateStrategy":{{"rollingUpdate":{{"maxUnavailable":{unavailable}}}}}"#);
            check("DaemonSet", percent, &spec)
        };
        let found = set(50, "\"60%\"");
        assert_eq!(
            messages(&found),
            ["the pods of 60% of the nodes may be down at once, more than 50%: maxUnavailable is 60%"]
        );
        assert_eq!(found[0].measure, Some(60));
        assert_eq!(set(100, "\"100%\"").len(), 1);
        assert_eq!(set(50, "\"50%\""), []);
        assert_eq!(set(50, "100"), []);
        assert_eq!(check("DaemonSet", 0, r#""updateStrategy":{"type":"RollingUpdate"}"#), []);
    }

    #[test]
    fn c17_canaries_as_deployments_but_not_where_old_pods_stay() {
        let rollout = |strategy: &str| check("Rollout", 50, &format!(r#""replicas":3,"strategy":{strategy}"#));
        let found = rollout(r#"{"canary":{"maxUnavailable":3}}"#);
        assert_eq!(messages(&found), ["3 of 3 replicas may be down at once: maxUnavailable is 3"]);
        assert_eq!(found[0].pointer, "/spec/strategy/canary/maxUnavailable");
        assert_eq!(
            found[0].mend.as_deref(),
            Some("spec:\n  strategy:\n    canary:\n      maxSurge: 25%\n      maxUnavailable: 0\n")
        );
        assert_eq!(rollout(r#"{"canary":{}}"#), []);
        assert_eq!(rollout(r#"{"canary":{"maxUnavailable":3,"trafficRouting":{"smi":{}}}}"#), []);
        assert_eq!(rollout(r#"{"blueGreen":{"maxUnavailable":3}}"#), []);
    }

    #[test]
    fn it_judges_the_object_as_the_policys_fix_will_leave_it() {
        let strict = ("rollout-outage", Action::Deny, false, json!({"maxUnavailablePercent": 20}));
        let spec = r#""replicas":4,"strategy":null"#;
        let alone = Policy::of(std::slice::from_ref(&strict)).unwrap();
        assert_eq!(
            messages(&check_with("Deployment", spec, &alone)),
            ["1 of 4 replicas (25%) may be down at once, more than 20%: maxUnavailable is 25%"]
        );
        let fixed = Policy::of(&[strict, ("default-rolling-update", Action::Warn, true, json!({}))]).unwrap();
        assert_eq!(check_with("Deployment", spec, &fixed), []);
    }

    #[test]
    fn the_percentage_is_one() {
        let refused = Policy::of(&[("rollout-outage", Action::Deny, false, json!({"maxUnavailablePercent": 101}))]);
        assert_eq!(refused.err().map(|error| error.path).as_deref(), Some("maxUnavailablePercent"));
    }
}
