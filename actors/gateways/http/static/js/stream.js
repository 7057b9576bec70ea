// The supervisor's event stream, for as long as the page is open.
//
// `fetch` rather than `EventSource`: it tells why a connection was refused, detects silence (keepalives
// are comments, which EventSource hides), and can send the last event's id on a new connection too, so
// that no event is lost in an outage.

import { authorization } from "./api.js";

const SILENCE_MS = 12_000; // the server sends something every 3 s
const DELAYS_MS = [300, 700, 1_500, 3_000, 5_000];

export class Stream {
  #url;
  #heard;
  #lastId = null;
  #attempt = 0;
  #abort = null;
  #timer = null;
  #stopped = false;

  // heard: { opened(), alive(), event(name, data), lost(retryInMs), refused(status) }
  constructor(url, heard) {
    this.#url = url;
    this.#heard = heard;
    window.addEventListener("online", () => this.now());
    document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && this.now());
  }

  start() {
    this.#stopped = false;
    this.#run();
  }

  stop() {
    this.#stopped = true;
    clearTimeout(this.#timer);
    this.#timer = null;
    this.#abort?.abort();
  }

  // Retry at once, if a retry is scheduled.
  now() {
    if (this.#timer === null || this.#stopped) return;
    clearTimeout(this.#timer);
    this.#timer = null;
    this.#run();
  }

  async #run() {
    const abort = (this.#abort = new AbortController());
    try {
      const response = await this.#connect(abort);
      if (response === null) return;
      await this.#read(response.body.getReader(), abort);
    } catch {
      // Any error means that the connection is gone.
    }
    abort.abort();
    if (!this.#stopped) this.#wait();
  }

  async #connect(abort) {
    const headers = { accept: "text/event-stream", ...authorization() };
    if (this.#lastId !== null) headers["last-event-id"] = this.#lastId;
    const patience = setTimeout(() => abort.abort(), SILENCE_MS);
    const response = await fetch(this.#url, { headers, cache: "no-store", credentials: "omit", signal: abort.signal });
    clearTimeout(patience);
    if (response.ok) return response;
    abort.abort();
    if (response.status === 401 || response.status === 403 || response.status === 404) {
      this.stop();
      this.#heard.refused(response.status);
      return null;
    }
    throw new Error(`status ${response.status}`);
  }

  async #read(reader, abort) {
    const decoder = new TextDecoder();
    let text = "";
    let silence = null;
    const listen = () => {
      clearTimeout(silence);
      silence = setTimeout(() => abort.abort(), SILENCE_MS);
      this.#heard.alive();
    };
    listen();
    this.#attempt = 0;
    this.#heard.opened();
    try {
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return;
        listen();
        text += decoder.decode(value, { stream: true });
        const frames = text.split(/\r?\n\r?\n/);
        text = frames.pop();
        frames.forEach((frame) => this.#take(frame));
      }
    } finally {
      clearTimeout(silence);
    }
  }

  #take(frame) {
    let name = "message";
    const data = [];
    for (const line of frame.split(/\r?\n/)) {
      const at = line.indexOf(":");
      if (at <= 0) continue; // a comment, or nothing
      const value = line.slice(at + 1).replace(/^ /, "");
      const field = line.slice(0, at);
      if (field === "event") name = value;
      else if (field === "data") data.push(value);
      else if (field === "id") this.#lastId = value;
    }
    if (data.length === 0) return;
    let document = null;
    try {
      document = JSON.parse(data.join("\n"));
    } catch {
      return;
    }
    // So that an outage before the very first event loses nothing either.
    if (name === "connected" && this.#lastId === null) this.#lastId = String(document.last_id);
    this.#heard.event(name, document);
  }

  #wait() {
    const delay = DELAYS_MS[Math.min(this.#attempt++, DELAYS_MS.length - 1)] * (0.8 + 0.4 * Math.random());
    this.#timer = setTimeout(() => {
      this.#timer = null;
      this.#run();
    }, delay);
    this.#heard.lost(delay);
  }
}
