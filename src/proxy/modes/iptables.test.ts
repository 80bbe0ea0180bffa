/** The chains of mode iptables. What it shares with every mode: modes.test.ts. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Service } from '#api/gen/types/core.v1'
import type { EndpointSlice } from '#api/gen/types/discovery.v1'
import type { Exec } from '#host/exec'
import { buildModel, type Family, type FamilyModel } from '../model.ts'
import { iptables, renderChains } from './iptables.ts'

/** The Service of a load-balanced web application, as the API server completes it. */
const webService: Service = {
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name: 'web-service', namespace: 'default' },
  spec: {
    type: 'LoadBalancer',
    clusterIP: '10.96.0.20',
    clusterIPs: ['10.96.0.20'],
    ports: [{ port: 80, protocol: 'TCP', targetPort: 8080, nodePort: 31_080 }],
    selector: { app: 'web' },
  },
  status: { loadBalancer: { ingress: [{ ip: '172.18.0.2' }] } },
}

function modelOf(service: Service, addresses: readonly string[], port = 8080): FamilyModel {
  const slice: EndpointSlice = {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name: 'web', namespace: service.metadata?.namespace, labels: { 'kubernetes.io/service-name': service.metadata?.name ?? '' } },
    addressType: 'IPv4',
    endpoints: addresses.map((address, i) => ({ addresses: [address], ...(i === 0 ? { nodeName: 'self' } : {}) })),
    ports: [{ port, ...(service.spec.ports?.[0]?.name ? { name: service.spec.ports[0].name } : {}) }],
  }
  const sources = { services: [service], slices: [slice], place: { nodeName: 'self' }, clusterCidrs: ['10.244.0.0/16'], serviceCidrs: ['10.96.0.0/16'] }
  const [model] = buildModel(sources, ['IPv4'])
  assert.ok(model)
  return model
}

const withSpec = (spec: Partial<Service['spec']>): Service => ({ ...webService, spec: { ...webService.spec, ...spec } })
const podIps = ['10.244.0.7', '10.244.0.8', '10.244.0.9']

/** All rules of a table, as `CHAIN rule`. */
function rulesOf(model: FamilyModel, table: 'filter' | 'nat', isTcpLiberal = false): string[] {
  const chains = renderChains(model, { isTcpLiberal }).get(table)
  return [...(chains ?? [])].flatMap(([chain, rules]) => rules.map((rule) => `${chain} ${rule}`))
}

const own = (rules: readonly string[]) => rules.filter((rule) => rule.includes('web-service'))

test('SVC-05 iptables accepts the health checks of a load balancer at their node port, on nodes without endpoints too', () => {
  const local = withSpec({ externalTrafficPolicy: 'Local', healthCheckNodePort: 32_100 })
  const accepted = (model: FamilyModel) => rulesOf(model, 'filter').filter((rule) => rule.startsWith('KUBE-NODEPORTS '))
  const rule = 'KUBE-NODEPORTS -m comment --comment "default/web-service health check node port" -m tcp -p tcp --dport 32100 -j ACCEPT'
  assert.deepEqual(accepted(modelOf(local, podIps)), [rule])
  assert.deepEqual(accepted(modelOf(local, [])), [rule])
  assert.deepEqual(accepted(modelOf(withSpec({ healthCheckNodePort: 32_100 }), podIps)), [])
})

test('SVC-05 iptables gives the chains of Services the names that upstream gives them', () => {
  const kubernetes: Service = {
    ...webService,
    metadata: { name: 'kubernetes', namespace: 'default' },
    spec: { clusterIP: '10.96.0.1', ports: [{ name: 'https', port: 443, protocol: 'TCP' }] },
  }
  assert.ok(rulesOf(modelOf(kubernetes, podIps), 'nat').some((rule) => rule.endsWith('-d 10.96.0.1 --dport 443 -j KUBE-SVC-NPX46M4PTMTKRN6Y')))
  const svc1: Service = {
    ...webService,
    metadata: { name: 'svc1', namespace: 'ns1' },
    spec: { clusterIP: '172.30.0.41', ports: [{ name: 'p80', port: 80, protocol: 'TCP' }] },
  }
  const rules = rulesOf(modelOf(svc1, ['10.180.0.1'], 80), 'nat')
  assert.ok(rules.includes('KUBE-SVC-XPGD46QRK7WJZT7O -m comment --comment "ns1/svc1:p80 -> 10.180.0.1:80" -j KUBE-SEP-SXIVWICOYRO3J4NJ'), rules.join('\n'))
})

