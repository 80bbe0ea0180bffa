/** Field ownership as Argo CD, Flux and Terraform rely on it, next to the real kubectl: dry runs, conflicts, and the change from client-side to server-side apply. */
import assert from 'node:assert/strict'
import test, { after, before } from 'node:test'
import type { KubeObject, ManagedFieldsEntry } from '#api/machinery/meta'
import { isStatus, type StatusError } from '#api/machinery/status'
import { startTestApiServer, type TestApiServer } from '#testing/apiServer'
import { sinceKubectl, type TestKubectl, testKubectl, withoutKubectl } from '../../support/kubectl.ts'

const skip = withoutKubectl
let api: TestApiServer
let kubectl: TestKubectl

before(async () => {
  api = await startTestApiServer()
  kubectl = testKubectl(await api.listen())
})
after(async () => {
  await api.close()
  kubectl.remove()
})

type Deployed = KubeObject & { readonly spec: { readonly replicas: number; readonly template: { readonly spec: { readonly containers: readonly object[] } } } }

const lastApplied = 'kubectl.kubernetes.io/last-applied-configuration'
const collection = '/apis/apps/v1/namespaces/default/deployments'
const pathOf = (name: string) => `${collection}/${name}`

interface Wanted {
  readonly image?: string
  readonly replicas?: number | undefined
  readonly env?: readonly object[]
}

function deployment(name: string, { image = 'web:1', replicas, env }: Wanted = {}) {
  const container = { name: 'main', image, ...(env ? { env } : {}) }
  const template = { metadata: { labels: { app: name } }, spec: { containers: [container] } }
  const spec = { ...(replicas === undefined ? {} : { replicas }), selector: { matchLabels: { app: name } }, template }
  return { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name, namespace: 'default' }, spec }
}

async function request(method: 'GET' | 'PATCH' | 'DELETE', path: string, more: object = {}): Promise<{ readonly status: number; readonly body: Deployed }> {
  const { status, body } = await api.client.transport.request({ method, path, ...more })
  return { status, body: body as Deployed }
}

const get = async (name: string) => (await request('GET', pathOf(name))).body

function apply(object: ReturnType<typeof deployment>, fieldManager: string, query: Readonly<Record<string, string>> = {}) {
  const contentType = 'application/apply-patch+yaml'
  return request('PATCH', pathOf(object.metadata.name), { body: object, contentType, query: { fieldManager, ...query } })
}

async function refused(call: Promise<unknown>): Promise<StatusError> {
  const error = await call.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  assert.ok(isStatus(error), String(error))
  return error
}

const managersOf = ({ metadata }: KubeObject) =>
  ((metadata.managedFields ?? []) as ManagedFieldsEntry[]).map(({ manager, operation }) => `${manager} ${operation}`).sort()
const clientSide = (object: object) => kubectl.must('apply -f -', JSON.stringify(object))

test('EXP-05 a dry run of a server-side apply shows the object that it would make, with its owners, and changes nothing', { skip }, async () => {
  await clientSide(deployment('argo', { replicas: 1 }))
  const live = await get('argo')
  assert.ok(live.metadata.annotations?.[lastApplied]?.includes('"image":"web:1"'))
  assert.deepEqual(managersOf(live), ['kubectl-client-side-apply Update'])
  const { body: predicted } = await apply(deployment('argo', { image: 'web:2', replicas: 1 }), 'argocd-controller', { dryRun: 'All', force: 'true' })
  assert.deepEqual(
    predicted.spec.template.spec.containers.map((one) => (one as { image: string }).image),
    ['web:2'],
  )
  assert.deepEqual(managersOf(predicted), ['argocd-controller Apply', 'kubectl-client-side-apply Update'])
  assert.deepEqual(await get('argo'), live)
})

test('EXP-05 an apply without force names each field that another manager owns, as a cause', { skip }, async () => {
  await clientSide(deployment('conflict', { replicas: 1 }))
  const { code, message, details } = await refused(apply(deployment('conflict', { image: 'web:2', replicas: 3 }), 'Terraform'))
  assert.equal(code, 409)
  assert.match(message, /^Apply failed with 2 conflicts: conflicts with "kubectl-client-side-apply" using apps\/v1:\n/)
  assert.deepEqual(
    details?.causes?.map(({ reason, field }) => `${reason} ${field}`),
    ['FieldManagerConflict .spec.replicas', 'FieldManagerConflict .spec.template.spec.containers[name="main"].image'],
  )
  const { body } = await apply(deployment('conflict', { image: 'web:2', replicas: 3 }), 'Terraform', { force: 'true' })
  assert.equal(body.spec.replicas, 3)
})

test('EXP-05 a plan creates nothing: the dry run of an apply to a missing object answers 201 with a uid, and a GET 404', async () => {
  const planned = await apply(deployment('plan'), 'Terraform', { dryRun: 'All' })
  assert.equal(planned.status, 201)
  assert.ok(planned.body.metadata.uid)
  assert.equal((await refused(get('plan'))).code, 404)
  assert.equal((await apply(deployment('plan'), 'Terraform')).status, 201)
})

