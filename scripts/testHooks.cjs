/**
 * Loads node's test runner without its hook on every promise. The runner keeps the test of each asynchronous resource, so that it knows which test an error without a
 * catch belongs to; each promise of the code under test then has a destructor. Here it keeps the tests themselves, and such an error belongs to the test that started
 * last. A module for --require, since the runner takes both functions when it is first loaded.
 */
const hooks = require('node:async_hooks')

const { AsyncResource, createHook, executionAsyncId } = hooks
let runner
let startedLast

/** Each resource of the runner is a test or a suite. */
hooks.AsyncResource = class extends AsyncResource {
  constructor(type, options) {
    super(type, options)
    runner?.init(this.asyncId(), type, this.triggerAsyncId(), this)
  }

  runInAsyncScope(...args) {
    startedLast = this
    return super.runInAsyncScope(...args)
  }
}
hooks.createHook = (callbacks) => {
  runner = callbacks
  const hook = { enable: () => hook, disable: () => hook }
  return hook
}
require('node:test')
hooks.AsyncResource = AsyncResource
hooks.createHook = createHook

/** Before the runner asks which test the error belongs to. */
function attribute(error) {
  if (!runner || !startedLast) throw error
  const id = executionAsyncId()
  runner.init(id, 'error', startedLast.asyncId(), {})
  setImmediate(() => runner.destroy(id))
}
process.prependListener('uncaughtException', attribute)
process.prependListener('unhandledRejection', attribute)
