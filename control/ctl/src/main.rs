//! The binary: arguments in, exit code out.

use std::process::ExitCode;

fn main() -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("error[runtime]: can't start: {error}");
            return ExitCode::from(1);
        }
    };
    let code = runtime.block_on(caractrl::run(std::env::args_os().collect()));
    runtime.shutdown_background(); // A thread that waits for a key must not hold up the exit.
    ExitCode::from(code)
}
