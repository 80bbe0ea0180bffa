/** What the smaller plugins do, each with what it refuses and what it lets pass. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Pod } from '#api/gen/types/core.v1'
import type { KubeObject } from '#api/machinery/meta'
import { notFound, StatusError } from '#api/machinery/status'
import { seededRandom } from '#base/random'
import { VirtualClock } from '#base/virtualClock'
import type { ApiRequest, ApiResponse } from '#client/transport'
import type { Authorizer } from '../../authz/authorizer.ts'
import type { ObjectReader } from '../../core/objectReader.ts'
import type { AdmissionAttributes, AdmissionPlugin } from '../admission.ts'
import { createLookup } from '../lookup.ts'
import { alwaysDeny } from './alwaysDeny.ts'
import { alwaysPullImages } from './alwaysPullImages.ts'
import { certificateApproval, certificateSigning, clusterTrustBundleAttest } from './certificates.ts'
import { defaultTolerationSeconds } from './defaultTolerationSeconds.ts'
import { denyServiceExternalIps } from './denyServiceExternalIps.ts'
import { eventRateLimit } from './eventRateLimit.ts'
import { extendedResourceToleration } from './extendedResourceToleration.ts'
import { limitPodHardAntiAffinityTopology } from './limitPodHardAntiAffinityTopology.ts'
import { namespaceExists } from './namespaceExists.ts'
import { namespaceLifecycle } from './namespaceLifecycle.ts'
import { nodeDeclaredFeatureValidator } from './nodeDeclaredFeatureValidator.ts'
import { ownerReferencesPermissionEnforcement } from './ownerReferencesPermissionEnforcement.ts'
import { persistentVolumeClaimResize } from './persistentVolumeClaimResize.ts'
import { podNodeSelector } from './podNodeSelector.ts'
import { podResizeValidator } from './podResizeValidator.ts'
import { podTolerationRestriction } from './podTolerationRestriction.ts'
import { podTopologyLabels } from './podTopologyLabels.ts'
import { priority } from './priority.ts'
import { runtimeClass } from './runtimeClass.ts'
import { serviceAccount } from './serviceAccount.ts'
import { storageObjectInUseProtection } from './storageObjectInUseProtection.ts'

const readerOf = (stored: Record<string, object[]>): ObjectReader =>
  ({
    get: ({ resource }: { resource: string }, _: string, name: string) => stored[resource]?.find((one) => (one as KubeObject).metadata.name === name),
    list: ({ resource }: { resource: string }) => stored[resource] ?? [],
    ofKind: (_: string, kind: string) => (kind === 'Deployment' ? { group: 'apps', resource: 'deployments', namespaced: true, forms: undefined } : undefined),
    onChange: () => () => {},
  }) as unknown as ObjectReader

const lookupOf = (stored: Record<string, object[]>) => createLookup(readerOf(stored), () => undefined)

const bad = { 'scheduler.alpha.kubernetes.io/defaultTolerations': '{' }
const namedObject = (name: string, more: object = {}) => ({ metadata: { name, ...more } })
const pod = (spec: object = {}, metadata: object = {}) =>
  ({ kind: 'Pod', metadata: { name: 'p', namespace: 'n', ...metadata }, spec: { containers: [{ name: 'c', image: 'i' }], ...spec } }) as unknown as Pod

/** What the plugin refuses with: status and text. */
async function run(plugin: AdmissionPlugin, object: object | undefined, some: Partial<AdmissionAttributes> = {}): Promise<string | undefined> {
  const attributes = {
    operation: 'CREATE',
    resource: { group: '', version: 'v1', resource: 'pods' },
    kind: { group: '', version: 'v1', kind: 'Pod' },
    subresource: '',
    namespace: 'n',
    name: 'p',
    object,
    user: { name: 'u', groups: [] },
    dryRun: false,
    warn: () => {},
    ...some,
  } as unknown as AdmissionAttributes
  if (!plugin.handles(attributes.operation)) return undefined
  try {
    await plugin.admit?.(attributes)
    await plugin.validate?.(attributes)
    return undefined
  } catch (error) {
    assert.ok(error instanceof StatusError, String(error))
    return `${error.code} ${error.message}`
  }
}

