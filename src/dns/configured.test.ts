/** Cluster DNS by a Corefile: what each plugin does to a question, over name servers of the test. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import dnsPacket from 'dns-packet'
import type { Service } from '#api/gen/types/core.v1'
import { noLog } from '#base/log'
import { noMetrics } from '#base/metrics'
import { seededRandom } from '#base/random'
import { VirtualClock } from '#base/virtualClock'
import { createSharedInformerFactory } from '#client/cache/sharedInformerFactory'
import { createClient } from '#client/clientOverTransport'
import { anObject, HistoryTransport } from '#testing/historyTransport'
import type { ClusterView } from './clusterRecords.ts'
import { followCorefile } from './configuration.ts'
import { defaultPlan } from './corefile/defaultPlan.ts'
import { createPatternCompiler } from './corefile/patterns.ts'
import { planCorefile } from './corefile/plan.ts'
import { readQuestion, writeAnswer } from './message.ts'
import type { Ask } from './plugins/forward.ts'
import type { DnsResolver } from './plugins/plugin.ts'
import { createServers, type ServersDeps } from './servers.ts'

const zone = 'cluster.local'
const serviceOf = (name: string, spec: Service['spec']): Service => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name, namespace: 'd' },
  spec,
  status: {},
})
const services = [
  serviceOf('web', { clusterIP: '10.96.0.10', clusterIPs: ['10.96.0.10'], ports: [{ port: 80 }] }),
  serviceOf('out', { type: 'ExternalName', externalName: 'Example.com' }),
  serviceOf('inner', { type: 'ExternalName', externalName: 'out.d.svc.cluster.local' }),
  serviceOf('circle', { type: 'ExternalName', externalName: 'circle.d.svc.cluster.local' }),
  serviceOf('gone', { type: 'ExternalName', externalName: 'gone.example' }),
]
const view: ClusterView = {
  service: (namespace, name) => services.find(({ metadata }) => metadata.namespace === namespace && metadata.name === name),
  slices: () => [],
  namespaceExists: (name) => name === 'd',
  servicesByIp: () => [],
  slicesByIp: () => [],
}

/** Name servers outside the cluster: each answers with two addresses of its own, and knows nothing below gone.example. */
class Outside {
  readonly asked: string[] = []
  readonly ask: Ask = async (server, query, protocol) => {
    const question = readQuestion(query)
    assert.ok(question)
    this.asked.push(`${server} ${question.name}`)
    const { name, nameAsAsked, type } = question
    if (name.endsWith('gone.example')) {
      const authority = [{ name: 'example', ttl: 60, type: 'SOA' as const, mname: 'ns.example', rname: 'root.example', serial: 1, minimum: 20 }]
      return writeAnswer(question, { code: 'NXDOMAIN', authoritative: false, answers: [], authority }, 4096)
    }
    const last = server.replace(/:53$/, '').split('.').at(-1)
    const addresses = type === 'A' ? [`192.0.2.${last}`, `198.51.100.${last}`] : []
    const answers = addresses.map((address) => ({ name: nameAsAsked, ttl: 60, type: 'A' as const, address }))
    return writeAnswer(question, { code: 'NOERROR', authoritative: false, answers }, protocol === 'udp' ? 512 : 65_535)
  }
}

interface World {
  readonly outside: Outside
  readonly clock: VirtualClock
  readonly ask: (name: string, type?: 'A' | 'AAAA' | 'PTR' | 'CNAME') => Promise<string>
}

function depsOf(outside: Outside, clock: VirtualClock): ServersDeps {
  const upstreams = async () => ['203.0.113.1']
  return { view, zone, clock, log: noLog, metrics: noMetrics, upstreams, hostAddresses: ['10.88.7.1', 'fd53::1'], ask: outside.ask }
}

/** The code, unless it is NOERROR, and the records of the bytes that a client gets. */
function asking(resolve: DnsResolver): World['ask'] {
  return async (name, type = 'A') => {
    const query = dnsPacket.encode({ type: 'query', id: 7, flags: dnsPacket.RECURSION_DESIRED, questions: [{ type, name }] })
    const question = readQuestion(query)
    assert.ok(question)
    const reply = await resolve(question, query, 'udp')
    const packet = dnsPacket.decode('raw' in reply ? reply.raw : writeAnswer(question, reply, 512)) as dnsPacket.DecodedPacket & { rcode: string }
    assert.equal(packet.questions?.[0]?.name, name)
    const records = (packet.answers ?? []).map((answer) => `${answer.name === name ? '' : `${answer.name} `}${'data' in answer ? answer.data : ''}`)
    return [...(packet.rcode === 'NOERROR' ? [] : [packet.rcode]), ...records].join(', ')
  }
}

