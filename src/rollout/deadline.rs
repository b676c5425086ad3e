//! How long a rollout may go without progress, and how long one pod may take.

use crate::engine::context::Context;
use crate::engine::document::Value;
use crate::engine::kind::Strategy;
use crate::engine::pod::{Class, Template};

/// `progressDeadlineSeconds` where nobody sets it, seconds (`SetDefaults_Deployment`; Argo Rollouts' `defaults`).
const DEFAULT_DEADLINE: i64 = 600;

/// Seconds without progress after which a rollout counts as failed; absent means 600. `None` where the kind has no such
/// deadline, or it is no whole number above 0, which the API server refuses.
pub fn progress_deadline(context: &Context<'_>) -> Option<i64> {
    if !matches!(context.kind.strategy, Strategy::Deployment | Strategy::Rollout) {
        return None;
    }
    match context.object.at(&["spec", "progressDeadlineSeconds"]) {
        Value::Null => Some(DEFAULT_DEADLINE),
        value => value.as_i64().filter(|seconds| *seconds > 0),
    }
}

/// Seconds that startup probes grant a pod, at most. Native sidecars start one after the other before the regular
/// containers, which start together. `None` where a number of a probe is no whole number ≥ 0.
pub fn startup_budget(template: &Template<'_>) -> Option<i64> {
    let (mut sidecars, mut regular) = (0_i64, 0_i64);
    for container in template.containers() {
        let seconds = granted(&container.value["startupProbe"])?;
        match container.class {
            Class::Sidecar => sidecars = sidecars.saturating_add(seconds),
            Class::Regular => regular = regular.max(seconds),
            Class::Init | Class::Ephemeral => {}
        }
    }
    Some(sidecars.saturating_add(regular))
}

/// Seconds until a startup probe gives up, 0 where there is none. Absent numbers, as in CRDs, are the API's defaults.
fn granted(probe: &Value<'_>) -> Option<i64> {
    if probe.as_object().is_none() {
        return Some(0);
    }
    let number = |member: &str, default: i64| match &probe[member] {
        Value::Null => Some(default),
        value => value.as_i64().filter(|number| *number >= 0).map(|number| if number == 0 { default } else { number }),
    };
    let tries = number("failureThreshold", 3)?.saturating_mul(number("periodSeconds", 10)?);
    Some(number("initialDelaySeconds", 0)?.saturating_add(tries))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(spec: &str) -> Option<i64> {
        let text = format!("{{\"spec\":{spec}}}");
        let object = Value::parse(&text).unwrap();
        startup_budget(&Template { path: &[], value: &object })
    }

    #[test]
    fn the_slowest_container_after_every_sidecar() {
        assert_eq!(budget(r#"{"containers":[{"name":"c"}]}"#), Some(0));
        let probe = r#""startupProbe":{"failureThreshold":30,"periodSeconds":5,"initialDelaySeconds":7}"#;
        let two = format!(r#"{{"containers":[{{"name":"a",{probe}}},{{"name":"b","startupProbe":{{}}}}]}}"#);
        assert_eq!(budget(&two), Some(157));
        let mesh = format!(
            r#"{{"containers":[{{"name":"a",{probe}}}],"initContainers":[
                {{"name":"s","restartPolicy":"Always","startupProbe":{{"periodSeconds":1}}}},
                {{"name":"t","restartPolicy":"Always","startupProbe":{{"periodSeconds":2}}}},
                {{"name":"i","startupProbe":{{"periodSeconds":1000}}}}]}}"#
        );
        assert_eq!(budget(&mesh), Some(166));
    }

    #[test]
    fn numbers_that_the_server_refuses_tell_nothing() {
        assert_eq!(budget(r#"{"containers":[{"startupProbe":{"periodSeconds":-1}}]}"#), None);
        assert_eq!(budget(r#"{"containers":[{"startupProbe":{"failureThreshold":"3"}}]}"#), None);
        assert_eq!(budget(r#"{"containers":[{"startupProbe":null},{"startupProbe":"x"}]}"#), Some(0));
    }
}
