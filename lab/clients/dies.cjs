// A server of others ends once, between its work and its answer: as `DIES` exists, and the answer has `ANSWER` in it.
"use strict";
const fs = require("node:fs");
const write = process.stdout.write.bind(process.stdout);
process.stdout.write = (chunk, ...rest) => {
  if (String(chunk).includes(process.env.ANSWER) && fs.existsSync(process.env.DIES)) {
    fs.unlinkSync(process.env.DIES);
    process.exit(7);
  }
  return write(chunk, ...rest);
};
