/** Requests whose cost is in a number, a selector or a patch rather than in a field: each is answered below 500, within the budget of a turn of the event loop. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { type BudgetCluster, budgetNamespace, startBudgetCluster } from './clusterProcess.ts'

const longestTurnMs = 250
const attempts = 3
const namespace = `/api/v1/namespaces/${budgetNamespace}`
const configMaps = `${namespace}/configmaps`
const deployments = `/apis/apps/v1/namespaces/${budgetNamespace}/deployments`
const digits = '9'.repeat(400)
const jsonPatch = 'application/json-patch+json'
const mergePatch = 'application/merge-patch+json'
const strategicPatch = 'application/strategic-merge-patch+json'

let cluster: BudgetCluster
before(async () => {
  cluster = await startBudgetCluster()
  const create = async (path: string, body: object) => {
    const { status, text } = await cluster.send('edit', 'POST', path, body)
    assert.equal(status, 201, text)
  }
  await create(configMaps, { metadata: { name: 'wide' }, data: Object.fromEntries(range(60_000).map((at) => [`k${at}`, 'v'])) })
  await create(configMaps, { metadata: { name: 'small' }, data: { a: 'b' } })
  const env = range(20_000).map((at) => ({ name: `E${at}`, value: 'v' }))
  const template = { metadata: { labels: { a: 'b' } }, spec: { containers: [{ name: 'c', image: 'x', env }] } }
  await create(deployments, { metadata: { name: 'env' }, spec: { replicas: 0, selector: { matchLabels: { a: 'b' } }, template } })
})
after(async () => cluster.stop())

type Request = readonly [method: string, path: string, body?: string | object, contentType?: string]

const range = (count: number): number[] => Array.from({ length: count }, (_, index) => index)
const patch = (name: string, body: unknown, type: string): Request => ['PATCH', `${configMaps}/${name}?dryRun=All`, JSON.stringify(body), type]
const envPatch = (container: object): Request => [
  'PATCH',
  `${deployments}/env?dryRun=All`,
  { spec: { template: { spec: { containers: [{ name: 'c', ...container }] } } } },
  strategicPatch,
]

const cases: readonly (readonly [string, Request])[] = [
  ['a limit of 400 digits', ['GET', `${configMaps}?limit=${digits}`]],
  ['a resource version of 400 digits', ['GET', `${configMaps}?resourceVersion=${digits}`]],
  ['a resource version of 400 digits to match exactly', ['GET', `${configMaps}?resourceVersion=${digits}&resourceVersionMatch=Exact`]],
  ['a continue token of 100 KB', ['GET', `${configMaps}?limit=1&continue=${'A'.repeat(100_000)}`]],
  ['a label selector of 20,000 values', ['GET', `${configMaps}?labelSelector=a+in+(${range(20_000).join(',')})`]],
  [
    'a label selector of 20,000 requirements',
    [
      'GET',
      `${configMaps}?labelSelector=${range(20_000)
        .map((at) => `a${at}`)
        .join(',')}`,
    ],
  ],
  [
    'a field selector of 10,000 requirements',
    [
      'GET',
      `${configMaps}?fieldSelector=${range(10_000)
        .map(() => 'metadata.name!=a')
        .join(',')}`,
    ],
  ],
  ['a timeout of 400 digits', ['GET', `${configMaps}?timeoutSeconds=${digits}&timeout=${digits}h`]],
  ['a grace period of 400 digits', ['DELETE', `${configMaps}/none?gracePeriodSeconds=${digits}`]],
  ['a number of JSON beyond what a double holds', ['POST', configMaps, '{"metadata":{"name":"n","generation":1e400},"data":{}}']],
  ['a number of JSON of two million digits', ['POST', configMaps, `{"metadata":{"name":"n","generation":${'9'.repeat(2_000_000)}},"data":{}}`]],
  ['a string of JSON of a million escapes', ['POST', `${configMaps}?dryRun=All`, `{"metadata":{"name":"n"},"data":{"a":"${'\\n'.repeat(1_000_000)}"}}`]],
  [
    'JSON with 200,000 equal keys',
    [
      'POST',
      `${configMaps}?dryRun=All`,
      `{"metadata":{"name":"n"},"data":{${range(200_000)
        .map(() => '"a":"b"')
        .join(',')}}}`,
    ],
  ],
  [
    'a JSON patch that doubles the object 60 times',
    patch(
      'small',
      range(60).map((at) => ({ op: 'copy', from: at === 0 ? '/data' : '', path: `/x${at}` })),
      jsonPatch,
    ),
  ],
  [
    'a JSON patch that copies 60,000 keys 9,000 times',
    patch(
      'wide',
      range(9000).map((at) => ({ op: 'copy', from: '/data', path: `/metadata/x${at}` })),
      jsonPatch,
    ),
  ],
  [
    'a JSON patch that copies 60,000 keys 4 times',
    patch(
      'wide',
      range(4).map((at) => ({ op: 'copy', from: '/data', path: `/metadata/x${at}` })),
      jsonPatch,
    ),
  ],
  [
    'a JSON patch that moves 60,000 keys 9,000 times',
    patch(
      'wide',
      range(9000).map((at) => ({ op: 'move', from: at % 2 ? '/x' : '/data', path: at % 2 ? '/data' : '/x' })),
      jsonPatch,
    ),
  ],
  [
    'a JSON patch that tests 60,000 keys 9,000 times',
    patch(
      'wide',
      range(9000).map(() => ({ op: 'test', path: '/data', value: {} })),
      jsonPatch,
    ),
  ],
  [
    'a JSON patch that removes 9,000 keys',
    patch(
      'wide',
      range(9000).map((at) => ({ op: 'remove', path: `/data/k${at}` })),
      jsonPatch,
    ),
  ],
  [
    'a JSON patch that adds 9,000 items in front',
    [
      'PATCH',
      `${deployments}/env?dryRun=All`,
      JSON.stringify(range(9000).map((at) => ({ op: 'add', path: '/spec/template/spec/containers/0/env/0', value: { name: `N${at}` } }))),
      jsonPatch,
    ],
  ],
  ['a merge patch of 60,000 nulls', patch('wide', { data: Object.fromEntries(range(60_000).map((at) => [`k${at}`, null])) }, mergePatch)],
  ['a merge patch of 5,000 levels', ['PATCH', `${configMaps}/small?dryRun=All`, `${'{"a":'.repeat(5000)}1${'}'.repeat(5000)}`, mergePatch]],
  ['a strategic patch of 20,000 items by key', envPatch({ env: range(20_000).map((at) => ({ name: `E${19_999 - at}`, value: 'w' })) })],
  ['a strategic patch that deletes 20,000 items by key', envPatch({ env: range(20_000).map((at) => ({ name: `E${at}`, $patch: 'delete' })) })],
  [
    'a strategic patch that orders 20,000 items',
    envPatch({ '$setElementOrder/env': range(20_000).map((at) => ({ name: `E${19_999 - at}` })), env: [{ name: 'E0', value: 'w' }] }),
  ],
  [
    'a strategic patch that deletes 60,000 finalizers',
    patch('small', { metadata: { '$deleteFromPrimitiveList/finalizers': range(60_000).map((at) => `example.com/f${at}`) } }, strategicPatch),
  ],
  ['a strategic patch that retains 60,000 keys', patch('wide', { data: { $retainKeys: range(60_000).map((at) => `k${at}`) } }, strategicPatch)],
  ['a service range of all IPv6 addresses', ['POST', '/apis/networking.k8s.io/v1/servicecidrs', { metadata: { name: 'all' }, spec: { cidrs: ['::/0'] } }]],
  [
    'a service range of half the IPv6 addresses',
    ['POST', '/apis/networking.k8s.io/v1/servicecidrs', { metadata: { name: 'half' }, spec: { cidrs: ['8000::/1'] } }],
  ],
  [
    'a service range of half the IPv4 addresses',
    ['POST', '/apis/networking.k8s.io/v1/servicecidrs', { metadata: { name: 'half4' }, spec: { cidrs: ['128.0.0.0/1'] } }],
  ],
]

for (const [name, [method, path, body, contentType]] of cases) {
  test(`API-02 no turn is longer than ${longestTurnMs} ms for ${name}`, { timeout: 120_000 }, async () => {
    const turns: number[] = []
    let status = 0
    for (let attempt = 0; attempt < attempts && turns.every((turn) => turn > longestTurnMs); attempt++) {
      await cluster.longestTurn()
      const role = path.startsWith('/apis/networking') ? 'root' : 'edit'
      const answer = await cluster.send(role, method, path, body, contentType)
      status = answer.status
      turns.push(await cluster.longestTurn())
      // A version of the future is waited for, and then 504.
      assert.ok(status < 500 || status === 504, `${status} ${answer.text}`)
      if (role === 'root') await cluster.send(role, 'DELETE', `${path}/${(body as { metadata: { name: string } }).metadata.name}`)
    }
    assert.ok(Math.min(...turns) <= longestTurnMs, `${turns.map(Math.round).join(', ')} ms, answered ${status}`)
  })
}
