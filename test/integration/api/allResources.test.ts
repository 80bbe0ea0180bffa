/** Every stored resource over the API with what its kind needs at least: create, get, list, update, patch, delete, deletecollection, as listed. */
import assert from 'node:assert/strict'
import test, { after, before } from 'node:test'
import { StatusError } from '#api/machinery/status'
import { builtInResources, type ResourceFacts } from '#api/resources'
import type { ApiResponse } from '#client/transport'
import { startTestApiServer, type TestApiServer } from '#testing/apiServer'

let api: TestApiServer
before(async () => {
  api = await startTestApiServer()
})
after(() => api.close())

const template = { metadata: { labels: { a: 'b' } }, spec: { containers: [{ name: 'c', image: 'x' }] } }
const selector = { matchLabels: { a: 'b' } }
const jobTemplate = { ...template, spec: { ...template.spec, restartPolicy: 'Never' } }
const deviceRequest = { devices: { requests: [{ name: 'r', exactly: { deviceClassName: 'c.example.com' } }] } }
const webhook = { name: 'a.example.com', admissionReviewVersions: ['v1'], sideEffects: 'None', clientConfig: { url: 'https://a.example.com' } }

/** What a kind cannot do without. */
const least: Readonly<Record<string, object>> = {
  pods: { spec: template.spec },
  podtemplates: { template },
  replicationcontrollers: { spec: { selector: { a: 'b' }, template } },
  services: { spec: { ports: [{ port: 80 }] } },
  persistentvolumes: { spec: { capacity: { storage: '1Gi' }, accessModes: ['ReadWriteOnce'], hostPath: { path: '/x' } } },
  persistentvolumeclaims: { spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } } },
  limitranges: { spec: { limits: [] } },
  controllerrevisions: { revision: 1, data: {} },
  deployments: { spec: { selector, template } },
  replicasets: { spec: { selector, template } },
  statefulsets: { spec: { selector, template, serviceName: 's' } },
  daemonsets: { spec: { selector, template } },
  jobs: { spec: { template: jobTemplate } },
  cronjobs: { spec: { schedule: '* * * * *', jobTemplate: { spec: { template: jobTemplate } } } },
  horizontalpodautoscalers: { spec: { maxReplicas: 2, scaleTargetRef: { kind: 'Deployment', name: 'd', apiVersion: 'apps/v1' } } },
  ingressclasses: { spec: { controller: 'example.com/c' } },
  ingresses: { spec: { defaultBackend: { service: { name: 's', port: { number: 80 } } } } },
  ipaddresses: { spec: { parentRef: { resource: 'services', name: 's', namespace: 'default' } } },
  networkpolicies: { spec: { podSelector: {} } },
  servicecidrs: { spec: { cidrs: ['10.100.0.0/16'] } },
  endpointslices: { addressType: 'IPv4', endpoints: [] },
  poddisruptionbudgets: { spec: { selector, maxUnavailable: 1 } },
  csidrivers: { spec: {} },
  csinodes: { spec: { drivers: [] } },
  csistoragecapacities: { storageClassName: 's' },
  storageclasses: { provisioner: 'example.com/p' },
  volumeattachments: { spec: { attacher: 'a', nodeName: 'n', source: { persistentVolumeName: 'v' } } },
  volumeattributesclasses: { driverName: 'example.com', parameters: { a: 'b' } },
  deviceclasses: { spec: {} },
  resourceclaims: { spec: deviceRequest },
  resourceclaimtemplates: { spec: { spec: deviceRequest } },
  resourceslices: { spec: { driver: 'example.com', nodeName: 'n', pool: { name: 'p', generation: 1, resourceSliceCount: 1 } } },
  priorityclasses: { value: 7 },
  runtimeclasses: { handler: 'h' },
  leases: { spec: {} },
  'events.k8s.io/events': {
    eventTime: '2026-01-01T00:00:00.000000Z',
    reportingController: 'example.com/c',
    reportingInstance: 'i',
    action: 'A',
    reason: 'R',
    type: 'Normal',
    regarding: { namespace: 'default' },
  },
  events: { involvedObject: { namespace: 'default' } },
  clusterrolebindings: { roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'r' } },
  rolebindings: { roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'r' } },
  certificatesigningrequests: { spec: {} },
  mutatingwebhookconfigurations: { webhooks: [webhook] },
  validatingwebhookconfigurations: { webhooks: [webhook] },
}

/** Names that rules of the kind ask for. */
const nameOf: Readonly<Record<string, string>> = { ipaddresses: '10.200.0.1' }

/** Kinds whose least object is a page long; the kinds' own tests make them. */
const elsewhere: ReadonlySet<string> = new Set([
  'certificatesigningrequests',
  'customresourcedefinitions',
  'apiservices',
  'flowschemas',
  'prioritylevelconfigurations',
  'mutatingadmissionpolicies',
  'mutatingadmissionpolicybindings',
  'validatingadmissionpolicies',
  'validatingadmissionpolicybindings',
])

const resources = builtInResources().filter((facts) => facts.storage && !elsewhere.has(facts.resource))

for (const facts of resources) {
  test(`API-01 ${facts.resource} of ${facts.group || 'core'}/${facts.version} can be created, read, changed and deleted`, () => lifeOf(facts))
}

async function lifeOf(facts: ResourceFacts): Promise<void> {
  const { group, version, resource, namespaced } = facts
  const root = group === '' ? `/api/${version}` : `/apis/${group}/${version}`
  const path = `${root}${namespaced ? '/namespaces/default' : ''}/${resource}`
  const call = (method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE', to: string, body?: unknown, contentType?: string): Promise<ApiResponse> =>
    api.client.transport.request({ method, path: to, ...(body === undefined ? {} : { body }), ...(contentType ? { contentType } : {}) })
  const name = nameOf[resource] ?? 'life-of-one'
  const body = { metadata: { name }, ...(least[`${group}/${resource}`] ?? least[resource]) }
  type Body = { metadata: { uid: string; resourceVersion: string; labels?: object } }
  const made = await call('POST', path, body)
  const got = await call('GET', `${path}/${name}`)
  assert.deepEqual([made.status, got.body], [201, made.body])
  const list = (await call('GET', path)).body as { items: Body[]; kind: string }
  assert.ok(list.items.some((item) => item.metadata.uid === (made.body as Body).metadata.uid))
  assert.equal(list.kind, `${facts.kind}List`)
  const updated = (await call('PUT', `${path}/${name}`, got.body)).body as Body
  assert.equal(updated.metadata.resourceVersion, (made.body as Body).metadata.resourceVersion, 'an update that changes nothing')
  const patched = (await call('PATCH', `${path}/${name}`, { metadata: { labels: { x: 'y' } } }, 'application/merge-patch+json')).body as Body
  assert.deepEqual(patched.metadata.labels, { ...(made.body as Body).metadata.labels, x: 'y' })
  await call('DELETE', `${path}/${name}`, { gracePeriodSeconds: 0, propagationPolicy: 'Background' })
  if (resource === 'namespaces') return
  const gone = await call('GET', `${path}/${name}`).catch((error) => error)
  if (gone instanceof StatusError) assert.equal(gone.code, 404)
  // Protection finalizers are their controllers' to take off.
  else assert.ok((gone.body as { metadata: { deletionTimestamp?: string } }).metadata.deletionTimestamp)
  if (facts.verbs.includes('deletecollection')) assert.equal((await call('DELETE', path)).status, 200)
}

test('API-01 every stored resource is looked at here or named as tested elsewhere', () => {
  const stored = builtInResources().filter((facts) => facts.storage)
  assert.equal(resources.length + elsewhere.size, stored.length)
})
