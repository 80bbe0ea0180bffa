/** Nodes whose kubelets hang, flood, fail or speak of other nodes' pods, next to one that is well. The kubelets are small servers. */
import assert from 'node:assert/strict'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import test from 'node:test'
import { noLog } from '#base/log'
import { nodes, pods } from '#client/builtIn'
import { createResourceMetricsApi } from '#metrics/resourceMetricsApi'
import { startTestApiServer } from '#testing/apiServer'
import { realClock } from '#testing/realClock'
import { createRecordedMetrics } from '#testing/recordedMetrics'
import { testCertificates } from '#testing/testCertificates'
import { eventually } from '../controllers/cluster.ts'
import { groupPath, runningPod } from './support.ts'

type Answer = (response: ServerResponse, request: IncomingMessage) => void

/** A container that started 12 seconds ago, so that one sample has a rate. */
function usageOf(pod: string, cores: number): string {
  const now = Date.now()
  const labels = `{container="main",namespace="default",pod="${pod}"}`
  return [
    `container_cpu_usage_seconds_total${labels} ${cores * 12} ${now}`,
    `container_memory_working_set_bytes${labels} 1048576 ${now}`,
    `container_start_time_seconds${labels} ${(now - 12_000) / 1000}\n`,
  ].join('\n')
}

const line = `${usageOf('invented', 1).split('\n')[0]}\n`
const behaviours: Readonly<Record<string, Answer>> = {
  well: (response) => response.end(usageOf('on-well', 0.5)),
  inventive: (response) => response.end(usageOf('on-well', 900) + usageOf('on-inventive', 0.25) + usageOf('on-flooding', 900)),
  hanging: () => {},
  stalling: (response) => response.write(line),
  flooding: (response) => {
    const block = line.repeat(10_000)
    const write = () => {
      if (!response.destroyed) response.write(block, write)
    }
    write()
  },
  failing: (response) => response.writeHead(500).end(usageOf('on-failing', 1)),
  redirecting: (response) => response.writeHead(302, { location: 'https://127.0.0.1:1/' }).end(),
  malformed: (response) => response.end(`${usageOf('on-malformed', 1)}node_cpu_usage_seconds_total -1\n`),
}

test('AUT-02 kubelets that hang, flood, fail or lie do not keep the usage of a node from being served, nor change it', async (t) => {
  const certificates = await testCertificates()
  const paths: string[] = []
  const servers = await Promise.all(
    Object.entries(behaviours).map(async ([name, answer]) => {
      const server = createServer(certificates, (request, response) => {
        paths.push(request.url ?? '')
        answer(response, request)
      })
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
      return { name, server }
    }),
  )
  const recorded = createRecordedMetrics()
  let component: ReturnType<typeof createResourceMetricsApi>['component'] | undefined
  const api = await startTestApiServer({
    kubelet: certificates,
    prepare(server) {
      const made = createResourceMetricsApi({ objects: server.reader, kubelets: server.kubelets, clock: realClock, log: noLog, metrics: recorded })
      server.addGroup(made.group)
      component = made.component
    },
  })
  const stop = new AbortController()
  for (const { name, server } of servers) {
    const { port } = server.address() as AddressInfo
    const status = { addresses: [{ type: 'InternalIP', address: '127.0.0.1' }], daemonEndpoints: { kubeletEndpoint: { Port: port } } }
    await api.client.of(nodes).create({ metadata: { name }, spec: {}, status })
    await runningPod(api.client, { namespace: 'default', name: `on-${name}`, nodeName: name }, ['main'])
  }
  await api.client.of(nodes).create({ metadata: { name: 'without-address' }, spec: {} })
  const running = component?.run(stop.signal)
  t.after(async () => {
    stop.abort()
    await running
    await api.close()
    for (const { server } of servers) {
      server.closeAllConnections()
      server.close()
    }
  })
  type List = { items: { metadata: { name: string }; containers: { usage: { cpu: string } }[] }[] }
  const usages = async () => {
    const { items } = (await api.client.transport.request({ method: 'GET', path: `${groupPath}/pods` })).body as List
    return items.map(({ metadata, containers }) => [metadata.name, containers[0]?.usage.cpu])
  }
  const begun = Date.now()
  await eventually(async () => assert.equal((await usages()).length, 2))
  // All have ended but those that hang, which end after 10 seconds.
  await eventually(async () => assert.equal(recorded.values.get('metrics_server_kubelet_request_total{success="false"}'), 5))
  assert.ok(Date.now() - begun < 9_000, 'before the end of those that hang')
  assert.deepEqual(await usages(), [
    ['on-inventive', '250m'],
    ['on-well', '500m'],
  ])
  assert.deepEqual(new Set(paths), new Set(['/metrics/resource']))
  assert.ok(await api.client.of(pods).get({ namespace: 'default', name: 'on-flooding' }))
})
