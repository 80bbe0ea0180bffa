/** Extenders over real HTTP, with the real API server: filter, prioritize, bind and preempt, and what happens when one fails. */
import assert from 'node:assert/strict'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, test } from 'node:test'
import type { Pod } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import { pods } from '#client/builtIn'
import { createHttpExtender, type ExtenderConfig } from '#scheduler/extenders/httpExtender'
import { startTestApiServer, type TestApiServer } from '#testing/apiServer'
import { addNode, isBound, isUnschedulable, newNode, newPod, type RunningScheduler, startScheduler, untilPods } from './cluster.ts'

let api: TestApiServer
let scheduler: RunningScheduler | undefined
let server: http.Server | undefined

beforeEach(async () => {
  api = await startTestApiServer()
})

afterEach(async () => {
  await scheduler?.stop()
  server?.closeAllConnections()
  await new Promise((resolve) => (server ? server.close(resolve) : resolve(undefined)))
  scheduler = server = undefined
  await api.close()
})

const create = (pod: Pod) => api.client.of(pods).create(pod)
const until = (name: string, right: (pod: Frozen<Pod>) => boolean) => untilPods(api.client, [name], right).then((found) => found.get(name) as Frozen<Pod>)
const scheduled = (pod: Frozen<Pod>) => pod.status?.conditions?.find(({ type }) => type === 'PodScheduled')

type Answer = (body: never) => unknown

/** An extender that answers each verb with a function of the question; a verb without one is a 500. */
async function startExtender(answers: Record<string, Answer>, changes: Partial<ExtenderConfig> = {}): Promise<string[]> {
  const asked: string[] = []
  server = http.createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const verb = request.url?.split('/').at(-1) ?? ''
    asked.push(verb)
    const answer = answers[verb]
    if (!answer) {
      response.writeHead(500).end()
      return
    }
    const text = JSON.stringify(await answer(JSON.parse(Buffer.concat(chunks).toString()) as never))
    response.writeHead(200, { 'content-type': 'application/json' }).end(text)
  })
  await new Promise<void>((resolve) => server?.listen(0, '127.0.0.1', resolve))
  const config: ExtenderConfig = {
    ...{ urlPrefix: `http://127.0.0.1:${(server.address() as AddressInfo).port}/scheduler/`, weight: 1, enableHttps: false, httpTimeoutMs: 60_000 },
    ...{ filterVerb: '', preemptVerb: '', prioritizeVerb: '', bindVerb: '', nodeCacheCapable: true, managedResources: [], ignorable: false },
    ...changes,
  }
  scheduler = startScheduler(api.client, { extenders: [createHttpExtender(config)] })
  return asked
}

interface Question {
  NodeNames: string[]
  Nodes: { items: { metadata: { name: string } }[] }
}

test('SCH-16 an extender filters and scores by names, and its 10 outweighs the plugins', async () => {
  for (const name of ['a', 'b', 'c']) await addNode(api.client, newNode(name))
  const answers = {
    filter: ({ NodeNames }: Question) => ({ NodeNames: NodeNames.filter((name) => name !== 'a'), FailedNodes: { a: 'not this one' } }),
    prioritize: ({ NodeNames }: Question) => NodeNames.map((Host) => ({ Host, Score: Host === 'c' ? 10 : 0 })),
  }
  const asked = await startExtender(answers, { filterVerb: 'filter', prioritizeVerb: 'prioritize', weight: 10 })
  const names = ['web-0', 'web-1', 'web-2']
  for (const name of names) await create(newPod(name))
  const placed = await untilPods(api.client, names, isBound)
  assert.deepEqual(
    names.map((name) => placed.get(name)?.spec.nodeName),
    ['c', 'c', 'c'],
  )
  assert.deepEqual(asked, ['filter', 'prioritize', 'filter', 'prioritize', 'filter', 'prioritize'])
})

test('SCH-16 an extender without a cache gets whole nodes, its answers are read case-insensitively, and its reasons are in the event', async () => {
  for (const name of ['a', 'b']) await addNode(api.client, newNode(name))
  const filter = ({ Nodes }: Question) => {
    const names = Nodes.items.map((node) => node.metadata.name)
    return { nodes: { items: [] }, failedNodes: Object.fromEntries(names.map((name) => [name, 'no license'])) }
  }
  await startExtender({ filter }, { filterVerb: 'filter', nodeCacheCapable: false })
  await create(newPod('web'))
  const message = scheduled(await until('web', isUnschedulable))?.message ?? ''
  assert.ok(message.startsWith('0/2 nodes are available: 2 no license. no new claims to deallocate, preemption: '), message)
})

test('SCH-16 only pods with a managed resource are sent; the extender binds them itself', async () => {
  await addNode(api.client, newNode('a', { cpu: '4', memory: '8Gi', pods: '110', 'example.com/license': '2' }))
  const bound: string[] = []
  const bind = async ({ PodName, PodNamespace, PodUID, Node }: Record<string, string>) => {
    bound.push(`${PodNamespace}/${PodName}`)
    const metadata = { name: PodName, namespace: PodNamespace, uid: PodUID }
    await api.client.of(pods).createSubresource({ namespace: PodNamespace, name: PodName ?? '' }, 'binding', { metadata, target: { kind: 'Node', name: Node } })
    return {}
  }
  await startExtender({ bind }, { bindVerb: 'bind', managedResources: [{ name: 'example.com/license', ignoredByScheduler: false }] })
  const licensed = newPod('licensed')
  const [container] = licensed.spec.containers
  if (container) container.resources = { requests: { 'example.com/license': '1' }, limits: { 'example.com/license': '1' } }
  await create(newPod('plain'))
  await create(licensed)
  await untilPods(api.client, ['plain', 'licensed'], isBound)
  assert.deepEqual(bound, ['default/licensed'])
})

test('SCH-16 an extender that fails fails the pod, unless it may be ignored', async () => {
  await addNode(api.client, newNode('a'))
  await startExtender({}, { filterVerb: 'filter' })
  await create(newPod('web'))
  const { reason, message } = scheduled(await until('web', isUnschedulable)) ?? {}
  assert.equal(reason, 'SchedulerError')
  assert.match(message ?? '', /^failed filter with extender at URL http:.*\/scheduler\/filter, code 500$/)
  await scheduler?.stop()
  server?.closeAllConnections()
  await new Promise((resolve) => server?.close(resolve))
  await startExtender({}, { filterVerb: 'filter', ignorable: true })
  await until('web', isBound)
})

test('SCH-16 an extender restricts the nodes for preemption', async () => {
  for (const name of ['a', 'b']) await addNode(api.client, newNode(name, { cpu: '1', memory: '1Gi', pods: '10' }))
  for (const [name, priority] of [
    ['a', 1],
    ['b', 3],
  ] as const)
    await create(newPod(`low-${name}`, '900m', { priority, nodeName: name, terminationGracePeriodSeconds: 0 }))
  interface Victims {
    NodeNameToMetaVictims: Record<string, unknown>
  }
  await startExtender({ preempt: ({ NodeNameToMetaVictims: { b } }: Victims) => ({ NodeNameToMetaVictims: { b } }) }, { preemptVerb: 'preempt' })
  await create(newPod('high', '900m', { priority: 10 }))
  assert.equal((await until('high', isBound)).spec.nodeName, 'b')
})
