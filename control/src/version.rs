//! Versions of agents, as far as they must be compared: `1.4.0`, also with a leading `v`, a pre-release or a build.

use std::str::FromStr;

/// A version. A pre-release comes before its release; pre-releases of one version are not told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    numbers: [u64; 3],
    is_release: bool,
}

/// The text is no version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no version; write three numbers such as 0.2.0")]
pub struct VersionError(String);

impl FromStr for Version {
    type Err = VersionError;

    fn from_str(text: &str) -> Result<Self, VersionError> {
        let wrong = || VersionError(text.to_owned());
        let bare = text.trim().trim_start_matches('v');
        let bare = bare.split_once('+').map_or(bare, |(version, _build)| version);
        let (digits, is_release) = bare.split_once('-').map_or((bare, true), |(digits, _)| (digits, false));
        let mut numbers = [0; 3];
        let mut parts = digits.split('.');
        for number in &mut numbers {
            *number = parts.next().and_then(|part| part.parse().ok()).ok_or_else(wrong)?;
        }
        if parts.next().is_some() { Err(wrong()) } else { Ok(Self { numbers, is_release }) }
    }
}

/// Is an agent that says this older than what is asked for? Nothing is asked for without a minimum; an agent that says
/// nothing, or something that is no version, is.
pub fn is_outdated(said: &str, min: Option<&Version>) -> bool {
    min.is_some_and(|min| said.parse::<Version>().map_or(true, |version| version < *min))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_number_and_not_by_letter() {
        let of = |text: &str| text.parse::<Version>().unwrap();
        assert!(of("0.9.0") < of("0.10.0"));
        assert!(of("1.0.0-rc.1") < of("1.0.0"));
        assert_eq!(of("v1.2.3+abc"), of("1.2.3"));
        for wrong in ["", "1", "1.2", "1.2.3.4", "1.2.x", "new"] {
            assert!(wrong.parse::<Version>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn who_says_nothing_is_outdated_once_a_minimum_is_asked_for() {
        let min = "0.2.0".parse().ok();
        assert!(is_outdated("0.1.9", min.as_ref()) && is_outdated("", min.as_ref()));
        assert!(!is_outdated("0.2.0", min.as_ref()) && !is_outdated("", None));
    }
}
