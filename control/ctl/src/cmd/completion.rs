//! `completion`: a script for the shell.

use clap::CommandFactory;
use clap_complete::{Shell, generate};

use super::Context;
use crate::cli::{Cli, ShellName};
use crate::failure::Outcome;

pub(super) fn run(cx: &Context, shell: ShellName) -> Outcome {
    cx.ui.data(&script(shell));
    Ok(())
}

fn script(shell: ShellName) -> String {
    let shell = match shell {
        ShellName::Bash => Shell::Bash,
        ShellName::Zsh => Shell::Zsh,
        ShellName::Fish => Shell::Fish,
    };
    let mut script = Vec::new();
    generate(shell, &mut Cli::command(), "caractrl", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shell_knows_the_verbs() {
        for shell in [ShellName::Bash, ShellName::Zsh, ShellName::Fish] {
            let script = script(shell);
            for word in ["apply", "describe", "uncordon", "dev"] {
                assert!(script.contains(word), "{word} is missing for {shell:?}");
            }
        }
    }
}