const resource = (name: string, group = '', version = 'v1') => ({ resource: { group, version, resource: name } })
const update = (oldObject: object, more: Partial<AdmissionAttributes> = {}): Partial<AdmissionAttributes> => ({
  operation: 'UPDATE',
  oldObject: oldObject as never,
  ...more,
})

test('AlwaysDeny and NamespaceExists', async () => {
  assert.equal(await run(alwaysDeny, pod()), '403 pods "p" is forbidden: admission control is denying all modifications')
  const plugin = namespaceExists(lookupOf({ namespaces: [namedObject('n')] }))
  assert.equal(await run(plugin, pod()), undefined)
  assert.equal(await run(plugin, undefined, { operation: 'DELETE', namespace: 'x' }), '404 namespaces "x" not found')
})

test('LimitPodHardAntiAffinityTopology', async () => {
  const spec = (topologyKey: string) => ({ affinity: { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [{ topologyKey }] } } })
  assert.equal(await run(limitPodHardAntiAffinityTopology, pod(spec('kubernetes.io/hostname'))), undefined)
  assert.equal(
    await run(limitPodHardAntiAffinityTopology, pod(spec('zone'))),
    '403 pods "p" is forbidden: affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey zone but only key kubernetes.io/hostname is allowed',
  )
})

test('ADM-11 AlwaysPullImages, not for updates without new images', async () => {
  const object = pod({ initContainers: [{ name: 'i', image: 'j' }], volumes: [{ name: 'v', image: { reference: 'r' } }] })
  assert.equal(await run(alwaysPullImages, object), undefined)
  assert.deepEqual(
    [object.spec.containers[0]?.imagePullPolicy, object.spec.initContainers?.[0]?.imagePullPolicy, object.spec.volumes?.[0]?.image?.pullPolicy],
    ['Always', 'Always', 'Always'],
  )
  const same = pod()
  await run(alwaysPullImages, same, update(pod()))
  assert.equal(same.spec.containers[0]?.imagePullPolicy, undefined)
  const { admit: _, ...checking } = alwaysPullImages
  assert.equal(
    await run(checking, pod({ containers: [{ name: 'c', imagePullPolicy: 'Never' }] })),
    '500 pods "p" is forbidden: spec.containers[0].imagePullPolicy: Unsupported value: "Never": supported values: "Always"',
  )
  const withVolume = pod({ containers: [{ name: 'c', imagePullPolicy: 'Never' }], volumes: [{ name: 'v', image: { pullPolicy: 'IfNotPresent' } }] })
  assert.match(
    (await run(checking, withVolume)) ?? '',
    /^500 \[.*, pods "p" is forbidden: spec\.volumes\[0\]\.image\.pullPolicy: Unsupported value: "IfNotPresent".*\]$/,
  )
})

test('ADM-11 ExtendedResourceToleration', async () => {
  const object = pod({ containers: [{ name: 'c', resources: { requests: { 'example.com/b': '1', cpu: '1', 'example.com/a': '1' } } }] })
  await run(extendedResourceToleration, object)
  const toleration = (key: string) => ({ key, operator: 'Exists', effect: 'NoSchedule' })
  assert.deepEqual(object.spec.tolerations, [toleration('example.com/a'), toleration('example.com/b')])
})

test('ADM-11 DenyServiceExternalIPs allows the removal of addresses, and refuses new ones', async () => {
  const service = (...externalIPs: string[]) => ({ ...namedObject('s'), spec: { externalIPs } })
  const of = resource('services')
  const text = '403 services "p" is forbidden: Use of external IPs is denied by admission control'
  assert.equal(await run(denyServiceExternalIps, service('1.1.1.1'), of), text)
  assert.equal(await run(denyServiceExternalIps, service('1.1.1.1'), { ...of, ...update(service('1.1.1.1', '2.2.2.2')) }), undefined)
  assert.equal(await run(denyServiceExternalIps, service('3.3.3.3'), { ...of, ...update(service('1.1.1.1')) }), text)
})