const tcp = '-m tcp -p tcp'
const hash = 'SZGXCNNBZLC4E3DM'
const endpointHashes = ['4RO4RO7KBNXLFV2H', 'UJMGUY35LTJWWSXD', 'V5IF7WDRECKOPOV7']
const comment = (text: string) => `-m comment --comment "${text}"`
const toClusterIp = (end: string) => `${comment(`default/web-service ${end}`)} ${tcp} -d 10.96.0.20 --dport 80`
const toBalancer = (end: string) => `${comment(`default/web-service ${end}`)} ${tcp} -d 172.18.0.2 --dport 80`

test('SVC-05 iptables leads each address of a Service to its endpoints, with an equal chance for each', () => {
  const model = modelOf(webService, podIps)
  assert.deepEqual(own(rulesOf(model, 'filter')), [])
  const chances = ['-m statistic --mode random --probability 0.3333333333 ', '-m statistic --mode random --probability 0.5000000000 ', '']
  const plain = '-m comment --comment default/web-service'
  assert.deepEqual(own(rulesOf(model, 'nat')), [
    `KUBE-SERVICES ${toClusterIp('cluster IP')} -j KUBE-SVC-${hash}`,
    `KUBE-SERVICES ${toBalancer('loadbalancer IP')} -j KUBE-EXT-${hash}`,
    `KUBE-NODEPORTS ${plain} ${tcp} --dport 31080 -j KUBE-EXT-${hash}`,
    `KUBE-SVC-${hash} ${toClusterIp('cluster IP')} ! -s 10.244.0.0/16 -j KUBE-MARK-MASQ`,
    ...podIps.map((ip, i) => `KUBE-SVC-${hash} ${comment(`default/web-service -> ${ip}:8080`)} ${chances[i]}-j KUBE-SEP-${endpointHashes[i]}`),
    `KUBE-EXT-${hash} ${comment('masquerade traffic for default/web-service external destinations')} -j KUBE-MARK-MASQ`,
    ...podIps.flatMap((ip, i) => [
      `KUBE-SEP-${endpointHashes[i]} ${plain} -s ${ip} -j KUBE-MARK-MASQ`,
      `KUBE-SEP-${endpointHashes[i]} ${plain} ${tcp} -j DNAT --to-destination ${ip}:8080`,
    ]),
  ])
  assert.ok(rulesOf(model, 'nat').includes(`KUBE-EXT-${hash} -j KUBE-SVC-${hash}`))
})

test('SVC-05 iptables rejects each address of a Service without endpoints', () => {
  const model = modelOf(webService, [])
  assert.deepEqual(own(rulesOf(model, 'nat')), [])
  const external = comment('default/web-service has no endpoints')
  assert.deepEqual(own(rulesOf(model, 'filter')), [
    `KUBE-SERVICES ${toClusterIp('has no endpoints')} -j REJECT`,
    `KUBE-EXTERNAL-SERVICES ${toBalancer('has no endpoints')} -j REJECT`,
    `KUBE-EXTERNAL-SERVICES ${external} -m addrtype --dst-type LOCAL ${tcp} --dport 31080 -j REJECT`,
  ])
})

