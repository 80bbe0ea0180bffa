/** Grants rights to parts of a local cluster (L5): applied at each start, so that they are back after a change. */
import type { ClusterRole, ClusterRoleBinding, PolicyRule, Subject } from '#api/gen/types/rbac.v1'
import { clusterRoleBindings, clusterRoles } from '#client/builtIn'
import type { Client } from '#client/client'

/** The field manager of the objects that `skiff up` adds to a cluster. */
export const fieldManager = 'skiff'

export interface ClusterRights {
  /** Names both the ClusterRole and the ClusterRoleBinding. */
  readonly name: string
  /** Rules of the ClusterRole. Absent: the cluster has the role already. */
  readonly rules?: readonly PolicyRule[] | undefined
  /** Labels of the ClusterRole, such as those that aggregate it to other roles. */
  readonly labels?: Readonly<Record<string, string>> | undefined
  /** Name of the role that the binding refers to. Default: `name`. */
  readonly roleName?: string | undefined
  /** Gets the role. Absent: the role alone is made. */
  readonly subject?: ClusterSubject | undefined
}

export type ClusterSubject = { readonly user: string } | { readonly serviceAccount: string; readonly namespace: string }

export async function applyRights(client: Client, rights: ClusterRights, signal: AbortSignal): Promise<void> {
  const options = { fieldManager, force: true, signal }
  const { role, binding } = objectsOf(rights)
  if (role) await client.of(clusterRoles).patch({ name: rights.name }, 'apply', role, options)
  if (binding) await client.of(clusterRoleBindings).patch({ name: rights.name }, 'apply', binding, options)
}

const apiGroup = 'rbac.authorization.k8s.io'

interface RightsObjects {
  readonly role: ClusterRole | undefined
  readonly binding: ClusterRoleBinding | undefined
}

export function objectsOf({ name, rules, labels, roleName = name, subject }: ClusterRights): RightsObjects {
  const head = { apiVersion: `${apiGroup}/v1`, metadata: { name } }
  const roleRef = { apiGroup, kind: 'ClusterRole', name: roleName }
  return {
    role: rules && { ...head, kind: 'ClusterRole', metadata: { name, ...(labels ? { labels: { ...labels } } : {}) }, rules: [...rules] },
    binding: subject && { ...head, kind: 'ClusterRoleBinding', roleRef, subjects: [subjectOf(subject)] },
  }
}

function subjectOf(subject: ClusterSubject): Subject {
  if ('user' in subject) return { kind: 'User', name: subject.user, apiGroup }
  return { kind: 'ServiceAccount', namespace: subject.namespace, name: subject.serviceAccount }
}
