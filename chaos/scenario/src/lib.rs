//! Fault scenarios as data: the file format, what a seed makes of it, when which fault hits whom, and how to shrink one.
