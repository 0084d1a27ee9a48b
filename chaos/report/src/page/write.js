// ---- write: everything on the page that is text: header, findings, filters, names, side panel. ----

/** The side panel lists so many open calls of a client. */
const OPEN_CALLS_LISTED_MAX = 4;
const NOTHING_FOUND = {
  pass: "No checker found anything wrong.",
  fail: "No checker found anything wrong, yet the run failed: look at the marks and at the output of the command above.",
  unknown: "No checker found anything wrong, but the run doesn't prove it either: something that was to happen didn't.",
};

// -- What is written once.

function writeHeader() {
  const { run } = model;
  const verdict = byId("verdict");
  const name = ["pass", "fail"].includes(run.verdict) ? run.verdict : "unknown";
  verdict.className = `verdict ${name}`;
  verdict.textContent = `${{ pass: "\u2713", fail: "\u2717", unknown: "?" }[name]} ${run.verdict.toUpperCase() || "UNKNOWN"}`;
  byId("scenario").textContent = run.scenario;
  const facts = [["seed", model.seed], ["revision", run.revision], ["length", formatLength(model.duration)], ["hosts", String(run.hosts.length)]];
  for (const [label, value] of facts) {
    const fact = make("span", "", `${label} `);
    fact.append(make("b", "", value));
    byId("facts").append(fact);
  }
  byId("again").hidden = run.again === "";
  byId("again-text").textContent = run.again;
}

function writeFindings() {
  const count = model.findings.length;
  byId("findings-title").textContent = count === 0 ? "No findings" : `${count} finding${count === 1 ? "" : "s"}`;
  byId("first").disabled = count === 0;
  if (count === 0) byId("findings").append(make("li", "none", NOTHING_FOUND[model.run.verdict] ?? NOTHING_FOUND.unknown));
  model.findings.forEach((finding, i) => {
    const button = make("button");
    button.type = "button";
    button.title = finding.text;
    button.append(
      make("span", "at", formatTime(finding.at_ms)),
      make("span", "checker", findingTitle(finding, i)),
      make("span", "on", hostTitle(finding.host)),
      make("span", "text", finding.text),
    );
    button.addEventListener("click", () => jumpTo(i));
    const item = make("li");
    item.append(button);
    byId("findings").append(item);
  });
}

function writeChoices() {
  const { choices } = model.run;
  byId("choices-summary").textContent = `What the seed chose (${choices.length})`;
  for (const choice of choices) byId("choices").append(make("li", "", choice));
}

function writeLeftOut() {
  for (const { what, kept, total } of model.leftOut) {
    const note = make("span", "left-out", `holds only ${kept} of ${total} ${what}`);
    note.title = "To keep this page small. Lost messages and messages near the first finding were kept first.";
    byId("facts").append(note);
  }
}

function writeKeys() {
  const select = byId("key");
  for (const { key, calls, isWrong } of model.keys) {
    const option = make("option", "", `${isWrong ? "\u2717 " : ""}${key} (${calls})`);
    option.value = key;
    select.append(option);
  }
  document.querySelector(".history").hidden = model.keys.length === 0;
}

function writeLegend() {
  const known = new Map(model.kinds.map((kind) => [kind.id, kind]));
  for (const kind of known.values()) {
    const item = make("li");
    item.append(swatch(kind), make("span", "", kindTitle(kind)));
    byId("legend").append(item);
  }
}

function kindTitle(kind) {
  return kind.id === MESSAGE_KIND ? "messages" : kind.id.slice(kind.id.indexOf(":") + 1);
}

/** A small picture of how a kind is drawn. */
function swatch(kind) {
  const canvas = make("canvas", "swatch");
  canvas.setAttribute("aria-hidden", "true");
  paintSwatch(canvas, kind);
  return canvas;
}

function paintSwatch(canvas, kind) {
  const pen = new Pen(canvas, theme, { from: 0, to: 1 }, 18, 18);
  const name = kindTitle(kind);
  canvas.dataset.kind = kind.id;
  if (kind.group === "mark") paintGlyph(pen, name, 9, 9);
  else if (kind.group === "message") pen.line(2, 3, 16, 15, "message", { thick: 2 });
  else pen.fill(2, 4, 14, 10, { process: "running", role: "leader", session: "session", phase: "phase", fault: "fault", call: "call" }[name] ?? "palette-0", 0.8);
}

// -- Filters.

function writeFilters() {
  const hosts = model.hosts.map((host) => ({ id: host.name, title: hostTitle(host.name), note: host.kind }));
  const kinds = model.kinds.map((kind) => ({ id: kind.id, title: kindTitle(kind), note: String(kind.count), kind }));
  writeFilter(byId("hosts-filter"), hosts, state.hiddenHosts);
  writeFilter(byId("kinds-filter"), kinds, state.hiddenKinds);
  writeFilterSummaries();
}

