import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Pod } from '#api/gen/types/core.v1'
import type { Unstructured } from '#api/machinery/meta'
import { type Logger, noLog } from '#base/log'
import { noMetrics } from '#base/metrics'
import { seededRandom } from '#base/random'
import { VirtualClock } from '#base/virtualClock'
import { createSharedInformerFactory } from '#client/cache/sharedInformerFactory'
import { createClient } from '#client/clientOverTransport'
import type { Exec, ExecOptions, ExecResult } from '#host/exec'
import { anObject, HistoryTransport } from '#testing/historyTransport'
import { slimObject } from './changes.ts'
import { createPolicyAgent, type PolicyAgent } from './policyAgent.ts'

/** Keeps the scripts that nft is given, which it can refuse or hold up, and the arguments of conntrack. */
class FakeNft implements Exec {
  readonly scripts: string[] = []
  readonly forgotten: string[] = []
  refuses = false
  held: Promise<void> | undefined
  release = () => {}

  /** Scripts take until release(). */
  hold(): void {
    this.held = new Promise((resolve) => {
      this.release = resolve
    })
  }

  async run(command: string, args: readonly string[], { input }: ExecOptions = {}): Promise<ExecResult> {
    if (command === 'conntrack') {
      this.forgotten.push(args.join(' '))
      return { code: 1, stdout: '', stderr: 'conntrack v1.4.7: 0 flow entries have been deleted.', timedOut: false }
    }
    this.scripts.push(String(input))
    await this.held
    return { code: this.refuses ? 1 : 0, stdout: '', stderr: '', timedOut: false }
  }

  spawn(): never {
    assert.fail('nothing is spawned')
  }

  /** The scripts since the last call. */
  take(): string {
    return this.scripts.splice(0).join('')
  }
}

interface World {
  readonly agent: PolicyAgent
  readonly server: HistoryTransport
  readonly clock: VirtualClock
  readonly nft: FakeNft
  readonly errors: string[]
  readonly signal: AbortSignal
}

const pathOf = (key: string) => `/api/v1/namespaces/${key.replace('/', '/pods/')}`

function withMetadata(object: Unstructured, more: Partial<Unstructured['metadata']>): Unstructured {
  return { ...object, metadata: { ...object.metadata, ...more } }
}

function podObject(key: string, podIP: string | undefined, more: { readonly nodeName?: string; readonly labels?: Record<string, string> } = {}) {
  const [namespace = '', name = ''] = key.split('/')
  const { nodeName = 'self', labels = { app: 'web' } } = more
  return withMetadata(anObject('Pod', { namespace, name }, { spec: { nodeName, containers: [{ name: 'app' }] }, status: { podIP } }), {
    uid: `uid-${key}`,
    labels,
  })
}

const denyAll = anObject(
  'NetworkPolicy',
  { namespace: 'a', name: 'deny' },
  { apiVersion: 'networking.k8s.io/v1', spec: { podSelector: {}, policyTypes: ['Ingress'], ingress: [{ from: [{ podSelector: {} }] }] } },
)
const policyPath = '/apis/networking.k8s.io/v1/namespaces/a/networkpolicies/deny'

/** Runs the agent of node `self` over an API and a kernel that the test plays. */
async function withAgent(run: (world: World) => Promise<void>, { prepare = (_: HistoryTransport) => {} } = {}): Promise<void> {
  const server = new HistoryTransport()
  const clock = new VirtualClock()
  const nft = new FakeNft()
  const errors: string[] = []
  const log: Logger = { ...noLog, error: (error, message) => errors.push(`${message}: ${(error as Error).message}`) }
  const informers = createSharedInformerFactory(createClient(server), { clock, random: seededRandom(1), log: noLog }, { transform: slimObject })
  const stop = new AbortController()
  for (const name of ['a', 'b']) server.put(`/api/v1/namespaces/${name}`, anObject('Namespace', { name }))
  for (const [name, podCIDR] of [
    ['self', '10.1.0.0/24'],
    ['other', '10.2.0.0/24'],
  ] as const)
    server.put(`/api/v1/nodes/${name}`, anObject('Node', { name }, { spec: { podCIDR } }))
  prepare(server)
  const agent = createPolicyAgent({ informers, clock, log, metrics: noMetrics, exec: nft }, { nodeName: 'self' })
  const running = Promise.all([agent.run(stop.signal), informers.run(stop.signal)])
  try {
    await run({ agent, server, clock, nft, errors, signal: stop.signal })
  } finally {
    stop.abort()
    nft.release()
    await clock.advance(1_000)
    await running
  }
}

