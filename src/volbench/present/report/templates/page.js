// Downloads come unpacked where the browser can do that.
if ("DecompressionStream" in window) {
  for (const link of document.querySelectorAll(".downloads a[download]")) {
    const name = link.download.replace(/\.gz$/, "");
    link.addEventListener("click", async (event) => {
      event.preventDefault();
      save(name, await unpacked(link.href.split(",")[1]));
    });
  }
}
// On paper nothing can be unfolded, so everything that has a text is.
const opened = [];
addEventListener("beforeprint", () => {
  for (const part of document.querySelectorAll("details:not([open]):not(.live-only)")) {
    part.open = true;
    opened.push(part);
  }
});
addEventListener("afterprint", () => {
  for (const part of opened.splice(0)) part.open = false;
});