test('EXP-05 a field that an applier leaves out goes when it alone owned it, and stays when another manager owns it too', async () => {
  const env = [
    { name: 'A', value: '1' },
    { name: 'B', value: '2' },
  ]
  await apply(deployment('owned', { env, replicas: 2 }), 'kustomize-controller')
  const scale = { body: { spec: { replicas: 5 } }, contentType: 'application/merge-patch+json', query: { fieldManager: 'hpa' } }
  await request('PATCH', `${pathOf('owned')}/scale`, scale)
  const { body } = await apply(deployment('owned', { env: env.slice(0, 1) }), 'kustomize-controller')
  assert.equal(body.spec.replicas, 5)
  assert.deepEqual((body.spec.template.spec.containers[0] as { env: object[] }).env, env.slice(0, 1))
})

/** As client-go's csaupgrade writes it: entries of client-side apply become the applier's, guarded by the resourceVersion. */
function upgradePatch({ metadata }: KubeObject, applier: string, resourceVersion = metadata.resourceVersion) {
  const upgraded = ((metadata.managedFields ?? []) as ManagedFieldsEntry[]).map((entry) =>
    entry.manager === 'kubectl-client-side-apply' ? { ...entry, manager: applier, operation: 'Apply' } : entry,
  )
  return [
    { op: 'replace', path: '/metadata/managedFields', value: upgraded },
    { op: 'replace', path: '/metadata/resourceVersion', value: resourceVersion },
  ]
}

test('EXP-05 a JSON patch hands the fields of client-side apply to an applier, which removes them by leaving them out; a stale patch conflicts', {
  skip,
}, async () => {
  await clientSide(deployment('upgrade', { env: [{ name: 'OLD', value: '1' }] }))
  const live = await get('upgrade')
  const send = (body: object) => request('PATCH', pathOf('upgrade'), { body, contentType: 'application/json-patch+json' })
  const before = await apply(deployment('upgrade'), 'flux', { force: 'true', dryRun: 'All' })
  assert.equal((before.body.spec.template.spec.containers[0] as { env: object[] }).env.length, 1, 'the client-side manager still owns it')
  const stale = await refused(send(upgradePatch(live, 'flux', '1')))
  assert.equal(stale.code, 409)
  await send(upgradePatch(live, 'flux'))
  assert.deepEqual(managersOf(await get('upgrade')), ['flux Apply'])
  const { body } = await apply(deployment('upgrade'), 'flux')
  assert.equal('env' in (body.spec.template.spec.containers[0] ?? {}), false)
})

test(
  'EXP-05 kubectl apply --server-side takes over what it applied on the client’s side, and keeps the annotation for older clients',
  sinceKubectl(26),
  async () => {
    await clientSide(deployment('migrate', { env: [{ name: 'OLD', value: '1' }] }))
    assert.equal(
      await kubectl.must('apply --server-side -f -', JSON.stringify(deployment('migrate', { image: 'web:2' }))),
      'deployment.apps/migrate serverside-applied\n',
    )
    const live = await get('migrate')
    assert.deepEqual(managersOf(live), ['kubectl Apply', 'kubectl-last-applied Apply'])
    assert.equal('env' in (live.spec.template.spec.containers[0] ?? {}), false)
    assert.ok(live.metadata.annotations?.[lastApplied]?.includes('"image":"web:2"'))
    await clientSide(deployment('migrate', { image: 'web:3' }))
    assert.deepEqual(
      (await get('migrate')).spec.template.spec.containers.map((one) => (one as { image: string }).image),
      ['web:3'],
    )
  },
)

test('EXP-05 kubectl diff ends with 0 without and with 1 with a difference, on either side, and changes nothing', { skip }, async () => {
  await clientSide(deployment('diff', { replicas: 1 }))
  const live = await get('diff')
  const diff = (object: object, ...flags: string[]) => kubectl.run(['diff', ...flags, '-f', '-'], JSON.stringify(object))
  assert.equal((await diff(deployment('diff', { replicas: 1 }))).code, 0)
  for (const flags of [[], ['--server-side', '--force-conflicts']]) {
    const { code, stdout, stderr } = await diff(deployment('diff', { image: 'web:9', replicas: 1 }), ...flags)
    assert.equal(code, 1, stderr)
    assert.match(stdout, /^-\s+- image: web:1$|^-\s+image: web:1$/m)
    assert.match(stdout, /^\+\s+- image: web:9$|^\+\s+image: web:9$/m)
  }
  const conflict = await diff(deployment('diff', { image: 'web:9', replicas: 1 }), '--server-side', '--field-manager=other')
  assert.ok(conflict.code > 1, conflict.stdout)
  assert.match(conflict.stderr, /Apply failed with 1 conflict/)
  assert.deepEqual(await get('diff'), live)
})

test('EXP-05 one empty entry resets the owners of an object', async () => {
  await apply(deployment('reset'), 'argocd-controller')
  const body = { metadata: { managedFields: [{}] } }
  const { body: reset } = await request('PATCH', pathOf('reset'), { body, contentType: 'application/merge-patch+json', query: { fieldManager: 'reset' } })
  assert.equal(reset.metadata.managedFields, undefined)
})
