import assert from 'node:assert/strict'
import https from 'node:https'
import { text } from 'node:stream/consumers'
import { before, test } from 'node:test'
import type { SubjectAccessReview } from '#api/gen/types/authorization.v1'
import { noLog } from '#base/log'
import { VirtualClock } from '#base/virtualClock'
import type { Client } from '#client/client'
import { type KubeletConfig, kubeletConfig } from '#kubelet/core/config'
import type { KubeletView } from '#kubelet/core/kubeletView'
import { apiAuth, attributesOf, authDefaults, type KubeletAuth, type KubeletAuthSettings } from '#kubelet/server/auth'
import { createKubeletServer, createReadOnlyServer, handlersOf } from '#kubelet/server/kubeletServer'
import { createStreamMetrics } from '#kubelet/server/requestMetrics'
import { createSharedKubeletServer } from '#kubelet/server/sharedKubeletServer'
import { createAuthority, issueCertificate, type KeyPair } from '#main/pki/certificates'
import { createPrometheusMetrics } from '#main/prometheus'
import { createRecordedMetrics } from '#testing/recordedMetrics'

let ca: KeyPair
let serving: KeyPair
let person: KeyPair

before(async () => {
  const now = Date.now()
  ca = await createAuthority('test', now, 1)
  serving = await issueCertificate(ca, { commonName: 'node', usage: 'server', hosts: ['127.0.0.1'], validDays: 1 }, now)
  person = await issueCertificate(ca, { commonName: 'ann', organizations: ['dev'], usage: 'client', validDays: 1 }, now)
})

interface Asked {
  readonly tokens: string[]
  readonly access: string[]
}

/** An API server that knows one token and allows these subresources. */
function reviewer(allowed: readonly string[], asked: Asked): Client {
  const create = async (review: { kind: string; spec: Record<string, unknown> }) => {
    if (review.kind === 'TokenReview') {
      asked.tokens.push(String(review.spec.token))
      return {
        status: review.spec.token === 'good' ? { authenticated: true, user: { username: 'bot', uid: '7', groups: ['bots'] } } : { authenticated: false },
      }
    }
    const { user, groups, resourceAttributes } = review.spec as unknown as SubjectAccessReview['spec']
    const { verb, subresource = '', resource, name } = resourceAttributes ?? {}
    asked.access.push(`${user} [${groups?.join()}] ${verb} ${resource}/${name}/${subresource}`)
    if (allowed.includes(`broken ${subresource}`)) throw new Error('no API server')
    return { status: { allowed: allowed.includes(subresource) } }
  }
  return { of: () => ({ create }) } as unknown as Client
}

interface Served {
  readonly asked: Asked
  readonly clock: VirtualClock
  readonly view: { config: KubeletConfig; loopMs: number | undefined }
  readonly metrics: () => string
  get(path: string, options?: { cert?: KeyPair; token?: string; method?: string }): Promise<{ code: number | undefined; body: string; allow?: string }>
}

async function withServer(
  { allowed = [], auth = {}, config = {} }: { allowed?: readonly string[]; auth?: Partial<KubeletAuthSettings>; config?: Partial<KubeletConfig> },
  run: (served: Served) => Promise<void>,
): Promise<void> {
  const asked: Asked = { tokens: [], access: [] }
  const clock = new VirtualClock(0)
  const state = { config: kubeletConfig({ nodeName: 'n1', ...config }), loopMs: undefined as number | undefined }
  const view = {
    get config() {
      return state.config
    },
    runtime: { listContainers: async () => [] },
    pods: () => [],
    pod: () => undefined,
    podStatus: () => undefined,
    context: () => undefined,
    probeMetrics: () => [],
    latestLoopEntryMs: () => state.loopMs,
  } as unknown as KubeletView
  const metrics = createPrometheusMetrics()
  const server = createKubeletServer(
    {
      view,
      auth: apiAuth(reviewer(allowed, asked), clock, 'n1', { ...authDefaults, ...auth }),
      clock,
      log: noLog,
      metrics,
      metricFamilies: () => metrics.families(),
    },
    { address: '127.0.0.1', port: 0, cert: serving.cert, key: serving.key, clientCa: ca.cert },
  )
  const stop = new AbortController()
  const running = server.run(stop.signal)
  const port = await server.listening
  const get: Served['get'] = (path, { cert, token, method = 'GET' } = {}) =>
    new Promise((resolve, reject) => {
      const headers = token === undefined ? {} : { authorization: `Bearer ${token}` }
      const options = { ca: ca.cert, cert: cert?.cert, key: cert?.key, headers, method, agent: false }
      const request = https.request(`https://127.0.0.1:${port}${path}`, options, (response) => {
        text(response).then(
          (body) => resolve({ code: response.statusCode, body, ...(response.headers.allow ? { allow: response.headers.allow } : {}) }),
          reject,
        )
      })
      request.on('error', reject).end()
    })
  try {
    await run({ asked, clock, view: state, metrics: () => metrics.render(), get })
  } finally {
    stop.abort()
    await running
  }
}

