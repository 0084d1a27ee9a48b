//! Judges, one file per question. Each returns what is wrong, in words; nothing wrong is an empty list.

pub mod converged;
pub mod copies;
pub mod durable;
pub mod fences;
pub mod linear;
pub mod servers;
