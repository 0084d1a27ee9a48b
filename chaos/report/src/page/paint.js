// ---- paint: things to show in, pixels out: the swim lanes, the axis and the overview. ----

// -- Tones.

function spanTone(span) {
  const label = span.label.toLowerCase();
  if (span.lane === "process") return ["frozen", "down"].find((state) => label.startsWith(state)) ?? "running";
  if (span.lane === "role") return ["leader", "candidate", "learner"].find((role) => label.startsWith(role)) ?? "follower";
  if (span.lane === "session") return /expired|lost|gone|none/.test(label) ? "down" : "session";
  if (span.lane === "phase") return hash(span.label) % 2 ? "phase" : "phase-other";
  if (span.lane === FAULT_LANE) return "fault";
  return `palette-${hash(span.label.split(" ")[0]) % PALETTE_SIZE}`;
}

/** The same service has the same colour on every host. */
function hash(words) {
  let sum = 7;
  for (const letter of words) sum = (sum * 31 + letter.codePointAt(0)) >>> 0;
  return sum;
}

function markTone(kind) {
  return MARK_TONES[kind] ?? "accent";
}

// -- Layout.

/** Where each host's block and rows lie: {blocks, height}. Dense when it would be higher than the window otherwise. */
function layOut(model, isHostShown, isKindShown, heightMax) {
  const roomy = layOutWith(ROOMY, model, isHostShown, isKindShown);
  return roomy.height <= heightMax ? roomy : layOutWith(DENSE, model, isHostShown, isKindShown);
}

function layOutWith(heights, model, isHostShown, isKindShown) {
  let top = 0;
  const blocks = [];
  for (const host of model.hosts.filter((host) => isHostShown(host.name))) {
    const rows = rowsOf(model, host, isKindShown);
    let y = top + heights.padding;
    for (const row of rows) {
      row.top = y;
      row.height = heights[row.lane] ?? heights.row;
      y += row.height;
    }
    const bottom = y + heights.padding;
    blocks.push({ host, rows, top, height: bottom - top, middle: top + heights.padding + heights.process / 2 });
    top = bottom;
  }
  return { blocks, height: top };
}

// -- The swim lanes.

function paintLanes(pen, model, layout, options) {
  layout.blocks.forEach((block, i) => paintGround(pen, block, i));
  paintGrid(pen, layout.height);
  for (const block of layout.blocks) paintFaultBands(pen, model, block, options);
  for (const block of layout.blocks) for (const row of block.rows) paintRow(pen, model, row);
  const arrows = paintMessages(pen, model, layout, options);
  for (const block of layout.blocks) paintMarks(pen, model, block, options);
  paintFindings(pen, model, layout, options.finding);
  paintCursor(pen, layout.height, options.cursor);
  return arrows;
}

function paintGround(pen, block, index) {
  if (index % 2 === 0) pen.fill(0, block.top, pen.width, block.height, "band");
  pen.line(0, block.top + block.height - 0.5, pen.width, block.top + block.height - 0.5, "line");
}

function paintGrid(pen, height) {
  for (const tick of ticks(pen)) {
    const x = Math.round(pen.x(tick)) + 0.5;
    pen.line(x, 0, x, height, "line-soft");
  }
}

/** A fault of the world lies over every host, but more lightly. */
function paintFaultBands(pen, model, block, options) {
  if (!options.isKindShown(`lane:${FAULT_LANE}`)) return;
  const faults = model.run.spans.filter((span) => span.lane === FAULT_LANE && pen.isVisible(span.from_ms, span.to_ms));
  for (const span of faults.filter((span) => span.host === block.host.name || span.host === WORLD)) {
    const x = pen.x(span.from_ms);
    const width = Math.max(2, pen.x(span.to_ms) - x);
    pen.fill(x, block.top, width, block.height - 1, "fault", span.host === WORLD ? 0.06 : 0.14);
    pen.line(x, block.top, x, block.top + block.height, "fault", { alpha: 0.6 });
    pen.line(x + width, block.top, x + width, block.top + block.height, "fault", { alpha: 0.6, dash: [3, 3] });
  }
}

