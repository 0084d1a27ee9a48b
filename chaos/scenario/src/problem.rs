//! What is wrong with a scenario, and in which line.
//!
//! A scenario is checked once it is read, when nothing knows the file's lines any more. So a problem carries the way to its
//! value (`fault.2.target`: the third fault's target), and that way is walked over the text again.

use toml::de::{DeTable, DeValue};

/// Something that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    /// Keys and numbers, counted from 0, with dots between them.
    way: String,
    text: String,
}

impl Problem {
    pub(crate) fn new(way: impl Into<String>, text: impl Into<String>) -> Self {
        Self { way: way.into(), text: text.into() }
    }

    /// For people, with the line if the file says anything there.
    pub(crate) fn told(self, file: &str) -> String {
        match line(file, &self.way) {
            Some(line) => format!("line {line}: {}", self.text),
            None => self.text,
        }
    }
}

/// The line of a value, counted from 1; of a value that isn't there that of the table or list in which it would be.
fn line(file: &str, way: &str) -> Option<usize> {
    let parsed = DeTable::parse(file).ok()?;
    let mut at = None;
    let mut values: Option<&DeValue<'_>> = None;
    for part in way.split('.') {
        let next = match values {
            None => parsed.get_ref().get(part),
            Some(value) => match part.parse::<usize>() {
                Ok(nth) => value.get(nth),
                Err(_) => value.get(part),
            },
        };
        let Some(found) = next else { break };
        at = Some(found.span().start);
        values = Some(found.get_ref());
    }
    at.map(|at| file[..at].matches('\n').count() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "format = 1\n\n[run]\nseeds = \"x\"\n\n[[fault]]\nid = \"a\"\n[[fault]]\nid = \"b\"\n\
                        target = \"boss\"\n[[expect]]\nalways = [\n  \"fence\",\n  \"magic\",\n]\n";

    #[test]
    fn a_problem_is_told_with_the_line_of_its_value_or_of_what_should_hold_it() {
        let told = |way: &str| Problem::new(way, "wrong").told(FILE);
        assert_eq!(told("run.seeds"), "line 4: wrong");
        assert_eq!(told("fault.1.target"), "line 10: wrong");
        assert_eq!(told("fault.0.target"), "line 6: wrong", "it has none");
        assert_eq!(told("expect.0.always.1"), "line 14: wrong");
        assert_eq!(told("cluster.servers"), "wrong", "the file says nothing of a cluster");
    }
}
