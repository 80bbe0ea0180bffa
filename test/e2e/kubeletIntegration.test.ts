import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { Pod } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import { createSecurity } from '#apiserver/security'
import { noLog } from '#base/log'
import { noMetrics } from '#base/metrics'
import { seededRandom } from '#base/random'
import { configMaps, events, leases, nodes, pods, serviceAccounts } from '#client/builtIn'
import { createKubelet } from '#kubelet/kubelet'
import { simulatedAnnotations } from '#kubelet/runtime/simulated/annotations'
import { defaultProfile } from '#kubelet/runtime/simulated/profile'
import { createSimulatedRuntime } from '#kubelet/runtime/simulated/simulatedRuntime'
import { apiAuth } from '#kubelet/server/auth'
import { createSigningKey } from '#main/pki/certificates'
import { startTestApiServer, type TestApiServer, type TestApiServerOptions } from '#testing/apiServer'
import { realClock } from '#testing/realClock'
import { simulatedMachine } from '../support/simulatedMachine.ts'
import { until } from '../support/until.ts'

const quick = { ...defaultProfile, sandboxDelayMs: 1, startDelayMs: 1, stopDelayMs: 1, pullDelayMs: 1 }

async function withNodes(
  count: number,
  run: (api: TestApiServer) => Promise<void>,
  options: TestApiServerOptions & { readonly staticPodPath?: string; readonly staticPodURL?: string } = {},
): Promise<void> {
  const api = await startTestApiServer(options)
  const stop = new AbortController()
  const kubelets = Array.from({ length: count }, (_, index) => {
    const nodeName = `sim-${index}`
    const random = seededRandom(index)
    const runtime = createSimulatedRuntime({ clock: realClock, random, profile: quick, podCidr: `10.${index}.0.0/24` })
    const client = api.clientAs({ name: `system:node:${nodeName}`, groups: ['system:nodes', 'system:authenticated'] })
    const deps = { client, clock: realClock, random, log: noLog, metrics: noMetrics, runtime, machine: simulatedMachine }
    return createKubelet(deps, {
      nodeName,
      nodeIPs: [`192.0.2.${index}`],
      syncFrequencyMs: 0,
      relistPeriodMs: 0,
      // The kernel reports changed files, so no test waits for this interval.
      fileCheckFrequencyMs: 60_000,
      httpCheckFrequencyMs: 50,
      staticPodURL: options.staticPodURL ?? '',
      staticPodURLHeader: { 'X-Who': ['node'] },
      staticPodPath: options.staticPodPath ?? '',
    })
  })
  const running = kubelets.map((kubelet) => kubelet.run(stop.signal))
  try {
    await Promise.all(kubelets.map((kubelet) => kubelet.registered))
    await run(api)
  } finally {
    stop.abort()
    await Promise.all(running)
    await api.close()
  }
}

function pod(name: string, nodeName: string, spec: Partial<Pod['spec']> = {}, annotations: Record<string, string> = {}) {
  return { metadata: { name, namespace: 'default', annotations }, spec: { nodeName, containers: [{ name: 'main', image: 'example.com/app:1' }], ...spec } }
}

const ref = (name: string) => ({ namespace: 'default', name })

test('KUB-26 KUB-12 pods of the real API server run on a simulated node, report, and go', () =>
  withNodes(1, async ({ client }) => {
    const node = await client.of(nodes).get({ name: 'sim-0' })
    assert.equal(node.status.conditions?.find((condition) => condition.type === 'Ready')?.status, 'True')
    await until(
      'the lease is held',
      async () =>
        (
          await client
            .of(leases)
            .get({ namespace: 'kube-node-lease', name: 'sim-0' })
            .catch(() => undefined)
        )?.spec.renewTime,
    )
    await client.of(pods).create(pod('web', 'sim-0') as Pod)
    const web = await until('web is ready', async () => {
      const found = await client.of(pods).get(ref('web'))
      return found.status.conditions?.some((condition) => condition.type === 'Ready' && condition.status === 'True') && found
    })
    assert.equal(web.status.phase, 'Running')
    assert.equal(web.status.observedGeneration, web.metadata.generation)
    assert.match(web.status.podIP ?? '', /^10\.0\.0\./)
    await client.of(pods).delete(ref('web'))
    await until('web is gone', async () =>
      client
        .of(pods)
        .get(ref('web'))
        .then(
          () => false,
          (error: unknown) => isStatus(error, 'NotFound'),
        ),
    )
  }))

