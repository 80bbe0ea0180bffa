/**
 * The author of a policy may read all objects of its paramKind, and the author of a binding the parameters it names (ADM-06, ADM-07): for both kinds of
 * policies and of bindings, over the wire. Without these checks a policy prints any Secret of the cluster.
 */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { TestApiServer, TestListener } from '#testing/apiServer'
import { type HttpsAnswer, httpsCall } from '../../support/httpsCall.ts'
import { openSsl } from '../../support/openssl.ts'
import { startServerWithFlags } from '../../support/serverWithFlags.ts'

const ssl = openSsl()
const group = 'rbac.authorization.k8s.io'
const rbac = `/apis/${group}/v1`
const apiVersion = 'admissionregistration.k8s.io/v1'
const policiesOf = (kind: string) => `/apis/${apiVersion}/${kind.toLowerCase()}admissionpolicies`
const bindingsOf = (kind: string) => `/apis/${apiVersion}/${kind.toLowerCase()}admissionpolicybindings`

let api: TestApiServer
let server: TestListener

function call(who: string, method: string, path: string, body?: unknown, contentType = 'application/json'): Promise<HttpsAnswer> {
  return httpsCall(server, path, { method, body, headers: { authorization: `Bearer ${who}`, 'content-type': contentType } })
}

async function made(work: Promise<HttpsAnswer>): Promise<HttpsAnswer> {
  const answer = await work
  assert.ok(answer.status < 300, answer.text)
  return answer
}

interface Right {
  readonly namespace?: string
  readonly rules: readonly object[]
}

async function grant(who: string, { namespace, rules }: Right): Promise<void> {
  const [kind, root] = namespace ? ['Role', `${rbac}/namespaces/${namespace}/role`] : ['ClusterRole', `${rbac}/clusterrole`]
  await made(call('admin', 'POST', `${root}s`, { metadata: { name: who }, rules }))
  const subjects = [{ kind: 'User', apiGroup: group, name: who }]
  await made(call('admin', 'POST', `${root}bindings`, { metadata: { name: who }, roleRef: { apiGroup: group, kind, name: who }, subjects }))
}

const writesPolicies = { verbs: ['create', 'update', 'patch', 'get'], apiGroups: ['admissionregistration.k8s.io'], resources: ['*'] }
const secrets = (verbs: readonly string[], more: object = {}) => ({ verbs, apiGroups: [''], resources: ['secrets'], ...more })

/** What each author may do beyond writing policies and bindings of all kinds. */
const authors: Readonly<Record<string, Right>> = {
  mallory: { rules: [] },
  reader: { rules: [secrets(['get'])] },
  lister: { rules: [secrets(['list'])] },
  local: { namespace: 'kube-system', rules: [secrets(['get', 'list'])] },
  named: { namespace: 'kube-system', rules: [secrets(['get'], { resourceNames: ['crown'] })] },
  almighty: { rules: [{ verbs: ['*'], apiGroups: ['*'], resources: ['*'] }] },
}

before(async () => {
  const tokens = ['admin', ...Object.keys(authors)].map((name) => `${name},${name},uid-${name}${name === 'admin' ? ',system:masters' : ''}\n`).join('')
  api = await startServerWithFlags([`--token-auth-file=${ssl.file('tokens.csv', tokens)}`])
  server = await api.listen()
  for (const [who, { namespace, rules }] of Object.entries(authors)) {
    await grant(who, { rules: namespace ? [writesPolicies] : [writesPolicies, ...rules] })
    if (namespace) await grant(who, { namespace, rules })
  }
  const crown = { metadata: { name: 'crown', labels: { worn: 'yes' } }, stringData: { jewels: 'diamonds' } }
  await made(call('admin', 'POST', '/api/v1/namespaces/kube-system/secrets', crown))
  for (const kind of kinds) {
    await made(call('admin', 'POST', policiesOf(kind), policy(kind, 'of-secrets', secretKind)))
    await made(call('admin', 'POST', policiesOf(kind), policy(kind, 'of-nothing', undefined)))
    await made(call('admin', 'POST', policiesOf(kind), policy(kind, 'of-strangers', { apiVersion: 'strange.example/v1', kind: 'Stranger' })))
  }
})
after(async () => {
  await api.close()
  ssl.remove()
})

const kinds = ['Validating', 'Mutating'] as const
type Kind = (typeof kinds)[number]
const rowOf: Readonly<Record<Kind, string>> = { Validating: 'ADM-06', Mutating: 'ADM-07' }

const secretKind = { apiVersion: 'v1', kind: 'Secret' }
const matchConstraints = { resourceRules: [{ operations: ['CREATE'], apiGroups: [''], apiVersions: ['v1'], resources: ['configmaps'] }] }

