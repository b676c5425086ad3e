//! How workloads replace their pods: IntOrString, rounding per kind, and the plan that rules on rollouts share.

mod deadline;
mod int_or_percent;
mod no_room;
mod plan;
mod rounding;

pub use deadline::{progress_deadline, startup_budget};
pub use int_or_percent::IntOrPercent;
pub use no_room::{NoRoom, selects_own_pods};
pub use plan::{Bounds, MAX_SURGE, MAX_UNAVAILABLE, RollPlan, Rolling, UpdateType};
pub use rounding::{Resolved, resolve};
