/* Bring the page to life. */
(function () {
  const data = JSON.parse(document.getElementById("data").textContent);
  const plots = [], scenes = new Map();
  shared.times = decode(data.t);
  for (const figure of data.figures) { /* a figure whose numbers another one has */
    if (!figure.same) continue;
    const other = data.figures.find((one) => one.id === figure.same[0]);
    figure.panels[0].series = other ? other.panels[figure.same[1]].series : [];
  }
  for (const figure of data.figures) {
    const element = document.getElementById(figure.id);
    if (!element) continue;
    if (figure.scene) scenes.set(element, new Scene(element, figure)); else plots.push(new TimePlot(element, figure));
  }
  for (const element of document.querySelectorAll("figure")) {
    offer(element, plots.find((plot) => plot.element === element), scenes.get(element) || scenes.get(document.getElementById(element.dataset.numbers)));
  }
  document.documentElement.classList.add("live");
  const bar = document.createElement("div");
  bar.className = "zoombar";
  bar.hidden = true;
  const words = document.createElement("span"), button = document.createElement("button");
  button.type = "button";
  button.textContent = "Show all";
  button.addEventListener("click", () => shared.zoom(null));
  bar.append(words, button);
  document.body.append(bar);
  shared.listeners.push(() => {
    bar.hidden = !shared.range;
    if (shared.range) words.textContent = `${shared.range[0].toFixed(3)} to ${shared.range[1].toFixed(3)} s`;
  });
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") shared.zoom(null); });
  let waiting = 0;
  window.addEventListener("resize", () => {
    cancelAnimationFrame(waiting);
    waiting = requestAnimationFrame(() => { for (const plot of plots) plot.update(); });
  });
  /* On paper a figure is as wide as the sheet: it is drawn anew at that width, not shrunk with its letters. */
  window.addEventListener("beforeprint", () => {
    document.documentElement.classList.add("sheet");
    for (const plot of plots) plot.draw();
  });
  window.addEventListener("afterprint", () => {
    document.documentElement.classList.remove("sheet");
    for (const plot of plots) plot.update();
  });
})();