const paths: readonly (readonly [path: string, subresources: string])[] = [
  ['/pods', 'pods,proxy'],
  ['/pods/', 'pods,proxy'],
  ['/runningpods/', 'pods,proxy'],
  ['/healthz', 'healthz,proxy'],
  ['/healthz/syncloop', 'healthz,proxy'],
  ['/configz', 'configz,proxy'],
  ['/statusz', 'statusz'],
  ['/flagz', 'configz'],
  ['/stats/summary', 'stats'],
  ['/metrics', 'metrics'],
  ['/metrics/cadvisor', 'metrics'],
  ['/metricsx', 'proxy'],
  ['/logs/syslog', 'log'],
  ['/checkpoint/a/b/c', 'checkpoint'],
  ['/exec/a/b/c', 'proxy'],
  ['/containerLogs/a/b/c', 'proxy'],
]
for (const [path, subresources] of paths) {
  test(`AUZ-09 ${path} needs nodes/${subresources}`, () => {
    assert.deepEqual(
      attributesOf('GET', path).map(({ subresource, verb }) => `${verb} ${subresource}`),
      subresources.split(',').map((one) => `get ${one}`),
    )
  })
}

test('AUZ-09 the fine subresource is asked for first, then proxy; stats and metrics are never allowed by proxy', async () => {
  await withServer({ allowed: ['proxy'] }, async ({ get, asked }) => {
    assert.equal((await get('/pods', { cert: person })).code, 200)
    assert.deepEqual(asked.access, ['ann [dev,system:authenticated] get nodes/n1/pods', 'ann [dev,system:authenticated] get nodes/n1/proxy'])
    assert.deepEqual(await get('/stats/summary', { cert: person }), {
      code: 403,
      body: 'Forbidden (user=ann, verb=get, resource=nodes, subresource(s)=[stats])\n',
    })
  })
  await withServer({ allowed: ['pods'] }, async ({ get, asked }) => {
    assert.equal((await get('/pods', { cert: person })).code, 200)
    assert.equal(asked.access.length, 1)
    assert.equal((await get('/configz', { cert: person })).body, 'Forbidden (user=ann, verb=get, resource=nodes, subresource(s)=[configz proxy])\n')
  })
})

test('AUZ-09 answers are remembered: yes for five minutes, no for thirty seconds, tokens for two minutes', async () => {
  await withServer({ allowed: ['metrics'] }, async ({ get, asked, clock }) => {
    const both = async () => [(await get('/metrics', { token: 'good' })).code, (await get('/pods', { token: 'good' })).code]
    assert.deepEqual(await both(), [200, 403])
    assert.deepEqual(await both(), [200, 403])
    assert.deepEqual([asked.tokens.length, asked.access.length], [1, 3])
    assert.equal(asked.access[0], 'bot [bots,system:authenticated] get nodes/n1/metrics')
    await clock.advance(31_000)
    await both()
    assert.deepEqual([asked.tokens.length, asked.access.length], [1, 5])
    await clock.advance(300_000)
    await both()
    assert.deepEqual([asked.tokens.length, asked.access.length], [2, 8])
  })
})

