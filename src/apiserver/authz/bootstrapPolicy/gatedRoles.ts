/**
 * What the bootstrap policy has in addition where features are on that v1.36 has off by default (L3, data).
 * Upstream: plugin/pkg/auth/authorizer/rbac/bootstrappolicy/{policy,controller_policy}.go (v1.36).
 */
import { type FeatureGateSettings, featureEnabled } from '#base/featureGates'
import { events, read, type ShortRoles, type ShortRule } from './shorthand.ts'

export interface GatedPolicy {
  readonly nodeRules: readonly ShortRule[]
  readonly clusterRoles: ShortRoles
  /** As in `clusterRoleBindings`. */
  readonly clusterRoleBindings: Readonly<Record<string, readonly string[]>>
  readonly controllerRoles: ShortRoles
}

const certificates = 'certificates.k8s.io'

/** By feature gate. */
const policies: Readonly<Record<string, GatedPolicy>> = {
  ClusterTrustBundle: {
    nodeRules: [[read, certificates, 'clustertrustbundles']],
    clusterRoles: { 'system:cluster-trust-bundle-discovery': [[read, certificates, 'clustertrustbundles']] },
    clusterRoleBindings: { 'system:cluster-trust-bundle-discovery': ['Group:system:serviceaccounts'] },
    controllerRoles: {
      'kube-apiserver-serving-clustertrustbundle-publisher': [
        ['attest', certificates, 'signers', 'kubernetes.io/kube-apiserver-serving'],
        ['create delete list update watch', certificates, 'clustertrustbundles'],
        events,
      ],
    },
  },
  PodCertificateRequest: {
    nodeRules: [['create get list watch', certificates, 'podcertificaterequests']],
    clusterRoles: {},
    clusterRoleBindings: {},
    controllerRoles: { podcertificaterequestcleaner: [['delete get list watch', certificates, 'podcertificaterequests']] },
  },
  StorageVersionMigrator: {
    nodeRules: [],
    clusterRoles: {},
    clusterRoleBindings: {},
    controllerRoles: {
      'storage-version-migrator-controller': [
        ['create list patch', '*', '*'],
        ['update', 'storagemigration.k8s.io', 'storageversionmigrations/status'],
        ['get', 'apiextensions.k8s.io', 'customresourcedefinitions'],
      ],
    },
  },
}

/** The additions of all features that are on. */
export function gatedPolicy(gates: FeatureGateSettings): GatedPolicy {
  const on = Object.entries(policies).flatMap(([gate, policy]) => (featureEnabled(gates, gate) ? [policy] : []))
  return {
    nodeRules: on.flatMap(({ nodeRules }) => nodeRules),
    clusterRoles: Object.assign({}, ...on.map(({ clusterRoles }) => clusterRoles)),
    clusterRoleBindings: Object.assign({}, ...on.map(({ clusterRoleBindings }) => clusterRoleBindings)),
    controllerRoles: Object.assign({}, ...on.map(({ controllerRoles }) => controllerRoles)),
  }
}
