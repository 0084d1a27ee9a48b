//! Applying an entry: time, incarnation fence, idempotency, the command itself, audit, and what to store.

use super::replies::StoredReply;
use super::{Key, State};
use crate::audit::{Asked, Before};
use crate::command::Command;
use crate::entry::{Applied, Context, Entry};
use crate::event::Event;
use crate::id::Revision;
use crate::limits;
use crate::model::AuditRecord;
use crate::planted::planted;
use crate::rejected::{Problem, Rejected};
use crate::reply::Reply;
use crate::subject::Subject;

impl State {
    /// Applies one command: checks everything, then changes, then reports. A rejected command has touched nothing.
    pub fn apply(&mut self, cx: &Context, command: Command) -> Result<Vec<Event>, Rejected> {
        command.apply(self, cx)
    }

    /// Applies one entry of the log at its index. Pure and total: every server gets the same from the same log. An
    /// entry that is rejected, or that repeats an answer given before, writes nothing.
    pub fn apply_entry(&mut self, revision: u64, entry: Entry) -> Applied {
        let floor_ms = if planted("log-time-follows-the-clock") { 0 } else { self.meta.at_ms };
        let cx = Context { revision: Revision(revision), at_ms: entry.at_ms.max(floor_ms) };
        let (reply, events) = match self.run(&cx, entry) {
            Ok((reply, events)) => (Ok(reply), events),
            Err(rejected) => (Err(rejected), Vec::new()),
        };
        let is_administrative = self.dirty.iter().any(Key::is_administrative);
        Applied { reply, events, writes: self.take_writes(), is_administrative }
    }

    fn run(&mut self, cx: &Context, entry: Entry) -> Result<(Reply, Vec<Event>), Rejected> {
        check_entry(&entry)?;
        if !planted("retry-applied-twice")
            && let Some(stored) = self.replies.get(&entry.request_id)
        {
            if stored.actor != entry.actor || stored.command != entry.command.name() {
                return Err(Rejected::RequestIdReused { request: entry.request_id });
            }
            return Ok((stored.reply, Vec::new()));
        }
        if let Some(cluster) = &self.cluster
            && cluster.incarnation != entry.incarnation
            && !matches!(entry.command, Command::InitCluster(_))
        {
            let current = cluster.incarnation.to_string();
            return Err(Rejected::WrongIncarnation { given: entry.incarnation.to_string(), current });
        }
        let Entry { request_id, actor, command, caller, .. } = entry;
        let (name, audited) = (command.name(), command.is_audited());
        let subject = Subject::of(&command, self);
        let before = audited.then(|| Before::of(&command, &subject, self));
        let events = self.apply(cx, command)?;
        let answer = subject.answer(self, &events);
        let reply = Reply { revision: cx.revision, changed: !events.is_empty(), answer };
        let skipped = planted("audit-skips-forwarded") && actor == "forwarded";
        if !skipped && let (Some(before), Some(first)) = (before, events.first()) {
            let asked = Asked { actor: actor.clone(), request_id: request_id.clone(), caller, command: name };
            self.push_audit(before.record(self, cx, asked, first));
        }
        if !request_id.is_empty() && !planted("retry-applied-twice") {
            let (command, reply) = (name.to_owned(), reply.clone());
            self.keep_reply(cx, StoredReply { request_id, at_ms: cx.at_ms, actor, command, reply });
        }
        if !self.dirty.is_empty() {
            self.meta.revision = cx.revision;
            self.meta.at_ms = cx.at_ms;
            self.dirty.insert(Key::Meta);
        }
        Ok((reply, events))
    }

    fn push_audit(&mut self, record: AuditRecord) {
        self.dirty.insert(Key::Audit(record.revision));
        self.audit.insert(record.revision, record);
        while self.audit.len() > limits::AUDIT_RECORDS_MAX {
            if let Some((revision, _)) = self.audit.pop_first() {
                self.dirty.insert(Key::Audit(revision));
            }
        }
    }

    /// Keeps a reply, and drops a few that are too old or too many.
    fn keep_reply(&mut self, cx: &Context, stored: StoredReply) {
        for _ in 0..limits::REPLIES_DROPPED_PER_ENTRY {
            let Some(at_ms) = self.replies.oldest_at_ms() else { break };
            if cx.at_ms.saturating_sub(at_ms) <= limits::REPLY_KEPT_MS && self.replies.len() < limits::REPLIES_MAX {
                break;
            }
            self.dirty.extend(self.replies.forget_oldest().map(|oldest| Key::Reply((*oldest).to_owned())));
        }
        self.replies.keep(&stored);
        self.dirty.insert(Key::Reply(stored.request_id));
    }

    fn take_writes(&mut self) -> Vec<(Vec<u8>, Option<Vec<u8>>)> {
        let dirty = std::mem::take(&mut self.dirty);
        let mut writes: Vec<_> = dirty.iter().map(|key| (key.to_bytes(), self.encode_object(key))).collect();
        writes.sort();
        writes
    }
}

fn check_entry(entry: &Entry) -> Result<(), Problem> {
    let id = &entry.request_id;
    if id.len() > limits::REQUEST_ID_BYTES_MAX || !id.bytes().all(|b| b.is_ascii_graphic()) {
        let rule = format!("must be at most {} visible ASCII characters", limits::REQUEST_ID_BYTES_MAX);
        return Err(Problem::new("request_id", rule));
    }
    for (field, text) in [("actor", &entry.actor), ("caller", &entry.caller)] {
        if text.len() > limits::TEXT_BYTES_MAX {
            return Err(Problem::new(field, format!("has more than {} bytes", limits::TEXT_BYTES_MAX)));
        }
    }
    Ok(())
}
