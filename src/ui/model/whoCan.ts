/** Finds the subjects that may do something (L4, pure): those of all bindings whose role allows it. Upstream: component-helpers/auth/rbac/validation and rbac/v1 evaluation helpers. */

export interface Rule {
  readonly verbs: readonly string[]
  readonly apiGroups?: readonly string[]
  readonly resources?: readonly string[]
  readonly resourceNames?: readonly string[]
  readonly nonResourceURLs?: readonly string[]
}

interface Named {
  readonly metadata: { readonly name?: string; readonly namespace?: string }
}

export interface Role extends Named {
  readonly rules?: readonly Rule[] | null
}

export interface Subject {
  readonly kind: string
  readonly name: string
  readonly namespace?: string
}

export interface Binding extends Named {
  readonly roleRef: { readonly kind: string; readonly name: string }
  readonly subjects?: readonly Subject[] | null
}

export interface AccessObjects {
  readonly roles: readonly Role[]
  readonly clusterRoles: readonly Role[]
  readonly roleBindings: readonly Binding[]
  readonly clusterRoleBindings: readonly Binding[]
}

export interface AccessQuestion {
  readonly verb: string
  readonly group: string
  /** With its subresource, such as pods/exec. */
  readonly resource: string
  /** Empty: any. */
  readonly name: string
  /** Empty: in all namespaces, which ClusterRoleBindings alone allow. */
  readonly namespace: string
}

export interface Allowed {
  readonly subject: Subject
  readonly binding: string
  readonly role: string
}

export function allows({ verbs, apiGroups = [], resources = [], resourceNames = [] }: Rule, { verb, group, resource, name }: AccessQuestion): boolean {
  const has = (list: readonly string[], ...wanted: readonly string[]) => list.includes('*') || wanted.some((one) => list.includes(one))
  const [, subresource] = resource.split('/', 2)
  const isNamed = resourceNames.length === 0 || resourceNames.includes(name)
  return has(verbs, verb) && has(apiGroups, group) && has(resources, resource, ...(subresource === undefined ? [] : [`*/${subresource}`])) && isNamed
}

/** By subject. */
export function whoCan({ roles, clusterRoles, roleBindings, clusterRoleBindings }: AccessObjects, question: AccessQuestion): Allowed[] {
  const isAllowing = ({ rules }: Role) => (rules ?? []).some((rule) => allows(rule, question))
  const cluster = new Set(clusterRoles.filter(isAllowing).map(({ metadata }) => metadata.name))
  const local = new Set(roles.filter((role) => role.metadata.namespace === question.namespace && isAllowing(role)).map(({ metadata }) => metadata.name))
  const inNamespace = roleBindings.filter(
    ({ metadata, roleRef: { kind, name } }) => metadata.namespace === question.namespace && (kind === 'Role' ? local : cluster).has(name),
  )
  const everywhere = clusterRoleBindings.filter(({ roleRef }) => cluster.has(roleRef.name))
  const found = [
    ...inNamespace.flatMap((binding) => allowedBy(binding, `RoleBinding ${binding.metadata.namespace}/${binding.metadata.name}`)),
    ...everywhere.flatMap((binding) => allowedBy(binding, `ClusterRoleBinding ${binding.metadata.name}`)),
  ]
  return found.sort((one, other) => (subjectText(one.subject) < subjectText(other.subject) ? -1 : 1))
}

function allowedBy({ roleRef, subjects }: Binding, binding: string): Allowed[] {
  return (subjects ?? []).map((subject) => ({ subject, binding, role: `${roleRef.kind} ${roleRef.name}` }))
}

export function subjectText({ kind, name, namespace }: Subject): string {
  return `${kind} ${namespace ? `${namespace}/` : ''}${name}`
}
