/**
 * The priority levels and flow schemas that every cluster has (L1), as data. The mandatory ones have a fixed spec: validation and the API
 * server's bootstrap hold it. The suggested ones are an operator's to change.
 * Upstream: apiserver/pkg/apis/flowcontrol/bootstrap/default.go (v1.36).
 */
import type {
  FlowSchema,
  NonResourcePolicyRule,
  PolicyRulesWithSubjects,
  PriorityLevelConfiguration,
  PriorityLevelConfigurationSpec,
  ResourcePolicyRule,
  Subject,
} from '#api/gen/types/flowcontrol.v1'
import { flowcontrolGroup } from './conditions.ts'

/** `true`: the API server keeps the spec as it is here. */
export const autoUpdateAnnotation = 'apf.kubernetes.io/autoupdate-spec'
const apiVersion = `${flowcontrolGroup}/v1`
const annotations = { [autoUpdateAnnotation]: 'true' }

function level(name: string, spec: PriorityLevelConfigurationSpec): PriorityLevelConfiguration {
  return { apiVersion, kind: 'PriorityLevelConfiguration', metadata: { name, annotations }, spec, status: {} }
}

function queueing(name: string, nominalConcurrencyShares: number, lendablePercent: number, queues: number, handSize: number): PriorityLevelConfiguration {
  const limitResponse = { type: 'Queue', queuing: { queues, handSize, queueLengthLimit: 50 } }
  return level(name, { type: 'Limited', limited: { nominalConcurrencyShares, lendablePercent, limitResponse } })
}

type Distinguisher = 'ByUser' | 'ByNamespace' | undefined

function schema(name: string, levelName: string, matchingPrecedence: number, by: Distinguisher, rule: PolicyRulesWithSubjects): FlowSchema {
  return {
    apiVersion,
    kind: 'FlowSchema',
    metadata: { name, annotations },
    spec: {
      priorityLevelConfiguration: { name: levelName },
      matchingPrecedence,
      ...(by && { distinguisherMethod: { type: by } }),
      rules: [rule],
    },
    status: {},
  }
}

const group = (name: string): Subject => ({ kind: 'Group', group: { name } })
const user = (name: string): Subject => ({ kind: 'User', user: { name } })
const kubeSystemAccounts: Subject = { kind: 'ServiceAccount', serviceAccount: { name: '*', namespace: 'kube-system' } }
const everybody = [group('system:unauthenticated'), group('system:authenticated')]
const nodes = [group('system:nodes')]

const inEveryNamespace = (verbs: string[], apiGroup: string, ...resources: string[]): ResourcePolicyRule => ({
  verbs,
  apiGroups: [apiGroup],
  resources,
  namespaces: ['*'],
})
const leases = (...verbs: string[]) => inEveryNamespace(verbs, 'coordination.k8s.io', 'leases')
const everyUrl: NonResourcePolicyRule = { verbs: ['*'], nonResourceURLs: ['*'] }
const everything = (subjects: Subject[]): PolicyRulesWithSubjects => ({
  subjects,
  resourceRules: [{ ...inEveryNamespace(['*'], '*', '*'), clusterScope: true }],
  nonResourceRules: [everyUrl],
})

export const mandatoryPriorityLevels: readonly PriorityLevelConfiguration[] = [
  level('exempt', { type: 'Exempt', exempt: { nominalConcurrencyShares: 0, lendablePercent: 0 } }),
  level('catch-all', { type: 'Limited', limited: { nominalConcurrencyShares: 5, lendablePercent: 0, limitResponse: { type: 'Reject' } } }),
]

export const suggestedPriorityLevels: readonly PriorityLevelConfiguration[] = [
  queueing('system', 30, 33, 64, 6),
  queueing('node-high', 40, 25, 64, 6),
  queueing('leader-election', 10, 0, 16, 4),
  queueing('workload-high', 40, 50, 128, 6),
  queueing('workload-low', 100, 90, 128, 6),
  queueing('global-default', 20, 50, 128, 6),
]

export const mandatoryFlowSchemas: readonly FlowSchema[] = [
  schema('exempt', 'exempt', 1, undefined, everything([group('system:masters')])),
  schema('catch-all', 'catch-all', 10_000, 'ByUser', everything(everybody)),
]

export const suggestedFlowSchemas: readonly FlowSchema[] = [
  schema('probes', 'exempt', 2, undefined, {
    subjects: everybody,
    nonResourceRules: [{ verbs: ['get'], nonResourceURLs: ['/healthz', '/readyz', '/livez'] }],
  }),
  schema('system-leader-election', 'leader-election', 100, 'ByUser', {
    subjects: [user('system:kube-controller-manager'), user('system:kube-scheduler'), kubeSystemAccounts],
    resourceRules: [leases('get', 'create', 'update')],
  }),
  schema('system-node-high', 'node-high', 400, 'ByUser', {
    subjects: nodes,
    resourceRules: [{ ...inEveryNamespace(['*'], '', 'nodes', 'nodes/status'), clusterScope: true }, leases('*')],
  }),
  schema('system-nodes', 'system', 500, 'ByUser', everything(nodes)),
  schema('kube-controller-manager', 'workload-high', 800, 'ByNamespace', everything([user('system:kube-controller-manager')])),
  schema('kube-scheduler', 'workload-high', 800, 'ByNamespace', everything([user('system:kube-scheduler')])),
  schema('kube-system-service-accounts', 'workload-high', 900, 'ByNamespace', everything([kubeSystemAccounts])),
  schema('service-accounts', 'workload-low', 9000, 'ByUser', everything([group('system:serviceaccounts')])),
  schema('global-default', 'global-default', 9900, 'ByUser', everything(everybody)),
]
