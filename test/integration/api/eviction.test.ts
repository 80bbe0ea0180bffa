/** Evictions and bindings: what budgets allow, what is asked of the pod, and the words of every refusal. */
import assert from 'node:assert/strict'
import test, { after, before } from 'node:test'
import { isStatus, type StatusError } from '#api/machinery/status'
import { startTestApiServer, type TestApiServer } from '#testing/apiServer'

let api: TestApiServer
before(async () => {
  api = await startTestApiServer()
})
after(() => api.close())

const core = '/api/v1/namespaces/default'
const budgets = '/apis/policy/v1/namespaces/default/poddisruptionbudgets'
const tooMany = "Cannot evict pod as it would violate the pod's disruption budget."

interface Body {
  metadata: {
    name: string
    uid: string
    resourceVersion: string
    generation: number
    labels?: Record<string, string>
    annotations?: Record<string, string>
  } & {
    managedFields?: { manager: string; subresource?: string }[]
    deletionTimestamp?: string
  }
  spec: { nodeName?: string }
  status: Record<string, unknown> & { conditions?: { type: string; status: string; reason?: string; message?: string; lastTransitionTime?: string }[] }
}

async function send<T = Body>(method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE', path: string, body?: unknown, query?: Record<string, string>): Promise<T> {
  const contentType = method === 'PATCH' ? 'application/merge-patch+json' : undefined
  return (await api.client.transport.request({ method, path, body, contentType, query })).body as T
}

async function refusal(made: Promise<unknown>): Promise<StatusError> {
  const error = await made.then(
    () => assert.fail('it was not refused'),
    (thrown: unknown) => thrown,
  )
  if (!isStatus(error)) throw error
  return error
}

let made = 0
/** A pod that runs, or stands in another phase, in a group that a budget can name. */
async function pod(group: string, status: object = {}): Promise<string> {
  const name = `${group}-${++made}`
  const containers = [{ name: 'c', image: 'i' }]
  await send('POST', `${core}/pods`, { metadata: { name, labels: { group } }, spec: { containers, nodeName: 'n' } })
  const conditions = [{ type: 'Ready', status: 'True' }]
  await send('PATCH', `${core}/pods/${name}/status`, { status: { phase: 'Running', conditions, ...status } })
  return name
}

async function budget(group: string, status: object, spec: object = {}, name = group): Promise<void> {
  await send('POST', budgets, { metadata: { name }, spec: { minAvailable: 1, selector: { matchLabels: { group } }, ...spec } })
  const zeros = { disruptionsAllowed: 0, currentHealthy: 0, desiredHealthy: 0, expectedPods: 0, observedGeneration: 1 }
  await send('PATCH', `${budgets}/${name}/status`, { status: { ...zeros, ...status } })
}

const evict = (name: string, deleteOptions: object = {}, query?: Record<string, string>) =>
  send<{ status: string }>('POST', `${core}/pods/${name}/eviction`, { metadata: { name }, deleteOptions }, query)
const causes = (error: StatusError) => [error.code, error.message, error.details?.causes ?? null, error.details?.retryAfterSeconds ?? null]
const budgetCause = (message: string) => [{ reason: 'DisruptionBudget', message }]

const refused = [
  {
    name: 'one that has not been looked at since it changed',
    status: { disruptionsAllowed: 1, observedGeneration: 0 },
    want: [429, tooMany, budgetCause('The disruption budget NAME is still being processed by the server.'), 10],
  },
  {
    name: 'one without disruptions left',
    status: { desiredHealthy: 3, currentHealthy: 2 },
    want: [429, tooMany, budgetCause('The disruption budget NAME needs 3 healthy pods and has 2 currently'), null],
  },
  {
    name: 'one that its controller could not count',
    status: {
      currentHealthy: 2,
      conditions: [{ type: 'DisruptionAllowed', status: 'False', reason: 'SyncFailed', message: 'no scale', lastTransitionTime: '2026-01-01T00:00:00Z' }],
    },
    want: [429, tooMany, budgetCause('The disruption budget NAME does not allow evicting pods currently because it failed sync: no scale'), null],
  },
  {
    name: 'one with enough healthy pods and none to spare for another reason',
    status: {
      currentHealthy: 2,
      desiredHealthy: 1,
      conditions: [{ type: 'DisruptionAllowed', status: 'False', reason: 'Other', message: 'wait', lastTransitionTime: '2026-01-01T00:00:00Z' }],
    },
    want: [429, tooMany, budgetCause('The disruption budget NAME does not allow evicting pods currently (Other): wait'), null],
  },
  {
    name: 'one whose evictions are not confirmed',
    status: { disruptionsAllowed: 1, disruptedPods: Object.fromEntries(Array.from({ length: 2001 }, (_, at) => [`p-${at}`, '2026-01-01T00:00:00Z'])) },
    want: [403, 'poddisruptionbudget.policy "NAME" is forbidden: DisruptedPods map too big - too many evictions not confirmed by PDB controller', null, null],
  },
] as const

