// Numbers as people say them.

const SIGNALS = {
  1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 4: "SIGILL", 5: "SIGTRAP", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE",
  9: "SIGKILL", 10: "SIGUSR1", 11: "SIGSEGV", 12: "SIGUSR2", 13: "SIGPIPE", 14: "SIGALRM", 15: "SIGTERM",
};

export function span(ms) {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${seconds % 60} s`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return `${hours} h ${minutes % 60} min`;
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

// For delays, where tenths matter.
export function delay(ms) {
  return ms < 10_000 ? `${+(ms / 1000).toFixed(1)} s` : span(ms);
}

export function until(ms) {
  return ms <= 0 ? "now" : `in ${ms < 9_950 ? (Math.ceil(ms / 100) / 10).toFixed(1) + " s" : span(ms + 999)}`;
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
