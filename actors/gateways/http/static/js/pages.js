// The pages and their addresses.

import { fleet } from "./fleet.js";
import { job } from "./pages/job.js";
import { jobs } from "./pages/jobs.js";
import { schedules } from "./pages/schedules.js";
import { supervisor } from "./pages/supervisor.js";
import { worker } from "./worker.js";

// Those in the bar; `covers`: the addresses that belong to each.
export const PAGES = [
  { text: "Workers", hash: "#/", covers: /^(#\/?|)(\?|$)|^#\/worker\// },
  { text: "Jobs", hash: "#/jobs", covers: /^#\/jobs?\b/ },
  { text: "Schedules", hash: "#/schedules", covers: /^#\/schedules/ },
  { text: "Supervisor", hash: "#/supervisor", covers: /^#\/supervisor/ },
];

export function pageAt(hash) {
  const [path, query] = hash.split("?");
  const [, kind, name] = /^#\/(\w*)(?:\/(.+))?$/.exec(path) ?? [];
  if (kind === "worker" && name) return worker(decoded(name));
  if (kind === "job" && /^\d+$/.test(name)) return job(name);
  if (kind === "jobs") return jobs(new URLSearchParams(query));
  if (kind === "schedules") return schedules();
  if (kind === "supervisor") return supervisor();
  return fleet(new URLSearchParams(query));
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
