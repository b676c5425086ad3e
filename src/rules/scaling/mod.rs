//! Rules on how many pods there are, and who says so.

pub mod hpa_bounds;
pub mod hpa_fights_replicas;
pub mod single_replica;

use crate::engine::context::Context;
use crate::engine::facts::Known;
use crate::engine::neighbours::Autoscaler;

/// The HorizontalPodAutoscaler of the workload that the object speaks of, of several the first by name.
fn autoscaler<'c>(context: &'c Context<'_>) -> Known<&'c Autoscaler> {
    let autoscalers = match &context.facts.autoscalers {
        Known::Known(autoscalers) => autoscalers,
        Known::Absent => return Known::Absent,
        Known::Unknown(reason) => return Known::Unknown(*reason),
    };
    let (kind, name) = (context.workload_kind(), context.workload_name().unwrap_or_default());
    let of_it = autoscalers.iter().filter(|autoscaler| autoscaler.scales(kind.group, kind.kind, name));
    of_it.min_by(|a, b| a.name.cmp(&b.name)).map_or(Known::Absent, Known::Known)
}
