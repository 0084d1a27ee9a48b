//! What a run says at its end: tables for people, JSON for programs, a page with plots for both.

mod html;
mod svg;
mod text;

use serde::Serialize;

use crate::measure::disk::Sync;
use crate::measure::figure::Figures;
use crate::measure::machine::Machine;
use crate::measure::require::{Requirement, Verdict, judge};

pub use html::page;
pub use text::text;

/// A whole run.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Report {
    /// The command line.
    pub command: String,
    pub machine: Machine,
    pub disk: Option<Sync>,
    pub figures: Figures,
    pub sections: Vec<Section>,
    pub notes: Vec<String>,
    #[serde(skip)]
    pub plots: Vec<Plot>,
    pub verdicts: Vec<Verdict>,
}

/// A table.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Section {
    pub title: String,
    pub header: &'static [&'static str],
    pub rows: Vec<Vec<String>>,
}

/// A drawing.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Plot {
    pub title: String,
    pub x: &'static str,
    pub y: &'static str,
    pub log_x: bool,
    pub log_y: bool,
    /// Points instead of lines.
    pub dots: bool,
    pub series: Vec<Series>,
    /// Moments with a word.
    pub marks: Vec<(f64, String)>,
}

/// One line of a drawing.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Series {
    pub name: String,
    pub points: Vec<(f64, f64)>,
}

impl Report {
    /// Of a run that begins now.
    pub fn begin() -> Self {
        let command = std::env::args().skip(1).collect::<Vec<_>>();
        Self { command: without_secrets(&command), machine: Machine::look(), ..Self::default() }
    }

    /// Something that a reader has to know.
    pub fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }

    /// A table.
    pub fn section(&mut self, section: Section) {
        self.sections.push(section);
    }

    /// How fast the disk was.
    pub fn disk(&mut self, sync: &Sync) {
        self.disk = Some(*sync);
    }

    /// The run is over: did it reach what was required?
    pub fn end(&mut self, requirements: &[Requirement]) {
        self.machine.look_again();
        self.verdicts = judge(requirements, &self.figures);
    }

    /// Was all reached?
    pub fn is_met(&self) -> bool {
        self.verdicts.iter().all(|verdict| verdict.met)
    }
}

/// A command line that may be shown: a token on it may not.
fn without_secrets(words: &[String]) -> String {
    let mut shown = Vec::new();
    let mut hide = false;
    for word in words {
        let is_secret = std::mem::replace(&mut hide, word == "--token");
        let word = if is_secret { "..." } else { word.as_str() };
        shown.push(if word.starts_with("--token=") { "--token=..." } else { word });
    }
    shown.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_token_is_shown() {
        let words = ["agents", "--token", "secret", "--agents", "5", "--token=secret"].map(str::to_owned);
        assert_eq!(without_secrets(&words), "agents --token ... --agents 5 --token=...");
    }
}
