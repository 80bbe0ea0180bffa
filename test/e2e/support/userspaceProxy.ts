/** A process that runs the proxy mode userspace: each line of its standard input is a model, and it answers `applied` when it serves it. */
import { createInterface } from 'node:readline'
import { noLog } from '../../../src/base/log.ts'
import { noMetrics } from '../../../src/base/metrics.ts'
import { createConntrack } from '../../../src/host/conntrack.ts'
import { createExec } from '../../../src/host/exec.ts'
import type { ProxyModel } from '../../../src/proxy/model.ts'
import { userspace } from '../../../src/proxy/modes/userspace.ts'
import { realClock } from '../../../src/testing/realClock.ts'

const exec = createExec()
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]()
const stop = new AbortController()
let [model, isFirst]: [ProxyModel, boolean] = [[], true]
const models = {
  newest: () => model,
  next: async () => {
    if (!isFirst) console.log('applied')
    isFirst = false
    const { value, done } = await lines.next()
    if (done) process.exit(0)
    model = JSON.parse(value) as ProxyModel
    return model
  },
}
await userspace.run({ exec, clock: realClock, log: noLog, metrics: noMetrics, conntrack: createConntrack(exec) }, models, stop.signal)
