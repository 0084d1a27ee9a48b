// ---- page: wires the model and the pens to the document. All that changes is in `state`. ----

const ZOOM_STEP = 1.6;
const WHEEL_ZOOM = 0.0016;
const SPAN_MS_MIN = 5;
/** Jumping to a finding shows so much time, most of it before the finding: causes come first. */
const JUMP_SPAN_MS = 6000;
const JUMP_BEFORE = 0.62;
/** The whole run is shown with so much empty room on each side. */
const FIT_MARGIN = 0.01;
const PAN_STEP = 0.15;
const SCROLL_STEP_PX = 60;
/** A press that moves less is a click. */
const DRAG_PX_MIN = 4;
const COPIED_MS = 1500;
const PRINT_WIDTH_PX = 1480;

const byId = (id) => document.getElementById(id);
const model = buildModel(JSON.parse(byId("data").textContent));
const state = {
  view: { from: 0, to: 1 },
  cursor: 0,
  finding: -1,
  key: model.keys[0]?.key ?? null,
  hiddenHosts: new Set(),
  hiddenKinds: new Set(),
  isDrawPlanned: false,
  isPrinting: false,
};
let theme = readTheme();
let layout = { blocks: [], height: 0 };
let historyLayout = layOutHistory(model, state.key);
/** What the mouse may point at, by canvas. */
const hits = new Map();

function isHostShown(name) {
  return !state.hiddenHosts.has(name);
}

function isKindShown(id) {
  return !state.hiddenKinds.has(id);
}

/** An element with a class and a text; text is never read as HTML. */
function make(tag, className = "", words = "") {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (words !== "") element.textContent = words;
  return element;
}

// -- Drawing.

/** Finds a place for everything again: after a filter or the window has changed. */
function arrange() {
  const heightMax = state.isPrinting ? 0 : byId("scroller").clientHeight;
  layout = layOut(model, isHostShown, isKindShown, heightMax);
  writeLabels();
  planDraw();
}

function planDraw() {
  if (state.isDrawPlanned) return;
  state.isDrawPlanned = true;
  requestAnimationFrame(() => {
    state.isDrawPlanned = false;
    draw();
  });
}

function plotWidth() {
  if (state.isPrinting) return PRINT_WIDTH_PX - byId("labels").offsetWidth;
  return Math.max(120, byId("scroller").clientWidth - byId("labels").offsetWidth);
}

function draw() {
  const width = plotWidth();
  const options = { cursor: state.cursor, finding: state.finding, isKindShown };
  const pen = (id, height, view = state.view) => {
    const made = new Pen(byId(id), theme, view, width, height);
    hits.set(byId(id), made.hits);
    return made;
  };
  const lanes = pen("lanes", Math.max(1, layout.height));
  const arrows = paintLanes(lanes, model, layout, options);
  paintAxis(pen("axis", AXIS_HEIGHT), model, options);
  paintHistory(pen("history", historyLayout.height), model, historyLayout, options);
  paintOverview(pen("overview", OVERVIEW_HEIGHT, wholeRun()), model, state.view, state.cursor);
  writeStatus(arrows);
  reportFirstViolation(lanes);
}

function writeStatus(arrows) {
  const [from, to] = [Math.max(0, state.view.from), Math.min(state.view.to, model.duration)];
  byId("range").textContent = formatLength(to - from);
  byId("clock").textContent = formatTime(state.cursor);
  const messages = arrows.why || `${arrows.drawn} messages in view`;
  byId("status").textContent = `${formatTime(from)} to ${formatTime(to)} \u00b7 ${messages}`;
  byId("lanes").setAttribute("aria-label", `Swim lanes of ${layout.blocks.length} hosts from ${formatTime(from)} to ${formatTime(to)}. The side panel says in words what is true at ${formatTime(state.cursor)}.`);
  byId("history").setAttribute("aria-label", `Calls on key ${state.key}: ${byId("key-verdict").textContent}`);
  document.documentElement.dataset.drawn = "true";
  document.documentElement.dataset.messagesDrawn = String(arrows.drawn);
}

