/** How each mode shows the rules of a Service, from what nft and iptables-save print. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Exec } from '#host/exec'
import type { FamilyModel } from '../model.ts'
import { iptables } from './iptables.ts'
import { nftables } from './nftables.ts'

const endpoints = [{ ip: '10.244.0.1', port: 8080, isLocal: true }]
const model: FamilyModel = {
  family: 'IPv4',
  clusterCidrs: ['10.244.0.0/16'],
  serviceCidrs: ['10.96.0.0/16'],
  rules: [
    {
      service: 'd/web',
      portName: 'http',
      protocol: 'tcp',
      clusterIp: '10.96.0.5',
      port: 80,
      nodePort: undefined,
      externalIps: [],
      loadBalancerIps: [],
      sourceRanges: undefined,
      affinitySeconds: undefined,
      internalPolicyLocal: false,
      externalPolicyLocal: false,
      clusterEndpoints: endpoints,
      localEndpoints: endpoints,
    },
  ],
}

const printed = (kind: string, name: string, lines: readonly string[]) =>
  `table ip kube-proxy {\n\t${kind} ${name} {\n${lines.map((line) => `\t\t${line}\n`).join('')}\t}\n}\n`

/** @param answer of each command of nft; undefined: the kernel does not have it */
async function shown(answer: (args: readonly string[]) => string | undefined) {
  const run = async (_: string, args: readonly string[]) => {
    const stdout = answer(args)
    return { code: stdout === undefined ? 1 : 0, stdout: stdout ?? '', stderr: stdout === undefined ? 'Error: No such file or directory' : '', timedOut: false }
  }
  return nftables.rulesOf?.({ run } as unknown as Exec, model)
}

test('LRN-06 nftables shows the element of the map, the chains behind it, and how many connections each endpoint got', async () => {
  const found = await shown((args) => {
    const name = args[4] ?? ''
    if (args[0] === 'get') return printed('map', 'service-ips', ['type ipv4_addr . inet_proto . inet_service : verdict', `elements = ${args[5]}`])
    return printed('chain', name, [name.startsWith('endpoint') ? 'meta l4proto tcp counter packets 3 bytes 180 dnat to 10.244.0.1:8080' : 'goto endpoint'])
  })
  assert.deepEqual(
    found?.map(({ place, lines, connections }) => [place.replace(/[A-Z2-7]{8}/, 'HASH'), lines, connections]),
    [
      ['service-ips 10.96.0.5 . tcp . 80', ['elements = { 10.96.0.5 . tcp . 80 }'], undefined],
      ['service-HASH-d/web/tcp/http', ['goto endpoint'], undefined],
      ['endpoint-HASH-d/web/tcp/http__10.244.0.1/8080', ['meta l4proto tcp counter packets 3 bytes 180 dnat to 10.244.0.1:8080'], 3],
    ],
  )
})

test('SVC-06 nftables shows a rule that the kernel lacks without lines, and fails when nft fails otherwise', async () => {
  const found = await shown(() => undefined)
  assert.deepEqual(
    found?.map(({ lines }) => lines),
    [undefined, undefined, undefined],
  )
  const exec = { run: async () => ({ code: 1, stdout: '', stderr: 'Error: Operation not permitted', timedOut: false }) } as unknown as Exec
  await assert.rejects(async () => nftables.rulesOf?.(exec, model), /not permitted/)
})

const chain = 'BZ2S26ZPVZ7WFQZP'
const saved: Readonly<Record<string, string>> = {
  nat: `*nat
:KUBE-SERVICES - [0:0]
[4:240] -A KUBE-SERVICES -d 10.96.0.5/32 -p tcp -m comment --comment "d/web:http cluster IP" -m tcp --dport 80 -j KUBE-SVC-${chain}
[1:60] -A KUBE-SERVICES -d 10.96.0.6/32 -p tcp -m comment --comment "d/other:http cluster IP" -m tcp --dport 80 -j KUBE-SVC-OTHER
[2:120] -A KUBE-SERVICES -d 192.0.2.8/32 -p tcp -m comment --comment "d/web:http external IP" -m tcp --dport 80 -j KUBE-EXT-${chain}
COMMIT
`,
  filter: '*filter\nCOMMIT\n',
}

test('LRN-06 iptables shows each rule of a Service in the chains of all Services, and which of them the kernel lacks, from two tables only', async () => {
  const tables: string[] = []
  const run = async (_: string, args: readonly string[]) => {
    tables.push(args.at(-1) ?? '')
    return { code: 0, stdout: saved[args.at(-1) ?? ''] ?? '', stderr: '', timedOut: false }
  }
  const rules = model.rules.map((rule) => ({ ...rule, externalIps: ['192.0.2.8', '192.0.2.9'] }))
  const found = await iptables.rulesOf({ run } as unknown as Exec, { ...model, rules })
  assert.deepEqual(tables, ['nat', 'filter'])
  assert.deepEqual(
    found
      .filter(({ place }) => place.startsWith('nat KUBE-SERVICES'))
      .map(({ place, lines = [], connections }) => [place, lines.map((line) => / -d (\S+)/.exec(line)?.[1]), connections]),
    [
      ['nat KUBE-SERVICES', ['10.96.0.5/32'], 4],
      ['nat KUBE-SERVICES', ['192.0.2.8/32'], 2],
      [`nat KUBE-SERVICES -m comment --comment "d/web:http external IP" -m tcp -p tcp -d 192.0.2.9 --dport 80 -j KUBE-EXT-${chain}`, [], undefined],
    ],
  )
})
