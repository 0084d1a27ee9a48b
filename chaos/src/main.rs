//! cara-chaos: breaks a cluster on purpose and judges what happened.

// Libraries that ask the kernel for time or randomness get the simulated world's while one runs. This binary simulates;
// no production binary may have this.
cara_netsim::override_libc!();

fn main() -> std::process::ExitCode {
    cara_chaos::cli::main()
}
