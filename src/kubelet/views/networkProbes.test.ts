/** What the view `networkprobes` asks the node to do, for which parameters, and what it refuses. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { NetworkProbe, NetworkProbes } from '#api/debug/nodeNetwork'
import type { KubeletView } from '../core/kubeletView.ts'
import { networkProbesView } from './networkProbes.ts'

interface World {
  readonly sandboxes?: readonly { readonly id: string; readonly state: string }[]
  readonly namespacePath?: string | undefined
  readonly hostNetwork?: boolean
  readonly isSimulated?: boolean
}

const searches = ['d.svc.cluster.local']

async function probed(query: string, world: World = {}): Promise<{ readonly found: NetworkProbes; readonly asked: readonly NetworkProbe[] }> {
  const { sandboxes = [{ id: 's', state: 'SANDBOX_READY' }], namespacePath = '/run/netns/cni-1', hostNetwork = false, isSimulated = false } = world
  const asked: NetworkProbe[] = []
  const probe = async (one: NetworkProbe) => {
    asked.push(one)
    return { answers: [], connections: [] }
  }
  const pod = { metadata: { namespace: 'd', name: 'web', uid: 'u' }, spec: { hostNetwork } }
  const view = {
    config: { clusterDNS: ['10.96.0.10'], clusterDomain: 'cluster.local' },
    runtime: {
      usesHost: !isSimulated,
      listPodSandbox: async () => sandboxes,
      sandboxNetworkNamespace: async () => (world.namespacePath === '' ? undefined : namespacePath),
    },
    pod: (namespace: string, name: string) => (namespace === 'd' && name === 'web' ? pod : undefined),
    resolver: () => ({ servers: ['192.0.2.53'], searches, options: [] }),
    context: () => ({ nodeNetwork: isSimulated ? undefined : { probe } }),
  } as unknown as KubeletView
  return { found: (await networkProbesView.compute(view, new URLSearchParams(query))) as NetworkProbes, asked }
}

test('KUB-17 a probe of a pod runs in its network namespace and asks the name servers of the pod', async () => {
  const { found, asked } = await probed('pod=d/web&resolve=A/web.d&resolve=SRV/_http._tcp.web.d&connect=tcp/10.0.0.1/80&connect=tls/fd00::1/443/web.d')
  assert.deepEqual(found, { resolver: { servers: ['192.0.2.53'], searches, options: [] }, answers: [], connections: [] })
  assert.deepEqual(asked, [
    {
      namespacePath: '/run/netns/cni-1',
      servers: ['192.0.2.53'],
      questions: [
        { type: 'A', name: 'web.d' },
        { type: 'SRV', name: '_http._tcp.web.d' },
      ],
      connections: [
        { protocol: 'tcp', address: '10.0.0.1', port: 80 },
        { protocol: 'tls', address: 'fd00::1', port: 443, serverName: 'web.d' },
      ],
    },
  ])
})

test('KUB-17 without a pod the node asks cluster DNS itself, and without a question no packet is sent', async () => {
  const { asked } = await probed('resolve=A/web.d')
  assert.deepEqual([asked[0]?.servers, asked[0]?.namespacePath], [['10.96.0.10'], undefined])
  const { found, asked: none } = await probed('')
  assert.deepEqual([found.resolver?.searches, none], [['svc.cluster.local'], []])
  assert.equal((await probed('pod=d/web&resolve=A/web', { hostNetwork: true })).asked[0]?.namespacePath, undefined)
})

const refused: readonly (readonly [query: string, world: World, note: RegExp])[] = [
  ['pod=d/other', {}, /not on this node/],
  ['pod=d/web', { sandboxes: [{ id: 's', state: 'SANDBOX_NOTREADY' }] }, /its sandbox does not run/],
  ['pod=d/web', { namespacePath: '' }, /does not tell the network namespace/],
  ['pod=d/web', { isSimulated: true }, /a simulated node has no network/],
  ['resolve=TXT/web', {}, /resolve: expected/],
  ['resolve=A/a..b', {}, /resolve: expected/],
  [`resolve=A/${'a.'.repeat(200)}b`, {}, /resolve: expected/],
  ['connect=udp/10.0.0.1/80', {}, /connect: expected/],
  ['connect=tcp/web/80', {}, /connect: expected/],
  ['connect=tcp/10.0.0.1/0', {}, /connect: expected/],
  ['connect=tls/10.0.0.1/443/%0a', {}, /connect: expected/],
  [Array.from({ length: 9 }, () => 'connect=tcp/10.0.0.1/80').join('&'), {}, /at most 8/],
]
for (const [query, world, note] of refused) {
  test(`KUB-17 a probe is refused with the reason: ${query.slice(0, 40)} ${note}`, async () => {
    const { found, asked } = await probed(query, world)
    assert.match(found.note ?? '', note)
    assert.deepEqual(asked, [])
  })
}
