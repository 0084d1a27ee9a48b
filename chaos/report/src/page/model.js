// ---- model: facts in, things to show out. Knows neither pixels nor the DOM. ----

const WORLD = "";
const STATE_LANES = ["process", "role", "session", "container", "phase"];
const FAULT_LANE = "fault";
const CALL_LANE = "call";
const MESSAGE_KIND = "message";
/** Kinds of marks of which there are many: small, without words, and not stepped through. */
const QUIET_MARKS = ["commit", "log"];
/** Lanes that overlap themselves get this many rows at most; the rest share the last one. */
const PACKED_ROWS_MAX = 6;
/** The linearization has a scroll bar, so it may have more. */
const HISTORY_ROWS_MAX = 60;
/** A call without an answer may take effect until the end of the run, but its client soon does something else. */
const OPEN_CALL_SHOWN_MS = 2000;

/** Message columns, as the page's data holds them. */
const [FROM, TO, SENT, RECEIVED, BYTES] = [0, 1, 2, 3, 4];

function buildModel(page) {
  const run = page.recording;
  const hosts = allHosts(page);
  return {
    run,
    seed: page.seed,
    leftOut: page.left_out,
    duration: Math.max(1, run.duration_ms, latest(page)),
    hosts,
    names: page.names,
    messages: page.messages,
    calls: run.calls.map((call, index) => ({ ...call, index })),
    findings: run.findings,
    kinds: allKinds(page),
    keys: allKeys(run.calls),
    moments: allMoments(run),
  };
}

function latest(page) {
  let end = 0;
  for (const span of page.recording.spans) end = Math.max(end, span.to_ms);
  for (const mark of page.recording.marks) end = Math.max(end, mark.at_ms);
  for (const finding of page.recording.findings) end = Math.max(end, finding.at_ms);
  for (const call of page.recording.calls) end = Math.max(end, call.end_ms ?? call.start_ms);
  return end;
}

/** The recording's hosts, then those that only spans, marks or messages name: nothing may vanish. The world comes first. */
function allHosts(page) {
  const { hosts, spans, marks, calls, findings } = page.recording;
  const known = new Map(hosts.map((host) => [host.name, host]));
  const mentioned = [...spans, ...marks, ...findings].map((thing) => thing.host);
  mentioned.push(...calls.map((call) => call.client), ...page.names);
  let hasWorld = false;
  for (const name of mentioned) {
    if (name === WORLD) hasWorld = true;
    else if (!known.has(name)) known.set(name, { name, kind: "not in the list of hosts" });
  }
  const world = hasWorld ? [{ name: WORLD, kind: "world" }] : [];
  return [...world, ...known.values()];
}

function hostTitle(name) {
  return name === WORLD ? "world" : name;
}

/** What the kind filter offers: id, group and how many there are. */
function allKinds(page) {
  const counts = new Map();
  const count = (id, group) => {
    const kind = counts.get(id) ?? { id, group, count: 0 };
    kind.count += 1;
    counts.set(id, kind);
  };
  for (const lane of STATE_LANES) counts.set(`lane:${lane}`, { id: `lane:${lane}`, group: "lane", count: 0 });
  for (const span of page.recording.spans) count(`lane:${span.lane}`, "lane");
  for (const _ of page.recording.calls) count(`lane:${CALL_LANE}`, "lane");
  for (const mark of page.recording.marks) count(`mark:${mark.kind}`, "mark");
  for (const _ of page.messages) count(MESSAGE_KIND, "message");
  return [...counts.values()].filter((kind) => kind.count > 0);
}

/** Keys in the order of their first call; those that no order explains first. */
function allKeys(calls) {
  const keys = new Map();
  for (const call of calls) {
    const key = keys.get(call.key) ?? { key: call.key, calls: 0, isWrong: false };
    key.calls += 1;
    key.isWrong ||= call.is_wrong;
    keys.set(call.key, key);
  }
  return [...keys.values()].sort((a, b) => Number(b.isWrong) - Number(a.isWrong));
}

