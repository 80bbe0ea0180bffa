/**
 * RBAC as a matrix (AUZ-01, AUZ-02, SDR-01): the RBAC objects of a server, read back from it, against its answers, for every identity that a binding
 * names and more, every served resource and subresource, and every verb. What the objects mean is worked out here from RBAC's documentation alone;
 * nothing of the authorizer is used.
 */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { SubjectAccessReview } from '#api/gen/types/authorization.v1'
import type { ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, Subject } from '#api/gen/types/rbac.v1'
import { StatusError } from '#api/machinery/status'
import type { UserInfo } from '#apiserver/core/request'
import { seededRandom } from '#base/random'
import type { Transport } from '#client/transport'
import type { TestApiServer } from '#testing/apiServer'
import { startServerWithFlags } from '../../support/serverWithFlags.ts'

const group = 'rbac.authorization.k8s.io'
const root = `/apis/${group}/v1`
const authenticated = 'system:authenticated'
const user = (name: string, ...groups: string[]): UserInfo => ({ name, groups: [...groups, authenticated] })
const account = (namespace: string, name: string) =>
  user(`system:serviceaccount:${namespace}:${name}`, 'system:serviceaccounts', `system:serviceaccounts:${namespace}`)

let api: TestApiServer
let admin: Transport

const read = async <T>(path: string): Promise<T> => (await admin.request({ method: 'GET', path })).body as T
const create = (path: string, body: unknown) => admin.request({ method: 'POST', path, body })

const rule = (verbs: string, apiGroups: string, resources: string, names?: string): PolicyRule => ({
  verbs: verbs.split(' '),
  apiGroups: apiGroups.split(' ').map((one) => (one === '-' ? '' : one)),
  resources: resources.split(' '),
  ...(names ? { resourceNames: names.split(' ') } : {}),
})
const users = (...names: string[]): Subject[] => names.map((name) => ({ kind: 'User', apiGroup: group, name }))

/** Roles that users make: names, wildcards, subresources of anything, paths, aggregation, impersonation. */
const clusterRoles: readonly {
  readonly name: string
  readonly rules?: PolicyRule[]
  readonly labels?: Record<string, string>
  readonly aggregates?: string
}[] = [
  { name: 'named', rules: [rule('get update delete', '-', 'configmaps secrets', 'x y'), rule('list watch', '-', 'secrets', 'x')] },
  { name: 'every-verb', rules: [rule('*', 'apps', 'deployments')] },
  { name: 'every-group', rules: [rule('get list', '*', 'deployments pods')] },
  { name: 'every-resource', rules: [rule('watch', 'batch', '*')] },
  { name: 'every-scale', rules: [rule('get patch', '*', '*/scale'), rule('create', '-', 'pods/exec pods/eviction')] },
  { name: 'impersonator', rules: [rule('impersonate', '-', 'users groups serviceaccounts'), rule('impersonate', 'authentication.k8s.io', 'uids', 'u1')] },
  { name: 'granter', rules: [rule('bind escalate', group, 'clusterroles roles'), rule('approve sign', 'certificates.k8s.io', 'signers', 'example.org/x')] },
  { name: 'part-one', labels: { 'example.org/part': 'true' }, rules: [rule('get', '-', 'services')] },
  { name: 'part-two', labels: { 'example.org/part': 'true' }, rules: [rule('delete', '-', 'endpoints')] },
  { name: 'whole', aggregates: 'example.org/part' },
  {
    name: 'paths',
    rules: [
      { verbs: ['get'], nonResourceURLs: ['/metrics', '/logs/*'] },
      { verbs: ['*'], nonResourceURLs: ['/debug/*'] },
    ],
  },
  { name: 'nothing', rules: [] },
]
const bindings: readonly { readonly role: string; readonly subjects: Subject[]; readonly namespace?: string }[] = [
  ...clusterRoles.map(({ name }) => ({ role: name, subjects: users(`of-${name}`) })),
  { role: 'cluster-admin', subjects: users('root') },
  ...['admin', 'edit', 'view'].map((role) => ({ role, namespace: 'default', subjects: users(`default-${role}`) })),
  { role: 'view', subjects: [{ kind: 'Group', apiGroup: group, name: 'viewers' }] },
  { role: 'edit', namespace: 'kube-system', subjects: [{ kind: 'ServiceAccount', name: 'editor', namespace: 'default' }] },
  { role: 'missing', namespace: 'default', subjects: users('of-missing') },
]

