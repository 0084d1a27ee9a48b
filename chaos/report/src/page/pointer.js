// ---- pointer: wheel, mouse and fingers. ----

function timeAt(canvas, clientX, view = state.view) {
  const box = canvas.getBoundingClientRect();
  return view.from + ((clientX - box.left) / box.width) * (view.to - view.from);
}

function onWheel(event) {
  event.preventDefault();
  const box = event.currentTarget.getBoundingClientRect();
  const isSideways = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY);
  if (isSideways) pan(((event.deltaX || event.deltaY) / box.width));
  else zoom(Math.exp(event.deltaY * WHEEL_ZOOM * (event.ctrlKey ? 5 : 1)), (event.clientX - box.left) / box.width);
}

/** One finger or the mouse drags and clicks; two fingers pinch. */
function listenToPointer(canvas, scroller) {
  const pointers = new Map();
  let press = null;
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, event.clientX);
    press = { x: event.clientX, y: event.clientY, view: state.view, top: scroller?.scrollTop ?? 0, spread: spread(pointers), isDrag: pointers.size > 1 };
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!press || !pointers.has(event.pointerId)) {
      showTip(canvas, event);
      return;
    }
    pointers.set(event.pointerId, event.clientX);
    if (pointers.size > 1) pinch(canvas, pointers, press);
    else drag(canvas, event, press, scroller);
  });
  const release = (event) => {
    pointers.delete(event.pointerId);
    canvas.classList.remove("held");
    if (press && !press.isDrag && event.type === "pointerup") setCursor(timeAt(canvas, event.clientX));
    if (pointers.size === 0) press = null;
  };
  canvas.addEventListener("pointerup", release);
  canvas.addEventListener("pointercancel", release);
  canvas.addEventListener("pointerleave", hideTip);
  canvas.addEventListener("wheel", onWheel, { passive: false });
}

function spread(pointers) {
  const [a, b] = [...pointers.values()];
  return b === undefined ? 0 : Math.max(1, Math.abs(a - b));
}

function drag(canvas, event, press, scroller) {
  const [dx, dy] = [event.clientX - press.x, event.clientY - press.y];
  if (!press.isDrag && Math.hypot(dx, dy) < DRAG_PX_MIN) return;
  press.isDrag = true;
  canvas.classList.add("held");
  hideTip();
  const step = (dx / canvas.getBoundingClientRect().width) * (press.view.to - press.view.from);
  setView(press.view.from - step, press.view.to - step);
  if (scroller) scroller.scrollTop = press.top - dy;
}

function pinch(canvas, pointers, press) {
  const [a, b] = [...pointers.values()];
  const box = canvas.getBoundingClientRect();
  const share = ((a + b) / 2 - box.left) / box.width;
  const anchor = press.view.from + (press.view.to - press.view.from) * share;
  const span = ((press.view.to - press.view.from) * press.spread) / spread(pointers);
  setView(anchor - span * share, anchor + span * (1 - share));
}

function listenToOverview() {
  const overview = byId("overview");
  const centre = (event) => {
    if (event.buttons === 0) return;
    const at = timeAt(overview, event.clientX, wholeRun());
    const half = (state.view.to - state.view.from) / 2;
    setView(at - half, at + half);
  };
  overview.addEventListener("pointerdown", (event) => {
    overview.setPointerCapture(event.pointerId);
    centre(event);
  });
  overview.addEventListener("pointermove", centre);
}

function showTip(canvas, event) {
  const box = canvas.getBoundingClientRect();
  const [x, y] = [event.clientX - box.left, event.clientY - box.top];
  const hit = (hits.get(canvas) ?? []).findLast((hit) => x >= hit.x && x <= hit.x + hit.width && y >= hit.y && y <= hit.y + hit.height);
  const tip = byId("tip");
  tip.hidden = !hit;
  if (!hit) return;
  tip.textContent = hit.words();
  tip.style.left = `${Math.min(event.clientX + 14, window.innerWidth - tip.offsetWidth - 8)}px`;
  tip.style.top = `${Math.min(event.clientY + 16, window.innerHeight - tip.offsetHeight - 8)}px`;
}

function hideTip() {
  byId("tip").hidden = true;
}
