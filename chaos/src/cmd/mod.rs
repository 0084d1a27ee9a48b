//! The commands, one a file.

pub mod diff;
pub mod doctor;
pub mod explain;
pub mod list;
mod many;
pub mod matrix;
pub mod museum;
pub mod one;
pub mod replay;
pub mod report;
pub mod run;
pub mod schema;
mod seeds;
mod shape;
pub mod shrink;
pub mod sim;