/** For tests: whether the first finding's words and its place on the time line are inside of the window. */
function reportFirstViolation(lanes) {
  const page = document.documentElement.dataset;
  const [finding] = model.findings;
  if (!finding) {
    page.firstViolationVisible = "none";
    return;
  }
  const isInside = (box, outer) => box.top >= outer.top && box.bottom <= outer.bottom && box.left >= outer.left && box.right <= outer.right;
  const screen = { top: 0, left: 0, bottom: window.innerHeight, right: window.innerWidth };
  const words = byId("findings").querySelector("button").getBoundingClientRect();
  const block = layout.blocks.find((block) => block.host.name === finding.host);
  const scroller = byId("scroller");
  const top = block ? block.middle - scroller.scrollTop : 0;
  const isOnLanes = lanes.isVisible(finding.at_ms, finding.at_ms) && top >= 0 && top <= scroller.clientHeight;
  page.firstViolationVisible = String(isInside(words, screen) && isInside(scroller.getBoundingClientRect(), screen) && isOnLanes);
  page.firstViolationText = finding.text;
}

// -- Moving.

function wholeRun() {
  const margin = model.duration * FIT_MARGIN;
  return { from: -margin, to: model.duration + margin };
}

function setView(from, to) {
  const whole = wholeRun();
  const span = Math.min(Math.max(to - from, SPAN_MS_MIN), whole.to - whole.from);
  const start = Math.min(Math.max(from, whole.from), whole.to - span);
  state.view = { from: start, to: start + span };
  planDraw();
}

/** Zooms so that what lies at `share` of the width stays where it is. */
function zoom(factor, share = cursorShare()) {
  const { from, to } = state.view;
  const anchor = from + (to - from) * share;
  const span = Math.max((to - from) * factor, SPAN_MS_MIN);
  setView(anchor - span * share, anchor + span * (1 - share));
}

function cursorShare() {
  const share = (state.cursor - state.view.from) / (state.view.to - state.view.from);
  return share >= 0 && share <= 1 ? share : 0.5;
}

function pan(share) {
  const { from, to } = state.view;
  const step = (to - from) * share;
  setView(from + step, to + step);
}

function fit() {
  const whole = wholeRun();
  setView(whole.from, whole.to);
}

function setCursor(at) {
  state.cursor = Math.min(Math.max(0, Math.round(at)), model.duration);
  byId("scrubber").value = String(state.cursor);
  byId("scrubber").setAttribute("aria-valuetext", formatTime(state.cursor));
  writeSide();
  planDraw();
}

/** Moves the view only when the cursor would lie outside of it. */
function showCursor() {
  const { from, to } = state.view;
  if (state.cursor < from || state.cursor > to) setView(state.cursor - (to - from) / 2, state.cursor + (to - from) / 2);
}

function stepMoment(step) {
  const times = model.moments.filter(([, host]) => isHostShown(host)).map(([at]) => at);
  const next = step > 0 ? times.find((at) => at > state.cursor) : times.findLast((at) => at < state.cursor);
  if (next === undefined) return;
  setCursor(next);
  showCursor();
}

/** Scrolls no further down than it must: causes are mostly further up, on the servers. */
function scrollToHost(name) {
  const block = layout.blocks.find((block) => block.host.name === name);
  if (!block) return;
  const scroller = byId("scroller");
  scroller.scrollTop = block.top + block.height - scroller.clientHeight;
}

function jumpTo(index) {
  const finding = model.findings[index];
  if (!finding) return;
  state.finding = index;
  if (state.hiddenHosts.delete(finding.host)) showHostAgain();
  const key = keyOf(finding);
  if (key) chooseKey(key);
  const span = Math.min(JUMP_SPAN_MS, model.duration);
  setView(finding.at_ms - span * JUMP_BEFORE, finding.at_ms + span * (1 - JUMP_BEFORE));
  setCursor(finding.at_ms);
  scrollToHost(finding.host);
  markChosenFinding();
  planDraw();
}

/** The key that a finding's words name: the longest name, as `key-1` is in `key-12` too. */
function keyOf(finding) {
  const named = model.keys.map(({ key }) => key).filter((key) => key !== "" && finding.text.includes(key));
  return named.sort((a, b) => b.length - a.length)[0];
}

/** A finding on a hidden host brings the host back. */
function showHostAgain() {
  const inputs = byId("hosts-filter").querySelectorAll("input");
  model.hosts.forEach((host, i) => { inputs[i].checked = isHostShown(host.name); });
  applyFilters();
}