before(async () => {
  api = await startServerWithFlags(['--authorization-mode=RBAC'])
  admin = api.server.transport({ name: 'admin', groups: ['system:masters'] }, 'test')
  for (const { name, rules = [], labels, aggregates } of clusterRoles) {
    const aggregationRule = aggregates && { aggregationRule: { clusterRoleSelectors: [{ matchLabels: { [aggregates]: 'true' } }] } }
    await create(`${root}/clusterroles`, { metadata: { name, labels }, rules, ...aggregationRule })
  }
  const inDefault = `${root}/namespaces/default`
  await create(`${inDefault}/roles`, { metadata: { name: 'local' }, rules: [rule('get list', '-', 'pods pods/log')] })
  const local = { apiGroup: group, kind: 'Role', name: 'local' }
  const localSubjects = [...users('of-local'), { kind: 'ServiceAccount', name: 'worker', namespace: 'default' }]
  await create(`${inDefault}/rolebindings`, { metadata: { name: 'local' }, roleRef: local, subjects: localSubjects })
  for (const [at, { role, subjects, namespace }] of bindings.entries()) {
    const path = namespace ? `${root}/namespaces/${namespace}/rolebindings` : `${root}/clusterrolebindings`
    await create(path, { metadata: { name: `b${at}` }, roleRef: { apiGroup: group, kind: 'ClusterRole', name: role }, subjects })
  }
  await aggregate()
})
after(() => api.close())

/** What the controller for aggregated roles does: there are no controllers here. Twice, as a part may be a whole itself. */
async function aggregate(): Promise<void> {
  for (let round = 0; round < 2; round++) {
    const { items } = await read<{ items: ClusterRole[] }>(`${root}/clusterroles`)
    for (const role of items) {
      const selectors = role.aggregationRule?.clusterRoleSelectors
      if (!selectors) continue
      const parts = items.filter((one) =>
        selectors.some(({ matchLabels = {} }) => Object.entries(matchLabels).every(([k, v]) => one.metadata?.labels?.[k] === v)),
      )
      const body = { ...role, rules: parts.flatMap(({ rules }) => rules ?? []) }
      await admin.request({ method: 'PUT', path: `${root}/clusterroles/${encodeURIComponent(role.metadata?.name ?? '')}`, body })
    }
  }
}

// The meaning of a rule by RBAC's documentation.

interface Question {
  readonly verb: string
  readonly group?: string
  readonly resource?: string
  readonly subresource?: string
  readonly namespace?: string
  readonly name?: string
  readonly path?: string
}

const covers = (all: readonly string[] | undefined, one: string): boolean => all !== undefined && (all.includes(one) || all.includes('*'))

function ruleMeans({ verbs, apiGroups, resources, resourceNames, nonResourceURLs }: PolicyRule, asked: Question): boolean {
  if (!covers(verbs, asked.verb)) return false
  const { path, group: apiGroup = '', resource = '', subresource, name = '' } = asked
  if (path !== undefined) return nonResourceURLs?.some((url) => url === path || (url.endsWith('*') && path.startsWith(url.slice(0, -1)))) ?? false
  const whole = subresource ? `${resource}/${subresource}` : resource
  const hasResource = covers(resources, whole) || (subresource !== undefined && resources?.includes(`*/${subresource}`))
  return covers(apiGroups, apiGroup) && hasResource === true && (!resourceNames?.length || resourceNames.includes(name))
}

function isSubject({ kind, name, namespace }: Subject, who: UserInfo, bindingNamespace: string): boolean {
  if (kind === 'Group') return who.groups.includes(name)
  return who.name === (kind === 'User' ? name : `system:serviceaccount:${namespace ?? bindingNamespace}:${name}`)
}

interface Policy {
  readonly clusterBindings: readonly ClusterRoleBinding[]
  readonly bindings: readonly RoleBinding[]
  /** By kind, namespace and name. */
  readonly roles: ReadonlyMap<string, readonly PolicyRule[]>
}

async function readPolicy(): Promise<Policy> {
  const list = async <T>(resource: string) => (await read<{ items: T[] }>(`${root}/${resource}`)).items
  const roles = new Map<string, readonly PolicyRule[]>()
  for (const one of await list<ClusterRole>('clusterroles')) roles.set(`ClusterRole//${one.metadata?.name}`, one.rules ?? [])
  for (const one of await list<Role>('roles')) roles.set(`Role/${one.metadata?.namespace}/${one.metadata?.name}`, one.rules ?? [])
  return { clusterBindings: await list('clusterrolebindings'), bindings: await list('rolebindings'), roles }
}

