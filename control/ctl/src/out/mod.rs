//! How things are said: data on stdout in the wanted format, talk on stderr, colour only for eyes.

mod amount;
mod style;
mod table;
mod time;

use std::io::{IsTerminal, Write};
use std::sync::{Arc, Mutex, PoisonError};

use clap::ValueEnum;
use indicatif::ProgressBar;
use serde_json::Value;

pub use amount::{bytes, gauge, percent, span};
pub use style::{Tone, paint, tone_of};
pub use table::Table;
pub use time::{age, between, until};

use crate::failure::{Failure, Outcome, exit};

/// `-o`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Columns for people; tab-separated when piped.
    #[default]
    Table,
    /// More columns.
    Wide,
    /// As the API answers.
    Json,
    /// As the API answers, in YAML.
    Yaml,
    /// One `kind/name` a line.
    Name,
}

/// `--color`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal, unless `NO_COLOR` is set; also elsewhere when `CLICOLOR_FORCE` is.
    #[default]
    Auto,
    /// Also into pipes.
    Always,
    /// Nowhere.
    Never,
}

/// Where output goes and how it may look.
#[derive(Debug, Clone)]
pub struct Ui {
    /// Wanted format.
    pub format: Format,
    /// Tables begin with a header.
    pub headers: bool,
    /// Stdout is a terminal.
    pub out_tty: bool,
    /// Stderr is a terminal.
    pub err_tty: bool,
    /// Stdout may carry colour.
    pub out_color: bool,
    /// Stderr may carry colour.
    pub err_color: bool,
    /// The line on stderr that is being rewritten, while there is one; shared by clones, so that whoever has something to
    /// say meanwhile says it above that line.
    pub live: LiveLine,
}

/// See [`Ui::live`].
pub type LiveLine = Arc<Mutex<Option<ProgressBar>>>;

impl Ui {
    /// Looks at the terminal and at the variables about colour.
    pub fn new(format: Format, color: Color, headers: bool, var: &dyn Fn(&str) -> Option<String>) -> Self {
        let (out_tty, err_tty) = (std::io::stdout().is_terminal(), std::io::stderr().is_terminal());
        let allowed = |tty: bool| match color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => colored(tty, var),
        };
        Self {
            format,
            headers,
            out_tty,
            err_tty,
            out_color: allowed(out_tty),
            err_color: allowed(err_tty),
            live: LiveLine::default(),
        }
    }

    /// Data: one or more lines on stdout. A closed pipe ends the program quietly, as `| head` expects.
    pub fn data(&self, text: &str) {
        let mut out = std::io::stdout().lock();
        let ended = if text.ends_with('\n') || text.is_empty() { "" } else { "\n" };
        if write!(out, "{text}{ended}").and_then(|()| out.flush()).is_err() {
            std::process::exit(i32::from(exit::OK));
        }
    }

    /// Raw bytes of a log on stdout.
    pub fn bytes(&self, bytes: &[u8]) {
        let mut out = std::io::stdout().lock();
        if out.write_all(bytes).and_then(|()| out.flush()).is_err() {
            std::process::exit(i32::from(exit::OK));
        }
    }

    /// Talk: one line on stderr.
    pub fn note(&self, text: &str) {
        let say = || drop(writeln!(std::io::stderr().lock(), "{text}")); // Nobody is left to be told.
        match self.live.lock().unwrap_or_else(PoisonError::into_inner).as_ref() {
            Some(bar) => bar.suspend(say),
            None => say(),
        }
    }

    /// A failure on stderr.
    pub fn failure(&self, failure: &Failure) {
        let text = failure.to_string();
        let head = format!("error[{}]", failure.code);
        let painted = paint(self.err_color, Tone::Bad, &head);
        self.note(&clean_lines(&text).replacen(&head, &painted, 1));
    }

    /// A table on stdout.
    pub fn table(&self, table: &Table) {
        self.data(&table.render(self.out_tty, self.out_color, self.headers));
    }

    /// A value as JSON or YAML, whichever is wanted.
    ///
    /// # Errors
    /// When the value has no YAML form.
    pub fn value(&self, value: &Value) -> Outcome {
        let unprintable = |e: String| Failure::new(exit::OTHER, "output", "the answer can't be printed").why(e);
        let text = match self.format {
            Format::Yaml => serde_saphyr::to_string(value).map_err(|e| unprintable(e.to_string()))?,
            _ => serde_json::to_string_pretty(value).map_err(|e| unprintable(e.to_string()))?,
        };
        self.data(&text);
        Ok(())
    }

    /// Is the output for programs that read whole objects?
    pub fn structured(&self) -> bool {
        matches!(self.format, Format::Json | Format::Yaml)
    }

    /// Is it `-o wide`?
    pub fn wide(&self) -> bool {
        self.format == Format::Wide
    }
}

fn colored(tty: bool, var: &dyn Fn(&str) -> Option<String>) -> bool {
    let set = |name: &str| var(name).is_some_and(|v| !v.is_empty());
    if set("NO_COLOR") {
        return false;
    }
    if var("CLICOLOR_FORCE").is_some_and(|v| !v.is_empty() && v != "0") {
        return true;
    }
    tty && var("TERM").is_none_or(|term| term != "dumb")
}

/// Text of others without characters that could steer the terminal.
pub fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

fn clean_lines(text: &str) -> String {
    text.chars().map(|c| if c.is_control() && c != '\n' { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colour_follows_the_variables() {
        let with = |tty, vars: &'static [(&str, &str)]| {
            colored(tty, &|name| vars.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned()))
        };
        assert!(with(true, &[]));
        assert!(!with(false, &[]));
        assert!(!with(true, &[("NO_COLOR", "1")]));
        assert!(with(true, &[("NO_COLOR", "")]));
        assert!(with(false, &[("CLICOLOR_FORCE", "1")]));
        assert!(!with(false, &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]));
        assert!(!with(true, &[("TERM", "dumb")]));
    }

    #[test]
    fn others_text_cannot_steer_the_terminal() {
        assert_eq!(clean("a\x1b[31mb\tc\nd"), "a [31mb c d");
    }
}
