import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { getEventListeners } from 'node:events'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { seededRandom } from '#base/random'
import { VirtualClock } from '#base/virtualClock'
import { superviseProcess } from './superviseProcess.ts'

/** Real processes, virtual pauses. `scripts`: what each start runs; undefined for a start without surroundings. */
async function supervise(scripts: readonly (string | undefined)[], stopAfter: (lines: readonly string[]) => boolean) {
  const clock = new VirtualClock()
  const stop = new AbortController()
  const lines: string[] = []
  const startedMs: number[] = []
  let starts = 0
  const running = superviseProcess(
    {
      start: async () => {
        const script = scripts[Math.min(starts++, scripts.length - 1)]
        startedMs.push(clock.monotonicMs())
        if (script === undefined) return undefined
        return spawn('sh', ['-c', script], { stdio: ['pipe', 'ignore', 'ignore'] })
      },
      onMissing: () => void lines.push('missing'),
      onStarted: async () => void lines.push('started'),
      onEnded: async (child: ChildProcess, stopped) => void lines.push(`ended ${child.exitCode}${stopped ? ' as asked' : ''}`),
      end: async (child, ended) => {
        child.stdin?.end()
        await ended
      },
    },
    { clock, random: seededRandom(1) },
    stop.signal,
  )
  let mostListeners = 0
  while (!stopAfter(lines)) {
    mostListeners = Math.max(mostListeners, getEventListeners(stop.signal, 'abort').length)
    await nextTurn()
    await clock.advance(100)
  }
  stop.abort()
  await running
  return { lines, startedMs, mostListeners, left: getEventListeners(stop.signal, 'abort').length }
}

test('a process that ends at once is started again after growing pauses, and leaves no listener behind', async () => {
  const { lines, startedMs, mostListeners, left } = await supervise(['exit 3'], (seen) => seen.length >= 16)
  assert.deepEqual(lines.slice(0, 4), ['started', 'ended 3', 'started', 'ended 3'])
  const pauses = startedMs.slice(1, 8).map((ms, i) => ms - (startedMs[i] ?? 0))
  for (const [i, leastMs] of [500, 1000, 2000, 4000, 8000, 10_000, 10_000].entries()) assert.ok((pauses[i] ?? 0) >= leastMs, `${pauses}`)
  assert.ok(mostListeners <= 1, `${mostListeners} listeners`)
  assert.equal(left, 0)
})

test('on abort a running process is asked to end, and run resolves after it has', async () => {
  const { lines } = await supervise(['cat; exit 0'], (seen) => seen.length >= 1)
  assert.deepEqual(lines, ['started', 'ended 0 as asked'])
})

test('onMissing is called once until a start succeeds again', async () => {
  const { lines, startedMs } = await supervise([undefined, undefined, undefined, 'exit 0', undefined, 'cat'], (seen) => seen.length >= 5)
  assert.deepEqual(lines.slice(0, 5), ['missing', 'started', 'ended 0', 'missing', 'started'])
  assert.deepEqual(startedMs.slice(0, 4), [0, 500, 1000, 1500])
})