test('KUB-17 anonymous requests are refused unless allowed, and a bad token is never anonymous', async () => {
  await withServer({ allowed: ['healthz'] }, async ({ get }) => {
    assert.deepEqual(await get('/healthz'), { code: 401, body: 'Unauthorized' })
    assert.equal((await get('/healthz', { token: 'bad' })).code, 401)
  })
  await withServer({ allowed: ['healthz'], auth: { anonymous: true } }, async ({ get, asked }) => {
    assert.deepEqual(await get('/healthz'), { code: 200, body: 'ok' })
    assert.equal(asked.access[0], 'system:anonymous [system:unauthenticated] get nodes/n1/healthz')
    assert.equal((await get('/healthz', { token: 'bad' })).code, 401)
  })
  await withServer({ auth: { mode: 'AlwaysAllow', tokens: false } }, async ({ get, asked }) => {
    assert.equal((await get('/pods', { cert: person })).code, 200)
    assert.equal((await get('/pods', { token: 'good' })).code, 401)
    assert.deepEqual(asked, { tokens: [], access: [] })
  })
})

test('KUB-17 without debugging handlers exec, logs and profiles are answered as disabled', async () => {
  const off = { auth: { mode: 'AlwaysAllow' }, config: { enableDebuggingHandlers: false } } as const
  await withServer(off, async ({ get }) => {
    for (const path of ['/exec/a/b/c', '/run/a/b/c', '/containerLogs/a/b/c', '/runningpods/', '/logs/', '/debug/pprof/', '/portForward/a/b']) {
      assert.deepEqual(await get(path, { cert: person }), { code: 405, body: 'Debug endpoints are disabled.\n' }, path)
    }
    assert.equal((await get('/pods', { cert: person })).code, 200)
    for (const path of ['/configz', '/statusz', '/flagz', '/checkpoint/a/b/c', '/debug/flags/v'])
      assert.equal((await get(path, { cert: person })).code, 404, path)
  })
  await withServer({ auth: { mode: 'AlwaysAllow' }, config: { enableSystemLogHandler: false, enableProfilingHandler: false } }, async ({ get }) => {
    assert.deepEqual(await get('/logs/', { cert: person }), { code: 405, body: 'logs endpoint is disabled.\n' })
    assert.deepEqual(await get('/debug/pprof/', { cert: person }), { code: 405, body: 'profiling endpoint is disabled.\n' })
    assert.equal((await get('/nothing', { cert: person })).code, 404)
    assert.equal((await get('/%ff', { cert: person })).code, 400)
  })
})

test('KUB-17 a path refuses other methods, with the allowed one in the Allow header', async () => {
  await withServer({ auth: { mode: 'AlwaysAllow' } }, async ({ get }) => {
    for (const path of ['/pods', '/runningpods/', '/stats/summary', '/containerLogs/a/b/c', '/logs/']) {
      assert.deepEqual(await get(path, { cert: person, method: 'POST' }), { code: 405, body: '405: Method Not Allowed', allow: 'GET' }, path)
    }
    for (const path of ['/run/a/b/c', '/checkpoint/a/b/c']) {
      assert.deepEqual(await get(path, { cert: person }), { code: 405, body: '405: Method Not Allowed', allow: 'POST' }, path)
    }
    assert.equal((await get('/healthz', { cert: person, method: 'POST' })).code, 200)
  })
})

/** The status of an upgrade of exec. Without protocols the kubelet allows every request; with them it needs the good token. */
async function upgradeStatus(method: string, protocols?: string): Promise<number | undefined> {
  const view = { config: kubeletConfig({ nodeName: 'n1' }), pod: () => undefined } as unknown as KubeletView
  const auth: KubeletAuth = {
    anonymous: protocols === undefined,
    authenticateToken: async (token) => (token === 'good' ? { name: 'bot', groups: [] } : undefined),
    authorize: async () => true,
  }
  const deps = { view, auth, clock: new VirtualClock(0), log: noLog }
  const server = createKubeletServer(deps, { address: '127.0.0.1', port: 0, cert: serving.cert, key: serving.key })
  const stop = new AbortController()
  const running = server.run(stop.signal)
  try {
    const port = await server.listening
    const path = '/exec/a/b/c?command=id&output=1'
    const offered = protocols === undefined ? {} : { 'sec-websocket-protocol': protocols }
    const key = { 'sec-websocket-version': '13', 'sec-websocket-key': 'AAAAAAAAAAAAAAAAAAAAAA==' }
    const headers = { connection: 'Upgrade', upgrade: 'websocket', ...key, ...offered }
    return await new Promise((resolve, reject) => {
      https
        .request({ host: '127.0.0.1', port, path, method, headers, ca: ca.cert, agent: false }, ({ statusCode }) => resolve(statusCode))
        .on('error', reject)
        .end()
    })
  } finally {
    stop.abort()
    await running
  }
}

