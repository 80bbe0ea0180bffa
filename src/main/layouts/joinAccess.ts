/**
 * What a machine needs to join the cluster with a bootstrap token (L5), as kubeadm init leaves it: who may read the cluster's description, ask for a certificate
 * and get it, and the kubelet's configuration. Upstream: kubeadm's phases bootstraptoken and kubelet (v1.36).
 */
import type { ConfigMap } from '#api/gen/types/core.v1'
import type { PolicyRule, Subject } from '#api/gen/types/rbac.v1'
import { toYaml } from '#api/machinery/yaml'
import { clusterRoleBindings, clusterRoles, configMaps, roleBindings, roles } from '#client/builtIn'
import type { Client } from '#client/client'
import { fieldManager } from './clusterRights.ts'

/** The group of bootstrap tokens that are made for nodes. */
export const nodeTokenGroup = 'system:bootstrappers:kubeadm:default-node-token'
export const kubeletConfigName = 'kubelet-config'

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

const readConfigMap = (name: string): PolicyRule => ({ apiGroups: [''], resources: ['configmaps'], resourceNames: [name], verbs: ['get'] })
const anonymous: Subject = { kind: 'User', name: 'system:anonymous', apiGroup }

const ofNamespaces = [
  { namespace: 'kube-public', name: 'kubeadm:bootstrap-signer-clusterinfo', rules: [readConfigMap('cluster-info')], subjects: [anonymous] },
  { namespace: 'kube-system', name: 'kubeadm:kubelet-config', rules: [readConfigMap(kubeletConfigName)], subjects: [group('system:nodes'), tokens] },
]

export interface JoinedKubelets {
  readonly clusterDns: string
  readonly clusterDomain: string
}

export async function ensureJoinAccess(client: Client, kubelets: JoinedKubelets, signal: AbortSignal): Promise<void> {
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
  const found = kubeletConfigMap(kubelets)
  await client.of(configMaps).patch({ namespace: 'kube-system', name: kubeletConfigName }, 'apply', found, options)
}

function kubeletConfigMap({ clusterDns, clusterDomain }: JoinedKubelets): ConfigMap {
  const configuration = {
    apiVersion: 'kubelet.config.k8s.io/v1beta1',
    kind: 'KubeletConfiguration',
    clusterDNS: [clusterDns],
    clusterDomain,
    rotateCertificates: true,
    authentication: { anonymous: { enabled: false }, webhook: { enabled: true } },
    authorization: { mode: 'Webhook' },
  }
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { namespace: 'kube-system', name: kubeletConfigName },
    data: { kubelet: toYaml(configuration) },
  }
}