/** Moments that the keys `,` and `.` step through: [ms, host], in the order of time. */
function allMoments(run) {
  const moments = [];
  for (const span of run.spans) moments.push([span.from_ms, span.host], [span.to_ms, span.host]);
  for (const mark of run.marks.filter(({ kind }) => !QUIET_MARKS.includes(kind))) moments.push([mark.at_ms, mark.host]);
  for (const finding of run.findings) moments.push([finding.at_ms, finding.host]);
  return moments.sort((a, b) => a[0] - b[0]);
}

/** Puts things that overlap into different rows. `begin` and `end` give a thing's times. */
function packRows(things, begin, end, rowsMax = PACKED_ROWS_MAX) {
  const rows = [];
  const ends = [];
  for (const thing of [...things].sort((a, b) => begin(a) - begin(b))) {
    let row = ends.findIndex((free) => free <= begin(thing));
    if (row < 0) row = Math.min(ends.length, rowsMax - 1);
    ends[row] = Math.max(ends[row] ?? 0, end(thing));
    (rows[row] ??= []).push(thing);
  }
  return rows;
}

function lanesOf(spans) {
  const extra = [...new Set(spans.map((span) => span.lane))].filter((lane) => !STATE_LANES.includes(lane) && lane !== FAULT_LANE);
  return [...STATE_LANES, ...extra, FAULT_LANE];
}

/** Rows of one host: [{lane, things}], the process row always first. */
function rowsOf(model, host, isShown) {
  const spans = model.run.spans.filter((span) => span.host === host.name);
  const rows = [];
  for (const lane of lanesOf(spans)) {
    const own = isShown(`lane:${lane}`) ? spans.filter((span) => span.lane === lane) : [];
    const packed = packRows(own, (span) => span.from_ms, (span) => span.to_ms);
    if (lane === "process") rows.push({ lane, things: own });
    else packed.forEach((things) => rows.push({ lane, things }));
  }
  const calls = isShown(`lane:${CALL_LANE}`) ? model.calls.filter((call) => call.client === host.name) : [];
  const packed = packRows(calls, (call) => call.start_ms, (call) => callShownEnd(model, call));
  packed.forEach((things) => rows.push({ lane: CALL_LANE, things }));
  return rows;
}

/** Until when the client's lane shows a call. */
function callShownEnd(model, call) {
  return call.end_ms ?? Math.min(call.start_ms + OPEN_CALL_SHOWN_MS, model.duration);
}

/** Until when a call may take effect. */
function callEnd(model, call) {
  return call.end_ms ?? model.duration;
}

/**
 * Calls with a place, in that order, each with the moment at which it may have taken effect: not before its predecessor's,
 * within its own begin and end where the history allows it.
 */
function witness(model, calls) {
  let at = 0;
  return calls
    .filter((call) => call.place !== null && call.place !== undefined)
    .sort((a, b) => a.place - b.place)
    .map((call) => {
      at = Math.min(Math.max(at, call.start_ms), callEnd(model, call));
      return { call, at };
    });
}

/** What is true on a host at a moment. */
function stateAt(model, host, at) {
  const lanes = {};
  for (const span of model.run.spans) {
    const isNow = span.host === host.name && span.from_ms <= at && (at < span.to_ms || at === model.duration);
    if (isNow) (lanes[span.lane] ??= []).push(span.label);
  }
  const open = model.calls.filter((call) => call.client === host.name && call.start_ms <= at && at < callShownEnd(model, call));
  const past = model.run.marks.filter((mark) => mark.host === host.name && mark.at_ms <= at);
  const last = past.reduce((best, mark) => (best && best.at_ms > mark.at_ms ? best : mark), null);
  return { lanes, open, last };
}

function formatTime(ms) {
  const whole = Math.max(0, Math.round(ms));
  const minutes = Math.floor(whole / 60000);
  const seconds = ((whole % 60000) / 1000).toFixed(3);
  return minutes > 0 ? `${minutes}:${seconds.padStart(6, "0")}` : `${seconds} s`;
}

function formatLength(ms) {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  return ms < 60000 ? `${Number((ms / 1000).toFixed(2))} s` : `${Math.floor(ms / 60000)} min ${Math.round((ms % 60000) / 1000)} s`;
}
