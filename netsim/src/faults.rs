//! The faults: what can happen to the network, the clocks, the processors and the disks of a world. What happens to
//! processes is in [`crate::world`].

use cara_env::Cf;

use crate::disk::Latency;
use crate::{Spread, World, trace};

impl World {
    /// Stops polling the machine's tasks (SIGSTOP). Its connections stay open, its clock goes on.
    pub fn freeze(&mut self, host: &str) {
        trace::event(host, "fault.freeze", &[]);
        self.machine(host).gate.freeze();
    }

    /// Polls the machine's tasks again (SIGCONT).
    pub fn thaw(&mut self, host: &str) {
        trace::event(host, "fault.thaw", &[]);
        self.machine(host).gate.thaw();
    }

    /// Limits the machine to so many task polls a tick; `None` lifts the limit.
    pub fn slow_cpu(&mut self, host: &str, polls_per_tick: Option<u64>) {
        trace::event(host, "fault.slow_cpu", &[polls_per_tick.unwrap_or(u64::MAX)]);
        self.machine(host).gate.slow(polls_per_tick);
    }

    /// Lets work that blocks on the machine's kernel ([`cara_env::blocking`]: reading and writing what is in volumes) take
    /// a draw from `by` for each piece; `None` lifts that for pieces that begin later. The disk of the database has
    /// [`World::disk_latency`].
    pub fn slow_kernel(&mut self, host: &str, by: Option<Spread>) {
        let max_ms = by.map_or(0, |by| u64::try_from(by.max().as_millis()).unwrap_or(u64::MAX));
        trace::event(host, "fault.slow_kernel", &[max_ms]);
        self.machine(host).gate.slow_kernel(by);
    }

    /// Drops everything that `from` sends to `to`, or stops doing so. Each call counts once.
    pub fn cut(&mut self, from: &str, to: &str, on: bool) {
        trace::note(from, if on { "fault.cut" } else { "fault.uncut" }, to);
        self.ground.links.cut(from, to, on);
        self.apply_links();
    }

    /// Drops everything between two machines.
    pub fn partition(&mut self, a: &str, b: &str) {
        self.cut(a, b, true);
        self.cut(b, a, true);
    }

    /// Lifts one [`World::partition`].
    pub fn repair(&mut self, a: &str, b: &str) {
        self.cut(a, b, false);
        self.cut(b, a, false);
    }

    /// Delays everything between two machines until it is lifted. Each call counts once.
    pub fn hold(&mut self, a: &str, b: &str, on: bool) {
        trace::note(a, if on { "fault.hold" } else { "fault.release" }, b);
        self.ground.links.hold(a, b, on);
        self.apply_links();
    }

    /// Cuts a machine off from all others, or lifts that again.
    pub fn isolate(&mut self, host: &str, on: bool) {
        for other in self.names() {
            if other != host {
                self.cut(host, &other, on);
                self.cut(&other, host, on);
            }
        }
    }

    /// Opens every link. Machines without power stay dark.
    pub fn heal_network(&mut self) {
        trace::event("world", "heal", &[]);
        self.ground.links.heal();
        self.apply_links();
        self.ground.pipes.heal();
        self.ground.conns.hurry_all(self.now());
    }

    /// Delays what `from` sends to `to` by a draw from `by` per write, or stops doing so. The order is kept. With
    /// several at a time the one with the greatest maximum counts; the world's own latency runs at the same time. When
    /// the last one is lifted, what is under way arrives at once.
    pub fn slow_link(&mut self, from: &str, to: &str, by: Spread, on: bool) {
        let (min, max) = (by.min().as_millis(), by.max().as_millis());
        trace::note(from, if on { "fault.slow_link" } else { "fault.fast_link" }, &format!("{to} {min}..{max} ms"));
        if self.ground.pipes.between(from, to).slow(by, on) {
            self.ground.conns.hurry(self.now(), from, to);
        }
    }

    /// Lets at most so many bytes a second through from `from` to `to`, all connections together, or stops doing so.
    /// With several at a time the least counts.
    pub fn limit_link(&mut self, from: &str, to: &str, bytes_per_second: u64, on: bool) {
        let what = if on { "fault.limit_link" } else { "fault.unlimit_link" };
        trace::note(from, what, &format!("{to} {bytes_per_second} bytes/s"));
        if self.ground.pipes.between(from, to).limit(bytes_per_second, on) {
            self.ground.conns.hurry(self.now(), from, to);
        }
    }

    /// Lets nothing from `from` to `to` arrive until it is lifted; then all of it arrives, in order. Each call counts
    /// once. ([`World::hold`] does the same to both directions, below TCP.)
    pub fn clog(&mut self, from: &str, to: &str, on: bool) {
        trace::note(from, if on { "fault.clog" } else { "fault.unclog" }, to);
        if self.ground.pipes.between(from, to).clog(on) {
            self.ground.conns.wake(from, to);
        }
    }

    /// Resets every open connection between two machines, at both ends at once: reads and writes fail with
    /// `ConnectionReset`. Says how many there were. New connections are free to come.
    pub fn reset_connections(&mut self, a: &str, b: &str) -> usize {
        let count = self.ground.conns.reset(a, b);
        trace::note(a, "fault.reset", &format!("{b} {count}"));
        count
    }

