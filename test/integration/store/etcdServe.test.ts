/** ETC-03: the embedded store as an etcd server: the store's suite through our own driver, and Debian's etcdctl. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { after, before, describe, test } from 'node:test'
import { promisify } from 'node:util'
import { seededRandom } from '#base/random'
import { openEtcdStore } from '#store/drivers/etcd/etcdStore'
import type { LocalStore } from '#store/store'
import { realClock } from '#testing/realClock'
import { describeStore } from '#testing/storeConformance'
import { obstacleToEtcd } from '../../support/etcdServer.ts'
import { type ServedStore, serveStore } from '../../support/servedStore.ts'

const execute = promisify(execFile)
const servers: ServedStore[] = []
after(() => Promise.all(servers.map((server) => server.close())))

async function serve(): Promise<{ readonly store: LocalStore; readonly url: string }> {
  const served = await serveStore('memory')
  servers.push(served)
  return { store: served.store, url: `http://${served.endpoint}` }
}

describeStore({
  name: 'etcd serve',
  isRemote: true,
  open: async () => {
    const { url } = await serve()
    return openEtcdStore({ endpoints: [url], clock: realClock, random: seededRandom(1) })
  },
  advance: (_, ms) => realClock.sleep(ms),
})

test('ETC-03 writes succeed while a large answer is under way on the same connection', { timeout: 60_000 }, async () => {
  const { url } = await serve()
  const store = await openEtcdStore({ endpoints: [url], clock: realClock, random: seededRandom(1) })
  const put = (key: string, bytes: number) => store.transact({ compare: [], success: [{ type: 'put', key, value: Buffer.alloc(bytes) }] })
  for (let i = 0; i < 40; i++) await put(`large/${i}`, 1024 * 1024)
  let isUnderWay = true
  const large = store.range('large/', 'large0').finally(() => {
    isUnderWay = false
  })
  const small: Promise<{ readonly succeeded: boolean }>[] = []
  while (isUnderWay) {
    small.push(put(`small/${small.length}`, 10))
    await realClock.sleep(1)
  }
  assert.equal((await large).kvs.length, 40)
  assert.ok((await Promise.all(small)).every(({ succeeded }) => succeeded))
  await store.close()
})

const ctlAt = async (endpoint: string, ...args: string[]) =>
  (await execute('etcdctl', ['--endpoints', endpoint, ...args], { env: { ...process.env, ETCDCTL_API: '3' }, timeout: 10_000 })).stdout.trimEnd()
const outcome = (answer: Promise<string>) =>
  answer.then(
    () => 'accepted',
    (error: { stderr: string }) => error.stderr,
  )

describe('etcdctl', { skip: obstacleToEtcd() }, () => {
  let port = ''
  let store: LocalStore
  before(async () => {
    const served = await serve()
    store = served.store
    port = served.url.replace('http://', '')
  })
  const ctl = (...args: string[]) => ctlAt(port, ...args)
  const refused = (...args: string[]) => outcome(ctl(...args))

  test('ETC-03 etcdctl puts, gets, sorts, filters and deletes keys', async () => {
    for (const [key, value] of [
      ['k/a', '3'],
      ['k/b', '1'],
      ['k/c', '2'],
    ] as const)
      assert.equal(await ctl('put', key, value), 'OK')
    assert.equal(await ctl('get', 'k/', '--prefix', '--keys-only', '--sort-by', 'VALUE').then((text) => text.split('\n').filter(Boolean).join()), 'k/b,k/c,k/a')
    assert.equal(await ctl('get', 'k/', '--prefix', '--print-value-only', '--order', 'DESCEND', '--limit', '2'), '2\n1')
    assert.equal(await ctl('get', 'k/b', 'k/d', '--print-value-only'), '1\n2')
    assert.equal(await ctl('get', 'k/b', '--from-key', '--print-value-only'), '1\n2')
    assert.equal(await ctl('put', 'k/a', '4', '--prev-kv'), 'OK\nk/a\n3')
    assert.equal(await ctl('put', 'k/a', '--ignore-value'), 'OK')
    assert.equal(await ctl('get', 'k/a', '--print-value-only'), '4')
    assert.equal(await ctl('del', 'k/', '--prefix', '--prev-kv'), '3\nk/a\n4\nk/b\n1\nk/c\n2')
    assert.match(await refused('put', 'k/none', '--ignore-value'), /etcdserver: key not found/)
  })

  test('ETC-04 etcdctl reads a key at an earlier revision, until it is compacted', async () => {
    await ctl('put', 'history', 'one')
    const revision = store.latestRevision()
    await ctl('put', 'history', 'two')
    assert.equal(await ctl('get', 'history', '--rev', String(revision), '--print-value-only'), 'one')
    assert.match(await refused('get', 'history', '--rev', '100000'), /required revision is a future revision/)
    assert.equal(await ctl('compact', String(revision + 1)), `compacted revision ${revision + 1}`)
    assert.match(await refused('get', 'history', '--rev', String(revision)), /required revision has been compacted/)
    assert.match(await refused('compact', String(revision)), /required revision has been compacted/)
  })

  test('ETC-05 etcdctl runs the branch of a transaction that its compares choose', async () => {
    const transaction = async (text: string) => {
      const running = execute('etcdctl', ['--endpoints', port, 'txn'], { env: { ...process.env, ETCDCTL_API: '3' }, timeout: 10_000 })
      running.child.stdin?.end(text)
      return (await running).stdout.trim().split(/\n+/)
    }
    const text = 'version("txn") = "0"\n\nput txn created\n\nget txn\ndel txn\n\n'
    assert.deepEqual(await transaction(text), ['SUCCESS', 'OK'])
    assert.deepEqual(await transaction(text), ['FAILURE', 'txn', 'created', '1'])
    await assert.rejects(transaction('\nput a 1\nput a 2\n\n\n'), /duplicate key given in txn request/)
  })

  test('ETC-06 etcdctl watches a prefix from an earlier revision, with previous values', async () => {
    await ctl('put', 'w/1', 'a')
    const revision = store.latestRevision()
    await ctl('put', 'w/1', 'b')
    const watch = execFile('etcdctl', ['--endpoints', port, 'watch', 'w/', '--prefix', '--prev-kv', '--rev', String(revision + 1)], {
      env: { ...process.env, ETCDCTL_API: '3' },
    })
    const lines: string[] = []
    watch.stdout?.on('data', (text: string) => lines.push(...text.split('\n').filter(Boolean)))
    for (let i = 0; i < 100 && lines.length < 5; i++) await realClock.sleep(50)
    await ctl('del', 'w/1')
    for (let i = 0; i < 100 && lines.length < 9; i++) await realClock.sleep(50)
    watch.kill()
    assert.deepEqual(lines, ['PUT', 'w/1', 'a', 'w/1', 'b', 'DELETE', 'w/1', 'b', 'w/1'])
  })

  test('ETC-14 etcdctl grants a lease, lists it with its key, and both end with its time', async () => {
    const id = /lease (\w+) granted with TTL\(2s\)/.exec(await ctl('lease', 'grant', '1'))?.[1] ?? ''
    await ctl('put', 'leased', 'x', `--lease=${id}`)
    assert.match(
      await ctl('lease', 'timetolive', id, '--keys'),
      new RegExp(`lease ${id} granted with TTL\\(2s\\), remaining\\([12]s\\), attached keys\\(\\[leased\\]\\)`),
    )
    assert.match(await ctl('lease', 'list'), new RegExp(`found 1 leases\n${id}`))
    assert.match(await ctl('lease', 'keep-alive', '--once', id), new RegExp(`lease ${id} keepalived with TTL\\(2\\)`))
    for (let i = 0; i < 100 && (await ctl('get', 'leased')) !== ''; i++) await realClock.sleep(100)
    assert.equal(await ctl('lease', 'timetolive', id), `lease ${id} already expired`)
    assert.match(await refused('lease', 'revoke', id), /requested lease not found/)
  })

  test('ETC-03 etcdctl sees one healthy member, and is refused what one member cannot do', async () => {
    assert.match(await ctl('member', 'list'), /^1, started, test, , http:\/\/test, false$/)
    assert.match(await ctl('endpoint', 'status'), /, 3\.6\.8, .*, true, false, 1, /)
    assert.match(await refused('member', 'add', 'other', '--peer-urls', 'http://127.0.0.1:1'), /Unimplemented/)
    assert.equal(await ctl('alarm', 'list'), '')
  })
})

test('ETC-15 a full store raises NOSPACE, which refuses puts also after a compaction and a defragmentation, until it is disarmed', {
  skip: obstacleToEtcd(),
}, async () => {
  const served = await serveStore('file', undefined, 200_000)
  servers.push(served)
  const at = (...args: string[]) => ctlAt(served.endpoint, ...args)
  const put = () => outcome(at('put', 'key', 'x'.repeat(20_000)))
  let answer = 'accepted'
  for (let i = 0; i < 100 && answer === 'accepted'; i++) answer = await put()
  assert.match(answer, /etcdserver: mvcc: database space exceeded/)
  assert.equal(await at('alarm', 'list'), 'memberID:1 alarm:NOSPACE')
  assert.match(await at('get', 'key', '--print-value-only'), /^x+$/)
  await at('compact', String((await served.store.range('key')).revision))
  await at('defrag')
  assert.match(await put(), /database space exceeded/)
  assert.match(await outcome(at('lease', 'grant', '60')), /database space exceeded/)
  assert.equal(await at('del', 'nothing'), '0')
  await at('alarm', 'disarm')
  assert.equal(await put(), 'accepted')
  assert.equal(await at('alarm', 'list'), '')
})
