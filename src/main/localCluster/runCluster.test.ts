/** HA-01: how `skiff server run` learns that the supervisor of a cluster has ended. */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { VirtualClock } from '#base/virtualClock'
import { realClock } from '#testing/realClock'
import { exclusively } from './clusterLock.ts'
import { clusterPaths } from './clusterState.ts'
import type { LocalClusterDeps } from './deps.ts'
import { rememberProcess } from './processes.ts'
import { followSupervisor, runCluster } from './runCluster.ts'

const skip = process.platform === 'linux' ? false : 'reads /proc'

/** Ends the process that stands for the supervisor, and resolves with what followSupervisor() says. */
async function endingAfter(change: (supervisor: ChildProcess, pidFile: string, stop: AbortController) => Promise<void>): Promise<string> {
  const directory = await fs.mkdtemp(path.join(os.tmpdir(), 'skiff-run-'))
  const pidFile = path.join(directory, 'supervisor.pid')
  const supervisor = spawn('sleep', ['600'])
  const [clock, stop] = [new VirtualClock(), new AbortController()]
  try {
    await once(supervisor, 'spawn')
    await rememberProcess(pidFile, supervisor.pid as number, clock)
    const followed = followSupervisor(pidFile, { clock }, stop.signal)
    let ending: string | undefined
    void followed.then((found) => {
      ending = found
    })
    await clock.advance(5000)
    assert.equal(ending, undefined)
    await change(supervisor, pidFile, stop)
    const deadlineMs = realClock.monotonicMs() + 10_000
    while (ending === undefined) {
      assert.ok(realClock.monotonicMs() < deadlineMs, 'the end goes unnoticed')
      await clock.advance(1000)
      await realClock.sleep(5)
    }
    return ending
  } finally {
    supervisor.kill('SIGKILL')
    await fs.rm(directory, { recursive: true })
  }
}

async function kill(supervisor: ChildProcess): Promise<void> {
  supervisor.kill('SIGKILL')
  await once(supervisor, 'exit')
}

test('HA-01 a supervisor that was killed leaves its pid file: the service fails, and is started again', { skip }, async () =>
  assert.equal(await endingAfter(kill), 'crashed'),
)

test('HA-01 skiff stop removes the pid file: the service ends without a failure', { skip }, async () => {
  const stopped = async (supervisor: ChildProcess, pidFile: string) => {
    await kill(supervisor)
    await fs.rm(pidFile)
  }
  assert.equal(await endingAfter(stopped), 'stopped')
})

test('HA-01 a service that gets SIGTERM ends at once', { skip }, async () =>
  assert.equal(await endingAfter(async (_supervisor, _pidFile, stop) => stop.abort()), 'asked'),
)

test('HA-01 a service that waits for another command on its cluster ends with 0 at once after SIGTERM', { skip, timeout: 30_000 }, async () => {
  const home = await fs.mkdtemp(path.join(os.tmpdir(), 'skiff-run-'))
  const deps = { clock: realClock, home, isRoot: false, platform: 'linux', self: [] } as unknown as LocalClusterDeps
  const paths = clusterPaths(home, 'a')
  await fs.mkdir(paths.dir, { recursive: true })
  await fs.writeFile(paths.state, '{}')
  const stop = new AbortController()
  try {
    const code = await exclusively(deps, 'a', undefined, () => {
      const running = runCluster(deps, ['a'], stop.signal)
      stop.abort(new Error('SIGTERM'))
      return running
    })
    assert.equal(code, 0)
  } finally {
    await fs.rm(home, { recursive: true })
  }
})
