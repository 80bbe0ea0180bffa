/**
 * What the cluster's own parts may do (L5): cluster DNS serves Services and announces itself; nodes enforce network policies; the API server calls kubelets. Made at start, brought
 * back if changed.
 */
import type { Client } from '#client/client'
import { kubeletClientUser } from '../pki/pki.ts'
import { dnsUser, policyUser } from './agentConfig.ts'
import { applyRights, type ClusterRights } from './clusterRights.ts'

const clusterDns: ClusterRights = {
  name: 'skiff:cluster-dns',
  rules: [
    { apiGroups: [''], resources: ['services', 'namespaces'], verbs: ['get', 'list', 'watch'] },
    { apiGroups: [''], resources: ['services'], verbs: ['create'] },
    // Its Corefile, and Events about it.
    { apiGroups: [''], resources: ['configmaps'], resourceNames: ['coredns'], verbs: ['get', 'list', 'watch'] },
    { apiGroups: ['', 'events.k8s.io'], resources: ['events'], verbs: ['create', 'patch'] },
    { apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'], verbs: ['get', 'list', 'watch', 'create', 'patch'] },
  ],
  subject: { user: dnsUser },
}

/** An identity of its own, so that the proxy and DNS cannot read pods. It writes nothing and reads no Secret. */
const networkPolicy: ClusterRights = {
  name: 'skiff:network-policy',
  rules: [
    { apiGroups: [''], resources: ['pods', 'namespaces', 'nodes'], verbs: ['list', 'watch'] },
    { apiGroups: ['networking.k8s.io'], resources: ['networkpolicies'], verbs: ['list', 'watch'] },
  ],
  subject: { user: policyUser },
}

/** Upstream's metrics-server comes with this role. */
const metricsReader: ClusterRights = {
  name: 'system:aggregated-metrics-reader',
  labels: Object.fromEntries(['view', 'edit', 'admin'].map((role) => [`rbac.authorization.k8s.io/aggregate-to-${role}`, 'true'])),
  rules: [{ apiGroups: ['metrics.k8s.io'], resources: ['pods', 'nodes'], verbs: ['get', 'list', 'watch'] }],
}

const kubeletAccess: ClusterRights = {
  name: 'skiff:kubelet-api-admin',
  roleName: 'system:kubelet-api-admin',
  subject: { user: kubeletClientUser },
}

/** The API server's client certificate for kubelets has no group: who steals its use, or proxies with it, gets kubelets' API and nothing else. */
export async function ensureKubeletAccess(client: Client, signal: AbortSignal): Promise<void> {
  await applyRights(client, kubeletAccess, signal)
}

/** Those who may read a namespace's objects may read what its pods use, too. */
export async function ensureMetricsReader(client: Client, signal: AbortSignal): Promise<void> {
  await applyRights(client, metricsReader, signal)
}

export async function ensureAddonAccess(client: Client, signal: AbortSignal): Promise<void> {
  for (const rights of [clusterDns, networkPolicy]) await applyRights(client, rights, signal)
}