function markChosenFinding() {
  const buttons = byId("findings").querySelectorAll("button");
  buttons.forEach((button, i) => {
    button.setAttribute("aria-current", String(i === state.finding));
    if (i === state.finding) button.scrollIntoView({ block: "nearest" });
  });
}

function stepFinding(step) {
  const count = model.findings.length;
  if (count > 0) jumpTo((state.finding + step + count) % count);
}

// -- Keys and buttons.

function copyCommand() {
  const hint = byId("again-hint");
  const say = (words) => {
    hint.textContent = words;
    setTimeout(() => { hint.textContent = "copy"; }, COPIED_MS);
  };
  const copied = navigator.clipboard ? navigator.clipboard.writeText(model.run.again) : Promise.reject(new Error("no clipboard"));
  copied.then(() => say("copied"), () => {
    getSelection().selectAllChildren(byId("again-text"));
    say("selected: press Ctrl+C");
  });
}

function scrollLanes(step) {
  byId("scroller").scrollTop += step;
}

const KEYS = {
  v: () => jumpTo(0),
  n: () => stepFinding(1),
  p: () => stepFinding(-1),
  "+": () => zoom(1 / ZOOM_STEP),
  "=": () => zoom(1 / ZOOM_STEP),
  "-": () => zoom(ZOOM_STEP),
  0: fit,
  ArrowLeft: () => pan(-PAN_STEP),
  ArrowRight: () => pan(PAN_STEP),
  ArrowUp: () => scrollLanes(-SCROLL_STEP_PX),
  ArrowDown: () => scrollLanes(SCROLL_STEP_PX),
  ",": () => stepMoment(-1),
  ".": () => stepMoment(1),
  "[": () => stepKey(-1),
  "]": () => stepKey(1),
  "?": () => byId("help").showModal(),
};

function onKey(event) {
  const isTyping = event.target.closest("select") !== null || (event.target.closest("input") !== null && event.key.startsWith("Arrow"));
  const isForUs = !event.ctrlKey && !event.metaKey && !event.altKey && !isTyping && !byId("help").open;
  if (!isForUs || !Object.hasOwn(KEYS, event.key)) return;
  event.preventDefault();
  KEYS[event.key]();
}

function listen() {
  byId("again").addEventListener("click", copyCommand);
  byId("first").addEventListener("click", () => jumpTo(0));
  byId("zoom-in").addEventListener("click", () => zoom(1 / ZOOM_STEP));
  byId("zoom-out").addEventListener("click", () => zoom(ZOOM_STEP));
  byId("fit").addEventListener("click", fit);
  byId("help-open").addEventListener("click", () => byId("help").showModal());
  byId("key").addEventListener("change", (event) => chooseKey(event.target.value));
  byId("scrubber").addEventListener("input", (event) => {
    setCursor(Number(event.target.value));
    showCursor();
  });
  listenToPointer(byId("lanes"), byId("scroller"));
  listenToPointer(byId("history"), byId("history-scroller"));
  listenToPointer(byId("axis"), null);
  listenToOverview();
  document.addEventListener("keydown", onKey);
  document.addEventListener("pointerdown", closeFilters);
  new ResizeObserver(arrange).observe(byId("scroller"));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaintTheme);
  window.addEventListener("beforeprint", () => drawForPrint(true));
  window.addEventListener("afterprint", () => drawForPrint(false));
}

function closeFilters(event) {
  for (const filter of document.querySelectorAll("details.filter")) {
    if (!filter.contains(event.target)) filter.open = false;
  }
}

function repaintTheme() {
  theme = readTheme();
  for (const canvas of document.querySelectorAll("canvas.swatch")) {
    paintSwatch(canvas, model.kinds.find((kind) => kind.id === canvas.dataset.kind));
  }
  planDraw();
}

function drawForPrint(isPrinting) {
  state.isPrinting = isPrinting;
  document.documentElement.classList.toggle("printing", isPrinting);
  if (isPrinting) document.querySelector(".seed-choices").open = true;
  theme = readTheme();
  arrange();
  draw();
}

function start() {
  writeHeader();
  writeFindings();
  writeChoices();
  writeLeftOut();
  writeKeys();
  writeFilters();
  writeLegend();
  if (state.key !== null) chooseKey(state.key);
  byId("scrubber").max = String(model.duration);
  arrange();
  listen();
  fit();
  setCursor(0);
  jumpTo(0);
  draw();
}

start();
