/** Objects over the API: creating, changing, deleting, selecting, paging. */
import assert from 'node:assert/strict'
import type { ConfigMap } from '#api/gen/types/core.v1'
import type { KubeObject, ObjectMeta } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import { configMaps, deployments, endpointSlices, jobs, leases, limitRanges, namespaces, pods, services } from '#client/builtIn'
import { refused } from '../../support/refused.ts'
import { bothTransports, type Case } from './bothTransports.ts'

const map = (namespace: string, name: string, data: Record<string, string> = {}) => ({ metadata: { namespace, name }, data })
const pod = (namespace: string, name: string, labels: Record<string, string> = {}) => ({
  metadata: { namespace, name, labels },
  spec: { containers: [{ name: 'c', image: 'nginx' }] },
})

bothTransports({
  async 'API-05 a write of the status gets the defaults that come out of the spec'({ client, namespace }: Case) {
    const api = client.of(services)
    const made = await api.create({ metadata: { namespace, name: 'lb' }, spec: { type: 'LoadBalancer', ports: [{ port: 80 }] } })
    const of = (ip: string) => ({ loadBalancer: { ingress: [{ ip }] } })
    const put = await api.updateStatus({ ...made, status: of('203.0.113.1') })
    assert.deepEqual(put.status?.loadBalancer?.ingress, [{ ip: '203.0.113.1', ipMode: 'VIP' }])
    const patched = await api.patch({ namespace, name: 'lb' }, 'merge', { status: of('203.0.113.2') }, { subresource: 'status' })
    assert.deepEqual(patched.status?.loadBalancer?.ingress, [{ ip: '203.0.113.2', ipMode: 'VIP' }])
    const template = { metadata: { labels: { of: 'template' } }, spec: { restartPolicy: 'Never', containers: [{ name: 'c', image: 'i' }] } }
    await client.of(jobs).create({ metadata: { namespace, name: 'j' }, spec: { template } })
    const job = await client.of(jobs).patch({ namespace, name: 'j' }, 'merge', { metadata: { labels: null }, status: { ready: 0 } }, { subresource: 'status' })
    assert.equal(job.metadata.labels?.of, 'template')
  },
  async 'API-27 the server sets uid, creationTimestamp, generation and a name from generateName'({ client, namespace }: Case) {
    const made = await client.of(deployments).create({
      metadata: { namespace, generateName: 'web-' },
      spec: {
        selector: { matchLabels: { a: 'b' } },
        template: { metadata: { labels: { a: 'b' } }, spec: { containers: [{ name: 'c', image: 'nginx' }] } },
      },
    })
    const { name = '', uid = '', creationTimestamp = '', generation } = made.metadata
    assert.match(name, /^web-[a-z0-9]{5}$/)
    assert.match(uid, /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    assert.match(creationTimestamp, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/)
    assert.equal(generation, 1)
    const scaled = await client.of(deployments).patch({ namespace, name }, 'merge', { spec: { replicas: 3 } })
    const labelled = await client.of(deployments).patch({ namespace, name }, 'merge', { metadata: { labels: { x: 'y' } } })
    const status = await client.of(deployments).patch({ namespace, name }, 'merge', { status: { replicas: 3 } }, { subresource: 'status' })
    assert.deepEqual(
      [scaled, labelled, status].map((one) => one.metadata.generation),
      [2, 2, 2],
    )
  },

  async 'EXP-04 the generation of an EndpointSlice counts its labels, not its annotations'({ client, namespace }: Case) {
    const ref = { namespace, name: 's' }
    await client.of(endpointSlices).create({ metadata: ref, addressType: 'IPv4', endpoints: [] })
    const patches = [{ metadata: { annotations: { a: 'b' } } }, { metadata: { labels: { a: 'b' } } }, { endpoints: [{ addresses: ['10.0.0.1'] }] }]
    const seen: (number | undefined)[] = []
    for (const patch of patches) seen.push((await client.of(endpointSlices).patch(ref, 'merge', patch)).metadata.generation)
    assert.deepEqual(seen, [1, 2, 3])
  },

  async 'API-01 the last finalizer leaves no empty list behind'({ client, namespace }: Case) {
    const ref = { namespace, name: 'finalized' }
    await client.of(configMaps).create({ metadata: { ...ref, finalizers: ['example.com/one'] } })
    const freed = await client.of(configMaps).patch(ref, 'merge', { metadata: { finalizers: [] } })
    assert.equal(Object.hasOwn(freed.metadata, 'finalizers'), false)
  },

  async 'API-03 ARC-11 a write against an older state is refused, and one that changes nothing keeps the resourceVersion'({ client, namespace }: Case) {
    const first = await client.of(configMaps).create(map(namespace, 'm', { a: '1' }))
    const second = await client.of(configMaps).update({ ...first, data: { a: '2' } } as ConfigMap)
    const error = await refused(client.of(configMaps).update({ ...first, data: { a: '3' } } as ConfigMap))
    assert.deepEqual(error.toStatus(), {
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Failure',
      message: 'Operation cannot be fulfilled on configmaps "m": the object has been modified; please apply your changes to the latest version and try again',
      reason: 'Conflict',
      details: { name: 'm', kind: 'configmaps' },
      code: 409,
    })
    const same = await client.of(configMaps).update(second as ConfigMap)
    assert.equal(same.metadata.resourceVersion, second.metadata.resourceVersion)
    const unconditional = await client.of(configMaps).update(map(namespace, 'm', { a: '4' }) as ConfigMap)
    assert.deepEqual(unconditional.data, { a: '4' })
    await client.of(leases).create({ metadata: { namespace, name: 'l' }, spec: {} })
    const lease = await refused(client.of(leases).update({ apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: { namespace, name: 'l' }, spec: {} }))
    assert.deepEqual(
      [lease.code, lease.message],
      [422, 'Lease.coordination.k8s.io "l" is invalid: metadata.resourceVersion: Invalid value: 0x0: must be specified for an update'],
    )
  },

  async 'API-03 of many concurrent changes none is lost'({ client, namespace }: Case) {
    await client.of(configMaps).create(map(namespace, 'm'))
    const keys = Array.from({ length: 30 }, (_, at) => `k${at}`)
    await Promise.all(keys.map((key) => client.of(configMaps).patch({ namespace, name: 'm' }, 'merge', { data: { [key]: 'x' } })))
    const { data } = await client.of(configMaps).get({ namespace, name: 'm' })
    assert.deepEqual(Object.keys(data ?? {}).sort(), keys.sort())
  },

  async 'API-01 missing, existing and misplaced objects are refused in upstream words'({ client, namespace }: Case) {
    await client.of(configMaps).create(map(namespace, 'm'))
    const calls: [Promise<unknown>, string][] = [
      [client.of(configMaps).get({ namespace, name: 'no' }), '404 NotFound configmaps "no" not found'],
      [client.of(configMaps).delete({ namespace, name: 'no' }), '404 NotFound configmaps "no" not found'],
      [client.of(configMaps).create(map(namespace, 'm')), '409 AlreadyExists configmaps "m" already exists'],
      [
        client.transport.request({ method: 'POST', path: `/api/v1/namespaces/${namespace}/configmaps`, body: { metadata: { name: 'a', namespace: 'other' } } }),
        '400 BadRequest the namespace of the provided object does not match the namespace sent on the request',
      ],
      [
        client.transport.request({ method: 'PUT', path: `/api/v1/namespaces/${namespace}/configmaps/m`, body: { metadata: { name: 'b' } } }),
        '400 BadRequest the name of the object (b) does not match the name on the URL (m)',
      ],
      [
        client.transport.request({
          method: 'POST',
          path: `/api/v1/namespaces/${namespace}/configmaps`,
          body: { apiVersion: 'apps/v1', metadata: { name: 'a' } },
        }),
        '400 BadRequest the API version in the data (apps/v1) does not match the expected API version (v1)',
      ],
    ]
    // All calls run at once: each is awaited from the start, or an early rejection would be unhandled.
    const errors = await Promise.all(calls.map(([call]) => refused(call)))
    assert.deepEqual(
      errors.map((error) => `${error.code} ${error.reason} ${error.message}`),
      calls.map(([, want]) => want),
    )
  },

  async 'API-07 pages show one state, however much changes in between'({ client, namespace }: Case) {
    for (let at = 0; at < 7; at++) await client.of(configMaps).create(map(namespace, `m${at}`))
    const first = await client.of(configMaps).list({ namespace, limit: 3 })
    assert.equal(first.metadata.remainingItemCount, 4)
    await client.of(configMaps).delete({ namespace, name: 'm4' })
    await client.of(configMaps).create(map(namespace, 'm35'))
    const second = await client.of(configMaps).list({ namespace, limit: 3, continue: first.metadata.continue })
    const third = await client.of(configMaps).list({ namespace, limit: 3, continue: second.metadata.continue })
    const names = [first, second, third].map((page) => page.items.map((item) => item.metadata.name))
    assert.deepEqual(names, [['m0', 'm1', 'm2'], ['m3', 'm4', 'm5'], ['m6']])
    assert.deepEqual(
      [second, third].map((page) => page.metadata.resourceVersion),
      [first.metadata.resourceVersion, first.metadata.resourceVersion],
    )
    assert.equal(third.metadata.continue, undefined)
    const exact = await client.of(configMaps).list({ namespace, resourceVersion: first.metadata.resourceVersion, resourceVersionMatch: 'Exact' })
    assert.equal(
      exact.items.some((item) => item.metadata.name === 'm4'),
      true,
    )
    const cached = await client.of(configMaps).list({ namespace, limit: 2, resourceVersion: '0' })
    assert.deepEqual([cached.items.length, cached.metadata.continue], [7, undefined])
  },

  async 'API-10 label and field selectors select'({ client, namespace }: Case) {
    await client.of(pods).create(pod(namespace, 'a', { tier: 'web', env: 'prod' }))
    await client.of(pods).create(pod(namespace, 'b', { tier: 'db', env: 'prod' }))
    await client.of(pods).create(pod(namespace, 'c', { tier: 'web' }))
    const names = async (options: { labelSelector?: string; fieldSelector?: string }) =>
      (await client.of(pods).list({ namespace, ...options })).items.map((item) => item.metadata.name)
    assert.deepEqual(await names({ labelSelector: 'tier in (web,cache),!env' }), ['c'])
    assert.deepEqual(await names({ labelSelector: 'env=prod,tier!=db' }), ['a'])
    assert.deepEqual(await names({ fieldSelector: 'metadata.name=b' }), ['b'])
    assert.deepEqual(await names({ fieldSelector: 'status.phase=Pending,metadata.name!=a' }), ['b', 'c'])
    assert.equal((await refused(client.of(pods).list({ namespace, fieldSelector: 'spec.foo=x' }))).code, 400)
  },

  async 'API-12 a dry run answers as the write would and stores nothing'({ client, namespace }: Case) {
    const made = await client.of(configMaps).create(map(namespace, 'm', { a: '1' }), { dryRun: true })
    assert.deepEqual([made.data, made.metadata.resourceVersion], [{ a: '1' }, undefined])
    assert.ok(made.metadata.uid)
    assert.equal((await refused(client.of(configMaps).get({ namespace, name: 'm' }))).code, 404)
    const real = await client.of(configMaps).create(map(namespace, 'm', { a: '1' }))
    const patched = await client.of(configMaps).patch({ namespace, name: 'm' }, 'merge', { data: { a: '2' } }, { dryRun: true })
    await client.of(configMaps).delete({ namespace, name: 'm' }, { dryRun: true })
    const after = await client.of(configMaps).get({ namespace, name: 'm' })
    assert.deepEqual([patched.data, after.data, after.metadata.resourceVersion], [{ a: '2' }, { a: '1' }, real.metadata.resourceVersion])
  },

  async 'API-25 finalizers keep an object, pods get their grace period, and preconditions hold'({ client, namespace }: Case) {
    await client.of(configMaps).create({ metadata: { namespace, name: 'm', finalizers: ['example.com/keep'] } })
    await client.of(configMaps).delete({ namespace, name: 'm' })
    const dying = await client.of(configMaps).get({ namespace, name: 'm' })
    assert.ok(dying.metadata.deletionTimestamp)
    const again = await refused(client.of(configMaps).create(map(namespace, 'm')))
    assert.equal(again.message, 'object is being deleted: configmaps "m" already exists')
    await client.of(configMaps).patch({ namespace, name: 'm' }, 'merge', { metadata: { finalizers: null } })
    assert.equal((await refused(client.of(configMaps).get({ namespace, name: 'm' }))).code, 404)

    const made = await client.of(pods).create(pod(namespace, 'p'))
    await client.of(pods).createSubresource({ namespace, name: 'p' }, 'binding', { target: { kind: 'Node', name: 'n1' } })
    const wrong = await refused(client.of(pods).delete({ namespace, name: 'p' }, { preconditions: { uid: 'other' } }))
    assert.deepEqual([wrong.code, wrong.reason], [409, 'Conflict'])
    await client.of(pods).delete({ namespace, name: 'p' }, { preconditions: { uid: made.metadata.uid } })
    const stopping = await client.of(pods).get({ namespace, name: 'p' })
    assert.deepEqual([stopping.metadata.deletionGracePeriodSeconds, stopping.spec?.nodeName], [30, 'n1'])
    await client.of(pods).delete({ namespace, name: 'p' }, { gracePeriodSeconds: 5 })
    assert.equal((await client.of(pods).get({ namespace, name: 'p' })).metadata.deletionGracePeriodSeconds, 5)
    await client.of(pods).delete({ namespace, name: 'p' }, { gracePeriodSeconds: 0 })
    assert.equal((await refused(client.of(pods).get({ namespace, name: 'p' }))).code, 404)
  },

  async 'API-25 a pod that is deleted at once is marked in the answer and in its events'({ client, namespace }: Case) {
    await client.of(pods).create(pod(namespace, 'unscheduled'))
    await client.of(pods).create(pod(namespace, 'forced'))
    await client.of(pods).createSubresource({ namespace, name: 'forced' }, 'binding', { target: { kind: 'Node', name: 'n1' } })
    const { resourceVersion } = (await client.of(pods).list({ namespace })).metadata
    const path = `/api/v1/namespaces/${namespace}/pods`
    const marks = ({ deletionTimestamp, deletionGracePeriodSeconds, generation }: ObjectMeta) =>
      [deletionTimestamp === undefined ? 'unmarked' : 'marked', deletionGracePeriodSeconds, generation] as const
    for (const [name, body] of [
      ['unscheduled', undefined],
      ['forced', { gracePeriodSeconds: 0 }],
    ] as const) {
      const { body: object } = await client.transport.request({ method: 'DELETE', path: `${path}/${name}`, ...(body ? { body } : {}) })
      assert.deepEqual(marks((object as KubeObject).metadata), ['marked', 0, 2], name)
    }
    const seen: unknown[] = []
    for await (const batch of client.of(pods).watch({ namespace, resourceVersion, signal: AbortSignal.timeout(10_000) })) {
      seen.push(...batch.map(({ type, object: { metadata } }) => [type, metadata.name, ...marks(metadata as ObjectMeta)]))
      if (seen.length >= 4) break
    }
    const events = (name: string) => ['MODIFIED', 'DELETED'].map((type) => [type, name, 'marked', 0, 2])
    assert.deepEqual(seen, [...events('unscheduled'), ...events('forced')])
  },

  async 'API-27 a LimitRange without a name gets a UUID as its name'({ client, namespace }: Case) {
    const limits = [{ type: 'Container', max: { cpu: '1' } }]
    const made = await client.of(limitRanges).create({ metadata: { namespace }, spec: { limits } })
    assert.match(made.metadata.name ?? '', /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    assert.notEqual(made.metadata.name, made.metadata.uid)
  },

  async 'API-26 the propagation policy decides about the garbage collector finalizers'({ client, namespace }: Case) {
    const policies = [
      ['Foreground', ['foregroundDeletion']],
      ['Orphan', ['orphan']],
      ['Background', undefined],
    ] as const
    for (const [propagationPolicy, want] of policies) {
      await client.of(configMaps).create(map(namespace, 'm'))
      await client.of(configMaps).delete({ namespace, name: 'm' }, { propagationPolicy })
      const left = await client
        .of(configMaps)
        .get({ namespace, name: 'm' })
        .catch((error) => {
          if (!isStatus(error, 'NotFound')) throw error
          return undefined
        })
      assert.deepEqual(left?.metadata.finalizers, want)
      if (left) await client.of(configMaps).patch({ namespace, name: 'm' }, 'json', [{ op: 'remove', path: '/metadata/finalizers' }])
    }
  },

  async 'API-25 a namespace dies when its finalizers are gone'({ client }: Case) {
    await client.of(namespaces).create({ metadata: { name: 'mortal' }, spec: {} })
    await client.of(namespaces).delete({ name: 'mortal' })
    const dying = await client.of(namespaces).get({ name: 'mortal' })
    assert.deepEqual([dying.status?.phase, dying.spec?.finalizers], ['Terminating', ['kubernetes']])
    await client.of(namespaces).updateSubresource({ name: 'mortal' }, 'finalize', { ...dying, spec: { finalizers: [] } })
    assert.equal((await refused(client.of(namespaces).get({ name: 'mortal' }))).code, 404)
  },

  async 'API-01 a collection is deleted by selector'({ client, namespace }: Case) {
    for (const name of ['a', 'b', 'c']) await client.of(configMaps).create({ metadata: { namespace, name, labels: { keep: String(name === 'b') } } })
    await client.of(configMaps).deleteCollection({ namespace, labelSelector: 'keep=false' })
    assert.deepEqual(
      (await client.of(configMaps).list({ namespace })).items.map((item) => item.metadata.name),
      ['b'],
    )
  },

  async 'API-24 status and scale change their half only'({ client, namespace }: Case) {
    const ref = { namespace, name: 'd' }
    await client.of(deployments).create({
      metadata: ref,
      spec: {
        replicas: 2,
        selector: { matchLabels: { a: 'b' } },
        template: { metadata: { labels: { a: 'b' } }, spec: { containers: [{ name: 'c', image: 'nginx' }] } },
      },
    })
    const viaStatus = await client.of(deployments).patch(ref, 'merge', { spec: { replicas: 9 }, status: { replicas: 2 } }, { subresource: 'status' })
    const viaSpec = await client.of(deployments).patch(ref, 'merge', { status: { replicas: 7 } })
    assert.deepEqual([viaStatus.spec?.replicas, viaStatus.status?.replicas, viaSpec.status?.replicas], [2, 2, 2])
    const scale = await client.of(deployments).getSubresource<{ spec: { replicas: number }; status: object }>(ref, 'scale')
    assert.deepEqual([scale.spec, scale.status], [{ replicas: 2 }, { replicas: 2, selector: 'a=b' }])
    await client.of(deployments).updateSubresource(ref, 'scale', { ...scale, spec: { replicas: 5 } })
    assert.equal((await client.of(deployments).get(ref)).spec?.replicas, 5)
  },

  async 'API-06 an object is shown in every version that is served, whichever wrote it'({ client, namespace }: Case) {
    const hpas = (version: string) => `/apis/autoscaling/${version}/namespaces/${namespace}/horizontalpodautoscalers`
    const scaleTargetRef = { kind: 'Deployment', name: 'd', apiVersion: 'apps/v1' }
    const body = { metadata: { name: 'h' }, spec: { maxReplicas: 3, targetCPUUtilizationPercentage: 50, scaleTargetRef } }
    await client.transport.request({ method: 'POST', path: hpas('v1'), body })
    const v2 = (await client.transport.request({ method: 'GET', path: `${hpas('v2')}/h` })).body as { apiVersion: string; spec: { metrics: unknown } }
    const cpu = { type: 'Resource', resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: 50 } } }
    assert.deepEqual([v2.apiVersion, v2.spec.metrics], ['autoscaling/v2', [cpu]])
    const v1 = (await client.transport.request({ method: 'GET', path: `${hpas('v1')}/h` })).body as { apiVersion: string; spec: object }
    assert.deepEqual([v1.apiVersion, v1.spec], ['autoscaling/v1', { ...body.spec, minReplicas: 1 }])
    const event = {
      metadata: { name: 'e' },
      eventTime: '2026-01-01T00:00:00.000000Z',
      reportingController: 'example.com/c',
      reportingInstance: 'i',
      action: 'A',
      reason: 'R',
      type: 'Normal',
      note: 'hello',
      regarding: { kind: 'Pod', name: 'p', namespace },
    }
    await client.transport.request({ method: 'POST', path: `/apis/events.k8s.io/v1/namespaces/${namespace}/events`, body: event })
    const core = (await client.transport.request({ method: 'GET', path: `/api/v1/namespaces/${namespace}/events/e` })).body as Record<string, unknown>
    assert.deepEqual([core.apiVersion, core.message, core.involvedObject], ['v1', 'hello', event.regarding])
  },

  async 'services get addresses and node ports of their own, keep them, and give them back'({ client, namespace }: Case) {
    const spec = (extra: object) => ({ ports: [{ port: 80 }], ...extra })
    const a = await client.of(services).create({ metadata: { namespace, name: 'a' }, spec: spec({ type: 'NodePort' }) })
    const { clusterIP = '', ports } = a.spec ?? {}
    const nodePort = ports?.[0]?.nodePort ?? 0
    assert.match(clusterIP, /^10\.96\./)
    assert.ok(nodePort >= 30000 && nodePort <= 32767)
    const taken = await refused(client.of(services).create({ metadata: { namespace, name: 'b' }, spec: spec({ clusterIP }) }))
    assert.match(taken.message, /spec\.clusterIPs: Invalid value: .*: failed to allocate IP .*: provided IP is already allocated/)
    const port = await refused(client.of(services).create({ metadata: { namespace, name: 'b' }, spec: { type: 'NodePort', ports: [{ port: 80, nodePort }] } }))
    assert.equal(port.message, `Service "b" is invalid: spec.ports[0].nodePort: Invalid value: ${nodePort}: provided port is already allocated`)
    const changed = await client.of(services).patch({ namespace, name: 'a' }, 'merge', { spec: { sessionAffinity: 'ClientIP' } })
    assert.deepEqual([changed.spec?.clusterIP, changed.spec?.ports?.[0]?.nodePort], [clusterIP, nodePort])
    await client.of(services).delete({ namespace, name: 'a' })
    const again = await client.of(services).create({ metadata: { namespace, name: 'b' }, spec: spec({ clusterIP }) })
    assert.equal(again.spec?.clusterIP, clusterIP)
  },
})
