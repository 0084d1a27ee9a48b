//! Registers: named numbers, the smallest machine that shows whether replication works.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Applied, Damaged, Position, StateMachine};

/// What can be done to a register. A missing one counts as 0.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Command {
    /// Sets it; replies the new value.
    Set(String, i64),
    /// Adds to it; replies the sum. Applying it twice shows, which is what the tests want to see.
    Add(String, i64),
    /// Sets it to the second number if it is the first; replies the value after that.
    Cas(String, i64, i64),
    /// Removes it; replies what it was.
    Remove(String),
}

impl Command {
    /// As bytes for [`crate::RaftStore::propose`].
    pub fn encode(&self) -> Vec<u8> {
        crate::codec::encode(self)
    }
}

/// The number in a reply; none when the command made no sense.
pub fn reply(bytes: &[u8]) -> Option<i64> {
    Some(i64::from_be_bytes(bytes.try_into().ok()?))
}

/// All registers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Registers(pub BTreeMap<String, i64>);

impl Registers {
    /// The value of one.
    pub fn get(&self, name: &str) -> i64 {
        self.0.get(name).copied().unwrap_or(0)
    }
}

impl StateMachine for Registers {
    fn apply(&mut self, _at: Position, command: &[u8]) -> Applied {
        let Ok(command) = postcard::from_bytes::<Command>(command) else { return Applied::default() };
        let (name, value) = match command {
            Command::Set(name, value) => (name, Some(value)),
            Command::Add(name, by) => {
                let sum = self.get(&name).wrapping_add(by);
                (name, Some(sum))
            }
            Command::Cas(name, from, to) => {
                let now = self.get(&name);
                (name, Some(if now == from { to } else { now }))
            }
            Command::Remove(name) => (name, None),
        };
        let before = self.get(&name);
        match value {
            Some(value) => self.0.insert(name.clone(), value),
            None => self.0.remove(&name),
        };
        Applied {
            reply: value.unwrap_or(before).to_be_bytes().to_vec(),
            writes: vec![(name.into_bytes(), value.map(|value| value.to_be_bytes().to_vec()))],
        }
    }

    fn load(&mut self, pairs: &mut dyn Iterator<Item = (Vec<u8>, Vec<u8>)>) -> Result<(), Damaged> {
        self.0.clear();
        for (key, value) in pairs {
            let name = String::from_utf8(key).map_err(|_| Damaged("a register's name is not text".into()))?;
            let value = reply(&value).ok_or_else(|| Damaged(format!("register {name} is not a number")))?;
            self.0.insert(name, value);
        }
        Ok(())
    }
}
