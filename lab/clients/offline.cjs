// Names of other machines do not resolve, as where there is no network: the servers' answers are the same everywhere.
"use strict";
const dns = require("node:dns");
const { isIP } = require("node:net");
const { lookup } = dns;

dns.lookup = (name, options, done = options) => {
  if (!name || name === "localhost" || isIP(name)) return lookup(name, options, done);
  const error = Object.assign(new Error(`getaddrinfo ENOTFOUND ${name}`), {
    code: "ENOTFOUND",
    errno: -3008,
    syscall: "getaddrinfo",
    hostname: name,
  });
  process.nextTick(done, error);
};
