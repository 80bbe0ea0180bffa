/**
 * The process that gets killed: writes to an embedded store 64 ways at once, and tells what was acknowledged and what a watch has seen.
 * One line per event on stdout: `a <key> <revision>` for an acknowledged write, `w <revision> <key>` for a watched one.
 */
import { noLog } from '#base/log'
import { openLmdbStore } from '#store/drivers/lmdb'
import { realClock } from '#testing/realClock'

const [path = '', round = '0', from = '1'] = process.argv.slice(2)
const store = await openLmdbStore({ path, clock: realClock, log: noLog })
// Written at once and in full: a line that a killed process lost would make the test too kind, never too strict.
let lines: string[] = []
const tell = (line: string) => {
  lines.push(line)
}
const flush = () => {
  if (lines.length > 0) process.stdout.write(`${lines.join('\n')}\n`)
  lines = []
}
const watching = store.watch(
  { from: 'k/', to: 'k0', startRevision: Number(from) },
  ({ revision, events }) => {
    for (const { kv } of events) tell(`w ${revision} ${kv.key}`)
    flush()
  },
  new AbortController().signal,
)
watching.catch((error: unknown) => {
  tell(`failed ${String(error)}`)
  flush()
})
tell('ready')
flush()

const keptRevisions = 1000
const garbage = { key: 'c/x', from: 'c/x', value: new Uint8Array(100) }

async function writer(lane: number): Promise<void> {
  for (let i = 0; ; i++) {
    const key = `k/${round}/${lane}/${i}`
    const { revision } = await store.transact({ compare: [], success: [{ type: 'put', key, value: new Uint8Array(Buffer.from(key.repeat(8))) }] })
    tell(`a ${key} ${revision}`)
    flush()
    if (lane > 0) continue
    // Garbage and compactions meanwhile, so that kills hit them too; far enough back to leave the watch alone.
    await store.transact({ compare: [], success: [{ type: i % 3 === 2 ? 'delete' : 'put', ...garbage }] })
    if (revision > keptRevisions) store.compact(revision - keptRevisions).catch(() => {})
  }
}
await Promise.all(Array.from({ length: 64 }, (_, lane) => writer(lane)))
