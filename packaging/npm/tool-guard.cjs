#!/usr/bin/env node
// Runs the program of this platform's package.
'use strict'
const { spawn } = require('node:child_process')
const os = require('node:os')

const platform = `@tool-reliability/${process.platform}-${process.arch}`
let program
try {
  program = require.resolve(`${platform}/bin/tool-guard`)
} catch {
  console.error(`tool-reliability: the package ${platform} is missing: install tool-reliability again with optional dependencies, or build from source if there is none for this platform`)
  process.exit(127)
}

const child = spawn(program, process.argv.slice(2), { stdio: 'inherit' })
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  process.on(signal, () => child.kill(signal))
}
child.on('error', (error) => {
  console.error(`tool-reliability: cannot run ${program}: ${error.message}`)
  process.exit(126)
})
child.on('exit', (code, signal) => process.exit(signal ? 128 + os.constants.signals[signal] : code))
