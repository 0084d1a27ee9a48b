// Uses the page as a person does and tells what it shows after each step.
(async () => {
  const told = [];
  const text = (id) => document.getElementById(id).textContent;
  const frame = () => new Promise((done) => setTimeout(done, 10));
  const tell = async (name) => {
    await frame();
    const chosen = document.querySelector("#findings [aria-current=true] .checker")?.textContent;
    told.push([name, text("range"), text("clock"), chosen, text("hosts-summary"), document.getElementById("key").value].join("|"));
  };
  const key = (key) => document.body.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
  const lanes = document.getElementById("lanes");
  const box = lanes.getBoundingClientRect();
  const point = (type, share) => lanes.dispatchEvent(new PointerEvent(type, {
    pointerId: 1, clientX: box.left + box.width * share, clientY: box.top + 20, buttons: 1, bubbles: true,
  }));
  lanes.setPointerCapture = () => {};
  await tell("open");
  key("0"); await tell("whole");
  key("n"); await tell("next");
  key("p"); await tell("previous");
  key("+"); await tell("closer");
  key("-"); await tell("back");
  lanes.dispatchEvent(new WheelEvent("wheel", { deltaY: -300, clientX: box.left + box.width / 2, cancelable: true })); await tell("wheel");
  key("0"); await frame(); point("pointerdown", 0.5); point("pointerup", 0.5); await tell("click");
  key("."); await tell("step");
  key("]"); await tell("key");
  const host = document.querySelectorAll("#hosts-filter input")[10];
  host.click(); await tell("hidden");
  key("v"); await tell("violation");
  key("ArrowRight"); await tell("right");
  point("pointerdown", 0.5); point("pointermove", 0.65); point("pointerup", 0.65); await tell("dragged");
  key("?");
  document.documentElement.dataset.told = told.join("\n") + "\nhelp " + document.getElementById("help").open;
  document.documentElement.dataset.status = text("status");
})();
