// Loaded into a server before it starts: it prints the address at which it listens, which the system has chosen.
"use strict";
const { Server } = require("node:net");
const { listen } = Server.prototype;

Server.prototype.listen = function (...args) {
  this.once("listening", () => console.log(`http://127.0.0.1:${this.address().port}/mcp`));
  return listen.apply(this, args);
};