function serve(corefile: string): World {
  const [outside, clock] = [new Outside(), new VirtualClock()]
  const resolve = createServers(planCorefile(corefile, { zone, own: ['10.96.0.2'], compilePattern: createPatternCompiler() }), depsOf(outside, clock))
  return { outside, clock, ask: asking(resolve) }
}

const plain = `. {\n kubernetes ${zone}\n forward . 203.0.113.1\n}`

/** What kubeadm installs. */
function defaultCorefile(zone: string): string {
  return `.:53 {
    errors
    health
    ready
    kubernetes ${zone} in-addr.arpa ip6.arpa {
        pods insecure
        fallthrough in-addr.arpa ip6.arpa
        ttl 30
    }
    prometheus :9153
    forward . /etc/resolv.conf {
        max_concurrent 1000
    }
    cache 30 {
        disable success ${zone}
        disable denial ${zone}
    }
    loop
    reload
    loadbalance
}
`
}

test('SVC-12 a cluster without a Corefile has what the Corefile of kubeadm asks for', () => {
  assert.deepEqual(planCorefile(defaultCorefile(zone), { zone, own: [] }), [defaultPlan(zone)])
})

test('SVC-12 the addresses of an ExternalName follow its alias, from outside and from another Service', async () => {
  const { ask, outside } = serve(plain)
  assert.equal(await ask('out.d.svc.cluster.local'), 'Example.com, Example.com 192.0.2.1, Example.com 198.51.100.1')
  assert.equal(await ask('out.d.svc.cluster.local', 'AAAA'), 'Example.com')
  assert.equal(await ask('out.d.svc.cluster.local', 'CNAME'), 'Example.com')
  const viaService = 'out.d.svc.cluster.local, out.d.svc.cluster.local Example.com, Example.com 192.0.2.1, Example.com 198.51.100.1'
  assert.equal(await ask('inner.d.svc.cluster.local'), viaService)
  assert.equal(await ask('gone.d.svc.cluster.local'), 'gone.example')
  assert.equal(outside.asked.length, 4)
})

test('SVC-12 an ExternalName that names itself is answered after eight questions', async () => {
  assert.equal((await serve(plain).ask('circle.d.svc.cluster.local')).split(', ').length, 9)
})

test('SVC-12 pods find the host by its names, in both families', async () => {
  const { ask, outside } = serve(defaultCorefile(zone))
  for (const name of ['host.skiff.internal', 'Host.Docker.Internal']) {
    assert.equal(await ask(name), '10.88.7.1')
    assert.equal(await ask(name, 'AAAA'), 'fd53::1')
  }
  assert.equal(await ask('other.skiff.internal'), '192.0.2.1, 198.51.100.1')
  assert.deepEqual(outside.asked, ['203.0.113.1 other.skiff.internal'])
})

test('SVC-12 stub domains have name servers of their own, as a server or as a zone of forward, and the longest zone decides', async () => {
  const { ask, outside } = serve(`
    corp.example:53 eu.corp.example:53 {
      errors
      cache 30
      forward . 10.150.0.5 10.150.0.6:5353
    }
    .:53 {
      kubernetes cluster.local in-addr.arpa ip6.arpa {
        pods insecure
        fallthrough in-addr.arpa ip6.arpa
      }
      forward lab.example dns://10.150.0.7 # one of ours
      forward . /etc/resolv.conf {
        except secret.example
      }
    }`)
  assert.equal(await ask('db.corp.example'), '192.0.2.5, 198.51.100.5')
  assert.equal(await ask('a.lab.example'), '192.0.2.7, 198.51.100.7')
  assert.equal(await ask('www.example'), '192.0.2.1, 198.51.100.1')
  assert.equal(await ask('key.secret.example'), 'REFUSED')
  assert.equal(await ask('web.d.svc.cluster.local'), '10.96.0.10')
  assert.deepEqual(outside.asked, ['10.150.0.5:53 db.corp.example', '10.150.0.7:53 a.lab.example', '203.0.113.1 www.example'])
})

test('SVC-12 without a server for the root, names of other zones are refused', async () => {
  assert.equal(await serve('cluster.local {\n kubernetes\n}').ask('www.example'), 'REFUSED')
})

