//! The traps of admission webhooks, one file a group, one function (or a few) a trap.

mod a;
mod answer;
pub mod b;
mod c;
mod d;
mod e;
mod f;
mod g;
mod h;
mod i;
mod j;
mod k;
mod sizes;
pub mod world;
