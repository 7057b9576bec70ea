// Before anything is drawn: the colours that were chosen here the last time, if any.
(() => {
  const chosen = localStorage.getItem("rekindle-theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
})();
