//! What is always true of the state, each with a name. Defined once; used by unit, property and simulation tests.
