/** A valid object of each kind that can be created and patched, none of which a new cluster has. */
import { describedObjects } from '../e2e/kubectlCommands/describedObjects.ts'

export interface Sample {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: { readonly name: string; readonly namespace?: string }
}

const name = 'sample'
const example = 'samples.example'
const made = (apiVersion: string, kind: string, rest: object = {}): Sample => ({ apiVersion, kind, metadata: { name }, ...rest })
const involved = { kind: 'Pod', namespace: 'default', name: 'p' }
const rbac = 'rbac.authorization.k8s.io'
const template = { metadata: { labels: { app: name } }, spec: { containers: [{ name: 'main', image: 'main:1' }] } }

const more: readonly Sample[] = [
  made('apiregistration.k8s.io/v1', 'APIService', {
    metadata: { name: `v1.${example}` },
    spec: {
      group: example,
      version: 'v1',
      groupPriorityMinimum: 100,
      versionPriority: 10,
      insecureSkipTLSVerify: true,
      service: { namespace: 'default', name },
    },
  }),
  made('v1', 'Endpoints', { subsets: [] }),
  made('v1', 'Event', { involvedObject: involved, reason: 'Sampled', message: 'a sample', type: 'Normal' }),
  made('v1', 'Namespace'),
  made('v1', 'Node'),
  made('v1', 'ResourceQuota', { spec: { hard: { pods: '10' } } }),
  made('apps/v1', 'ControllerRevision', { data: { a: 1 }, revision: 1 }),
  made('apps/v1', 'ReplicaSet', { spec: { replicas: 0, selector: { matchLabels: { app: name } }, template } }),
  made('events.k8s.io/v1', 'Event', {
    eventTime: '2026-01-01T00:00:00.000000Z',
    reportingController: 'example.com/sampler',
    reportingInstance: 'one',
    action: 'Sample',
    reason: 'Sampled',
    regarding: involved,
    type: 'Normal',
  }),
  made('autoscaling/v1', 'HorizontalPodAutoscaler', {
    spec: { scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name }, minReplicas: 1, maxReplicas: 3 },
  }),
  made('networking.k8s.io/v1', 'IPAddress', { metadata: { name: '10.96.0.77' }, spec: { parentRef: { resource: 'services', namespace: 'default', name } } }),
  made('networking.k8s.io/v1', 'ServiceCIDR', { spec: { cidrs: ['10.97.0.0/16'] } }),
  made(`${rbac}/v1`, 'ClusterRole', { rules: [] }),
  made(`${rbac}/v1`, 'ClusterRoleBinding', { roleRef: { apiGroup: rbac, kind: 'ClusterRole', name: 'view' }, subjects: [] }),
  made('scheduling.k8s.io/v1', 'PriorityClass', { value: 10 }),
  made('coordination.k8s.io/v1', 'Lease', { spec: { holderIdentity: name } }),
  made('discovery.k8s.io/v1', 'EndpointSlice', { addressType: 'IPv4', endpoints: [] }),
]

export const oneOfEachKind: readonly Sample[] = [...(describedObjects as readonly Sample[]), ...more]