/** Work yields to the real event loop: advances until it holds. */
async function until(clock: VirtualClock, holds: () => boolean): Promise<void> {
  for (let i = 0; i < 1_000 && !holds(); i++) {
    await clock.advance(1)
    await new Promise((resolve) => setImmediate(resolve))
  }
  assert.ok(holds())
}

const settled = async (clock: VirtualClock, promise: Promise<void>) => {
  let state = 'pending'
  promise.then(
    () => {
      state = 'ready'
    },
    (error: Error) => {
      state = error.message
    },
  )
  for (let i = 0; i < 20; i++) {
    await clock.advance(1)
    await new Promise((resolve) => setImmediate(resolve))
  }
  return state
}

test('NPO-02 the first table replaces that of an earlier agent in one transaction, with the policies in it', () =>
  withAgent(
    async ({ clock, nft }) => {
      await until(clock, () => nft.scripts.length === 1)
      const script = nft.take()
      assert.match(script, /^add table inet skiff-policy\ndelete table inet skiff-policy\ntable inet skiff-policy \{/)
      assert.match(script, /add element inet skiff-policy ingress-v4 \{ 10\.1\.0\.5 : jump ingress-pods-\d+ \}/)
    },
    {
      prepare: (server) => {
        server.put(policyPath, denyAll)
        server.put(pathOf('a/one'), podObject('a/one', '10.1.0.5'))
      },
    },
  ))

test('NPO-02 a pod is ready when the rules for the announced address are in the kernel, before the API has the address', () =>
  withAgent(
    async ({ agent, server, clock, nft, signal }) => {
      await until(clock, () => nft.scripts.length === 1)
      nft.take()
      const pod = podObject('a/one', undefined)
      server.put(pathOf('a/one'), pod)
      nft.hold()
      const ready = agent.podNetworkReady(pod as unknown as Pod, ['10.1.0.5'], signal)
      assert.equal(await settled(clock, ready), 'pending')
      assert.match(nft.take(), /ingress-v4 \{ 10\.1\.0\.5 : jump/)
      nft.release()
      assert.equal(await settled(clock, ready), 'ready')
      // The status that reports the same address changes nothing.
      server.put(pathOf('a/one'), podObject('a/one', '10.1.0.5'))
      await settled(clock, ready)
      assert.equal(nft.take(), '')
      server.remove(pathOf('a/one'))
      await until(clock, () => nft.scripts.length === 1)
      assert.match(nft.take(), /delete element inet skiff-policy ingress-v4 \{ 10\.1\.0\.5 \}/)
    },
    { prepare: (server) => server.put(policyPath, denyAll) },
  ))

test('NPO-02 a pod that no policy concerns does not wait for the kernel', () =>
  withAgent(
    async ({ agent, clock, nft, signal }) => {
      await until(clock, () => nft.scripts.length === 1)
      nft.take()
      assert.equal(await settled(clock, agent.podNetworkReady(podObject('b/free', undefined) as unknown as Pod, ['10.1.0.9'], signal)), 'ready')
      assert.equal(nft.take(), '')
    },
    { prepare: (server) => server.put(policyPath, denyAll) },
  ))

test('NPO-02 a pod is not ready while the kernel refuses the rules, and is once it takes them', () =>
  withAgent(
    async ({ agent, clock, nft, errors, signal }) => {
      await until(clock, () => nft.scripts.length === 1)
      nft.refuses = true
      const pod = podObject('a/one', undefined) as unknown as Pod
      const first = agent.podNetworkReady(pod, ['10.1.0.5'], signal)
      first.catch(() => {})
      await clock.advance(5_100)
      assert.equal(await settled(clock, first), 'the network policies of the pod are not in force after 5 seconds')
      assert.match(errors[0] ?? '', /^Failed to apply network policies/)
      const second = agent.podNetworkReady(pod, ['10.1.0.5'], signal)
      assert.equal(await settled(clock, second), 'pending')
      nft.refuses = false
      nft.take()
      await until(clock, () => nft.scripts.length > 0)
      assert.equal(await settled(clock, second), 'ready')
      assert.match(nft.take(), /^add table/)
    },
    { prepare: (server) => server.put(policyPath, denyAll) },
  ))

test('NPO-02 the address of a pod’s successor stays isolated when the deletion of the predecessor arrives late', () =>
  withAgent(
    async ({ agent, server, clock, nft, signal }) => {
      await until(clock, () => nft.scripts.length === 1)
      const successor = { ...podObject('a/one', undefined), metadata: { namespace: 'a', name: 'one', uid: 'new', labels: { app: 'web' } } } as unknown as Pod
      assert.equal(await settled(clock, agent.podNetworkReady(successor, ['10.1.0.7'], signal)), 'ready')
      nft.take()
      server.remove(pathOf('a/one'))
      await settled(clock, Promise.resolve())
      assert.doesNotMatch(nft.take(), /delete element inet skiff-policy ingress-v4/)
    },
    {
      prepare: (server) => {
        server.put(policyPath, denyAll)
        server.put(pathOf('a/one'), podObject('a/one', '10.1.0.5'))
      },
    },
  ))

test('NPO-02 labels of a namespace and of a pod change what a policy allows', () =>
  withAgent(
    async ({ server, clock, nft }) => {
      await until(clock, () => nft.scripts.length === 1)
      assert.doesNotMatch(nft.take(), /10\.2\.0\.8/)
      server.put('/api/v1/namespaces/b', withMetadata(anObject('Namespace', { name: 'b' }), { labels: { team: 'red' } }))
      await until(clock, () => nft.scripts.length === 1)
      assert.match(nft.take(), /add element inet skiff-policy pods-\d+-v4 \{ 10\.2\.0\.8 \}/)
      server.put(pathOf('b/peer'), podObject('b/peer', '10.2.0.8', { nodeName: 'other', labels: { app: 'db' } }))
      await until(clock, () => nft.scripts.length === 1)
      assert.match(nft.take(), /delete element inet skiff-policy pods-\d+-v4 \{ 10\.2\.0\.8 \}/)
    },
    {
      prepare: (server) => {
        const from = [{ namespaceSelector: { matchLabels: { team: 'red' } }, podSelector: { matchLabels: { app: 'web' } } }]
        server.put(policyPath, Object.assign({ ...denyAll }, { spec: { podSelector: {}, ingress: [{ from }] } }))
        server.put(pathOf('a/one'), podObject('a/one', '10.1.0.5'))
        server.put(pathOf('b/peer'), podObject('b/peer', '10.2.0.8', { nodeName: 'other' }))
      },
    },
  ))

test('NPO-02 of the addresses that another node reports for its pods, those in its ranges count; pods of the own node are isolated in any range', () =>
  withAgent(
    async ({ server, clock, nft }) => {
      await until(clock, () => nft.scripts.length === 1)
      const first = nft.take()
      assert.match(first, /pods-\d+-v4 \{ 10\.9\.0\.5 \}/)
      assert.match(first, /ingress-v4 \{ 10\.9\.0\.5 : /)
      server.put('/api/v1/nodes/late', anObject('Node', { name: 'late' }, { spec: { podCIDR: '10.3.0.0/24' } }))
      await until(clock, () => nft.scripts.length === 1)
      assert.match(nft.take(), /^add element inet skiff-policy pods-\d+-v4 \{ 10\.3\.0\.7 \}\n$/)
    },
    {
      prepare: (server) => {
        server.put(policyPath, denyAll)
        server.put(pathOf('a/one'), podObject('a/one', '10.9.0.5'))
        server.put(pathOf('a/remote'), podObject('a/remote', '10.1.0.77', { nodeName: 'other' }))
        server.put(pathOf('a/late'), podObject('a/late', '10.3.0.7', { nodeName: 'late' }))
      },
    },
  ))

test('NPO-02 the address that the kubelet announced for a pod stays isolated when another pod claims it in the API', () =>
  withAgent(
    async ({ agent, server, clock, nft, signal }) => {
      await until(clock, () => nft.scripts.length === 1)
      server.put(pathOf('a/two'), podObject('a/two', '10.1.0.5', { labels: { app: 'other' } }))
      await until(clock, () => nft.scripts.length === 2)
      nft.take()
      await settled(clock, agent.podNetworkReady(podObject('a/one', undefined) as unknown as Pod, ['10.1.0.5'], signal))
      const [, chain] = /ingress-v4 \{ 10\.1\.0\.5 : jump (ingress-pods-\d+) \}/.exec(nft.take()) ?? []
      assert.ok(chain)
      server.put(pathOf('a/three'), podObject('a/three', '10.1.0.5', { labels: { app: 'third' } }))
      await settled(clock, Promise.resolve())
      assert.doesNotMatch(nft.take(), /element inet skiff-policy ingress-v4/)
    },
    {
      prepare: (server) => {
        const ofLabel = (app: string) => ({ podSelector: { matchLabels: { app } }, ingress: [] })
        for (const app of ['web', 'other', 'third'])
          server.put(policyPath.replace('deny', app), { ...denyAll, metadata: { namespace: 'a', name: app }, ...{ spec: ofLabel(app) } })
      },
    },
  ))

test('NPO-02 a policy with more selectors than the kernel takes sets isolates its pods and allows nothing; other policies apply', () =>
  withAgent(
    async ({ clock, nft, errors }) => {
      await until(clock, () => nft.scripts.length === 1)
      const script = nft.take()
      assert.deepEqual(errors, ['A network policy is too large and allows nothing: it has 1001 selectors of peers and lists of named ports, more than 1000'])
      assert.equal(script.match(/^add set /gm)?.length, 2)
      assert.match(script, /ingress-v4 \{ 10\.1\.0\.5 : jump/)
      assert.match(script, /add rule inet skiff-policy ingress-policy-\d+-a\/deny ip saddr @pods-\d+-v4 accept/)
      assert.match(script, /add chain inet skiff-policy ingress-policy-\d+-a\/large\n/)
      assert.doesNotMatch(script, /add rule inet skiff-policy ingress-policy-\d+-a\/large/)
    },
    {
      prepare: (server) => {
        const from = Array.from({ length: 1001 }, (_, i) => ({ podSelector: { matchLabels: { i: `${i}` } } }))
        server.put(policyPath, denyAll)
        server.put(policyPath.replace('deny', 'large'), {
          ...denyAll,
          metadata: { namespace: 'a', name: 'large' },
          ...{ spec: { podSelector: {}, ingress: [{ from }] } },
        })
        server.put(pathOf('a/one'), podObject('a/one', '10.1.0.5'))
      },
    },
  ))

test('NPO-02 the connections of an address are forgotten when its pod is gone or has ended', () =>
  withAgent(
    async ({ server, clock, nft, errors }) => {
      await until(clock, () => nft.scripts.length === 1)
      assert.deepEqual(nft.forgotten, [])
      server.remove(pathOf('b/one'))
      server.remove(pathOf('b/remote'))
      await until(clock, () => nft.forgotten.length === 2)
      assert.deepEqual(nft.forgotten.splice(0), ['-D --reply-src 10.1.0.5', '-D --orig-src 10.1.0.5'])
      const ended = podObject('b/two', '10.1.0.6')
      server.put(pathOf('b/two'), { ...ended, ...{ status: { phase: 'Succeeded', podIP: '10.1.0.6' } } })
      await until(clock, () => nft.forgotten.length === 2)
      assert.deepEqual(nft.forgotten, ['-D --reply-src 10.1.0.6', '-D --orig-src 10.1.0.6'])
      assert.deepEqual(errors, [])
    },
    {
      prepare: (server) => {
        server.put(pathOf('b/one'), podObject('b/one', '10.1.0.5'))
        server.put(pathOf('b/two'), podObject('b/two', '10.1.0.6'))
        server.put(pathOf('b/remote'), podObject('b/remote', '10.2.0.5', { nodeName: 'other' }))
      },
    },
  ))