test('StorageObjectInUseProtection gives each kind its finalizer, once', async () => {
  const kinds: [string, string, string][] = [
    ['persistentvolumeclaims', '', 'kubernetes.io/pvc-protection'],
    ['persistentvolumes', '', 'kubernetes.io/pv-protection'],
    ['volumeattributesclasses', 'storage.k8s.io', 'kubernetes.io/vac-protection'],
  ]
  for (const [name, group, finalizer] of kinds) {
    const object = namedObject('x') as KubeObject
    for (const _ of [1, 2]) await run(storageObjectInUseProtection, object, resource(name, group))
    assert.deepEqual(object.metadata.finalizers, [finalizer])
  }
})

test('PersistentVolumeClaimResize', async () => {
  const plugin = persistentVolumeClaimResize(readerOf({ storageclasses: [{ ...namedObject('grows'), allowVolumeExpansion: true }, namedObject('fixed')] }))
  const claim = (storage: string, storageClassName: string, phase = 'Bound') => ({
    ...namedObject('c'),
    spec: { storageClassName, resources: { requests: { storage } } },
    status: { phase },
  })
  const grow = (storageClassName: string, phase?: string) =>
    run(plugin, claim('2Gi', storageClassName), { ...resource('persistentvolumeclaims'), ...update(claim('1Gi', storageClassName, phase)) })
  assert.equal(await grow('grows'), undefined)
  const no = '403 persistentvolumeclaims "p" is forbidden: '
  assert.equal(await grow('grows', 'Pending'), `${no}Only bound persistent volume claims can be expanded`)
  for (const name of ['fixed', 'gone', ''])
    assert.equal(await grow(name), `${no}only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize`)
})

test('RuntimeClass: overhead, node selector and tolerations', async () => {
  const scheduling = { nodeSelector: { runs: 'kata' }, tolerations: [{ key: 'kata', operator: 'Exists' }] }
  const plugin = runtimeClass(lookupOf({ runtimeclasses: [{ ...namedObject('kata'), overhead: { podFixed: { cpu: '100m' } }, scheduling }] }))
  const object = pod({ runtimeClassName: 'kata', nodeSelector: { a: 'b' } })
  assert.equal(await run(plugin, object), undefined)
  const { overhead, nodeSelector, tolerations } = object.spec
  assert.deepEqual(
    { overhead, nodeSelector, tolerations },
    { overhead: { cpu: '100m' }, nodeSelector: { a: 'b', runs: 'kata' }, tolerations: scheduling.tolerations },
  )
  const no = '403 pods "p" is forbidden: '
  assert.equal(await run(plugin, pod({ runtimeClassName: 'gone' })), `${no}pod rejected: RuntimeClass "gone" not found`)
  assert.equal(await run(plugin, pod({ runtimeClassName: 'kata', overhead: { cpu: '0.1' } })), undefined)
  assert.equal(
    await run(plugin, pod({ runtimeClassName: 'kata', overhead: { cpu: '2' } })),
    `${no}pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead`,
  )
  assert.equal(await run(plugin, pod({ overhead: { cpu: '2' } })), `${no}pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead`)
  assert.equal(
    await run(plugin, pod({ runtimeClassName: 'kata', nodeSelector: { runs: 'runc' } })),
    `${no}conflict: runtimeClass.scheduling.nodeSelector[runs] = kata; pod.spec.nodeSelector[runs] = runc`,
  )
})

test('PodTopologyLabels overwrites zone and region of the pod with the node’s', async () => {
  const labels = { 'topology.kubernetes.io/zone': 'z', 'topology.kubernetes.io/region': 'r', other: 'x' }
  const plugin = podTopologyLabels(readerOf({ nodes: [namedObject('node', { labels })] }))
  const object = pod({ nodeName: 'node' }, { labels: { 'topology.kubernetes.io/zone': 'mine' } })
  await run(plugin, object)
  const copied = { 'topology.kubernetes.io/zone': 'z', 'topology.kubernetes.io/region': 'r' }
  assert.deepEqual(object.metadata.labels, copied)
  const binding = { metadata: {}, target: { kind: 'Node', name: 'node' } }
  await run(plugin, binding, { subresource: 'binding' })
  assert.deepEqual(binding.metadata, { labels: copied })
})

