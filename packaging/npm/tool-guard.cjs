#!/usr/bin/env node
// Runs the program of this platform's package.
'use strict'
const { spawn } = require('node:child_process')
const os = require('node:os')
const { isatty } = require('node:tty')

const platform = `@tool-reliability/${process.platform}-${process.arch}`
let program
try {
  program = require.resolve(`${platform}/bin/tool-guard`)
} catch {
  console.error(`tool-reliability: the package ${platform} is missing: install tool-reliability again with optional dependencies, or build from source if there is none for this platform`)
  process.exit(127)
}

// Before the program starts, so that no signal ends this process alone.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  // A terminal sends SIGINT to the program, too.
  process.on(signal, () => { if (signal !== 'SIGINT' || !isatty(0)) child.kill(signal) })
}
const child = spawn(program, process.argv.slice(2), { stdio: 'inherit' })
child.on('error', (error) => {
  console.error(`tool-reliability: cannot run ${program}: ${error.message}; install the package ${platform} again`)
  process.exit(126)
})
child.on('exit', (code, signal) => process.exit(signal ? 128 + os.constants.signals[signal] : code))
