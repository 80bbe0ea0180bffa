import assert from 'node:assert/strict'
import dgram from 'node:dgram'
import { once } from 'node:events'
import net from 'node:net'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import dnsPacket from 'dns-packet'
import type { Service, ServiceSpec } from '#api/gen/types/core.v1'
import type { EndpointSlice } from '#api/gen/types/discovery.v1'
import { noLog } from '#base/log'
import { noMetrics } from '#base/metrics'
import { VirtualClock } from '#base/virtualClock'
import { type ClusterView, lookUp, reverseLookUp } from './clusterRecords.ts'
import { runDnsServer } from './dnsServer.ts'
import { type DnsQuestion, readQuestion, writeAnswer } from './message.ts'
import { createForwardPlugin, upstreamServers } from './plugins/forward.ts'
import { createKubernetesPlugin } from './plugins/kubernetes.ts'
import { type DnsResolver, inOrder, refused } from './plugins/plugin.ts'

const zone = 'cluster.local'
const tools = { clock: new VirtualClock(), log: noLog, metrics: noMetrics }
const noNext: DnsResolver = async () => refused
const outside = { name: 'long.example' } as DnsQuestion
const service = (name: string, spec: Partial<ServiceSpec>): Service => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name, namespace: 'd' },
  spec,
  status: {},
})
const web = service('web', { clusterIP: '10.96.0.10', clusterIPs: ['10.96.0.10'], ports: [{ name: 'http', port: 80, protocol: 'TCP' }] })
const db = service('db', { clusterIP: 'None', clusterIPs: ['None'], ports: [{ name: 'pg', port: 5432 }] })
const out = service('out', { type: 'ExternalName', externalName: 'example.com' })
const dbSlice: EndpointSlice = {
  apiVersion: 'discovery.k8s.io/v1',
  kind: 'EndpointSlice',
  metadata: { name: 'db-1', namespace: 'd', labels: { 'kubernetes.io/service-name': 'db' } },
  addressType: 'IPv4',
  endpoints: [
    { addresses: ['10.244.0.5'], hostname: 'db-0', conditions: { ready: true } },
    { addresses: ['10.244.0.6'], conditions: { ready: true } },
    { addresses: ['10.244.0.7'], conditions: { ready: false } },
  ],
  ports: [{ name: 'pg', port: 5432, protocol: 'TCP' }],
}
const dual = service('dual', { clusterIP: '10.96.0.11', clusterIPs: ['10.96.0.11', 'fd00:96::b'], ports: [{ name: 'http', port: 80 }] })
const dbSliceIpv6: EndpointSlice = {
  ...dbSlice,
  metadata: { name: 'heads-1', namespace: 'd', labels: { 'kubernetes.io/service-name': 'heads' } },
  addressType: 'IPv6',
  endpoints: [{ addresses: ['fd00:244::5'], conditions: { ready: true } }],
}
const heads = service('heads', { clusterIP: 'None', clusterIPs: ['None'], ports: [{ name: 'pg', port: 5432 }] })
const all = [web, db, out, dual, heads]
const view: ClusterView = {
  service: (namespace, name) => all.find((one) => one.metadata.namespace === namespace && one.metadata.name === name),
  slices: (namespace, name) => [dbSlice, dbSliceIpv6].filter(({ metadata }) => namespace === 'd' && metadata.labels?.['kubernetes.io/service-name'] === name),
  namespaceExists: (name) => name === 'd',
  servicesByIp: (ip) => all.filter((one) => one.spec.clusterIPs?.includes(ip)),
  slicesByIp: (ip) => (ip === '10.244.0.5' ? [dbSlice] : ip === 'fd00:244::5' ? [dbSliceIpv6] : []),
}

/** The interesting part of each record. */
function short(name: string, type: string): string[] | 'no such name' {
  const found = lookUp(view, zone, name, type)
  if (!found.exists) return 'no such name'
  return found.records.map((record) =>
    'address' in record
      ? record.address
      : record.type === 'SRV'
        ? `${record.port} ${record.target}`
        : 'target' in record
          ? record.target
          : 'text' in record
            ? record.text
            : '',
  )
}