test('KUB-12 the kubelet restores its fields of a status that another client overwrites, and keeps foreign conditions', () =>
  withNodes(1, async ({ client }) => {
    const readinessGates = [{ conditionType: 'x/ready' }]
    await client.of(pods).create(pod('web', 'sim-0', { readinessGates }) as Pod)
    const of = (found: Frozen<Pod>) => found.status.containerStatuses?.[0]
    await until('web runs', async () => of(await client.of(pods).get(ref('web')))?.state?.running)
    const conditions = [{ type: 'x/ready', status: 'True' }]
    const containerStatuses = [{ name: 'main', image: 'other', imageID: '', ready: true, restartCount: 99, state: {} }]
    await client.of(pods).patch(ref('web'), 'strategic', { status: { phase: 'Unknown', conditions, containerStatuses } }, { subresource: 'status' })
    const web = await until('the status of web is restored', async () => {
      const found = await client.of(pods).get(ref('web'))
      const isReady = found.status.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True')
      return of(found)?.restartCount === 0 && isReady && found
    })
    assert.deepEqual([web.status.phase, of(web)?.image, of(web)?.state?.running !== undefined], ['Running', 'example.com/app:1', true])
    assert.equal(web.status.conditions?.[0]?.type, 'x/ready')
  }))

test('KUB-09 a pod that ends keeps its last words in the API', () =>
  withNodes(1, async ({ client }) => {
    const ends = { [simulatedAnnotations.exitAfterSeconds]: '0', [simulatedAnnotations.exitCode]: '4' }
    await client.of(pods).create(pod('once', 'sim-0', { restartPolicy: 'Never' }, ends) as Pod)
    const once = await until('once has failed', async () => {
      const found = await client.of(pods).get(ref('once'))
      return found.status.conditions?.some((condition) => condition.reason === 'PodFailed') && found.status.conditions[0]?.status === 'False' && found
    })
    assert.equal(once.status.containerStatuses?.[0]?.state?.terminated?.exitCode, 4)
    assert.deepEqual(Object.fromEntries((once.status.conditions ?? []).map((condition) => [condition.type, condition.reason ?? condition.status])), {
      PodReadyToStartContainers: 'False',
      Initialized: 'True',
      Ready: 'PodFailed',
      ContainersReady: 'PodFailed',
      PodScheduled: 'True',
    })
  }))

test('KUB-26 fifty nodes and two hundred pods fit in one process', () =>
  withNodes(50, async ({ client }) => {
    await Promise.all(Array.from({ length: 200 }, (_, index) => client.of(pods).create(pod(`p-${index}`, `sim-${index % 50}`) as Pod)))
    await until('all run', async () => (await client.of(pods).list({ namespace: 'default' })).items.every((item) => item.status.phase === 'Running'))
  }))

test('KUB-01 KUB-18 a kubelet needs no more than a node may: RBAC, node authorization and node restriction on', async () => {
  const serviceAccountKey = await createSigningKey()
  const secured: TestApiServerOptions = {
    deps: (registry) => createSecurity({ reader: registry.reader, clock: realClock, random: seededRandom(5), serviceAccountKey }),
  }
  await withNodes(
    1,
    async ({ client, clientAs }) => {
      await client
        .of(serviceAccounts)
        .create({ metadata: { name: 'default', namespace: 'default' } })
        .catch(() => {})
      await client.of(configMaps).create({ metadata: { name: 'settings', namespace: 'default' }, data: { color: 'blue' } })
      const container = {
        name: 'main',
        image: 'example.com/app:1',
        env: [{ name: 'COLOR', valueFrom: { configMapKeyRef: { name: 'settings', key: 'color' } } }],
      }
      await client.of(pods).create(pod('web', 'sim-0', { containers: [container] }) as Pod)
      await until('web runs', async () => (await client.of(pods).get(ref('web'))).status.phase === 'Running')
      const recorded = await until('events are recorded', async () => {
        const { items } = await client.of(events).list({ namespace: 'default' })
        return items.some((event) => event.reason === 'Started') && items
      })
      assert.ok(recorded.some((event) => event.reason === 'Pulled' && event.reportingComponent === 'kubelet'))
      await until('the lease is held', async () =>
        client
          .of(leases)
          .get({ namespace: 'kube-node-lease', name: 'sim-0' })
          .then(
            () => true,
            () => false,
          ),
      )
      const auth = apiAuth(clientAs({ name: 'system:node:sim-0', groups: ['system:nodes', 'system:authenticated'] }), realClock, 'sim-0')
      const wanted = { verb: 'get', subresource: 'proxy', path: '/pods' }
      assert.equal(await auth.authorize({ name: 'admin', groups: ['system:masters'] }, wanted), true)
      assert.equal(await auth.authorize({ name: 'eve', groups: ['system:authenticated'] }, wanted), false)
      assert.equal(await auth.authenticateToken('nonsense'), undefined)
      await client.of(pods).delete(ref('web'))
      await until('web is gone', async () =>
        client
          .of(pods)
          .get(ref('web'))
          .then(
            () => false,
            () => true,
          ),
      )
    },
    secured,
  )
})

