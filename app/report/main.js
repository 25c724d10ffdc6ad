const data = JSON.parse(document.getElementById("data").textContent);
const main = document.getElementById("main"), root = document.documentElement;

const dark = matchMedia("(prefers-color-scheme: dark)");
let chosen = null;
const themeButton = document.getElementById("theme");
const setTheme = (theme) => {
  root.dataset.theme = theme;
  themeButton.textContent = theme === "dark" ? "Light" : "Dark";
  redrawAll();
};
const current = () => chosen || (dark.matches ? "dark" : "light");
themeButton.addEventListener("click", () => { chosen = current() === "dark" ? "light" : "dark"; setTheme(current()); });
dark.addEventListener("change", () => setTheme(current()));
addEventListener("beforeprint", () => setTheme("light"));
addEventListener("afterprint", () => setTheme(current()));
setTheme(current());

const put = (section) => {
  if (!section) return;
  main.append(section.node || section);
  if (section.draw) section.draw();
};
if (data.kind === "run") {
  const r = data.runs[0];
  data.subject = subjectOf(data.runs).policy;
  document.title = `${r.trace} — hyperoffload`;
  main.append(el("h1", {}, r.trace), el("p", { class: "about" }, `on ${r.hardware}, ${format.bytes(r.hbm_capacity_bytes - r.hbm_reserved_bytes)} of HBM, ` +
    `${r.iterations} ${r.iterations > 1 ? "iterations" : "iteration"}`));
  [answerSection, policiesSection, timelineSection, stallSection, linksSection, frontierSection, warmSection, npusSection].forEach((make) => put(make(data)));
} else {
  const sweep = sweepSection(data), r = sweep.rows[0];
  document.title = `Sweep of ${r.trace} — hyperoffload`;
  main.append(el("h1", {}, `Sweep of ${r.trace}`), el("p", { class: "about" }, `on ${r.hardware}`));
  put(sweepAnswer(sweep));
  put(sweep);
}
document.getElementById("foot").append(`hyperoffload ${data.version}. All figures are simulated; their exact values are in `, el("code", {}, data.kind === "run" ? "results.json" : "results.csv"), ".");