const cases: { name: string; type: string; want: string[] | 'no such name' }[] = [
  { name: 'web.d.svc.cluster.local', type: 'A', want: ['10.96.0.10'] },
  { name: 'web.d.svc.cluster.local', type: 'AAAA', want: [] },
  { name: 'web.d.svc.cluster.local', type: 'SRV', want: ['80 web.d.svc.cluster.local'] },
  { name: '_http._tcp.web.d.svc.cluster.local', type: 'SRV', want: ['80 web.d.svc.cluster.local'] },
  { name: '_nope._tcp.web.d.svc.cluster.local', type: 'SRV', want: 'no such name' },
  { name: 'nope.d.svc.cluster.local', type: 'A', want: 'no such name' },
  { name: 'web.nope.svc.cluster.local', type: 'A', want: 'no such name' },
  { name: 'd.svc.cluster.local', type: 'A', want: [] },
  { name: 'db.d.svc.cluster.local', type: 'A', want: ['10.244.0.5', '10.244.0.6'] },
  { name: 'db-0.db.d.svc.cluster.local', type: 'A', want: ['10.244.0.5'] },
  { name: '10-244-0-6.db.d.svc.cluster.local', type: 'A', want: ['10.244.0.6'] },
  { name: '_pg._tcp.db.d.svc.cluster.local', type: 'SRV', want: ['5432 db-0.db.d.svc.cluster.local', '5432 10-244-0-6.db.d.svc.cluster.local'] },
  { name: 'out.d.svc.cluster.local', type: 'A', want: ['example.com'] },
  { name: '10-1-2-3.d.pod.cluster.local', type: 'A', want: ['10.1.2.3'] },
  { name: '10-1-2-333.d.pod.cluster.local', type: 'A', want: 'no such name' },
  { name: 'dns-version.cluster.local', type: 'TXT', want: ['1.1.0'] },
]
for (const c of cases) test(`SVC-12 ${c.type} ${c.name}`, () => assert.deepEqual(short(c.name, c.type), c.want))

const dualStack: typeof cases = [
  { name: 'dual.d.svc.cluster.local', type: 'A', want: ['10.96.0.11'] },
  { name: 'dual.d.svc.cluster.local', type: 'AAAA', want: ['fd00:96::b'] },
  { name: 'heads.d.svc.cluster.local', type: 'AAAA', want: ['fd00:244::5'] },
  { name: 'heads.d.svc.cluster.local', type: 'A', want: [] },
  { name: 'fd00-244--5.heads.d.svc.cluster.local', type: 'AAAA', want: ['fd00:244::5'] },
  { name: 'fd00-244--5.d.pod.cluster.local', type: 'AAAA', want: ['fd00:244::5'] },
  { name: 'fd00-244--5.d.pod.cluster.local', type: 'A', want: [] },
  { name: 'fd00-244--5--6.d.pod.cluster.local', type: 'AAAA', want: 'no such name' },
]
for (const c of dualStack) test(`NET-08 ${c.type} ${c.name}`, () => assert.deepEqual(short(c.name, c.type), c.want))

test('NET-08 ip6.arpa names lead to Services and endpoints, and names outside the cluster go to the next plugin', async () => {
  const plugin = createKubernetesPlugin(view, zone)
  const ask = async (digits: string) => {
    const name = `${[...digits].reverse().join('.')}.ip6.arpa`
    const answer = await plugin.resolve({ name, type: 'PTR', nameAsAsked: name } as DnsQuestion, Buffer.alloc(0), 'udp', noNext)
    return answer && 'answers' in answer ? answer.answers.map((record) => ('target' in record ? record.target : '')) : undefined
  }
  assert.deepEqual(await ask('fd00009600000000000000000000000b'), ['dual.d.svc.cluster.local'])
  assert.deepEqual(await ask('fd000244000000000000000000000005'), ['fd00-244--5.heads.d.svc.cluster.local'])
  assert.equal(await ask('fd000244000000000000000000000006'), undefined)
  assert.equal(await ask('fd00'), undefined)
})

test('SVC-12 reverse names of cluster IPs and endpoints', () => {
  const names = (name: string) => reverseLookUp(view, zone, name).map((record) => ('target' in record ? record.target : ''))
  assert.deepEqual(names('10.0.96.10.in-addr.arpa'), ['web.d.svc.cluster.local'])
  assert.deepEqual(names('5.0.244.10.in-addr.arpa'), ['db-0.db.d.svc.cluster.local'])
  assert.deepEqual(names('9.9.9.9.in-addr.arpa'), [])
})

