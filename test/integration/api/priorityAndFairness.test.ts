/** Priority and fairness through the real server: who is queued, who is turned away, and what configures it while it runs. */
import assert from 'node:assert/strict'
import test, { type TestContext } from 'node:test'
import { isStatus } from '#api/machinery/status'
import type { ApiServerDeps } from '#apiserver/apiServer'
import type { UserInfo } from '#apiserver/core/request'
import { configMaps, flowSchemas, priorityLevelConfigurations } from '#client/builtIn'
import { createPrometheusMetrics } from '#main/prometheus'
import { startTestApiServer, type TestApiServer, type TestApiServerOptions } from '#testing/apiServer'
import { startServerWithFlags } from '../../support/serverWithFlags.ts'
import { until } from '../../support/until.ts'
import { rawHttp } from './rawHttp.ts'

const namespace = 'default'
const user = (name: string): UserInfo => ({ name, groups: ['system:authenticated'] })

/** A user's bearer token is their name. */
const byName: ApiServerDeps['authenticators'] = [
  {
    name: 'byName',
    authenticate: ({ headers }) => ({ decision: 'authenticated', user: user(String(headers.authorization).replace('Bearer ', '')) }),
  },
]

async function start(t: TestContext, options: TestApiServerOptions = {}): Promise<TestApiServer> {
  const api = await startTestApiServer(options)
  t.after(() => api.close())
  return api
}

const dangling = async (api: TestApiServer, name: string) => (await api.client.of(flowSchemas).get({ name })).status?.conditions?.[0]

test('API-18 answers tell what a request was taken for, by UID', async (t) => {
  const api = await start(t, { deps: () => ({ authenticators: byName }) })
  const listener = await api.listen()
  const schema = await api.client.of(flowSchemas).get({ name: 'global-default' })
  const level = await api.client.of(priorityLevelConfigurations).get({ name: 'global-default' })
  const { status, headers } = await rawHttp(listener, { path: '/api/v1/namespaces/default', token: 'alice' })
  assert.deepEqual(
    [status, headers['x-kubernetes-pf-flowschema-uid'], headers['x-kubernetes-pf-prioritylevel-uid']],
    [200, schema.metadata.uid, level.metadata.uid],
  )
})

test('API-18 flow schemas tell whether their level exists, and take effect at once', async (t) => {
  const api = await start(t, { deps: () => ({ authenticators: byName }) })
  const listener = await api.listen()
  for (const { metadata } of (await api.client.of(flowSchemas).list()).items) {
    assert.equal((await dangling(api, metadata.name ?? ''))?.status, 'False', metadata.name)
  }
  const schema = await api.client.of(flowSchemas).create({
    metadata: { name: 'carols' },
    spec: {
      priorityLevelConfiguration: { name: 'small' },
      matchingPrecedence: 10,
      rules: [
        {
          subjects: [{ kind: 'User', user: { name: 'carol' } }],
          resourceRules: [{ verbs: ['*'], apiGroups: ['*'], resources: ['*'], namespaces: ['*'], clusterScope: true }],
        },
      ],
    },
  })
  await until('the level is missing', async () => (await dangling(api, 'carols'))?.status === 'True')
  const { lastTransitionTime: _, ...condition } = (await dangling(api, 'carols')) ?? assert.fail()
  assert.deepEqual(condition, {
    type: 'Dangling',
    status: 'True',
    reason: 'NotFound',
    message: 'This FlowSchema references the PriorityLevelConfiguration object named "small" but there is no such object',
  })
  const matched = async () => (await rawHttp(listener, { path: '/api/v1/namespaces/default', token: 'carol' })).headers['x-kubernetes-pf-flowschema-uid']
  assert.notEqual(await matched(), schema.metadata.uid)
  const spec = { type: 'Limited', limited: { nominalConcurrencyShares: 5, limitResponse: { type: 'Reject' } } }
  await api.client.of(priorityLevelConfigurations).create({ metadata: { name: 'small' }, spec })
  await until('the level is there', async () => (await dangling(api, 'carols'))?.status === 'False')
  assert.equal(await matched(), schema.metadata.uid)
  await api.client.of(priorityLevelConfigurations).delete({ name: 'small' })
  await until('the level is missing', async () => (await dangling(api, 'carols'))?.status === 'True')
  assert.notEqual(await matched(), schema.metadata.uid)
})

/** An admission plugin that holds requests of known users until it is opened, delays them from then on, and records in which order they finish. */
function slowAdmission(ms: number) {
  const done: string[] = []
  let open = () => {}
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  const plugin = {
    name: 'Slow',
    handles: () => true,
    validate: async ({ user: { name } }: { user: UserInfo }) => {
      if (name !== 'elephant' && name !== 'mouse') return
      await opened
      await new Promise((resolve) => setTimeout(resolve, ms))
      done.push(name)
    },
  }
  return { done, plugin, open }
}

