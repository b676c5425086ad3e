//! How each kind's controller turns `maxSurge` and `maxUnavailable` into numbers of pods (TRAPS C01).

use super::IntOrPercent;
use crate::engine::kind::Strategy;

/// What a controller makes of `maxSurge` and `maxUnavailable`; not bounded by the number of replicas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resolved {
    /// Pods that may exist beyond the wanted number.
    pub surge: i64,
    /// Pods that may be unavailable at once.
    pub unavailable: i64,
    /// Whether `unavailable` is 1 only because both had come to 0, which would never make progress.
    pub forced: bool,
}

/// Resolves for `pods` wanted pods, as the controller of this kind does:
///
/// * Deployment (`ResolveFenceposts` in the deployment controller) and Rollout (the same in Argo Rollouts): surge up,
///   unavailable down; both zero makes one unavailable.
/// * DaemonSet (`UnavailableCount`, `SurgeCount`): both up.
/// * StatefulSet (`getStatefulSetMaxUnavailable`): down, but at least 1, although the API's text says up; no surge.
pub fn resolve(strategy: Strategy, pods: i64, max_surge: IntOrPercent, max_unavailable: IntOrPercent) -> Resolved {
    let exactly = |surge, unavailable| Resolved { surge, unavailable, forced: false };
    match strategy {
        Strategy::Deployment | Strategy::Rollout => {
            match (max_surge.round_up(pods), max_unavailable.round_down(pods)) {
                (0, 0) => Resolved { surge: 0, unavailable: 1, forced: true },
                (surge, unavailable) => exactly(surge, unavailable),
            }
        }
        Strategy::DaemonSet => exactly(max_surge.round_up(pods), max_unavailable.round_up(pods)),
        Strategy::StatefulSet => exactly(0, max_unavailable.round_down(pods).max(1)),
        Strategy::None => exactly(0, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::IntOrPercent::{Int, Percent};
    use super::*;

    fn pair(strategy: Strategy, pods: i64, surge: IntOrPercent, unavailable: IntOrPercent) -> (i64, i64) {
        let resolved = resolve(strategy, pods, surge, unavailable);
        (resolved.surge, resolved.unavailable)
    }

    #[test]
    fn c01_deployments_surge_up_unavailable_down_never_both_zero() {
        for (pods, surge, unavailable, expected) in [
            (1, Percent(25), Percent(25), (1, 0)),
            (2, Percent(25), Percent(25), (1, 0)),
            (3, Percent(25), Percent(25), (1, 0)),
            (4, Percent(25), Percent(25), (1, 1)),
            (5, Percent(25), Percent(25), (2, 1)),
            (10, Percent(25), Percent(25), (3, 2)),
            (10, Int(0), Percent(5), (0, 1)),
            (3, Int(0), Percent(25), (0, 1)),
            (4, Int(1), Int(0), (1, 0)),
            (0, Percent(25), Percent(25), (0, 1)),
        ] {
            assert_eq!(pair(Strategy::Deployment, pods, surge, unavailable), expected, "{pods} {surge} {unavailable}");
            assert_eq!(pair(Strategy::Rollout, pods, surge, unavailable), expected, "{pods} {surge} {unavailable}");
        }
    }

    #[test]
    fn c01_only_the_fencepost_forces() {
        assert!(resolve(Strategy::Deployment, 3, Int(0), Percent(25)).forced);
        assert!(!resolve(Strategy::Deployment, 3, Int(0), Int(1)).forced);
    }

    #[test]
    fn c01_daemon_sets_round_both_up() {
        assert_eq!(pair(Strategy::DaemonSet, 10, Int(0), Percent(25)), (0, 3));
        assert_eq!(pair(Strategy::DaemonSet, 10, Percent(1), Int(0)), (1, 0));
    }

    #[test]
    fn c01_stateful_sets_round_down_to_at_least_one() {
        assert_eq!(pair(Strategy::StatefulSet, 10, Int(0), Percent(25)), (0, 2));
        assert_eq!(pair(Strategy::StatefulSet, 3, Int(0), Percent(25)), (0, 1));
        assert_eq!(pair(Strategy::StatefulSet, 3, Int(0), Percent(100)), (0, 3));
        assert_eq!(pair(Strategy::StatefulSet, 3, Int(0), Int(1)), (0, 1));
    }
}