test('SVC-12 hosts answers for its names and their addresses, and passes on what its fallthrough allows', async () => {
  const { ask } = serve(`. {\n hosts {\n 10.1.2.3 Db.example db\n fd00::5 db.example\n ttl 60\n fallthrough example\n }\n forward . 203.0.113.1\n}`)
  assert.equal(await ask('DB.example'), '10.1.2.3')
  assert.equal(await ask('db.example', 'AAAA'), 'fd00::5')
  assert.equal(await ask('db', 'AAAA'), '')
  assert.equal(await ask('3.2.1.10.in-addr.arpa', 'PTR'), 'db.example')
  assert.equal(await ask('www.example'), '192.0.2.1, 198.51.100.1')
  assert.equal(await ask('www.other'), 'SERVFAIL')
})

test('SVC-12 rewrite asks for another name, inside and outside, and the client sees its own', async () => {
  const { ask, outside } = serve(`. {
    rewrite name exact db.old web.d.svc.cluster.local
    rewrite continue name suffix .corp.old .d.svc.cluster.local
    rewrite name prefix beta- www-
    rewrite name substring .mid. .
    kubernetes cluster.local
    forward . 203.0.113.1
  }`)
  assert.equal(await ask('DB.old'), '10.96.0.10')
  assert.equal(await ask('web.corp.old'), '10.96.0.10')
  assert.equal(await ask('beta-1.mid.example'), '192.0.2.1, 198.51.100.1')
  assert.equal(await ask('a.mid.example'), '192.0.2.1, 198.51.100.1')
  assert.deepEqual(outside.asked, ['203.0.113.1:53 www-1.mid.example', '203.0.113.1:53 a.example'])
})

test('SVC-12 rewrite makes another name of the groups of a regular expression, which sees the final dot, and the client sees its own', async () => {
  const { ask, outside } = serve(`. {
    rewrite stop {
      name regex (.*)-(eu|us)\\.corp\\.old\\.$ {1}.d.svc.cluster.local
      answer name (.*)\\.d\\.svc\\.cluster\\.local\\. {1}-eu.corp.old
    }
    rewrite name regex "^(a+)+\\.slow\\.$" {0}fast.example. answer auto
    rewrite continue name regex ^(.)(.)\\.two {2}{1}.mid.example
    rewrite name substring mid in
    kubernetes cluster.local
    forward . 203.0.113.1
  }`)
  assert.equal(await ask('Web-EU.corp.old'), '10.96.0.10')
  assert.equal(await ask('inner-us.corp.old'), 'out.d.svc.cluster.local, out-eu.corp.old Example.com, Example.com 192.0.2.1, Example.com 198.51.100.1')
  assert.equal(await ask('web-asia.corp.old'), '192.0.2.1, 198.51.100.1')
  assert.equal(await ask('aaa.slow'), '192.0.2.1, 198.51.100.1')
  assert.equal(await ask('ab.two'), '192.0.2.1, 198.51.100.1')
  assert.deepEqual(outside.asked, [
    '203.0.113.1:53 example.com',
    '203.0.113.1:53 web-asia.corp.old',
    '203.0.113.1:53 aaa.slow.fast.example',
    '203.0.113.1:53 ba.in.example',
  ])
})

test('SVC-12 a regular expression that other engines take exponential time for answers a name of the greatest length at once', async () => {
  const { ask } = serve('. {\n rewrite name regex ^(([a-z])+.)+[A-Z]([a-z])+$ b.example\n forward . 203.0.113.1\n}')
  const name = Array.from({ length: 4 }, () => 'a'.repeat(62)).join('.')
  const start = process.cpuUsage()
  assert.equal(await ask(name), '192.0.2.1, 198.51.100.1')
  const { user, system } = process.cpuUsage(start)
  assert.ok(user + system < 1_000_000, `${user + system} microseconds`)
})

test('SVC-12 rewrite replaces each place of a substring, and a rule whose result is no name leaves the name', async () => {
  const { ask, outside } = serve(`. {\n rewrite name substring x. y.\n rewrite name regex (.*)z {1}..z\n forward . 203.0.113.1\n}`)
  await ask('x.x.example')
  await ask('z.example')
  assert.deepEqual(outside.asked, ['203.0.113.1:53 y.y.example', '203.0.113.1:53 z.example'])
})