for (const [at, { name, status, want }] of refused.entries()) {
  test(`CTL-16 a budget refuses: ${name}`, async () => {
    const group = `refused-${at}`
    await budget(group, status)
    const error = await refusal(evict(await pod(group)))
    assert.deepEqual(causes(error), JSON.parse(JSON.stringify(want).replaceAll('NAME', group)))
  })
}

test('CTL-16 an eviction takes one disruption off the budget, tells why on the pod and deletes it', async () => {
  await budget('taken', { disruptionsAllowed: 1, currentHealthy: 2, desiredHealthy: 1 })
  const name = await pod('taken')
  assert.equal((await evict(name, { gracePeriodSeconds: 30 })).status, 'Success')
  const { metadata, status } = await send('GET', `${budgets}/taken`)
  const disrupted = status.disruptedPods as Record<string, string>
  assert.deepEqual([status.disruptionsAllowed, Object.keys(disrupted)], [0, [name]])
  const [allowed] = status.conditions ?? []
  assert.deepEqual([allowed?.type, allowed?.status, allowed?.reason], ['DisruptionAllowed', 'False', 'InsufficientPods'])
  assert.ok(metadata.managedFields?.some(({ manager, subresource }) => manager === 'kube-apiserver' && subresource === 'status'))
  const ending = await send('GET', `${core}/pods/${name}`)
  assert.ok(ending.metadata.deletionTimestamp)
  const why = ending.status.conditions?.find(({ type }) => type === 'DisruptionTarget')
  assert.deepEqual([why?.status, why?.reason, why?.message], ['True', 'EvictionByEvictionAPI', 'Eviction API: evicting'])
  const again = await refusal(evict(await pod('taken')))
  assert.deepEqual(
    again.details?.causes,
    budgetCause('The disruption budget taken needs 1 healthy pods and has 2 currently').map((cause) => ({
      ...cause,
      message: 'The disruption budget taken does not allow evicting pods currently',
    })),
  )
  // Evicting it again disrupts nothing more.
  await evict(name, { gracePeriodSeconds: 0 })
  assert.equal((await refusal(send('GET', `${core}/pods/${name}`))).code, 404)
})

test('CTL-16 evictions side by side take as many disruptions as there are', async () => {
  await budget('race', { disruptionsAllowed: 3, currentHealthy: 0 })
  const names = await Promise.all(Array.from({ length: 8 }, () => pod('race')))
  const results = await Promise.allSettled(names.map((name) => evict(name)))
  assert.equal(results.filter(({ status }) => status === 'fulfilled').length, 3)
})

test('CTL-16 a pod that is not ready goes when the budget lets unhealthy ones go, or has enough healthy ones', async () => {
  const unready = { conditions: [{ type: 'Ready', status: 'False' }] }
  await budget('always', {}, { unhealthyPodEvictionPolicy: 'AlwaysAllow' })
  await evict(await pod('always', unready))
  await refusal(evict(await pod('always')))
  await budget('healthy', { currentHealthy: 1, desiredHealthy: 1 })
  await evict(await pod('healthy', unready))
  await budget('sick', { desiredHealthy: 1 }, { unhealthyPodEvictionPolicy: 'IfHealthyBudget' })
  await refusal(evict(await pod('sick', unready)))
})

test('CTL-16 a pod that has ended, or not begun, needs no budget', async () => {
  await budget('over', {})
  for (const phase of ['Succeeded', 'Failed', 'Pending']) await evict(await pod('over', { phase }))
})

test('CTL-16 two budgets of one pod are one too many; an empty selector is of all pods, none of none', async () => {
  await budget('twice', { disruptionsAllowed: 1 })
  await budget('twice', { disruptionsAllowed: 1 }, {}, 'twice-more')
  const error = await refusal(evict(await pod('twice')))
  assert.deepEqual(
    [error.code, error.reason, error.message],
    [500, '', 'This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.'],
  )
  await send('POST', budgets, { metadata: { name: 'of-none' }, spec: { minAvailable: 1 } })
  await evict(await pod('unbudgeted'))
})

test('CTL-16 a dry run asks the budget and changes nothing', async () => {
  await budget('dry', { disruptionsAllowed: 1 })
  const name = await pod('dry')
  const before = [await send('GET', `${core}/pods/${name}`), await send('GET', `${budgets}/dry`)]
  await evict(name, { dryRun: ['All'] })
  await evict(name, {}, { dryRun: 'All' })
  assert.deepEqual([await send('GET', `${core}/pods/${name}`), await send('GET', `${budgets}/dry`)], before)
})