test('PodResizeValidator: no further than the node, and on Linux', async () => {
  const node = (system: string) => ({
    ...namedObject(system, { labels: { 'kubernetes.io/os': system } }),
    status: { allocatable: { cpu: '1', memory: '1Gi' } },
  })
  const plugin = podResizeValidator(readerOf({ nodes: [node('linux'), node('windows')] }))
  const resize = (nodeName: string, cpu: string) => {
    const object = pod({ nodeName, containers: [{ name: 'c', resources: { requests: { cpu } } }] }, { generation: 2 })
    return run(plugin, object, { ...update(pod({}, { generation: 1 })), subresource: 'resize' })
  }
  assert.equal(await resize('linux', '1'), undefined)
  const no = '403 pods "p" is forbidden: '
  assert.equal(await resize('linux', '2'), `${no}Node didn't have enough allocatable resources: cpu, requested: 2000, allocatable: 1000`)
  assert.equal(await resize('windows', '1'), `${no}pod resize is only supported on linux nodes, node "windows" is "windows"`)
  assert.equal(await resize('gone', '1'), `${no}node "gone" not found`)
})

test('KUB-22 NodeDeclaredFeatureValidator: a pod is changed only in ways that its node declares to know', async () => {
  const node = (name: string, declaredFeatures: string[]) => ({ ...namedObject(name), status: { declaredFeatures } })
  const whole = 'InPlacePodLevelResourcesVerticalScaling'
  const starting = 'InPlacePodVerticalScalingInitContainers'
  const plugin = nodeDeclaredFeatureValidator(readerOf({ nodes: [node('old', []), node('half', [whole]), node('new', [whole, starting])] }))
  const more = { requests: { cpu: '2' } }
  const init = (fields: object) => ({ initContainers: [{ name: 'i', image: 'i', ...fields }] })
  const change = (nodeName: string, now: object, before: object = {}, subresource = 'resize') =>
    run(plugin, pod({ nodeName, ...now }, { generation: 2 }), { ...update(pod({ nodeName, ...before }, { generation: 1 })), subresource })
  const no = '403 pods "p" is forbidden: '
  const lacking = (names: string, on: string) => `${no}pod update requires features ${names} which are not available on node "${on}"`
  assert.equal(await change('old', { resources: more }), lacking(whole, 'old'))
  assert.equal(await change('old', { resources: more }, {}, ''), lacking(whole, 'old'))
  assert.equal(await change('old', { resources: more }, {}, 'status'), undefined)
  assert.equal(await change('old', { resources: more }, { resources: more }), undefined)
  assert.equal(await change('half', { resources: more, ...init({ resources: more }) }, init({})), lacking(starting, 'half'))
  assert.equal(await change('old', { resources: more, ...init({ resources: more }) }, init({})), lacking(`${whole}, ${starting}`, 'old'))
  assert.equal(await change('old', init({ restartPolicy: 'Always', resources: more }), init({ restartPolicy: 'Always' })), undefined, 'sidecars')
  assert.equal(await change('new', { resources: more, ...init({ resources: more }) }, init({})), undefined)
  assert.equal(await change('gone', { resources: more }), `${no}node "gone" not found`)
  assert.equal(await change('', { resources: more }), undefined)
})

/** A store that is ahead of the cache, asked as the server asks itself. */
const ahead = (objects: Record<string, object>, asked: string[] = []) =>
  createLookup(readerOf({ namespaces: [{ ...namedObject('n'), status: { phase: 'Active' } }] }), () => ({
    watch: () => assert.fail('nobody watches'),
    async request({ path }: ApiRequest) {
      asked.push(path)
      const body = objects[path]
      if (!body) throw notFound({ group: '', resource: 'x' }, path)
      return { status: 200, body, warnings: [] } as unknown as ApiResponse
    },
  }))

