//! `--require NAME=VALUE`: what a run has to reach, and whether it did.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

use super::figure::{Better, Figures, kind, names};

/// One demand: at least, or at most, whichever way is better for this figure.
#[derive(Debug, Clone, PartialEq)]
pub struct Requirement {
    name: String,
    value: f64,
    better: Better,
}

impl FromStr for Requirement {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, value) = text.split_once('=').ok_or("write it as NAME=VALUE, for example write_1000=4")?;
        let (name, value) = (name.trim(), value.trim());
        let better = kind(name).ok_or_else(|| format!("there is no figure {name:?}; there are {}", names()))?.better;
        let number: f64 = value.parse().map_err(|_| format!("{value:?} is no number"))?;
        if !number.is_finite() || number < 0.0 {
            return Err(format!("{value:?} can't be reached or missed: give a number from 0 up"));
        }
        Ok(Self { name: name.to_owned(), value: number, better })
    }
}

/// How a demand came out.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verdict {
    pub name: String,
    pub better: Better,
    pub required: f64,
    /// None: it was not measured, and that is a miss.
    pub measured: Option<f64>,
    pub met: bool,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bound = match self.better {
            Better::More => "at least",
            Better::Less => "at most",
        };
        let measured = self.measured.map_or_else(|| "not measured".to_owned(), short);
        write!(f, "{} {measured}, required {bound} {}", self.name, short(self.required))
    }
}

/// Compares.
pub fn judge(requirements: &[Requirement], figures: &Figures) -> Vec<Verdict> {
    let judged = requirements.iter().map(|Requirement { name, value, better }| {
        let measured = figures.get(name).and_then(|figure| figure.value);
        let met = measured.is_some_and(|measured| match better {
            Better::More => measured >= *value,
            Better::Less => measured <= *value,
        });
        Verdict { name: name.clone(), better: *better, required: *value, measured, met }
    });
    judged.collect()
}

/// The last line.
pub fn sum_up(verdicts: &[Verdict]) -> String {
    let missed: Vec<String> = verdicts.iter().filter(|verdict| !verdict.met).map(Verdict::to_string).collect();
    match (verdicts.len(), missed.len()) {
        (0, _) => "nothing was required".to_owned(),
        (all, 0) => format!("{all} of {all} requirements met"),
        (all, misses) => format!("{misses} of {all} requirements missed: {}", missed.join("; ")),
    }
}

/// A number with the digits that matter.
pub fn short(value: f64) -> String {
    let digits = match value.abs() {
        size if size >= 100.0 || value == value.trunc() => 0,
        size if size >= 10.0 => 1,
        size if size >= 1.0 => 2,
        _ => 3,
    };
    format!("{value:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requirement(text: &str) -> Requirement {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn what_is_written_wrongly_is_refused_with_a_reason() {
        for (text, reason) in [
            ("write_1000", "NAME=VALUE"),
            ("write_1000=fast", "no number"),
            ("write_1000=inf", "from 0 up"),
            ("recovery=-1", "from 0 up"),
            ("speed=1", "there are enrol_per_s"),
        ] {
            let error = text.parse::<Requirement>().expect_err(text);
            assert!(error.contains(reason), "{text}: {error}");
        }
        assert_eq!(requirement(" all_back_s = 20 "), requirement("all_back_s=20"));
    }

    #[test]
    fn more_is_better_for_some_and_less_for_others() {
        let mut figures = Figures::default();
        figures.put("write_1000", Some(4.0));
        figures.put("recovery", Some(0.5));
        let met = |text: &str| judge(&[requirement(text)], &figures)[0].met;
        assert!(met("write_1000=4") && !met("write_1000=4.1"));
        assert!(met("recovery=0.5") && !met("recovery=0.4"));
    }

    #[test]
    fn what_was_not_measured_is_missed() {
        let mut figures = Figures::default();
        figures.put("write_1000", None);
        let verdicts = judge(&[requirement("write_1000=0"), requirement("false_offline=0")], &figures);
        assert!(verdicts.iter().all(|verdict| !verdict.met), "{verdicts:?}");
        let line = sum_up(&verdicts);
        assert!(
            line.starts_with("2 of 2 requirements missed: write_1000 not measured, required at least 0;"),
            "{line}"
        );
    }

    #[test]
    fn the_last_line_sums_up() {
        let mut figures = Figures::default();
        figures.put("false_offline", Some(0.0));
        assert_eq!(sum_up(&judge(&[requirement("false_offline=0")], &figures)), "1 of 1 requirements met");
        assert_eq!(sum_up(&[]), "nothing was required");
    }

    #[test]
    fn numbers_keep_the_digits_that_matter() {
        assert_eq!([1234.5, 12.34, 1.234, 0.1234, 4.0].map(short), ["1234", "12.3", "1.23", "0.123", "4"]);
    }
}