test('API-18 one tenant floods: it queues and is turned away, while another hardly waits', async (t) => {
  const { done, plugin, open } = slowAdmission(5)
  const metrics = createPrometheusMetrics()
  const api = await start(t, { maxInFlight: { readOnly: 10, mutating: 10 }, deps: () => ({ admission: [plugin], metrics }) })
  const createAs = (name: string, i: number) =>
    api
      .clientAs(user(name))
      .of(configMaps)
      .create({ metadata: { namespace, name: `${name}-${i}` } })
  const level = `{priority_level="global-default",flow_schema="global-default"}`
  const count = (name: string) => Number(metrics.render().split(`apiserver_flowcontrol_${name}_requests${level} `)[1]?.split('\n')[0] ?? 0)
  let answered = 0
  const flood = Array.from({ length: 500 }, async (_, i) => {
    const answer = await createAs('elephant', i).catch((error: unknown) => error)
    answered++
    return answer
  })
  await until('the flood is queued or refused', async () => count('current_executing') + count('current_inqueue') + answered === 500)
  open()
  const waits: number[] = []
  for (let i = 0; i < 10; i++) {
    const before = done.length
    await createAs('mouse', i)
    waits.push(done.length - before - 1)
  }
  assert.ok(done.length < 300, `the flood was still on: ${done.length}`)
  // There are 20 seats: while the mouse waits for the next one and is served, the others are used twice or three times. In order of arrival
  // it would have been 300.
  assert.ok(
    waits.every((elephants) => elephants <= 60),
    `${waits}`,
  )
  const refused = (await Promise.all(flood)).filter((answer) => isStatus(answer, 'TooManyRequests'))
  assert.ok(refused.length > 100 && refused.length < 250, `${refused.length}`)
  assert.ok(refused.every((error) => isStatus(error) && (error.details?.retryAfterSeconds ?? 0) >= 1))
  const text = metrics.render()
  const reason = `apiserver_flowcontrol_rejected_requests_total{priority_level="global-default",flow_schema="global-default",reason="queue-full"}`
  assert.ok(text.includes(`${reason} ${refused.length}\n`))
  assert.deepEqual([count('current_executing'), count('current_inqueue')], [0, 0])
  assert.ok(text.includes(`current_executing_requests${level} 0\n`) && text.includes(`current_inqueue_requests${level} 0\n`))
})

/** Upstream's, but for two that it hides as deprecated, and for the jumps of a virtual time that does not jump. */
const series = [
  ...['rejected_requests_total', 'dispatched_requests_total', 'current_inqueue_requests', 'current_inqueue_seats', 'current_executing_requests'],
  ...['current_executing_seats', 'request_queue_length_after_enqueue', 'request_wait_duration_seconds', 'request_execution_seconds'],
  ...['work_estimated_seats', 'watch_count_samples', 'request_dispatch_no_accommodation_total', 'current_r', 'dispatch_r', 'latest_s'],
  ...['next_s_bounds', 'next_discounted_s_bounds', 'nominal_limit_seats', 'lower_limit_seats', 'upper_limit_seats', 'current_limit_seats'],
  ...['demand_seats', 'demand_seats_high_watermark', 'demand_seats_average', 'demand_seats_stdev', 'demand_seats_smoothed', 'target_seats'],
  ...['seat_fair_frac', 'priority_level_seat_utilization', 'priority_level_request_utilization', 'read_vs_write_current_requests'],
]