    /// Refuses the connections that `from` opens to `to`, as a firewall does that answers for the machine behind it, or
    /// stops doing so. Open connections stay. Each call counts once.
    pub fn reject(&mut self, from: &str, to: &str, on: bool) {
        trace::note(from, if on { "fault.reject" } else { "fault.accept" }, to);
        self.ground.links.reject(from, to, on);
    }

    /// Lets each of these machines reach only the one before it and the one after it (the first and the last are
    /// neighbours), or lifts that again. Other machines are not touched.
    pub fn ring(&mut self, hosts: &[String], on: bool) {
        let count = hosts.len();
        for (i, a) in hosts.iter().enumerate() {
            for (j, b) in hosts.iter().enumerate().skip(i + 1) {
                if j != i + 1 && (i, j) != (0, count - 1) {
                    self.cut(a, b, on);
                    self.cut(b, a, on);
                }
            }
        }
    }

    /// Cuts everything between two groups, so that both reach only what is in neither (the middle), or lifts that.
    pub fn split(&mut self, left: &[String], right: &[String], on: bool) {
        for a in left {
            for b in right.iter().filter(|b| *b != a) {
                self.cut(a, b, on);
                self.cut(b, a, on);
            }
        }
    }

    /// Two halves that see only the machines in the middle, which see everybody; or lifts that again. A machine of the
    /// middle that is also named in a half counts for the middle.
    pub fn bridge(&mut self, left: &[String], middle: &[String], right: &[String], on: bool) {
        let half = |side: &[String]| side.iter().filter(|host| !middle.contains(host)).cloned().collect::<Vec<_>>();
        self.split(&half(left), &half(right), on);
    }

    /// Steps the machine's wall clock by so many milliseconds, forward or back. Its monotonic clock does not move.
    pub fn step_wall_clock(&mut self, host: &str, by_ms: i64) {
        trace::event(host, "fault.wall_clock", &[by_ms.cast_unsigned()]);
        self.machine(host).crystal.step_wall(by_ms);
    }

    /// Lets the machine's clocks, monotonic and wall, run so many parts in a million faster than the world's; less than
    /// zero is slower, zero is exact. Real clocks stay within 500; beyond [`crate::DRIFT_MAX_PPM`] the limit counts.
    /// The monotonic clock bends and never jumps. A sleep that is under way ends by the new rate if that is later.
    pub fn drift(&mut self, host: &str, ppm: i64) {
        trace::event(host, "fault.drift", &[ppm.cast_unsigned()]);
        self.machine(host).crystal.set_drift(self.now(), ppm);
    }

    /// How long syncs of the machine's disk take from now on.
    pub fn disk_latency(&mut self, host: &str, latency: Latency) {
        trace::event(host, "fault.disk_latency", &[latency.min_us, latency.max_us]);
        self.machine(host).disk.set_latency(latency);
    }

    /// The disk ends no sync while stalled.
    pub fn disk_stall(&mut self, host: &str, on: bool) {
        trace::event(host, "fault.disk_stall", &[u64::from(on)]);
        self.machine(host).disk.set_stalled(on);
    }

    /// Leaves the disk so much room for keys and values (bytes), and files none at zero; `None` lifts the limit.
    pub fn disk_room(&mut self, host: &str, bytes_max: Option<u64>) {
        trace::event(host, "fault.disk_room", &[bytes_max.unwrap_or(u64::MAX)]);
        self.machine(host).disk.set_bytes_max(bytes_max);
        self.machine(host).files.set_full(bytes_max == Some(0));
    }

    /// Writes, syncs or both fail with an input/output error until this is lifted or the process dies.
    pub fn disk_errors(&mut self, host: &str, writes: bool, syncs: bool) {
        trace::event(host, "fault.disk_errors", &[u64::from(writes), u64::from(syncs)]);
        self.machine(host).disk.set_failing(writes, syncs);
    }

    /// The disk acknowledges syncs and forgets them with the power: a planted fault that checkers must notice.
    pub fn disk_lies(&mut self, host: &str, on: bool) {
        trace::event(host, "fault.disk_lies", &[u64::from(on)]);
        self.machine(host).disk.set_lying(on);
    }

    /// At its next loss of power the disk tears the last write that survives in the log: a part of its value is there, the
    /// rest is not. Only writes that no sync has covered can be torn. RocksDB drops a torn batch as a whole; this is for
    /// proving that torn values are noticed.
    pub fn tear_last(&mut self, host: &str) {
        trace::event(host, "fault.tear_last", &[]);
        self.machine(host).disk.tear_last();
    }

    /// Flips one bit in the value of the `nth` key (in order, counted round) of a column family, and says which key that
    /// is; none when there is no value. The bit rots on the medium, as no write does it.
    pub fn flip_bit(&mut self, host: &str, cf: Cf, nth: u64) -> Option<Vec<u8>> {
        let key = self.machine(host).disk.flip_bit(cf, nth);
        let hash = key.as_deref().map_or(0, trace::fingerprint);
        trace::event(host, "fault.flip_bit", &[nth, hash]);
        key
    }
}
