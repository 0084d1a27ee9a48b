//! Asking before something is changed that people notice.

use std::io::{BufRead, IsTerminal};

use super::Context;
use crate::failure::{Failure, Outcome, exit};

/// Asks whether to go on, unless `yes`. Without a terminal it refuses instead of waiting for ever.
///
/// # Errors
/// 2 when nobody can be asked, 4 when the answer isn't yes.
pub(super) fn agree(cx: &Context, what: &str, yes: bool) -> Outcome {
    if yes {
        return Ok(());
    }
    if !std::io::stdin().is_terminal() {
        return Err(Failure::usage(format!("{what} begins only when that is agreed to"))
            .why("stdin is no terminal, so nobody can be asked")
            .next("add --yes"));
    }
    cx.ui.note(&format!("{what}: go on? [y/N]"));
    let mut line = String::new();
    let read = std::io::stdin().lock().read_line(&mut line);
    if read.is_ok() && is_yes(&line) {
        return Ok(());
    }
    Err(Failure::new(exit::CONFLICT, "not-confirmed", format!("{what} has not begun")).why("the answer was not yes"))
}

fn is_yes(line: &str) -> bool {
    matches!(line.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_yes_is_yes() {
        assert!(is_yes("y\n") && is_yes(" Yes \r\n"));
        for line in ["", "\n", "n\n", "yess\n", "ja\n"] {
            assert!(!is_yes(line), "{line:?}");
        }
    }
}
