/**
 * Ends a process of tests that stays alive after its last test, and names what keeps it. A handle that a test leaves open keeps the process until its time
 * limit. --test-force-exit of Node would hide the leak.
 */
import { after } from 'node:test'

// Tests may replace the global ones.
const { setTimeout, clearTimeout } = globalThis

let [isLoaded, runsHooks, running] = [false, false, 0]
let [patienceMs, timer] = [0, undefined]
/** Resources of the process itself, such as pipes of its output. */
let ownResources = []

/** Call before the test files are imported: their hooks after all tests then run between the two hooks of this module, however long they take. */
export function beforeImports() {
  // The pipes are opened when they are first asked for.
  ownResources = process.stdout && process.stderr && process.getActiveResourcesInfo()
  after(() => {
    runsHooks = true
    cancel()
  })
}

/** Call when all test files are imported. `ms`: how long the process may stay alive with nothing to do. */
export function afterImports(ms) {
  patienceMs = ms
  isLoaded = true
  after(() => {
    runsHooks = false
    wait()
  })
  wait()
}

/** Counts tests outside suites and outermost suites, from the events of the test runner. */
export function count({ type, data }) {
  if (data?.nesting !== 0) return
  if (type === 'test:enqueue') {
    running++
    cancel()
  } else if (type === 'test:pass' || type === 'test:fail') {
    running--
    wait()
  }
}

function cancel() {
  clearTimeout(timer)
}

function wait() {
  cancel()
  if (!isLoaded || runsHooks || running > 0) return
  // The timer itself keeps no process alive.
  timer = setTimeout(end, patienceMs).unref()
}

function end() {
  const open = process.getActiveResourcesInfo()
  for (const own of ownResources) if (open.includes(own)) open.splice(open.indexOf(own), 1)
  console.error(`${open.length} ${open.length === 1 ? 'handle' : 'handles'} open after the last test: ${open.join(', ')}`)
  process.exit(1)
}
