//! One file a group of traps, one function a trap: `a02_…`.

mod a;
mod i;
mod j;
mod k;