test('API-18 who looks at flow control finds the series that upstream has', async (t) => {
  const { plugin, open } = slowAdmission(5)
  open()
  const metrics = createPrometheusMetrics()
  const api = await start(t, { maxInFlight: { readOnly: 1, mutating: 1 }, deps: () => ({ admission: [plugin], metrics }) })
  const create = (i: number) =>
    api
      .clientAs(user('elephant'))
      .of(configMaps)
      .create({ metadata: { namespace, name: `elephant-${i}` } })
  await Promise.all(Array.from({ length: 500 }, (_, i) => create(i).catch((error: unknown) => error)))
  const text = metrics.render()
  const shown = new Set([...text.matchAll(/^# TYPE apiserver_flowcontrol_(\w+) /gm)].map(([, name]) => name))
  assert.deepEqual([...shown].sort(), [...series].sort())
  for (const [name, labels] of [
    ['demand_seats', 'priority_level="global-default"'],
    ['priority_level_request_utilization', 'phase="waiting",priority_level="global-default"'],
    ['read_vs_write_current_requests', 'phase="executing",request_kind="mutating"'],
  ])
    assert.match(text, new RegExp(`^apiserver_flowcontrol_${name}_count\\{${labels}\\} [1-9]\\d{6,}$`, 'm'), 'a nanosecond counts once')
})

test('API-18 a request that waited for a quarter of its timeout is refused with Retry-After, and a client that leaves frees its place', async (t) => {
  let release = () => {}
  const held = new Promise<void>((resolve) => {
    release = resolve
  })
  t.after(() => release())
  const holding = { name: 'Holding', handles: () => true, validate: ({ user: { name } }: { user: UserInfo }) => (name === 'alice' ? held : undefined) }
  const config = { requestTimeoutMs: 2_000 }
  const api = await start(t, { maxInFlight: { readOnly: 1, mutating: 0 }, config, deps: () => ({ admission: [holding], authenticators: byName }) })
  const listener = await api.listen()
  const create = (i: number, name = 'alice') =>
    rawHttp(listener, {
      ...{ method: 'POST', path: `/api/v1/namespaces/${namespace}/configmaps`, token: name },
      ...{ headers: { 'content-type': 'application/json' }, body: JSON.stringify({ metadata: { name: `${name}-${i}` } }) },
    })
  const answers = await Promise.all(Array.from({ length: 12 }, (_, i) => create(i)))
  const refused = answers.filter(({ status }) => status === 429)
  assert.ok(refused.length > 0 && answers.every(({ status }) => status === 429 || status === 504), `${answers.map(({ status }) => status)}`)
  const { headers, body } = refused[0] ?? assert.fail()
  assert.deepEqual(
    [headers['retry-after'], headers['content-type'], body.toString()],
    ['1', 'text/plain; charset=utf-8', 'Too many requests, please try again later.\n'],
  )
})

test('API-18 the debugging pages show levels, queues and requests', async (t) => {
  const api = await start(t)
  const listener = await api.listen()
  const page = async (name: string) => (await rawHttp(listener, { path: `/debug/api_priority_and_fairness/${name}` })).body.toString().split('\n')
  const [levelColumns, ...levels] = await page('dump_priority_levels')
  const columns =
    'PriorityLevelName, ActiveQueues, IsIdle, IsQuiescing, WaitingRequests, ExecutingRequests, DispatchedRequests, RejectedRequests, TimedoutRequests, CancelledRequests'
  assert.equal(levelColumns, columns)
  assert.deepEqual(
    levels.map((line) => line.split(',')[0]),
    ['catch-all', 'exempt', 'global-default', 'leader-election', 'node-high', 'system', 'workload-high', 'workload-low', ''],
  )
  assert.equal(
    levels[0],
    'catch-all,         0,            true,   false,       0,               0,                 0,                  0,                0,                0',
  )
  const queues = await page('dump_queues')
  assert.equal(
    queues[0],
    'PriorityLevelName, Index,  PendingRequests, ExecutingRequests, SeatsInUse, NextDispatchR, InitialSeatsSum, MaxSeatsSum, TotalWorkSum',
  )
  assert.equal(queues.length, 1 + 64 + 64 + 16 + 128 * 3 + 1)
  const [requestColumns, request, ...rest] = await page('dump_requests?includeRequestDetails=1')
  assert.match(
    requestColumns ?? '',
    /^PriorityLevelName, FlowSchemaName, .*StartTime, +UserName, +Verb, +APIPath, +Namespace, +Name, +APIVersion, +Resource, +SubResource$/,
  )
  // The one that asks.
  assert.match(
    request ?? '',
    /^exempt, +exempt, +-1, +-1, +, +\d{4}-\S+Z, +1, +0, +0s, +\d{4}-\S+Z, +test-admin, +get, +\/debug\/api_priority_and_fairness\/dump_requests, +, +, +, +, +$/,
  )
  assert.deepEqual(rest, [''])
})

test('API-19 turned off, requests in flight are counted as before', async (t) => {
  const api = await startServerWithFlags(['--enable-priority-and-fairness=false', '--max-mutating-requests-inflight=3'], {
    deps: () => ({ authenticators: byName }),
  })
  t.after(() => api.close())
  const listener = await api.listen()
  const { headers } = await rawHttp(listener, { path: '/version', token: 'alice' })
  assert.equal('x-kubernetes-pf-flowschema-uid' in headers, false)
  assert.equal((await rawHttp(listener, { path: '/debug/api_priority_and_fairness/dump_queues', token: 'alice' })).status, 403)
})