/** A user's rules by namespace; '' holds those of cluster role bindings. */
function rulesOf({ clusterBindings, bindings: local, roles }: Policy, who: UserInfo): ReadonlyMap<string, readonly PolicyRule[]> {
  const found = new Map<string, PolicyRule[]>()
  for (const { metadata, roleRef, subjects = [] } of [...clusterBindings, ...local]) {
    const namespace = metadata?.namespace ?? ''
    if (!subjects.some((one) => isSubject(one, who, namespace))) continue
    const rules = roles.get(`${roleRef.kind}/${roleRef.kind === 'Role' ? namespace : ''}/${roleRef.name}`) ?? []
    found.set(namespace, [...(found.get(namespace) ?? []), ...rules])
  }
  return found
}

function means(rules: ReadonlyMap<string, readonly PolicyRule[]>, asked: Question): boolean {
  const here = asked.namespace ? [...(rules.get('') ?? []), ...(rules.get(asked.namespace) ?? [])] : (rules.get('') ?? [])
  return here.some((one) => ruleMeans(one, asked))
}

/** Each subject of a binding as a separate user, and some users without a binding. */
function identities({ clusterBindings, bindings: local }: Policy): UserInfo[] {
  const all = new Map<string, UserInfo>()
  const add = (who: UserInfo) => all.set(`${who.name} ${who.groups.join()}`, who)
  for (const { metadata, subjects = [] } of [...clusterBindings, ...local]) {
    for (const { kind, name, namespace } of subjects) {
      if (kind === 'User') add(user(name))
      // Its members are allowed everything, without any role.
      else if (kind === 'Group' && name !== 'system:masters') add({ name: `member of ${name}`, groups: [name] })
      else if (kind === 'ServiceAccount') add(account(namespace ?? metadata?.namespace ?? '', name))
    }
  }
  for (const who of [user('nobody'), user('system:node:n', 'system:nodes'), account('default', 'default')]) add(who)
  for (const who of [user('both', 'viewers', 'system:monitoring'), { name: 'system:anonymous', groups: ['system:unauthenticated'] }]) add(who)
  return [...all.values()]
}

interface Served {
  readonly group: string
  readonly resource: string
  readonly subresource?: string
  readonly namespaced: boolean
}

async function servedResources(): Promise<Served[]> {
  const { groups } = await read<{ groups: { name: string; preferredVersion: { groupVersion: string } }[] }>('/apis')
  const paths = [['', '/api/v1'], ...groups.map(({ name, preferredVersion }) => [name, `/apis/${preferredVersion.groupVersion}`])] as [string, string][]
  const lists = await Promise.all(
    paths.map(async ([name, path]) => {
      const { resources } = await read<{ resources: { name: string; namespaced: boolean }[] }>(path)
      return resources.map((one): Served => {
        const [resource = '', subresource] = one.name.split('/')
        return { group: name, resource, namespaced: one.namespaced, ...(subresource ? { subresource } : {}) }
      })
    }),
  )
  const virtual: Served[] = [
    ...['users', 'groups'].map((resource) => ({ group: '', resource, namespaced: false })),
    { group: 'authentication.k8s.io', resource: 'uids', namespaced: false },
    { group: 'certificates.k8s.io', resource: 'signers', namespaced: false },
  ]
  return [...lists.flat(), ...virtual]
}

const verbs = 'get list watch create update patch delete deletecollection use'.split(' ')
/** Checked only where a rule names them: a rule with `*` treats all verbs alike. */
const rareVerbs = 'impersonate bind escalate approve sign attest proxy'.split(' ')
const names = ['x', 'kube-scheduler', 'kube-controller-manager', 'extension-apiserver-authentication', 'example.org/x', 'u1', 'cluster-info']
const paths = [
  '/',
  '/api',
  '/apis/apps',
  '/version',
  '/version/',
  '/healthz',
  '/livez/ping',
  '/metrics',
  '/metrics/slis',
  '/logs',
  '/logs/a',
  '/debug/x',
  '/openapi/v3',
]

