/** Pods that do not run, or are not ready. */
import { type Broken, claimYaml, podYaml } from './broken.ts'

const probe = (kind: string) => `${kind}: {httpGet: {path: /healthz, port: 80}, periodSeconds: 1, failureThreshold: 1}`

export const brokenPods: readonly Broken[] = [
  {
    what: 'a pod that asks for more CPUs than a node has',
    given: podYaml('big', { container: 'resources: {requests: {cpu: 1000}}' }),
    ask: 'pods/big',
    cause: /^no node fits: .*Insufficient cpu/,
    evidence: /^condition PodScheduled False \(Unschedulable\)$/,
    next: /^kubectl describe nodes$/,
  },
  {
    what: 'a pod whose nodeSelector fits no node',
    given: podYaml('picky', { spec: 'nodeSelector: {disk: ssd}' }),
    ask: 'pods/picky',
    cause: /^no node fits: .*didn't match Pod's node affinity\/selector/,
    evidence: /PodScheduled/,
    next: /^kubectl describe nodes$/,
  },
  {
    what: 'a pod with a scheduling gate',
    given: podYaml('gated', { spec: 'schedulingGates: [{name: example.com/wait}]' }),
    ask: 'pods/gated',
    cause: /scheduling gates are removed: example\.com\/wait$/,
    evidence: /^spec\.schedulingGates, condition PodScheduled False \(SchedulingGated\)$/,
    next: /^kubectl get pod gated -o yaml/,
  },
  {
    what: 'a pod that names a scheduler that does not run',
    given: podYaml('stranger', { spec: 'schedulerName: other' }),
    ask: 'pods/stranger',
    cause: /^the scheduler other has not looked at it/,
    evidence: /^spec\.schedulerName other/,
    next: /^kubectl get leases -A$/,
  },
  {
    what: 'a pod whose claim does not exist',
    given: podYaml('app', { spec: 'volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]' }),
    ask: 'pods/app',
    cause: /^it uses the claim data, which does not exist$/,
    evidence: /^spec\.volumes$/,
    next: /^kubectl get persistentvolumeclaims -n /,
  },
  {
    what: 'a pod whose claim has no class that exists',
    given: `${claimYaml('data', 'storageClassName: fast')}---${podYaml('app', { spec: 'volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]' })}`,
    ask: 'pods/app',
    cause: /^its claim data has no volume: its StorageClass fast does not exist$/,
    evidence: /^spec\.storageClassName fast$/,
    next: /^kubectl get storageclasses$/,
  },
  {
    what: 'a pod whose claim cannot be provisioned, with the event of the claim',
    given: `
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: failing}
provisioner: example.com/disks
---${claimYaml('data', 'storageClassName: failing')}---
apiVersion: v1
kind: Event
metadata: {name: refused}
involvedObject: {apiVersion: v1, kind: PersistentVolumeClaim, namespace: '{ns}', name: data, uid: '{uid persistentvolumeclaims/data}'}
type: Warning
reason: ProvisioningFailed
message: the pool of disks is empty
lastTimestamp: 2026-01-01T00:00:00Z
---${podYaml('app', { spec: 'volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]' })}`,
    ask: 'pods/app',
    cause: /^its claim data has no volume: its provisioner fails: the pool of disks is empty$/,
    evidence: /^event ProvisioningFailed$/,
    next: /^kubectl describe pvc data -n /,
  },
  {
    what: 'a pod whose image cannot be pulled, with the reason of the pull',
    given: podYaml('pull', { annotations: { 'pull-error': 'manifest unknown' } }).replace('web:1', 'web:2'),
    ask: 'pods/pull',
    cause: /^container c: image example\.com\/web:2 cannot be pulled: .*manifest unknown/,
    evidence: /^container c is waiting \((ImagePullBackOff|ErrImagePull)\), event Failed$/,
    next: /^kubectl describe pod pull/,
  },
  {
    what: 'a pod that may not pull its image, and the node has not got it',
    given: podYaml('never', { container: 'imagePullPolicy: Never' }).replace('web:1', 'absent:1'),
    ask: 'pods/never',
    cause: /^container c: image example\.com\/absent:1 cannot be pulled: .*pull policy of Never/,
    evidence: /ErrImageNeverPull/,
    next: /^kubectl describe pod never/,
  },
  {
    what: 'a pod with an invalid image name',
    given: podYaml('invalid').replace('example.com/web:1', 'Example.com/Web:::1'),
    ask: 'pods/invalid',
    cause: /^container c: image Example\.com\/Web:::1 cannot be pulled: .*invalid/i,
    evidence: /InvalidImageName/,
    next: /^kubectl describe pod invalid/,
  },
  {
    what: 'a pod whose ConfigMap does not exist',
    given: podYaml('app', { container: 'envFrom: [{configMapRef: {name: gone}}]' }),
    ask: 'pods/app',
    cause: /^container c cannot be started: configmap "gone" not found$/,
    evidence: /^container c is waiting \(CreateContainerConfigError\)$/,
    next: /^kubectl get configmap gone -n /,
  },
  {
    what: 'a pod whose Secret lacks a key',
    given: `
apiVersion: v1
kind: Secret
metadata: {name: login}
stringData: {user: me}
---${podYaml('app', { container: 'env: [{name: P, valueFrom: {secretKeyRef: {name: login, key: password}}}]' })}`,
    ask: 'pods/app',
    cause: /^container c cannot be started: couldn't find key password in Secret /,
    evidence: /CreateContainerConfigError/,
    next: /^kubectl describe secret login -n /,
  },
  {
    what: 'a pod whose init container fails',
    given: podYaml('app', { annotations: { 'exit-code.setup': '4' }, spec: "initContainers: [{name: setup, image: 'example.com/setup:1'}]" }),
    ask: 'pods/app',
    cause: /^init container setup ended with exit code 4; restarted \d+ times$/,
    evidence: /CrashLoopBackOff/,
    next: /^kubectl logs app -c setup -n \S+ --previous$/,
  },
  {
    what: 'a pod whose init container does not end',
    given: podYaml('app', { annotations: { 'exit-after-seconds.setup': '1000000' }, spec: "initContainers: [{name: setup, image: 'example.com/setup:1'}]" }),
    ask: 'pods/app',
    cause: /^init container setup has not ended; it runs since 20/,
    evidence: /^status\.initContainerStatuses\[setup\]\.state$/,
    next: /^kubectl logs app -c setup -n /,
  },
  {
    what: 'a pod that crashes',
    given: podYaml('crash', { annotations: { 'exit-after-seconds': '1', 'exit-code': '3' } }),
    ask: 'pods/crash',
    cause: /^container c ended with exit code 3; restarted \d+ times$/,
    evidence: /^container c is waiting \(CrashLoopBackOff\)$/,
    next: /^kubectl logs crash -c c -n \S+ --previous$/,
  },
  {
    what: 'a pod that needs more memory than its limit',
    given: podYaml('hungry', { annotations: { 'exit-after-seconds': '1', 'exit-reason': 'OOMKilled' }, container: 'resources: {limits: {memory: 64Mi}}' }),
    ask: 'pods/hungry',
    cause: /^container c needs more memory than its limit of 64Mi, and is killed \(OOMKilled\); restarted/,
    evidence: /CrashLoopBackOff/,
    next: /^kubectl top pod hungry --containers -n /,
  },
  {
    what: 'a pod that cannot be started',
    given: podYaml('app', { annotations: { 'start-error': 'exec: "serve": executable file not found in $PATH' } }),
    ask: 'pods/app',
    cause: /container c cannot be started: .*executable file not found/,
    evidence: /./,
    next: /^kubectl describe pod app/,
  },
  {
    what: 'a pod whose readiness probe fails',
    given: podYaml('app', { annotations: { readiness: 'fail' }, container: probe('readinessProbe') }),
    ask: 'pods/app',
    cause: /^container c runs, but its readiness probe fails: /,
    evidence: /^event Unhealthy: Readiness probe failed: /,
    next: /^kubectl logs app -c c -n /,
  },
  {
    what: 'a pod whose startup probe fails',
    given: podYaml('app', { annotations: { startup: 'fail' }, container: probe('startupProbe').replace('failureThreshold: 1', 'failureThreshold: 100000') }),
    ask: 'pods/app',
    cause: /^container c runs, but its startup probe fails: /,
    evidence: /^event Unhealthy: Startup probe failed: /,
    next: /^kubectl logs app -c c -n /,
  },
  {
    what: 'a pod whose liveness probe fails',
    given: podYaml('app', { annotations: { liveness: 'fail' }, container: probe('livenessProbe') }),
    ask: 'pods/app',
    cause: /^container c is restarted: Liveness probe failed: .*, so the kubelet kills it$/,
    evidence: /CrashLoopBackOff\), event Unhealthy: Liveness probe failed/,
    next: /^kubectl logs app -c c -n \S+ --previous$/,
  },
  {
    what: 'a pod with a readiness gate that no controller sets',
    given: podYaml('app', { spec: 'readinessGates: [{conditionType: example.com/served}]' }),
    ask: 'pods/app',
    cause: /^its readiness gate example\.com\/served is not met/,
    evidence: /^no condition example\.com\/served$/,
    next: /^kubectl get pod app -o yaml/,
  },
  {
    what: 'a pod that must not run as root, and whose image does',
    given: podYaml('app', { annotations: { 'pull-user': '0' }, spec: 'securityContext: {runAsNonRoot: true}' }).replace('web:1', 'root:1'),
    ask: 'pods/app',
    cause: /^container c cannot be started: container has runAsNonRoot and image will run as root/,
    evidence: /CreateContainerConfigError/,
    next: /^kubectl describe pod app/,
  },
  {
    what: 'a pod that has failed for good',
    given: podYaml('once', { annotations: { 'exit-after-seconds': '1', 'exit-code': '2' }, spec: 'restartPolicy: Never' }),
    ask: 'pods/once',
    cause: /^container c ended with exit code 2$/,
    evidence: /^container c terminated \(Error\)$/,
    next: /^kubectl logs once -c c -n /,
  },
  {
    what: 'a pod that a node has evicted',
    given: podYaml('app', { spec: 'nodeSelector: {none: here}' }),
    steps: [{ status: 'pods/app', body: { phase: 'Failed', reason: 'Evicted', message: 'The node was low on resource: memory.' } }],
    ask: 'pods/app',
    cause: /^it has failed and does not start again: Evicted: The node was low on resource: memory\.$/,
    evidence: /^status\.phase Failed$/,
    next: /^kubectl describe pod app/,
  },
  {
    what: 'a pod on a node that is down',
    given: podYaml('app', { spec: 'nodeName: down, tolerations: [{operator: Exists}]' }),
    ask: 'pods/app',
    cause: /^its node down is not ready, so no kubelet acts on the pod$/,
    evidence: /^node down: condition Ready Unknown \(NodeStatusUnknown\)/,
    next: /^skiff why node\/down$/,
  },
  {
    what: 'a deleted pod on a node that is down',
    given: podYaml('app', { spec: 'nodeName: down, tolerations: [{operator: Exists}]' }),
    steps: [{ delete: 'pods/app' }],
    ask: 'pods/app',
    cause: /^its node down is not ready, so no kubelet confirms that it has stopped$/,
    evidence: /^deletionTimestamp \S+, node down: condition Ready Unknown/,
    next: /^skiff why node\/down$/,
  },
]
