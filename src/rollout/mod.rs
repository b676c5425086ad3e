//! How workloads replace their pods: IntOrString, rounding per kind, and the plan that rules on rollouts share.

mod int_or_percent;
mod no_room;
mod plan;
mod rounding;

pub use int_or_percent::IntOrPercent;
pub use no_room::NoRoom;
pub use plan::{Bounds, RollPlan, Rolling, UpdateType};
pub use rounding::{Resolved, resolve};