test('answers are compressed: thirty addresses fit where dns-packet needs twice the room', () => {
  const query = dnsPacket.encode({ type: 'query', id: 7, questions: [{ type: 'A', name: 'db.d.svc.cluster.local' }] })
  const question = readQuestion(query)
  assert.ok(question)
  const answers = Array.from({ length: 28 }, (_, i) => ({ name: 'db.d.svc.cluster.local', ttl: 30, type: 'A' as const, address: `10.244.0.${i}` }))
  const bytes = writeAnswer(question, { code: 'NOERROR', authoritative: true, answers }, 512)
  assert.ok(bytes.length <= 512)
  const decoded = dnsPacket.decode(bytes)
  assert.deepEqual(
    decoded.answers?.map((answer) => (answer.type === 'A' ? answer.data : '')),
    answers.map((answer) => answer.address),
  )
  const tooMany = writeAnswer(question, { code: 'NOERROR', authoritative: true, answers: [...answers, ...answers] }, 512)
  assert.ok(dnsPacket.decode(tooMany).flag_tc)
})

test('a server that is silent is left alone for a while, and one question finds out whether it is back', async () => {
  const clock = new VirtualClock()
  const asked: string[] = []
  let silent = true
  const ask = async (server: string, query: Buffer) => {
    asked.push(server)
    return silent && server === '10.0.0.1' ? undefined : query
  }
  const plugin = createForwardPlugin({ servers: async () => ['10.0.0.1', '10.0.0.2'], clock, ask })
  const resolve = () => plugin.resolve(outside, Buffer.from('question'), 'udp', noNext)
  await resolve()
  await resolve()
  assert.deepEqual(asked.splice(0), ['10.0.0.1', '10.0.0.2', '10.0.0.2'])
  await clock.advance(5000)
  await Promise.all([resolve(), resolve()])
  assert.deepEqual(asked.splice(0).sort(), ['10.0.0.1', '10.0.0.2', '10.0.0.2'])
  silent = false
  await clock.advance(5000)
  await resolve()
  await resolve()
  assert.deepEqual(asked, ['10.0.0.1', '10.0.0.1'])
})

test('a server that cannot be reached at all is an answer too, not the end of the process', async () => {
  const plugin = createForwardPlugin({ servers: async () => ['255.255.255.255'], clock: new VirtualClock() })
  assert.deepEqual(await plugin.resolve(outside, Buffer.alloc(12), 'udp', noNext), { code: 'SERVFAIL', authoritative: false, answers: [] })
})

/** A name server outside the cluster: truncated over UDP, 300 addresses over TCP. Over UDP it first sends answers to other questions. */
async function withOutside(fn: (port: number) => Promise<void>): Promise<void> {
  const answers = Array.from({ length: 300 }, (_, i) => ({ name: 'long.example', ttl: 5, type: 'A' as const, address: `10.1.${i >> 8}.${i & 255}` }))
  const respond = (query: Buffer, maxBytes: number) => {
    const question = readQuestion(query)
    assert.ok(question)
    return writeAnswer(question, { code: 'NOERROR', authoritative: false, answers }, maxBytes)
  }
  const tcp = net.createServer((socket) => {
    socket.once('data', (chunk) => {
      const answer = respond(chunk.subarray(2), 65_535)
      socket.write(Buffer.from([answer.length >> 8, answer.length & 255]))
      for (let at = 0; at < answer.length; at += 1_000) socket.write(answer.subarray(at, at + 1_000))
    })
    socket.on('error', () => {})
  })
  tcp.listen(0, '127.0.0.1')
  await once(tcp, 'listening')
  const { port } = tcp.address() as net.AddressInfo
  const udp = dgram.createSocket('udp4').bind(port, '127.0.0.1')
  await once(udp, 'listening')
  udp.on('message', (query, from) => {
    const send = (bytes: Buffer) => udp.send(bytes, from.port, from.address)
    const other = dnsPacket.encode({ type: 'response', id: query.readUInt16BE(0), questions: [{ type: 'A', name: 'forged.example' }] })
    send(other)
    send(query)
    send(respond(query, 512))
  })
  try {
    await fn(port)
  } finally {
    tcp.close()
    udp.close()
  }
}

test('SVC-12 a question that came over TCP is forwarded over TCP and gets all of a long answer', () =>
  withOutside(async (port) => {
    const plugin = createForwardPlugin({ servers: async () => ['127.0.0.1'], port, clock: new VirtualClock() })
    const query = dnsPacket.encode({ type: 'query', id: 7, questions: [{ type: 'A', name: 'LONG.example' }] })
    const ask = async (protocol: 'udp' | 'tcp') => {
      const answer = await plugin.resolve(outside, query, protocol, noNext)
      assert.ok(answer && 'raw' in answer)
      return dnsPacket.decode(answer.raw)
    }
    const [short, long] = [await ask('udp'), await ask('tcp')]
    assert.deepEqual([short.flag_tc, short.answers?.length, short.questions?.[0]?.name], [true, 0, 'LONG.example'])
    assert.deepEqual([long.flag_tc, long.answers?.length], [false, 300])
  }))