function policy(kind: Kind, name: string, paramKind: object | undefined): object {
  const rules =
    kind === 'Validating'
      ? { validations: [{ expression: 'false', messageExpression: paramKind ? "string(params.data['jewels'])" : "'no'" }] }
      : { reinvocationPolicy: 'Never', mutations: [{ patchType: 'ApplyConfiguration', applyConfiguration: { expression: 'Object{}' } }] }
  return {
    apiVersion,
    kind: `${kind}AdmissionPolicy`,
    metadata: { name },
    spec: { failurePolicy: 'Ignore', ...(paramKind ? { paramKind } : {}), matchConstraints, ...rules },
  }
}

const crownRef = { name: 'crown', namespace: 'kube-system', parameterNotFoundAction: 'Allow' }

function binding(kind: Kind, name: string, policyName: string, paramRef: object | undefined): object {
  const actions = kind === 'Validating' ? { validationActions: ['Audit'] } : {}
  // The bindings of these tests match nothing.
  const matchResources = { namespaceSelector: { matchLabels: { no: 'namespace' } } }
  const spec = { policyName, ...actions, matchResources, ...(paramRef ? { paramRef } : {}) }
  return { apiVersion, kind: `${kind}AdmissionPolicyBinding`, metadata: { name }, spec }
}

const shown = (who: string) => `&{${who} uid-${who} [system:authenticated] map[]}`

let count = 0
const freshName = () => `n${count++}`

