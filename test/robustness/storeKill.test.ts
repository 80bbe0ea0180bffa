/**
 * The embedded store under kill -9 while 64 writers write: nothing acknowledged is lost, revisions never go back, and a watch
 * resumed after what was seen last misses and repeats nothing.
 */
import assert from 'node:assert/strict'
import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { after, test } from 'node:test'
import { noLog } from '#base/log'
import { openLmdbStore } from '#store/drivers/lmdb'
import { realClock } from '#testing/realClock'
import { sourceProgram } from '../support/sourceProgram.ts'

const folder = mkdtempSync(join(tmpdir(), 'skiff-kill-'))
after(() => rmSync(folder, { recursive: true, force: true }))
const rounds = 20
const writesPerRound = 300
const writerFile = join(import.meta.dirname, 'storeKillWriter.ts')

test('ETC-10 ETC-06 kill -9 loses no acknowledged write and no watched revision', { timeout: 120_000 }, async () => {
  const path = join(folder, 'store.lmdb')
  const acknowledged = new Map<string, number>()
  const watched: { revision: number; key: string }[] = []
  let revision = 1
  for (let round = 0; round < rounds; round++) {
    const lastSeen = watched.at(-1)?.revision ?? 1
    await killedRun(path, round, lastSeen + 1, acknowledged, watched)
    const store = await openLmdbStore({ path, clock: realClock, log: noLog })
    assert.ok((await store.latestRevision()) >= Math.max(revision, ...acknowledged.values()), 'revisions never go back')
    revision = await store.latestRevision()
    const { kvs } = await store.range('k/', 'k0')
    const stored = new Map(kvs.map((kv) => [kv.key, kv.modRevision]))
    for (const [key, at] of acknowledged) assert.equal(stored.get(key), at, `${key} was acknowledged`)
    for (const { key, value } of kvs) assert.equal(Buffer.from(value).toString(), key.repeat(8))
    // Every key is written once, so the watch up to here must have delivered exactly the oldest keys, in order.
    const inOrder = kvs.map((kv) => ({ revision: kv.modRevision, key: kv.key })).sort((a, b) => a.revision - b.revision)
    assert.deepEqual(watched, inOrder.slice(0, watched.length))
    await store.close()
  }
  assert.ok(acknowledged.size >= rounds * writesPerRound)
})

/** Runs the writer until it has acknowledged enough, kills it, and takes down everything it said. */
async function killedRun(
  path: string,
  round: number,
  from: number,
  acknowledged: Map<string, number>,
  watched: { revision: number; key: string }[],
): Promise<void> {
  const child: ChildProcessByStdio<null, Readable, null> = spawn(process.execPath, [...sourceProgram(writerFile), path, `${round}`, `${from}`], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const exited = once(child, 'exit')
  let count = 0
  let rest = ''
  child.stdout.setEncoding('utf8')
  for await (const chunk of child.stdout as AsyncIterable<string>) {
    const lines = (rest + chunk).split('\n')
    // A last line without its end was cut off by the kill.
    rest = lines.pop() ?? ''
    for (const line of lines) {
      const [kind, first = '', second = ''] = line.split(' ')
      assert.notEqual(kind, 'failed', line)
      if (kind === 'a') {
        acknowledged.set(first, Number(second))
        count++
      } else if (kind === 'w') watched.push({ revision: Number(first), key: second })
    }
    if (count >= writesPerRound) child.kill('SIGKILL')
  }
  await exited
}
