/** Workloads and their versions: set with its six, rollout with its six, scale and autoscale. */
import { type Family, fails, says } from './steps.ts'

const web = (path: string) => `get deployment web -o jsonpath='${path}'`
const container = '.spec.template.spec.containers[0]'
const status = (kind: string) => says(`rollout status ${kind} --timeout=40s`, /successfully rolled out|roll out complete|rolling update complete/)

const workload = (kind: string, rest: object = {}) => ({
  apiVersion: 'apps/v1',
  kind,
  metadata: { name: 'cache' },
  spec: {
    ...rest,
    selector: { matchLabels: { app: `cache-${kind}` } },
    template: { metadata: { labels: { app: `cache-${kind}` } }, spec: { containers: [{ name: 'cache', image: 'cache:1' }] } },
  },
})

export const rollouts: Family = {
  name: 'rollouts',
  steps: [
    says('create deployment web --image=nginx:1 --replicas=2 --port=80', 'deployment.apps/web created'),
    says('create configmap values --from-literal=A=1 --from-literal=B=two', /created/),
    says('expose deployment web --port=80', 'service/web exposed'),
    status('deployment/web'),

    says('set env deployment/web COLOR=red SIZE=2', 'deployment.apps/web env updated'),
    says('set env deployment/web --list', '# Deployment web, container nginx\nCOLOR=red\nSIZE=2'),
    says('set env deployment/web --from=configmap/values --prefix=P_', 'deployment.apps/web env updated'),
    says('set env deployment/web COLOR-', 'deployment.apps/web env updated'),
    says('set env deployment/web --list --resolve', [/^# Deployment web, container nginx\nSIZE=2\n/, /^P_A=1$/m, /^P_B=two$/m]),
    says('set image deployment/web nginx=nginx:2', 'deployment.apps/web image updated'),
    says('set image deployment/web nginx=nginx:2', ''),
    fails('set image deployment/web nobody=nginx:2', /unable to find container named "nobody"/),
    says('set resources deployment/web --limits=cpu=200m,memory=64Mi --requests=cpu=100m', 'deployment.apps/web resource requirements updated'),
    says(web(`{${container}.resources}`), '{"limits":{"cpu":"200m","memory":"64Mi"},"requests":{"cpu":"100m"}}'),
    fails(
      'set resources deployment/web --limits=cpu=100m --requests=cpu=200m',
      /spec\.template\.spec\.containers\[0\]\.resources\.requests: Invalid value: "200m": must be less than or equal to cpu limit of 100m/,
    ),
    says('set selector service/web app=other', 'service/web selector updated'),
    says('set serviceaccount deployment/web robot', 'deployment.apps/web serviceaccount updated'),
    says(web('{.spec.template.spec.serviceAccountName}'), 'robot'),
    says('set serviceaccount deployment/web default', 'deployment.apps/web serviceaccount updated'),
    says('create rolebinding some --clusterrole=view --user=jane', /created/),
    says(
      'set subject rolebinding some --user=john --group=devs --serviceaccount=rollouts:default',
      'rolebinding.rbac.authorization.k8s.io/some subjects updated',
    ),
    says('get rolebinding some -o wide', /some +ClusterRole\/view +\S+ +jane, john +devs +rollouts\/default/),

    status('deployment/web'),
    says('rollout history deployment/web', /^deployment\.apps\/web \nREVISION +CHANGE-CAUSE\n1 +<none>\n2 +<none>\n/),
    says('rollout history deployment/web --revision=1', [
      /^deployment\.apps\/web with revision #1\nPod Template:\n/,
      /Image:\tnginx:1\n/,
      /Labels:\tapp=web\n\s+pod-template-hash=/,
    ]),
    fails('rollout history deployment/web --revision=77', /unable to find the specified revision/),
    says('rollout pause deployment/web', 'deployment.apps/web paused'),
    fails('rollout pause deployment/web', /deployments\.apps "web" is already paused/),
    fails(
      'rollout undo deployment/web',
      /you cannot rollback a paused deployment; resume it first with 'kubectl rollout resume( deployment\/web)?' and try again/,
    ),
    says('rollout resume deployment/web', 'deployment.apps/web resumed'),
    fails('rollout resume deployment/web', /deployments\.apps "web" is not paused/),
    says('rollout undo deployment/web --to-revision=1', 'deployment.apps/web rolled back'),
    says(web(`{${container}.image}`), 'nginx:1'),
    fails('rollout undo deployment/web --to-revision=77', /unable to find specified revision 77 in history/),
    says('rollout restart deployment/web', 'deployment.apps/web restarted'),
    says(web('{.spec.template.metadata.annotations}'), /^\{"kubectl\.kubernetes\.io\/restartedAt":"\d{4}-/),
    status('deployment/web'),
    fails('rollout status deployment/nobody', /deployments\.apps "nobody" not found/),
    says('apply -f -', 'statefulset.apps/cache created\ndaemonset.apps/cache created', {
      input: [workload('StatefulSet', { serviceName: 'cache' }), workload('DaemonSet')],
    }),
    status('statefulset/cache'),
    status('daemonset/cache'),
    says('set image statefulset/cache daemonset/cache cache=cache:2', /statefulset\.apps\/cache image updated\ndaemonset\.apps\/cache image updated/),
    status('statefulset/cache'),
    status('daemonset/cache'),
    says('rollout undo statefulset/cache', 'statefulset.apps/cache rolled back'),
    says('rollout undo daemonset/cache', 'daemonset.apps/cache rolled back'),
    says(`get statefulset/cache daemonset/cache -o jsonpath='{.items[*].spec.template.spec.containers[0].image}'`, 'cache:1 cache:1'),
    says('rollout history daemonset/cache', /REVISION +CHANGE-CAUSE\n2 +<none>\n3 +<none>/, { until: true }),

    says('scale deployment/web --replicas=3', 'deployment.apps/web scaled'),
    fails('scale deployment/web --current-replicas=7 --replicas=1', /Expected replicas to be 7, was 3/),
    says('scale deployment web --current-replicas=3 --replicas=1 --timeout=30s', 'deployment.apps/web scaled'),
    says('scale statefulset cache --replicas=2', 'statefulset.apps/cache scaled'),
    says('get statefulset cache', /NAME +READY +AGE\ncache +2\/2 /, { until: true }),
    fails('scale daemonset cache --replicas=2', /could not find the requested resource/),
    fails('scale deployment nobody --replicas=2', /deployments\.apps "nobody" not found/),

    says('autoscale deployment web --min=1 --max=5 --cpu-percent=80', 'horizontalpodautoscaler.autoscaling/web autoscaled'),
    // Before the autoscaler's first sync, 15 s later.
    says('get hpa', /NAME +REFERENCE +TARGETS +MINPODS +MAXPODS +REPLICAS +AGE\nweb +Deployment\/web +(cpu: )?<unknown>\/80% +1 +5 +0 /),
    fails('autoscale deployment web --max=5', /horizontalpodautoscalers\.autoscaling "web" already exists/, { before: 35 }),
    fails('autoscale deployment web --max=5', /failed to create autoscaling\/v2 HPA/, { since: 35 }),
    says('get hpa web -o yaml', [/apiVersion: autoscaling\/v/, /minReplicas: 1/]),
  ],
}