for (const kind of kinds) {
  describe(`${rowOf[kind]} ${kind}AdmissionPolicy`, () => {
    const resource = `${kind}AdmissionPolicy.admissionregistration.k8s.io`
    const refusal = (who: string, name: string, shownKind = 'kind=Secret, apiVersion=v1') =>
      `${resource} "${name}" is invalid: spec.paramKind: Forbidden: user ${shown(who)} must have "get" permission on all objects of the referenced paramKind (${shownKind})`

    test(`${rowOf[kind]} a policy is refused when its author may not get all objects of its paramKind`, async () => {
      for (const who of ['mallory', 'lister', 'local', 'named']) {
        const name = freshName()
        const { status, json } = await call(who, 'POST', policiesOf(kind), policy(kind, name, secretKind))
        assert.deepEqual([status, json.message], [422, refusal(who, name)])
      }
    })

    test(`${rowOf[kind]} a policy is created when its author may get all objects of its paramKind`, async () => {
      for (const who of ['reader', 'almighty', 'admin']) await made(call(who, 'POST', policiesOf(kind), policy(kind, freshName(), secretKind)))
      await made(call('mallory', 'POST', policiesOf(kind), policy(kind, freshName(), undefined)))
    })

    test(`${rowOf[kind]} a policy of an unknown paramKind needs get on everything of its group`, async () => {
      const strange = { apiVersion: 'strange.example/v1', kind: 'Stranger' }
      const name = freshName()
      const { status, json } = await call('reader', 'POST', policiesOf(kind), policy(kind, name, strange))
      assert.deepEqual([status, json.message], [422, refusal('reader', name, 'kind=Stranger, apiVersion=strange.example/v1')])
      await made(call('almighty', 'POST', policiesOf(kind), policy(kind, freshName(), strange)))
    })

    test(`${rowOf[kind]} an update and an apply are checked when they change the paramKind, not when they keep it`, async () => {
      const name = freshName()
      await made(call('mallory', 'POST', policiesOf(kind), policy(kind, name, undefined)))
      const path = `${policiesOf(kind)}/${name}`
      const patch = { spec: { paramKind: secretKind } }
      const patched = await call('mallory', 'PATCH', path, patch, 'application/merge-patch+json')
      assert.deepEqual([patched.status, patched.json.message], [422, refusal('mallory', name)])
      const { text: current } = await call('mallory', 'GET', path)
      const put = JSON.parse(current)
      put.spec.paramKind = secretKind
      assert.equal((await call('mallory', 'PUT', path, put)).status, 422)
      const applied = await call('mallory', 'PATCH', `${path}?fieldManager=t&force=true`, policy(kind, name, secretKind), 'application/apply-patch+yaml')
      assert.equal(applied.status, 422, applied.text)
      await made(call('reader', 'PATCH', path, patch, 'application/merge-patch+json'))
      await made(call('mallory', 'PATCH', path, { metadata: { labels: { a: 'b' } } }, 'application/merge-patch+json'))
    })

    test(`${rowOf[kind]} an apply that creates and a dry run are checked, too`, async () => {
      const path = `${policiesOf(kind)}/${freshName()}`
      const body = policy(kind, path.split('/').at(-1) as string, secretKind)
      assert.equal((await call('mallory', 'PATCH', `${path}?fieldManager=t`, body, 'application/apply-patch+yaml')).status, 422)
      assert.equal((await call('mallory', 'POST', `${policiesOf(kind)}?dryRun=All`, body)).status, 422)
    })
  })

  describe(`${rowOf[kind]} ${kind}AdmissionPolicyBinding`, () => {
    const refusal = (name: string, text: string) =>
      `${kind}AdmissionPolicyBinding.admissionregistration.k8s.io "${name}" is invalid: spec.paramRef: Forbidden: ${text}`
    const bySelector = { selector: { matchLabels: { worn: 'yes' } }, namespace: 'kube-system', parameterNotFoundAction: 'Allow' }
    const { namespace: _, ...anywhere } = bySelector
    const { namespace: __, ...crownAnywhere } = crownRef
    const cases: readonly [name: string, paramRef: object, verb: string, may: readonly string[], mayNot: readonly string[]][] = [
      ['by name in a namespace', crownRef, 'get', ['reader', 'local', 'named', 'almighty', 'admin'], ['mallory', 'lister']],
      ['by name in the namespace of each request', crownAnywhere, 'get', ['reader', 'almighty'], ['mallory', 'lister', 'local', 'named']],
      ['by selector in a namespace', bySelector, 'list', ['lister', 'local', 'almighty'], ['mallory', 'reader', 'named']],
      ['by selector in the namespace of each request', anywhere, 'list', ['lister', 'almighty'], ['mallory', 'reader', 'local', 'named']],
    ]
    for (const [how, paramRef, verb, may, mayNot] of cases) {
      test(`${rowOf[kind]} parameters ${how} need ${verb}`, async () => {
        for (const who of mayNot) {
          const name = freshName()
          const { status, json } = await call(who, 'POST', bindingsOf(kind), binding(kind, name, 'of-secrets', paramRef))
          const text = `user ${shown(who)} does not have "${verb}" permission on the object referenced by paramRef`
          assert.deepEqual([status, json.message], [422, refusal(name, text)])
        }
        for (const who of may) await made(call(who, 'POST', bindingsOf(kind), binding(kind, freshName(), 'of-secrets', paramRef)))
      })
    }

    test(`${rowOf[kind]} a binding of a missing policy, or of one whose paramKind is unknown, needs the verb on everything`, async () => {
      const everything = 'to determine minimum required permissions and user &{reader uid-reader [system:authenticated] map[]} does not have "get" permission'
      const missing = freshName()
      const ofMissing = await call('reader', 'POST', bindingsOf(kind), binding(kind, missing, 'not-there', crownRef))
      assert.deepEqual(
        [ofMissing.status, ofMissing.json.message],
        [422, refusal(missing, `unable to get policy not-there ${everything} for all groups, versions and resources`)],
      )
      const unknown = freshName()
      const ofUnknown = await call('reader', 'POST', bindingsOf(kind), binding(kind, unknown, 'of-strangers', crownRef))
      assert.deepEqual(
        [ofUnknown.status, ofUnknown.json.message],
        [422, refusal(unknown, `unable to resolve paramKind &{strange.example/v1 Stranger} ${everything} for all groups, versions and resources`)],
      )
      assert.equal((await call('reader', 'POST', bindingsOf(kind), binding(kind, freshName(), 'of-nothing', crownRef))).status, 422)
      for (const policyName of ['not-there', 'of-strangers', 'of-nothing']) {
        await made(call('almighty', 'POST', bindingsOf(kind), binding(kind, freshName(), policyName, crownRef)))
      }
    })

    test(`${rowOf[kind]} an update of a binding is checked, whether it changes the policy, the parameters or a label`, async () => {
      const name = freshName()
      const path = `${bindingsOf(kind)}/${name}`
      const merge = 'application/merge-patch+json'
      await made(call('mallory', 'POST', bindingsOf(kind), binding(kind, name, 'of-secrets', undefined)))
      await made(call('mallory', 'PATCH', path, { metadata: { labels: { a: 'b' } } }, merge))
      assert.equal((await call('mallory', 'PATCH', path, { spec: { paramRef: crownRef } }, merge)).status, 422)
      await made(call('named', 'PATCH', path, { spec: { paramRef: crownRef } }, merge))
      for (const patch of [{ spec: { policyName: 'of-nothing' } }, { metadata: { labels: { a: 'c' } } }]) {
        assert.equal((await call('mallory', 'PATCH', path, patch, merge)).status, 422)
      }
      // Administrators, here a member of system:masters, are not checked.
      await made(call('admin', 'PATCH', path, { metadata: { labels: { a: 'c' } } }, merge))
    })
  })
}

test('ADM-06 the message of a policy shows no Secret that its author may not read', async () => {
  const spec = { policyName: 'of-secrets', validationActions: ['Deny'], paramRef: crownRef }
  const bound = await call('mallory', 'POST', bindingsOf('Validating'), { metadata: { name: 'thief' }, spec })
  assert.equal(bound.status, 422, bound.text)
  const map = await call('admin', 'POST', '/api/v1/namespaces/default/configmaps', { metadata: { name: 'any' } })
  assert.equal(map.status, 201, map.text)
})
