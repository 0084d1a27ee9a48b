// ---- history: the calls on one key, in rows per client, with the order that explains them. ----

const HISTORY_ROW = 26;
const HISTORY_BAR = 18;
const HISTORY_PADDING = 6;
/** The end of a call that was never answered fades out over so many pixels. */
const OPEN_END_PX = 26;

function callTone(call) {
  return call.is_wrong ? "bad" : "call";
}

function callWords(call) {
  const answer = call.end_ms === null ? "never answered" : `answered ${formatTime(call.end_ms)}, after ${formatLength(call.end_ms - call.start_ms)}`;
  const place = call.place === null ? "no place in the order" : `place ${call.place} in the order`;
  const verdict = call.is_wrong ? "\nbelongs to a history that no order explains" : "";
  return `${call.client}: ${call.what} on ${call.key}\nsent ${formatTime(call.start_ms)}\n${answer}\n${place}${verdict}`;
}

/** `end` is until when the call is shown. */
function paintCall(pen, call, end, top, height, isLabelled = false) {
  if (!pen.isVisible(call.start_ms, end)) return;
  const x = pen.x(call.start_ms);
  const width = Math.max(2, pen.x(end) - x);
  const tone = callTone(call);
  pen.fill(x, top, width, height, tone, Number(pen.theme.tint) * (call.is_wrong ? 1.6 : 1));
  if (call.is_wrong) pen.hatch(x, top, width, height, tone, 0.3, 6);
  pen.fill(x, top, Math.min(2, width), height, tone);
  if (call.end_ms === null) paintOpenEnd(pen, x, width, top, height, tone);
  else pen.fill(x + width - 2, top, 2, height, tone);
  pen.hit(x, top, width, height, () => callWords(call));
  const left = Math.max(0, x);
  const words = isLabelled ? callTitle(call) : call.what;
  pen.text(words, left + 5, top + height / 2 + 0.5, Math.min(x + width, pen.width) - left - 8, "ink", call.is_wrong ? FONT_BOLD : FONT);
}

/** The mark, not only the colour, says that a call is wrong. */
function callTitle(call) {
  const place = call.place === null ? "" : `#${call.place} `;
  return `${call.is_wrong ? "\u2717 " : ""}${place}${call.what}${call.end_ms === null ? " (never answered)" : ""}`;
}

function paintOpenEnd(pen, x, width, top, height, tone) {
  pen.line(x, top + height - 0.5, x + width, top + height - 0.5, tone, { dash: [3, 3] });
  pen.line(x, top + 0.5, x + width, top + 0.5, tone, { dash: [3, 3] });
  pen.hatch(x + Math.max(0, width - OPEN_END_PX), top, OPEN_END_PX, height, tone, 0.5, 5);
}

/** Rows of the chosen key: [{client, things, top}], clients in the order of the hosts. */
function layOutHistory(model, key) {
  const calls = model.calls.filter((call) => call.key === key);
  const clients = model.hosts.map((host) => host.name).filter((name) => calls.some((call) => call.client === name));
  const rows = [];
  for (const client of clients) {
    const own = calls.filter((call) => call.client === client);
    for (const things of packRows(own, (call) => call.start_ms, (call) => callEnd(model, call), HISTORY_ROWS_MAX)) {
      rows.push({ client, things, top: HISTORY_PADDING + rows.length * HISTORY_ROW });
    }
  }
  return { calls, rows, height: 2 * HISTORY_PADDING + rows.length * HISTORY_ROW };
}

function paintHistory(pen, model, layout, options) {
  paintGrid(pen, pen.height);
  for (const row of layout.rows) {
    pen.line(0, row.top + HISTORY_ROW - 3.5, pen.width, row.top + HISTORY_ROW - 3.5, "line-soft");
    for (const call of row.things) paintCall(pen, call, callEnd(model, call), row.top, HISTORY_BAR, true);
  }
  paintWitness(pen, model, layout);
  for (const finding of model.findings) {
    if (pen.isVisible(finding.at_ms, finding.at_ms)) pen.line(pen.x(finding.at_ms), 0, pen.x(finding.at_ms), pen.height, "bad");
  }
  paintCursor(pen, pen.height, options.cursor);
}

/** A line from effect to effect, in the order that explains the history. */
function paintWitness(pen, model, layout) {
  const tops = new Map(layout.rows.flatMap((row) => row.things.map((call) => [call.index, row.top])));
  const points = witness(model, layout.calls).map(({ call, at }) => [pen.x(at), tops.get(call.index) + HISTORY_BAR]);
  const isNear = ([x]) => x > -pen.width && x < 2 * pen.width;
  points.forEach((point, i) => {
    const next = points[i + 1];
    if (next && (isNear(point) || isNear(next))) pen.line(...point, ...next, "good", { thick: 1.5, alpha: 0.8 });
  });
  for (const point of points.filter(isNear)) pen.disc(...point, 3, "good");
}

/** What the panel says about the key, in words. */
function keyVerdict(layout) {
  const wrong = layout.calls.filter((call) => call.is_wrong).length;
  if (wrong > 0) return { isBad: true, words: `\u2717 no order explains ${wrong} of ${layout.calls.length} calls` };
  const placed = layout.calls.filter((call) => call.place !== null).length;
  if (placed === 0) return { isBad: false, words: `${layout.calls.length} calls, no order recorded` };
  return { isBad: false, words: `\u2713 ${placed} of ${layout.calls.length} calls explained; the line goes from effect to effect` };
}
