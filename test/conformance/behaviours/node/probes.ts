/** Containers asked how they are, in four ways, and what follows. Upstream: test/e2e/common/node/container_probe.go. */
import assert from 'node:assert/strict'
import type { Container, Pod, Probe } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import { type BehaviourGroup, table } from '../behaviour.ts'
import { type BehaviourContext, isReady, type PodInput } from '../context.ts'

const port = 8080

/** Answers like a gRPC health service: serving until the file /tmp/failed is there. Runs on the node's own program, seen below /node. */
const grpcServer = `
const fs = require('node:fs')
require('node:http2').createServer().on('stream', (stream) => {
  stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true })
  stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }))
  stream.resume()
  const status = Date.now() - started < ${2000} || process.env.ALWAYS ? 1 : 2
  stream.end(Buffer.from([0, 0, 0, 0, 2, 8, status]))
}).listen(${port})
const started = Date.now()
`

const grpcPod = (env: Record<string, string>): PodInput => ({
  container: {
    command: ['chroot', '/node', process.execPath, '-e', grpcServer],
    env: Object.entries(env).map(([name, value]) => ({ name, value })),
    volumeMounts: [{ name: 'node', mountPath: '/node', readOnly: true }],
  },
  spec: { volumes: [{ name: 'node', hostPath: { path: '/' } }] },
})

const serve = (file: string): PodInput => ({ script: `mkdir -p /www && touch /www/${file} && exec httpd -f -p ${port} -h /www` })

const often = { periodSeconds: 1, timeoutSeconds: 5 }
const http: Probe = { ...often, httpGet: { path: '/healthz', port } }
const tcp: Probe = { ...often, tcpSocket: { port } }
const grpc: Probe = { ...often, grpc: { port, service: '' } }
const exec: Probe = { ...often, exec: { command: ['cat', '/tmp/health'] } }

const healthy: readonly { readonly name: string; readonly pod: PodInput; readonly probe: Probe }[] = [
  { name: 'http liveness ok: no restart', pod: serve('healthz'), probe: http },
  { name: 'grpc ok', pod: grpcPod({ ALWAYS: 'yes' }), probe: { ...grpc, initialDelaySeconds: 5 } },
  { name: 'exec ok', pod: { script: 'touch /tmp/health; sleep 600' }, probe: exec },
  { name: 'tcp ok', pod: serve('healthz'), probe: tcp },
]

const failing: readonly { readonly name: string; readonly pod: PodInput; readonly probe: Probe }[] = [
  { name: 'http failing restarts', pod: serve('other'), probe: http },
  { name: 'grpc failing restarts', pod: grpcPod({}), probe: { ...grpc, initialDelaySeconds: 5 } },
  { name: 'exec failing restarts', pod: { script: 'touch /tmp/health; sleep 2; rm /tmp/health; sleep 600' }, probe: exec },
]

const restarts = (pod: Frozen<Pod>) => pod.status?.containerStatuses?.[0]?.restartCount ?? 0

function create({ createPod }: BehaviourContext, pod: PodInput, probes: Partial<Pick<Container, 'livenessProbe' | 'readinessProbe'>>) {
  return createPod({ ...pod, container: { ...pod.container, ...probes }, spec: { ...pod.spec, restartPolicy: 'Always', terminationGracePeriodSeconds: 0 } })
}

/** So many times has the kubelet asked, as its own metrics count. */
async function probeCount({ kubectl }: BehaviourContext, pod: Frozen<Pod>, type: string, result: string): Promise<number> {
  const text = await kubectl(['get', '--raw', `/api/v1/nodes/${pod.spec.nodeName}/proxy/metrics/probes`])
  const lines = text.split('\n').filter((line) => line.startsWith('prober_probe_total{') && line.includes(`pod="${pod.metadata.name}"`))
  const wanted = lines.filter((line) => line.includes(`probe_type="${type}"`) && line.includes(`result="${result}"`))
  return wanted.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' '))), 0)
}

export const probes: BehaviourGroup = {
  sig: 'sig-node',
  title: 'Probes',
  rows: ['KUB-06'],
  behaviours: [
    ...table(healthy, ({ name, pod, probe }) => ({
      name,
      run: async (context) => {
        const created = await create(context, pod, { livenessProbe: probe })
        const running = await context.waitForPod(created.metadata.name ?? '', 'runs', isReady)
        await context.eventually(
          'five good answers',
          () => probeCount(context, running, 'Liveness', 'successful'),
          (count) => count >= 5,
        )
        const after = await context.waitForPod(created.metadata.name ?? '', 'is there', () => true)
        assert.equal(restarts(after), 0)
      },
    })),
    ...table(failing, ({ name, pod, probe }) => ({
      name,
      run: async (context) => {
        const created = await create(context, pod, { livenessProbe: { ...probe, failureThreshold: 1 } })
        const { status } = await context.waitForPod(created.metadata.name ?? '', 'was restarted', (seen) => restarts(seen) >= 1)
        assert.ok(status?.containerStatuses?.[0]?.lastState?.terminated)
        await context.waitForEvent(created.metadata.name ?? '', 'Unhealthy')
        await context.waitForEvent(created.metadata.name ?? '', 'Killing')
      },
    })),
    {
      name: 'restart count monotonic to 5',
      seconds: 300,
      run: async (context) => {
        const created = await create(context, { script: 'sleep 600' }, { livenessProbe: { ...exec, failureThreshold: 1 } })
        let highest = 0
        await context.waitForPod(created.metadata.name ?? '', 'was restarted five times', (pod) => {
          assert.ok(restarts(pod) >= highest, `${restarts(pod)} after ${highest}`)
          highest = restarts(pod)
          return highest >= 5
        })
        await context.waitForEvent(created.metadata.name ?? '', 'BackOff')
      },
    },
    {
      name: 'readiness honours initial delay',
      run: async (context) => {
        const delay = 6
        const created = await create(context, serve('healthz'), { readinessProbe: { ...http, initialDelaySeconds: delay } })
        const { status } = await context.waitForPod(created.metadata.name ?? '', 'is Ready', isReady)
        const readyAt = Date.parse(status?.conditions?.find(({ type }) => type === 'Ready')?.lastTransitionTime ?? '')
        const startedAt = Date.parse(status?.containerStatuses?.[0]?.state?.running?.startedAt ?? '')
        // Both are written in whole seconds.
        assert.ok(readyAt - startedAt >= (delay - 1) * 1000, `${readyAt - startedAt} ms`)
        assert.equal(status?.containerStatuses?.[0]?.restartCount, 0)
      },
    },
    {
      name: 'failing readiness never ready, never restarts',
      run: async (context) => {
        const created = await create(context, serve('other'), { readinessProbe: http })
        const name = created.metadata.name ?? ''
        const running = await context.waitForPod(name, 'runs', ({ status }) => status?.containerStatuses?.[0]?.state?.running !== undefined)
        const failed = await context.eventually(
          'five bad answers',
          () => probeCount(context, running, 'Readiness', 'failed'),
          (count) => count >= 5,
        )
        assert.ok(failed >= 5)
        const after = await context.waitForPod(name, 'is there', () => true)
        assert.ok(!isReady(after))
        assert.equal(restarts(after), 0)
      },
    },
  ],
}