function writeFilter(box, entries, hidden) {
  const all = make("button", "all", "Show all");
  all.type = "button";
  all.addEventListener("click", () => {
    hidden.clear();
    for (const input of box.querySelectorAll("input")) input.checked = true;
    applyFilters();
  });
  box.append(all, ...entries.map((entry) => filterEntry(entry, hidden)));
}

function filterEntry(entry, hidden) {
  const label = make("label");
  const input = make("input");
  input.type = "checkbox";
  input.checked = true;
  input.addEventListener("change", () => {
    if (input.checked) hidden.delete(entry.id);
    else hidden.add(entry.id);
    applyFilters();
  });
  label.append(input, ...(entry.kind ? [swatch(entry.kind)] : []), make("span", "", entry.title), make("small", "", entry.note));
  return label;
}

function writeFilterSummaries() {
  const summary = (title, all, hidden) => `${title} ${all.length - hidden.size}/${all.length}`;
  byId("hosts-summary").textContent = summary("Hosts", model.hosts, state.hiddenHosts);
  byId("kinds-summary").textContent = summary("Kinds", model.kinds, state.hiddenKinds);
}

function applyFilters() {
  writeFilterSummaries();
  arrange();
  writeSide();
}

// -- Names beside the lanes.

function placed(className, top, height, words) {
  const element = make("div", className, words);
  element.style.top = `${top}px`;
  element.style.height = `${height}px`;
  element.style.lineHeight = `${height}px`;
  return element;
}

function writeLabels() {
  const box = byId("labels");
  box.replaceChildren();
  box.style.height = `${layout.height}px`;
  layout.blocks.forEach((block, i) => {
    box.append(placed(`block ${i % 2 === 0 ? "even" : ""}`, block.top, block.height, ""));
    const name = placed("host", block.rows[0].top, block.rows[0].height, hostTitle(block.host.name));
    name.title = `${hostTitle(block.host.name)} (${block.host.kind})`;
    if (block.host.name !== WORLD && !block.host.name.startsWith(block.host.kind)) name.append(make("small", "", block.host.kind));
    box.append(name);
    let last = "process";
    for (const row of block.rows) {
      if (row.lane !== last) box.append(placed("lane", row.top, row.height - 2, row.lane));
      last = row.lane;
    }
  });
}

function writeHistoryLabels() {
  const box = byId("history-labels");
  box.replaceChildren();
  box.style.height = `${historyLayout.height}px`;
  let last = null;
  for (const row of historyLayout.rows) {
    if (row.client !== last) box.append(placed("host", row.top, HISTORY_BAR, row.client));
    last = row.client;
  }
  const { isBad, words } = keyVerdict(historyLayout);
  byId("key-verdict").textContent = words;
  byId("key-verdict").className = `key-verdict ${isBad ? "bad" : "good"}`;
}

function chooseKey(key) {
  state.key = key;
  byId("key").value = key;
  historyLayout = layOutHistory(model, key);
  writeHistoryLabels();
  planDraw();
}

function stepKey(step) {
  const at = model.keys.findIndex(({ key }) => key === state.key);
  const next = model.keys[(at + step + model.keys.length) % Math.max(1, model.keys.length)];
  if (next) chooseKey(next.key);
}

// -- The side panel.

function writeSide() {
  byId("side-title").textContent = `State at ${formatTime(state.cursor)}`;
  byId("states").replaceChildren(...layout.blocks.map((block) => stateCard(block.host)).filter((card) => card.children.length > 0));
}

function stateCard(host) {
  const { lanes, open, last } = stateAt(model, host, state.cursor);
  const card = make("div", lanes[FAULT_LANE] ? "card hit" : "card");
  const head = make("h3");
  const name = make("button", "", hostTitle(host.name));
  name.type = "button";
  name.title = "Scroll the lanes to this host";
  name.addEventListener("click", () => scrollToHost(host.name));
  head.append(name);
  const process = lanes.process?.[0];
  if (process) head.append(make("span", `chip ${spanTone({ lane: "process", label: process })}`, process));
  if (host.name !== WORLD || Object.keys(lanes).length > 0 || last) card.append(head);
  for (const fault of lanes[FAULT_LANE] ?? []) card.append(stateLine("fault", fault, "fault"));
  for (const [lane, labels] of Object.entries(lanes)) {
    if (lane !== "process" && lane !== FAULT_LANE) labels.forEach((label) => card.append(stateLine(lane, label)));
  }
  for (const call of open.slice(0, OPEN_CALLS_LISTED_MAX)) card.append(stateLine("calling", `${call.what} on ${call.key}`));
  if (open.length > OPEN_CALLS_LISTED_MAX) card.append(stateLine("calling", `and ${open.length - OPEN_CALLS_LISTED_MAX} more`));
  if (last) card.append(stateLine(`${formatLength(state.cursor - last.at_ms)} ago`, `${last.kind}: ${last.text}`));
  return card;
}

function stateLine(label, words, className = "") {
  const line = make("p", className);
  line.append(make("span", "", label), make("span", "", words));
  return line;
}