test('ARC-12 KUB-16 a static pod runs from a file, and its mirror pod shows its status, is recreated when deleted, and goes with the file', async () => {
  const staticPodPath = await mkdtemp(join(tmpdir(), 'static-'))
  const file = join(staticPodPath, 'web.yaml')
  const manifest = 'apiVersion: v1\nkind: Pod\nmetadata: {name: static-web}\nspec:\n  containers: [{name: main, image: example.com/app:1}]\n'
  await writeFile(file, manifest)
  try {
    await withNodes(
      1,
      async ({ client }) => {
        const mirror = () =>
          client
            .of(pods)
            .get(ref('static-web-sim-0'))
            .catch(() => undefined)
        const running = await until('the mirror runs', async () => {
          const found = await mirror()
          return found?.status.phase === 'Running' && found
        })
        assert.equal(running.metadata.ownerReferences?.[0]?.kind, 'Node')
        assert.equal(running.metadata.annotations?.['kubernetes.io/config.source'], 'file')
        await client.of(pods).delete(ref('static-web-sim-0'), { gracePeriodSeconds: 0 })
        await until('another mirror runs', async () => {
          const found = await mirror()
          return found?.status.phase === 'Running' && found.metadata.uid !== running.metadata.uid
        })
        const edited = await mirror()
        await writeFile(file, manifest.replace('app:1', 'app:2'))
        await until('the new one runs after the old one', async () => {
          const found = await mirror()
          return found?.status.phase === 'Running' && found.spec.containers[0]?.image === 'example.com/app:2' && found.metadata.uid !== edited?.metadata.uid
        })
        await rm(file)
        await until('the mirror is gone', async () => !(await mirror()))
      },
      { staticPodPath },
    )
  } finally {
    await rm(staticPodPath, { recursive: true })
  }
})

test('KUB-16 static pods are read from a URL too, and a URL that does not answer changes nothing', async () => {
  const asked: (string | undefined)[] = []
  let answer: { status: number; body: string } = {
    status: 200,
    body: JSON.stringify({ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'remote' }, spec: { containers: [{ name: 'main', image: 'example.com/app:1' }] } }),
  }
  const server = createServer((request, response) => {
    asked.push(request.headers['x-who'] as string | undefined)
    response.writeHead(answer.status).end(answer.body)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  try {
    const staticPodURL = `http://127.0.0.1:${(server.address() as AddressInfo).port}/pods`
    await withNodes(
      1,
      async ({ client }) => {
        const mirror = () =>
          client
            .of(pods)
            .get(ref('remote-sim-0'))
            .catch(() => undefined)
        const running = await until('the mirror runs', async () => {
          const found = await mirror()
          return found?.status.phase === 'Running' && found
        })
        assert.equal(running.metadata.annotations?.['kubernetes.io/config.source'], 'http')
        answer = { status: 503, body: '' }
        const before = asked.length
        await until('it was asked again', async () => asked.length > before + 3)
        assert.equal((await mirror())?.metadata.uid, running.metadata.uid)
        answer = { status: 200, body: JSON.stringify({ apiVersion: 'v1', kind: 'PodList', items: [] }) }
        await until('the mirror is gone', async () => !(await mirror()))
        assert.deepEqual([...new Set(asked)], ['node'])
      },
      { staticPodURL },
    )
  } finally {
    server.close()
  }
})
