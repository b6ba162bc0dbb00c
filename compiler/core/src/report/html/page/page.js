// Puts the page together.

{
  let theme = null;
  try { theme = localStorage.getItem("tpc-theme"); } catch { /* Without storage, use the system's theme. */ }
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const page = document.getElementById("page");
  document.body.prepend(h("a", { class: "skip", href: PLAN ? "#tensors" : "#findings" }, PLAN ? "Skip to the tensors" : "Skip to the findings"));
  document.body.append(svg("svg", { width: 0, height: 0, style: { position: "absolute" }, "aria-hidden": "true" }, defs), tipBox);
  page.append(head(), verdict());
  if (PLAN) {
    const tensors = tensorBrowser();
    const map = layerMap();
    const times = timeline();
    page.append(tiles(), ...[commands(), findings(), memory(), map, tensors.section, times?.section, considered(), reasons(), assumptions()].filter(Boolean));
    tensors.start();
    times?.start();
  } else {
    page.append(findings());
  }
  setTheme(theme ?? (dark.matches ? "dark" : "light"));
  dark.addEventListener("change", () => { if (!theme) setTheme(dark.matches ? "dark" : "light"); });
}
