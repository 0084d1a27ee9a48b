// ---- pen: one canvas and one stretch of time; the tones that everything is painted with. ----

/** Heights in pixels. The dense ones are for runs whose hosts don't all fit into the window otherwise. */
const ROOMY = { row: 18, process: 22, call: 15, padding: 5 };
const DENSE = { row: 14, process: 18, call: 13, padding: 1 };
const AXIS_HEIGHT = 42;
const FLAG_HEIGHT = 18;
const FLAG_PX_MAX = 240;
const PILL_PADDING_PX = 12;
const OVERVIEW_HEIGHT = 30;
const TICK_GAP_PX = 110;
const LABEL_GAP_PX = 46;
const LABEL_CHARS_MAX = 90;
const FONT = "11px system-ui, 'DejaVu Sans', sans-serif";
const FONT_BOLD = `600 ${FONT}`;
/** Arrows are drawn when no more than so much time, and so many messages, are in view. */
const MESSAGE_SPAN_MS_MAX = 12000;
const MESSAGES_IN_VIEW_MAX = 1500;
const ARROW_HEAD_PX = 5;
const CROSS_PX = 4;
/** A lost message is drawn so far towards its receiver. */
const LOST_FRACTION = 0.82;
const LOST_FLIGHT_PX = 16;
const PALETTE_SIZE = 6;

const TONES = [
  "panel", "ink", "dim", "line", "line-soft", "accent", "on-accent", "band", "bad", "bad-soft", "good", "unsure", "running", "frozen", "down",
  "leader", "candidate", "follower", "learner", "session", "phase", "phase-other", "fault", "call", "message", "cursor", "tint",
  ...Array.from({ length: PALETTE_SIZE }, (_, i) => `palette-${i}`),
];
const MARK_TONES = {
  election: "leader", commit: "running", heal: "good", snapshot: "session", point: "phase", fault: "fault", exit: "bad", verdict: "bad", log: "dim",
};

function readTheme() {
  const style = getComputedStyle(document.documentElement);
  return Object.fromEntries(TONES.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
}

class Pen {
  constructor(canvas, theme, view, width, height) {
    const ratio = Math.max(1, window.devicePixelRatio || 1);
    const size = [Math.max(1, Math.round(width * ratio)), Math.max(1, Math.round(height * ratio))];
    if (canvas.width !== size[0] || canvas.height !== size[1]) [canvas.width, canvas.height] = size;
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    this.context = canvas.getContext("2d");
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.context.clearRect(0, 0, width, height);
    this.context.font = FONT;
    this.context.textBaseline = "middle";
    Object.assign(this, { theme, view, width, height, hits: [] });
  }

  x(ms) {
    return ((ms - this.view.from) / (this.view.to - this.view.from)) * this.width;
  }

  isVisible(from, to) {
    return to >= this.view.from && from <= this.view.to;
  }

  fill(x, y, width, height, tone, alpha = 1) {
    this.context.globalAlpha = alpha;
    this.context.fillStyle = this.theme[tone];
    this.context.fillRect(x, y, width, height);
    this.context.globalAlpha = 1;
  }

  line(x1, y1, x2, y2, tone, options = {}) {
    const { context } = this;
    context.globalAlpha = options.alpha ?? 1;
    context.strokeStyle = this.theme[tone];
    context.lineWidth = options.thick ?? 1;
    context.setLineDash(options.dash ?? []);
    context.beginPath();
    context.moveTo(x1, y1);
    context.lineTo(x2, y2);
    context.stroke();
    context.setLineDash([]);
    context.globalAlpha = 1;
  }

  shape(points, tone) {
    const { context } = this;
    context.fillStyle = this.theme[tone];
    context.beginPath();
    points.forEach(([x, y], i) => (i === 0 ? context.moveTo(x, y) : context.lineTo(x, y)));
    context.closePath();
    context.fill();
  }

  disc(x, y, radius, tone, isRing = false) {
    const { context } = this;
    context.beginPath();
    context.arc(x, y, radius, 0, 2 * Math.PI);
    context.fillStyle = this.theme[isRing ? "panel" : tone];
    context.fill();
    context.strokeStyle = this.theme[tone];
    context.lineWidth = 2;
    if (isRing) context.stroke();
  }

  /** Text cut to a width, with an ellipsis; nothing when not even a few letters fit. */
  text(words, x, y, widthMax, tone = "ink", font = FONT) {
    const { context } = this;
    context.font = font;
    let shown = words.length > LABEL_CHARS_MAX ? `${words.slice(0, LABEL_CHARS_MAX)}\u2026` : words;
    if (context.measureText(shown).width > widthMax) shown = this.cut(shown, widthMax);
    context.fillStyle = this.theme[tone];
    if (shown) context.fillText(shown, x, y);
    return shown ? context.measureText(shown).width : 0;
  }

  cut(words, widthMax) {
    let [low, high] = [0, words.length];
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if (this.context.measureText(`${words.slice(0, middle)}\u2026`).width <= widthMax) low = middle;
      else high = middle - 1;
    }
    return low >= 3 ? `${words.slice(0, low).trimEnd()}\u2026` : "";
  }

  /** Diagonal lines, so that states differ without colour too. */
  hatch(x, y, width, height, tone, alpha, gap = 7) {
    const { context } = this;
    const [left, right] = [Math.max(0, x), Math.min(this.width, x + width)];
    if (right <= left) return;
    context.save();
    context.beginPath();
    context.rect(left, y, right - left, height);
    context.clip();
    context.globalAlpha = alpha;
    context.strokeStyle = this.theme[tone];
    context.lineWidth = 1;
    context.beginPath();
    const start = Math.floor((left - height) / gap) * gap;
    for (let at = start; at < right; at += gap) {
      context.moveTo(at, y + height);
      context.lineTo(at + height, y);
    }
    context.stroke();
    context.restore();
  }

  textWidth(words, font) {
    this.context.font = font;
    return this.context.measureText(words).width;
  }

  /** A word on a coloured ground. */
  pill(words, x, y, widthMax, tone) {
    const full = this.textWidth(words, FONT_BOLD) + PILL_PADDING_PX;
    const width = Math.min(widthMax, full);
    const shown = width < full ? this.cut(words, width - PILL_PADDING_PX) : words;
    if (!shown) return 0;
    this.fill(x, y - 8, width, 16, tone);
    this.text(shown, x + PILL_PADDING_PX / 2, y + 0.5, width, "panel", FONT_BOLD);
    return width;
  }

  /** `words` is a function: most of what could be pointed at never is. */
  hit(x, y, width, height, words) {
    this.hits.push({ x, y, width, height, words });
  }
}