test('SVC-12 the cache keeps answers and denials for their time, not for disabled zones, and gives each client its own letters', async () => {
  const { ask, outside, clock } = serve(`. {\n cache 30 {\n disable success fresh.example\n denial 100 10 5\n }\n forward . 203.0.113.1\n}`)
  const askedFor = async (name: string) => {
    await ask(name)
    return outside.asked.splice(0).length
  }
  assert.equal(await askedFor('www.example'), 1)
  assert.equal(await ask('WWW.Example'), '192.0.2.1, 198.51.100.1')
  assert.equal(await askedFor('www.example'), 0)
  assert.deepEqual([await askedFor('fresh.example'), await askedFor('fresh.example')], [1, 1])
  assert.deepEqual([await askedFor('a.gone.example'), await askedFor('a.gone.example')], [1, 0])
  assert.equal(await ask('a.gone.example'), 'NXDOMAIN')
  await clock.advance(10_000)
  assert.equal(await askedFor('a.gone.example'), 1)
  assert.equal(await askedFor('www.example'), 0)
  await clock.advance(20_000)
  assert.equal(await askedFor('www.example'), 1)
})

test('SVC-12 addresses take turns at the first place, those of a cached answer too', async () => {
  const { ask } = serve('. {\n loadbalance\n cache\n forward . 203.0.113.1\n}')
  await ask('www.example')
  const seen = new Set([await ask('www.example'), await ask('www.example')])
  assert.deepEqual(seen, new Set(['192.0.2.1, 198.51.100.1', '198.51.100.1, 192.0.2.1']))
})

const refusals: readonly (readonly [text: string, reason: RegExp])[] = [
  ['', /Corefile:1: there is no server/],
  ['. {\n errors', /Corefile:2: a closing brace is missing/],
  ['.\n', /Corefile:1: a server needs a block in braces/],
  ['. {\n errors\n autopath @kubernetes\n}', /Corefile:3: there is no plugin "autopath": those served are errors, health/],
  ['.:5300 {\n}', /Corefile:1: "\.:5300" must be a zone with port 53 or none/],
  ['tls://. {\n}', /must be a zone with port 53/],
  ['a b {\n}\nB {\n}', /two servers have the zone "b\."/],
  ['. {\n kubernetes other.local\n}', /Corefile:2: kubernetes: the zones must have the cluster's domain, cluster\.local/],
  [`. {\n kubernetes ${zone} {\n pods verified\n }\n}`, /Corefile:3: kubernetes: the option "pods verified" is not served/],
  ['. {\n forward . tls://1.1.1.1\n}', /forward: "tls:\/\/1\.1\.1\.1" must be an IP address/],
  ['. {\n forward . 10.96.0.2\n}', /forward: 10\.96\.0\.2 is this server itself/],
  ['. {\n forward . 127.0.0.53\n}', /forward: 127\.0\.0\.53 is this server itself/],
  ['. {\n forward . 1.1.1.1 {\n tls_servername x\n }\n}', /forward: the option "tls_servername x" is not served/],
  ['. {\n hosts /etc/coredns/NodeHosts\n}', /hosts: the file \/etc\/coredns\/NodeHosts is not read/],
  ['. {\n rewrite name regex (.* {1}.x\n}', /Corefile:2: rewrite: error parsing regexp: missing closing \): `\(\.\*`/],
  ['. {\n rewrite name regex (?=a) b\n}', /Corefile:2: rewrite: error parsing regexp: /],
  ['. {\n rewrite name regex (.*)[.]old {1}.{2}.x\n}', /rewrite: "\{1\}\.\{2\}\.x" uses the group \{2\}, which "\(\.\*\)\[\.\]old" does not have/],
  ['. {\n rewrite name regex ((a?){50}){50} b\n}', /rewrite: the regular expressions have more than 1000 instructions together/],
  [`. {\n${' rewrite name regex a{40}x b\n'.repeat(30)}}`, /Corefile:26: rewrite: the regular expressions have more than 1000 instructions together/],
  ['. {\n rewrite name fuzzy a b\n}', /rewrite: name fuzzy is not served/],
  ['. {\n rewrite name regex a b answer value c d\n}', /rewrite: "answer value c d" is not served/],
  ['. {\n rewrite type ANY HINFO\n}', /rewrite: only names are rewritten/],
  ['. {\n cache {\n serve_stale\n }\n}', /cache: the option "serve_stale" is not served/],
  ['. {\n cache\n cache 5\n}', /Corefile:3: cache stands twice in one server/],
  ['. {\n log {\n class denial\n }\n}', /log: the option "class" is not served/],
]
for (const [text, reason] of refusals)
  test(`SVC-12 a Corefile is refused by name: ${JSON.stringify(text)}`, () =>
    assert.throws(() => planCorefile(text, { zone, own: ['10.96.0.2'], compilePattern: createPatternCompiler() }), reason))

