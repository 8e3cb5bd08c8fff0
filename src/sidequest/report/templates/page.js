"use strict";
(() => {
  const root = document.documentElement;
  const wanted = window.matchMedia("(prefers-color-scheme: dark)");
  const setTheme = (dark) => { root.dataset.theme = dark ? "dark" : "light"; };
  setTheme(wanted.matches);

  const figures = JSON.parse(document.getElementById("figures").textContent);
  const drawn = new Set();
  const ink = (name) => getComputedStyle(root).getPropertyValue(name).trim();

  const axis = () => ({
    gridcolor: ink("--line"), linecolor: ink("--line"), zerolinecolor: ink("--line"), zerolinewidth: 1,
    automargin: true, title: { standoff: 10, font: { size: 13 } }, ticks: "", ticklabelstandoff: 5,
  });
  const template = (narrow) => ({
    layout: {
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: { color: ink("--soft") }, xaxis: axis(), yaxis: axis(),
      hoverlabel: { bgcolor: ink("--panel"), bordercolor: ink("--line"), font: { color: ink("--ink") } },
      modebar: { bgcolor: "rgba(0,0,0,0)", color: ink("--faint"), activecolor: ink("--ink") },
      coloraxis: { colorbar: { outlinewidth: 0 } },
    },
    data: {
      scatter: [{ textfont: { size: narrow ? 10 : 12 } }],
      heatmap: [{ colorbar: { outlinewidth: 0, thickness: 12 } }], contour: [{ colorbar: { outlinewidth: 0, thickness: 12 } }],
    },
  });

  // A phone has no room for wide margins, a legend beside the plot, or long labels on points.
  const layoutOf = (figure, place) => {
    const narrow = place.clientWidth < 420;
    const layout = { ...figure.layout, template: template(narrow), autosize: true, width: place.clientWidth };
    // The legend stands at the bottom, under the axis title, in as many lines as its names need; the plot keeps its height.
    const named = figure.data.filter((trace) => trace.name && trace.showlegend !== false).map((trace) => trace.name.length * 7 + 50);
    const legend = named.length > 1 ? 20 * Math.ceil(named.length / Math.max(1, Math.floor(place.clientWidth / Math.max(...named)))) + 12 : 0;
    layout.height = (figure.layout.height || (narrow ? 300 : 360)) + legend;
    layout.margin = { l: 10, r: 12, t: 26, b: 36 + legend };
    layout.legend = { ...figure.layout.legend, orientation: "h", x: 0, xref: "container", y: 0, yanchor: "bottom", yref: "container", font: { size: 12 } };
    layout.dragmode = narrow ? false : "zoom";
    return layout;
  };
  const configOf = (name) => ({
    displaylogo: false, responsive: false, scrollZoom: false, plotlyServerURL: "",
    modeBarButtons: [["toImage", "resetScale2d"]], toImageButtonOptions: { format: "svg", filename: name },
  });

  const draw = async (place) => {
    const name = place.dataset.figure;
    if (!place.clientWidth) return;  // inside closed details
    const figure = figures[name];
    await Plotly.react(place, figure.data, layoutOf(figure, place), configOf(name));
    drawn.add(place);
  };
  const drawAll = async (redraw) => {
    if (typeof Plotly === "undefined") return;
    for (const place of document.querySelectorAll(".plot")) {
      if (!redraw && drawn.has(place)) continue;
      try { await draw(place); } catch (error) {
        place.textContent = "This figure could not be drawn: " + error;
        place.className = "note";
        console.error(error);
      }
    }
    root.dataset.drawn = String(document.querySelectorAll(".plot .main-svg").length > 0);
  };

  const unpack = async () => {
    const packed = document.getElementById("plotly").textContent;
    if (!packed) return;
    const bytes = Uint8Array.from(atob(packed), (character) => character.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    const script = document.createElement("script");
    script.textContent = await new Response(stream).text();
    document.head.append(script);
  };

  document.getElementById("theme").addEventListener("click", () => {
    setTheme(root.dataset.theme !== "dark");
    drawAll(true);
  });
  wanted.addEventListener("change", (event) => { setTheme(event.matches); drawAll(true); });
  for (const part of document.querySelectorAll("details")) part.addEventListener("toggle", () => drawAll(false));
  // A table that is wider than its place says so, and where it ends it stops saying so.
  const edges = () => {
    for (const box of document.querySelectorAll(".scroll")) {
      box.classList.toggle("overflows", box.scrollWidth > box.clientWidth + 1);
      box.classList.toggle("at-end", box.scrollLeft + box.clientWidth >= box.scrollWidth - 1);
    }
  };
  for (const box of document.querySelectorAll(".scroll")) box.addEventListener("scroll", edges, { passive: true });
  for (const part of document.querySelectorAll("details")) part.addEventListener("toggle", edges);
  window.addEventListener("resize", edges);
  edges();
  let width = root.clientWidth, waiting;
  window.addEventListener("resize", () => {
    if (root.clientWidth === width) return;
    width = root.clientWidth;
    clearTimeout(waiting);
    waiting = setTimeout(() => drawAll(true), 120);
  });
  window.addEventListener("beforeprint", () => {
    for (const part of document.querySelectorAll("details")) part.open = true;
  });
  for (const button of document.querySelectorAll(".copy")) {
    button.addEventListener("click", async () => {
      const source = document.getElementById(button.dataset.copies);
      try {
        await navigator.clipboard.writeText(source.textContent);
      } catch {  // a page opened from a file may have no clipboard: select the text and copy as a user would
        const range = document.createRange();
        range.selectNodeContents(source);
        getSelection().removeAllRanges();
        getSelection().addRange(range);
        document.execCommand("copy");
      }
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });
  }
  unpack().then(() => drawAll(false)).catch((error) => {
    for (const place of document.querySelectorAll(".plot")) {
      place.textContent = "Figures need a browser of 2023 or later.";
      place.className = "note";
    }
    console.error(error);
  });
})();