test('ADM-01 what the cache does not have yet is looked for in the store', async () => {
  const clock = new VirtualClock()
  const going = { ...namedObject('n'), status: { phase: 'Terminating' } }
  const asked: string[] = []
  const lookup = ahead(
    { '/api/v1/namespaces/m': namedObject('m'), '/api/v1/namespaces/n': going, '/apis/node.k8s.io/v1/runtimeclasses/kata': namedObject('kata') },
    asked,
  )
  const lifecycle = namespaceLifecycle(lookup, clock)
  assert.equal(await run(lifecycle, pod(), { namespace: 'm' }), undefined)
  assert.equal(await run(lifecycle, pod(), { namespace: 'o' }), '404 namespaces "o" not found')
  assert.equal(await run(runtimeClass(lookup), pod({ runtimeClassName: 'kata' })), undefined)
  assert.equal(await run(runtimeClass(lookup), pod({ runtimeClassName: 'gone' })), '403 pods "p" is forbidden: pod rejected: RuntimeClass "gone" not found')
  asked.length = 0
  assert.equal(await run(lifecycle, pod()), undefined)
  assert.deepEqual(asked, [], 'what the cache has is believed')
  const kind = { group: '', version: 'v1', kind: 'Namespace' }
  await run(lifecycle, undefined, { ...resource('namespaces'), kind, operation: 'DELETE', namespace: 'n', name: 'n' })
  assert.match((await run(lifecycle, pod())) ?? '', /^403 .* because it is being terminated$/)
  await clock.advance(30_001)
  assert.equal(await run(lifecycle, pod()), undefined, 'half a minute later the cache is believed again')
})

test('AUN-08 a pod waits a little for the default account of its namespace, and for no other', async () => {
  const clock = new VirtualClock()
  const accounts: object[] = []
  const plugin = serviceAccount({ lookup: lookupOf({ serviceaccounts: accounts }), random: seededRandom(1), clock })
  const early = run(plugin, pod())
  await clock.advance(300)
  accounts.push(namedObject('default'))
  await clock.advance(200)
  assert.equal(await early, undefined)
  accounts.length = 0
  const never = run(plugin, pod())
  await clock.advance(2_000)
  assert.equal(await never, '403 pods "p" is forbidden: error looking up service account n/default: serviceaccount "default" not found')
  assert.match((await run(plugin, pod({ serviceAccountName: 'other' }))) ?? '', /^403 .*serviceaccount "other" not found$/)
})

test('AUN-08 an account that is strict refuses before later plugins are asked', async () => {
  const strict = namedObject('default', { annotations: { 'kubernetes.io/enforce-mountable-secrets': 'true' } })
  const { validate: _, ...admitting } = serviceAccount({ lookup: lookupOf({ serviceaccounts: [strict] }), random: seededRandom(1), clock: new VirtualClock() })
  const refused = await run(admitting, pod({ volumes: [{ name: 'v', secret: { secretName: 's' } }] }))
  assert.match(refused ?? '', /^403 .*volume with secret.secretName="s" is not allowed/)
})

test('RES-07 a second default priority class is refused, also under the name of the first', async () => {
  const first = { ...namedObject('usual'), globalDefault: true }
  const classes = { ...resource('priorityclasses', 'scheduling.k8s.io'), name: 'usual' }
  const plugin = priority(readerOf({ priorityclasses: [first] }))
  const refusal = '403 priorityclasses.scheduling.k8s.io "usual" is forbidden: PriorityClass usual is already marked as default. Only one default can exist'
  assert.equal(await run(plugin, first, classes), refusal)
  assert.equal(await run(plugin, first, { ...classes, ...update(first) }), undefined)
})

test('ADM-10 flags set the default tolerationSeconds for NotReady and unreachable nodes', async () => {
  const object = pod()
  await run(defaultTolerationSeconds({ notReady: 10, unreachable: 20 }), object)
  assert.deepEqual(
    object.spec.tolerations?.map(({ key, tolerationSeconds }) => [key, tolerationSeconds]),
    [
      ['node.kubernetes.io/not-ready', 10],
      ['node.kubernetes.io/unreachable', 20],
    ],
  )
})

