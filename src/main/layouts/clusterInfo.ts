/**
 * The ConfigMap kube-public/cluster-info (L5): the cluster's address and its certificate authority, as a kubeconfig without users. Tools that join nodes read it.
 * Upstream: kubeadm's clusterinfo phase, whose form the bootstrap signer expects.
 */
import type { ConfigMap } from '#api/gen/types/core.v1'
import { toYaml } from '#api/machinery/yaml'
import { configMaps } from '#client/builtIn'
import type { Client } from '#client/client'

const fieldManager = 'skiff'

/** `server` is the URL as clients reach it, `ca` the PEM of its authority. */
export async function ensureClusterInfo(client: Client, server: string, ca: string, signal: AbortSignal): Promise<void> {
  const cluster = { 'certificate-authority-data': Buffer.from(ca).toString('base64'), server }
  const kubeconfig = {
    apiVersion: 'v1',
    clusters: [{ cluster, name: '' }],
    contexts: null,
    'current-context': '',
    kind: 'Config',
    preferences: {},
    users: null,
  }
  const object: ConfigMap = {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { namespace: 'kube-public', name: 'cluster-info' },
    data: { kubeconfig: toYaml(kubeconfig) },
  }
  await client.of(configMaps).patch({ namespace: 'kube-public', name: 'cluster-info' }, 'apply', object, { fieldManager, force: true, signal })
}
