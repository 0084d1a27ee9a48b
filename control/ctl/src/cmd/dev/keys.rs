//! Single keys from the terminal. The terminal is put into raw mode while a [`Keys`] lives, and restored when it is
//! dropped, also by a panic. Without a terminal no key ever comes.

use std::io::{IsTerminal, Write};
use std::time::Duration;

use cara_env::Env;
use crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use crossterm::terminal::{disable_raw_mode, enable_raw_mode};
use tokio::sync::mpsc;

/// Keys that wait while something is shown; more are dropped.
const WAITING_MAX: usize = 8;
/// How long one look for a key takes; the listener ends within this time.
const LOOK: Duration = Duration::from_millis(100);

/// What can be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    /// `k`.
    KillLeader,
    /// `s`.
    Status,
    /// `q`, Ctrl-C, Ctrl-D.
    Quit,
    /// Any other.
    Help,
}

/// The listener.
pub(super) struct Keys {
    raw: bool,
    received: mpsc::Receiver<Key>,
    _sender: mpsc::Sender<Key>,
}

impl Keys {
    /// Listens if stdin and stdout are a terminal.
    pub fn listen(_env: &Env) -> Self {
        let (sender, received) = mpsc::channel(WAITING_MAX);
        let terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
        let raw = terminal && enable_raw_mode().is_ok();
        if raw {
            drop(cara_env::spawn(read(sender.clone())));
        }
        Self { raw, received, _sender: sender }
    }

    /// Prints lines as this terminal needs them.
    pub fn printer(&self) -> Printer {
        Printer { raw: self.raw }
    }

    /// The next key.
    pub async fn next(&mut self) -> Key {
        match self.received.recv().await {
            Some(key) => key,
            None => std::future::pending().await,
        }
    }

    /// Waits for [`Key::Quit`] and forgets all others.
    pub async fn quit(&mut self) {
        while self.next().await != Key::Quit {}
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        if self.raw {
            let _ = disable_raw_mode(); // The terminal is gone.
        }
    }
}

async fn read(sender: mpsc::Sender<Key>) {
    // Keys::_sender keeps the channel open, so the listener looks whether anybody still receives.
    while !sender.is_closed() {
        let looked = cara_env::blocking(|| match event::poll(LOOK) {
            Ok(true) => event::read().map(Some),
            Ok(false) => Ok(None),
            Err(error) => Err(error),
        })
        .await;
        match looked {
            Ok(Some(event)) => {
                if let Some(key) = meaning(&event) {
                    let _ = sender.try_send(key); // Pressed more often than it can be shown.
                }
            }
            Ok(None) => {}
            Err(_) => return,
        }
    }
}

fn meaning(event: &Event) -> Option<Key> {
    let Event::Key(key) = event else { return None };
    if key.kind != KeyEventKind::Press {
        return None;
    }
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    Some(match key.code {
        KeyCode::Char('c' | 'd') if control => Key::Quit,
        KeyCode::Char('q' | 'Q') => Key::Quit,
        KeyCode::Char('k' | 'K') => Key::KillLeader,
        KeyCode::Char('s' | 'S') => Key::Status,
        _ => Key::Help,
    })
}

/// Prints whole lines on stdout.
pub(super) struct Printer {
    raw: bool,
}

impl Printer {
    /// A raw terminal does not return the carriage by itself. Output that nobody reads is no reason to end.
    pub fn line(&self, text: &str) {
        let mut out = std::io::stdout().lock();
        let text =
            if self.raw { text.trim_end().replace('\n', "\r\n") + "\r\n" } else { text.trim_end().to_owned() + "\n" };
        let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    }
}

#[cfg(test)]
mod tests {
    use crossterm::event::KeyEvent;

    use super::*;

    #[test]
    fn keys_mean_what_the_help_says() {
        let press = |code, modifiers| meaning(&Event::Key(KeyEvent::new(code, modifiers)));
        assert_eq!(press(KeyCode::Char('k'), KeyModifiers::NONE), Some(Key::KillLeader));
        assert_eq!(press(KeyCode::Char('s'), KeyModifiers::NONE), Some(Key::Status));
        assert_eq!(press(KeyCode::Char('c'), KeyModifiers::CONTROL), Some(Key::Quit));
        assert_eq!(press(KeyCode::Char('c'), KeyModifiers::NONE), Some(Key::Help));
        assert_eq!(meaning(&Event::FocusGained), None);
    }
}
