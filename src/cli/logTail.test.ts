import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { type TestContext, test } from 'node:test'
import { VirtualClock } from '#base/virtualClock'
import { followLogs, LogTail } from './logTail.ts'

async function folder(t: TestContext): Promise<(name: string) => string> {
  const dir = await fs.mkdtemp(path.join(os.tmpdir(), 'skiff-logs-'))
  t.after(() => fs.rm(dir, { recursive: true }))
  return (name) => path.join(dir, name)
}

test('a tail tells each whole line once, and the rest of a log that was moved aside first', async (t) => {
  const at = await folder(t)
  const [log, copy] = [at('server.log'), at('server-1.log')]
  const tail = new LogTail()
  assert.deepEqual(await tail.lines([log]), [], 'no log yet')
  await fs.writeFile(log, 'one\ntwø\nthr')
  assert.deepEqual(await tail.lines([log]), ['one', 'twø'])
  assert.deepEqual(await tail.lines([log]), [])
  await fs.appendFile(log, 'ee\n\n')
  assert.deepEqual(await tail.lines([log]), ['three', ''])
  await fs.appendFile(log, 'four\n')
  await fs.copyFile(log, copy)
  await fs.writeFile(log, 'five\n')
  assert.deepEqual(await tail.lines([log, copy]), ['four', 'five'])
  await fs.writeFile(log, '')
  assert.deepEqual(await tail.lines([log]), [], 'cut by somebody else')
})

test('following prints the last lines and then new ones, also of logs that appear later, until no process writes a log', async (t) => {
  const at = await folder(t)
  await fs.writeFile(at('server.log'), 'one\ntwo\nthree\n')
  const told: string[] = []
  const rounds = [
    async () => {},
    async () => {
      await fs.appendFile(at('server.log'), 'four\nfive\nsix\n')
      await fs.writeFile(at('agent.log'), 'hello\n')
    },
  ]
  const clock = new VirtualClock()
  let over = false
  const following = followLogs({
    clock,
    tail: 2,
    logs: async () => {
      const round = rounds.shift()
      if (!round) return undefined
      await round()
      return [
        { source: 'server', files: [at('server.log')] },
        { source: 'agent', files: [at('agent.log')] },
      ]
    },
    write: (source, line) => told.push(`${source}: ${line}`),
  }).finally(() => {
    over = true
  })
  // Files are read by other threads: only the event loop knows when they are done.
  while (!over) {
    await clock.advance(250)
    await new Promise((resolve) => setImmediate(resolve))
  }
  await following
  assert.deepEqual(told, ['server: two', 'server: three', 'server: four', 'server: five', 'server: six', 'agent: hello'])
})
