// A chosen theme holds before the first paint. A file of its own, because nothing inline may run.
try {
  const theme = localStorage.getItem("palaver.theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {
  // No storage: the system's theme it is.
}
