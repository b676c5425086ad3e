//! How many pods a budget covers: their number stands in other objects.

use crate::engine::facts::Facts;
use crate::engine::kind::Kind;
use crate::engine::neighbours::{Autoscaler, Budget, Labels};
use crate::engine::text::quoted;

/// A workload whose pods a budget covers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Covered {
    /// Its kind and its name in quotes.
    pub name: String,
    /// Fewest pods that it is meant to have.
    pub pods: i64,
    /// Whether an autoscaler's minimum says so.
    pub autoscaled: bool,
}

impl Covered {
    /// A workload with this `spec.replicas`, or what the autoscaler that scales it falls back to.
    pub fn new(group: &str, kind: &str, name: &str, replicas: i64, autoscalers: &[Autoscaler]) -> Self {
        let scaler = autoscalers.iter().find(|scaler| scaler.scales(group, kind, name));
        Covered {
            name: format!("{kind} {}", quoted(name)),
            pods: scaler.map_or(replicas, |scaler| scaler.min),
            autoscaled: scaler.is_some(),
        }
    }
}

/// The workloads that a budget covers, by name. `None` where their pods cannot be counted: nobody knows the workloads
/// or the autoscalers, or one of them is a DaemonSet or a Job.
///
/// `judged` is left out: what the cluster knows of the object under review is its past.
pub fn covered(
    selects: impl Fn(&Labels) -> bool,
    facts: &Facts,
    judged: Option<(&Kind, &str)>,
) -> Option<Vec<Covered>> {
    let (workloads, autoscalers) = (facts.workloads.list()?, facts.autoscalers.list()?);
    let others = workloads.iter().filter(|workload| {
        judged.is_none_or(|(kind, name)| {
            (kind.group, kind.kind, name) != (&workload.group, &workload.kind, &workload.name)
        })
    });
    let mut covered = others
        .filter(|workload| selects(&workload.labels))
        .map(|workload| {
            // A bare Pod is one (TRAPS G08).
            let replicas = workload.replicas.or((workload.kind == "Pod").then_some(1))?;
            Some(Covered::new(&workload.group, &workload.kind, &workload.name, replicas, autoscalers))
        })
        .collect::<Option<Vec<_>>>()?;
    covered.sort_by(|a, b| a.name.cmp(&b.name));
    Some(covered)
}

/// The budgets that cover pods with these labels, by name.
pub fn covering<'b>(budgets: &'b [Budget], labels: &Labels) -> Vec<&'b Budget> {
    let mut covering: Vec<&Budget> = budgets.iter().filter(|budget| budget.selects(labels)).collect();
    covering.sort_by(|a, b| a.name.cmp(&b.name));
    covering
}