function paintRow(pen, model, row) {
  if (row.lane === CALL_LANE) {
    for (const call of row.things) paintCall(pen, call, callShownEnd(model, call), row.top + 1, row.height - 2);
    return;
  }
  for (const span of row.things) {
    if (!pen.isVisible(span.from_ms, span.to_ms)) continue;
    if (span.lane === "process") paintProcess(pen, span, row);
    else paintSpan(pen, span, row);
  }
}

function spanBox(pen, span) {
  const x = pen.x(span.from_ms);
  const width = Math.max(2, pen.x(span.to_ms) - x);
  const left = Math.max(x, 0);
  return { x, width, left, shown: Math.min(x + width, pen.width) - left };
}

function spanWords(span) {
  return `${span.label}\n${span.lane} on ${hostTitle(span.host)}\n${formatTime(span.from_ms)} to ${formatTime(span.to_ms)} (${formatLength(span.to_ms - span.from_ms)})`;
}

/** Running is a thin line under the marks; frozen and down fill the row. */
function paintProcess(pen, span, row) {
  const { x, width, left, shown } = spanBox(pen, span);
  const tone = spanTone(span);
  const bottom = row.top + row.height - 2;
  pen.hit(x, row.top, width, row.height, () => spanWords(span));
  if (tone === "running") {
    pen.fill(x, bottom - 3, width, 3, tone, 0.85);
    return;
  }
  pen.fill(x, row.top, width, row.height - 2, tone, Number(pen.theme.tint) * 1.3);
  pen.hatch(x, row.top, width, row.height - 2, tone, 0.75);
  pen.fill(x, bottom - 3, width, 3, tone);
  const pill = Math.min(shown - 6, pen.textWidth(span.label, FONT_BOLD) + PILL_PADDING_PX);
  // In the middle: the marks of what froze or ended it are at its ends.
  pen.pill(span.label, left + (shown - pill) / 2, row.top + row.height / 2 - 2, pill, tone);
}

function paintSpan(pen, span, row) {
  const { x, width, left, shown } = spanBox(pen, span);
  const tone = spanTone(span);
  const height = row.height - 2;
  pen.fill(x, row.top, width, height, tone, Number(pen.theme.tint));
  if (span.lane === FAULT_LANE) pen.hatch(x, row.top, width, height, tone, 0.35);
  pen.fill(x, row.top, Math.min(3, width), height, tone);
  pen.fill(x + width - 1, row.top, 1, height, tone, 0.6);
  const font = span.lane === FAULT_LANE || tone === "leader" ? FONT_BOLD : FONT;
  pen.text(span.label, left + 7, row.top + height / 2 + 0.5, shown - 10, "ink", font);
  pen.hit(x, row.top, width, row.height, () => spanWords(span));
}

// -- Marks.

function paintMarks(pen, model, block, options) {
  const y = block.rows[0].top + block.rows[0].height / 2 - 3;
  const marks = model.run.marks.filter((mark) => mark.host === block.host.name && options.isKindShown(`mark:${mark.kind}`)
    && pen.isVisible(mark.at_ms, mark.at_ms));
  const [quiet, loud] = [marks.filter((mark) => QUIET_MARKS.includes(mark.kind)), marks.filter((mark) => !QUIET_MARKS.includes(mark.kind))];
  paintOnePerPixel(pen, quiet, y);
  loud.sort((a, b) => a.at_ms - b.at_ms);
  loud.forEach((mark, i) => paintLoudMark(pen, mark, loud[i + 1], y));
}

function paintOnePerPixel(pen, marks, y) {
  const taken = new Set();
  for (const mark of marks) {
    const x = Math.round(pen.x(mark.at_ms));
    const place = `${mark.kind}${x}`;
    if (taken.has(place)) continue;
    taken.add(place);
    paintGlyph(pen, mark.kind, x, y);
    pen.hit(x - 3, y - 8, 6, 16, () => markWords(mark));
  }
}