/** Asks with names only where a rule has resourceNames: elsewhere names make no difference. */
function questions(served: readonly Served[], policy: Policy): Question[] {
  const rules = [...policy.roles.values()].flat()
  const named = new Set(rules.flatMap(({ resourceNames, resources }) => (resourceNames?.length ? (resources ?? []) : [])))
  const ofResources = served.flatMap(({ group: apiGroup, resource, subresource, namespaced }) => {
    const about = { group: apiGroup, resource, ...(subresource ? { subresource } : {}) }
    const scopes = namespaced ? [{}, { namespace: 'default' }, { namespace: 'kube-system' }] : [{}]
    const objects = named.has(subresource ? `${resource}/${subresource}` : resource) ? [{}, ...names.map((name) => ({ name }))] : [{}]
    const rare = rareVerbs.filter((verb) => rules.some((one) => one.verbs.includes(verb) && one.resources?.includes(resource)))
    return [...verbs, ...rare].flatMap((verb) => scopes.flatMap((scope) => objects.map((object) => ({ verb, ...about, ...scope, ...object }))))
  })
  return [...ofResources, ...paths.flatMap((path) => ['get', 'post', 'put', 'delete'].map((verb) => ({ verb, path })))]
}

async function ask(who: UserInfo, { path, ...asked }: Question): Promise<boolean> {
  const about = path === undefined ? { resourceAttributes: asked } : { nonResourceAttributes: { path, verb: asked.verb } }
  const body = { apiVersion: 'authorization.k8s.io/v1', kind: 'SubjectAccessReview', spec: { user: who.name, groups: [...who.groups], ...about } }
  const answer = await admin.request({ method: 'POST', path: '/apis/authorization.k8s.io/v1/subjectaccessreviews', body })
  return (answer.body as SubjectAccessReview).status?.allowed === true
}

const atOnce = 64

test('AUZ-01 the server allows exactly what the RBAC objects mean', { timeout: 580_000 }, async (context) => {
  const policy = await readPolicy()
  const served = await servedResources()
  const everybody = identities(policy)
  const all = questions(served, policy)
  const differences: string[] = []
  let allowed = 0
  for (const who of everybody) {
    const rules = rulesOf(policy, who)
    for (let at = 0; at < all.length; at += atOnce) {
      const some = all.slice(at, at + atOnce)
      const answers = await Promise.all(some.map((one) => ask(who, one)))
      for (const [i, one] of some.entries()) {
        if (answers[i] !== means(rules, one)) differences.push(`${who.name}: ${JSON.stringify(one)} is ${answers[i] ? 'allowed' : 'refused'}`)
        if (answers[i]) allowed++
      }
    }
  }
  const asked = everybody.length * all.length
  context.diagnostic(`${everybody.length} identities, ${served.length} resources, ${asked} questions, ${allowed} allowed, ${differences.length} differences`)
  assert.deepEqual(differences.slice(0, 20), [])
  assert.ok(everybody.length >= 60 && served.length >= 100 && allowed > 1000 && allowed < asked / 2, 'the matrix no longer covers what it should')
})

test('AUZ-01 real requests are allowed or refused by the RBAC objects', async (context) => {
  const policy = await readPolicy()
  const served = (await servedResources()).filter(({ subresource }) => !subresource)
  const everybody = identities(policy)
  const random = seededRandom(7)
  const pick = <T>(from: readonly T[]): T => from[Math.floor(random.next() * from.length)] as T
  const { groups } = await read<{ groups: { name: string; preferredVersion: { groupVersion: string } }[] }>('/apis')
  const versions = new Map(groups.map(({ name, preferredVersion }) => [name, preferredVersion.groupVersion]))
  let refused = 0
  const sample = 2_000
  for (let i = 0; i < sample; i++) {
    const who = pick(everybody)
    const { group: apiGroup, resource, namespaced } = pick(served)
    const namespace = namespaced ? pick(['', 'default', 'kube-system']) : ''
    const version = apiGroup === '' ? '/api/v1' : `/apis/${versions.get(apiGroup)}`
    const path = `${version}${namespace ? `/namespaces/${namespace}` : ''}/${resource}${pick(['', '/x'])}`
    const isNamed = path.endsWith('/x')
    const asked = { verb: isNamed ? 'get' : 'list', group: apiGroup, resource, namespace, name: isNamed ? 'x' : '' }
    const wanted = means(rulesOf(policy, who), asked)
    // A path that names an object of a namespaced resource outside a namespace is none.
    if (isNamed && namespaced && namespace === '') continue
    if (!wanted) refused++
    assert.equal(await passes(who, path), wanted, `${who.name}: GET ${path}`)
  }
  context.diagnostic(`${sample} requests, ${refused} refused`)
  assert.ok(refused > sample / 4 && refused < sample)
})

async function passes(who: UserInfo, path: string): Promise<boolean> {
  try {
    await api.server.transport(who, 'test').request({ method: 'GET', path })
    return true
  } catch (error) {
    if (!(error instanceof StatusError)) throw error
    return error.code !== 403
  }
}
