/**
 * What the cluster's own parts may do (L5): cluster DNS serves Services and announces itself; the API server calls kubelets. Made at start, brought
 * back if changed.
 */
import type { ClusterRole, ClusterRoleBinding } from '#api/gen/types/rbac.v1'
import { clusterRoleBindings, clusterRoles } from '#client/builtIn'
import type { Client } from '#client/client'
import { kubeletClientUser } from '../pki/pki.ts'
import { dnsUser } from './agentConfig.ts'

const name = 'skiff:cluster-dns'
const fieldManager = 'skiff'

const role: ClusterRole = {
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind: 'ClusterRole',
  metadata: { name },
  rules: [
    { apiGroups: [''], resources: ['services', 'namespaces'], verbs: ['get', 'list', 'watch'] },
    { apiGroups: [''], resources: ['services'], verbs: ['create'] },
    { apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'], verbs: ['get', 'list', 'watch', 'create', 'patch'] },
  ],
}

const binding: ClusterRoleBinding = {
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind: 'ClusterRoleBinding',
  metadata: { name },
  roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name },
  subjects: [{ kind: 'User', name: dnsUser, apiGroup: 'rbac.authorization.k8s.io' }],
}

const kubeletApiAdmin = 'skiff:kubelet-api-admin'

const kubeletBinding: ClusterRoleBinding = {
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind: 'ClusterRoleBinding',
  metadata: { name: kubeletApiAdmin },
  roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'system:kubelet-api-admin' },
  subjects: [{ kind: 'User', name: kubeletClientUser, apiGroup: 'rbac.authorization.k8s.io' }],
}

/** The API server's client certificate for kubelets has no group: who steals its use, or proxies with it, gets kubelets' API and nothing else. */
export async function ensureKubeletAccess(client: Client, signal: AbortSignal): Promise<void> {
  await client.of(clusterRoleBindings).patch({ name: kubeletApiAdmin }, 'apply', kubeletBinding, { fieldManager, force: true, signal })
}

export async function ensureAddonAccess(client: Client, signal: AbortSignal): Promise<void> {
  await client.of(clusterRoles).patch({ name }, 'apply', role, { fieldManager, force: true, signal })
  await client.of(clusterRoleBindings).patch({ name }, 'apply', binding, { fieldManager, force: true, signal })
}
