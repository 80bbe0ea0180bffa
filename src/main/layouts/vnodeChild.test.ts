/** Starting and ending a node's program when the node does not answer. A node that does is in test/e2e. */
import assert from 'node:assert/strict'
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { VirtualClock } from '#base/virtualClock'
import { isRunning, type ProcessRef, startTimeOf, waitForEnd } from '#host/processes'
import { realClock } from '#testing/realClock'
import { startInVnode, VnodeChild } from './vnodeChild.ts'

const skip = process.platform === 'linux' ? false : 'reads /proc'

/** The process whose pid a program writes into a file. */
async function processIn(file: string): Promise<ProcessRef> {
  const deadlineMs = realClock.monotonicMs() + 10_000
  for (;;) {
    const pid = Number(/^(\d+)\n/.exec(readFileSync(file, 'utf8'))?.[1])
    if (pid > 0) return { pid, startTime: (await startTimeOf(pid)) ?? '' }
    assert.ok(realClock.monotonicMs() < deadlineMs, `${file} has no pid`)
    await realClock.sleep(5)
  }
}

test('a node that does not answer fails the start of a program within 5 s, and what was started there is killed', { skip }, async (t) => {
  const folder = mkdtempSync(path.join(tmpdir(), 'vnode-child-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const clock = new VirtualClock()
  const file = path.join(folder, 'log')
  const log = openSync(file, 'a')
  // As nsenter does, it has a child, which holds the other end of the pipe. Its standard error is the log.
  const enter = ['sh', '-c', 'sleep 600 & echo $! >&2; wait', 'sh']
  const started = startInVnode({ pid: process.pid, startTime: '' }, ['agent'], { log, clock, enter })
  let outcome = 'starts'
  const settled = started.then(
    () => (outcome = 'started'),
    (error) => (outcome = String(error)),
  )
  try {
    const sleep = await processIn(file)
    assert.ok(await isRunning(sleep))
    await clock.advance(4999)
    assert.equal(outcome, 'starts')
    await clock.advance(1)
    await settled
    assert.equal(outcome, 'Error: the node did not start agent within 5 s')
    assert.ok(await waitForEnd(sleep, 10_000, realClock), 'the child is killed')
  } finally {
    await clock.advance(5000)
    await settled
    closeSync(log)
  }
})

test('the end of a program that SIGKILL does not end is waited for within its grace time and 2 s', async () => {
  const clock = new VirtualClock()
  const child = new VnodeChild({ pid: 0, startTime: '' }, new Socket())
  const ended = child.end(new Promise(() => {}), 5000, clock)
  ended.catch(() => {})
  await clock.advance(6999)
  assert.equal(await Promise.race([ended, 'waits']), 'waits')
  await clock.advance(1)
  await assert.rejects(ended, /process 0 of the node does not end, not even by SIGKILL/)
})
