/** Workloads that do not get their pods, or whose pods do not run. */
import { type Broken, jobYaml, podYaml, workloadYaml } from './broken.ts'

const quota = (hard: string) => `
apiVersion: v1
kind: ResourceQuota
metadata: {name: q}
spec: {hard: {${hard}}}
---`
const labelled = (labels: string) => `
apiVersion: v1
kind: Namespace
metadata: {name: '{ns}', labels: {${labels}}}
---`
const webhook = (client: string) => `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: 'hook-{ns}'}
webhooks:
- name: hook.example.com
  clientConfig: {${client}}
  rules: [{apiGroups: [''], apiVersions: [v1], resources: [pods], operations: [CREATE]}]
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: '{ns}'}}
  sideEffects: None
  admissionReviewVersions: [v1]
  timeoutSeconds: 1
---`

const pullFails = { annotations: { 'pull-error': 'manifest unknown' } }

export const brokenWorkloads: readonly Broken[] = [
  {
    what: 'a Deployment that a ResourceQuota has no room for',
    given: `${quota("pods: '0'")}${workloadYaml('Deployment')}`,
    ask: 'deployments.apps/web',
    cause: /^ResourceQuota q has no room: requested pods=1, used pods=0, limited pods=0$/,
    evidence: /^ReplicaSet web-\w+: condition ReplicaFailure True \(FailedCreate\)/,
    next: /^kubectl describe resourcequota q -n /,
  },
  {
    what: 'a Deployment whose pods a ResourceQuota requires limits of',
    given: `${quota("limits.cpu: '1'")}${workloadYaml('Deployment')}`,
    ask: 'deployments.apps/web',
    cause: /^ResourceQuota q requires that every container sets limits\.cpu/,
    evidence: /ReplicaFailure/,
    next: /^kubectl describe resourcequota q -n /,
  },
  {
    what: 'a Deployment whose pods violate Pod Security',
    given: `${labelled('pod-security.kubernetes.io/enforce: restricted')}${workloadYaml('Deployment')}`,
    ask: 'deployments.apps/web',
    cause: /^namespace \S+ enforces PodSecurity "restricted:latest", which its pods violate: allowPrivilegeEscalation/,
    evidence: /ReplicaFailure/,
    next: /^kubectl get namespace \S+ --show-labels$/,
  },
  {
    what: 'a Deployment with a webhook in the way',
    given: `${webhook("url: 'https://127.0.0.1:1/'")}${workloadYaml('Deployment')}`,
    ask: 'deployments.apps/web',
    cause: /^admission webhook hook\.example\.com is in the way: it does not answer, and its failurePolicy is Fail/,
    evidence: /ReplicaFailure/,
    next: /^skiff why validatingwebhookconfiguration\/hook-/,
  },
  {
    what: 'a Deployment whose ServiceAccount does not exist',
    given: workloadYaml('Deployment', '', { spec: 'serviceAccountName: robot' }),
    ask: 'deployments.apps/web',
    cause: /^its pods name ServiceAccount robot, which does not exist$/,
    evidence: /ReplicaFailure/,
    next: /^kubectl create serviceaccount robot -n /,
  },
  {
    what: 'a Deployment whose PriorityClass does not exist',
    given: workloadYaml('Deployment', '', { spec: 'priorityClassName: vip' }),
    ask: 'deployments.apps/web',
    cause: /^its pods name PriorityClass vip, which does not exist$/,
    evidence: /ReplicaFailure/,
    next: /^kubectl get priorityclasses$/,
  },
  {
    what: 'a Deployment whose pods a LimitRange refuses',
    given: `
apiVersion: v1
kind: LimitRange
metadata: {name: bounds}
spec: {limits: [{type: Container, max: {cpu: 1}}]}
---${workloadYaml('Deployment', '', { container: 'resources: {limits: {cpu: 2}}' })}`,
    ask: 'deployments.apps/web',
    cause: /^a LimitRange refuses its pods: maximum cpu usage per Container is 1, but limit is 2/,
    evidence: /ReplicaFailure/,
    next: /^kubectl describe limitranges -n /,
  },
  {
    what: 'a Deployment whose pods a ValidatingAdmissionPolicy refuses',
    given: `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: 'no-pods-{ns}'}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], resources: [pods], operations: [CREATE]}]}
  validations: [{expression: 'false', message: pods are not wanted here}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: 'no-pods-{ns}'}
spec: {policyName: 'no-pods-{ns}', validationActions: [Deny], matchResources: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: '{ns}'}}}}
---${workloadYaml('Deployment')}`,
    ask: 'deployments.apps/web',
    cause: /^ValidatingAdmissionPolicy no-pods-\S+ refuses it: pods are not wanted here$/,
    evidence: /ReplicaFailure/,
    next: /^kubectl get validatingadmissionpolicy no-pods-\S+ -o yaml$/,
  },
  {
    what: 'a Deployment whose image cannot be pulled',
    given: workloadYaml('Deployment', '  replicas: 3', pullFails).replace('web:1', 'web:unknown'),
    ask: 'deployments.apps/web',
    cause: /^pod web-\S+ \(and 2 more\): container c: image example\.com\/web:unknown cannot be pulled: .*manifest unknown/,
    evidence: /^container c is waiting/,
    next: /^kubectl describe pod web-/,
  },
  {
    what: 'a Deployment beyond its progress deadline',
    given: workloadYaml('Deployment', '  progressDeadlineSeconds: 5', { spec: 'nodeSelector: {disk: ssd}' }),
    ask: 'deployments.apps/web',
    cause: /^pod web-\S+: no node fits: /,
    evidence: /condition Progressing False \(ProgressDeadlineExceeded\)$/,
    next: /^skiff why pod\/web-/,
  },
  {
    what: 'a Deployment that is paused',
    given: workloadYaml('Deployment', '  paused: true'),
    ask: 'deployments.apps/web',
    cause: /^its rollout is paused$/,
    evidence: /^spec\.paused true$/,
    next: /^kubectl rollout resume deployment\/web -n /,
  },
  {
    what: 'a Deployment whose deletion waits for a ReplicaSet',
    given: workloadYaml('Deployment', '', { spec: 'nodeSelector: {disk: ssd}' }),
    steps: [
      { patch: 'replicasets.apps/{first}', body: { metadata: { finalizers: ['example.com/keep'] } } },
      { delete: 'deployments.apps/web', foreground: true },
    ],
    ask: 'deployments.apps/web',
    cause: /^its dependants are deleted first; replicasets web-\S+ is still there$/,
    evidence: /finalizer foregroundDeletion$/,
    next: /^skiff why replicasets\/web-/,
  },
  {
    what: 'a ReplicaSet whose pods crash',
    given: workloadYaml('ReplicaSet', '', { annotations: { 'exit-after-seconds': '1', 'exit-code': '9' } }),
    ask: 'replicasets.apps/web',
    cause: /^pod web-\S+: container c ended with exit code 9; restarted/,
    evidence: /CrashLoopBackOff/,
    next: /^kubectl logs web-\S+ -c c -n \S+ --previous$/,
  },
  {
    what: 'a StatefulSet whose first pod is not ready',
    given: workloadYaml('StatefulSet', '  replicas: 3\n  serviceName: web', { annotations: { 'exit-after-seconds': '1', 'exit-code': '1' } }),
    ask: 'statefulsets.apps/web',
    cause: /^pod web-0: container c ended with exit code 1; restarted \d+ times; the pods after it wait for it$/,
    evidence: /CrashLoopBackOff/,
    next: /^kubectl logs web-0/,
  },
  {
    what: 'a StatefulSet whose claims have no class',
    given: workloadYaml(
      'StatefulSet',
      '  serviceName: web\n  volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], storageClassName: fast, resources: {requests: {storage: 1Gi}}}}]',
    ),
    ask: 'statefulsets.apps/web',
    cause: /^pod web-0: its claim data-web-0 has no volume: its StorageClass fast does not exist$/,
    evidence: /^spec\.storageClassName fast$/,
    next: /^kubectl get storageclasses$/,
  },
  {
    what: 'a StatefulSet whose claims a ResourceQuota has no room for',
    given: `${quota("persistentvolumeclaims: '0'")}${workloadYaml(
      'StatefulSet',
      '  serviceName: web\n  volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]',
    )}`,
    ask: 'statefulsets.apps/web',
    cause: /^pod web-0 cannot be created: ResourceQuota q has no room: requested persistentvolumeclaims=1/,
    evidence: /^event FailedCreate: /,
    next: /^kubectl describe resourcequota q/,
  },
  {
    what: 'a DaemonSet whose nodeSelector fits no node',
    given: workloadYaml('DaemonSet', '', { spec: 'nodeSelector: {disk: ssd}' }),
    ask: 'daemonsets.apps/web',
    cause: /^no node has the labels that its pods ask for: nodeSelector disk=ssd$/,
    evidence: /^spec\.template\.spec\.nodeSelector disk=ssd$/,
    next: /^kubectl get nodes --show-labels$/,
  },
  {
    what: 'a DaemonSet whose image cannot be pulled',
    given: workloadYaml('DaemonSet', '', { ...pullFails, spec: 'nodeSelector: {kubernetes.io/hostname: n1}' }).replace('web:1', 'web:unknown'),
    ask: 'daemonsets.apps/web',
    cause: /^pod web-\S+: container c: image example\.com\/web:unknown cannot be pulled/,
    evidence: /waiting/,
    next: /^kubectl describe pod web-/,
  },
  {
    what: 'a Job that is suspended',
    given: jobYaml('  suspend: true'),
    ask: 'jobs.batch/task',
    cause: /^it is suspended$/,
    evidence: /^spec\.suspend true$/,
    next: /^kubectl patch job task -p '\{"spec":\{"suspend":false\}\}' -n /,
  },
  {
    what: 'a Job whose pods failed too often',
    given: jobYaml('  backoffLimit: 1', { annotations: { 'exit-code': '7' } }),
    ask: 'jobs.batch/task',
    cause: /^it has failed: its pods failed more often than spec\.backoffLimit allows; pod task-\S+: container c ended with exit code 7$/,
    evidence: /^condition Fail\w+ True \(BackoffLimitExceeded\)/,
    next: /^kubectl logs task-\S+ -c c/,
  },
  {
    what: 'a Job that took too long',
    given: jobYaml('  activeDeadlineSeconds: 5', { annotations: { 'exit-after-seconds': '1000000' } }),
    ask: 'jobs.batch/task',
    cause: /^it has failed: it took longer than spec\.activeDeadlineSeconds allows/,
    evidence: /DeadlineExceeded/,
    next: /^kubectl (describe|logs)/,
  },
  {
    what: 'a Job of another controller',
    given: jobYaml('  managedBy: example.com/queue'),
    ask: 'jobs.batch/task',
    cause: /^the controller example\.com\/queue runs it/,
    evidence: /^spec\.managedBy example\.com\/queue$/,
    next: /^kubectl describe job task/,
  },
  {
    what: 'a Job that a ResourceQuota has no room for',
    given: `${quota("pods: '0'")}${jobYaml()}`,
    ask: 'jobs.batch/task',
    cause: /^ResourceQuota q has no room/,
    evidence: /^event FailedCreate: /,
    next: /^kubectl describe resourcequota q/,
  },
  {
    what: 'a CronJob that is suspended',
    given: cronYaml("suspend: true, schedule: '* * * * *'"),
    ask: 'cronjobs.batch/cron',
    cause: /^it is suspended$/,
    evidence: /^spec\.suspend true$/,
    next: /^kubectl patch cronjob cron/,
  },
  {
    what: 'a CronJob whose last Job still runs',
    given: cronYaml("concurrencyPolicy: Forbid, schedule: '* * * * *'", { 'exit-after-seconds': '1000000' }),
    ask: 'cronjobs.batch/cron',
    cause: /^it starts no other Job while cron-\d+ runs$/,
    evidence: /^spec\.concurrencyPolicy Forbid, event JobAlreadyActive$/,
    next: /^skiff why job\/cron-\d+ -n /,
  },
  {
    what: 'a CronJob whose last Job failed',
    given: cronYaml("schedule: '* * * * *'", { 'exit-code': '5' }),
    ask: 'cronjobs.batch/cron',
    cause: /^its last Job cron-\d+: .*container c ended with exit code 5/,
    evidence: /./,
    next: /^kubectl logs cron-/,
  },
  {
    what: 'a PodDisruptionBudget that never allows an eviction',
    given: `${podYaml('app', { labels: { app: 'web' } })}---${budgetYaml('minAvailable: 1')}`,
    ask: 'poddisruptionbudgets.policy/keep',
    cause: /^it never allows an eviction: minAvailable 1 needs all 1 pods healthy/,
    evidence: /^spec\.minAvailable 1, status\.desiredHealthy 1, expectedPods 1$/,
    next: /^kubectl edit pdb keep/,
  },
  {
    what: 'a PodDisruptionBudget that selects no pod',
    given: budgetYaml('maxUnavailable: 1'),
    ask: 'poddisruptionbudgets.policy/keep',
    cause: /^its selector selects no pod/,
    evidence: /^status\.expectedPods 0$/,
    next: /^kubectl get pods --show-labels/,
  },
  {
    what: 'a PodDisruptionBudget with a pod that is not ready',
    given: `${workloadYaml('Deployment', '  replicas: 2', { annotations: { readiness: 'fail' }, container: 'readinessProbe: {tcpSocket: {port: 80}, periodSeconds: 1}' })}---${budgetYaml('minAvailable: 1')}`,
    ask: 'poddisruptionbudgets.policy/keep',
    cause: /^0 pods are healthy, and 1 must stay so; pod web-\S+ \(and 1 more\): container c runs, but its readiness probe fails/,
    evidence: /^status\.currentHealthy 0, desiredHealthy 1$/,
    next: /^kubectl logs web-/,
  },
]

function budgetYaml(limit: string): string {
  return `
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: keep}
spec: {${limit}, selector: {matchLabels: {app: web}}}
`
}

function cronYaml(spec: string, annotations: Readonly<Record<string, string>> = {}): string {
  const simulated = Object.fromEntries(Object.entries(annotations).map(([key, value]) => [`skiff.dev/simulated-${key}`, value]))
  return `
apiVersion: batch/v1
kind: CronJob
metadata: {name: cron}
spec: {${spec}, jobTemplate: {spec: {backoffLimit: 0, template: {metadata: {annotations: ${JSON.stringify(simulated)}}, spec: {restartPolicy: Never, containers: [{name: c, image: 'example.com/task:1'}]}}}}}
`
}