for (const method of ['PUT', 'PATCH', 'DELETE', 'OPTIONS'])
  test(`KUB-17 exec by an upgrade with the method ${method} is refused`, async () => assert.equal(await upgradeStatus(method), 405))

const carrier = (token: string) => `base64url.bearer.authorization.k8s.io.${Buffer.from(token).toString('base64url')}`
for (const [name, protocols, status] of [
  ['is known, its pod is missing', `${carrier('good')}, v5.channel.k8s.io`, 404],
  ['is unknown', `${carrier('bad')}, v5.channel.k8s.io`, 401],
  ['stands alone', carrier('good'), 401],
  ['is one of two', `${carrier('good')}, ${carrier('good')}, v5.channel.k8s.io`, 401],
] as const)
  test(`AUN-03 a kubelet takes the token among the subprotocols of a WebSocket, it ${name}: ${status}`, async () =>
    assert.equal(await upgradeStatus('GET', protocols), status))

test('AUZ-09 a failed authorization of the first subresource ends the request, without asking for the next', async () => {
  await withServer({ allowed: ['broken pods', 'proxy'] }, async ({ get, asked }) => {
    const body = 'Authorization error (user=ann, verb=get, resource=nodes, subresource=pods)'
    assert.deepEqual(await get('/pods', { cert: person }), { code: 500, body })
    assert.equal(asked.access.length, 1)
  })
})

test('KUB-17 streams over WebSocket are counted, others are not', () => {
  const metrics = createRecordedMetrics()
  const note = createStreamMetrics(metrics)
  const upgrade = 'websocket'
  note('exec', { upgrade, 'sec-websocket-protocol': 'v5.channel.k8s.io, v4.channel.k8s.io' })
  note('exec', { upgrade, 'sec-websocket-protocol': 'v4.channel.k8s.io' })
  note('attach', { upgrade: 'SPDY/3.1' })
  note('portForward', { upgrade, 'sec-websocket-protocol': 'SPDY/3.1+portforward.k8s.io' })
  assert.deepEqual(
    [...metrics.values],
    [
      ['kubelet_websocket_streaming_requests_total{subresource="exec"}', 1],
      ['kubelet_websocket_streaming_requests_total{subresource="portforward"}', 1],
    ],
  )
})

test('KUB-24 the read-only port serves health, pods and metrics without credentials, and nothing else', async () => {
  const config = kubeletConfig({ nodeName: 'n1' })
  const view = { config, pods: () => [], podStatus: () => undefined, context: () => undefined, probeMetrics: () => [], latestLoopEntryMs: () => undefined }
  const metrics = createPrometheusMetrics()
  const deps = { view: view as unknown as KubeletView, clock: new VirtualClock(0), log: noLog, metrics, metricFamilies: () => metrics.families() }
  const server = createReadOnlyServer(deps, { address: '127.0.0.1', port: 0 })
  const stop = new AbortController()
  const running = server.run(stop.signal)
  try {
    const base = `http://127.0.0.1:${await server.listening}`
    const get = async (path: string) => {
      const response = await fetch(base + path)
      return `${response.status} ${await response.text()}`
    }
    assert.equal(await get('/healthz'), '200 ok')
    assert.equal(await get('/pods'), '200 {"kind":"PodList","apiVersion":"v1","metadata":{},"items":[]}')
    assert.match(await get('/metrics'), /kubelet_http_requests_total\{method="GET",path="pods",server_type="readonly",long_running="false"\} 1/)
    for (const path of ['/exec/a/b/c', '/containerLogs/a/b/c', '/logs/']) assert.equal(await get(path), '405 Debug endpoints are disabled.\n', path)
    for (const path of ['/configz', '/flagz', '/checkpoint/a/b/c']) assert.equal(await get(path), '404 404: Page Not Found', path)
  } finally {
    stop.abort()
    await running
  }
})

test('KUB-17 healthz fails when the sync loop has stopped', async () => {
  await withServer({ auth: { mode: 'AlwaysAllow' } }, async ({ get, view, clock }) => {
    view.loopMs = 0
    assert.deepEqual(await get('/healthz?verbose', { cert: person }), { code: 200, body: '[+]ping ok\n[+]log ok\n[+]syncloop ok\nhealthz check passed\n' })
    await clock.advance(300_001)
    assert.equal((await get('/healthz', { cert: person })).code, 500)
    assert.deepEqual(await get('/healthz/syncloop', { cert: person }), { code: 500, body: 'internal server error: sync Loop took longer than expected\n' })
    assert.equal((await get('/healthz/ping', { cert: person })).code, 200)
    assert.equal((await get('/healthz?exclude=syncloop', { cert: person })).code, 200)
  })
})

