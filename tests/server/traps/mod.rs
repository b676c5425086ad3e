//! The traps of admission webhooks, one file a group, one function (or a few) a trap.

mod b;
mod c;
mod d;
mod door;
mod e;
mod f;
mod g;
mod h;
mod world;