test('SVC-12 forwarded questions under way are bounded, and one more is refused', async () => {
  const gate = new AbortController()
  const answered = once(gate.signal, 'abort')
  const ask = async (_server: string, query: Buffer) => {
    await answered
    return query
  }
  const plugin = createForwardPlugin({ servers: async () => ['10.0.0.1'], clock: new VirtualClock(), ask })
  const resolve = () => plugin.resolve(outside, Buffer.from('question'), 'udp', noNext)
  const underWay = Array.from({ length: 1_000 }, resolve)
  assert.deepEqual(await resolve(), { code: 'REFUSED', authoritative: false, answers: [] })
  gate.abort()
  await Promise.all(underWay)
  assert.ok('raw' in ((await resolve()) ?? {}))
})

test('only servers that can be asked from here are upstreams', () => {
  assert.deepEqual(upstreamServers('nameserver 127.0.0.53\nnameserver ::1\nsearch x\nnameserver 192.0.2.53\n nameserver 2001:db8::1\n'), [
    '192.0.2.53',
    '2001:db8::1',
  ])
})

async function withServer(fn: (port: number) => Promise<void>): Promise<void> {
  const probe = net.createServer().listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const { port } = probe.address() as net.AddressInfo
  probe.close()
  await once(probe, 'close')
  const stop = new AbortController()
  const plugins = [createKubernetesPlugin(view, zone), createForwardPlugin({ servers: async () => [], clock: new VirtualClock() })]
  const running = runDnsServer({ resolve: inOrder(plugins), addresses: ['127.0.0.1'], port, ...tools }, stop.signal)
  try {
    await fn(port)
  } finally {
    stop.abort()
    await running
  }
}

async function askUdp(port: number, bytes: Buffer): Promise<dnsPacket.DecodedPacket> {
  const socket = dgram.createSocket('udp4')
  socket.send(bytes, port, '127.0.0.1')
  const [answer] = (await once(socket, 'message')) as [Buffer]
  socket.close()
  return dnsPacket.decode(answer)
}

test('SVC-12 over UDP and TCP, case kept; outside names fail at once without upstreams; garbage gets FORMERR', () =>
  withServer(async (port) => {
    const query = (name: string) => dnsPacket.encode({ type: 'query', id: 9, flags: dnsPacket.RECURSION_DESIRED, questions: [{ type: 'A', name }] })
    const udp = await askUdp(port, query('WEB.d.svc.cluster.local'))
    assert.equal(udp.answers?.[0]?.name, 'WEB.d.svc.cluster.local')
    const missing = await askUdp(port, query('nope.d.svc.cluster.local'))
    assert.equal(codeOf(missing), 'NXDOMAIN')
    assert.equal(missing.authorities?.[0]?.type, 'SOA')
    assert.equal(codeOf(await askUdp(port, query('example.com'))), 'SERVFAIL')
    assert.equal(codeOf(await askUdp(port, Buffer.concat([query('x').subarray(0, 12), Buffer.from('ffff', 'hex')]))), 'FORMERR')
    const socket = net.connect(port, '127.0.0.1')
    socket.write(dnsPacket.streamEncode({ type: 'query', id: 9, questions: [{ type: 'A', name: 'web.d.svc.cluster.local' }] }))
    const [answer] = (await once(socket, 'data')) as [Buffer]
    assert.equal(dnsPacket.streamDecode(answer).answers?.length, 1)
    socket.destroy()
  }))

