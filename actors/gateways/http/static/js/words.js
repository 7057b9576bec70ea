// Numbers, durations and causes as people read them.

const SIGNALS = {
  1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 4: "SIGILL", 5: "SIGTRAP", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE",
  9: "SIGKILL", 10: "SIGUSR1", 11: "SIGSEGV", 12: "SIGUSR2", 13: "SIGPIPE", 14: "SIGALRM", 15: "SIGTERM",
};

// A duration in at most two units; formats like `span` in rekindle.worker.plain_text.
export function span(ms) {
  const seconds = Math.max(0, ms / 1000);
  if (seconds === 0) return "0 s";
  if (seconds < 0.9995) return `${(seconds * 1000).toFixed(0)} ms`;
  if (seconds < 9.95) return `${+seconds.toFixed(1)} s`;
  if (seconds < 59.5) return `${seconds.toFixed(0)} s`;
  const whole = Math.max(60, Math.floor(seconds));
  if (whole < 3600) return twoUnits(whole, 60, "min", 1, "s");
  if (whole < 86_400) return twoUnits(whole, 3600, "h", 60, "min");
  return twoUnits(whole, 86_400, "d", 3600, "h");
}

function twoUnits(seconds, large, largeName, small, smallName) {
  const rest = Math.floor((seconds % large) / small);
  return `${Math.floor(seconds / large)} ${largeName}${rest ? ` ${rest} ${smallName}` : ""}`;
}

// How long something has lasted, in whole seconds: a clock must not flicker.
export function elapsed(ms) {
  return span(Math.floor(ms / 1000) * 1000);
}

export function until(ms) {
  return ms <= 0 ? "now" : `in ${ms < 9_950 ? (Math.ceil(ms / 100) / 10).toFixed(1) + " s" : elapsed(ms + 999)}`;
}

export function moment(wallMs) {
  const when = new Date(wallMs);
  const today = when.toDateString() === new Date().toDateString();
  const time = when.toLocaleTimeString([], { hour12: false });
  return today ? time : `${when.toLocaleDateString([], { month: "short", day: "numeric" })} ${time}`;
}

export function signalName(number) {
  return SIGNALS[number] ?? `signal ${number}`;
}

export function cause(death) {
  if (death.signal !== null && death.signal !== undefined) return `killed by ${signalName(death.signal)}`;
  if (death.cause === "exited" && death.exit_code !== null) return `exited with code ${death.exit_code}`;
  return String(death.cause ?? "unknown").replaceAll("_", " ");
}

export function count(number, one, many = `${one}s`) {
  return `${number} ${number === 1 ? one : many}`;
}

export function number(value) {
  return value >= 100 ? Math.round(value).toLocaleString() : +value.toFixed(value >= 10 ? 1 : 2);
}
