//! Whom a fault hits: written as a word, resolved when the fault begins.

use std::collections::BTreeMap;

use crate::rng::Stream;

/// The world as the schedule sees it.
pub trait View {
    /// The server that was elected last, if one was.
    fn leader(&self) -> Option<String>;
    /// Servers that are members.
    fn servers(&self) -> Vec<String>;
    /// Nodes.
    fn agents(&self) -> Vec<String>;
    /// Clients and watchers.
    fn clients(&self) -> Vec<String>;
    /// Servers that may join.
    fn spares(&self) -> Vec<String>;
    /// The nodes between which a workload moves, source and target, of the move that took a step last.
    fn move_ends(&self) -> Option<(String, String)>;
    /// Does a process run there?
    fn is_running(&self, host: &str) -> bool;
}

/// How many of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Count {
    All,
    Any(usize),
    Named(String),
}

/// A parsed target.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Parsed {
    Leader,
    Follower(Count),
    Server(Count),
    Agent(Count),
    Client(Count),
    Spare,
    MoveSource,
    MoveTarget,
    Minority,
    Majority {
        with_leader: bool,
    },
    Any,
    /// The machine at which the event of the trigger happened.
    Event,
    /// The machines of an earlier fault.
    Bound(String),
}

const EXAMPLES: &str = "write for example leader, follower:any, server:*, server:s2, minority, majority(with=leader), \
                        agent:any(2), agent:n1, agent:move.source, client:*, any, spare, $event or $bound";

/// Is this a target?
///
/// # Errors
/// Says what a target looks like.
pub(crate) fn check(text: &str) -> Result<(), String> {
    parse(text).map(drop)
}

fn parse(text: &str) -> Result<Parsed, String> {
    let wrong = || format!("{text:?} is no target; {EXAMPLES}");
    let simple = match text {
        "leader" => Some(Parsed::Leader),
        "minority" => Some(Parsed::Minority),
        "majority" => Some(Parsed::Majority { with_leader: false }),
        "majority(with=leader)" => Some(Parsed::Majority { with_leader: true }),
        "any" => Some(Parsed::Any),
        "spare" => Some(Parsed::Spare),
        "agent:move.source" => Some(Parsed::MoveSource),
        "agent:move.target" => Some(Parsed::MoveTarget),
        "$event" => Some(Parsed::Event),
        _ => text.strip_prefix('$').filter(|name| !name.is_empty()).map(|name| Parsed::Bound(name.to_owned())),
    };
    if let Some(simple) = simple {
        return Ok(simple);
    }
    let (group, count) = text.split_once(':').ok_or_else(wrong)?;
    let count = match count {
        "*" => Count::All,
        "any" => Count::Any(1),
        name => match name.strip_prefix("any(").and_then(|rest| rest.strip_suffix(')')) {
            Some(number) => Count::Any(number.parse().map_err(|_| wrong())?),
            None if !name.is_empty() => Count::Named(name.to_owned()),
            None => return Err(wrong()),
        },
    };
    match group {
        "follower" => Ok(Parsed::Follower(count)),
        "server" => Ok(Parsed::Server(count)),
        "agent" => Ok(Parsed::Agent(count)),
        "client" => Ok(Parsed::Client(count)),
        _ => Err(wrong()),
    }
}

