// Chosen looks hold before the first paint. A file of its own, because nothing inline may run.
try {
  const { dataset } = document.documentElement;
  const theme = localStorage.getItem("palaver.theme");
  if (theme === "light" || theme === "dark") dataset.theme = theme;
  if (localStorage.getItem("palaver.density") === "compact") dataset.density = "compact";
  if (localStorage.getItem("palaver.motion") === "less") dataset.motion = "less";
} catch {
  // No storage: the usual looks it is.
}