test('KUB-17 /metrics/slis tells how the checks of /healthz went, those that were asked', async () => {
  await withServer({ auth: { mode: 'AlwaysAllow' } }, async ({ get, view, clock }) => {
    const slis = async () => (await get('/metrics/slis', { cert: person })).body.split('\n').filter((line) => line.includes('name="syncloop"'))
    assert.deepEqual(await slis(), [])
    view.loopMs = 0
    await get('/healthz', { cert: person })
    await clock.advance(300_001)
    await get('/healthz', { cert: person })
    await get('/healthz?exclude=syncloop', { cert: person })
    assert.deepEqual(await slis(), [
      'kubernetes_healthcheck{name="syncloop",type="healthz"} 0',
      'kubernetes_healthchecks_total{name="syncloop",status="error",type="healthz"} 1',
      'kubernetes_healthchecks_total{name="syncloop",status="success",type="healthz"} 1',
    ])
  })
})

test('KUB-24 configz is a KubeletConfiguration v1beta1 with upstream’s names and durations', async () => {
  await withServer({ auth: { mode: 'AlwaysAllow' }, config: { maxPods: 30, syncFrequencyMs: 90_000 } }, async ({ get, metrics }) => {
    const { kubeletconfig } = JSON.parse((await get('/configz', { cert: person })).body) as { kubeletconfig: Record<string, unknown> }
    assert.equal(kubeletconfig.apiVersion, 'kubelet.config.k8s.io/v1beta1')
    assert.deepEqual([kubeletconfig.maxPods, kubeletconfig.syncFrequency, kubeletconfig.containerLogMaxSize], [30, '1m30s', '10Mi'])
    assert.match(metrics(), /kubelet_http_requests_total\{method="GET",path="configz",server_type="readwrite",long_running="false"\} 1/)
  })
})

test('ARC-13 kubelets that share a port are distinguished by the address in the Host header, each with its own authorization', async () => {
  const asked: Asked = { tokens: [], access: [] }
  const clock = new VirtualClock(0)
  const stop = new AbortController()
  const handlersAt = (address: string) => {
    const nodeName = { '198.18.0.1': 'n1', '198.18.0.2': 'n2' }[address]
    if (!nodeName) return undefined
    const view = {
      config: kubeletConfig({ nodeName }),
      pods: () => [{ metadata: { name: `pod-of-${nodeName}` } }],
      podStatus: () => undefined,
    } as unknown as KubeletView
    return handlersOf({ view, auth: apiAuth(reviewer(['pods'], asked), clock, nodeName), clock, log: noLog }, stop.signal)
  }
  const server = createSharedKubeletServer(handlersAt, { address: '127.0.0.1', port: 0, cert: serving.cert, key: serving.key, clientCa: ca.cert })
  const running = server.run(stop.signal)
  const port = await server.listening
  const get = (host: string, headers: Record<string, string> = {}) =>
    new Promise<{ code: number | undefined; body: string }>((resolve, reject) => {
      const options = { ca: ca.cert, headers: { host, authorization: 'Bearer good', ...headers }, agent: false }
      const request = https.request(`https://127.0.0.1:${port}/pods`, options, (response) => {
        text(response).then((body) => resolve({ code: response.statusCode, body }), reject)
      })
      request.on('error', reject).end()
    })
  try {
    for (const [host, nodeName] of [
      [`198.18.0.1:${port}`, 'n1'],
      ['198.18.0.2', 'n2'],
    ] as const) {
      const { code, body } = await get(host)
      assert.deepEqual([code, JSON.parse(body).items?.[0]?.metadata.name], [200, `pod-of-${nodeName}`], body)
      assert.equal(asked.access.at(-1), `bot [bots,system:authenticated] get nodes/${nodeName}/pods`)
    }
    assert.equal((await get(`127.0.0.1:${port}`)).code, 421)
    assert.equal((await get('198.18.0.3', { connection: 'Upgrade', upgrade: 'websocket' })).code, 421)
  } finally {
    stop.abort()
    await running
  }
})
