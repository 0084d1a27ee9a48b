//! What a run says while it works: bars on a terminal, lines elsewhere; always on stderr, stdout is for the result.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// One step with an end that is known.
pub struct Bar(Option<ProgressBar>);

/// Says a line.
pub fn say(line: &str) {
    eprintln!("{line}");
}

/// Begins a step of `length` parts.
pub fn bar(what: &str, length: u64) -> Bar {
    if !std::io::stderr().is_terminal() {
        say(what);
        return Bar(None);
    }
    let style = ProgressStyle::with_template("{msg:40} {bar:30} {pos}/{len} {elapsed}");
    let bar = ProgressBar::new(length);
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.set_message(what.to_owned());
    bar.enable_steady_tick(Duration::from_millis(200));
    Bar(Some(bar))
}

impl Bar {
    /// So far it is.
    pub fn at(&self, position: u64) {
        if let Some(bar) = &self.0 {
            bar.set_position(position);
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}
