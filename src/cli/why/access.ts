/** `skiff why can USER VERB RESOURCE`: the rule that allows it, or the user's rules that are closest to allowing it (L4). */
import type { SubjectAccessReview } from '#api/gen/types/authorization.v1'
import type { ClusterRole, ClusterRoleBinding, PolicyRule, RoleBinding } from '#api/gen/types/rbac.v1'
import type { KubeList } from '#api/machinery/meta'
import { CommandError } from '../exitCodes.ts'
import { type Ask, askFor, servedResources } from './questions.ts'

export interface AccessQuestion {
  readonly user: string
  readonly groups: readonly string[]
  readonly verb: string
  /** `pods`, `deployments.apps`, `pods/log`, or a path: `/metrics`. */
  readonly resource: string
  readonly name: string | undefined
  readonly namespace: string
}

export interface AccessExplanation {
  readonly user: string
  readonly groups: readonly string[]
  readonly allowed: boolean
  /** The authorizer's reason. */
  readonly reason: string
  /** The user's rules about the resource, whatever their verbs; of the binding that allows it, where one does. */
  readonly rules: readonly { readonly binding: string; readonly role: string; readonly verbs: readonly string[]; readonly rule: PolicyRule }[]
  /** Bindings that name the user or one of the user's groups. */
  readonly bindings: readonly string[]
}

type Binding = RoleBinding | ClusterRoleBinding

export async function explainAccess(ask: Ask, question: AccessQuestion): Promise<AccessExplanation> {
  const { user, verb, name } = question
  const groups = groupsOf(question)
  const target = await targetOf(ask, question)
  const spec =
    'path' in target
      ? { user, groups, nonResourceAttributes: { path: target.path, verb } }
      : { user, groups, resourceAttributes: { ...target, verb, ...(name === undefined ? {} : { name }) } }
  const body = { apiVersion: 'authorization.k8s.io/v1', kind: 'SubjectAccessReview', spec }
  const { status } = await askFor<SubjectAccessReview>(ask, '/apis/authorization.k8s.io/v1/subjectaccessreviews', body)
  const bindings = (await bindingsFor(ask, question.namespace)).filter(({ subjects = [] }) => subjects.some((subject) => names(subject, user, groups)))
  const rules: AccessExplanation['rules'][number][] = []
  for (const binding of bindings) {
    const role = await roleOf(ask, binding)
    for (const rule of role?.rules ?? [])
      if (isAbout(rule, target)) rules.push({ binding: labelOf(binding), role: roleLabel(binding), verbs: rule.verbs, rule })
  }
  const allowed = status?.allowed === true
  const allows = (rule: PolicyRule) => rule.verbs.includes(verb) || rule.verbs.includes('*')
  return {
    user,
    groups,
    allowed,
    reason: status?.reason ?? '',
    rules: allowed ? rules.filter(({ rule }) => allows(rule)) : rules,
    bindings: bindings.map(labelOf),
  }
}

/** Every authenticated user is in this group; service accounts are in two more. */
function groupsOf({ user, groups }: AccessQuestion): string[] {
  const account = /^system:serviceaccount:([^:]+):[^:]+$/.exec(user)
  const own = account ? ['system:serviceaccounts', `system:serviceaccounts:${account[1]}`] : []
  return [...new Set([...groups, ...own, user === 'system:anonymous' ? 'system:unauthenticated' : 'system:authenticated'])]
}

type Target = { readonly path: string } | { readonly group: string; readonly resource: string; readonly subresource?: string; readonly namespace?: string }

async function targetOf(ask: Ask, { resource: text, namespace }: AccessQuestion): Promise<Target> {
  if (text.startsWith('/')) return { path: text }
  const [whole = '', subresource] = text.split('/', 2)
  const [asked = '', ...rest] = whole.split('.')
  const group = rest.join('.')
  const { served } = await servedResources(ask)
  const is = ({ name, singularName, kind, shortNames = [] }: (typeof served)[number]['resource']) =>
    [name, singularName, kind.toLowerCase(), ...shortNames].includes(asked.toLowerCase()) && !name.includes('/')
  const found = served.find((one) => is(one.resource) && (group === '' || one.group === group))
  if (!found) throw new CommandError('notFound', `the cluster serves no resource "${whole}"`, { hint: 'look with: kubectl api-resources' })
  return {
    group: found.group,
    resource: found.resource.name,
    ...(subresource === undefined ? {} : { subresource }),
    ...(found.resource.namespaced ? { namespace } : {}),
  }
}

