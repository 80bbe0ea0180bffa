/** The keepers of the members of etcd and of the server, with programs that cannot be started for a while. */
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { noLog } from '#base/log'
import { seededRandom } from '#base/random'
import { VirtualClock } from '#base/virtualClock'
import { type ProcessRef, signalIfThere, waitForEnd } from '#host/processes'
import { realClock } from '#testing/realClock'
import { etcdMemberPaths } from '../etcd/members.ts'
import { type ClusterPaths, type ClusterState, clusterPaths, writeState } from '../localCluster/clusterState.ts'
import { runningProcess } from '../localCluster/processes.ts'
import { keepEtcd } from './keepEtcd.ts'
import { keepServer } from './keepServer.ts'
import type { SupervisorTools } from './supervisorTools.ts'

const skip = process.platform === 'linux' ? false : 'reads /proc'

interface World {
  readonly tools: SupervisorTools
  readonly paths: ClusterPaths
  readonly clock: VirtualClock
  readonly errors: string[]
  /** A folder of programs that is first on the PATH. */
  readonly programs: string
  /** Advances the clock by half seconds until `done` returns a value. */
  until<T>(done: () => Promise<T | undefined>): Promise<T>
}

async function withKeeper(keep: (tools: SupervisorTools, signal: AbortSignal) => Promise<void>, run: (world: World) => Promise<void>): Promise<void> {
  const home = await fs.mkdtemp(path.join(os.tmpdir(), 'skiff-keepers-'))
  const paths = clusterPaths(home, 'a')
  const programs = path.join(home, 'bin')
  await fs.mkdir(programs)
  const etcd = { token: 't', members: [{ name: 'etcd-1', clientPort: 1, peerPort: 2 }] }
  const state: ClusterState = { name: 'a', id: '0123', port: 3, nodes: [], simulatedNodes: [], verbosity: 0, etcd }
  await writeState(paths, state)
  const clock = new VirtualClock()
  const errors: string[] = []
  const log = { ...noLog, error: (error: unknown) => void errors.push(String(error)) }
  const tools = { clock, random: seededRandom(1), log, paths, state, verbosity: 0 } as unknown as SupervisorTools
  const until: World['until'] = async (done) => {
    const deadlineMs = realClock.monotonicMs() + 10_000
    for (;;) {
      const found = await done()
      if (found !== undefined) return found
      assert.ok(realClock.monotonicMs() < deadlineMs, 'nothing happens')
      await clock.advance(500)
      await realClock.sleep(2)
    }
  }
  const stop = new AbortController()
  const { PATH } = process.env
  process.env.PATH = programs
  const kept = keep(tools, stop.signal)
  kept.catch(() => {})
  try {
    await run({ tools, paths, clock, errors, programs, until })
  } finally {
    process.env.PATH = PATH
    stop.abort()
    await clock.advance(1000)
    await kept.finally(() => fs.rm(home, { recursive: true }))
  }
}

async function kill(ref: ProcessRef): Promise<void> {
  signalIfThere(ref.pid, 'SIGKILL')
  await waitForEnd(ref, 10_000, realClock)
}

test('ETC-18 a member of etcd whose program is missing for a while is tried again with growing pauses, and started when the program is there', { skip }, () =>
  withKeeper(keepEtcd, async ({ paths, clock, errors, programs, until }) => {
    await until(async () => errors.length >= 3 || undefined)
    for (const error of errors) assert.match(error, /spawn etcd ENOENT/)
    const [before, sinceMs] = [errors.length, clock.monotonicMs()]
    await until(async () => clock.monotonicMs() >= sinceMs + 60_000 || undefined)
    assert.ok(errors.length <= before + 15, `${errors.length - before} attempts in a minute`)
    await fs.writeFile(path.join(programs, 'etcd'), '#!/bin/sh\nexec /bin/sleep 600\n', { mode: 0o755 })
    await kill(await until(() => runningProcess(etcdMemberPaths(paths, 'etcd-1').pid)))
  }),
)

test('ETC-18 the supervisor keeps the server while the health of etcd cannot be read', { skip }, () =>
  withKeeper(
    (tools, signal) => keepServer(tools, 'server', signal),
    async ({ tools, paths, errors, until }) => {
      await fs.writeFile(paths.state, 'no description')
      await until(async () => errors.length >= 3 || undefined)
      for (const error of errors) assert.match(error, /is damaged/)
      const { etcd: _, ...withoutEtcd } = tools.state
      // This test's own entry, which the server's start would run again, is replaced by a program that waits.
      const entry = process.argv[1]
      process.argv[1] = path.join(paths.dir, 'entry.cjs')
      try {
        await fs.writeFile(process.argv[1], 'require("node:net").createServer().listen(0, "127.0.0.1")')
        await writeState(paths, withoutEtcd)
        await kill(await until(() => runningProcess(paths.server('server').pid)))
      } finally {
        process.argv[1] = entry as string
      }
    },
  ),
)
