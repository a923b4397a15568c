// Hears from the server when a cluster was looked at again. A lost connection is said, and tried again, a little later each time.

import { addressOf, headers } from "./api.js";

const FIRST_PAUSE = 1000;
const LONGEST_PAUSE = 15000;
const SILENT = 30000;

export class Feed {
  constructor(parameters, heard, stateChanged) {
    this.parameters = parameters;
    this.heard = heard;
    this.stateChanged = stateChanged;
    this.pause = FIRST_PAUSE;
    this.ended = false;
    this.run();
  }

  end() {
    this.ended = true;
    this.control?.abort();
  }

  async run() {
    while (!this.ended) {
      try {
        await this.listen();
      } catch (problem) {
        if (this.ended) return;
        this.stateChanged({ lost: true, refused: problem.status === 401 || problem.status === 403 });
      }
      if (!this.ended) await this.rest();
    }
  }

  async rest() {
    await new Promise((done) => setTimeout(done, this.pause));
    this.pause = Math.min(this.pause * 2, LONGEST_PAUSE);
  }

  async listen() {
    this.control = new AbortController();
    const response = await fetch(addressOf("events", this.parameters), { headers: headers(), signal: this.control.signal });
    if (!response.ok) throw Object.assign(new Error("refused"), { status: response.status });
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { value, done } = await this.inTime(reader.read());
      if (done) throw new Error("ended");
      const parts = (rest + value).split("\n\n");
      rest = parts.pop();
      parts.forEach((part) => this.take(part));
    }
  }

  // A connection that is silent for longer than the server ever is, is lost.
  inTime(promise) {
    return new Promise((done, failed) => {
      const timer = setTimeout(() => { this.control.abort(); failed(new Error("silent")); }, SILENT);
      promise.then(done, failed).finally(() => clearTimeout(timer));
    });
  }

  take(part) {
    const line = part.split("\n").find((text) => text.startsWith("data: "));
    if (!line) return;
    this.pause = FIRST_PAUSE;
    const look = JSON.parse(line.slice("data: ".length));
    this.stateChanged({ lost: false, problem: look.problem });
    this.heard(look);
  }
}
