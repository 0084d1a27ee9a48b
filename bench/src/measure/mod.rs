//! What is measured, apart from the load: figures with names, times, processes, the disk, the machine.

pub mod disk;
pub mod figure;
pub mod latency;
pub mod machine;
pub mod process;
pub mod require;
pub mod steady;
