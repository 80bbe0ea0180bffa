/**
 * ETC-12: API servers over one etcd, Debian's or `skiff etcd serve`'s, agree over upstream's key on which of them compacts. The clock of the compactors is the
 * test's; etcd is asked meanwhile.
 */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { compactRegularly } from '#apiserver/registry/compactor'
import { RevisionTimes } from '#apiserver/registry/revisionTimes'
import type { Clock } from '#base/clock'
import { noLog } from '#base/log'
import { seededRandom } from '#base/random'
import { VirtualClock } from '#base/virtualClock'
import { openEtcdStore } from '#store/drivers/etcd/etcdStore'
import type { Revision, Store } from '#store/store'
import { changedStore } from '#testing/changedStore'
import { realClock } from '#testing/realClock'
import { obstacleToEtcd, startEtcd } from '../../support/etcdServer.ts'
import { serveStore } from '../../support/servedStore.ts'
import { until } from '../../support/until.ts'

const options = { skip: obstacleToEtcd(), timeout: 60_000 }
const intervalMs = 300_000
const run = promisify(execFile)

interface Server {
  readonly store: Store
  readonly compactions: Revision[]
  /** How often it has begun to wait for the next turn. */
  waits: number
  stop(): Promise<void>
}

/** The part of an API server that compacts, over a connection of its own. */
async function startServer(url: string, clock: VirtualClock, seed: number): Promise<Server> {
  const store = await openEtcdStore({ endpoints: [url], clock: realClock, random: seededRandom(seed) })
  const stop = new AbortController()
  const counted = changedStore(store, {
    compact: async (revision) => {
      server.compactions.push(revision)
      await store.compact(revision)
    },
  })
  const waiting: Clock = {
    now: () => clock.now(),
    monotonicMs: () => clock.monotonicMs(),
    timer: (ms, fn) => clock.timer(ms, fn),
    turn: () => clock.turn(),
    sleep(ms, signal) {
      server.waits++
      return clock.sleep(ms, signal)
    },
  }
  const running = compactRegularly({ store: counted, times: new RevisionTimes(), clock: waiting, log: noLog }, intervalMs, stop.signal)
  const server: Server = {
    store,
    compactions: [],
    waits: 0,
    async stop() {
      stop.abort()
      await running
      await store.close()
    },
  }
  return server
}

const put = async ({ store }: Server) =>
  (await store.transact({ compare: [], success: [{ type: 'put', key: '/registry/x', value: Buffer.from('x') }] })).revision
const isReadable = ({ store }: Server, revision: Revision) =>
  store.range('/registry/x', undefined, { revision }).then(
    () => true,
    () => false,
  )

const etcds = {
  'Debian’s etcd': async () => {
    const { url, stop } = await startEtcd()
    return { url, stop }
  },
  '`skiff etcd serve`': async () => {
    const { endpoint, close } = await serveStore()
    return { url: `http://${endpoint}`, stop: close }
  },
}

for (const [name, start] of Object.entries(etcds)) {
  test(`ETC-12 two API servers over ${name} compact once at each interval, and let one of upstream go first`, options, async (context) => {
    const { url, stop } = await start()
    context.after(stop)
    const etcdctl = (args: readonly string[], input = '') => {
      const running = run('etcdctl', [`--endpoints=${url.replace('http://', '')}`, ...args], { env: { ...process.env, ETCDCTL_API: '3' } })
      running.child.stdin?.end(input)
      return running.then(({ stdout }) => stdout)
    }
    const clock = new VirtualClock('2026-01-01T00:00:00Z')
    const servers = [await startServer(url, clock, 1), await startServer(url, clock, 2)] as const
    context.after(() => Promise.all(servers.map((server) => server.stop())))
    const compactions = () => servers.flatMap((server) => server.compactions)
    const [one] = servers
    let rounds = 1
    const interval = async () => {
      await until('both wait for the next turn', () => servers.every(({ waits }) => waits >= rounds))
      await clock.advance(intervalMs)
      rounds++
      await until('both wait for the next turn', () => servers.every(({ waits }) => waits >= rounds))
    }

    const first = await put(one)
    const learned: Revision[] = []
    for (let round = 0; round < 4; round++) {
      learned.push(await put(one))
      await interval()
    }
    assert.ok(compactions().length >= 3 && compactions().length <= 4 && new Set(compactions()).size === compactions().length, compactions().join())
    assert.equal(await isReadable(one, first), false)
    assert.equal(await isReadable(one, learned.at(-1) ?? 0), true, 'younger than an interval')

    // As upstream's server writes it, with the version that it knows.
    const { kvs } = JSON.parse(await etcdctl(['get', 'compact_rev_key', '-w', 'json'])) as { kvs: { version: number; value: string }[] }
    const [{ version = 0, value = '' } = {}] = kvs
    assert.equal(Buffer.from(value, 'base64').toString(), String(Math.max(...compactions())))
    const before = compactions().length
    assert.match(await etcdctl(['txn'], `version("compact_rev_key") = "${version}"\n\nput compact_rev_key "5"\n\nget compact_rev_key\n\n`), /^SUCCESS/)
    await put(one)
    await interval()
    assert.equal(compactions().length, before, 'another server had the turn')
    const failed = await etcdctl(['txn'], `version("compact_rev_key") = "${version}"\n\nput compact_rev_key "6"\n\nget compact_rev_key\n\n`)
    assert.match(failed, /^FAILURE/, 'upstream’s server learns that the turn is taken')
    await put(one)
    await interval()
    assert.equal(compactions().length, before + 1)
  })
}
