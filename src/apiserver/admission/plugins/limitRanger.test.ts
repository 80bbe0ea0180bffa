import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Pod } from '#api/gen/types/core.v1'
import { StatusError } from '#api/machinery/status'
import type { ObjectReader } from '../../core/objectReader.ts'
import type { AdmissionAttributes } from '../admission.ts'
import { limitRanger } from './limitRanger.ts'

const reader = (...ranges: object[][]): ObjectReader => ({
  get: () => undefined,
  list: (() => ranges.map((limits) => ({ metadata: { name: 'range' }, spec: { limits } }))) as unknown as ObjectReader['list'],
  onChange: () => () => {},
})
const podWith = (...resources: object[]) =>
  ({ metadata: { name: 'p' }, spec: { containers: resources.map((one, i) => ({ name: `c${i}`, image: 'i', resources: one })) } }) as unknown as Pod

/** What becomes of the object: undefined when admitted, else the refusal's text. */
async function admit(
  limits: object[],
  object: object,
  resource = 'pods',
  more: Partial<AdmissionAttributes> = {},
  ...others: object[][]
): Promise<string | undefined> {
  const plugin = limitRanger(reader(limits, ...others))
  const attributes = {
    operation: 'CREATE',
    resource: { group: '', version: 'v1', resource },
    subresource: '',
    namespace: 'n',
    name: 'p',
    object,
    ...more,
  } as unknown as AdmissionAttributes
  try {
    await plugin.admit?.(attributes)
    await plugin.validate?.(attributes)
    return undefined
  } catch (error) {
    assert.ok(error instanceof StatusError && error.code === 403)
    return error.message
  }
}

test('defaults fill what is missing, and are noted on the pod', async () => {
  const pod = podWith({ requests: { cpu: '50m' } }, {})
  const item = { type: 'Container', default: { cpu: '1', memory: '1Gi' }, defaultRequest: { cpu: '100m', memory: '256Mi' } }
  assert.equal(await admit([item], pod), undefined)
  assert.deepEqual(
    pod.spec.containers.map((container) => container.resources),
    [
      { requests: { cpu: '50m', memory: '256Mi' }, limits: { cpu: '1', memory: '1Gi' } },
      { requests: { cpu: '100m', memory: '256Mi' }, limits: { cpu: '1', memory: '1Gi' } },
    ],
  )
  assert.deepEqual(pod.metadata.annotations, {
    'kubernetes.io/limit-ranger':
      'LimitRanger plugin set: memory request for container c0; cpu, memory limit for container c0; cpu, memory request for container c1; cpu, memory limit for container c1',
  })
})

const cases = [
  {
    name: 'within',
    item: { type: 'Container', min: { cpu: '10m' }, max: { cpu: '2' } },
    pod: podWith({ requests: { cpu: '1' }, limits: { cpu: '2' } }),
    want: undefined,
  },
  {
    name: 'below',
    item: { type: 'Container', min: { cpu: '100m' } },
    pod: podWith({ requests: { cpu: '0.05' } }),
    want: 'minimum cpu usage per Container is 100m, but request is 50m',
  },
  {
    name: 'no request',
    item: { type: 'Container', min: { cpu: '100m' } },
    pod: podWith({}),
    want: 'minimum cpu usage per Container is 100m.  No request is specified',
  },
  {
    name: 'above',
    item: { type: 'Container', max: { memory: '1Gi' } },
    pod: podWith({ limits: { memory: '2Gi' } }),
    want: 'maximum memory usage per Container is 1Gi, but limit is 2Gi',
  },
  {
    name: 'no limit',
    item: { type: 'Container', max: { memory: '1Gi' } },
    pod: podWith({}),
    want: 'maximum memory usage per Container is 1Gi.  No limit is specified',
  },
  {
    name: 'a pod in total',
    item: { type: 'Pod', max: { cpu: '2' } },
    pod: podWith({ limits: { cpu: '1500m' } }, { limits: { cpu: '1' } }),
    want: 'maximum cpu usage per Pod is 2, but limit is 2500m',
  },
  {
    name: 'ratio',
    item: { type: 'Container', maxLimitRequestRatio: { cpu: '2' } },
    pod: podWith({ requests: { cpu: '1' }, limits: { cpu: '3' } }),
    want: 'cpu max limit to request ratio per Container is 2, but provided ratio is 3.000000',
  },
]
for (const { name, item, pod, want } of cases) {
  test(`limits: ${name}`, async () => assert.equal(await admit([item], pod), want && `pods "p" is forbidden: ${want}`))
}

test('a claim keeps to the range', async () => {
  const item = { type: 'PersistentVolumeClaim', min: { storage: '1Gi' }, max: { storage: '5Gi' } }
  const claim = (storage: string) => ({ metadata: { name: 'p' }, spec: { resources: { requests: { storage } } } })
  assert.equal(await admit([item], claim('2Gi'), 'persistentvolumeclaims'), undefined)
  const refused = 'persistentvolumeclaims "p" is forbidden: maximum storage usage per PersistentVolumeClaim is 5Gi, but request is 8Gi'
  assert.equal(await admit([item], claim('8Gi'), 'persistentvolumeclaims'), refused)
})

const resize = { operation: 'UPDATE', subresource: 'resize' } as const
const going = { metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } } as unknown as AdmissionAttributes['oldObject']
const atMost = { type: 'Container', max: { cpu: '1' }, default: { cpu: '500m' } }

test('RES-04 a resize is defaulted and limited like a new pod, but not other updates or a pod that is being deleted', async () => {
  const pod = podWith({})
  assert.equal(await admit([atMost], pod, 'pods', resize), undefined)
  assert.deepEqual(pod.spec.containers[0]?.resources, { limits: { cpu: '500m' } })
  const big = podWith({ limits: { cpu: '2' } })
  assert.match((await admit([atMost], big, 'pods', resize)) ?? '', /maximum cpu usage per Container is 1, but limit is 2$/)
  assert.equal(await admit([atMost], big, 'pods', { operation: 'UPDATE' }), undefined)
  assert.equal(await admit([atMost], big, 'pods', { ...resize, oldObject: going }), undefined)
})

test('ADM-09 RES-04 LimitRanger reports the first broken range of several, and annotates the last that sets a default', async () => {
  const pod = podWith({ limits: { cpu: '3' } })
  const refused = await admit([atMost], pod, 'pods', {}, [{ type: 'Pod', max: { cpu: '2' } }])
  assert.equal(refused, 'pods "p" is forbidden: maximum cpu usage per Container is 1, but limit is 3')
  const quiet = podWith({})
  assert.equal(await admit([atMost], quiet, 'pods', {}, [{ type: 'Container', defaultRequest: { memory: '1Mi' } }]), undefined)
  assert.deepEqual(quiet.metadata.annotations, { 'kubernetes.io/limit-ranger': 'LimitRanger plugin set: memory request for container c0' })
})

test('RES-04 what a pod asks for as a whole takes the place of what its containers ask for', async () => {
  const pod = podWith({ limits: { cpu: '1' } })
  pod.spec.resources = { limits: { cpu: '3' } }
  assert.match((await admit([{ type: 'Pod', max: { cpu: '2' } }], pod)) ?? '', /maximum cpu usage per Pod is 2, but limit is 3$/)
})