/** Allows the given requests, as `verb resource[/subresource] name`. */
const allowing = (...allowed: string[]): Authorizer => ({
  name: 'test',
  authorize: ({ verb, resource: of, subresource, name }) => ({
    decision: allowed.includes(`${verb} ${of}${subresource && `/${subresource}`} ${name}`) ? 'allow' : 'noOpinion',
    reason: '',
  }),
})

test('approving, signing and attesting need the right for the signer, or for its whole domain', async () => {
  const csr = (status: object = {}) => ({ ...namedObject('r'), spec: { signerName: 'x.io/s' }, status })
  const requests = { ...resource('certificatesigningrequests', 'certificates.k8s.io'), name: 'r' }
  const approve = (...allowed: string[]) => run(certificateApproval([allowing(...allowed)]), csr(), { ...requests, ...update(csr()), subresource: 'approval' })
  assert.equal(await approve('approve signers x.io/s'), undefined)
  assert.equal(await approve('approve signers x.io/*'), undefined)
  const no = '403 certificatesigningrequests.certificates.k8s.io "r" is forbidden: user not permitted to'
  assert.equal(await approve('approve signers y.io/*'), `${no} approve requests with signerName "x.io/s"`)
  const sign = (status: object) => run(certificateSigning([]), csr(status), { ...requests, ...update(csr()), subresource: 'status' })
  assert.equal(await sign({ certificate: 'eA==' }), `${no} sign requests with signerName "x.io/s"`)
  assert.equal(await sign({ conditions: [] }), undefined)
  const bundle = (signerName: string, finalizers: string[] = []) => ({ ...namedObject('b', { finalizers }), spec: { signerName, trustBundle: 't' } })
  const bundles = { ...resource('clustertrustbundles', 'certificates.k8s.io', 'v1beta1'), name: 'b' }
  const plugin = clusterTrustBundleAttest([])
  assert.match((await run(plugin, bundle('x.io/s'), bundles)) ?? '', /user not permitted to attest for signerName "x.io\/s"$/)
  assert.equal(await run(plugin, bundle(''), bundles), undefined)
  assert.equal(await run(plugin, bundle('x.io/s', ['f']), { ...bundles, ...update(bundle('x.io/s')) }), undefined)
})

test('ADM-11 OwnerReferencesPermissionEnforcement', async () => {
  const owned = (blockOwnerDeletion: boolean, kind = 'Deployment') =>
    pod({}, { ownerReferences: [{ apiVersion: 'apps/v1', kind, name: 'd', uid: 'u', blockOwnerDeletion }] })
  const admit = (object: object, some: Partial<AdmissionAttributes>, ...allowed: string[]) =>
    run(ownerReferencesPermissionEnforcement(readerOf({}), [allowing(...allowed)]), object, some)
  assert.equal(await admit(owned(false), {}), undefined)
  assert.equal(await admit(owned(false), update(owned(false))), undefined)
  const no = '403 pods "p" is forbidden: '
  assert.equal(await admit(owned(false), update(pod())), `${no}cannot set an ownerRef on a resource you can't delete: , <nil>`)
  assert.equal(await admit(owned(false), update(pod()), 'delete pods p'), undefined)
  assert.equal(
    await admit(owned(true), {}),
    `${no}cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: , <nil>`,
  )
  assert.equal(await admit(owned(true), {}, 'update deployments/finalizers d'), undefined)
  assert.match((await admit(owned(true, 'Thing'), {})) ?? '', /cannot find RESTMapping for APIVersion apps\/v1 Kind Thing/)
})

test('ADM-11 PodNodeSelector: the namespace’s selector, or the cluster’s, and what it allows', async () => {
  const annotated = namedObject('n', { annotations: { 'scheduler.alpha.kubernetes.io/node-selector': 'team=a' } })
  const plugin = podNodeSelector(lookupOf({ namespaces: [annotated, namedObject('m')] }), { clusterDefaultNodeSelector: 'pool=shared', n: 'team=a,disk=ssd' })
  const object = pod({ nodeSelector: { disk: 'ssd' } })
  assert.equal(await run(plugin, object), undefined)
  assert.deepEqual(object.spec.nodeSelector, { team: 'a', disk: 'ssd' })
  const shared = pod()
  await run(plugin, shared, { namespace: 'm' })
  assert.deepEqual(shared.spec.nodeSelector, { pool: 'shared' })
  const no = '403 pods "p" is forbidden: pod node label selector'
  assert.equal(await run(plugin, pod({ nodeSelector: { team: 'b' } })), `${no} conflicts with its namespace node label selector`)
  assert.equal(await run(plugin, pod({ nodeSelector: { disk: 'hdd' } })), `${no} labels conflict with its namespace whitelist`)
})

