//! Server-sent events: the watch stream.

use cara_proto::rest::WatchEvent;

use super::{ClientError, Streaming};

/// Bytes of one event; ours are below 4 KiB.
const EVENT_BYTES_MAX: usize = 1 << 20;

/// Committed changes, in order.
#[derive(Debug)]
pub struct Watch {
    stream: Streaming,
    parser: Parser,
}

impl Watch {
    pub(super) fn new(stream: Streaming) -> Self {
        Self { stream, parser: Parser::default() }
    }

    /// The next change; `None` when the server ends the stream properly, as it does before it stops and when what
    /// comes next is no longer kept: list again, then watch from there.
    ///
    /// # Errors
    /// [`ClientError::Interrupted`] or [`ClientError::Quiet`] when the connection breaks, [`ClientError::Malformed`]
    /// when it is no watch stream.
    pub async fn next(&mut self) -> Result<Option<WatchEvent>, ClientError> {
        loop {
            if let Some((name, data)) = self.parser.take() {
                if name == "compacted" {
                    return Ok(None); // We were too slow; the caller lists again.
                }
                let event =
                    serde_json::from_str(&data).map_err(|e| ClientError::Malformed(format!("{e} in {data}")))?;
                return Ok(Some(event));
            }
            match self.stream.next().await? {
                None => return Ok(None),
                Some(bytes) => self.parser.push(&bytes)?,
            }
        }
    }
}

/// Cuts bytes into events and keeps their data.
#[derive(Debug, Default)]
struct Parser {
    buffer: Vec<u8>,
    name: String,
    data: String,
}

impl Parser {
    fn push(&mut self, bytes: &[u8]) -> Result<(), ClientError> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() + self.data.len() > EVENT_BYTES_MAX {
            return Err(ClientError::Malformed("an event of more than 1 MiB".to_owned()));
        }
        Ok(())
    }

    /// Name and data of the next complete event. Ids are not needed: each event carries its revision.
    fn take(&mut self) -> Option<(String, String)> {
        let mut start = 0;
        let mut found = None;
        while let Some(length) = self.buffer[start..].iter().position(|b| *b == b'\n') {
            let line = String::from_utf8_lossy(&self.buffer[start..start + length]);
            let line = line.trim_end_matches('\r');
            start += length + 1;
            if line.is_empty() {
                let (name, data) = (std::mem::take(&mut self.name), std::mem::take(&mut self.data));
                if !data.is_empty() {
                    found = Some((name, data));
                    break;
                }
            }
            if let Some(name) = line.strip_prefix("event:") {
                name.trim().clone_into(&mut self.name);
            }
            if let Some(data) = line.strip_prefix("data:") {
                if !self.data.is_empty() {
                    self.data.push('\n');
                }
                self.data.push_str(data.strip_prefix(' ').unwrap_or(data));
            }
        }
        self.buffer.drain(..start);
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_found_wherever_the_bytes_are_cut() {
        let text = ": hello\n\nid: 7\nevent: change\ndata: {\"a\":\ndata: 1}\n\nid: 8\r\ndata:2\r\n\r\n";
        for cut in 0..text.len() {
            let mut parser = Parser::default();
            let mut events = Vec::new();
            for part in [&text[..cut], &text[cut..]] {
                parser.push(part.as_bytes()).expect("small");
                while let Some(data) = parser.take() {
                    events.push(data);
                }
            }
            let expect = [("change", "{\"a\":\n1}"), ("", "2")].map(|(name, data)| (name.to_owned(), data.to_owned()));
            assert_eq!(events, expect, "cut at {cut}");
        }
    }

    #[test]
    fn an_endless_line_is_refused() {
        let mut parser = Parser::default();
        assert!(parser.push(&vec![b'x'; EVENT_BYTES_MAX + 1]).is_err());
    }
}
