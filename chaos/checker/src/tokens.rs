//! A join token admits one key once; a refused attempt leaves it usable; a retry with the same key gets the same
//! certificate.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::{Finding, rules};

/// A token that was issued.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// Its id.
    pub id: String,
    /// May it be spent many times?
    pub is_reusable: bool,
}

/// An attempt to enrol with a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// When it was sent.
    pub start: Duration,
    /// When the answer came; none when none came.
    pub end: Option<Duration>,
    /// Which token.
    pub token: String,
    /// Who: the fingerprint of the key that asks to be certified.
    pub key: String,
    /// The answer.
    pub answer: Answer,
}

/// The answer to an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Admitted, with a certificate of this fingerprint.
    Admitted(String),
    /// Refused as the token was spent.
    Spent,
    /// Refused for another reason, without effect: a bad request, an expired token, a name that is taken.
    Refused,
    /// Not known: no answer, or one that says that it may have been done.
    Unknown,
}

/// What the attempts contradict.
pub fn check(tokens: &[Token], attempts: &[Attempt]) -> Vec<Finding> {
    let mut of_token: BTreeMap<&str, Vec<&Attempt>> = BTreeMap::new();
    for attempt in attempts {
        of_token.entry(&attempt.token).or_default().push(attempt);
    }
    let mut findings = Vec::new();
    for (id, mut attempts) in of_token {
        attempts.sort_by_key(|attempt| attempt.start);
        let token = tokens.iter().find(|token| token.id == id);
        let mut say = |attempt: &Attempt, text: String| {
            let at = attempt.end.unwrap_or(attempt.start);
            findings.push(Finding::new(at, rules::TOKENS_ONCE, "", format!("token {id} {text}")));
        };
        match token {
            None => never_issued(&attempts, &mut say),
            Some(token) => {
                if !token.is_reusable {
                    spent_twice(&attempts, &mut say);
                }
                spent_by_nobody(&attempts, token.is_reusable, &mut say);
                other_certificate(&attempts, &mut say);
            }
        }
    }
    findings
}

fn never_issued(attempts: &[&Attempt], say: &mut impl FnMut(&Attempt, String)) {
    for attempt in attempts.iter().filter(|attempt| attempt.certificate().is_some()) {
        say(attempt, format!("admitted {} and was never issued", attempt.key));
    }
}

fn spent_twice(attempts: &[&Attempt], say: &mut impl FnMut(&Attempt, String)) {
    let mut admitted = attempts.iter().filter(|attempt| attempt.certificate().is_some());
    let Some(first) = admitted.next() else { return };
    for attempt in admitted.filter(|attempt| attempt.key != first.key) {
        say(attempt, format!("admitted {} and {}", first.key, attempt.key));
    }
}

/// "Spent" is honest only if an attempt with another key has, or may have, spent it.
fn spent_by_nobody(attempts: &[&Attempt], is_reusable: bool, say: &mut impl FnMut(&Attempt, String)) {
    for attempt in attempts.iter().filter(|attempt| attempt.answer == Answer::Spent) {
        let may_have_spent = |other: &&&Attempt| {
            let is_before = attempt.end.is_none_or(|end| other.start <= end);
            let is_spender = matches!(other.answer, Answer::Admitted(_) | Answer::Unknown);
            is_before && is_spender && other.key != attempt.key
        };
        if is_reusable {
            say(attempt, format!("is reusable and was refused to {} as spent", attempt.key));
        } else if !attempts.iter().any(|other| may_have_spent(&other)) {
            say(attempt, format!("was refused to {} as spent, but no other key can have spent it", attempt.key));
        }
    }
}

fn other_certificate(attempts: &[&Attempt], say: &mut impl FnMut(&Attempt, String)) {
    let mut certificates: BTreeMap<&str, &str> = BTreeMap::new();
    for attempt in attempts {
        let Some(certificate) = attempt.certificate() else { continue };
        let first = *certificates.entry(&attempt.key).or_insert(certificate);
        if first != certificate {
            say(attempt, format!("gave {} the certificate {certificate} after {first}", attempt.key));
        }
    }
}

impl Attempt {
    fn certificate(&self) -> Option<&str> {
        match &self.answer {
            Answer::Admitted(certificate) => Some(certificate),
            Answer::Spent | Answer::Refused | Answer::Unknown => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempt(start: u64, key: &str, answer: Answer) -> Attempt {
        let end = (answer != Answer::Unknown).then(|| Duration::from_secs(start + 1));
        Attempt { start: Duration::from_secs(start), end, token: "t".into(), key: key.into(), answer }
    }

    fn admitted(start: u64, key: &str, certificate: &str) -> Attempt {
        attempt(start, key, Answer::Admitted(certificate.into()))
    }

    fn wrong(is_reusable: bool, attempts: &[Attempt]) -> Vec<String> {
        let tokens = [Token { id: "t".into(), is_reusable }];
        check(&tokens, attempts).into_iter().map(|finding| finding.text).collect()
    }

    const NONE: [&str; 0] = [];

    #[test]
    fn a_race_with_one_winner_and_retries_passes() {
        let race = [
            attempt(0, "c", Answer::Refused),
            admitted(2, "a", "1"),
            attempt(2, "b", Answer::Spent),
            admitted(5, "a", "1"),
            attempt(9, "c", Answer::Spent),
        ];
        assert_eq!(wrong(false, &race), NONE);
        assert_eq!(wrong(true, &[admitted(0, "a", "1"), admitted(2, "b", "2")]), NONE);
    }

    #[test]
    fn a_token_that_is_spent_twice_is_found() {
        let twice = [admitted(0, "a", "1"), admitted(2, "b", "2")];
        assert_eq!(wrong(false, &twice), ["token t admitted a and b"]);
    }

    #[test]
    fn a_refused_attempt_that_uses_up_the_token_is_found() {
        let lost = [attempt(0, "a", Answer::Refused), attempt(5, "b", Answer::Spent)];
        assert!(wrong(false, &lost)[0].contains("no other key can have spent it"));
        let maybe = [attempt(0, "a", Answer::Unknown), attempt(5, "b", Answer::Spent)];
        assert_eq!(wrong(false, &maybe), NONE);
    }

    #[test]
    fn a_retry_with_the_same_key_gets_the_same_certificate() {
        let again = [admitted(0, "a", "1"), admitted(2, "a", "2")];
        assert_eq!(wrong(false, &again), ["token t gave a the certificate 2 after 1"]);
        for first in [admitted(0, "a", "1"), attempt(0, "a", Answer::Unknown)] {
            assert!(wrong(false, &[first, attempt(3, "a", Answer::Spent)])[0].contains("refused to a as spent"));
        }
    }

    #[test]
    fn a_reusable_token_is_never_spent_and_an_unknown_one_admits_nobody() {
        assert!(wrong(true, &[admitted(0, "a", "1"), attempt(2, "b", Answer::Spent)])[0].contains("is reusable"));
        let findings = check(&[], &[admitted(0, "a", "1")]);
        assert_eq!(findings[0].text, "token t admitted a and was never issued");
    }
}
