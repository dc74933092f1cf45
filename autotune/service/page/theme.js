// Sets the colours before the first paint, so that a dark page does not flash: a classic script, not a module.
(() => {
  const KEY = "autotune-theme";
  const dark = matchMedia("(prefers-color-scheme: dark)");
  let choice = "system";
  try {
    choice = localStorage.getItem(KEY) ?? "system";
  } catch {
    // Without storage both modes still work.
  }

  function apply() {
    const theme = choice === "system" ? (dark.matches ? "dark" : "light") : choice;
    if (document.documentElement.dataset.theme === theme) return;
    document.documentElement.dataset.theme = theme;
    document.dispatchEvent(new CustomEvent("theme", { detail: theme }));
  }

  dark.addEventListener("change", apply);
  apply();
  document.addEventListener("DOMContentLoaded", () => {
    const select = document.getElementById("theme");
    select.value = choice;
    select.addEventListener("change", () => {
      choice = select.value;
      try {
        localStorage.setItem(KEY, choice);
      } catch {
        // As above.
      }
      apply();
    });
  });
})();
