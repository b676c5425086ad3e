//! How a pod will end: sleep per container and grace, planned once for every rule on termination.
//!
//! The grace period starts before the preStop hooks, and the hooks of all containers start together: the longest sleep
//! and the time to drain must fit the grace, else SIGKILL comes first (TRAPS E02, E07).

use super::context::Context;
use super::document::Value;
use super::exec::sleeps_at_least;
use super::facts::{Known, Reason, ServerVersion};
use super::ownership::author_set;
use super::pod::Container;
use crate::rules::termination::missing_pre_stop::MissingPreStop;
use crate::rules::termination::short_grace_period::ShortGracePeriod;

/// `terminationGracePeriodSeconds` that the API server fills in, seconds (core/v1 PodSpec).
pub const DEFAULT_GRACE: i64 = 30;

/// First server whose kubelets know the `sleep` action without a feature gate set (KEP-3960: beta).
const SLEEP_SINCE: ServerVersion = ServerVersion { major: 1, minor: 30 };

/// The end of a pod, as it is and as it will be. All times in seconds.
#[derive(Debug, Clone, PartialEq)]
pub struct Termination {
    /// The grace period as it is (absent: 30).
    pub grace: i64,
    /// Whether it is the API default that nobody applied.
    pub grace_is_default: bool,
    /// The grace period as it will be: raised where nobody set it and the sleeps need more.
    pub planned_grace: i64,
    /// The longest sleep in a preStop hook that is there, and the container's name.
    pub longest_sleep: Option<(String, i64)>,
    /// How long a preStop hook that is missing will sleep, or why none is added.
    pub added_sleep: Result<i64, NoSleep>,
    /// Time that is left to the process after its hook: `drainSeconds`.
    pub drain: i64,
}

/// Why no sleep is added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoSleep {
    /// The fix is off, or not for this workload.
    NotWanted,
    /// The API server drops the `sleep` action (TRAPS B12).
    ServerTooOld(ServerVersion),
    /// The API server's version is not known.
    ServerUnknown(Reason),
    /// The kind's CRD drops the `sleep` action, or could not be looked at (`None`: it was).
    CrdWithoutSleep(Option<Reason>),
    /// A grace of zero or less runs no hook (TRAPS E02, E03).
    NoGrace(i64),
    /// The author's grace leaves no second for it beside the drain.
    NoRoom {
        /// The author's grace.
        grace: i64,
        /// What the process needs after it.
        drain: i64,
    },
}

impl NoSleep {
    /// The reason as the end of a sentence; `None` where there is nothing to tell.
    pub fn says(self) -> Option<String> {
        Some(match self {
            NoSleep::NotWanted => return None,
            NoSleep::ServerTooOld(version) => {
                format!("native sleep needs Kubernetes ≥ {SLEEP_SINCE}, this server is {version}")
            }
            NoSleep::ServerUnknown(reason) => {
                format!("native sleep needs Kubernetes ≥ {SLEEP_SINCE}, this server's version is unknown ({reason})")
            }
            NoSleep::CrdWithoutSleep(None) => "the CRD of this kind does not know the sleep action".to_owned(),
            NoSleep::CrdWithoutSleep(Some(reason)) => {
                format!("whether the CRD knows the sleep action: {reason}")
            }
            NoSleep::NoGrace(grace) => format!("a terminationGracePeriodSeconds of {grace} runs no hook"),
            NoSleep::NoRoom { grace, drain } => {
                format!("a terminationGracePeriodSeconds of {grace} leaves no room beside {drain} s to drain")
            }
        })
    }

    /// Whether a look-up is the reason, not the object.
    pub fn is_lookup(self) -> bool {
        matches!(self, NoSleep::ServerTooOld(_) | NoSleep::ServerUnknown(_) | NoSleep::CrdWithoutSleep(_))
    }
}

impl Termination {
    /// Plans from what the author set, the policy and the facts.
    pub fn plan(context: &Context<'_>) -> Termination {
        let Some(template) = context.template else { return Termination::of_nothing() };
        let short_grace = context.policy.params::<ShortGracePeriod>();
        let drain = short_grace.drain_seconds;

        let path = template.path(&["spec", "terminationGracePeriodSeconds"]);
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        let grace = template.spec()["terminationGracePeriodSeconds"].as_i64().unwrap_or(DEFAULT_GRACE);
        let default = Value::from(DEFAULT_GRACE);
        let grace_is_default = !author_set(context.object, context.kind, &path, &default);
        let may_raise = grace_is_default && context.fixes("short-grace-period");

        let longest_sleep = template
            .regular()
            .filter_map(|container| Some((container.name().to_owned(), preset_seconds(&container)?)))
            .filter(|(_, seconds)| *seconds > 0)
            .reduce(|longest, next| if next.1 > longest.1 { next } else { longest });
        let added_sleep = MissingPreStop::sleep_for(context, &template).and_then(|wanted| {
            if grace <= 0 {
                return Err(NoSleep::NoGrace(grace));
            }
            let fits = if may_raise { wanted } else { wanted.min(grace - drain) };
            if fits < 1 { Err(NoSleep::NoRoom { grace, drain }) } else { Ok(fits) }
        });

        let mut planned_grace = grace;
        if may_raise {
            let sleeps = longest_sleep.as_ref().map(|(_, seconds)| *seconds).into_iter().chain(added_sleep.ok());
            let needed = sleeps.max().map_or(0, |longest| longest.saturating_add(drain));
            let serving = if template.serving() { short_grace.min_seconds } else { 0 };
            planned_grace = grace.max(needed).max(serving);
        }
        Termination { grace, grace_is_default, planned_grace, longest_sleep, added_sleep, drain }
    }

    fn of_nothing() -> Termination {
        Termination {
            grace: DEFAULT_GRACE,
            grace_is_default: true,
            planned_grace: DEFAULT_GRACE,
            longest_sleep: None,
            added_sleep: Err(NoSleep::NotWanted),
            drain: 0,
        }
    }
}

/// Whether kubelets will run a native sleep that we add.
pub fn native_sleep(context: &Context<'_>) -> Result<(), NoSleep> {
    match &context.facts.server_version {
        Known::Known(version) if *version < SLEEP_SINCE => return Err(NoSleep::ServerTooOld(*version)),
        Known::Known(_) => {}
        Known::Absent => return Err(NoSleep::ServerUnknown(Reason::Failed)),
        Known::Unknown(reason) => return Err(NoSleep::ServerUnknown(*reason)),
    }
    if context.kind.defaulted {
        return Ok(());
    }
    match context.facts.crd_sleep {
        Known::Known(true) => Ok(()),
        Known::Known(false) | Known::Absent => Err(NoSleep::CrdWithoutSleep(None)),
        Known::Unknown(reason) => Err(NoSleep::CrdWithoutSleep(Some(reason))),
    }
}

/// Seconds that a container's preStop hook surely takes; 0 for a hook whose time cannot be told, `None` without hook.
pub fn preset_seconds(container: &Container<'_>) -> Option<i64> {
    let hook = container.value.get("lifecycle").get("preStop");
    if hook.is_null() {
        return None;
    }
    let action = hook["sleep"]["seconds"].as_i64().filter(|seconds| *seconds >= 0);
    Some(action.or_else(|| sleeps_at_least(hook.get("exec"))).unwrap_or(0))
}
