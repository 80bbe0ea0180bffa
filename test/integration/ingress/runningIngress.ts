/** The ingress of one node over the real API server, with its own rights. Its proxy listens on ports of the loopback interface. */
import assert from 'node:assert/strict'
import { noLog } from '#base/log'
import { noMetrics } from '#base/metrics'
import { seededRandom } from '#base/random'
import { nodes } from '#client/builtIn'
import { createSharedInformerFactory } from '#client/cache/sharedInformerFactory'
import { createIngress } from '#ingress/ingress'
import { ingressUser } from '#main/layouts/ingress/ingressConfig'
import { ensureIngressObjects } from '#main/layouts/ingress/ingressObjects'
import { realClock as clock } from '#testing/realClock'
import { testCertificates } from '#testing/testCertificates'
import { startTestCluster, type TestCluster } from '../controllers/cluster.ts'
import { freePort, host } from './fixture.ts'

const nodeAddress = '192.0.2.1'
/** Where the ingress of this process listens: those of other test files, which run at the same time, open ports of the same numbers. */
export const ingressHost = process.platform === 'linux' ? `127.${1 + (process.pid % 250)}.${(process.pid >> 8) % 250}.1` : host

export interface RunningIngress {
  readonly cluster: TestCluster
  readonly ports: { readonly http: number; readonly https: number }
  /** Ends the ingress; its objects stay. */
  stop(): Promise<void>
  /** Ends the cluster too. @throws AssertionError when the ingress has logged an error */
  close(): Promise<void>
}

export async function startIngress(): Promise<RunningIngress> {
  const ending = new AbortController()
  const complaints: string[] = []
  const cluster = await startTestCluster({ admission: true, podsRun: false })
  await cluster.client.of(nodes).create({ metadata: { name: 'n1' }, spec: {} })
  const status = { conditions: [{ type: 'Ready', status: 'True' }], addresses: [{ type: 'InternalIP', address: nodeAddress }] }
  await cluster.client.of(nodes).patch({ name: 'n1' }, 'strategic', { status }, { subresource: 'status' })
  await ensureIngressObjects(cluster.client, clock, ending.signal)
  const client = cluster.api.clientAs({ name: ingressUser, groups: ['system:authenticated'] })
  const error = (reason: unknown, message: string) => void complaints.push(`${message}: ${reason}`)
  const deps = { clock, random: seededRandom(3), metrics: noMetrics, log: { ...noLog, error } }
  const informers = createSharedInformerFactory(client, deps)
  const ports = { http: await freePort(), https: await freePort() }
  const config = { nodeName: 'n1', nodeAddress, listenOn: ingressHost, httpPort: ports.http, httpsPort: ports.https }
  const ingress = createIngress({ client, informers, ...deps }, { ...config, defaultCertificate: await testCertificates('CN=default') })
  const running = Promise.all([ingress.run(ending.signal), informers.run(ending.signal)])
  const stop = async () => {
    ending.abort(new Error('the test has ended the ingress'))
    await running
  }
  const close = async () => {
    await stop()
    await cluster.close()
    assert.deepEqual(complaints, [])
  }
  return { cluster, ports, stop, close }
}