async function bindingsFor(ask: Ask, namespace: string): Promise<Binding[]> {
  const rbac = '/apis/rbac.authorization.k8s.io/v1'
  const cluster = await askFor<KubeList<ClusterRoleBinding>>(ask, `${rbac}/clusterrolebindings`)
  const own = await askFor<KubeList<RoleBinding>>(ask, `${rbac}/namespaces/${encodeURIComponent(namespace)}/rolebindings`)
  return [...cluster.items, ...own.items]
}

async function roleOf(ask: Ask, { roleRef, metadata }: Binding): Promise<ClusterRole | undefined> {
  const scope = roleRef.kind === 'Role' ? `namespaces/${encodeURIComponent(metadata.namespace ?? '')}/roles` : 'clusterroles'
  return askFor<ClusterRole>(ask, `/apis/rbac.authorization.k8s.io/v1/${scope}/${encodeURIComponent(roleRef.name)}`).catch(() => undefined)
}

function names({ kind, name, namespace }: NonNullable<Binding['subjects']>[number], user: string, groups: readonly string[]): boolean {
  if (kind === 'ServiceAccount') return user === `system:serviceaccount:${namespace}:${name}`
  return kind === 'Group' ? groups.includes(name) : name === user
}

function isAbout({ apiGroups = [], resources = [], nonResourceURLs = [] }: PolicyRule, target: Target): boolean {
  const { path } = target as { readonly path?: string }
  if (path !== undefined) return nonResourceURLs.some((one) => one === path || (one.endsWith('*') && path.startsWith(one.slice(0, -1))))
  const { group, resource, subresource } = target as Exclude<Target, { readonly path: string }>
  const whole = subresource === undefined ? resource : `${resource}/${subresource}`
  const wanted = ['*', whole, ...(subresource === undefined ? [] : [`*/${subresource}`])]
  return (apiGroups.includes(group) || apiGroups.includes('*')) && resources.some((one) => wanted.includes(one))
}

const labelOf = ({ metadata }: Binding) =>
  metadata.namespace === undefined ? `ClusterRoleBinding/${metadata.name}` : `RoleBinding/${metadata.name} in ${metadata.namespace}`
const roleLabel = ({ roleRef }: Binding) => `${roleRef.kind}/${roleRef.name}`

const shown = 20

export function describeAccess({ verb, resource, namespace }: AccessQuestion, found: AccessExplanation): string {
  const what = `${found.user} ${verb} ${resource} in ${namespace}`
  const rules = found.rules.slice(0, shown).map(({ binding, role, rule }) => `  ${role} through ${binding}: ${ruleText(rule)}\n`)
  if (found.allowed) return `yes: ${what}\n${found.reason || 'allowed, without a reason given'}\n${rules.length > 0 ? `By the rules:\n${rules.join('')}` : ''}`
  const near = rules.length > 0 ? `Rules of this user about it, with other verbs or names:\n${rules.join('')}` : 'No rule of this user is about it.\n'
  const has = found.bindings.length > 0 ? `Bindings of this user: ${found.bindings.slice(0, shown).join(', ')}\n` : 'No binding names this user.\n'
  return `no: ${what}\n${found.reason ? `${found.reason}\n` : ''}Groups: ${found.groups.join(', ')}\n${near}${has}`
}

function ruleText({ verbs, resources = [], resourceNames = [], nonResourceURLs = [] }: PolicyRule): string {
  const of = resourceNames.length > 0 ? ` named ${resourceNames.join(', ')}` : ''
  return `${verbs.join(', ')} on ${[...resources, ...nonResourceURLs].join(', ')}${of}`
}