function paintLoudMark(pen, mark, next, y) {
  const x = pen.x(mark.at_ms);
  const room = (next ? pen.x(next.at_ms) : pen.width) - x - 16;
  paintGlyph(pen, mark.kind, x, y);
  if (room > LABEL_GAP_PX) paintMarkLabel(pen, mark, x + 9, y, room);
  pen.hit(x - 6, y - 8, 12, 16, () => markWords(mark));
}

/** On its own ground, so that ticks under it don't make it unreadable. */
function paintMarkLabel(pen, mark, x, y, room) {
  const width = Math.min(room, pen.textWidth(mark.text, FONT));
  pen.fill(x - 2, y - 7, width + 4, 14, "panel", 0.85);
  pen.text(mark.text, x, y, width + 1, "ink");
}

function markWords(mark) {
  return `${mark.kind}: ${mark.text}\n${formatTime(mark.at_ms)} on ${hostTitle(mark.host)}`;
}

const GLYPHS = {
  election: (pen, x, y, tone) => pen.shape([[x, y - 6], [x + 6, y + 5], [x - 6, y + 5]], tone),
  commit: (pen, x, y, tone) => pen.line(x + 0.5, y - 1, x + 0.5, y + 7, tone, { alpha: 0.75 }),
  log: (pen, x, y, tone) => pen.line(x + 0.5, y - 7, x + 0.5, y - 1, tone),
  heal: (pen, x, y, tone) => { pen.fill(x - 5, y - 2, 10, 4, tone); pen.fill(x - 2, y - 5, 4, 10, tone); },
  snapshot: (pen, x, y, tone) => pen.shape([[x, y - 6], [x + 6, y], [x, y + 6], [x - 6, y]], tone),
  point: (pen, x, y, tone) => pen.disc(x, y, 4.5, tone, true),
  fault: (pen, x, y, tone) => pen.shape([[x + 2, y - 7], [x - 5, y + 1], [x - 1, y + 1], [x - 2, y + 7], [x + 5, y - 1], [x + 1, y - 1]], tone),
  exit: (pen, x, y, tone) => paintCross(pen, x, y, 5, tone, 2.5),
};

function paintGlyph(pen, kind, x, y) {
  const draw = GLYPHS[kind] ?? ((p, at, up, tone) => p.disc(at, up, 4.5, tone));
  draw(pen, x, y, markTone(kind));
}

function paintCross(pen, x, y, size, tone, thick = 2) {
  pen.line(x - size, y - size, x + size, y + size, tone, { thick });
  pen.line(x - size, y + size, x + size, y - size, tone, { thick });
}

// -- Messages.

/** Returns how many arrows were drawn, and why none if none. */
function paintMessages(pen, model, layout, options) {
  if (!options.isKindShown(MESSAGE_KIND)) return { drawn: 0, why: "messages are filtered out" };
  if (pen.view.to - pen.view.from > MESSAGE_SPAN_MS_MAX) return { drawn: 0, why: "zoom in to see messages" };
  const rows = new Map(layout.blocks.map((block) => [block.host.name, block.middle]));
  const seen = model.messages.filter((message) => pen.isVisible(message[SENT], message[RECEIVED] ?? message[SENT]));
  if (seen.length > MESSAGES_IN_VIEW_MAX) return { drawn: 0, why: `${seen.length} messages in view: zoom in further to see them` };
  for (const message of seen) {
    const ends = [rows.get(model.names[message[FROM]]), rows.get(model.names[message[TO]])];
    if (ends.includes(undefined)) continue;
    if (message[RECEIVED] === null) paintLost(pen, model, message, ends);
    else paintArrow(pen, model, message, ends);
  }
  return { drawn: seen.length, why: "" };
}