test('SVC-10 iptables drops traffic with the Local policies where only other nodes have endpoints, and short-circuits pods and the node itself', () => {
  const elsewhere = ['', '10.244.1.8']
  const model = modelOf(withSpec({ externalTrafficPolicy: 'Local', internalTrafficPolicy: 'Local' }), elsewhere)
  const noLocal = 'has no local endpoints'
  assert.deepEqual(own(rulesOf(model, 'filter')), [
    `KUBE-SERVICES ${toClusterIp(noLocal)} -j DROP`,
    `KUBE-EXTERNAL-SERVICES ${toBalancer(noLocal)} -j DROP`,
    `KUBE-EXTERNAL-SERVICES ${comment(`default/web-service ${noLocal}`)} -m addrtype --dst-type LOCAL ${tcp} --dport 31080 -j DROP`,
  ])
  const end = 'traffic for default/web-service external destinations'
  const external = rulesOf(model, 'nat').filter((rule) => rule.startsWith('KUBE-EXT-'))
  assert.deepEqual(external, [
    `KUBE-EXT-${hash} ${comment(`pod ${end}`)} -s 10.244.0.0/16 -j KUBE-SVC-${hash}`,
    `KUBE-EXT-${hash} ${comment(`masquerade LOCAL ${end}`)} -m addrtype --src-type LOCAL -j KUBE-MARK-MASQ`,
    `KUBE-EXT-${hash} ${comment(`route LOCAL ${end}`)} -m addrtype --src-type LOCAL -j KUBE-SVC-${hash}`,
  ])
  const here = rulesOf(modelOf(withSpec({ externalTrafficPolicy: 'Local' }), podIps), 'nat')
  assert.ok(here.includes(`KUBE-EXT-${hash} -j KUBE-SVL-${hash}`))
  const local = here.filter((rule) => rule.startsWith('KUBE-SVL-'))
  assert.deepEqual(local, [`KUBE-SVL-${hash} ${comment('default/web-service -> 10.244.0.7:8080')} -j KUBE-SEP-${endpointHashes[0]}`])
})

test('SVC-03 iptables lets only the source ranges reach the address of a load balancer, also when none is of the family', () => {
  const guarded = modelOf(withSpec({ loadBalancerSourceRanges: ['203.0.113.0/25'] }), podIps)
  const firewall = `KUBE-FW-${hash}`
  const dropped = `KUBE-PROXY-FIREWALL ${toBalancer(`traffic not accepted by ${firewall}`)} -j DROP`
  const end = `${firewall} ${comment('other traffic to default/web-service will be dropped by KUBE-PROXY-FIREWALL')}`
  assert.deepEqual(own(rulesOf(guarded, 'filter')), [dropped])
  const nat = rulesOf(guarded, 'nat')
  assert.ok(nat.includes(`KUBE-SERVICES ${toBalancer('loadbalancer IP')} -j ${firewall}`))
  const ofFirewall = (rules: readonly string[]) => rules.filter((rule) => rule.startsWith('KUBE-FW-'))
  assert.deepEqual(ofFirewall(nat), [`${firewall} ${comment('default/web-service loadbalancer IP')} -s 203.0.113.0/25 -j KUBE-EXT-${hash}`, end])
  const foreign = modelOf(withSpec({ loadBalancerSourceRanges: ['2001:db8::/64'] }), podIps)
  assert.deepEqual(own(rulesOf(foreign, 'filter')), [dropped])
  assert.deepEqual(ofFirewall(rulesOf(foreign, 'nat')), [end])
})

test('SVC-10 iptables remembers the endpoint of a client with ClientIP affinity', () => {
  const rules = rulesOf(
    modelOf(withSpec({ sessionAffinity: 'ClientIP', sessionAffinityConfig: { clientIP: { timeoutSeconds: 90 } } }), podIps.slice(0, 1)),
    'nat',
  )
  const chain = `KUBE-SEP-${endpointHashes[0]}`
  const pair = comment('default/web-service -> 10.244.0.7:8080')
  assert.ok(rules.includes(`KUBE-SVC-${hash} ${pair} -m recent --name ${chain} --rcheck --seconds 90 --reap -j ${chain}`), rules.join('\n'))
  assert.ok(rules.some((rule) => rule.startsWith(chain) && rule.includes(`-m recent --name ${chain} --set ${tcp} -j DNAT`)))
})

