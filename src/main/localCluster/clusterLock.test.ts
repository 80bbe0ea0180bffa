/** A command that deletes a cluster signals the `up` that wrote the lock, and no other process that has its pid. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { deadlineScope } from '#base/abortScope'
import { orAborted } from '#base/orAborted'
import type { Progress } from '#cli/progress'
import { startTimeOf } from '#host/processes'
import { realClock } from '#testing/realClock'
import { exclusively, exclusivelyToDelete } from './clusterLock.ts'
import { clusterPaths } from './clusterState.ts'
import type { LocalClusterDeps } from './deps.ts'

const skip = process.platform === 'linux' ? false : 'reads /proc'
const progress: Progress = { step: (_title, work) => work(() => {}), note: () => {} }

interface Held {
  readonly lock: string
  /** A process whose command line is that of an `up`. */
  readonly pid: number
  /** Resolves with the signal that ended it. @throws Error when it does not end within ten seconds */
  end(): Promise<NodeJS.Signals | null>
  /** Deletes the cluster. Its wait for the lock times out at its second look, unless `waits`. */
  deletes(options?: { readonly waits: boolean }): Promise<string>
  /** Text of a lock that a process of this host writes. */
  text(pid: number, startTime: string): Promise<string>
}

async function withUp(run: (held: Held) => Promise<void>): Promise<void> {
  const home = await fs.mkdtemp(path.join(os.tmpdir(), 'skiff-cluster-lock-'))
  const script = path.join(home, 'skiff.cjs')
  await fs.writeFile(script, "process.stdin.resume(); console.log('runs')")
  const up = spawn(process.execPath, [script, 'up', 'a'])
  await once(up.stdout, 'data')
  const ended = once(up, 'exit').then(([, signal]) => signal as NodeJS.Signals | null)
  const end = async () => {
    using limit = deadlineScope({ clock: realClock, ms: 10_000, reason: () => new Error('the up does not end') })
    return await orAborted(ended, limit.signal)
  }
  let nowMs = 0
  const clock = { ...realClock, monotonicMs: () => (nowMs += 100_000) }
  const deps = { clock, home, isRoot: false, platform: 'linux', self: [] } as unknown as LocalClusterDeps
  const deletions: Promise<string>[] = []
  const deletes: Held['deletes'] = (options) => {
    const deleted = exclusivelyToDelete({ ...deps, ...(options?.waits ? { clock: realClock } : {}) }, 'a', progress, async () => 'deleted')
    // A test that fails before it waits for it reports its own failure.
    deleted.catch(() => {})
    deletions.push(deleted)
    return deleted
  }
  const { lock } = clusterPaths(home, 'a')
  const text = async (pid: number, startTime: string) => {
    let own = ''
    await exclusively({ ...deps, clock: realClock }, 'a', progress, async () => {
      own = await fs.readlink(lock)
    })
    return own.replace(/^\d+ \S*/, `${pid} ${startTime}`)
  }
  try {
    await run({ lock, pid: up.pid as number, end, deletes, text })
  } finally {
    up.kill('SIGKILL')
    await ended
    // One that still waits for the lock gets it now, and ends.
    await fs.rm(lock, { force: true })
    await Promise.allSettled(deletions)
    await fs.rm(home, { recursive: true })
  }
}

test('delete ends an up that holds the cluster', { skip }, () =>
  withUp(async ({ lock, pid, end, deletes, text }) => {
    await fs.symlink(await text(pid, (await startTimeOf(pid)) ?? ''), lock)
    const deleted = deletes({ waits: true })
    assert.equal(await end(), 'SIGUSR2')
    assert.equal(await deleted, 'deleted')
  }),
)

test('delete signals no process whose pid a lock of another host or pid namespace names', { skip }, () =>
  withUp(async ({ lock, pid, end, deletes, text }) => {
    const own = await text(pid, (await startTimeOf(pid)) ?? '')
    await fs.symlink(own.replace(/\w+$/, '0123456789ab'), lock)
    await assert.rejects(deletes(), /works on cluster "a"/)
    process.kill(pid, 'SIGKILL')
    assert.equal(await end(), 'SIGKILL')
  }),
)

test('delete signals no process that has the pid of an up that has ended, and takes its lock over', { skip }, () =>
  withUp(async ({ lock, pid, end, deletes, text }) => {
    await fs.symlink(await text(pid, '1'), lock)
    assert.equal(await deletes(), 'deleted')
    process.kill(pid, 'SIGKILL')
    assert.equal(await end(), 'SIGKILL')
  }),
)