function messageWords(model, message) {
  const arrival = message[RECEIVED] === null ? "never received" : `received ${formatTime(message[RECEIVED])}, after ${formatLength(message[RECEIVED] - message[SENT])}`;
  return `${model.names[message[FROM]]} to ${model.names[message[TO]]}, ${message[BYTES]} bytes\nsent ${formatTime(message[SENT])}\n${arrival}`;
}

function paintArrow(pen, model, message, [y1, y2]) {
  const [x1, x2] = [pen.x(message[SENT]), pen.x(message[RECEIVED])];
  pen.line(x1, y1, x2, y2, "message", { alpha: 0.5 });
  const angle = Math.atan2(y2 - y1, x2 - x1);
  const wing = (turn) => [x2 - ARROW_HEAD_PX * Math.cos(angle + turn), y2 - ARROW_HEAD_PX * Math.sin(angle + turn)];
  pen.shape([[x2, y2], wing(0.5), wing(-0.5)], "message");
  pen.hit(x2 - 4, y2 - 5, 8, 10, () => messageWords(model, message));
}

function paintLost(pen, model, message, [y1, y2]) {
  const x1 = pen.x(message[SENT]);
  const [x2, y] = [x1 + LOST_FLIGHT_PX, y1 + (y2 - y1) * LOST_FRACTION];
  pen.line(x1, y1, x2, y, "bad", { alpha: 0.75, dash: [4, 3] });
  paintCross(pen, x2, y, CROSS_PX, "bad");
  pen.hit(x2 - 6, y - 6, 12, 12, () => messageWords(model, message));
}

// -- Findings and the cursor.

function findingTitle(finding, index) {
  return `${index + 1} ${finding.checker}`;
}

function paintFindings(pen, model, layout, chosen) {
  model.findings.forEach((finding, i) => {
    if (!pen.isVisible(finding.at_ms, finding.at_ms)) return;
    const x = Math.round(pen.x(finding.at_ms)) + 0.5;
    pen.line(x, 0, x, layout.height, "bad", { thick: i === chosen ? 2 : 1 });
  });
  for (const block of layout.blocks) paintFindingsOnHost(pen, model, block, chosen);
}

/** Words first and rings after them, so that no finding hides another one; the chosen one comes last. */
function paintFindingsOnHost(pen, model, block, chosen) {
  const own = model.findings
    .map((finding, index) => ({ finding, index, x: Math.round(pen.x(finding.at_ms)) + 0.5 }))
    .filter(({ finding, x }) => finding.host === block.host.name && x >= 0 && x <= pen.width)
    .sort((a, b) => a.x - b.x);
  own.forEach((place, i) => paintFindingWords(pen, place, block.middle - 3, own[i - 1]?.x ?? 0, own[i + 1]?.x ?? pen.width));
  const last = own.find(({ index }) => index === chosen);
  for (const { finding, x } of [...own, ...(last ? [last] : [])]) {
    pen.disc(x, block.middle - 3, 6, "bad", true);
    pen.hit(x - 8, block.middle - 11, 16, 16, () => findingWords(finding));
  }
}

/** On the side that has more room before the next finding of the same host. */
function paintFindingWords(pen, { finding, index, x }, y, left, right) {
  const words = `${index + 1}  ${finding.text}`;
  const isRight = right - x >= x - left;
  const room = (isRight ? right - x : x - left) - 18;
  const width = Math.min(pen.textWidth(words, FONT_BOLD) + PILL_PADDING_PX, room);
  pen.pill(words, isRight ? x + 9 : x - 9 - width, y, width, "bad");
}

function findingWords(finding) {
  return `${finding.checker}: ${finding.text}\n${formatTime(finding.at_ms)} on ${hostTitle(finding.host)}`;
}

function paintCursor(pen, height, cursor) {
  const x = Math.round(pen.x(cursor)) + 0.5;
  pen.line(x, 0, x, height, "cursor", { dash: [2, 3], alpha: 0.8 });
}

// -- The axis and the overview.