test('SVC-05 iptables writes no comments on endpoints beyond a thousand of them', () => {
  const many = (count: number) => Array.from({ length: count }, (_, i) => `10.244.${1 + (i >> 8)}.${i & 255}`)
  const commented = (count: number) => rulesOf(modelOf(webService, many(count)), 'nat').filter((rule) => /^KUBE-SEP-.*--comment/.test(rule)).length
  assert.equal(commented(1000), 2000)
  assert.equal(commented(1001), 0)
})

test('SVC-05 iptables keeps node ports off ::1 with IPv6, protects 127.0.0.1 with IPv4, and drops INVALID packets unless the kernel is liberal', () => {
  const empty = (family: Family): FamilyModel => ({ family, rules: [], clusterCidrs: [], serviceCidrs: [] })
  const has = (rules: readonly string[], start: string, part: string) => rules.some((rule) => rule.startsWith(start) && rule.includes(part))
  assert.ok(has(rulesOf(empty('IPv6'), 'nat'), 'KUBE-SERVICES', '-m addrtype --dst-type LOCAL ! -d ::1/128 -j KUBE-NODEPORTS'))
  assert.ok(!has(rulesOf(empty('IPv6'), 'filter'), 'KUBE-FIREWALL', ''))
  assert.ok(has(rulesOf(empty('IPv4'), 'filter'), 'KUBE-FIREWALL', '-d 127.0.0.0/8 ! -s 127.0.0.0/8'))
  assert.ok(has(rulesOf(empty('IPv4'), 'filter'), 'KUBE-FORWARD', '--ctstate INVALID -j DROP'))
  assert.ok(!has(rulesOf(empty('IPv4'), 'filter', true), 'KUBE-FORWARD', 'INVALID'))
})

test('SVC-05 iptables shows the kernel’s chains of a Service in the order of a packet, with their connections, and names those that are missing', async () => {
  const plain = '-m comment --comment "default/web-service"'
  const stdout = `*filter
[9:540] -A KUBE-FORWARD -m conntrack --ctstate INVALID -j DROP
COMMIT
*nat
[4:240] -A KUBE-SERVICES -d 10.96.0.20/32 -p tcp ${comment('default/web-service cluster IP')} -m tcp --dport 80 -j KUBE-SVC-${hash}
[7:420] -A KUBE-SERVICES -d 10.96.0.21/32 -p tcp ${comment('default/web-service:other cluster IP')} -m tcp --dport 80 -j KUBE-SVC-XPGD46QRK7WJZT7O
[1:60] -A KUBE-NODEPORTS -p tcp ${plain} -m tcp --dport 31080 -j KUBE-EXT-${hash}
[1:60] -A KUBE-EXT-${hash} ${comment('masquerade traffic for default/web-service external destinations')} -j KUBE-MARK-MASQ
[1:60] -A KUBE-EXT-${hash} -j KUBE-SVC-${hash}
[5:300] -A KUBE-SVC-${hash} ${comment('default/web-service -> 10.244.0.7:8080')} -j KUBE-SEP-${endpointHashes[0]}
COMMIT
`
  const exec = { run: async () => ({ code: 0, stdout, stderr: '', timedOut: false }) } as unknown as Exec
  const shown = await iptables.rulesOf(exec, modelOf(webService, podIps.slice(0, 1)))
  assert.deepEqual(
    shown.map(({ place, lines, connections }) => [place, lines?.length, connections]),
    [
      ['nat KUBE-SERVICES', 1, 4],
      [`nat KUBE-SERVICES ${toBalancer('loadbalancer IP')} -j KUBE-EXT-${hash}`, undefined, undefined],
      ['nat KUBE-NODEPORTS', 1, 1],
      [`nat KUBE-EXT-${hash}`, 2, 1],
      [`nat KUBE-SVC-${hash}`, 1, 5],
      [`nat KUBE-SEP-${endpointHashes[0]}`, undefined, undefined],
    ],
  )
})