/// The machines that a target means now; the reason if it means none.
pub(crate) fn resolve(
    text: &str,
    view: &dyn View,
    bound: &BTreeMap<String, Vec<String>>,
    event: Option<&str>,
    rng: &mut Stream,
) -> Result<Vec<String>, String> {
    let leader = view.leader().filter(|leader| view.servers().contains(leader));
    let followers = || view.servers().into_iter().filter(|server| Some(server) != leader.as_ref()).collect::<Vec<_>>();
    let hosts = match parse(text)? {
        Parsed::Leader => leader.iter().cloned().collect(),
        Parsed::Follower(count) => some(&followers(), &count, view, rng),
        Parsed::Server(count) => some(&view.servers(), &count, view, rng),
        Parsed::Agent(count) => some(&view.agents(), &count, view, rng),
        Parsed::Client(count) => some(&view.clients(), &count, view, rng),
        Parsed::Spare => view.spares().into_iter().take(1).collect(),
        Parsed::MoveSource => view.move_ends().map(|(source, _)| source).into_iter().collect(),
        Parsed::MoveTarget => view.move_ends().map(|(_, target)| target).into_iter().collect(),
        Parsed::Minority => rng.choose(&view.servers(), view.servers().len().saturating_sub(1) / 2),
        Parsed::Majority { with_leader } => {
            let size = view.servers().len() / 2 + 1;
            match leader.clone().filter(|_| with_leader) {
                Some(leader) => {
                    let mut hosts = rng.choose(&followers(), size - 1);
                    hosts.push(leader);
                    hosts
                }
                None => rng.choose(&view.servers(), size),
            }
        }
        Parsed::Any => {
            let all: Vec<String> = view.servers().into_iter().chain(view.agents()).collect();
            some(&all, &Count::Any(1), view, rng)
        }
        Parsed::Event => event.map(str::to_owned).into_iter().collect(),
        Parsed::Bound(name) => bound.get(&name).cloned().ok_or_else(|| format!("nothing is bound to ${name} yet"))?,
    };
    if hosts.is_empty() { Err(format!("{text} means nobody now")) } else { Ok(hosts) }
}

fn some(group: &[String], count: &Count, view: &dyn View, rng: &mut Stream) -> Vec<String> {
    match count {
        Count::All => group.to_vec(),
        Count::Any(number) => {
            let up: Vec<String> = group.iter().filter(|host| view.is_running(host)).cloned().collect();
            rng.choose(&up, *number)
        }
        Count::Named(name) => group.iter().filter(|host| *host == name).cloned().collect(),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Five servers led by s2, three nodes, one client.
    pub(crate) struct Five;

    impl View for Five {
        fn leader(&self) -> Option<String> {
            Some("s2".into())
        }
        fn servers(&self) -> Vec<String> {
            ["s1", "s2", "s3", "s4", "s5"].map(str::to_owned).to_vec()
        }
        fn agents(&self) -> Vec<String> {
            ["n1", "n2", "n3"].map(str::to_owned).to_vec()
        }
        fn clients(&self) -> Vec<String> {
            vec!["client1".into()]
        }
        fn spares(&self) -> Vec<String> {
            Vec::new()
        }
        fn move_ends(&self) -> Option<(String, String)> {
            Some(("n1".into(), "n3".into()))
        }
        fn is_running(&self, _host: &str) -> bool {
            true
        }
    }

    fn resolved(text: &str) -> Result<Vec<String>, String> {
        let bound = BTreeMap::from([("L".to_owned(), vec!["s4".to_owned()])]);
        resolve(text, &Five, &bound, Some("n9"), &mut Stream::new(1, "target"))
    }

    #[test]
    fn each_way_to_say_whom_means_the_right_machines() {
        let count = |text: &str| resolved(text).expect("somebody").len();
        assert_eq!(resolved("leader"), Ok(vec!["s2".to_owned()]));
        assert!(!resolved("follower:*").expect("somebody").contains(&"s2".to_owned()));
        assert_eq!(count("follower:*"), 4);
        assert_eq!(count("minority"), 2);
        assert_eq!(count("majority"), 3);
        assert!(resolved("majority(with=leader)").expect("somebody").contains(&"s2".to_owned()));
        assert_eq!(count("majority(with=leader)"), 3);
        assert_eq!(count("agent:any(2)"), 2);
        assert_eq!(resolved("agent:move.target"), Ok(vec!["n3".to_owned()]));
        assert_eq!(resolved("$event"), Ok(vec!["n9".to_owned()]));
        assert_eq!(resolved("$L"), Ok(vec!["s4".to_owned()]));
    }

    #[test]
    fn what_means_nobody_says_why() {
        assert!(resolved("agent:n7").expect_err("nobody").contains("means nobody"));
        assert!(resolved("$X").expect_err("nobody").contains("$X"));
        assert!(resolved("spare").is_err());
        for wrong in ["boss", "agent:", "agent:any(x)", "$"] {
            assert!(check(wrong).expect_err("refused").contains("follower:any"), "{wrong}");
        }
    }
}