function tickStep(pen) {
  const rough = ((pen.view.to - pen.view.from) / pen.width) * TICK_GAP_PX;
  const power = 10 ** Math.floor(Math.log10(rough));
  return Math.max(1, [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= rough));
}

function ticks(pen) {
  const step = tickStep(pen);
  const found = [];
  for (let at = Math.ceil(Math.max(0, pen.view.from) / step) * step; at <= pen.view.to; at += step) found.push(at);
  return found;
}

function formatTick(ms, step) {
  const digits = step >= 1000 ? 0 : step >= 100 ? 1 : step >= 10 ? 2 : 3;
  if (ms < 60000) return `${(ms / 1000).toFixed(digits)} s`;
  return `${Math.floor(ms / 60000)}:${((ms % 60000) / 1000).toFixed(digits).padStart(digits ? digits + 3 : 2, "0")}`;
}

function paintAxis(pen, model, options) {
  const step = tickStep(pen);
  for (const tick of ticks(pen)) {
    const x = Math.round(pen.x(tick)) + 0.5;
    pen.line(x, AXIS_HEIGHT - 6, x, AXIS_HEIGHT, "dim");
    const words = formatTick(tick, step);
    const width = pen.textWidth(words, FONT);
    const left = Math.min(Math.max(2, x - width / 2), pen.width - width - 2);
    pen.text(words, left, AXIS_HEIGHT - 14, TICK_GAP_PX, "dim");
  }
  paintFlags(pen, model);
  paintCursor(pen, AXIS_HEIGHT, options.cursor);
}

/** Where a flag would cover the one before it, its line stands alone. */
function paintFlags(pen, model) {
  let free = -Infinity;
  model.findings.forEach((finding, i) => {
    const x = pen.x(finding.at_ms);
    if (!pen.isVisible(finding.at_ms, finding.at_ms)) return;
    pen.line(x, x < free ? FLAG_HEIGHT : 0, x, AXIS_HEIGHT, "bad", { thick: 2 });
    pen.hit(x - 4, 0, 12, AXIS_HEIGHT, () => findingWords(finding));
    if (x < free) return;
    const title = findingTitle(finding, i);
    const width = Math.min(FLAG_PX_MAX, pen.textWidth(title, FONT_BOLD) + PILL_PADDING_PX);
    free = x + pen.pill(title, Math.min(x, pen.width - width), FLAG_HEIGHT / 2, width, "bad") + 3;
  });
}

/** The whole run in one strip: faults, what failed, and the part that the lanes show. */
function paintOverview(pen, model, view, cursor) {
  const loud = model.run.marks.filter((mark) => !QUIET_MARKS.includes(mark.kind));
  pen.fill(0, 0, pen.width, OVERVIEW_HEIGHT, "band");
  for (const span of model.run.spans) {
    const x = pen.x(span.from_ms);
    const width = Math.max(1, pen.x(span.to_ms) - x);
    if (span.lane === FAULT_LANE) pen.fill(x, 2, width, 10, "fault", 0.45);
    if (span.lane === "role" && spanTone(span) === "leader") pen.fill(x, 14, width, 5, "leader", 0.55);
  }
  for (const mark of loud) pen.line(pen.x(mark.at_ms), 21, pen.x(mark.at_ms), 28, markTone(mark.kind));
  for (const finding of model.findings) pen.fill(pen.x(finding.at_ms) - 1, 0, 3, OVERVIEW_HEIGHT, "bad");
  const [left, right] = [pen.x(view.from), pen.x(view.to)];
  pen.fill(left, 0, Math.max(2, right - left), OVERVIEW_HEIGHT, "accent", 0.14);
  pen.context.strokeStyle = pen.theme.accent;
  pen.context.lineWidth = 1.5;
  pen.context.strokeRect(left + 0.75, 0.75, Math.max(2, right - left) - 1.5, OVERVIEW_HEIGHT - 1.5);
  paintCursor(pen, OVERVIEW_HEIGHT, cursor);
}
