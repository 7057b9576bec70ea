// Before anything is drawn: apply the colours that the user chose last, if any.
(() => {
  const chosen = localStorage.getItem("rekindle-theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
})();