test('over TCP questions are answered in order, also when cut anywhere; who asks without reading is not read from', () =>
  withServer(async (port) => {
    const ask = (id: number) => dnsPacket.streamEncode({ type: 'query', id, questions: [{ type: 'A', name: 'web.d.svc.cluster.local' }] })
    const socket = net.connect(port, '127.0.0.1')
    const bytes = Buffer.concat([ask(1), ask(2), ask(3)])
    socket.write(bytes.subarray(0, 1))
    socket.write(bytes.subarray(1, bytes.length - 5))
    socket.write(bytes.subarray(bytes.length - 5))
    const ids: (number | undefined)[] = []
    let received: Buffer = Buffer.alloc(0)
    for await (const chunk of socket) {
      received = Buffer.concat([received, chunk as Buffer])
      while (received.length >= 2 && received.length >= 2 + received.readUInt16BE(0)) {
        ids.push(dnsPacket.streamDecode(received).id)
        received = received.subarray(2 + received.readUInt16BE(0))
      }
      if (ids.length === 3) break
    }
    assert.deepEqual(ids, [1, 2, 3])
    const greedy = net.connect(port, '127.0.0.1')
    greedy.on('error', () => {})
    const many = Buffer.concat(Array.from({ length: 1_000 }, (_, id) => ask(id)))
    let written = 0
    // Beyond what the sockets of both sides hold, the writer has to wait.
    const stopped = async () => {
      for (let turns = 0; turns < 2_000; turns++) {
        if (!greedy.writableNeedDrain) return false
        await nextTurn()
      }
      return true
    }
    while (written < 256 * 2 ** 20 && !(await stopped())) {
      greedy.write(many)
      written += many.length
    }
    greedy.destroy()
    assert.ok(written < 256 * 2 ** 20, 'the writer was never stopped')
  }))

/** dns-packet decodes the response code, but its types lack it. */
function codeOf(packet: dnsPacket.DecodedPacket): string {
  return (packet as dnsPacket.DecodedPacket & { rcode: string }).rcode
}

test('a server that cannot have all its addresses gives back those it had', async () => {
  const holder = net.createServer().listen(0, '127.0.0.1')
  await once(holder, 'listening')
  const { port } = holder.address() as net.AddressInfo
  const options = { resolve: inOrder([]), addresses: ['127.0.0.1'], port, ...tools }
  await assert.rejects(runDnsServer(options, new AbortController().signal), { code: 'EADDRINUSE' })
  const udp = dgram.createSocket('udp4').bind(port, '127.0.0.1')
  await once(udp, 'listening')
  udp.close()
  holder.close()
})

test('SVC-12 a question of a type without records here is answered with the same type', () => {
  for (const type of ['MX', 'NAPTR', 'CAA'] as const) {
    const query = dnsPacket.encode({ type: 'query', id: 7, questions: [{ type, name: 'web.d.svc.cluster.local' }] })
    const question = readQuestion(query)
    assert.ok(question)
    const answer = writeAnswer(question, { code: 'NOERROR', authoritative: true, answers: [] }, 512)
    assert.deepEqual(answer.subarray(12), query.subarray(12))
  }
})

test('SVC-12 EDNS sets the size of UDP answers, within bounds', () => {
  const sizes: readonly (readonly [announced: number | undefined, used: number])[] = [
    [undefined, 512],
    [100, 512],
    [1232, 1232],
    [65_000, 4096],
  ]
  for (const [udpPayloadSize, used] of sizes) {
    const additionals =
      udpPayloadSize === undefined ? [] : [{ type: 'OPT', name: '.', udpPayloadSize, extendedRcode: 0, ednsVersion: 0, flags: 0, flag_do: false, options: [] }]
    const query = dnsPacket.encode({ type: 'query', id: 7, questions: [{ type: 'A', name: 'a.b' }], additionals } as dnsPacket.Packet)
    const question = readQuestion(query)
    assert.deepEqual([question?.udpSize, question?.hasEdns], [used, udpPayloadSize !== undefined])
  }
})

test('SVC-12 a message that is cut anywhere, or whose name has a pointer or is too long, is no question', () => {
  const query = dnsPacket.encode({ type: 'query', id: 7, questions: [{ type: 'A', name: 'web.d.svc.cluster.local' }] })
  for (let length = 0; length < query.length; length++) {
    const cut = readQuestion(query.subarray(0, length))
    // The class of the question is not read.
    if (length < query.length - 2) assert.equal(cut, undefined, `${length} bytes`)
  }
  const header = query.subarray(0, 12)
  assert.equal(readQuestion(Buffer.concat([header, Buffer.from([0xc0, 0x0c, 0, 1, 0, 1])])), undefined)
  const label = Buffer.concat([Buffer.from([63]), Buffer.alloc(63, 'a')])
  assert.equal(readQuestion(Buffer.concat([header, label, label, label, label, Buffer.from([0, 0, 1, 0, 1])])), undefined)
  assert.ok(readQuestion(Buffer.concat([header, label, label, label, Buffer.from([0, 0, 1, 0, 1])])))
})
