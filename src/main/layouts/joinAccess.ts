/**
 * What a machine needs to join the cluster with a bootstrap token (L5), as kubeadm init leaves it: who may read the cluster's description, ask for a certificate
 * and get it, and the kubelet's configuration. Upstream: kubeadm's phases bootstraptoken and kubelet (v1.36).
 */
import type { ConfigMap } from '#api/gen/types/core.v1'
import type { PolicyRule, Subject } from '#api/gen/types/rbac.v1'
import { toYaml } from '#api/machinery/yaml'
import { clusterRoleBindings, clusterRoles, configMaps, roleBindings, roles } from '#client/builtIn'
import type { Client } from '#client/client'
import { certificatesSecret } from '../join/sharedCertificates.ts'
import { fieldManager } from './clusterRights.ts'

/** The group of bootstrap tokens that are made for nodes. */
export const nodeTokenGroup = 'system:bootstrappers:kubeadm:default-node-token'
export const kubeletConfigName = 'kubelet-config'
export const clusterConfigName = 'kubeadm-config'
export const clusterConfigKey = 'ClusterConfiguration'

const apiGroup = 'rbac.authorization.k8s.io'
const group = (name: string): Subject => ({ kind: 'Group', name, apiGroup })
const tokens = group(nodeTokenGroup)
const requests = 'system:certificates.k8s.io:certificatesigningrequests'

const ofCluster = [
  { name: 'kubeadm:kubelet-bootstrap', role: 'system:node-bootstrapper', subject: tokens },
  { name: 'kubeadm:node-autoapprove-bootstrap', role: `${requests}:nodeclient`, subject: tokens },
  { name: 'kubeadm:node-autoapprove-certificate-rotation', role: `${requests}:selfnodeclient`, subject: group('system:nodes') },
  { name: 'kubeadm:get-nodes', role: 'kubeadm:get-nodes', subject: tokens },
]

const read = (resource: string, name: string): PolicyRule => ({ apiGroups: [''], resources: [resource], resourceNames: [name], verbs: ['get'] })
const anonymous: Subject = { kind: 'User', name: 'system:anonymous', apiGroup }

const ofNamespaces = [
  { namespace: 'kube-public', name: 'kubeadm:bootstrap-signer-clusterinfo', rules: [read('configmaps', 'cluster-info')], subjects: [anonymous] },
  { namespace: 'kube-system', name: 'kubeadm:kubelet-config', rules: [read('configmaps', kubeletConfigName)], subjects: [group('system:nodes'), tokens] },
  { namespace: 'kube-system', name: 'kubeadm:nodes-kubeadm-config', rules: [read('configmaps', clusterConfigName)], subjects: [tokens, group('system:nodes')] },
  // Its values are sealed, and it is there for two hours after skiff certs upload.
  { namespace: 'kube-system', name: `kubeadm:${certificatesSecret}`, rules: [read('secrets', certificatesSecret)], subjects: [tokens] },
]

export interface JoinedKubelets {
  readonly clusterDns: string
  readonly clusterDomain: string
}

/** @param configuration kubeadm's ClusterConfiguration of the cluster */
export async function ensureJoinAccess(client: Client, kubelets: JoinedKubelets, configuration: object, signal: AbortSignal): Promise<void> {
  const options = { fieldManager, force: true, signal }
  const head = { apiVersion: `${apiGroup}/v1` }
  const getNodes = { ...head, kind: 'ClusterRole', metadata: { name: 'kubeadm:get-nodes' }, rules: [{ apiGroups: [''], resources: ['nodes'], verbs: ['get'] }] }
  await client.of(clusterRoles).patch({ name: 'kubeadm:get-nodes' }, 'apply', getNodes, options)
  for (const { name, role, subject } of ofCluster) {
    const roleRef = { apiGroup, kind: 'ClusterRole', name: role }
    await client
      .of(clusterRoleBindings)
      .patch({ name }, 'apply', { ...head, kind: 'ClusterRoleBinding', metadata: { name }, roleRef, subjects: [subject] }, options)
  }
  for (const { namespace, name, rules, subjects } of ofNamespaces) {
    const metadata = { namespace, name }
    await client.of(roles).patch(metadata, 'apply', { ...head, kind: 'Role', metadata, rules }, options)
    const roleRef = { apiGroup, kind: 'Role', name }
    await client.of(roleBindings).patch(metadata, 'apply', { ...head, kind: 'RoleBinding', metadata, roleRef, subjects }, options)
  }
  const published = [configMap(kubeletConfigName, 'kubelet', kubeletConfiguration(kubelets)), configMap(clusterConfigName, clusterConfigKey, configuration)]
  for (const found of published) await client.of(configMaps).patch(found.metadata, 'apply', found, options)
}

function configMap(name: string, key: string, value: object) {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { namespace: 'kube-system', name }, data: { [key]: toYaml(value) } } satisfies ConfigMap
}

function kubeletConfiguration({ clusterDns, clusterDomain }: JoinedKubelets): object {
  return {
    apiVersion: 'kubelet.config.k8s.io/v1beta1',
    kind: 'KubeletConfiguration',
    clusterDNS: [clusterDns],
    clusterDomain,
    rotateCertificates: true,
    authentication: { anonymous: { enabled: false }, webhook: { enabled: true } },
    authorization: { mode: 'Webhook' },
  }
}