test('CTL-16 preconditions of the deletion are kept, and options that do not fit are refused', async () => {
  const name = await pod('preconditions')
  const { metadata } = await send('GET', `${core}/pods/${name}`)
  const other = await refusal(evict(name, { preconditions: { uid: 'other' } }))
  assert.match(
    other.message,
    /^Operation cannot be fulfilled on pods "preconditions-\d+": the UID in the precondition \(other\) does not match the UID in record/,
  )
  const old = await refusal(evict(name, { preconditions: { resourceVersion: '1' } }))
  assert.match(old.message, /the ResourceVersion in the precondition \(1\) does not match the ResourceVersion in record/)
  const policy = await refusal(evict(name, { propagationPolicy: 'Sideways' }))
  assert.equal(policy.code, 422)
  const dangerous = await refusal(evict(name, { ignoreStoreReadErrorWithClusterBreakingPotential: true }))
  assert.deepEqual([dangerous.code, dangerous.details?.causes?.[0]?.field], [422, 'deleteOptions.ignoreStoreReadErrorWithClusterBreakingPotential'])
  const elsewhere = await refusal(send('POST', `${core}/pods/${name}/eviction`, { metadata: { name, namespace: 'elsewhere' } }))
  assert.deepEqual([elsewhere.code, elsewhere.message], [400, 'the namespace of the provided object does not match the namespace sent on the request'])
  await evict(name, { preconditions: { uid: metadata.uid, resourceVersion: metadata.resourceVersion } })
})

const bind = (name: string, body: object) => send<{ status: string }>('POST', `${core}/pods/${name}/binding`, body)
const toNode = { target: { kind: 'Node', name: 'n1' } }

async function unbound(spec: object = {}): Promise<string> {
  const name = `unbound-${++made}`
  await send('POST', `${core}/pods`, { metadata: { name, labels: { keep: 'me', over: 'old' } }, spec: { containers: [{ name: 'c', image: 'i' }], ...spec } })
  return name
}

test("API-24 a binding sets the pod's node, labels and annotations, without an entry in managedFields", async () => {
  const name = await unbound()
  await send('PATCH', `${core}/pods/${name}/status`, {
    status: { nominatedNodeName: 'n0', conditions: [{ type: 'PodScheduled', status: 'False', lastTransitionTime: '2020-01-01T00:00:00Z' }] },
  })
  const before = await send('GET', `${core}/pods/${name}`)
  const { uid, resourceVersion } = before.metadata
  await bind(name, { metadata: { name, uid, resourceVersion, labels: { over: 'new', zone: 'z' }, annotations: { a: 'b' } }, ...toNode })
  const pod = await send('GET', `${core}/pods/${name}`)
  assert.deepEqual(
    [pod.spec.nodeName, pod.status.nominatedNodeName, pod.metadata.labels, pod.metadata.annotations, pod.metadata.generation],
    ['n1', undefined, { keep: 'me', over: 'new', zone: 'z' }, { a: 'b' }, 1],
  )
  const [scheduled] = pod.status.conditions ?? []
  assert.deepEqual([scheduled?.type, scheduled?.status], ['PodScheduled', 'True'])
  assert.notEqual(scheduled?.lastTransitionTime, '2020-01-01T00:00:00Z')
  assert.deepEqual(pod.metadata.managedFields, before.metadata.managedFields)
})

test('API-24 a binding that cannot be is refused in upstream’s words', async () => {
  const name = await unbound()
  const wrong = await refusal(bind(name, { target: { kind: 'Rack' } }))
  assert.deepEqual(
    [wrong.code, wrong.details?.causes],
    [
      422,
      [
        { reason: 'FieldValueNotSupported', message: 'Unsupported value: "Rack": supported values: "Node", "<empty>"', field: 'target.kind' },
        { reason: 'FieldValueRequired', message: 'Required value', field: 'target.name' },
      ],
    ],
  )
  assert.equal((await refusal(bind(name, {}))).code, 422)
  const misnamed = await refusal(bind(name, { metadata: { name: 'other' }, ...toNode }))
  assert.deepEqual([misnamed.code, misnamed.message], [400, 'name in URL does not match name in Binding object'])
  assert.equal((await refusal(bind(name, { metadata: { namespace: 'elsewhere' }, ...toNode }))).code, 400)
  assert.match(
    (await refusal(bind(name, { metadata: { uid: 'other' }, ...toNode }))).message,
    /Precondition failed: UID in precondition: other, UID in object meta: /,
  )
  assert.match(
    (await refusal(bind(name, { metadata: { resourceVersion: '1' }, ...toNode }))).message,
    /Precondition failed: ResourceVersion in precondition: 1, ResourceVersion in object meta: \d+$/,
  )
  await bind(name, toNode)
  const gated = await unbound({ schedulingGates: [{ name: 'example.com/wait' }] })
  const ending = await unbound()
  await send('PATCH', `${core}/pods/${ending}`, { metadata: { finalizers: ['example.com/keep'] } })
  await send('DELETE', `${core}/pods/${ending}`)
  const conflicts = [
    [name, `pod ${name} is already assigned to node "n1"`],
    [gated, `pod ${gated} has non-empty .spec.schedulingGates`],
    [ending, `pod ${ending} is being deleted, cannot be assigned to a host`],
  ] as const
  for (const [which, why] of conflicts) {
    const error = await refusal(bind(which, toNode))
    assert.deepEqual([error.code, error.message], [409, `Operation cannot be fulfilled on pods/binding "${which}": ${why}`])
  }
  assert.equal((await refusal(bind('nobody', toNode))).code, 404)
})
