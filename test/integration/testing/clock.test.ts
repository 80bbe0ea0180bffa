/** The virtual time of a cluster, moved from outside (X3): /skiff/clock for who may use it, and what happens in the cluster meanwhile. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { ClockState } from '#api/debug/clock'
import { isStatus } from '#api/machinery/status'
import { clusterRoleBindings, clusterRoles, cronJobs, jobs } from '#client/builtIn'
import { createHttpTransport, type HttpTransport } from '#client/httpTransport'
import { startCluster, type TestCluster } from '#testing/cluster'
import { realClock } from '#testing/realClock'

const path = '/skiff/clock'
const start = '2026-01-01T00:00:00Z'

describe('the clock of a cluster under virtual time', () => {
  let cluster: TestCluster
  let transportAs: (user?: string) => HttpTransport
  const open: HttpTransport[] = []

  before(async () => {
    cluster = await startCluster({ nodes: 1, start })
    const { url, ca, token } = await cluster.listen()
    transportAs = (user) => {
      const impersonate = user === undefined ? {} : { impersonate: { user, groups: ['system:authenticated'] } }
      const transport = createHttpTransport({ server: url, tls: { ca }, bearerToken: token, clock: realClock, ...impersonate })
      open.push(transport)
      return transport
    }
  })

  after(async () => {
    await Promise.all(open.map((transport) => transport.close()))
    await cluster.close()
  })

  const read = async (transport: HttpTransport) => (await transport.request({ method: 'GET', path })).body as ClockState
  const change = async (transport: HttpTransport, body: object) => (await transport.request({ method: 'POST', path, body })).body as ClockState

  async function untilStill(transport: HttpTransport): Promise<ClockState> {
    for (;;) {
      const state = await read(transport)
      if (state.speed === 0 && state.stepMs === 0) return state
      await new Promise((resolve) => setImmediate(resolve))
    }
  }

  test('X3 an hour that passes in a step starts the Jobs of a CronJob at their times', async () => {
    const admin = transportAs()
    const template = { spec: { restartPolicy: 'Never', containers: [{ name: 'main', image: 'example.com/job:1' }] } }
    const spec = { schedule: '*/20 * * * *', successfulJobsHistoryLimit: 10, jobTemplate: { spec: { template } } }
    await cluster.client.of(cronJobs).create({ metadata: { namespace: 'default', name: 'often' }, spec })
    const before = await read(admin)
    assert.deepEqual(await read(admin), before, 'the time stands still')
    assert.equal((await change(admin, { stepMs: 3_610_000 })).stepMs, 3_610_000)
    const { now } = await untilStill(admin)
    assert.equal(Date.parse(now) - Date.parse(before.now), 3_610_000)
    const { items } = await cluster.client.of(jobs).list({ namespace: 'default' })
    const made = items.map(({ metadata }) => metadata.creationTimestamp).sort()
    assert.deepEqual(made, ['2026-01-01T00:20:00Z', '2026-01-01T00:40:00Z', '2026-01-01T01:00:00Z'])
  })

  test('X3 time passes at a speed until it is stopped', async () => {
    const admin = transportAs()
    const before = Date.parse((await read(admin)).now)
    assert.equal((await change(admin, { speed: 60 })).speed, 60)
    while (Date.parse((await read(admin)).now) < before + 10_000) await new Promise((resolve) => setImmediate(resolve))
    const stopped = await change(admin, { speed: 0 })
    assert.equal(stopped.speed, 0)
    assert.ok(Date.parse(stopped.now) - before < 600_000)
    for (let turn = 0; turn < 100; turn++) await new Promise((resolve) => setImmediate(resolve))
    assert.deepEqual(await read(admin), stopped)
  })

  test('X3 a user needs a role that names the path to read the clock, and the verb post to move it', async () => {
    const jane = transportAs('jane')
    const refused = (what: string) => (error: unknown) => isStatus(error, 'Forbidden') && error.message.includes(`User "jane" cannot ${what} path "${path}"`)
    await assert.rejects(read(jane), refused('get'))
    await cluster.client.of(clusterRoles).create({ metadata: { name: 'clock' }, rules: [{ nonResourceURLs: [path], verbs: ['get'] }] })
    await cluster.client.of(clusterRoleBindings).create({
      metadata: { name: 'clock' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'clock' },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'jane' }],
    })
    const before = await read(jane)
    await assert.rejects(change(jane, { stepMs: 1_000 }), refused('post'))
    assert.equal((await read(jane)).now, before.now)
  })

  for (const [body, message] of [
    [{}, 'expected either speed or stepMs'],
    [{ speed: 1, stepMs: 1 }, 'expected either speed or stepMs'],
    [{ speed: -1 }, 'speed: expected a number from 0 to 3600'],
    [{ speed: 3_601 }, 'speed: expected a number from 0 to 3600'],
    [{ speed: '60' }, 'speed: expected a number from 0 to 3600'],
    [{ stepMs: 0 }, 'stepMs: expected a whole number from 1 to 86400000'],
    [{ stepMs: 86_400_001 }, 'stepMs: expected a whole number from 1 to 86400000'],
    [{ stepMs: 1.5 }, 'stepMs: expected a whole number from 1 to 86400000'],
  ] as const) {
    test(`X3 the clock refuses ${JSON.stringify(body)}, and stands still`, async () => {
      const admin = transportAs()
      const before = await read(admin)
      await assert.rejects(change(admin, body), (error: unknown) => isStatus(error, 'BadRequest') && error.message === message)
      assert.deepEqual(await read(admin), before)
    })
  }
})

test('X3 a cluster whose time is that of the machine has no clock to move', async () => {
  await using cluster = await startCluster({ nodes: 0, clock: 'real', controllers: false, scheduler: false })
  const { url, ca, token } = await cluster.listen()
  const transport = createHttpTransport({ server: url, tls: { ca }, bearerToken: token, clock: realClock })
  await assert.rejects(transport.request({ method: 'GET', path }), (error: unknown) => isStatus(error, 'NotFound'))
  await transport.close()
})
