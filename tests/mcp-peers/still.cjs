// Loaded into a server before it starts: its clock stands still, its chance is counted, and its
// delays of a second and more take a tenth. Two sessions with the same lines then have the same answers.
"use strict";
const crypto = require("node:crypto");
const { syncBuiltinESMExports } = require("node:module");
const { promisify } = require("node:util");

const NOON = Date.UTC(2026, 0, 1, 12);
const RealDate = Date;
globalThis.Date = class Date extends RealDate {
  constructor(...parts) {
    super(...(parts.length ? parts : [NOON]));
  }
  static now() {
    return NOON;
  }
};

let drawn = 0;
Math.random = () => (++drawn % 97) / 97;
crypto.randomBytes = (size) => Buffer.alloc(size, ++drawn);
crypto.randomUUID = () => `00000000-0000-4000-8000-${String(++drawn).padStart(12, "0")}`;
syncBuiltinESMExports();

const realTimeout = globalThis.setTimeout;
globalThis.setTimeout = (run, delay, ...args) =>
  realTimeout(run, delay >= 1000 ? delay / 10 : delay, ...args);
globalThis.setTimeout[promisify.custom] = realTimeout[promisify.custom];