test('ADM-11 PodTolerationRestriction merges the pod’s tolerations with its namespace’s, and refuses any outside the whitelist', async () => {
  const annotations = {
    'scheduler.alpha.kubernetes.io/defaultTolerations': '[{"key":"a","operator":"Exists"}]',
    'scheduler.alpha.kubernetes.io/tolerationsWhitelist': '[{"key":"a","operator":"Exists"},{"key":"b","operator":"Exists"}]',
  }
  const silent = { 'scheduler.alpha.kubernetes.io/defaultTolerations': '' }
  const namespaces = [
    namedObject('n', { annotations }),
    namedObject('m'),
    namedObject('silent', { annotations: silent }),
    namedObject('bad', { annotations: bad }),
  ]
  const plugin = podTolerationRestriction(lookupOf({ namespaces }), { default: [{ key: 'c', operator: 'Exists' }], whitelist: [] })
  const object = pod({
    tolerations: [
      { key: 'a', value: 'x', effect: 'NoSchedule' },
      { key: 'b', value: 'y' },
    ],
  })
  assert.equal(await run(plugin, object), undefined)
  assert.deepEqual(object.spec.tolerations, [
    { key: 'b', value: 'y' },
    { key: 'a', operator: 'Exists' },
  ])
  assert.match((await run(plugin, pod({ tolerations: [{ key: 'z' }] }))) ?? '', /^500 pod tolerations .* conflict with its namespace whitelist$/)
  assert.match((await run(plugin, pod(), { namespace: 'bad' })) ?? '', /^500 .*JSON/)
  const keys = async (namespace: string, some: Partial<AdmissionAttributes> = {}) => {
    const burstable = pod({ containers: [{ name: 'c', resources: { requests: { cpu: '1' } } }] })
    await run(plugin, burstable, { namespace, ...some })
    return burstable.spec.tolerations?.map(({ key }) => key)
  }
  const memory = 'node.kubernetes.io/memory-pressure'
  assert.deepEqual(await keys('m'), ['c', memory])
  assert.deepEqual(await keys('silent'), [memory], 'an empty annotation says none')
  assert.deepEqual(await keys('m', update(pod())), [memory], 'an update gets no defaults')
})

test('ADM-11 EventRateLimit: a bucket for each key, which fills up again', async () => {
  const clock = new VirtualClock()
  const plugin = eventRateLimit(clock, [
    { type: 'Namespace', qps: 1, burst: 2, cacheSize: 0 },
    { type: 'SourceAndObject', qps: 1, burst: 1, cacheSize: 0 },
  ])
  const event = (component: string) => ({ ...namedObject('e'), source: { component }, involvedObject: { kind: 'Pod', name: 'p' } })
  const send = (component: string, some: object = {}) =>
    run(plugin, event(component), { ...resource('events'), kind: { group: '', version: 'v1', kind: 'Event' }, ...some })
  assert.equal(await send('a'), undefined)
  assert.equal(await send('a'), '429 Too many requests: limit reached on type SourceAndObject for key aPodp')
  assert.equal(await send('b'), '429 Too many requests: limit reached on type Namespace for key n')
  assert.equal(await send('a'), '429 Too many requests: [limit reached on type Namespace for key n, limit reached on type SourceAndObject for key aPodp]')
  assert.equal(await send('b', { namespace: 'm', dryRun: true }), undefined)
  const newer = { namespace: 'n', kind: { group: 'events.k8s.io', version: 'v1', kind: 'Event' } }
  assert.equal(await send('b', newer), undefined, 'events of the newer group are not limited')
  await clock.advance(1_000)
  assert.equal(await send('b'), undefined)
})