test('SVC-12 cluster DNS follows the ConfigMap coredns, stays as it is under one that it refuses, and has its default without one', async () => {
  const server = new HistoryTransport()
  const [outside, clock] = [new Outside(), new VirtualClock()]
  const informers = createSharedInformerFactory(createClient(server), { clock, random: seededRandom(1), log: noLog })
  const events: string[] = []
  const recorder = { event: (...[, , reason, message]: string[]) => void events.push(`${reason}: ${message}`), flush: async () => {} }
  const configuration = followCorefile({ ...depsOf(outside, clock), informers, events: recorder as never }, { own: [] })
  const stop = new AbortController()
  const running = informers.run(stop.signal)
  const ask = asking(configuration.resolve)
  const put = async (corefile: string) => {
    server.put(
      '/api/v1/namespaces/kube-system/configmaps/coredns',
      anObject('ConfigMap', { name: 'coredns', namespace: 'kube-system' }, { data: { Corefile: corefile } }),
    )
    await clock.advance(1_000)
    await configuration.synced(stop.signal)
  }
  await clock.advance(1_000)
  await configuration.synced(stop.signal)
  assert.equal(await ask('www.example'), '192.0.2.1, 198.51.100.1')
  await put('. {\n forward . 203.0.113.9\n}')
  assert.equal(await ask('www.example'), '192.0.2.9, 198.51.100.9')
  await put('. {\n rewrite name regex (.*)[.]old {1}.example\n forward . 203.0.113.9\n}')
  assert.equal(await ask('www.old'), '192.0.2.9, 198.51.100.9')
  assert.equal(outside.asked.at(-1), '203.0.113.9:53 www.example')
  await put('. {\n whoami\n}')
  assert.equal(await ask('www.example'), '192.0.2.9, 198.51.100.9')
  assert.equal(events.length, 1)
  assert.match(events[0] ?? '', /^CorefileRefused: Corefile:2: there is no plugin "whoami".*Cluster DNS stays as it is\.$/)
  server.remove('/api/v1/namespaces/kube-system/configmaps/coredns')
  await clock.advance(1_000)
  assert.equal(await ask('www.example'), '192.0.2.1, 198.51.100.1')
  const watched = server.requests.filter(({ path }) => path.endsWith('/configmaps')).map(({ query }) => query?.fieldSelector)
  assert.deepEqual([...new Set(watched)], ['metadata.name=coredns'])
  stop.abort()
  await clock.advance(1_000)
  await running
})

test('SVC-12 a message of another server that is cut anywhere is no answer, and its names are followed over bounded pointers', async () => {
  const { readAnswer } = await import('./readAnswer.ts')
  const records = [
    { type: 'CNAME', name: 'a.example', ttl: 5, data: 'b.example' },
    { type: 'MX', name: 'b.example', ttl: 5, data: { preference: 10, exchange: 'mail.example' } },
    { type: 'TXT', name: 'b.example', ttl: 5, data: ['one', 'two'] },
    { type: 'SRV', name: 'b.example', ttl: 5, data: { priority: 1, weight: 2, port: 3, target: 'c.example' } },
  ] as dnsPacket.Answer[]
  const bytes = dnsPacket.encode({ type: 'response', id: 7, questions: [{ type: 'A', name: 'a.example' }], answers: records })
  for (let length = 0; length < bytes.length; length++) assert.equal(readAnswer(bytes.subarray(0, length)), undefined, `${length} bytes`)
  const answer = readAnswer(bytes)
  const question = readQuestion(dnsPacket.encode({ type: 'query', id: 7, questions: [{ type: 'A', name: 'a.example' }] }))
  assert.ok(answer && question)
  const again = dnsPacket.decode(writeAnswer(question, answer, 4096)).answers ?? []
  assert.deepEqual(
    again.map(({ type, name, ...rest }) => [type, name, JSON.stringify('data' in rest ? rest.data : '')]),
    (dnsPacket.decode(bytes).answers ?? []).map(({ type, name, ...rest }) => [type, name, JSON.stringify('data' in rest ? rest.data : '')]),
  )
  const circle = Buffer.concat([bytes.subarray(0, 4), Buffer.from([0, 0, 0, 1, 0, 0, 0, 0, 0xc0, 12, 0, 5, 0, 1, 0, 0, 0, 1, 0, 2, 0xc0, 12])])
  assert.equal(readAnswer(circle), undefined)
})
