//! Asking before something is changed that people notice.

use std::io::{BufRead, IsTerminal};

use super::Context;
use crate::failure::{Failure, Outcome, exit};

/// What is asked before it happens.
pub(super) struct Question {
    /// What does not happen while nobody can be asked.
    pub unasked: String,
    /// Shown before the answer is read.
    pub prompt: String,
    /// What is so when the answer is another one.
    pub untouched: String,
    /// What was wrong with the answer.
    pub why: &'static str,
}

impl Question {
    /// Reads the answer. Without a terminal it refuses instead of waiting for ever.
    ///
    /// # Errors
    /// 2 when nobody can be asked, 4 when the answer isn't right.
    pub fn put(self, cx: &Context, is_right: impl FnOnce(&str) -> bool) -> Outcome {
        if !std::io::stdin().is_terminal() {
            return Err(Failure::usage(self.unasked)
                .why("stdin is no terminal, so nobody can be asked")
                .next("add --yes"));
        }
        cx.ui.note(&self.prompt);
        let mut line = String::new();
        let read = std::io::stdin().lock().read_line(&mut line);
        if read.is_ok() && is_right(line.trim()) {
            return Ok(());
        }
        Err(Failure::new(exit::CONFLICT, "not-confirmed", self.untouched).why(self.why))
    }
}

/// Asks whether to go on, unless `yes`.
///
/// # Errors
/// As [`Question::put`].
pub(super) fn agree(cx: &Context, what: &str, yes: bool) -> Outcome {
    if yes {
        return Ok(());
    }
    let question = Question {
        unasked: format!("{what} begins only when that is agreed to"),
        prompt: format!("{what}: go on? [y/N]"),
        untouched: format!("{what} has not begun"),
        why: "the answer was not yes",
    };
    question.put(cx, is_yes)
}

/// Asks for the name of what is to be deleted to be typed, unless `yes`.
///
/// # Errors
/// As [`Question::put`].
pub(super) fn confirm_deletion(cx: &Context, kind: &str, name: &str, yes: bool) -> Outcome {
    if yes {
        return Ok(());
    }
    let question = Question {
        unasked: format!("{kind}/{name} is deleted for good only when that is confirmed"),
        prompt: format!("This removes {kind} {name:?} from the cluster for good. Type its name to confirm:"),
        untouched: format!("{kind}/{name} was not touched"),
        why: "another name was typed",
    };
    question.put(cx, |line| line == name)
}

/// Asks for a word to be typed before something is replaced, unless `yes`.
///
/// # Errors
/// As [`Question::put`].
pub(super) fn confirm_replacement(cx: &Context, what: &str, word: &str, yes: bool) -> Outcome {
    if yes {
        return Ok(());
    }
    let question = Question {
        unasked: format!("{what} is replaced only when that is confirmed"),
        prompt: format!("Type {word} to go on:"),
        untouched: "nothing was changed".to_owned(),
        why: "another word was typed",
    };
    question.put(cx, |line| line == word)
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
