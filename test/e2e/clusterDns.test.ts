/** One real node: names of the host, of ExternalNames and of a Corefile in a pod, and a published port of localhost. */
import assert from 'node:assert/strict'
import dgram from 'node:dgram'
import { once } from 'node:events'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, test } from 'node:test'
import dnsPacket from 'dns-packet'
import { freePort } from '#main/localCluster/freePort'
import { eventually, LocalCluster, obstacleToCluster } from './support/localCluster.ts'
import { writeWebImage } from './support/webImage.ts'

const skip = obstacleToCluster(true)
const options = { skip }
const name = 'e2e-dns'
const withinMs = 30_000
let cluster: LocalCluster
let published: number
const onHost = http.createServer((_request, response) => response.end('from the host'))
/** The name server of a stub domain: every name has this address. */
const nameServer = dgram.createSocket('udp4')
const stubAddress = '192.0.2.53'

const inPod = async (...command: string[]) => (await cluster.kubectl(['exec', 'client', '--', 'timeout', '4', ...command])).stdout.trim()
const addressOf = async (host: string) => /Name:.*\nAddress:\s*(\S+)\s*$/.exec(await inPod('nslookup', '-type=a', host))?.[1] ?? ''
const apply = (object: object) => cluster.mustWith(JSON.stringify(object), ['apply', '-f', '-'])

function pod(podName: string, container: object) {
  const main = { name: 'main', image: 'web-app:1.0', ...container }
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: podName, labels: { app: podName } },
    spec: { terminationGracePeriodSeconds: 0, containers: [main] },
  }
}

function corefile(text: string) {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'coredns', namespace: 'kube-system' }, data: { Corefile: text } }
}

before(async () => {
  if (skip) return
  onHost.listen(0, '0.0.0.0')
  nameServer.bind(0, '0.0.0.0')
  await Promise.all([once(onHost, 'listening'), once(nameServer, 'listening')])
  nameServer.on('message', (bytes, from) => {
    const { id, questions = [] } = dnsPacket.decode(bytes)
    const answers = questions.flatMap((one) => (one.type === 'A' ? [{ type: 'A' as const, name: one.name, ttl: 1, data: stubAddress }] : []))
    nameServer.send(dnsPacket.encode({ type: 'response', ...(id === undefined ? {} : { id }), questions, answers }), from.port, from.address)
  })
  published = await freePort()
  cluster = await LocalCluster.start(name, ['--publish', `${published}:8085`])
  const loaded = await cluster.skiff(['image', 'load', '--name', name, ...(await writeWebImage(cluster.dir, ['1.0']))])
  assert.equal(loaded.code, 0, loaded.stderr)
  await apply(pod('client', { command: ['sleep', '3600'] }))
  const serve = ['sh', '-c', 'mkdir -p /www; echo served >/www/index.html; exec httpd -f -p 8080 -h /www']
  await apply(pod('server', { command: serve, ports: [{ containerPort: 8080, hostPort: 8085 }] }))
  await cluster.must(['expose', 'pod', 'server', '--port=80', '--target-port=8080'])
  await cluster.must(['wait', '--for=condition=Ready', 'pod', '--all', '--timeout=60s'])
})

after(async () => {
  if (skip) return
  onHost.close()
  nameServer.close()
  await cluster?.delete()
})

test('SVC-12 a pod reaches a server of the host by host.skiff.internal', options, async () => {
  const { port } = onHost.address() as AddressInfo
  assert.equal(await inPod('wget', '-q', '-O', '-', `http://host.skiff.internal:${port}/`), 'from the host')
})

test('SVC-04 a program reaches an ExternalName by the addresses of its target', options, async () => {
  const spec = { type: 'ExternalName', externalName: 'server.default.svc.cluster.local' }
  await apply({ apiVersion: 'v1', kind: 'Service', metadata: { name: 'alias' }, spec })
  const reached = await eventually(
    'an answer',
    withinMs,
    () => inPod('wget', '-q', '-O', '-', 'http://alias/'),
    (text) => text !== '',
  )
  assert.equal(reached, 'served')
})

test('SVC-12 a Corefile in the ConfigMap coredns gives a stub domain its server and a name its address, until it is deleted', options, async () => {
  const host = (await nodeAddress()).replace(/\d+$/, '1')
  const { port } = nameServer.address()
  await apply(
    corefile(`corp.test:53 {
      forward . ${host}:${port}
    }
    .:53 {
      hosts {
        192.0.2.7 fixed.test
        fallthrough
      }
      kubernetes cluster.local in-addr.arpa ip6.arpa {
        pods insecure
        fallthrough in-addr.arpa ip6.arpa
      }
      forward . /etc/resolv.conf
    }`),
  )
  await eventually(
    'the address of the stub domain',
    withinMs,
    () => addressOf('db.corp.test.'),
    (address) => address === stubAddress,
  )
  assert.equal(await addressOf('fixed.test.'), '192.0.2.7')
  assert.match(await addressOf('server.default.svc.cluster.local.'), /^10\./)
  await cluster.must(['delete', 'configmap', 'coredns', '-n', 'kube-system'])
  await eventually(
    'no address of the stub domain',
    withinMs,
    () => addressOf('db.corp.test.'),
    (address) => address !== stubAddress,
  )
})

test('SVC-12 a Corefile with an unknown plugin gets an Event that names it, and names are answered', options, async () => {
  await apply(corefile('. {\n  whoami\n}'))
  const events = ['get', 'events', '-n', 'kube-system', '--field-selector', 'reason=CorefileRefused', '-o', 'jsonpath={.items[*].message}']
  const message = await eventually(
    'an Event',
    withinMs,
    () => cluster.must(events),
    (text) => text !== '',
  )
  assert.match(message, /^Corefile:2: there is no plugin "whoami"/)
  assert.match(await addressOf('server.default.svc.cluster.local.'), /^10\./)
})

test('SVC-02 a published port of localhost leads to the host port of a pod, and answers again after a stop and a start', options, async () => {
  const served = () =>
    fetch(`http://127.0.0.1:${published}/`, { signal: AbortSignal.timeout(2000) }).then(
      async (answer) => (await answer.text()).trim(),
      () => '',
    )
  await eventually('an answer', withinMs, served, (text) => text === 'served')
  for (const command of ['stop', 'start']) assert.equal((await cluster.skiff([command, name])).code, 0)
  await eventually('an answer after a start', withinMs, served, (text) => text === 'served')
  const changed = await cluster.skiff(['up', name, '--publish', '8080:80'])
  assert.equal(changed.code, 4, changed.stderr)
  assert.match(changed.stderr, /--publish 8080:80 was asked for, it was made with \d+:8085/)
})

function nodeAddress(): Promise<string> {
  return cluster.must(['get', 'nodes', '-o', 'jsonpath={.items[0].status.addresses[?(@.type=="InternalIP")].address}'])
}
